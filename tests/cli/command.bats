# The predictor `command:PROGRAM`: a program of the user's that trains a network and prints its accuracy.
load helpers

setup() {
    mkdir "$BATS_TEST_TMPDIR/work" "$BATS_TEST_TMPDIR/tmp"
    cd "$BATS_TEST_TMPDIR/work" || exit
    export TMPDIR=$BATS_TEST_TMPDIR/tmp
    printf 'arch,acc\n421211,90\n334131,93\n000000,10\n' >data.csv
}

# program LINE...: writes the shell script ./train.
program() {
    printf '%s\n' '#!/bin/sh' "$@" >train
    chmod +x train
}

# fails CODE PATTERN COMMAND: a command's failure is told, and nothing is kept.
fails() {
    refuses "$1" "$2" predictor score "command:$3" nas_bench_201 data.csv
    [ ! -e train.nas_bench_201.csv ]
    [ -z "$(ls "$TMPDIR")" ]
}

# gone PID: the process ends now, though perhaps nobody asks how.
gone() {
    local try
    for try in {1..1200}; do
        [ -e "/proc/$1" ] || return 0
        ! grep -qs '^State:.Z' "/proc/$1/status" || return 0
        sleep 0.05
    done
    echo "process $1 lives on after $try looks"
    return 1
}

@test "a program is given the network as ONNX, PyTorch and YAML, and its last line counts" {
    program 'set -e' 'cmp "$1" "$HWNAS_ONNX"; cmp "$2" "$HWNAS_PYTORCH"' \
        '/usr/bin/python3 -m py_compile "$2" && rm -r "$(dirname "$2")/__pycache__"' \
        '"$HWNAS" space show "$HWNAS_YAML" --json | grep -q "\"digest\": \"$HWNAS_DIGEST\""' \
        '[ "$HWNAS_SPACE" ]' 'echo training' 'case $HWNAS_CODE in 4*) echo 90.5 0.25;; *) echo 50;; esac; echo'
    ends 0 predictor score command:./train nas_bench_201 data.csv
    cat >want <<END
code,mean,sd
"421211",90.5,0.25
"334131",50,
"000000",50,
END
    cmp out want
    [ -z "$(ls "$TMPDIR")" ]
}

@test "a network is trained once, whatever its encoding; the results are a table to fit on" {
    program 'echo "$HWNAS_CODE" >>calls' 'echo 70'
    # Edge 0->1 is none, so what edges from node 1 do does not matter.
    printf 'arch\n000300\n002300\n000300\n' >data.csv
    ends 0 predictor score command:./train nas_bench_201 data.csv
    [ "$(wc -l <calls)" -le 2 ]
    cp calls before
    ends 0 predictor score command:./train nas_bench_201 data.csv
    cmp calls before
    says train.nas_bench_201.csv 'code,digest,accuracy_pct,sd,seconds'
    ends 0 predictor eval table:train.nas_bench_201.csv#accuracy_pct nas_bench_201 train.nas_bench_201.csv
    # A writer that died in the middle of a row: what is written next is whole.
    printf '"1111' >>train.nas_bench_201.csv
    ends 0 predictor score command:./train nas_bench_201 data.csv
    cmp calls before
    printf 'arch\n222222\n' >data.csv
    ends 0 predictor score command:./train nas_bench_201 data.csv
    not grep -q 1111 train.nas_bench_201.csv
    grep -q '^"222222",' train.nas_bench_201.csv
}

@test "a file that is not one of results is left as it is" {
    program 'echo x >>calls' 'echo 70'
    printf 'my notes\non trainings, and more' >notes.txt
    cp notes.txt before
    refuses 2 "notes.txt:*not a file of results" predictor score 'command:./train#cache=notes.txt' nas_bench_201 data.csv
    cmp notes.txt before
    printf 'arch,acc\n' >notes.txt
    cp notes.txt before
    refuses 2 "notes.txt:1: *not a file of results" predictor score 'command:./train#cache=notes.txt' nas_bench_201 data.csv
    cmp notes.txt before
    [ ! -e calls ]
}

