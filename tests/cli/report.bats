# The page of a study, in a browser.
load helpers

# A study of 1,000 trials of published numbers, and its page.
setup_file() {
    export PAGES=$BATS_FILE_TMPDIR
    cd "$PAGES" || return
    cat >job.yaml <<END
space: nas_bench_201
accuracy: table:$HWNAS_SRC/tests/data/nas_bench_201.csv#c100_test_top1_pct
device: replay:$HWNAS_SRC/tests/data/nas_bench_201.csv#raspi4_ms
objectives: [accuracy, latency.p50]
constraints: [latency.p50 <= 40 ms]
strategy: random
budget: {trials: 1000}
END
    "$HWNAS" search job.yaml >/dev/null 2>&1
    "$HWNAS" report job.db >said 2>&1
}

# browse PAGE SCRIPT [OPTION]...: what the script returns, in the file `seen`. The page asked for nothing, and nothing of it failed.
browse() {
    command -v chromium >/dev/null || skip "needs chromium: scripts/install-deps --check"
    /usr/bin/python3 "$HWNAS_SRC/tests/cli/browse.py" "$@" >seen
    is seen "d['errors'] == [] and d['requests'] == []" || {
        /usr/bin/python3 -c "import json; d = json.load(open('seen')); print('errors', d['errors'], 'requests', d['requests'])"
        return 1
    }
}

has_charts() {
    ! grep -q "without uPlot" "$PAGES/said"
}

# change STUDY SQL: as somebody might who wants to harm its reader.
change() {
    /usr/bin/python3 -c 'import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute(sys.argv[2], sys.argv[3:])
db.commit()' "$@"
}

@test "report: one file, its name, its size" {
    [ "$(tail -n 1 "$PAGES/said")" = "wrote job.html" ]
    cp "$PAGES/job.db" .
    ends 0 report job.db -o other.html
    [ ! -s out ]
    cmp other.html "$PAGES/job.html"
    [ "$(stat -c %s other.html)" -lt 1000000 ]
    refuses 2 "job.db: this would be written over what is read" report job.db -o job.db
    cmp job.db "$PAGES/job.db"
    refuses 2 "no such study" report none.db
    [ ! -e none.html ]
    refuses 2 "no/dir.html" report job.db -o no/dir.html || refuses 1 "no/dir.html" report job.db -o no/dir.html
    refuses 2 "exclude each other" report job.db --json -o x.html
}

@test "report --json: the data of the page, as study trials --json has it" {
    "$HWNAS" report "$PAGES/job.db" --json >page.json
    "$HWNAS" study trials "$PAGES/job.db" --json >trials.json
    /usr/bin/python3 - <<'END'
import json
page, trials = json.load(open("page.json")), json.load(open("trials.json"))["trials"]
t = page["trials"]
assert page["format"] == "hwnas.page" and page["version"] == 1
assert t["arch"] == [x["arch"] for x in trials]
assert [bool(f & 2) for f in t["flags"]] == [x["front"] for x in trials]
assert [bool(f & 1) for f in t["flags"]] == [bool(x.get("feasible")) for x in trials]
for m in t["metrics"]:
    for i, x in enumerate(trials):
        v = x["objectives"].get(m["name"])
        assert m["values"][i] == (v and v["value"])
        assert (t["source_names"][int(m["sources"][i])] if v else None) == (v and v["source"])
front = [str(x["trial"]) for x in trials if x["front"]]
assert str(page["study"]["winner"]["trial"]) in page["networks"] and set(page["networks"]) <= set(front)
assert len(page["networks"]) == len(front) or sum(map(len, page["networks"].values())) >= 5000
assert page["limits"] == [{"text": "latency.p50 <= 40 ms", "metric": "latency.p50", "value": 40, "unit": "ms", "upper": True}]
END
}

