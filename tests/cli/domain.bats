#!/usr/bin/env bats
# A search stays among the values that its predictor has learned from (src/study/held.h).
load helpers

setup() { cd "$BATS_TEST_TMPDIR" || exit; }

# A space with a list, a condition and words, and a table of it that has depth 2 and 3 of 2 to 4, no width of
# 24, and both words.
# write_table [FIRST [MORE]]: what stands for a position that does not count, and behind each code
write_table() {
    cat >nets.yaml <<'END'
hwnas: 1
name: nets
input: {image: [3, 8, 8]}
choices:
  depth: {values: [2, 3, 4]}
  width: {each_of: 4, values: [8, 16, 24], when: i < depth}
  act: {values: [wide, narrow]}
network:
  - conv: {out: "width[0] + 3 * width[1] + 7 * width[2] + 11 * width[3] + depth + (act == wide ? 4 : 0)"}
  - flatten
  - linear: {out: 2}
END
    python3 - "${1:-8}" "${2:-}" >nets.csv <<'END'
import itertools, sys
print("arch,top1_pct")
for depth in 2, 3:
    for widths in itertools.product((8, 16), repeat=depth):
        for act in "wide", "narrow":
            code = ".".join(map(str, widths + (int(sys.argv[1]),) * (4 - depth)))
            print(f'"depth={depth},width={code},act={act}{sys.argv[2]}",{50 + depth + sum(widths) / 4 + (act == "wide")}')
END
}

# archs STUDY: the code of each trial.
archs() {
    python3 -c 'import sqlite3, sys
print(*[row[0] for row in sqlite3.connect(sys.argv[1]).execute("SELECT code FROM trial")], sep="\n")' "$1"
}

search() {
    ends 0 search --device null --objectives accuracy,macs --strategy random --estimate off --seconds 0.01 \
        --interval 1 --confirm 0 --ties 0 --json "$@"
}

@test "a fit keeps the values that it has learned from, and a search holds its choices at them" {
    write_table
    ends 0 predictor fit nets.yaml nets.csv --target top1_pct --kind gbdt --out p.json
    grep -q '"domain": {"act":\["wide","narrow"\],"depth":\["2","3"\],"width":\["8","16"\]}' p.json
    grep -qF '| `depth` | 2, 3 | 4 |' p.md
    grep -q '^| macs | [0-9]' p.md
    search --space nets.yaml --accuracy p.json --trials 60 --study held.db
    is out 'd["held"] == {"depth": {"kept": ["2", "3"], "left_out": 1}, "width": {"kept": ["8", "16"], "left_out": 1}}'
    is out 'd["finished"] == 24' # all that there are: 2 x (4 + 8)
    archs held.db >codes
    ! grep -E 'depth=4|24' codes
    grep -q 'depth=3' codes
    search --space nets.yaml --accuracy p.json --trials 200 --study free.db --domain free
    is out 'd["held"] == {} and d["finished"] > 100'
    archs free.db >codes
    grep -q 'depth=4' codes
}

# The first width, which stands for a position that does not count as well, and what 15 digits do not give back.
@test "an unseen first value of a position that counts is held, and fractions are kept" {
    write_table 24 ,part=0.12345678901234567
    sed -i 's/{each_of: 4, values: \[8, 16, 24\]/{each_of: 4, values: [24, 8, 16]/' nets.yaml
    sed -i 's/^  act: .*/&\n  part: {values: [0.12345678901234567, 1]}/; s/ + depth/ + depth + round(8 * part)/' nets.yaml
    ends 0 predictor fit nets.yaml nets.csv --target top1_pct --kind gbdt --out p.json
    search --space nets.yaml --accuracy p.json --trials 60 --study held.db
    is out 'd["held"]["width"] == {"kept": ["8", "16"], "left_out": 1} and d["held"]["part"]["left_out"] == 1'
    is out 'd["finished"] == 24'
}