@test "a last row without its newline counts, and looking does not change the file" {
    program 'echo x >>calls' 'echo 70'
    ends 0 predictor score command:./train nas_bench_201 data.csv
    truncate -s -1 train.nas_bench_201.csv
    cp train.nas_bench_201.csv before
    cp calls calls_before
    ends 0 predictor score command:./train nas_bench_201 data.csv
    ends 0 search --space nas_bench_201 --accuracy command:./train --objectives accuracy,macs --trials 5 --dry-run
    cmp train.nas_bench_201.csv before
    cmp calls calls_before
    printf 'arch\n222222\n' >data.csv
    ends 0 predictor score command:./train nas_bench_201 data.csv
    [ "$(wc -l <train.nas_bench_201.csv)" = 5 ]
}

@test "several run at a time, words are arguments, and the file and the column have names" {
    program '[ "$1" = --epochs ] && [ "$2" = 3 ] && [ -s "$3" ]' 'echo begin >>log' \
        'while [ "$(wc -l <log)" -lt 3 ]; do sleep 0.02; done # for the others' 'echo 1.5'
    ends 0 predictor score 'command:./train --epochs 3#jobs=3,cache=r.csv,column=loss' nas_bench_201 data.csv
    says r.csv 'code,digest,loss,sd,seconds'
    refuses 2 "not a file of results" predictor score 'command:./train#cache=r.csv' nas_bench_201 data.csv
    refuses 2 "not a file of results" predictor score 'command:./train#cache=data.csv' nas_bench_201 data.csv
}

@test "nonsense is refused" {
    program 'echo hello'
    fails 2 "is not an accuracy: 'hello'" ./train
    program 'echo nan'
    fails 2 "is not an accuracy: 'nan'" ./train
    program 'echo 0x1F'
    fails 2 "is not an accuracy" ./train
    program 'echo 1 2 3'
    fails 2 "is not an accuracy" ./train
    program 'echo 90 -1'
    fails 2 "is not an accuracy" ./train
    program ':'
    fails 2 "printed nothing" ./train
}

@test "a comma is no decimal point, and is not taken for what stands between two numbers" {
    program 'echo 93,41'
    fails 2 "is not an accuracy: '93,41'*a decimal point is '.'" ./train
    program 'echo 93,41 %'
    fails 2 "a decimal point is '.'" ./train
    program 'echo 93,41 0,2'
    fails 2 "a decimal point is '.'" ./train
    program 'echo 93.41, 0.2'
    ends 0 predictor score command:./train nas_bench_201 data.csv
    says out '"000000",93.41,0.2'
}

@test "a fraction is not taken for a percentage" {
    program 'case $HWNAS_CODE in 4*) echo 0.95 0.01;; *) echo 0.1;; esac'
    fails 2 "printed 0.95: is this a fraction, or less than 1 %" ./train
    says err "printed=percent"
    ends 0 predictor score 'command:./train#printed=fraction' nas_bench_201 data.csv
    says out '"421211",95,1'
    says train.nas_bench_201.csv ',95,1,'
    # Once a result is above 1 the file tells that the program prints percentages.
    printf 'arch\n222222\n' >data.csv
    program 'echo 0.5'
    ends 0 predictor score command:./train nas_bench_201 data.csv
    says out '"222222",0.5,'
    rm train.nas_bench_201.csv
    program 'echo 0.5 %'
    ends 0 predictor score command:./train nas_bench_201 data.csv
    says out '"222222",0.5,'
    # A file of values up to 1 is asked about too.
    program 'echo 70'
    refuses 2 "no result in 'accuracy_pct' is above 0.5 %: are these fractions" predictor score command:./train nas_bench_201 data.csv
    ends 0 predictor score 'command:./train#printed=percent' nas_bench_201 data.csv
    rm train.nas_bench_201.csv
    fails 2 "printed 70, which is not a fraction" './train#printed=fraction'
    program 'echo 700'
    fails 2 "printed 700, which is not a percentage" ./train
    fails 2 "printed 700, which is not a percentage" './train#printed=percent'
    fails 2 "percent or fraction" './train#printed=share'
    ends 0 predictor score 'command:./train#column=loss' nas_bench_201 data.csv
}

