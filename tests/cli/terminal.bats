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

# live COLUMNS LINES COMMAND...: runs a command on a terminal that another program draws (tmux), until teardown().
live() {
    command -v tmux >/dev/null || skip "needs tmux"
    printf '%q ' "${@:3}" >live.sh
    tmux -S tmux -f /dev/null new-session -d -x "$1" -y "$2" "echo; sh live.sh; cat"
}

teardown() {
    [ ! -S "$BATS_TEST_TMPDIR/work/tmux" ] || tmux -S "$BATS_TEST_TMPDIR/work/tmux" kill-server
}

# screen_has PATTERN: waits until the terminal shows it; what it shows is in the file screen.
screen_has() {
    local n
    for ((n = 0; n < 600; n++)); do
        tmux -S tmux capture-pane -p >screen
        ! grep -qE -- "$1" screen || return 0
        sleep 0.1
    done
    echo "the terminal never showed: $1"
    cat screen
    return 1
}

# slow_job: a search of 30 trials, each of which waits until the file allowed has a number larger than its own.
slow_job() {
    mkdir trained
    cat >train <<'END'
#!/bin/sh
n=$(ls trained | wc -l)
: >"trained/$HWNAS_CODE"
until [ "$n" -lt "$(cat allowed)" ]; do sleep 0.05; done
awk -F, -v code="$HWNAS_CODE" '$1 == code { print $2 }' accuracies
END
    chmod +x train
    /usr/bin/python3 - "$TABLE" >accuracies <<'END'
import csv, sys
for row in csv.DictReader(line for line in open(sys.argv[1]) if not line.startswith("#")):
    print(next(iter(row.values())), row["acc_top1_pct_mean"], sep=",")
END
    job "accuracy: command:./train" "constraints: macs <= 90 M" "strategy: random"
    echo 0 >allowed
}

@test "the front is drawn while a search runs: once, in place, in every size of the terminal" {
    slow_job
    live 80 24 env TERM=screen NO_COLOR= "$HWNAS" search job.yaml
    screen_has 'trials'
    echo 12 >allowed
    screen_has '^12/30 trials, .*, front [0-9]+'
    screen_has '^best     accuracy [0-9.]+ % .*, macs [0-9.]+ M'
    screen_has '^now      training a network'
    screen_has '^ +[0-9.]+ [+] *[.:x]*.*[o*]'
    screen_has ': macs <= 90 M'
    [ "$(grep -c 'accuracy, %' screen)" -eq 1 ]
    [ "$(wc -L <screen)" -lt 80 ]
    tmux -S tmux capture-pane -ep | grep -q "$(printf '\033')\[36mo"
    tmux -S tmux resize-window -x 60 -y 20
    echo 16 >allowed
    screen_has '^16/30 trials'
    [ "$(grep -c 'accuracy, %' screen)" -eq 1 ]
    [ "$(grep -c 'trials, ' screen)" -eq 1 ]
    [ "$(wc -L <screen)" -lt 60 ]
    # Too narrow for a chart.
    tmux -S tmux resize-window -x 36 -y 20
    echo 18 >allowed
    screen_has '^18/30 trials'
    not grep -q 'accuracy, %' screen
    [ "$(grep -c '^best ' screen)" -eq 1 ]
    # Too low for more than a line.
    tmux -S tmux resize-window -x 100 -y 7
    echo 20 >allowed
    screen_has '^20/30 trials, .*, best [0-9]'
    tmux -S tmux resize-window -x 120 -y 40
    echo 22 >allowed
    screen_has '^22/30 trials'
    screen_has '^ +[|] .*[o*]'
    [ "$(grep -c 'accuracy, %' screen)" -eq 1 ]
    echo 99 >allowed
    screen_has '^ended +all trials were made'
    not grep -qE '30 trials,|accuracy, %|^now ' screen
}

@test "NO_COLOR takes the colours, TERM=dumb the picture" {
    slow_job
    live 80 24 env TERM=screen NO_COLOR=1 "$HWNAS" search job.yaml
    echo 10 >allowed
    screen_has '^10/30 trials'
    screen_has '[|] .*[o*]'
    tmux -S tmux capture-pane -ep >coloured
    not grep -q "$(printf '\033')\[" coloured
    echo 99 >allowed
    screen_has '^ended '
    TERM=dumb on 80 search job.yaml --overwrite
    not grep -q "$(printf '\033')" out
}

@test "lines of the log stand above the picture, whole" {
    slow_job
    live 160 24 env TERM=screen "$HWNAS" search job.yaml -v
    echo 10 >allowed
    screen_has '^10/30 trials'
    echo 99 >allowed
    screen_has '^ended '
    tmux -S tmux capture-pane -p -S - >screen
    [ "$(grep -cE '^hwnas: info: trial [0-9]+, [0-2]{8}: .* took [0-9.]+ s$' screen)" -eq 30 ]
    not grep -nE "/30 trials,|accuracy, %" screen
}