@test "report: the first screen says which network, how sure, and why not a faster one" {
    "$HWNAS" study show "$PAGES/job.db" --json >show.json
    browse "$PAGES/job.html" '
        return {ticks: [[0, 0.0000002, 0.0000004], [0, 2.5, 5], [10000, 12000]].map(tickTexts), title: document.title, answer: document.querySelector("#answer").innerText,
                bottom: document.querySelector("#answer ul:last-child").getBoundingClientRect().bottom}'
    /usr/bin/python3 - <<'END'
import json
seen, show = json.load(open("seen"))["result"], json.load(open("show.json"))
winner, answer = show["winner"], seen["answer"]
assert seen["ticks"] == [["0", "0.0000002", "0.0000004"], ["0", "2.5", "5"], ["10,000", "12,000"]], seen["ticks"]
front = sorted(show["front"], key=lambda t: t["objectives"]["latency.p50"]["value"])
at = [t["trial"] for t in front].index(winner["trial"])
assert seen["title"] == "nas_bench_201: hwnas report"
for words in ("Trial %d" % winner["trial"], winner["arch"], "%.3f ms" % winner["objectives"]["latency.p50"]["value"],
              "%.2f %%" % winner["objectives"]["accuracy"]["value"], "no interval", "trial %d:" % front[at - 1]["trial"],
              "hwnas export job.db --trial %d --format onnx" % winner["trial"], "What would a looser limit buy?"):
    assert words in answer, (words, answer)
assert seen["bottom"] < 900
END
}

@test "report: with several devices the winner's result is told of each" {
    cat >two.yaml <<END
space: nas_bench_macro
accuracy: nas_bench_macro_cifar10
devices: [{name: a, device: null}, {name: b, device: null, batch: 2}, {name: c, device: "replay:$HWNAS_SRC/tests/data/nas_bench_macro.csv#macs_count"}]
objectives: [accuracy, latency.p50 on a]
budget: {trials: 4}
measure: {seconds: 0.1, estimate: off, ties: 0, confirm: 0}
seed: 3
END
    STILL_COMPUTES=1 STILL_BY_SIZE=1 undisturbed ends 0 search two.yaml
    ends 0 report two.db
    browse two.html 'return document.querySelector("#answer").innerText'
    says seen "Its result on a was compared with ref, and agrees (error"
    says seen "Its result on b was compared with ref, and agrees (error"
    says seen "Its result on c was not verified: it remembers published numbers"
    not grep -qE 'result on [ab] was not verified' seen
}

@test "report, trials, explain: what was left out by its size is not said to miss a limit" {
    cp "$PAGES/job.db" .
    change job.db "UPDATE value SET source = 'left-out' WHERE metric = 'accuracy'"
    change job.db "DELETE FROM value WHERE metric = 'latency.p50'"
    change job.db "UPDATE trial SET violation = 9e999"
    ends 0 study trials job.db
    says out "left out"
    not grep -q infeasible out
    ends 0 explain job.db --trial 0
    says out "latency.p50 <= 40 ms: not measured, as its size is outside what the predictor has learned from"
    ends 0 report job.db
    browse job.html 'return [document.querySelector("header").innerText, document.querySelector("#answer").innerText, document.body.innerText]'
    is seen '"latency.p50 <= 40 ms" in d["result"][0]'
    is seen '"none meets latency.p50 <= 40 ms" in d["result"][1]'
    is seen '"1000 left out: of a size outside what the predictor has learned from" in d["result"][1]'
    is seen '"left out by its size" in d["result"][2]'
    is seen '"misses a limit" not in d["result"][2]'
}

@test "report: what predictions cannot tell is said beside a difference" {
    cp "$PAGES/job.db" .
    change job.db "UPDATE value SET source = 'predicted', low = value - 1, high = value + 1 WHERE metric = 'accuracy'"
    ends 0 report job.db
    "$HWNAS" study show job.db --json >show.json
    browse job.html 'return document.querySelector("#answer").innerText'
    /usr/bin/python3 - <<'END'
import json, math, re
seen, show = json.load(open("seen"))["result"], json.load(open("show.json"))
value = lambda t, m: t["objectives"][m]["value"]
winner = show["winner"]
faster = sorted((t for t in show["front"] if value(t, "latency.p50") < value(winner, "latency.p50")), key=lambda t: -value(t, "latency.p50"))
less = lambda t: value(winner, "accuracy") - value(t, "accuracy")
words = "Predictions of accuracy are usually off by 1.00 points, so this one may be as good"
lines = [line for line in seen.split("\n") if line.startswith(("Next on", "The same holds", "The other end"))]
# Two standard deviations of the difference of two predictions of 1 point each.
until = next((i for i, t in enumerate(faster) if less(t) > 2 * math.sqrt(2)), len(faster))
assert until >= 2 and len(lines) == 3, (until, lines)
assert "trial %d:" % faster[0]["trial"] in lines[0] and words in lines[0], lines
assert abs(float(re.search(r"\(([\d.]+) points less\)", lines[0]).group(1)) - less(faster[0])) < 0.006, lines
assert "trial %d:" % faster[until - 1]["trial"] in lines[1] and words in lines[1], (lines, until)
assert "trial %d:" % faster[-1]["trial"] in lines[2] and "Predictions" not in lines[2], lines
assert "two of three such predictions are off by 1.00 points or less" in seen, seen
END
}