@test "a program that fails is tried again, and its last words are told" {
    program 'echo x >>calls' 'echo "no such GPU" >&2' 'exit 3'
    fails 1 "ended with status 3: no such GPU" './train#retries=2'
    [ "$(wc -l <calls)" = 3 ]
    program '[ -e again ] && echo 5 && exit' 'touch again' 'exit 1'
    ends 0 predictor score command:./train nas_bench_201 data.csv
    program 'kill -SEGV $$'
    rm train.nas_bench_201.csv
    fails 1 "died of SIGSEGV" './train#retries=0'
}

@test "a program that never ends is killed, with all that it started" {
    local seconds
    program 'trap "" TERM' 'sleep 1000 & echo $! >child' 'echo $$ >parent' 'sleep 1000; sleep 1000'
    for seconds in 0.5 2 8 32; do # on a slow machine it takes longer to begin
        fails 1 "did not end within $seconds s" "./train#timeout=$seconds"
        [ ! -s parent ] || break
    done
    gone "$(<child)"
    gone "$(<parent)"
}

@test "a child in a session of its own ends too" {
    local seconds
    program 'setsid sh -c "trap \"\" TERM; echo \$\$ >child; sleep 1000; sleep 1000" &' \
        'while [ ! -s child ]; do sleep 0.02; done' 'sleep 1000'
    for seconds in 1 4 16 64; do
        fails 1 "did not end within $seconds s" "./train#timeout=$seconds"
        [ ! -s child ] || break
    done
    gone "$(<child)"
    rm child
    program 'setsid sh -c "echo \$\$ >child; exec sleep 1000" &' \
        'while [ ! -s child ]; do sleep 0.02; done' 'echo 60'
    ends 0 predictor score command:./train nas_bench_201 data.csv
    gone "$(<child)"
}

@test "what was killed leaves no training behind, and no directory for the next" {
    program 'echo $$ >parent' 'sleep 1000 & echo $! >child' 'wait'
    "$HWNAS" predictor score command:./train nas_bench_201 data.csv >out 2>err &
    local hwnas=$!
    while [ ! -s child ]; do sleep 0.05; done
    kill -9 "$hwnas"
    wait "$hwnas" || true
    gone "$(<parent)"
    gone "$(<child)"
    mkdir "$TMPDIR/hwnas-scratch.mine" && touch "$TMPDIR/hwnas-scratch.mine/weights.pt"
    program 'mkdir "${1%/*}/__pycache__" && touch "${1%/*}/__pycache__/net.cpython-311.pyc"' 'echo 60'
    ends 0 predictor score command:./train nas_bench_201 data.csv
    [ "$(ls "$TMPDIR")" = hwnas-scratch.mine ]
    [ -e "$TMPDIR/hwnas-scratch.mine/weights.pt" ]
}

@test "processes that share a file of results train no network twice" {
    program 'echo "$HWNAS_CODE" >>calls' 'sleep 0.1' 'echo 60'
    printf 'arch\n421211\n334131\n000000\n222222\n323232\n131313\n' >data.csv
    local hwnas=() p
    for p in 1 2 3; do
        "$HWNAS" predictor score 'command:./train#jobs=2' nas_bench_201 data.csv >"out$p" 2>"err$p" &
        hwnas+=($!)
    done
    for p in "${hwnas[@]}"; do wait "$p"; done
    [ "$(wc -l <calls)" = 6 ]
    [ "$(wc -l <train.nas_bench_201.csv)" = 7 ]
    cmp out1 out2
    cmp out1 out3
    [ ! -e train.nas_bench_201.csv-lock ]
}

