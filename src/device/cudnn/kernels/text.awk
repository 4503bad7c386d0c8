# Prints C that has the files as strings: hwnas_kernel_sources of driver.h.
BEGIN { print "#include \"device/cudnn/driver.h\"\n\nconst hwnas_kernel_source hwnas_kernel_sources[] = {" }
FNR == 1 {
    name = FILENAME
    sub(/.*\//, "", name)
    sub(/\.cu$/, "", name)
    printf "%s{\"%s\",\n", (NR > 1 ? "},\n" : ""), name
}
{
    gsub(/\\/, "&&")
    gsub(/"/, "\\\"")
    print "\"" $0 "\\n\""
}
END { print "},\n{NULL, NULL},\n};" }