@test "report: the chart is drawn, a click shows a network, hover tells of it" {
    has_charts || skip "built without uPlot"
    browse "$PAGES/job.html" '
        const colours = () => {
            const canvas = document.querySelector("#front canvas");
            const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data, found = new Map();
            for (let i = 0; i < data.length; i += 4)
                if (data[i + 3] === 255)
                    found.set(data.slice(i, i + 3).join(), (found.get(data.slice(i, i + 3).join()) || 0) + 1);
            return found;
        };
        const front = colours().get("31,95,191") || 0, limit = colours().get("179,38,30") || 0;
        document.querySelector("[data-kind=front]").click();
        await later();
        const without = colours().get("31,95,191") || 0;
        document.querySelector("[data-kind=front]").click();
        await later();
        const key = (k) =>
            document.querySelector("#front .plot").dispatchEvent(new KeyboardEvent("keydown", {key: k, bubbles: true}));
        key("ArrowLeft");
        const tip = document.querySelector(".tip").innerText;
        key("Enter");
        await later();
        const byKey = document.querySelector(".network").dataset.trial;
        const box = document.querySelector("#front .u-over").getBoundingClientRect();
        let shown = "", clicked = "";
        for (let y = 0; y < box.height && !shown; y += 6)
            for (let x = 0; x < box.width && !shown; x += 6) {
                const at = {bubbles: true, clientX: box.left + x, clientY: box.top + y};
                document.querySelector("#front .u-over").dispatchEvent(new MouseEvent("mousemove", at));
                if (!document.querySelector(".tip").hidden) {
                    shown = document.querySelector(".tip").innerText;
                    for (const kind of ["mousedown", "mouseup", "click"])
                        document.querySelector("#front .u-over").dispatchEvent(new MouseEvent(kind, at));
                    clicked = document.querySelector(".network").dataset.trial;
                }
            }
        return {front, limit, without, tip, byKey, shown, clicked, network: document.querySelector(".network").innerText,
                layers: document.querySelectorAll(".network details tr").length};'
    is seen "d['result']['front'] > 200 and d['result']['limit'] > 50"
    is seen "d['result']['without'] < d['result']['front'] / 4"
    is seen "d['result']['tip'].startswith('Trial ' + d['result']['byKey'] + ' on the front')"
    is seen "'accuracy' in d['result']['shown'] and 'object' not in d['result']['shown']"
    is seen "d['result']['shown'].startswith('Trial ' + d['result']['clicked'])"
    is seen "'--trial ' + d['result']['clicked'] + ' --format pytorch' in d['result']['network']"
}

@test "report: of 30,000 trials marks that cover each other are drawn as one" {
    has_charts || skip "built without uPlot"
    browse "$PAGES/job.html" '
        const data = JSON.parse(document.getElementById("data").textContent), t = data.trials, n = t.arch.length;
        const many = (list) => typeof list === "string" ? list.repeat(30) : [].concat(...new Array(30).fill(list));
        for (const key of ["arch", "flags", "status", "order", "seconds"])
            t[key] = many(t[key]);
        for (const m of t.metrics)
            Object.assign(m, {values: many(m.values), sources: many(m.sources), intervals: many(m.intervals)});
        const study = new Study(data), drawn = {dot: 0, circle: 0}, root = document.createElement("div");
        for (const name of Object.keys(drawn)) {
            const draw = SHAPES[name];
            SHAPES[name] = (...at) => { drawn[name]++; draw(...at); };
        }
        const chart = new FrontChart(study, {x: study.cost, y: study.goal, selected: study.winner}, () => {});
        document.body.append(root);
        root.append(chart.root);
        redrawCharts();
        await later();
        return {n, all: study.n, drawn, front: study.front.length, dominated: Array.from({length: study.n}, (_, i) => study.kind(i)).filter((k) => k === "dominated").length}'
    is seen "d['result']['all'] == 30 * d['result']['n']"
    is seen "0 < d['result']['drawn']['dot'] < d['result']['dominated'] / 10 and d['result']['dominated'] > 10000"
    is seen "d['result']['drawn']['circle'] >= d['result']['front']"
}

