# The manual and the completions: they have what --help has, and other programs accept them.
load helpers

# For all tests: $OPTIONS has a file for each command, "search", "space check", with the options that its --help prints,
# also those that it only names; $OPTIONS.rows the commands of the program alone.
setup_file() {
    local command part
    export OPTIONS=$BATS_FILE_TMPDIR/options
    mkdir "$OPTIONS"
    "$HWNAS" --help >"$BATS_FILE_TMPDIR/help"
    sed -nE 's/^  ([a-z]+) .*/\1/p' "$BATS_FILE_TMPDIR/help" | sort >"$OPTIONS.rows"
    while read -r command; do
        "$HWNAS" "$command" --help >"$BATS_FILE_TMPDIR/help"
        if grep -q "^Usage: hwnas $command COMMAND" "$BATS_FILE_TMPDIR/help"; then
            for part in $(sed -nE 's/^  ([a-z]+) .*/\1/p' "$BATS_FILE_TMPDIR/help"); do
                "$HWNAS" "$command" "$part" --help | keep_options "$command $part"
            done
        else
            keep_options "$command" <"$BATS_FILE_TMPDIR/help"
        fi
    done <"$OPTIONS.rows"
}

keep_options() { # keep_options COMMAND: of the help in standard input
    {
        printf '%s\n' --help --verbose --quiet --log
        sed -nE '/^  and --/,/^$/p; s/^  (-[a-z], |    )(--[a-z-]+).*/\2/p' | grep -oE -- '--[a-z-]+'
    } | sort -u >"$OPTIONS/$1"
}

