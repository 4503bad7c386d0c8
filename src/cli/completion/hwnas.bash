
# Spaces and networks that ship, beside the program.
_hwnas_spaces() {
    local program file
    program=$(type -P -- "${1/#\~/$HOME}") || return
    for file in "${program%/*}"/../share/hwnas/search_spaces/{,zoo/}*.yaml; do
        [ ! -e "$file" ] || basename -- "$file" .yaml
    done
}

_hwnas() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} i
    local command='' commands='' options='' valued='' takes_space='' values
    _hwnas_table ''
    for ((i = 1; i < COMP_CWORD; i++)); do
        [[ " $commands " == *" ${COMP_WORDS[i]} "* ]] || break
        command+=${command:+ }${COMP_WORDS[i]}
        commands=''
        _hwnas_table "$command"
    done
    COMPREPLY=()
    if [ "$commands" ]; then
        [ "$i" != "$COMP_CWORD" ] || mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$word")
    elif [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
    elif [[ " $valued " == *" $before "* ]]; then # nothing said: a file
        values=$(_hwnas_values "$before")
        [ -z "$values" ] || mapfile -t COMPREPLY < <(compgen -W "$values" -- "$word")
    elif [ "$takes_space" ]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_hwnas_spaces "$1")" -- "$word"; compgen -f -- "$word")
    fi
}
complete -o default -F _hwnas hwnas
