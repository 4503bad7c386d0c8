
# The command that is being typed: "search", "space check"; "" where there is none yet.
function __hwnas_is
    set -l words (commandline -opc)
    set -e words[1]
    if set -q words[2]; and contains -- $words[1] $__hwnas_groups
        test "$words[1] $words[2]" = "$argv[1]"
    else
        test "$words[1]" = "$argv[1]"
    end
end

# Spaces and networks that ship, beside the program.
function __hwnas_spaces
    set -l program (command -s hwnas); or return
    for file in (path dirname $program)/../share/hwnas/search_spaces/{,zoo/}*.yaml
        path change-extension '' (path basename $file)
    end
end