@test "report: the layers of a network are those that hwnas space show tells" {
    "$HWNAS" study show "$PAGES/job.db" --json >show.json
    "$HWNAS" space show nas_bench_201 --arch "$(json show.json 'd["winner"]["arch"]')" --json >network.json
    browse "$PAGES/job.html" '
        return [...document.querySelectorAll(".network details tbody tr")].map((r) => [...r.cells].slice(0, 5).map((c) => c.textContent))'
    /usr/bin/python3 - <<'END'
import json
seen, layers = json.load(open("seen"))["result"], json.load(open("network.json"))["layers"]
number = lambda n: format(n, ",") if n else ""
assert [[r[0], r[1], r[3], r[4]] for r in seen] == \
    [[l["name"], l["operator"], number(l["params"]), number(l["macs"])] for l in layers]
END
}

@test "report: trials are sorted, filtered, and two are compared" {
    "$HWNAS" study trials "$PAGES/job.db" --json >trials.json
    browse "$PAGES/job.html" '
        const rows = () => [...document.querySelectorAll("#trials tbody tr")].map((r) => Number(r.dataset.trial));
        const set = (name, value, event) => {
            const field = document.querySelector(`[data-filter=${name}]`);
            field.value = value;
            field.dispatchEvent(new Event(event));
        };
        const first = rows();
        set("kind", "all", "change");
        document.querySelector("[data-sort=\"latency.p50\"]").click();
        const sorted = rows(), words = document.querySelector("#trials [aria-sort=ascending]").innerText;
        set("text", "latency.p50 < 5 and accuracy > 55", "input");
        const fast = rows();
        set("text", "no such network", "input");
        const none = rows();
        set("text", "", "input");
        const boxes = document.querySelectorAll("#trials tbody input");
        boxes[3].click();
        boxes[5].click();
        return {first, sorted, words, fast, none, compared: [sorted[3], sorted[5]],
                comparison: document.querySelector("#comparison").innerText};'
    /usr/bin/python3 - <<'END'
import json
seen, trials = json.load(open("seen"))["result"], json.load(open("trials.json"))["trials"]
value = lambda t, m: t["objectives"][m]["value"]
assert seen["first"] == [t["trial"] for t in sorted((t for t in trials if t["front"]), key=lambda t: -value(t, "accuracy"))]
assert seen["sorted"] == [t["trial"] for t in sorted(trials, key=lambda t: value(t, "latency.p50"))][:100]
assert "latency.p50" in seen["words"] and seen["none"] == []
fast = [t["trial"] for t in trials if value(t, "latency.p50") < 5 and value(t, "accuracy") > 55]
assert fast and sorted(seen["fast"]) == fast
for i in seen["compared"]:
    assert "trial %d" % i in seen["comparison"] and "%.2f %%" % value(trials[i], "accuracy") in seen["comparison"]
END
}

@test "report: hypervolume and shares of variance are right" {
    browse "$PAGES/job.html" '
        const data = JSON.parse(document.getElementById("data").textContent), study = new Study(data);
        const all = Array.from({length: study.n}, (_, trial) => trial);
        return {volumes: progress(study).volumes, shares: shares(study.goal, all, geneColumns(study, all)),
                genes: all.map((i) => study.genes(i))};'
    "$HWNAS" study trials "$PAGES/job.db" --json >trials.json
    /usr/bin/python3 - <<'END'
import json
import numpy
seen, trials = json.load(open("seen"))["result"], json.load(open("trials.json"))["trials"]
accuracy = numpy.array([t["objectives"]["accuracy"]["value"] for t in trials])
latency = numpy.array([t["objectives"]["latency.p50"]["value"] for t in trials])
good = numpy.array([t["feasible"] for t in trials])
# On a grid of all values that there are, by counting cells.
def scaled(v, up):
    s = (v - v[good].min()) / (v[good].max() - v[good].min())
    return s if up else 1 - s
points = numpy.stack([scaled(accuracy, True), scaled(latency, False)], 1)
for n in (10, 100, 1000):
    p = points[:n][good[:n]]
    xs, ys = numpy.unique(numpy.append(p[:, 0], 0)), numpy.unique(numpy.append(p[:, 1], 0))
    volume = sum((xs[i + 1] - xs[i]) * max([y for x, y in p if x >= xs[i + 1]], default=0) for i in range(len(xs) - 1))
    assert abs(seen["volumes"][n - 1] - volume) < 1e-5, (n, seen["volumes"][n - 1], volume)
assert seen["genes"][0] == [["op[%d]" % i, c] for i, c in enumerate(trials[0]["arch"])] or \
    [v for _, v in seen["genes"][0]] == list(trials[0]["arch"])
for name, share in seen["shares"]:
    column = numpy.array([dict(map(tuple, g))[name] for g in seen["genes"]])
    groups = [accuracy[column == v] for v in numpy.unique(column)]
    within = sum(((g - g.mean()) ** 2).sum() for g in groups) / (len(accuracy) - len(groups))
    total = ((accuracy - accuracy.mean()) ** 2).sum()
    assert abs(share - max(0, (total - within * (len(accuracy) - len(groups)) - (len(groups) - 1) * within) / total)) < 1e-4
END
}