@test "what is held is told before a search and after it" {
    write_table
    ends 0 predictor fit nets.yaml nets.csv --target top1_pct --kind gbdt --out p.json
    search --space nets.yaml --accuracy p.json --trials 3 --study s.db
    ends 0 study show s.db
    grep -q '^held  *depth at 2, 3: the predictor has not seen its 1 other value$' out
    grep -q 'domain free searches all' out
    ends 0 search --space nets.yaml --accuracy p.json --device null --objectives accuracy,macs --trials 3 --dry-run
    grep -q '^held  *depth at 2, 3' out
    ends 0 search --space nets.yaml --accuracy p.json --device null --objectives accuracy,macs --trials 3 --dry-run \
        --domain free
    ! grep -q '^held' out
    refuses 2 "domain is free or seen, not 'all'" search --space nets.yaml --accuracy p.json --device null \
        --objectives accuracy --trials 3 --domain all
}

@test "a study with one domain is not continued with the other, and lends what fits" {
    write_table
    ends 0 predictor fit nets.yaml nets.csv --target top1_pct --kind gbdt --out p.json
    search --space nets.yaml --accuracy p.json --trials 100 --study free.db --domain free
    refuses 2 'free.db: *domain: this study was made with "free", not the default' search --space nets.yaml --accuracy p.json \
        --device null --objectives accuracy,macs --strategy random --trials 120 --study free.db --resume
    search --space nets.yaml --accuracy p.json --trials 24 --study held.db --warm-start free.db
    is out 'd["warm"] > 0'
    is out "d['warm_outside'] == $(archs free.db | grep -cE 'depth=4|24')"
    archs held.db >codes
    ! grep -E 'depth=4|24' codes
    grep -q 'depth=3' codes
    ends 0 study show held.db
    grep -qE '^ +[0-9]+ of the other study left out: outside what the predictor has learned from$' out
    ends 0 search --space nets.yaml --accuracy p.json --device null --objectives accuracy,macs --trials 24 --dry-run \
        --warm-start free.db
    grep -qE '^ +without [0-9]+ outside what the predictor has learned from$' out
}

@test "the neighbours that an explanation names are among what was searched" {
    write_table
    ends 0 predictor fit nets.yaml nets.csv --target top1_pct --kind gbdt --out p.json
    search --space nets.yaml --accuracy p.json --trials 24 --study held.db
    ends 0 explain held.db
    grep -q ' -> ' out
    not grep -E -e '-> (4|24)' out
    search --space nets.yaml --accuracy p.json --trials 24 --study free.db --domain free
    ends 0 explain free.db
    grep -qE -e '-> (4|24)' out
}

@test "what ships says what it has seen of its table" {
    ends 0 search --space ofa_mobilenet_v3 --accuracy ofa_mobilenet_v3_imagenet --device null \
        --objectives accuracy,macs --trials 3 --dry-run
    grep -q '^held  *r at 224: ' out
    ends 0 search --space gpt --accuracy gpt_s_perplexity --device null --objectives accuracy,macs --trials 3 --dry-run
    grep -q '^held  *embed at 192, 384, 768: ' out
    ends 0 search --space nas_bench_macro --accuracy nas_bench_macro_cifar10 --device null --objectives accuracy,macs \
        --trials 3 --dry-run
    ! grep -q '^held' out
}

@test "predictor show has the domain beside the space, and the ranges of facts" {
    write_table
    ends 0 predictor fit nets.yaml nets.csv --target top1_pct --kind gbdt --out p.json
    ends 0 predictor show p.json nets.yaml
    grep -q '^p.json: gbdt, fitted to 24 rows of nets$' out
    grep -qE '^  depth +2, 3 +4 +[0-9.]+ or more$' out
    grep -qE '^  act +wide, narrow +- +-$' out
    ends 0 predictor show p.json nets.yaml --json
    is out 'd["rows"] == 24 and d["target"] == "top1_pct"'
    is out '[(c["name"], c["seen"], c["unseen"]) for c in d["choices"]][1] == ("width", ["8", "16"], ["24"])'
    # Each fact lies where the rows have it.
    tail -n +2 nets.csv | cut -d'"' -f2 | while read -r code; do
        "$HWNAS" space show nets.yaml --arch "$code" --json | json /dev/stdin 'd["macs"]'
    done | sort -n >macs
    is out "[round(math.exp(f[k])) for f in d['facts'] if f['name'] == 'log macs' for k in ('low', 'high')] \
        == [$(head -1 macs), $(tail -1 macs)]"
    refuses 2 "*'nets'*predictor show PREDICTOR SPACE" predictor show p.json
    refuses 2 "not on the space 'nas_bench_macro'" predictor show p.json nas_bench_macro
    refuses 2 "was not fitted by hwnas" predictor show proxy:zen nas_bench_macro
    sed 's/"fact_ranges": \[\[/"fact_ranges": [[1],[/' p.json >q.json
    refuses 2 "q.json: *ranges" predictor show q.json nets.yaml
    ends 0 predictor show imagenet_any
    grep -q '^imagenet_any: ' out
}

