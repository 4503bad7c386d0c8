# The manners of the program, whatever it does: help, exit codes, what goes where.
load helpers

COMMANDS="search
report
watch
worker
study
study show
export
profile
forecast
space
space check
space count
space sample
space show
predictor
predictor fit
predictor show
predictor eval
devices
runner
runner install
version"

# commands: those that --help lists, each with its own, and those that the list above names.
commands() {
    local command
    {
        echo "$COMMANDS"
        for command in $("$HWNAS" --help | sed -nE 's/^  ([a-z]+) .*/\1/p'); do
            echo "$command"
            "$HWNAS" "$command" --help >page
            ! grep -q "^Usage: hwnas $command COMMAND" page || sed -nE "s/^  ([a-z]+) .*/$command \1/p" page
        done
    } | sort -u
}

@test "--help of everything fits a screen" {
    local command
    commands >listed
    [ "$(wc -l <listed)" -ge 30 ]
    while read -r command; do
        # shellcheck disable=SC2086
        ends 0 $command --help
        [ ! -s err ]
        says out "Usage: hwnas $command"
        [ "$(wc -l <out)" -le 24 ] || says out "24 lines at most"
        not grep -nE '.{101}' out
    done <listed
    ends 0 --help
    [ "$(wc -l <out)" -le 24 ]
    while read -r command _; do
        grep -q "^  $command " out
    done <<<"$COMMANDS"
}

@test "every command that is listed has help" {
    local group command n=0
    for group in "" space study predictor; do
        # shellcheck disable=SC2086
        for command in $("$HWNAS" $group --help | sed -nE 's/^  ([a-z]+) .*/\1/p'); do
            ends 0 $group "$command" --help
            n=$((n + 1))
        done
    done
    [ $n -ge 15 ]
}

@test "help COMMAND is the command's own page" {
    "$HWNAS" help search >out
    "$HWNAS" search --help | cmp - out
    "$HWNAS" space help count >out
    "$HWNAS" space count --help | cmp - out
    "$HWNAS" help space count | cmp - out
    "$HWNAS" help help >out
    "$HWNAS" --help | cmp - out
    refuses 2 "no command 'serch'*did you mean 'search'" help serch
    refuses 2 "no command 'cuont'*did you mean 'count'" help space cuont
}

@test "an unknown command or option: exit 2, what was meant" {
    refuses 2 "no command 'serch'*did you mean 'search'" serch
    refuses 2 "no command 'cuont'*did you mean 'count'" space cuont
    refuses 2 "no command 'qqqqqqq'*--help" qqqqqqq
    refuses 2 "no option '--trails'*did you mean --trials" search --trails 3 x.yaml
    refuses 2 "no 'resnet5' in search_spaces*did you mean 'resnet50'" profile resnet5
    refuses 2 "no device 'gpu'*did you mean 'cuda'" profile mnist_mlp --device gpu
    refuses 2 "no precision 'int8'*did you mean 's8'" profile mnist_mlp --dtype int8
    refuses 2 "no precision 'fp16x'*did you mean 'f16'" profile mnist_mlp --dtype fp16x
    refuses 2 "'resnet50' is the name of a space, and no study*export --space resnet50" export resnet50
    refuses 2 "no metric 'latancy'*did you mean 'latency'" search --space mnist_cnn --objectives macs,latancy --trials 3
    refuses 2 "no option '-z'*'hwnas space count --help'" space count -z nas_bench_macro
    refuses 2 "no option '--qqqqqqq'*'hwnas version --help'" version --qqqqqqq
    refuses 2 "no command '--jsn'" --jsn
}

@test "missing, superfluous and impossible arguments: exit 2" {
    refuses 2 "needs a command*--help"
    refuses 2 "needs a command*hwnas space --help" space
    refuses 2 "which job*hwnas search JOB.yaml" search
    refuses 2 "an argument is missing*hwnas space show SPACE" space show
    refuses 2 "'two' is one argument too many*hwnas space count SPACE" space count nas_bench_macro two
    refuses 2 "'x' is one argument too many" devices cpu x
    refuses 2 "--trials needs a value" search job.yaml --trials
    refuses 2 "--threads 'some' is not a list of numbers 1 to 1024, or of all*--threads 1,2,all" profile mnist_mlp --threads some
    refuses 2 "--streams '1,,2' is not a list*--streams 1,2,fill" profile mnist_mlp --streams 1,,2
    refuses 2 "--batch '0' is not a list of numbers 1 to 1048576*--batch 1,2,4" profile mnist_mlp --batch 0
    refuses 2 "-n needs a value" space sample nas_bench_macro -n
    refuses 2 "--number must be a whole number*'x'" space sample nas_bench_macro -n x
    refuses 2 "--number must be a whole number*'-1'" space sample nas_bench_macro -n -1
    refuses 2 "--number must be a whole number" space sample nas_bench_macro -n 99999999999999999999
    refuses 2 "--minutes:*minutes must be a number*'soon'" search "$REPLAY" --minutes soon
    refuses 2 "--minutes:*minutes must be a number*'nan'" search "$REPLAY" --minutes nan
    refuses 2 "--study is empty" search "$REPLAY" --study ""
    refuses 2 "exclude each other" search "$REPLAY" --resume --overwrite
    refuses 2 "--target is missing" predictor fit nas_bench_macro x.csv
    refuses 2 "--folds must be between 3 and 100" predictor fit nas_bench_macro x.csv --target a --out b --folds 2
    refuses 2 "a study or --space" export
    [ "$(ls)" = $'err\nout' ]
}

