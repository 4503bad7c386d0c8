# Prints C that has files as strings, in an array that ends with NULLs:
#
#   awk -v header=device/cudnn/driver.h -v type=hwnas_kernel_source -v array=hwnas_kernel_sources -f embed.awk FILE...
#
# An element has the file's name, without a .cu at its end, and its text.
BEGIN { printf "#include \"%s\"\n\nconst %s %s[] = {\n", header, type, array }
FNR == 1 {
    name = FILENAME
    sub(/.*\//, "", name)
    sub(/\.cu$/, "", name)
    printf "%s{\"%s\",\n", (NR > 1 ? "},\n" : ""), name
}
{
    gsub(/\\/, "&&")
    gsub(/"/, "\\\"")
    gsub(/\?/, "\\?") # no trigraphs
    print "\"" $0 "\\n\""
}
END { print "},\n{NULL, NULL},\n};" }