@test "nothing is erased before it is drawn over, and no line scrolls" {
    job "budget: {trials: 60}" "constraints: macs <= 90 M"
    for columns in 38 60 80; do
        TERM=xterm on $columns search job.yaml --overwrite
        /usr/bin/python3 - out $columns <<'END'
import re, sys
text, columns = open(sys.argv[1], newline="").read(), int(sys.argv[2])
live = text[:text.rindex("\x1b[J")] + "\x1b[J"
drawn = [f for f in live.split("\x1b[J") if re.search(r"\d+/60 trials", f)]
assert len(drawn) > 1, text
for frame in drawn:
    lines = re.sub(r"\x1b\[[0-9;]*m", "", frame).split("\n")
    up = re.match(r"(\r(\x1b\[\d+A)?)?", lines[0])
    assert all(line.endswith("\x1b[K") for line in lines), frame
    lines = [line[:-3] for line in lines]
    lines[0] = lines[0][up.end():]
    assert not any("\x1b" in line or len(line) >= columns for line in lines), lines
    assert len(lines) < 24 and any(line.startswith("best") for line in lines), lines
    assert any("accuracy, %" in line for line in lines) == (columns > 40), lines
# Each begins where the one before began.
for before, frame in zip(drawn, drawn[1:]):
    up = re.match(r"\r(?:\x1b\[(\d+)A)?", frame)
    assert int(up[1] or 0) == before.count("\n"), (before, frame)
END
    done
}

@test "study show --chart draws each trial where it is" {
    job "budget: {trials: 150}" "constraints: macs <= 90 M and accuracy >= 91"
    "$HWNAS" search job.yaml -q
    "$HWNAS" study export job.db --format csv >trials.csv
    for columns in 60 80 120; do
        on $columns study show job.db --chart
        cat out
        narrow out $columns
        /usr/bin/python3 - out trials.csv <<'END'
import csv, re, sys
lines = open(sys.argv[1]).read().split("\n")
assert re.match(r"Pareto front: \d+ networks of 150 trials", lines[0])
corner = next(i for i, line in enumerate(lines) if re.match(r" +\+-", line))
left = lines[corner].index("+") + 1
plot = [line.ljust(200)[left:] for line in lines[3:corner]]
# The scales, from two ticks of each axis.
ticks = [(row, float(lines[3 + row][:left - 1])) for row in range(len(plot)) if lines[3 + row][left - 1] == "+"]
(r0, v0), (r1, v1) = ticks[0], ticks[-1]
assert r0 < r1 and v0 > v1
at = [m.start() for m in re.finditer(r"\+", lines[corner][left:])]
words = [float(w) for w in lines[corner + 1].split()]
assert len(at) == len(words) >= 2, lines[corner:]
def x_of(value):
    return at[0] + (value - words[0]) * (at[-1] - at[0]) / (words[-1] - words[0])
def y_of(value):
    return r0 + (value - v0) * (r1 - r0) / (v1 - v0)
def near(row, column, marks):
    return any(plot[r][c] in marks for r in range(max(0, row - 1), min(len(plot), row + 2))
               for c in range(max(0, column - 1), column + 2))
n = 0
for row in csv.DictReader(open(sys.argv[2])):
    x, y = round(x_of(float(row["macs (M)"]))), round(y_of(float(row["accuracy (%)"])))
    if not (0 <= y < len(plot) and 0 <= x < len(lines[corner]) - left):
        continue  # of the outermost 3 %
    n += 1
    mark = "o*" if row["front"] == "1" else ".o*" if row["feasible"] == "1" else "x.o*"
    assert near(y, x, mark), (row, x, y)
assert n > 130, n
# The limits are where they should be, and there is one winner.
limit = round(x_of(90))
assert all(re.search("[:x.o*]", line[limit - 1:limit + 2]) for line in plot), limit
assert sum(":" in line for line in plot) > len(plot) / 2
limit = round(y_of(91))
assert any(line.count("- ") > 5 for line in plot[limit - 1:limit + 2]), limit
assert sum(line.count("*") for line in plot) == 1
legend = " ".join(lines[corner + 2:])
for word in ("macs, M", "* winner", "o front", ". dominated", "x misses a limit", ": macs <= 90 M", "- accuracy >= 91 %"):
    assert word in legend, (word, legend)
END
    done
    # Not on a terminal: 80 columns.
    "$HWNAS" study show job.db --chart >plain
    on 80 study show job.db --chart
    diff plain out
    refuses 2 "--chart and --json exclude each other" study show job.db --chart --json
    job "objectives: accuracy"
    "$HWNAS" search job.yaml -q --study one.db
    "$HWNAS" study show one.db --chart >out
    says out "has no front to draw"
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

@test "devices: says what it measures, and leaves nothing of that behind" {
    on 80 devices cpu --refresh
    grep -q 'cpu, f32, 1 thread: how fast it is at most' out
    [ "$(sed 's/.*\x1b\[J//' out | grep -c 'how fast it is')" -eq 0 ]
}

@test "a profile says on a terminal what it measures, and how many more" {
    on 120 profile mnist_mlp --device null --batch 1,8 --seconds 0.02
    says out "*measuring mnist_mlp, null, batch 1, 1 thread, f32: 1 of up to 2*measuring mnist_mlp, null, batch 8, 1 thread, f32: 2 of up to 2*"
}

@test "a comparison, and a baseline, say on a terminal what they measure, and leave nothing of that behind" {
    on 120 compare mnist_mlp --device null --batch 1,8 --threads 1 --streams 1 --seconds 0.02 --save here.json
    says out "*measuring mnist_mlp, null, batch 1, 1 thread, f32: 1 of up to 2*measuring mnist_mlp, null, batch 8, 1 thread, f32: 2 of up to 2*"
    not grep -q measuring <(sed 's/.*\x1b\[J//' out)
    on 120 compare --baseline here.json --seconds 0.02
    says out "*measuring mnist_mlp, null, batch 1, 1 thread, f32: 1 of 2*measuring mnist_mlp, null, batch 8, 1 thread, f32: 2 of 2*"
    not grep -q measuring <(sed 's/.*\x1b\[J//' out)
}