@test "files and names that do not exist: exit 2, and where was looked" {
    refuses 2 "nope.yaml: *No such file" search nope.yaml
    refuses 2 "'nope' in search_spaces*looked for nope.yaml in " space count nope
    refuses 2 "nope.yaml: there is no such file" space count ./nope.yaml
    refuses 2 "this is a directory" search /tmp
    refuses 2 "nope.db: there is no such study" study show nope.db
    refuses 2 "'nope' in predictors" predictor eval nope nas_bench_macro "$TABLE"
    refuses 2 "nope.csv: *No such file" predictor eval "table:$TABLE#acc_top1_pct_mean" \
        nas_bench_macro nope.csv
}

@test "every --json is one object with format and version" {
    local command
    "$HWNAS" search "$REPLAY" --trials 20 --study s.db >/dev/null
    share_rooflines
    while read -r command; do
        # shellcheck disable=SC2086
        ends 0 $command --json
        [ ! -s err ]
        is out "d['format'].startswith('hwnas.') and d['version'] == 1"
    done <<END
search $REPLAY --trials 20 --study t.db
search $REPLAY --dry-run --study t2.db
explain s.db
study show s.db
study show s.db --constraints accuracy>90
report s.db
space check nas_bench_macro
space count nas_bench_macro
space count accel_nasbench
space sample nas_bench_macro -n 3
space show nas_bench_macro
space show nas_bench_macro --arch 22212220
predictor show gpt_s_perplexity
predictor eval table:$TABLE#acc_top1_pct_mean nas_bench_macro $TABLE
devices
version
END
}

@test "results go to standard output, talk to standard error" {
    job "constraints: [macs <= 7.8 M, accuracy >= 90 %]" "export: {onnx: best.onnx}"
    ends 3 search job.yaml
    says out "Pareto front"
    says err "hwnas: none of 30"
    job "export: {onnx: best.onnx}"
    ends 0 search job.yaml --study t.db
    [ "$(<err)" = "wrote best.onnx" ]
    not grep -q wrote out
}

@test "a standard output that takes nothing: exit 1 and a message" {
    local command got
    "$HWNAS" search "$REPLAY" --trials 20 --study s.db >/dev/null
    job "export: {onnx: best.onnx}"
    share_rooflines
    while read -r command; do
        got=0
        # shellcheck disable=SC2086
        "$HWNAS" $command >/dev/full 2>err || got=$?
        [ $got -eq 1 ]
        says err "hwnas: cannot write to standard output: No space left"
    done <<END
--help
version
devices --json
study show s.db
space show nas_bench_macro --arch 22212220
search job.yaml
END
    [ -s best.onnx ] # the search was not for nothing
    mkfifo pipe
    head -c 0 <pipe &
    exec 9>pipe
    wait $!
    for command in --help version "space sample nas_bench_macro -n 2000"; do
        got=0
        # shellcheck disable=SC2086
        "$HWNAS" $command >&9 2>err || got=$?
        [ $got -eq 141 ] # as all programs behind which `head` has enough
        [ ! -s err ]
    done
}

@test "version and devices" {
    share_rooflines
    ends 0 version
    grep -qE '^hwnas +[0-9]+\.[0-9]+\.[0-9]+$' out
    grep -qE '^oneDNN +3\.' out
    ends 0 --version
    grep -q '^hwnas' out
    ends 0 devices
    grep -q '^cpu .*oneDNN' out
    grep -q '^replay ' out
    ends 0 devices --json
    is out "[x['works'] for x in d['devices'] if x['name'] in ('cpu', 'ref', 'null')] == [True] * 3"
    is out "all(r['flops_per_second'] > 0 and len(r['bandwidths']) == 6 and r['bandwidths'][-1]['bytes'] >= 4 * r['cache_bytes'] - 12000 for r in d['devices'][0]['rooflines'])"
    is out "[r['threads'] for r in d['devices'][0]['rooflines']][0] == 1"
}