@test "predictor show refuses a record that cannot be" {
    local change word
    cp "$HWNAS_SRC/predictors/imagenet_any.json" p.json
    while read -r word change; do
        /usr/bin/python3 - "$change" <<'END'
import json, sys
d = json.load(open("p.json"))
exec(sys.argv[1])
json.dump(d, open("q.json", "w"))
END
        refuses 2 "q.json: *$word*damaged" predictor show ./q.json
    done <<'END'
rows d["rows"] = -1
rows d["rows"] = 0
rows d["rows"] = "many"
rows d["rows"] = 10**18
rows del d["rows"]
kendall_tau d["cross_validation"]["kendall_tau"] = -5
coverage_90 d["cross_validation"]["coverage_90"] = 1e300
rmse d["cross_validation"]["rmse"] = "x"
ranges d["fact_ranges"][0] = [5, 1]
ranges d["fact_ranges"][1] = "x"
END
}

@test "each number outside the domain is marked" {
    write_table
    ends 0 predictor fit nets.yaml nets.csv --target top1_pct --kind gbdt --out p.json
    search --space nets.yaml --accuracy p.json --trials 60 --study free.db --domain free
    is out "all((t['objectives']['accuracy']['source'] == 'extrapolated') == ('depth=4' in t['arch'] or '24' in t['arch'])
        for t in d['front'])"
    is out "any(t['objectives']['accuracy']['source'] == 'extrapolated' for t in d['front'])"
    ends 0 study show free.db
    says out "+- standard deviation of the prediction; ! outside what was learned"
    grep -qE '[0-9] ! \+- .*(depth=4|24)' out
    grep -qE '^winner .*accuracy [0-9.]+ % ! outside what was learned, macs' out
    ends 0 explain free.db
    grep -qE ' -> 24 .*[0-9] ! \(' out
    says out "! outside what was learned"
    search --space nets.yaml --accuracy p.json --trials 24 --study held.db
    ends 0 study show held.db
    not grep -q '!' out
    printf 'arch\n"depth=4,width=8.8.8.24,act=wide"\n"depth=3,width=8.8.8,act=wide"\n"depth=2,width=24.8,act=wide"\n' >some.csv
    ends 0 predictor score p.json nets.yaml some.csv
    [ "$(head -1 out)" = code,mean,sd,outside ]
    [ "$(cut -d'"' -f3 out | tail -n +2 | cut -d, -f4 | paste -sd/)" = "depth width//width" ]
    # What was looked up is known.
    ends 0 predictor score "table:nets.csv#top1_pct" nets.yaml nets.csv
    [ "$(head -1 out)" = code,mean,sd ]
}

# without FROM COLUMN VALUE: of a third of the rows of a table, those that do not have a value and those that do, in the files
# rest.csv and left.csv.
without() {
    python3 - "$@" <<'END'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))[::3]
for name, wanted in ("rest.csv", False), ("left.csv", True):
    with open(name, "w") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(row for row in rows if (row[sys.argv[2]] == sys.argv[3]) == wanted)
END
}

@test "intervals hold for a value that was left out" {
    local value
    for value in 192 768; do
        without "$HWNAS_SRC/tests/data/gpt_s.csv" embed $value
        ends 0 predictor fit gpt rest.csv --target negative_perplexity --kind gbdt --out p.json
        ends 0 predictor eval p.json gpt left.csv --target negative_perplexity --json
        is out 'd["coverage_90"] >= 0.85'
        # As the model alone has it, they do not.
        sed '/^  "extrapolation": /d' p.json >q.json
        ends 0 predictor eval q.json gpt left.csv --target negative_perplexity --json
        is out 'd["coverage_90"] < 0.85'
        # Inside nothing changes.
        ends 0 predictor score p.json gpt rest.csv
        mv out with
        ends 0 predictor score q.json gpt rest.csv
        cmp with out
    done
}