@test "a claim ends with its process" {
    program 'echo $$ >>pids' 'exec sleep 1000'
    "$HWNAS" predictor score command:./train nas_bench_201 data.csv >out 2>err &
    local first=$!
    while [ ! -s pids ]; do sleep 0.05; done
    printf '#!/bin/sh\necho 60\n' >new && chmod +x new && mv new train
    "$HWNAS" predictor score command:./train nas_bench_201 data.csv >out2 2>err2 &
    local second=$!
    sleep 0.3
    [ ! -s out2 ] # it waits for the first
    kill -9 "$first"
    wait "$second"
    [ "$(wc -l <out2)" = 4 ]
}

@test "a program that prints without end is killed" {
    program 'yes'
    fails 1 "wrote more than 64 MiB" ./train
    program 'yes >&2'
    fails 1 "wrote more than 64 MiB" ./train
}

@test "a child that stays behind does not hold up the answer" {
    program 'sleep 1000 & echo $! >child' 'echo 60'
    ends 0 predictor score command:./train nas_bench_201 data.csv
    gone "$(<child)"
}

@test "results before a failure are kept" {
    program 'case $HWNAS_CODE in 0*) exit 1;; esac' 'echo 60'
    refuses 1 "000000: './train' ended with status 1" predictor score command:./train nas_bench_201 data.csv
    [ "$(wc -l <train.nas_bench_201.csv)" = 3 ]
}

@test "an interrupted program ends" {
    program 'echo $$ >pid; sleep 1000'
    "$HWNAS" predictor score command:./train nas_bench_201 data.csv >out 2>err &
    local hwnas=$! got=0
    while [ ! -s pid ]; do sleep 0.05; done
    kill "$hwnas"
    wait "$hwnas" || got=$?
    [ "$got" = 130 ]
    says err interrupted
    gone "$(<pid)"
}

@test "a command that cannot be is told before anything runs" {
    fails 2 "there is no such program" ./nothing
    fails 2 "there is no such program" nothing-in-the-path
    touch plain
    fails 2 "may not be executed" ./plain
    fails 2 "names no program" ''
    program 'echo 1'
    fails 2 "did you mean 'timeout'" './train#timeot=3'
    fails 2 "must be a whole number" './train#jobs=1.5'
    fails 2 "must be a number" './train#timeout=soon'
    fails 2 "is not an option" './train#3'
}

# Networks of nas_bench_201 whose end follows from their code, and whose curves are near each other: half of what is
# still to be gained comes with each of eight epochs.
curves() {
    cat >train <<'END'
#!/bin/sh
echo "$HWNAS_CODE" >>calls
awk -v code="$HWNAS_CODE" 'BEGIN {
    for (i = 1; i <= 6; i++) { d = substr(code, i, 1); end += d; wobble = (wobble * 5 + d + i) % 17 }
    end = 50 + 2 * end + wobble / 17
    for (e = 1; e <= 8; e++)
        printf "epoch %d of 8: validation %.3f %%\n", e, end - (20 + wobble / 4) / 2 ^ e + (e < 8) * ((e * 7 + wobble) % 5 - 2) / 10
    printf "%.3f %%\n", end }'
END
    chmod +x train
}