@test "devices: each kind that docs/devices.md has, and what it lacks" {
    local named
    share_rooflines
    named=$(awk -F'|' '/^\| device / { is_table = 1 } !/^\|/ { if (is_table) exit } is_table { print $2 }' "$HWNAS_SRC/docs/devices.md" |
        grep -o '`[^`]*`' | sed 's/[`]//g; s/:.*//' | sort -u | tr '\n' ' ')
    HWNAS_SSH=/no/such/ssh HWNAS_TORCH_PYTHON=/no/such/python HWNAS_ORT_LIBRARY=/no/such/library.so ends 0 devices --json
    [ "$(json out "' '.join(sorted(x['name'] for x in d['devices']))") " = "$named" ]
    is out "all(x['works'] or x['lacks'] for x in d['devices'])"
    is out "[x['works'] for x in d['devices'] if x['name'] in ('ort', 'torch', 'ssh')] == [False] * 3"
    is out "[n for n, word in (('ssh', 'openssh-client'), ('torch', 'python3-torch'), ('ort', 'onnxruntime'))
        if word not in {x['name']: x['lacks'].lower() for x in d['devices'] if x['lacks']}[n]] == []"
    # ssh is looked for as the shell does, and no machine is called.
    mkdir bin
    printf '#!/bin/sh\ntouch called\n' >bin/ssh
    chmod +x bin/ssh
    PATH=$PWD/bin:$PATH ends 0 devices --json
    is out "[(x['works'], x['lacks']) for x in d['devices'] if x['name'] == 'ssh'] == [(True, None)]"
    [ ! -e called ]
}

# harmless FILE: nothing in it but text: no escape, no other control character of 7 or 8 bits.
harmless() {
    /usr/bin/python3 - "$1" <<'END'
import sys
text = open(sys.argv[1], encoding="utf-8").read().replace("\n", "").replace("\t", "")
assert text.isprintable(), ascii(text)
END
}

@test "names that come from others do nothing to a terminal" {
    local name=$'a\e[2Jb\xc2\x9b31m.yaml'
    refuses 2 'a [2Jb??31m.yaml' space check "$name"
    harmless err
    cp "$HWNAS_SRC/search_spaces/nas_bench_macro.yaml" "$name"
    ends 0 space check "$name"
    says out 'a [2Jb??31m.yaml: good'
    harmless out
    ends 0 space check "$name" --json
    harmless out
    is out "d['file'].endswith('a\\x1b[2Jb\\x9b31m.yaml')"
    # An ONNX file whose nodes are called so.
    ends 0 export --space mnist_cnn --format onnx --out net.onnx
    /usr/bin/python3 - <<'END'
import re
data = open("net.onnx", "rb").read()
changed = re.sub(rb"(conv|linear|relu|pool)(_\d)", lambda m: b"\x1b" + m[1][1:] + m[2], data)
assert changed != data
open("net.onnx", "wb").write(changed)
END
    ends 0 profile net.onnx --layers --seconds 0.2
    harmless out
    harmless err
}

@test "a name of a space or another kind of file, where a study or a job is wanted" {
    local command
    for command in explain report watch "study show" "study trials" "study export --format csv"; do
        # shellcheck disable=SC2086
        refuses 2 "'resnet50' is the name of a space or network, and no study*hwnas search*hwnas profile resnet50" $command resnet50
        # shellcheck disable=SC2086
        [[ $command == watch ]] || refuses 2 "nothing.db: there is no such study" $command nothing.db
    done
    "$HWNAS" export --space mnist_mlp --format onnx --out m.onnx
    job
    refuses 2 "m.onnx: this is not a study of hwnas*hwnas profile" explain m.onnx
    refuses 2 "job.yaml: this is not a study of hwnas*hwnas search JOB.yaml" report job.yaml
    refuses 2 "'nas_bench_201' is the name of a space, and no job*hwnas search --space nas_bench_201" search nas_bench_201
    # A file of that name is one.
    "$HWNAS" search job.yaml --study resnet50 -q
    ends 0 explain resnet50
}

@test "what a newcomer types: help misspelt, 99 for p99, a missing device, one choice, small files" {
    refuses 2 "no command 'hlp'*did you mean 'help'" hlp
    refuses 2 "no command 'hepl'*did you mean 'help'" study hepl
    refuses 2 "needs a device*--device cpu" search --space nas_bench_macro --objectives latency.p50 --trials 1
    refuses 2 "needs a predictor*--accuracy NAME" search --space nas_bench_macro --objectives accuracy --trials 1
    cp "$HWNAS_SRC/tests/data/profile_layers.json" here.json
    ends 0 compare --profile here.json --percentile 50 --json
    mv out by_number
    ends 0 compare --profile here.json --percentile p50 --json
    diff by_number out
    refuses 2 "'0.99' is not measured*p99" compare --profile here.json --percentile 0.99
    printf 'hwnas: 1\nname: a\ninput: {features: [8]}\nchoices: {a: {values: [1, 2]}}\nnetwork:\n  - linear: {out: a}\n' >a.yaml
    ends 0 space check a.yaml
    says out "good; 1 choice in 1 position, 2 encodings"
    job "budget: {trials: 2}"
    "$HWNAS" search job.yaml -q
    ends 0 study list
    grep -qE '^job\.db +nas_bench_macro +2 +0\.0[0-9]*[1-9][0-9]* ' out
}