@test "the farther from what was seen, the wider" {
    without "$HWNAS_SRC/tests/data/gpt_s.csv" embed 0
    ends 0 predictor fit gpt rest.csv --target negative_perplexity --kind gbdt --out p.json
    printf 'embed,layers,heads,ratio,bias\n' >some.csv
    for embed in 192 384 768 512 1024; do
        echo "$embed,10,4.4.4.4.4.4.4.12.12.8,2344233432,1" >>some.csv
    done
    for layers in 22 24; do
        echo "384,$layers,$(printf '4.%.0s' $(seq 2 $layers))4,$(printf '2%.0s' $(seq $layers)),1" >>some.csv
    done
    ends 0 predictor score p.json gpt some.csv
    [ "$(tail -n +2 out | sed 's/.*",//' | cut -d, -f3 | paste -sd/)" = ///embed/embed/layers/layers ]
    mapfile -t sds < <(tail -n +2 out | sed 's/.*",//' | cut -d, -f2)
    python3 -c 'import sys
a, b, c, between, beyond, deep, deeper = map(float, sys.argv[1:])
inside = max(a, b, c)
assert inside < between and inside < beyond and inside < deep < deeper, sys.argv' "${sds[@]}"
    ends 0 predictor show p.json
    grep -qE '^  embed +192, 384, 768 +256, 512, 1024 +up to [0-9.]+$' out
    # What can be said of a choice that was never varied, and of one that has no other value.
    grep -qE '^  heads +4, 8, 12 +16 +[0-9.]+ or more$' out
    grep -qE '^  bias +0, 1 +- +-$' out
}

@test "a damaged domain is refused" {
    write_table
    ends 0 predictor fit nets.yaml nets.csv --target top1_pct --kind gbdt --out p.json
    for domain in 3 '{"deepness":["2"]}' '{"depth":2}' '{"depth":[2]}'; do
        sed "s/\"domain\": {.*},$/\"domain\": $domain,/" p.json >q.json
        refuses 2 "q.json*'domain'" predictor score q.json nets.yaml nets.csv
    done
    # None of a choice's values was seen: nothing is held.
    sed 's/"depth":\["2","3"\]/"depth":[]/' p.json >q.json
    search --space nets.yaml --accuracy q.json --trials 30 --study q.db
    is out '"depth" not in d["held"]'
}

@test "s8 networks are less accurate than the table says, by a prior; of w4 that is doubted" {
    write_table
    "$HWNAS" search --space nets.yaml --accuracy "table:nets.csv#top1_pct" --device null --objectives accuracy,params \
        --dtype '{values: [f32, s8, w4]}' --constraints 'accuracy >= 1' --strategy random --trials 18 --study s.db >text
    "$HWNAS" study show s.db --json >out.json
    "$HWNAS" study export s.db --format csv >trials.csv
    python3 - <<'END'
import csv, math
known = {row["arch"]: float(row["top1_pct"]) for row in csv.DictReader(open("nets.csv"))}
seen = set()
for row in csv.DictReader(open("trials.csv")):
    source = row["accuracy source"]
    if row["status"] != "ok":  # the table has no row of it
        continue
    value = float(row["accuracy (%)"])
    code, dtype = row["architecture"].rsplit(",dtype=", 1)
    seen.add(dtype)
    if dtype == "f32":
        assert source == "replayed" and abs(value - known[code]) < 1e-6, row
    elif dtype == "w4":
        assert source == "predicted-floats" and abs(value - known[code]) < 1e-6, row
    else:
        half = (float(row["accuracy high"]) - float(row["accuracy low"])) / 2
        assert source == "predicted-int8", row
        assert abs(known[code] - value - 0.37) < 1e-3, row       # one convolution
        assert abs(half - 0.677 * math.sqrt(1 + 1 / 25)) < 1e-3, row
assert seen == {"f32", "s8", "w4"}, seen
END
    "$HWNAS" search --space nets.yaml --accuracy "table:nets.csv#top1_pct" --device null --objectives accuracy,params \
        --dtype s8 --byte-loss none --strategy random --trials 4 --study none.db >text
    grep -q '(predicted' text && return 1
    "$HWNAS" study export none.db --format csv | grep -q ',replayed'
}

@test "a space that has only what a predictor has seen holds nothing, and the program says the same of it" {
    for pair in gpt_s:gpt_s_perplexity gpt_m:gpt_m_perplexity ofa_mobilenet_v3_224:ofa_mobilenet_v3_imagenet; do
        "$HWNAS" search --space "${pair%:*}" --accuracy "${pair#*:}" --device null --objectives accuracy,macs \
            --trials 10 --dry-run >out
        grep '^held' out && return 1
        "$HWNAS" predictor show "${pair#*:}" "${pair%:*}" --json >out
        is out 'all(c["unseen"] == [] for c in d["choices"])'
    done
    "$HWNAS" search --space gpt --accuracy gpt_s_perplexity --device null --objectives accuracy,macs --trials 10 \
        --dry-run >out
    grep -q '^held' out
}

@test "a space narrowed to values of which none was learned from is searched, and its estimates are marked" {
    write_table
    ends 0 predictor fit nets.yaml nets.csv --target top1_pct --kind gbdt --out p.json
    printf 'hwnas: 1\nname: wide\nbase: nets.yaml\nchoices:\n  width: {values: [24]}\n' >wide.yaml
    search --space wide.yaml --accuracy p.json --trials 60 --study wide.db
    is out 'd["held"] == {"depth": {"kept": ["2", "3"], "left_out": 1}} and d["finished"] == 4'
    archs wide.db >codes
    grep -q 'depth=3,width=24.24.24' codes
    grep depth=4 codes && return 1
    "$HWNAS" study export wide.db --format csv >all.csv
    [ "$(grep -c extrapolated all.csv)" = 4 ]
}

@test "what to expect of a network that was chosen for its prediction is less than was predicted" {
    write_table
    ends 0 predictor fit nets.yaml nets.csv --target top1_pct --kind gbdt --out p.json
    search --space nets.yaml --accuracy p.json --trials 20 --study s.db
    /usr/bin/python3 - out "$HWNAS_SRC/src/trial/chosen.h" <<'END'
import json, re, sys
found, header = json.load(open(sys.argv[1])), open(sys.argv[2]).read()
part = float(re.search(r"HWNAS_CHOSEN_DEVIATIONS ([0-9.]+)", header)[1])
assert found["winner"] == found["front"][0] and len(found["front"]) > 1
for trial in found["front"]:
    told = trial["objectives"]["accuracy"]
    assert list(trial["expected"]) == ["accuracy"]              # MACs are computed
    less = told["value"] - trial["expected"]["accuracy"]
    assert less > 0 and abs(less - part * (told["high"] - told["low"]) / 2) < 1e-9
END
    ends 0 study show s.db
    says out "expected    of the front on average accuracy * points less than predicted: what is chosen is predicted too well"
    "$HWNAS" search --space nets.yaml --accuracy proxy:log-params --device null --objectives accuracy,macs --trials 10 \
        --study t.db --json --overwrite >out
    is out 'all(t["expected"] == {} for t in d["front"])'
}

@test "nothing is expected of a prediction outside of what was learned, or of another precision" {
    write_table
    ends 0 predictor fit nets.yaml nets.csv --target top1_pct --kind gbdt --out p.json
    local source
    search --space nets.yaml --accuracy p.json --trials 150 --study free.db --domain free
    cp out free.json
    search --space nets.yaml --accuracy p.json --trials 20 --study s8.db --dtype s8
    cp out s8.json
    search --space nets.yaml --accuracy p.json --trials 20 --study w4.db --dtype w4
    cp out w4.json
    for source in free:extrapolated s8:predicted-int8 w4:predicted-floats; do
        is "${source%:*}.json" "any(t['objectives']['accuracy']['source'] == '${source#*:}' for t in d['front'])"
        is "${source%:*}.json" "all((t['expected'] == {}) == (t['objectives']['accuracy']['source'] != 'predicted') for t in d['front'])"
    done
    ends 0 study show s8.db
    not grep '^expected' out
}

@test "a study of a space with a base is not continued, nor begun with, when other values are kept" {
    write_table
    narrow() {
        printf 'hwnas: 1\nname: few\nbase: nets.yaml\nchoices:\n  width: {values: [%s]}\n' "$1" >few.yaml
    }
    local begin=(search --space few.yaml --accuracy proxy:log-params --device null --objectives accuracy,macs
        --strategy random --trials 3)
    space_of() {
        "$HWNAS" study show "$1" --environment --json | python3 -c 'import json, sys
space = json.load(sys.stdin)["space"]; print(space["networks"], space["largest"])'
    }
    narrow 8,24
    ends 0 "${begin[@]}" --study few.db
    narrow 16,24 # as many networks, and the same largest one
    ends 0 "${begin[@]}" --study other.db
    [ "$(space_of few.db)" = "$(space_of other.db)" ]
    ends 2 "${begin[@]}" --study few.db --resume
    says err "the space 'few' has changed since this study was made"
    ends 2 "${begin[@]}" --study third.db --warm-start few.db
    says err "the study is of another space than 'few'"
    narrow 8,24
    ends 0 "${begin[@]}" --study few.db --resume --trials 5
}

@test "positions with lists of their own are held and explained as they were searched" {
    cat >lists.yaml <<'END'
hwnas: 1
name: lists
input: {image: [3, 8, 8]}
choices:
  width: {values: [[8, 16, 24, 32], [16, 24, 32]]}
  last: {values: [4, 5, 6, 7, 8]}
network:
  - conv: {out: "width[0] + last"}
  - conv: {out: "width[1]"}
  - flatten
  - linear: {out: 2}
END
    printf 'hwnas: 1\nname: few\nbase: lists.yaml\nchoices:\n  width: {values: [8, 24, 32]}\n' >few.yaml
    # Of the second position only 16 is in the table, which `few` does not have.
    python3 -c 'print("arch,top1_pct", *(f"\"width={w}.16,last={l}\",{50 + w + l}" for w in (8, 16) for l in range(4, 9)),
        sep="\n")' >lists.csv
    ends 0 predictor fit lists.yaml lists.csv --target top1_pct --kind gbdt --out p.json
    search --space few.yaml --accuracy p.json --trials 20 --study few.db
    is out 'd["held"] == {"width": {"kept": ["8"], "left_out": 2}} and d["finished"] == 10'
    [ "$(archs few.db | cut -d, -f1 | sort -u)" = $'width=8.24\nwidth=8.32' ]
    ends 0 study show few.db
    says out "held        width at 8: the predictor has not seen its 2 other values"
    ends 0 explain few.db --trial 0 --json
    is out 'len([n for n in d["neighbours"] if n["change"].startswith("width[1]: ")]) == 1 and len(d["neighbours"]) == 5'
}