@test "report: networks as lines across their choices, kept by keys, a field and the mouse" {
    has_charts || skip "built without uPlot"
    "$HWNAS" study trials "$PAGES/job.db" --json >trials.json
    browse "$PAGES/job.html" '
        const plot = document.querySelector("#lines .plot"), told = () => document.querySelector("#kept").innerText;
        const key = (k) => plot.dispatchEvent(new KeyboardEvent("keydown", {key: k, bubbles: true}));
        const axes = [...document.querySelectorAll("#lines select")].map((s) => s.dataset.axis), seen = {axes, shared: told()};
        key("ArrowRight");
        key("ArrowUp");
        seen.byKey = told();
        key("Escape");
        seen.cleared = told();
        const last = document.querySelectorAll("#lines select")[axes.length - 1];
        last.selectedIndex = 4;
        last.dispatchEvent(new Event("change"));
        seen.byField = told();
        key("Escape");
        const over = document.querySelector("#lines .u-over"), box = over.getBoundingClientRect();
        const mouse = (kind, x, y) => over.dispatchEvent(new MouseEvent(kind, {bubbles: true, button: 0, movementX: 3, movementY: 3, clientX: box.left + x, clientY: box.top + y}));
        const x = box.width * (0.3 + axes.length - 1) / (axes.length - 0.4);
        mouse("mousemove", x - 12, 4);
        mouse("mousedown", x - 12, 4);
        for (let k = 1; k <= 8; k++)
            mouse("mousemove", x - 12 + 3 * k, 4 + k * box.height / 20);
        document.dispatchEvent(new MouseEvent("mouseup", {bubbles: true, button: 0, clientX: box.left + x + 12, clientY: box.top + 4 + 8 * box.height / 20}));
        await later();
        seen.byMouse = told();
        return seen;'
    /usr/bin/python3 - <<'END'
import json, re
seen, trials = json.load(open("seen"))["result"], json.load(open("trials.json"))["trials"]
front = [t for t in trials if t["front"]]
dominated = [t for t in trials if t["feasible"] and not t["front"]]
value = lambda t, m: t["objectives"][m]["value"]
assert seen["axes"][-2:] == ["latency.p50", "accuracy"] and seen["shared"] == seen["cleared"]
assert seen["shared"].startswith("%d networks of the front, %d dominated." % (len(front), len(dominated)))
def counts(words):
    return [int(n) for n in re.search(r": (\d+) networks? of the front of %d, (\d+) dominated" % len(front), words).groups()]
# The position of a choice by its name, op[1] for the second letter.
name, label = re.match(r"(\S+) = (\S+): ", seen["byKey"]).groups()
assert name == seen["axes"][1]
place = int(re.search(r"\[(\d+)\]", name).group(1))
assert counts(seen["byKey"]) == [sum(t["arch"][place] == label for t in group) for group in (front, dominated)]
for line in re.findall(r"(\S+) = (\S+) in (\d+) % of the front, in (\d+) % of the networks that it dominates", seen["shared"]):
    place = int(re.search(r"\[(\d+)\]", line[0]).group(1))
    for group, percent in ((front, line[2]), (dominated, line[3])):
        assert abs(100 * sum(t["arch"][place] == line[1] for t in group) / len(group) - int(percent)) <= 0.5, line
values = [value(t, "accuracy") for t in front + dominated]
low = max(values) - (max(values) - min(values)) / 4
assert counts(seen["byField"]) == [sum(value(t, "accuracy") >= low for t in group) for group in (front, dominated)]
low, high = map(float, re.search(r"accuracy from ([\d.]+) to ([\d.]+) %", seen["byMouse"]).groups())
assert low < high and counts(seen["byMouse"])[0] == sum(low <= value(t, "accuracy") <= high for t in front), seen["byMouse"]
END
}