@test "a training that hardly can win is ended early, kept as a prediction, and never trained again" {
    curves
    local how=(search --space nas_bench_201 --objectives accuracy,macs --strategy random --seed 1 --study s.db --json)
    ends 0 "${how[@]}" --trials 30 --accuracy command:./train#give-up=0.02
    ends 0 "${how[@]}" --trials 40 --accuracy command:./train#give-up=0.02 --resume
    is out 'd["finished"] == 40 and d["ended_early"] > 10 and all(t["objectives"]["accuracy"]["source"] == "trained" for t in d["front"])'
    ends 0 study show s.db
    says out '*trainings   * ended early, as their curves told enough'
    ends 0 study trials s.db --json
    mv out trials
    # Whether such a training keeps a limit is not known.
    ends 0 study trials s.db --constraints 'accuracy >= 99'
    [ "$(grep -c 'stopped early' out)" = "$(grep -o predicted-curve trials | wc -l)" ]
    cat >look.py <<'END'
import csv, json
def truth(code):
    wobble = 0
    for i, d in enumerate(map(int, code)):
        wobble = (wobble * 5 + d + i + 1) % 17
    return 50 + 2 * sum(map(int, code)) + wobble / 17
trials = json.load(open("trials"))["trials"]
ended = [t for t in trials if t["objectives"]["accuracy"]["source"] == "predicted-curve"]
whole = {row["digest"] for row in csv.DictReader(open("train.nas_bench_201.csv"))}
curves = {row["digest"]: row for row in csv.DictReader(open("train.nas_bench_201.curves.csv"))}
assert len(ended) > 10 and not any(t["front"] or t["digest"] in whole for t in ended)
for t in ended:
    told, epochs = t["objectives"]["accuracy"], t["measurement"]["accuracy_epochs"]
    assert 0 < epochs["run"] < epochs["there"] == 8, t
    assert len(curves[t["digest"]]["curve"].split()) == epochs["run"]
    assert abs(told["value"] - truth(t["arch"])) < 8 * (told["high"] - told["value"]), (t, truth(t["arch"]))
    # Somebody is as small, and more accurate.
    assert any(o["objectives"]["macs"]["value"] <= t["objectives"]["macs"]["value"] and
               o["objectives"]["accuracy"]["value"] > told["value"] for o in trials if o["front"]), t
assert len({t["digest"] for t in trials}) == len(curves) == len(open("calls").readlines()), "each once"
END
    /usr/bin/python3 look.py
    # Another study knows them, too: nothing is trained.
    cp calls before
    ends 0 search --space nas_bench_201 --objectives accuracy,macs --strategy random --seed 1 --trials 40 --study t.db --json --accuracy command:./train#give-up=0.02
    cmp calls before
    # A warm start takes over what was ended as it is.
    ends 0 search --space nas_bench_201 --objectives accuracy,macs --strategy random --seed 1 --trials 1 --study w.db --warm-start s.db --json --accuracy command:./train#give-up=0.02
    [ "$(wc -l <calls)" -le "$(($(wc -l <before) + 1))" ]
    # Whether trainings are ended may change in a study.
    ends 0 "${how[@]}" --trials 41 --accuracy command:./train --resume
    # A program of the user's own is not ended unless he says so.
    rm calls train.nas_bench_201.*csv
    ends 0 search --space nas_bench_201 --objectives accuracy,macs --strategy random --seed 1 --trials 40 --study u.db --json --accuracy command:./train
    is out 'd["ended_early"] == 0 and d["feasible"] == 40'
    refuses 2 "'give-up' of a command must be a number from 0 to 0.5" predictor score command:./train#give-up=1 nas_bench_201 data.csv
}