# sized LOW HIGH: a table of NAS-Bench-Macro whose networks have so many million MACs, every 50th (some.csv), and of all with
# fewer (less.csv) and with more (more.csv).
sized() {
    /usr/bin/python3 - "$HWNAS_SRC/tests/data/nas_bench_macro.csv" "$@" <<'END'
import csv, sys
rows, low, high = list(csv.DictReader(open(sys.argv[1]))), float(sys.argv[2]) * 1e6, float(sys.argv[3]) * 1e6
some = [r for r in rows if low <= int(r["macs_count"]) <= high][::50]
ends = min(int(r["macs_count"]) for r in some), max(int(r["macs_count"]) for r in some)
for name, wanted in (("some", some), ("less", [r for r in rows if int(r["macs_count"]) < ends[0]]),
                     ("more", [r for r in rows if int(r["macs_count"]) > ends[1]])):
    with open(name + ".csv", "w") as file:
        print("arch,top1_pct", file=file)
        for r in wanted:
            print(r["arch"], r["acc_top1_pct_mean"], sep=",", file=file)
END
}

@test "a network of another size than was learned from is outside, and its interval holds" {
    sized 30 80
    ends 0 predictor fit nas_bench_macro some.csv --target top1_pct --kind gp --out p.json
    grep -q '^Other sizes are outside as well\. .* macs by [0-9.]* below and by [0-9.]* above %; params by .* %\.$' p.md
    for table in less more; do
        ends 0 predictor score p.json nas_bench_macro $table.csv
        [ "$(grep -c ',macs' out)" = "$(tail -n +2 $table.csv | wc -l)" ]
    done
    ends 0 predictor score p.json nas_bench_macro some.csv
    not grep -E 'macs|params' out
    ends 0 predictor eval p.json nas_bench_macro less.csv --target top1_pct --json
    is out 'd["coverage_90"] >= 0.85'
    # As the model alone has it, it does not; what was fitted before knows the ranges, but not the errors.
    sed '/^  "extrapolation": /d' p.json >q.json
    ends 0 predictor eval q.json nas_bench_macro less.csv --target top1_pct --json
    is out 'd["coverage_90"] < 0.85'
    sed 's/"sizes":{"log macs":{[^}]*},"log params":{[^}]*}},//' p.json >before.json
    not grep '"sizes"' before.json
    ends 0 predictor eval before.json nas_bench_macro less.csv --target top1_pct --json
    is out 'd["coverage_90"] >= 0.85'
    # What was fitted before that knows no sizes.
    sed '/^  "fact_ranges": /d' p.json >q.json
    ends 0 predictor score q.json nas_bench_macro less.csv
    not grep macs out
    ends 0 predictor show p.json nas_bench_macro
    grep -qE '^Other sizes are outside as well: macs \(deviation for a factor of 2: [0-9.]+ % below, [0-9.]+ % above\); params \(' out
    ends 0 predictor show p.json nas_bench_macro --json
    is out '[s["name"] for s in d["sizes"]] == ["macs", "params"] and all(s["below"] > 0 < s["above"] for s in d["sizes"])'
    sed 's/"below":/"below":-/' p.json >q.json
    refuses 2 "q.json*'extrapolation' of 'log macs' is damaged" predictor show ./q.json nas_bench_macro
    # A model for speed that looks at choices alone builds no graphs.
    ends 0 predictor fit nas_bench_macro some.csv --target top1_pct --kind gbdt --out g.json
    ends 0 predictor score g.json nas_bench_macro less.csv
    not grep macs out
}