@test "report: two studies side by side, and what was profiled of a network" {
    "$HWNAS" search "$PAGES/job.yaml" --study other.db --trials 300 --seed 7 >/dev/null 2>&1
    cp "$PAGES/job.db" .
    "$HWNAS" study trials job.db --json >a.json
    "$HWNAS" study trials other.db --json >b.json
    /usr/bin/python3 - "$HWNAS_SRC/tests/data/profile_layers.json" <<'END'
import json, subprocess, os, sys
d = json.load(open(sys.argv[1]))
winner = json.loads(subprocess.check_output([os.environ["HWNAS"], "study", "show", "job.db", "--json"]))["winner"]["arch"]
d["rows"] = [r for r in d["rows"] if r.get("layers")][:1]
d["rows"][0].update(arch=winner, model="nas_bench_201")
json.dump(d, open("here.json", "w"))
d["rows"][0].update(arch="000000x")
json.dump(d, open("stranger.json", "w"))
del d["rows"][0]["layers"]
json.dump(d, open("bare.json", "w"))
END
    ends 0 report job.db other.db here.json -o two.html
    not grep -q note err
    browse two.html '
        const words = document.querySelector("#beside").innerText, first = document.querySelector("#answer").innerText;
        const layers = [...document.querySelectorAll(".network section[id^=layers-] tbody tr")].length;
        document.querySelector("#beside [data-side=B]").click();
        await drawn();
        return {words, first, layers, second: document.querySelector("#answer").innerText,
                canvas: document.querySelectorAll("#beside canvas").length, focus: document.activeElement.dataset.side,
                pressed: document.querySelector("#beside [aria-pressed=true]").dataset.side};'
    /usr/bin/python3 - <<'END'
import json
seen, a, b = json.load(open("seen"))["result"], json.load(open("a.json"))["trials"], json.load(open("b.json"))["trials"]
value = lambda t, m: t["objectives"][m]["value"]
point = lambda t: (value(t, "latency.p50"), -value(t, "accuracy"))
fronts = [[point(t) for t in s if t["front"]] for s in (a, b)]
for i, name in enumerate("AB"):
    one, other = fronts[i], fronts[1 - i]
    n = sum(any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in other) for p in one)
    assert "Of %d networks on the front of %s, %d %s beaten" % (len(one), name, n, "is" if n == 1 else "are") in seen["words"], (n, seen["words"])
best = lambda s: max((t for t in s if t["front"]), key=lambda t: value(t, "accuracy"))
assert "Trial %d\n" % best(a)["trial"] in seen["first"] and "Trial %d\n" % best(b)["trial"] in seen["second"]
assert seen["focus"] == seen["pressed"] == "B"
assert seen["layers"] == len(json.load(open("here.json"))["rows"][0]["layers"]["list"])
END
    if has_charts; then is seen "d['result']['canvas'] == 1"; fi
    "$HWNAS" report job.db other.db here.json --json >page.json
    is page.json "d['beside']['format'] == 'hwnas.page' and len(d['beside']['trials']['arch']) == 300 and len(d['profiles']) == 1"
    ends 0 report job.db stranger.json -o x.html
    says err "note: stranger.json: no row is of a network of this study"
    refuses 3 "bare.json: it has no layers*--layers --save" report job.db bare.json -o none.html
    refuses 2 "two studies at most" report job.db other.db job.db -o none.html
    refuses 2 "only the page of a study takes another file" report here.json job.db -o none.html
    refuses 2 "--csv is of one file" report job.db other.db --csv
    refuses 2 "other.db: this would be written over what is read" report job.db other.db -o other.db
    [ ! -e none.html ]
}

@test "report: a hostile study runs no script" {
    local evil='</script><script>window.owned=1</script><img src=x onerror="window.owned=2"><!-- &quot; '
    cp "$PAGES/job.db" 'a<b>.db'
    change 'a<b>.db' "UPDATE trial SET code = ?, message = ?, status = 'crashed' WHERE number % 7 = 3" "$evil" "$evil"
    change 'a<b>.db' "UPDATE fact SET value = ? WHERE key = 'ended'" "$evil"
    change 'a<b>.db' "UPDATE fact SET value = replace(value, 'nas_bench_201\"', ?) WHERE key = 'job'" \
        '</script><script>window.owned=3</script><img src=http://127.0.0.1:9/x onerror=window.owned=4>"'
    ends 0 report 'a<b>.db' -o page.html
    browse page.html '
        document.querySelector("[data-filter=kind]").value = "failed";
        document.querySelector("[data-filter=kind]").dispatchEvent(new Event("change"));
        document.querySelector("#trials tbody button").click();
        await drawn();
        return {owned: window.owned || 0, images: document.images.length, scripts: document.scripts.length,
                text: document.body.innerText};'
    is seen "d['result']['owned'] == 0 and d['result']['images'] == 0 and '<img src=x' in d['result']['text']"
    # The page's own and its data.
    is seen "d['result']['scripts'] == 2"
}