@test "two searches end a training once, and a curve that cannot be kept costs no result" {
    curves
    sed -i 's/^awk/sleep 0.1; awk/' train
    local how=(search --space nas_bench_201 --objectives accuracy,macs --strategy random --seed 1 --accuracy command:./train#give-up=0.02)
    ends 0 "${how[@]}" --trials 15 --study s.db
    "$HWNAS" "${how[@]}" --trials 30 --study t.db >t.out 2>&1 &
    ends 0 "${how[@]}" --trials 30 --study u.db
    wait $!
    [ -z "$(sort calls | uniq -d)" ]
    # Somebody opens the file meanwhile and saves something else.
    rm -f calls train.nas_bench_201.*csv
    sed -i 's/awk -v/[ "$(wc -l <calls)" = 3 ] \&\& echo "no curves" >train.nas_bench_201.curves.csv; awk -v/' train
    ends 0 "${how[@]}" --trials 6 --study v.db
    [ "$(wc -l <calls)" = 6 ]
    [ "$(wc -l <train.nas_bench_201.csv)" -ge 7 ]
    [ "$(cat train.nas_bench_201.curves.csv)" = "no curves" ]
}

# A trainer in the place of train.py: it keeps a checkpoint, the epochs so far, and goes on from there.
stand_in() {
    cat >python <<'END'
#!/bin/sh
# train.py --recipe RECIPE --work FOLDER ...
case "$*" in *--serve*) exit 1 ;; *--check*) echo '{}'; exit ;; esac
at=$5/$HWNAS_DIGEST.pt e=0
mkdir -p "$5"
before=$(cat "$at" 2>/dev/null || echo 0)
# With "hold" a training that is told to end does not, for a while.
[ ! -e hold ] || trap 'trap "" TERM; echo "$at" >held; exec sleep 30' TERM
./train | while read -r line; do
    e=$((e + 1))
    [ $e -le 8 ] || rm -f "$at"
    if [ $e -gt 8 ]; then
        echo "$line"
    elif [ $e -le "$before" ]; then
        echo "was $line"
    else
        echo $e >"$at.part" && mv "$at.part" "$at"
        echo "$HWNAS_CODE $e" >>epochs
        echo "$line"
        [ "$(wc -l <calls)" -le 8 ] || sleep 0.03
    fi
done
END
    chmod +x python
    export HWNAS_TORCH_PYTHON=$PWD/python
    echo 'epochs: 8' >recipe.yaml
}

@test "a search that is killed before a training that it ended has ended: nothing is lost, nothing done twice, no checkpoint stays" {
    local how=(search --space nas_bench_201 --objectives accuracy,macs --strategy random --seed 1 --trials 18 --accuracy train:recipe.yaml --study s.db) results=recipe.nas_bench_201 pid
    curves
    stand_in
    ends 0 "${how[@]}" --json
    is out 'd["finished"] == 18 and d["ended_early"] > 1'
    [ -z "$(find $results.trainings -type f)" ]
    [ "$(wc -l <$results.curves.csv)" = 19 ]
    ends 0 study trials s.db --json
    cp out whole
    mkdir again
    cp train python recipe.yaml again
    cd again
    export HWNAS_TORCH_PYTHON=$PWD/python
    touch hold
    "$HWNAS" "${how[@]}" >out 2>err &
    pid=$!
    until [ -s held ]; do kill -0 $pid || { cat err; return 1; }; sleep 0.02; done
    kill -9 $pid
    wait $pid || true
    rm hold
    # It was ended, and nobody knows yet.
    [ -e "$(<held)" ]
    not grep -q "$(basename "$(<held)" .pt)" $results.curves.csv
    ends 0 "${how[@]}" --resume
    ends 0 study trials s.db --json
    [ "$(json out '[(t["arch"], t["objectives"]["accuracy"]) for t in d["trials"]]')" = "$(json ../whole '[(t["arch"], t["objectives"]["accuracy"]) for t in d["trials"]]')" ]
    cmp <(cut -d, -f1-4 $results.curves.csv) <(cut -d, -f1-4 ../$results.curves.csv)
    [ -z "$(sort epochs | uniq -d)" ]
    [ -z "$(find $results.trainings -type f)" ]
    # Killed between keeping a curve and removing the checkpoint: who asks for the network again removes it.
    cp epochs before
    for digest in $(grep -vFf <(cut -d, -f2 $results.csv) $results.curves.csv | cut -d, -f2); do echo 1 >"$results.trainings/$digest.pt"; done
    [ "$(find $results.trainings -type f | wc -l)" -gt 1 ]
    ends 0 "${how[@]/s.db/t.db}"
    cmp epochs before
    [ -z "$(find $results.trainings -type f)" ]
    [ ! -e $results.csv-lock ]
}