@test "a search leaves out networks of a size that was not learned from, or marks them" {
    sized 30 80
    ends 0 predictor fit nas_bench_macro some.csv --target top1_pct --kind gp --out p.json
    ends 0 search --space nas_bench_macro --accuracy p.json --device null --objectives accuracy,macs --trials 3 --dry-run
    grep -qE '^sizes +macs from 3[0-9.]+ to 7[0-9.]+ M, params from .*: the predictor has seen no others; --domain free takes all$' out
    search --space nas_bench_macro --accuracy p.json --trials 60 --strategy nsga2 --study held.db
    is out 'd["left_out"] > 1 and all(30 < t["objectives"]["macs"]["value"] < 80 for t in d["front"])'
    is out 'd["feasible"] == 60 - d["left_out"] and all(t["objectives"]["accuracy"]["source"] == "predicted" for t in d["front"])'
    ends 0 study show held.db
    says out "left out: of a size outside what the predictor has learned from"
    "$HWNAS" study export held.db --format csv >all.csv
    [ "$(grep -c ,left-out all.csv)" = "$("$HWNAS" study show held.db --json | json /dev/stdin 'd["left_out"]')" ]
    search --space nas_bench_macro --accuracy p.json --trials 60 --strategy nsga2 --study free.db --domain free
    is out 'd["left_out"] == 0 and d["feasible"] == 60'
    is out 'any(t["objectives"]["macs"]["value"] < 30 for t in d["front"])'
    is out 'all(t["objectives"]["accuracy"]["source"] == "extrapolated-size" for t in d["front"] if t["objectives"]["macs"]["value"] < 30)'
    # What is expected of them is as far below as their wide intervals.
    is out 'all(abs((v["value"] - t["expected"]["accuracy"]) / (v["high"] - v["low"]) - 0.25) < 1e-6 for t in d["front"] for v in [t["objectives"]["accuracy"]])'
    ends 0 study show free.db
    says out "! of a size outside what was learned"
    ends 0 search --space nas_bench_macro --accuracy p.json --device null --objectives accuracy,macs --trials 3 --dry-run \
        --domain free
    not grep '^sizes' out
}
