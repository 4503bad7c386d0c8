# `hwnas predictor suggest` and `tell`: which networks to train, and taking in what came of it.
load helpers

# fill FILE COMMAND: puts what the command prints for a code into the empty cells of a table.
fill() {
    /usr/bin/python3 - "$1" "$2" <<'END'
import csv, subprocess, sys
path, command = sys.argv[1:]
rows = list(csv.DictReader(open(path)))
for row in rows:
    row["accuracy_pct"] = subprocess.run(["sh", "-c", command, "sh", row["code"]],
                                         capture_output=True, text=True).stdout.strip()
with open(path, "w") as f:
    w = csv.DictWriter(f, list(rows[0]))
    w.writeheader()
    w.writerows(rows)
END
}

@test "networks are written ready to train, and all differ" {
    ends 0 predictor suggest nas_bench_201 -n 6 --out first
    says out "hwnas predictor import first/results.csv"
    [ "$(ls first | wc -l)" = 19 ]
    [ "$(head -n 1 first/results.csv)" = space,code,network,macs_count,params_count,accuracy_pct ]
    local i digests=''
    for i in 1 2 3 4 5 6; do
        ends 0 space show first/net00$i.yaml --json
        digests+="$(json out "d['digest']")"$'\n'
        /usr/bin/python3 -m py_compile first/net00$i.py
        ends 0 export --space first/net00$i.yaml --format onnx --out again.onnx
        [ "$(stat -c %s again.onnx)" = "$(stat -c %s first/net00$i.onnx)" ]
    done
    [ "$(printf %s "$digests" | sort -u | wc -l)" = 6 ]
    refuses 2 "first: there is such a file already" predictor suggest nas_bench_201 -n 6 --out first
}

@test "networks that are suggested are told to programs" {
    ends 0 predictor suggest nas_bench_201 -n 6 --json
    is out "(d['format'], d['space'], d['target'], d['folder']) == ('hwnas.suggestion', 'nas_bench_201', 'accuracy_pct', None)"
    json out "'\\n'.join(d['networks'])" >codes
    ends 0 predictor suggest nas_bench_201 -n 6
    tail -n +2 out | cut -d, -f2 | tr -d '"' | diff codes -
    ends 0 predictor suggest nas_bench_201 -n 2 --out first --json
    is out "d['folder'] == 'first' and len(d['networks']) == 2"
}

@test "the same seed gives the same networks, another seed others" {
    ends 0 predictor suggest nas_bench_macro -n 10
    cp out one
    ends 0 predictor suggest nas_bench_macro -n 10
    cmp one out
    ends 0 predictor suggest nas_bench_macro -n 10 --seed 1
    not cmp -s one out
}

@test "what has a result is not suggested again" {
    ends 0 predictor suggest nas_bench_macro -n 12
    cp out first.csv
    ends 0 predictor suggest nas_bench_macro -n 12 --data first.csv
    /usr/bin/python3 -c 'import csv
a, b = ({row["code"] for row in csv.DictReader(open(f))} for f in ("first.csv", "out"))
assert len(a) == len(b) == 12 and not a & b'
}

@test "a proxy may spread them too" {
    ends 0 predictor suggest nas_bench_201 -n 3 --pool 12
    cp out plain
    ends 0 predictor suggest nas_bench_201 -n 3 --pool 12 --proxy synflow
    [ "$(wc -l <out)" = 4 ]
    refuses 2 "did you mean proxy:synflow" predictor suggest nas_bench_201 -n 3 --proxy synflo
}

@test "of a small space at most all of its networks" {
    cat >small.yaml <<'END'
hwnas: 1
name: small
input: {features: [4]}
choices:
  width: {values: [2, 3, 4]}
network:
  - linear: {out: width}
END
    ends 0 predictor suggest small.yaml -n 3
    [ "$(tail -n +2 out | sort -u | wc -l)" = 3 ]
    refuses 2 "only 3 different networks" predictor suggest small.yaml -n 4
    refuses 2 "-n must be" predictor suggest small.yaml -n 0
}

@test "the whole round: suggest, train, tell, fit" {
    ends 0 predictor suggest nas_bench_macro -n 20 --out first
    fill first/results.csv "grep \"^\$1,\" '$TABLE' | cut -d, -f9"
    ends 0 predictor import first/results.csv
    says out "nas_bench_macro.results.csv: 20 results taken, 0 known before, 0 not filled in; it has 20 networks now"
    ends 0 predictor import first/results.csv --json
    is out "d['taken'] == 0 and d['known'] == 20 and d['networks'] == 20"
    ends 0 predictor suggest nas_bench_macro -n 20 --data nas_bench_macro.results.csv --out second
    fill second/results.csv "grep \"^\$1,\" '$TABLE' | cut -d, -f9"
    ends 0 predictor import second/results.csv
    says out "it has 40 networks now"
    ends 0 predictor fit nas_bench_macro nas_bench_macro.results.csv --target accuracy_pct --out p.json
    ends 0 predictor eval p.json nas_bench_macro "$TABLE" --target acc_top1_pct_mean --json
    is out "d['kendall_tau'] > 0.7"
}