@test "what misses a limit by its latency, measured or estimated, is not trained; all else is, once" {
    printf '%s\n' '#!/bin/sh' 'echo "$HWNAS_CODE" >>calls' 'echo "$HWNAS_CODE" | tr 012 567 | cut -c1-2' >train
    chmod +x train
    local how=(search --space nas_bench_macro --objectives accuracy,latency.p50 --device null --strategy random --seed 1 --seconds 0.05 --json --accuracy command:./train)
    # Nothing is that fast.
    undisturbed "$HWNAS" "${how[@]}" --trials 3 --study s.db --constraints 'latency.p50 <= 0.5 us' >out || [ $? = 3 ]
    is out 'd["finished"] == 3 and d["feasible"] == 0'
    # The table of latencies is trusted from here on.
    undisturbed "$HWNAS" calibrate nas_bench_macro --device null --minutes 0.01
    undisturbed "$HWNAS" "${how[@]}" --trials 10 --study t.db --constraints 'latency.p50 <= 0.5 us' >out || [ $? = 3 ]
    is out 'd["finished"] == 10 and d["feasible"] == 0'
    [ ! -e calls ]
    undisturbed "$HWNAS" "${how[@]}" --trials 10 --study u.db --constraints 'latency.p50 <= 1 s' >out
    is out 'd["finished"] == 10 and d["feasible"] == 10'
    is out 'all(o["source"] == s for t in d["front"] for o, s in ((t["objectives"]["accuracy"], "trained"), (t["objectives"]["latency.p50"], "measured")))'
    [ "$(wc -l <calls)" = 10 ]
    [ -z "$(sort calls | uniq -d)" ]
}

# A trainer that presses Ctrl-C for the user in its sixth training.
@test "what was trained and waits for its latency when a search is ended is told, and measured by the next session" {
    printf '%s\n' '#!/bin/sh' 'echo "$HWNAS_CODE" >>calls' '[ "$(wc -l <calls)" != 6 ] || { kill -INT "$(cat pid)"; sleep 60; }' \
        '[ ! -e deadly ] || { kill -9 "$(cat pid)"; sleep 1; }' \
        'echo "$HWNAS_CODE" | tr 012 567 | cut -c1-2' >train
    chmod +x train
    local got=0 how=(search --space nas_bench_macro --objectives accuracy,latency.p50 --device null --strategy random --seed 1 --seconds 0.05 --accuracy command:./train --study s.db)
    undisturbed "$HWNAS" calibrate nas_bench_macro --device null --minutes 0.01
    undisturbed sh -c 'echo $$ >pid; exec "$@"' - "$HWNAS" "${how[@]}" --trials 10 --json >out || got=$?
    [ "$got" = 130 ]
    # All but what was measured to try the table.
    is out 'd["ended"] == "interrupted" and d["waiting"] == d["waiting_trained"] == d["estimated"] > 0'
    ends 0 study show s.db
    says out "waiting     * that may belong on the front, * trained: 'hwnas search ... --resume' measures"
    ends 0 study show s.db --json
    is out 'd["waiting"] == d["waiting_trained"] > 0'
    # Not of other limits, which other networks meet; nor what a damaged study says.
    ends 0 study show s.db --json --constraints 'macs <= 1e12'
    is out 'd["waiting"] == d["waiting_trained"] == 0'
    cp s.db t.db
    /usr/bin/python3 -c '
import sqlite3
with sqlite3.connect("t.db") as t:
    assert t.execute("UPDATE fact SET value = ? WHERE key = ?", ("{\"networks\": -3, \"trained\": -1}", "waiting")).rowcount == 1'
    ends 0 study show t.db
    not grep -q ^waiting out
    ends 0 study show t.db --json
    is out 'd["waiting"] == d["waiting_trained"] == 0'
    # While a session runs, and after it was killed, nobody knows.
    touch deadly
    got=0
    undisturbed sh -c 'echo $$ >pid; exec "$@"' - "$HWNAS" "${how[@]}" --trials 10 --resume || got=$?
    [ "$got" = 137 ]
    rm deadly
    ends 0 study show s.db
    not grep -q ^waiting out
    # A session without time measures none.
    undisturbed "$HWNAS" "${how[@]}" --trials 10 --minutes 0.0001 --resume >out
    says out "waiting     *: 'hwnas search ... --resume' with more time measures"
    # One without a further trial measures all.
    undisturbed "$HWNAS" "${how[@]}" --trials 6 --json --resume >out
    is out 'd["finished"] == 6 and d["waiting"] == 0 and d["remeasured"] > 0'
    [ -z "$(sort calls | uniq -c | awk '$1 > 1' | sed 1d)" ] # the one that was interrupted or killed alone begins again
    ends 0 study show s.db
    not grep -q ^waiting out
}