@test "report: a name that is not UTF-8 is refused, and nothing is written" {
    cp "$PAGES/job.db" .
    change job.db "UPDATE trial SET code = CAST(x'61ff' AS TEXT) WHERE number = 500"
    refuses 2 "the study is damaged" report job.db
    cp "$PAGES/job.db" .
    change job.db "UPDATE fact SET value = CAST(x'61ff' AS TEXT) WHERE key = 'ended'"
    refuses 2 "the study is damaged" report job.db
    [ ! -e job.html ]
}

@test "report: predictions beside what was trained, estimates beside what was measured" {
    printf '%s\n' '#!/bin/sh' "grep \"^\$HWNAS_CODE,\" '$TABLE' | cut -d, -f9" >train
    chmod +x train
    job "accuracy: command:./train" "train-budget: 24" 'budget: {trials: 60}'
    ends 0 search job.yaml
    ends 0 report job.db
    browse job.html '
        const data = JSON.parse(document.getElementById("data").textContent);
        return {n: Object.keys(data.trials.predictions).length, text: document.querySelector("#predictions").innerText,
                metric: data.trials.metrics.find((m) => m.name === "accuracy"), predictions: data.trials.predictions,
                names: data.trials.source_names};'
    # Of each of them the accuracy is now one that was trained.
    is seen "d['result']['n'] > 0 and all(d['result']['names'][int(d['result']['metric']['sources'][int(i)])] == 'trained' for i in d['result']['predictions'])"
    is seen "str(d['result']['n']) + ' network' in d['result']['text'] and 'off in the median' in d['result']['text']"
}

@test "report: without uPlot, without a space, without a winner" {
    browse "$PAGES/job.html" 'addEventListener("DOMContentLoaded", () => { uPlot = undefined; }, {capture: true});
---
        return document.querySelector("#front").innerText'
    is seen "'built without uPlot' in d['result']"
    cp "$PAGES/job.db" gone.db
    change gone.db "UPDATE fact SET value = replace(value, 'nas_bench_201\"', 'no_such_space\"') WHERE key = 'job'"
    ends 0 report gone.db
    says err "note: *no_such_space*wrote gone.html"
    browse gone.html 'return document.body.innerText'
    is seen "'layers are not known' in d['result'] and 'Not known: ' in d['result']"
    job "constraints: [accuracy >= 99 %]"
    ends 3 search job.yaml --study none.db
    ends 0 report none.db
    browse none.html 'return document.body.innerText'
    is seen "'No network to deploy yet' in d['result'] and 'misses by least' in d['result']"
}

@test "report: light and dark, wide and narrow" {
    local dark
    for dark in "" --dark; do
        # shellcheck disable=SC2086
        browse "$PAGES/job.html" '
            const style = getComputedStyle(document.querySelector("#answer")), one = (c) => c.match(/\d+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0);
            return {width: document.documentElement.scrollWidth - document.documentElement.clientWidth,
                    text: one(style.color), back: one(style.backgroundColor)};' --size 420x900 $dark
        is seen "d['result']['width'] == 0"
        if [ "$dark" ]; then is seen "d['result']['text'] > d['result']['back'] + 300"; else is seen "d['result']['text'] < d['result']['back'] - 300"; fi
    done
}