@test "rows without a result wait, and a space of one's own is found from elsewhere" {
    sed 's/^name: .*/name: mine/' "$HWNAS_SRC/search_spaces/nas_bench_macro.yaml" >mine.yaml
    ends 0 predictor suggest mine.yaml -n 3 --out first --target top1_pct
    sed -i '2s/$/91.5/' first/results.csv
    mkdir elsewhere
    cd elsewhere
    ends 0 predictor import ../first/results.csv --target top1_pct --into all.csv
    says out "1 results taken, 0 known before, 2 not filled in"
    refuses 2 "there is no column 'accuracy_pct'" predictor import ../first/results.csv --into all.csv
}

# wrong PATTERN LINE...: a table is refused with its line, and nothing is taken.
wrong() {
    local pattern=$1
    shift
    printf '%s\n' space,code,accuracy_pct "$@" >bad.csv
    refuses 2 "$pattern" predictor import bad.csv --into all.csv
    [ "$(wc -l <all.csv)" = 2 ]
}

@test "wrong results are refused as a whole" {
    printf '%s\n' space,code,accuracy_pct nas_bench_201,421211,90 >good.csv
    ends 0 predictor import good.csv --into all.csv
    wrong "bad.csv:3*good" nas_bench_201,333333,92 nas_bench_201,421211,good
    wrong "bad.csv:3" nas_bench_201,333333,92 nas_bench_201,444444,nan
    wrong "bad.csv:2*not a percentage" nas_bench_201,333333,192
    wrong "bad.csv:3" nas_bench_201,333333,92 nas_bench_201,777777,80
    wrong "bad.csv:2: 421211 has the result 91 here and 90 in all.csv:2" nas_bench_201,421211,91
    wrong "bad.csv:3: 333333 has the result 93 here and 92 in bad.csv:2" nas_bench_201,333333,92 nas_bench_201,333333,93
    wrong "bad.csv:3: this row is of another space" nas_bench_201,333333,92 nas_bench_macro,22222222,93
    wrong "no 'moon_space'" moon_space,333333,92
    printf '%s\n' code,accuracy_pct 333333,92 >bad.csv
    refuses 2 "add --space" predictor import bad.csv --into all.csv
    ends 0 predictor import bad.csv --into all.csv --space nas_bench_201
    refuses 2 "not a file of results" predictor import good.csv --into bad.csv
    refuses 2 "nothing.csv" predictor import nothing.csv
}

@test "a fraction that was filled in is not taken for a percentage" {
    printf '%s\n' space,code,accuracy_pct,sd nas_bench_201,222222,0.5,0.01 nas_bench_201,333333,0.95, >some.csv
    refuses 2 "some.csv:2: this result is 0.5: is this a fraction, or less than 1 %*--printed fraction" \
        predictor import some.csv --into all.csv
    [ ! -e all.csv ]
    refuses 2 "percent or fraction, not 'share'" predictor import some.csv --into all.csv --printed share
    ends 0 predictor import some.csv --into all.csv --printed fraction
    says all.csv '"222222",'
    says all.csv ',50,1,'
    says all.csv ',95,,'
    # The same results again, and one that says what they all are.
    echo nas_bench_201,421211,97, >>some.csv
    ends 0 predictor import some.csv --into other.csv
    says other.csv ',0.95,,'
    says other.csv ',97,,'
    refuses 2 "this result is 97, which is not a fraction" predictor import some.csv --into new.csv --printed fraction
    # What an earlier import took is asked about too.
    head -n 3 some.csv >low.csv
    ends 0 predictor import low.csv --into low.results.csv --printed percent
    refuses 2 "no result in 'accuracy_pct' is above 0.95 %: are these fractions" predictor import some.csv --into low.results.csv
    ends 0 predictor import some.csv --into low.results.csv --printed percent
}

@test "a directory that a killed process left half made is cleared away by the next" {
    # If all was written before it is killed, it is begun anew.
    local hwnas begun=0
    until [ "$begun" != 0 ] && [ ! -e first ]; do
        rm -rf first
        [ "$((++begun))" -le 50 ]
        "$HWNAS" predictor suggest nas_bench_201 -n 200 --pool 400 --out first >/dev/null 2>&1 &
        hwnas=$!
        until ls ./*/net001.onnx >/dev/null 2>&1; do
            kill -0 "$hwnas" 2>/dev/null || [ -e first ]
            sleep 0.005
        done
        kill -9 "$hwnas" 2>/dev/null || true
        wait "$hwnas" || true
    done
    [ "$(ls | wc -l)" = 1 ]
    ends 0 predictor suggest nas_bench_201 -n 2 --out first
    rm -f out err
    [ "$(ls)" = first ]
    [ "$(stat -c %a first)" = "$(mkdir other && stat -c %a other)" ]
    # It is one's own that is in use, or has something else in it, that stays.
    mkdir hwnas-scratch.theirs
    touch hwnas-scratch.theirs/precious
    ends 0 predictor suggest nas_bench_201 -n 2 --out second
    [ -e hwnas-scratch.theirs/precious ]
    # What fails leaves nothing.
    refuses 1 "nowhere*No such file or directory" predictor suggest nas_bench_201 -n 2 --out nowhere/third
}