# Somebody comes to the machine with each network, and in most cases stays for less than a whole measurement takes: a
# short look sees 1.4 ms of a network that takes 1 ms.
@test "a disturbed look at a rung settles no limit: the network is measured as at the real thing" {
    program 'echo 6$HWNAS_CODE | cut -c1-2'
    local how=(search --space nas_bench_201 --objectives accuracy,latency.p50 --device null --strategy successive-halving --seed 1 --seconds 1 --trials 8
        --estimate off --constraints 'latency.p50 <= 1.2 ms' --accuracy command:./train#rungs=2 --json)
    STILL_NOISE=0,0,1,1 STILL_CLOCK=$PWD/clock undisturbed "$HWNAS" "${how[@]}" --study s.db >out
    is out 'd["front"] and d["failed"] == 0'
    ends 0 study trials s.db --json
    is out 'len([t for t in d["trials"] if t.get("rung") and t["feasible"]]) >= 3'
    # Where the whole measurement was disturbed as well it counts, as it does everywhere.
    is out 'all(t["feasible"] != t["measurement"]["unstable"] and t["measurement"]["command"].find("--seconds 1 ") > 0 for t in d["trials"])'
    # What keeps the limit, or is undisturbed, is looked at once.
    undisturbed "$HWNAS" "${how[@]}" --study t.db >out
    ends 0 study trials t.db --json
    is out 'all(t["feasible"] and ("--seconds 0.125 " in t["measurement"]["command"]) == bool(t.get("rung")) for t in d["trials"])'
    # Both are one measurement: where all are disturbed, three networks are tried several times, and others once.
    STILL_SHARED=1 undisturbed ends 4 "${how[@]/1.2 ms/0.99 ms}" --study u.db
    # A measurement at a rung is evidence as well, be the machine busy or not.
    is out 'd["evidence"] == {"missed": 8, "disturbed": 8, "bad": True}'
    ends 0 study trials u.db --json
    is out '[t["measurement"]["attempts"] > 1 for t in d["trials"]][:4] == [True, True, True, False]'
    undisturbed ends 3 "${how[@]/1.2 ms/0.5 ms}" --study v.db
    is out 'd["evidence"] == {"missed": 8, "disturbed": 0, "bad": False}'
}

@test "what is disturbed is not tried again where that would outlast the search" {
    local how=(search --space mnist_mlp --objectives latency --device null --strategy random --seed 1 --seconds 30 --trials 1 --estimate off --verify none
        --confirm 0 --ties 0)
    STILL_SHARED=1 undisturbed "$HWNAS" "${how[@]}" --minutes 5 --study long.db
    STILL_SHARED=1 undisturbed "$HWNAS" "${how[@]}" --minutes 0.9 --study short.db
    ends 0 study trials long.db --json
    is out '[t["measurement"]["attempts"] for t in d["trials"]] == [3]'
    ends 0 study trials short.db --json
    is out '[t["measurement"]["attempts"] for t in d["trials"]] == [1]'
}