@test "report --csv, --markdown: the trials of the study, and names are no markup" {
    cp "$PAGES/job.db" .
    change job.db "UPDATE trial SET code = ? WHERE number = 7" '|a*b_[c](http://127.0.0.1:9)<i>`&amp;\'
    ends 0 report job.db --csv
    says err "wrote job.csv"
    "$HWNAS" study export job.db --format csv | diff - job.csv
    ends 0 report job.db --markdown -o tables.md
    "$HWNAS" study trials job.db --json >trials.json
    /usr/bin/python3 - <<'END'
import json
trials = json.load(open("trials.json"))["trials"]
def cut(line):
    """Its cells, by CommonMark's escapes; what is not escaped is no markup."""
    cells, characters = [""], iter(line)
    for c in characters:
        if c == "|":
            cells.append("")
        else:
            assert c not in "*_[]<>`&~#", line
            cells[-1] += next(characters) if c == "\\" else c
    return [cell.strip() for cell in cells[1:-1]]
def rows(lines):
    table = [line for line in lines if line.startswith("|")]
    assert set(table[1]) <= set("|-: ")
    return [dict(zip(cut(table[0]), cut(line))) for line in table[2:]]
text = open("tables.md").read()
front, everything = text.split("## All trials")
front, everything = rows(front.splitlines()), rows(everything.splitlines())
assert [int(r["trial"]) for r in everything] == [t["trial"] for t in trials]
assert {int(r["trial"]) for r in front} == {t["trial"] for t in trials if t["front"]}
for r, t in zip(everything, trials):
    assert abs(float(r["latency.p50 ms"]) - t["objectives"]["latency.p50"]["value"]) < 5.1e-4, (r, t)
    assert r["architecture"] == t["arch"], (r, t)
END
    refuses 2 "--csv and --markdown exclude each other" report job.db --csv --markdown
    refuses 2 "--svg and --csv exclude each other" report job.db --csv --svg front
}

@test "report --svg: the front and the curve have the study's own numbers" {
    cp "$PAGES/job.db" .
    ends 0 report job.db --svg front
    says err "wrote job-front.svg"
    ends 0 report job.db --svg curve -o curve.svg
    "$HWNAS" study trials job.db --json >trials.json
    /usr/bin/python3 - <<'END'
import json, re
import xml.etree.ElementTree as tree
trials = json.load(open("trials.json"))["trials"]
svg = "{http://www.w3.org/2000/svg}"
value = lambda t, m: t["objectives"][m]["value"]

def ticks(root):
    """What a pixel is worth, by the words beside the axes."""
    found = {"middle": [], "end": []}
    for t in root.iter(svg + "text"):
        if t.get("class") == "tick":
            across = t.get("text-anchor") == "middle"
            found[t.get("text-anchor")].append((float(t.get("x")) if across else float(t.get("y")) - 4, float(t.text)))
    def scale(pairs):
        (p, v), (q, w) = pairs[0], pairs[-1]
        return lambda at: v + (at - p) * (w - v) / (q - p)
    return scale(found["middle"]), scale(found["end"])

root = tree.parse("job-front.svg").getroot()
x, y = ticks(root)
drawn = sorted((round(x(float(c.get("cx"))), 1), round(y(float(c.get("cy"))), 1))
               for c in root.iter(svg + "circle") if c.get("class") == "front")
front = sorted((value(t, "latency.p50"), value(t, "accuracy")) for t in trials if t["front"])
assert len(drawn) == len(front)
for (a, b), (c, d) in zip(drawn, front):
    assert abs(a - c) < 0.3 and abs(b - d) < 0.3, (a, b, c, d)
assert any(t.text == "latency.p50 <= 40 ms" for t in root.iter(svg + "text"))
root = tree.parse("curve.svg").getroot()
x, y = ticks(root)
path = next(p.get("d") for p in root.iter(svg + "path") if p.get("class") == "path")
best = max(value(t, "accuracy") for t in trials if t["feasible"])
assert abs(y(float(re.findall(r"V([\d.]+)", path)[-1])) - best) < 0.3
END
    refuses 2 "no picture 'roof'*'front' or 'curve'" report job.db --svg roof
    [ ! -e job-roof.svg ]
    job "objectives: [accuracy]"
    ends 0 search job.yaml --study one.db
    refuses 3 "no front to draw; --svg curve" report one.db --svg front
    ends 0 report one.db --svg curve
    job "constraints: [accuracy >= 99 %]"
    ends 3 search job.yaml --study none.db
    refuses 3 "no trial meets the constraints" report none.db --svg curve
    refuses 2 "exclude each other" report job.db --svg front --json
}

@test "report: of a study whose space has gone nobody says that two networks are the same" {
    cp "$HWNAS_SRC/search_spaces/nas_bench_201.yaml" own.yaml
    sed 's/^space.*/space: own.yaml/; s/trials: 1000/trials: 30/' "$PAGES/job.yaml" >own-job.yaml
    "$HWNAS" search own-job.yaml --study own.db >/dev/null 2>&1
    rm own.yaml
    ends 0 report own.db
    browse own.html 'return document.querySelector("#comparison").innerText'
    is seen "'differ in no choice' not in d['result'] and 'Their choices are not known: ' in d['result'] and 'own.yaml' in d['result']"
}