setup() {
    MANUAL=${HWNAS%/*}/manual
    cd "$BATS_TEST_TMPDIR" || exit
}

@test "pages have the options of --help, all of them and no others" {
    local command
    [ "$(cat "$OPTIONS"/* | wc -l)" -ge 150 ]
    while read -r command; do
        cat "$OPTIONS/$command"{,\ *} 2>/dev/null | sort -u >wanted
        sed -nE 's/^(\\fB\\-[a-z]\\fR, )?\\fB\\-\\-([a-z\\-]+)\\fR.*/--\2/p' "$MANUAL/hwnas-$command.1" | tr -d '\\' | sort -u >got
        diff wanted got
        grep -qF "hwnas\\-$command (1)" "$MANUAL/hwnas.1"
    done <"$OPTIONS.rows"
}

@test "each command that takes shapes says that names of dimensions go as well" {
    local command n=0
    for command in $(grep -lx -e --shape "$OPTIONS"/*); do
        "$HWNAS" "${command##*/}" --help | grep -E -- '--shape .*: ids=1x128.* by name n=128'
        grep -A1 -F '\-\-shape' "$MANUAL/hwnas-${command##*/}.1" | grep -F 'by name n=128'
        n=$((n + 1))
    done
    [ $n -eq 5 ]
}

@test "mandoc and groff find nothing wrong with the pages" {
    local page
    command -v mandoc >/dev/null || skip "no mandoc"
    # That a page is not installed is no fault of it.
    mandoc -Tlint -W warning "$MANUAL"/*.[17] >lint || true
    cat lint
    [ ! -s lint ]
    command -v groff >/dev/null || skip "no groff"
    for page in "$MANUAL"/*.[17]; do
        groff -ww -man -Tutf8 "$page" 2>&1 >/dev/null | tee -a warnings
    done
    [ ! -s warnings ]
    man -l "$MANUAL/hwnas-search.1" >page 2>/dev/null || mandoc "$MANUAL/hwnas-search.1" | col -b >page
    grep -q -- '--trials N' page
}

# What bash offers for the last word, which may be empty, of each line of standard input: one line of words.
completes() {
    bash --norc --noprofile -c '
        set -u
        source "$1"
        call=$(complete -p hwnas | sed -E "s/.* -F ([^ ]+) .*/\1/")
        while IFS= read -r line; do
            read -r -a COMP_WORDS <<<"$line"
            [[ $line != *" " ]] || COMP_WORDS+=("")
            COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
            "$call" "${COMP_WORDS[0]}" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
            echo "${COMPREPLY[*]}"
        done' bash "$MANUAL/hwnas.bash"
}

@test "bash completes every command and every option" {
    local file
    echo "hwnas " | completes | tr ' ' '\n' | grep -vx help | sort | diff - "$OPTIONS.rows"
    for file in "$OPTIONS"/*; do
        echo "hwnas ${file##*/} --"
    done | completes | tr ' ' '\n' | sort >got
    cat "$OPTIONS"/* | sort | diff - got
    completes >got <<'LINES'
hwnas sea
hwnas space sh
hwnas search --tria
hwnas profile --dtype bf
hwnas profile -d cu
hwnas help constr
hwnas search --out x
LINES
    printf '%s\n' search show --trials bf16 'cuda cuda-dry' constraints '' | diff - got
}

@test "bash offers the spaces that ship, beside an installed program" {
    mkdir -p bin share/hwnas/search_spaces/zoo
    ln -s "$HWNAS" bin/hwnas
    touch share/hwnas/search_spaces/cells.yaml share/hwnas/search_spaces/zoo/celery.yaml
    echo "hwnas profile ce" | PATH=$PWD/bin:$PATH completes >got
    [ "$(<got)" = "cells celery" ]
}

@test "zsh has every command and every option" {
    local file
    command -v zsh >/dev/null || skip "no zsh"
    # As zsh calls it; what would be offered is printed.
    cat >ask <<'END'
_describe() { print -l -- ${(P)2} }
_arguments() { print -l -- "$@" }
_files() { }
completion=$1
shift
for command; do
    words=(hwnas ${=command} '')
    CURRENT=$#words
    source $completion
done
END
    zsh -f ask "$MANUAL/_hwnas" "" | sed 's/:.*//' | grep -vx help | sort | diff - "$OPTIONS.rows"
    for file in "$OPTIONS"/*; do
        echo "${file##*/}"
    done | tr '\n' '\0' | xargs -0 zsh -f ask "$MANUAL/_hwnas" | sed -nE 's/^(--[a-z-]+)\[.*/\1/p' | sort >got
    cat "$OPTIONS"/* | sort | diff - got
    head -n 1 "$MANUAL/_hwnas" | grep -qx '#compdef hwnas'
}

@test "fish has every command and every option" {
    local file
    command -v fish >/dev/null || skip "no fish"
    export HOME=$PWD XDG_CONFIG_HOME=$PWD
    {
        echo "source $MANUAL/hwnas.fish; complete -C 'hwnas '; echo ."
        for file in "$OPTIONS"/*; do
            echo "complete -C 'hwnas ${file##*/} --'"
        done
    } >ask
    fish ask | cut -f 1 >got
    sed '/^\.$/q' got | grep -vxE 'help|\.' | sort | diff - "$OPTIONS.rows"
    sed '1,/^\.$/d' got | sort >options
    cat "$OPTIONS"/* | sort | diff - options
}

@test "hwnas help TOPIC: sections of the pages, in 80 columns" {
    local topic word n=0
    "$HWNAS" --help >help
    for topic in $(sed -nE 's/^([a-z-]+) \|.*/\1/p' "$HWNAS_SRC/src/cli/topics.txt"); do
        "$HWNAS" help "$topic" >out
        [ "$(wc -l <out)" -ge 8 ]
        not grep -E '^.{81}' out
        not grep -qx "$topic" "$OPTIONS.rows"
        grep -qE " $topic(,|$)" help
        [ -e "$MANUAL/hwnas-$topic.7" ]
        n=$((n + 1))
    done
    [ $n -ge 9 ]
    "$HWNAS" help environment >out
    for word in $(sed -n '/^## Files/q; s/^| `\([A-Z_]*\)`.*/\1/p' "$HWNAS_SRC/docs/environment.md"); do
        grep -q "^  $word" out || { echo "no $word" && false; }
    done
    "$HWNAS" help metrics | grep -q '^  throughput$'
    "$HWNAS" help constraints | grep -q '^    latency.p50 <= 8 ms'
    refuses 2 "no command 'metriks'*did you mean 'metrics'" help metriks
}

@test "a directory that takes no manual: exit 1 and its name" {
    refuses 1 "nowhere/hwnas.1: *No such file" manual nowhere
    refuses 2 "an argument is missing" manual
}
