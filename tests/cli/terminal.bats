# The program on a terminal: tables and lines as wide as it is; and how much it says besides: -q, -v, --log.

load helpers

# on COLUMNS ARGUMENT...: runs the program on a terminal; what it shows is in the file out.
on() {
    /usr/bin/python3 "$HWNAS_SRC/tests/peers/on_terminal.py" "$1" "$HWNAS" "${@:2}" >out
}

# narrow FILE COLUMNS: no line is longer.
narrow() {
    [ "$(wc -L <"$1")" -le "$2" ] && return
    echo "more than $2 columns:"
    grep -E ".{$(($2 + 1))}" "$1"
    return 1
}

# words FILE: what it says, one word a line.
words() {
    tr -s ' \n' '\n\n' <"$1" | sort
}

@test "tables and lines are as wide as the terminal, and say the same" {
    cp "$TABLE" t.csv # a path would not fit
    job "accuracy: table:t.csv#acc_top1_pct_mean" "device: replay:t.csv#macs_count" \
        "constraints: macs <= 40 M and params <= 5 M"
    "$HWNAS" search job.yaml >plain 2>err
    "$HWNAS" study show job.db >plain
    [ "$(wc -L <plain)" -gt 65 ]
    for columns in 65 50 40; do
        on $columns study show job.db
        grep -v "^ *replay:/" out | sed "s/^device .*//" >lines # no blank in a path
        narrow lines $columns
        diff <(words plain) <(words out)
    done
    # Below the heading of its column, line by line.
    on 50 study show job.db
    grep -qE '^  trial  accuracy %  MMACs  M params$' out
    grep -qE '^ {9}peak memory MiB  architecture$' out
    on 200 study show job.db
    diff plain out
    on 70 study trials job.db
    narrow out 70
    # What programs read is not cut.
    on 40 study show job.db --json
    "$HWNAS" study show job.db --json | diff - out
}

@test "the line of progress fits the terminal, so it does not scroll" {
    job "budget: {trials: 400}"
    on 40 search job.yaml --overwrite
    /usr/bin/python3 - out <<'END'
import re, sys
shown = [s.split("\n")[0] for s in open(sys.argv[1], newline="").read().split("\r\x1b[K")[1:]]
lines = [s for s in shown if re.match(r"\d+/400 trials", s)]
assert lines and all(len(s) < 40 for s in lines), lines
END
}

@test "a terminal of 75 columns has room for the value of each objective" {
    job "budget: {trials: 400}"
    on 75 search job.yaml --overwrite
    /usr/bin/python3 - out <<'END'
import re, sys
shown = [s.split("\n")[0] for s in open(sys.argv[1], newline="").read().split("\r\x1b[K")[1:]]
lines = [s for s in shown if re.match(r"\d+/400 trials", s) and "none feasible" not in s]
assert lines and all(len(s) < 75 and re.search(r", best (accuracy )?[0-9.]+ %, (macs )?[0-9.]+ M$", s) for s in lines), lines
END
}

@test "-q is silent, -v tells each trial, --log keeps all of it" {
    job
    ends 0 search job.yaml -q
    [ ! -s err ]
    ends 0 search job.yaml --overwrite -v --log log.txt
    [ "$(grep -cE '^hwnas: info: trial [0-9]+, [0-2]{8}: macs .*, accuracy [0-9.]+ % \(replayed\); took [0-9.]+ s$' err)" -eq 30 ]
    [ "$(grep -cE '^20[0-9-]+T[0-9:]+Z info: trial [0-9]+, ' log.txt)" -eq 30 ]
    ends 0 search job.yaml --overwrite --log log.txt
    [ "$(grep -c ' info: trial ' log.txt)" -eq 60 ]
    not grep -q 'info' err
    refuses 1 "cannot write the log /none/x: No such file" version --log /none/x
    ends 0 version --quiet
    refuses 2 "no command '-v'*options follow the command" -v search job.yaml
}

@test "-v -v shows what a program that trains prints" {
    printf '#!/bin/sh\necho epoch 1 of 2 >&2\nprintf "half\\rdone\\n"\necho 70\n' >train
    chmod +x train
    "$HWNAS" space sample nas_bench_201 -n 1 --csv >data.csv 2>/dev/null || printf 'code\n222222\n' >data.csv
    ends 0 predictor score command:./train nas_bench_201 data.csv -v -v
    says err 'hwnas: debug: ./train: epoch 1 of 2'
    says err 'hwnas: debug: ./train: half'
    says err 'hwnas: debug: ./train: done'
    rm train.nas_bench_201.csv
    ends 0 predictor score command:./train nas_bench_201 data.csv
    not grep -q epoch err
}

@test "--threads all is understood wherever threads are" {
    job "accuracy: table:$TABLE#acc_top1_pct_mean" "device: 'null'" "objectives: [accuracy, latency.p50]" "threads: all"
    ends 0 search job.yaml --trials 2 --seconds 0.01 -q
    "$HWNAS" study show job.db --json >show
    is show "d['job']['threads'] == $(nproc)"
    ends 0 search job.yaml --trials 2 --seconds 0.01 -q --overwrite --threads all
    refuses 2 "threads must be a whole number, not 'many'" search job.yaml --threads many
    ends 0 calibrate nas_bench_macro --device null --minutes 0.005 --threads all
    ends 0 export --space mnist_mlp --format onnx --out net.onnx
    head -c $((784 * 4)) /dev/zero >x
    ends 0 run net.onnx --threads all --input x --output y
    refuses 2 "--batch must be a whole number" run net.onnx --batch all --input x --output y
}
