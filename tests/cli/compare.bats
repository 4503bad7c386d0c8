# hwnas compare: recorded profiles and prices in, an answer that a hand can check out.

load helpers

setup() {
    mkdir "$BATS_TEST_TMPDIR/work"
    cd "$BATS_TEST_TMPDIR/work" || exit
    # A box of two cores, and an accelerator that is ten times as fast and fifteen times as dear.
    cat >box.json <<'END'
{"format": "hwnas.profile", "version": 1, "date": "2026-01-31T12:00:00Z",
 "device": {"spelling": "cpu", "name": "Some CPU", "library": "", "isa": ""},
 "rows": [
  {"model": "net", "batch": 1, "threads": 1, "streams": 2, "status": "ok", "p50_seconds": 0.010,
   "p99_seconds": 0.012, "items_per_second": 200},
  {"model": "net", "batch": 8, "threads": 1, "streams": 2, "status": "ok", "p50_seconds": 0.060,
   "p99_seconds": 0.070, "items_per_second": 266.7},
  {"model": "other", "batch": 1, "threads": 2, "status": "ok", "p50_seconds": 0.001,
   "items_per_second": 1000},
  {"model": "net", "batch": 64, "threads": 1, "streams": 2, "status": "out_of_memory",
   "message": "no memory for the weights"}]}
END
    cat >acc.json <<'END'
{"format": "hwnas.profile", "version": 1, "source": "published: a page", "date": "2025-06-01",
 "name": "fast", "device": {"spelling": "cuda:0", "name": "Some GPU", "library": "", "isa": ""},
 "rows": [
  {"model": "net", "batch": 1, "threads": 1, "dtype": "f16", "status": "ok", "p50_seconds": 0.001,
   "p99_seconds": 0.0015, "items_per_second": 1000},
  {"model": "net", "batch": 8, "threads": 1, "dtype": "f16", "status": "ok", "p50_seconds": 0.004,
   "p99_seconds": 0.005, "items_per_second": 2000}]}
END
    cat >prices.yaml <<'END'
currency: USD
devices:
  box: {price: 0.10, source: an invoice, date: 2026-01-31}
  fast: {price: 1.50}
  dearer: {price: 15}
END
}

@test "machines, cost and the winner are those of a computation by hand" {
    ends 0 compare net --profile box.json,acc.json --price prices.yaml --latency-target 50ms \
        --load 1000/s --json
    /usr/bin/python3 - out <<'END'
import json, math, sys

# The formulas of docs/cpu-or-gpu.md once more, and every number of machines tried in turn.
def unfilled(b, gaps):
    tail = lambda k: math.exp(-gaps) * sum(gaps ** j / math.factorial(j) for j in range(k))
    return sum(tail(k) for k in range(1, b)) / b

def fill(b, p):
    x = 0.0
    while b > 1 and unfilled(b, x) > 1 - p:
        x += 1e-3
    return x

def erlang_c(c, a):
    top = a ** c / math.factorial(c) * c / (c - a)
    return top / (sum(a ** k / math.factorial(k) for k in range(c)) + top)

def served(b, s, items, latency, rate, p=0.99):
    rho, batch_seconds = rate / items, s * b / items
    c = erlang_c(s, s * rho)
    better = 1 + (1 - rho) * (s - 1) * (math.sqrt(4 + 5 * s) - 2) / (16 * rho * s)
    scale = batch_seconds / s / (1 - rho) * better / (2 * b)
    return fill(b, p) / rate + max(scale * math.log(c / (1 - p)), scale * c) + latency

def machines(b, s, items, latency):
    for n in range(1, 100):
        if 1000 / n <= 0.8 * items and served(b, s, items, latency, 1000 / n) <= 0.05:
            return n

d = json.load(open(sys.argv[1]))
assert d["format"] == "hwnas.comparison" and d["version"] == 1 and d["currency"] == "USD"
(net,) = d["networks"]
found = {(c["device"], c["measured"]["batch"]): c for c in net["choices"]}
for (device, batch), (s, items, latency, price) in {
        ("box", 1): (2, 200, 0.012, 0.1), ("fast", 1): (1, 1000, 0.0015, 1.5),
        ("fast", 8): (1, 2000, 0.005, 1.5)}.items():
    c, n = found[device, batch], machines(batch, s, items, latency)
    assert c["machines"] == n, (device, batch, c, n)
    assert math.isclose(c["served_seconds"], served(batch, s, items, latency, 1000 / n),
                        rel_tol=1e-3), (c, n)
    assert math.isclose(c["cost_per_hour"], n * price)
    assert math.isclose(c["cost_per_million"], n * price / 3600 / 1000 * 1e6), c
    assert math.isclose(c["utilisation"], 1000 / n / items)
    assert math.isclose(c["requests_per_second_per_price"], c["requests_per_second"] / price)
    assert math.isclose(served(batch, s, items, latency, c["requests_per_second"]), 0.05,
                        rel_tol=1e-3) or c["requests_per_second"] >= 0.8 * items * 0.999, c
assert found["box", 8]["flaw"] == "a batch alone takes 70 ms"
assert found["box", 64]["flaw"] == "out_of_memory: no memory for the weights"
best, second = net["choices"][net["winner"]], net["choices"][net["runner_up"]]
assert (best["device"], best["measured"]["batch"]) == ("box", 1)
assert (second["device"], second["measured"]["batch"]) == ("fast", 8)
assert math.isclose(net["ratio"], second["cost_per_million"] / best["cost_per_million"])
END
}

@test "the answer can be read at a glance" {
    ends 0 compare net --profile box.json,acc.json --price prices.yaml --latency-target 50ms \
        --load 1000/s
    says out '1000 requests/s, p99 <= 50 ms with waiting'
    says out 'fast * Some GPU * published: a page, 2025-06-01 * 1.5 USD'
    says out '0.1 USD (an invoice, 2026-01-31)'
    says out 'winner     box, batch 1, 1 thread, 2 streams, f32; the cheapest of 3 settings that will do'
    says out '7 machines, 0.7 USD an hour, 0.1944 USD a million requests, p99 48.53 ms'
    says out 'runner-up  fast, batch 8, 1 thread, 1 stream, f16'
    says out 'costs 2.14 times as much: an hour of it costs 15 times that of box'
    says out 'no: a batch alone takes 70 ms'
    says out 'other precisions than f32 may cost accuracy'
    [ "$(wc -L <out)" -le 140 ]
    # Large figures are written out.
    sed 's/"items_per_second": 2000}/"items_per_second": 2000000}/' acc.json >many.json
    ends 0 compare net --profile many.json
    says out '1600000 requests/s a machine'
    not grep -q 'e+0' out
    # Without a load the fullest machine counts, without prices the requests of one.
    ends 0 compare net --profile box.json,acc.json --price prices.yaml
    says out 'winner     box, batch 8'
    ends 0 compare net --profile box.json,acc.json
    says out 'winner     fast, batch 8'
    says out 'box   ##### 213.4'
    # All models of the profiles when none is named.
    ends 0 compare --profile box.json --csv
    [ "$(wc -l <out)" -eq 5 ]
    head -1 out | grep -q '^device,source,price_per_hour,flaw,requests_per_s,'
    /usr/bin/python3 -c 'import csv
rows = list(csv.DictReader(open("out")))
assert [r["model"] for r in rows] == ["net", "net", "net", "other"], rows
assert rows[0]["requests_per_s"] == "213.36" and rows[2]["requests_per_s"] == "", rows'
}

@test "a device that can be had no way is told, and no winner is exit code 3" {
    ends 3 compare net --profile box.json --latency-target 5ms
    says out 'winner     none: no setting keeps the target'
    says out 'out        box: no setting will do'
    says err 'net: no setting keeps the target'
    # A promise needs the percentile that it is made of.
    ends 3 compare other --profile box.json --latency-target 50ms
    says out 'its p99 is not recorded'
    ends 0 compare other --profile box.json --latency-target 50ms --percentile p50
    # Few requests do not fill a batch in time.
    ends 0 compare net --profile acc.json --latency-target 30ms --load 10/s --json
    json out '[c["flaw"] for c in d["networks"][0]["choices"]]' | grep -q 'batch of 8 fills too slowly'
    is out 'd["networks"][0]["choices"][0]["measured"]["batch"] == 1'
}

@test "two networks of one name are not compared without a word" {
    sed 's/"model": "net", "batch": 1,/&"digest": "00",/' box.json >one.json
    sed 's/"model": "net", "batch": 1,/&"digest": "01",/' acc.json >two.json
    ends 0 compare net --profile one.json,two.json
    says out '!          the profiles have different networks'
    ends 0 compare net --profile one.json,two.json --json
    is out '"different networks" in d["networks"][0]["doubt"]'
    sed -i 's/"01"/"00"/' two.json
    ends 0 compare net --profile one.json,two.json --json
    is out 'd["networks"][0]["doubt"] is None'
}

@test "a load that no number of machines serves is refused, not counted past the largest number" {
    ends 3 compare net --profile box.json,acc.json --price prices.yaml --load 1e300/s --json
    is out 'all("more than 1000000000 machines" in c["flaw"] or c["measured"]["status"] != "ok"
                for c in d["networks"][0]["choices"])'
    ends 0 compare net --profile box.json --price prices.yaml --load 1e9/s --json
    is out 'd["networks"][0]["choices"][0]["machines"] == 4686915'
}

@test "too few samples for the percentile are no slow device, and it is told what to do" {
    undisturbed ends 3 compare mnist_mlp --device null --batch 1 --threads 1 --seconds 0.2 \
        --latency-target 50ms
    says out 'samples carry no p99: that takes 299'
    says err 'hint: more --seconds'
    undisturbed ends 0 compare mnist_mlp --device null --batch 1 --threads 1 --seconds 0.5 \
        --latency-target 50ms
}

@test "measured here, recorded there: one comparison" {
    ends 0 compare mnist_mlp --device ref --batch 1 --threads 1 --streams 1 --seconds 0.1 \
        --save here.json
    ends 0 compare mnist_mlp --device null --batch 1 --threads 1 --streams 1 --seconds 0.1 \
        --profile there=here.json --json
    is out '{c["device"] for c in d["networks"][0]["choices"]} == {"null", "there"}'
    is out 'd["networks"][0]["choices"][d["networks"][0]["winner"]]["device"] == "null"'
    # What was saved is a profile, and gives the same answer again.
    ends 0 compare --profile here.json --json
    is out 'd["networks"][0]["choices"][0]["device"] == "here"'
    is out 'd["networks"][0]["choices"][0]["measured"]["streams"] == 1'
}

@test "the price file: mistakes have their place" {
    wrong() { # wrong PATTERN LINE...
        printf '%s\n' "${@:2}" >bad.yaml
        refuses 2 "$1" compare net --profile box.json --price bad.yaml
    }
    wrong "bad.yaml:3:16: a price must be more than 0, not 0" \
        'currency: USD' 'devices:' '  box: {price: 0}'
    wrong "bad.yaml:3:16: a price must be more than 0, not -1" \
        'currency: USD' 'devices:' '  box: {price: -1}'
    wrong "bad.yaml:3:16: a price must be a number, not 'cheap'" \
        'currency: USD' 'devices:' '  box: {price: cheap}'
    wrong "bad.yaml:3:16: a price must be a number, not 'nan'" \
        'currency: USD' 'devices:' '  box: {price: nan}'
    wrong "bad.yaml:3:3: 'box' has no price" 'currency: USD' 'devices:' '  box: {source: a}'
    wrong "bad.yaml:3:9: a device has no key 'prize'*did you mean 'price'" \
        'currency: USD' 'devices:' '  box: {prize: 1}'
    wrong "bad.yaml:3:8: a device must be a mapping" 'currency: USD' 'devices:' '  box: 3'
    wrong "bad.yaml:1:1: a price file needs 'currency'" 'devices: {box: {price: 1}}'
    wrong "bad.yaml: there is no price for 'box'*did you mean 'bax'" \
        'currency: USD' 'devices: {bax: {price: 1}}'
    wrong "bad.yaml: there is no price for 'box'*prices for nothing" 'currency: USD' 'devices: {}'
    wrong "bad.yaml:*" ''
    refuses 2 "none.yaml" compare net --profile box.json --price none.yaml
    # The device's own price will do, unless two machines would take it.
    printf 'currency: USD\ndevices: {cpu: {price: 0.5}}\n' >own.yaml
    ends 0 compare net --profile box.json --price own.yaml --csv
    grep -q '^box,.*,0.5,' out
    ends 0 compare net --profile box.json --price own.yaml
    grep -q '0.5 USD as cpu' out
    cp box.json second.json
    refuses 2 "own.yaml: there is no price for 'second'*prices for cpu" \
        compare net --profile box.json,second.json --price own.yaml
    # Before anything is measured.
    refuses 2 "there is no price for 'ref'" compare resnet152 --device ref --price prices.yaml
}

@test "recorded profiles: another version, cut short, impossible figures" {
    sed 's/"version": 1/"version": 2/' box.json >new.json
    refuses 2 "new.json: a profile of version 2; this hwnas reads version 1" compare --profile new.json
    head -c 400 box.json >cut.json
    refuses 2 "cut.json:*this is no JSON*cut short" compare --profile cut.json
    echo '{"format": "hwnas.study"}' >other.json
    refuses 2 "other.json: this is not a recorded profile" compare --profile other.json
    sed 's/"p50_seconds": 0.010/"p50_seconds": -1/' box.json >bad.json
    refuses 2 "bad.json: row 1 cannot be: a latency and a throughput are more than 0" \
        compare --profile bad.json
    sed 's/"p99_seconds": 0.012/"p99_seconds": 0.001/' box.json >bad.json
    refuses 2 "bad.json: row 1 cannot be: p50, p90 and p99 do not fall" compare --profile bad.json
    sed 's/"batch": 8,/"batch": "8",/' box.json >bad.json
    refuses 2 "bad.json: row 2: 'batch' is of the wrong kind" compare --profile bad.json
    sed 's/"items_per_second": 1000}/"x": 1}/' box.json >bad.json
    refuses 2 "bad.json: row 3: 'items_per_second' is missing" compare --profile bad.json
    sed 's/"dtype": "f16"/"dtype": "f17"/' acc.json >bad.json
    refuses 2 "bad.json: row 1: 'dtype' is of the wrong kind" compare --profile bad.json
    sed 's/"batch": 8,/"batch": 2000000000,/' box.json >bad.json
    refuses 2 "bad.json: row 2 cannot be: a batch is at most" compare --profile bad.json
    sed 's/"streams": 2,/"streams": 2000000000,/' box.json >bad.json
    refuses 2 "bad.json: row 1 cannot be:*streams are at most" compare --profile bad.json
    sed 's/"items_per_second": 200/"items_per_second": 1e-300/' box.json >bad.json
    refuses 2 "bad.json: row 1 cannot be: a latency is at most" compare --profile bad.json
    echo '{"format": "hwnas.profile", "version": 1, "rows": []}' >bad.json
    refuses 2 "bad.json: the profile has no rows" compare --profile bad.json
    refuses 2 "none.json" compare --profile none.json
}

@test "a command line that makes no sense" {
    refuses 2 "which model?" compare
    refuses 2 "none of the models*did you mean 'net'" compare nett --profile box.json
    refuses 2 "no profile has the model 'nett'" compare net nett --profile box.json
    refuses 2 "none of the models*it has net, other, net" compare resnet50 --profile box.json
    refuses 2 "--latency-target '5' is not understood*8ms" compare net --profile box.json \
        --latency-target 5
    refuses 2 "--latency-target '0ms'" compare net --profile box.json --latency-target 0ms
    refuses 2 "--load '-3/s'" compare net --profile box.json --load=-3/s
    refuses 2 "--load '3/year'" compare net --profile box.json --load 3/year
    refuses 2 "--percentile 'p95' is not measured*p50, p90 and p99" compare net --profile box.json \
        --percentile p95
    refuses 2 "--utilisation must be between 0 and 1" compare net --profile box.json --utilisation 1
    refuses 2 "two profiles are called 'box'" compare net --profile box.json,./box.json
    refuses 2 "empty name" compare net --profile box.json,
    refuses 2 "empty name" compare net --profile =box.json
    sed 's/"net"/"mnist_mlp"/' box.json >null.json
    refuses 2 "a profile and a device of here are both called 'null'*another name" \
        compare mnist_mlp --profile null.json --device null
    refuses 2 "no device 'cpuu'" compare net --device cpuu
    refuses 2 "nothing is measured" compare net --profile box.json --save x.json
    refuses 2 "--baseline measures what its file holds" compare --baseline box.json --price prices.yaml
    refuses 2 "a share" compare --baseline box.json --tolerance 5
    ends 0 compare --help
    [ "$(wc -l <out)" -le 40 ]
}

@test "against a baseline: the same, slower, another network, what cannot be measured" {
    ends 0 profile mnist_mlp --device ref --seconds 1 --save then.json
    # A recorded time ten times longer, or shorter, is no matter of a noisy machine; so that these
    # are not ambiguous either way the figures have no doubt.
    scale() { # scale FACTOR FILE OUT
        /usr/bin/python3 - "$@" <<'END'
import json, sys
factor, d = float(sys.argv[1]), json.load(open(sys.argv[2]))
for row in d["rows"]:
    for key in row:
        if key.startswith("p50_") or key.startswith("p9"):
            row[key] = row[key] and row[key] * factor
    row["unstable"], row["doubt"] = False, None
json.dump(d, open(sys.argv[3], "w"))
END
    }
    scale 30 then.json slow.json
    ends 0 compare --baseline slow.json --json
    is out 'd["format"] == "hwnas.baseline" and d["rows"][0]["verdict"] in ("faster", "ambiguous")'
    is out 'd["rows"][0]["ratio"] < 0.5'
    # One that is disturbed all the time accuses nobody; this one never is.
    undisturbed ends 0 profile mnist_mlp --device null --seconds 0.2 --save nothing.json
    scale 0.01 nothing.json fast.json
    undisturbed ends 1 compare --baseline fast.json --json
    says err 'mnist_mlp got slower'
    is out 'd["rows"][0]["verdict"] == "slower" and d["rows"][0]["tries"] == 2'
    sed 's/"digest": "[0-9a-f]*/"digest": "00/' then.json >changed.json
    ends 2 compare --baseline changed.json
    says out 'failed: it is another network than the one that was recorded'
    sed 's/"f32"/"s8"/' then.json >narrow.json
    ends 1 compare --baseline narrow.json
    says err 'does not compute in s8'
    refuses 2 "holds no measurement of what is asked" compare resnet50 --baseline then.json
    refuses 2 "holds no measurement of what is asked for: 'resnet50'" \
        compare mnist_mlp resnet50 --baseline then.json
    refuses 2 "cut.json" compare --baseline cut.json
    sed 's/"processor": "[^"]*"/"processor": "Another"/' then.json >elsewhere.json
    ends 0 compare --baseline elsewhere.json --tolerance 0.99
    says out "not the same machine: processor: recorded 'Another'"
}

@test "a baseline is measured as it was recorded: the mode with its seconds" {
    ends 0 profile mnist_mlp --device null --seconds 0.1 --mode after-idle=0.02 --save then.json
    is then.json 'd["rows"][0]["mode_seconds"] == 0.02'
    # What a runner is asked for, in a file.
    printf '#!/bin/sh\ntee asked | "%s" "$@"\n' "$HWNAS" >runner.sh
    chmod +x runner.sh
    HWNAS_RUNNER=$PWD/runner.sh "$HWNAS" compare --baseline then.json --seconds 0.1 || true # whatever it says
    grep -aq '"idle_seconds":0.02[,0]' asked
    sed -i 's/"after-idle"/"sustained"/; s/"mode_seconds": [0-9.]*/"mode_seconds": 0.25/' then.json
    HWNAS_RUNNER=$PWD/runner.sh "$HWNAS" compare --baseline then.json --seconds 0.1 || true # whatever it says
    grep -aq '"max_seconds":0.25' asked
}

# interrupts SECONDS ARGUMENT...: the program gets SIGINT after a while, and ends with exit code 130.
interrupts() {
    local code=0
    "$HWNAS" "${@:2}" >out 2>err &
    sleep "$1"
    kill -INT $!
    wait $! || code=$?
    [ "$code" -eq 130 ]
}

@test "interrupted, what was measured is kept, and what was judged is told" {
    ends 0 profile mnist_mlp --device ref --seconds 0.05 --save then.json
    interrupts 3 compare mnist_mlp resnet152 --device ref --batch 1 --threads 1 --seconds 0.05 \
        --save half.json
    # On a machine that is very slow not even the small one was finished; then there is no file.
    if grep -q "1 row was finished and saved" err; then
        is half.json '[r["model"] for r in d["rows"]] == ["mnist_mlp"]'
    else
        says err 'interrupted; 0 rows were finished'
        [ ! -e half.json ]
    fi
    [ ! -s out ]
    /usr/bin/python3 - <<'END'
import json
d = json.load(open("then.json"))
d["rows"].append(dict(d["rows"][0], model="resnet152", digest=None))
json.dump(d, open("both.json", "w"))
END
    interrupts 3 compare --baseline both.json --seconds 0.05 --json
    if grep -q "1 of the rows was judged" err; then
        is out '[r["model"] for r in d["rows"]] == ["mnist_mlp"]'
    else
        says err 'interrupted; 0 of the rows were judged'
    fi
}

@test "of a baseline, a model that is gone fails, and the others are judged" {
    ends 0 export --space mnist_mlp --format onnx --out gone.onnx
    undisturbed ends 0 profile gone.onnx mnist_mlp --device null --seconds 0.05 --save then.json
    rm gone.onnx
    undisturbed ends 2 compare --baseline then.json --seconds 0.05 --tolerance 0.99 --json
    is out '[r["verdict"] for r in d["rows"]][0] == "failed" and len(d["rows"]) == 2'
    is out 'd["rows"][1]["verdict"] != "failed" and "gone.onnx" in str(d["rows"][0])'
}

@test "the decision of docs/cpu-or-gpu.md comes out as it says" {
    local answer=$BATS_TEST_TMPDIR/answer
    cd "$HWNAS_SRC"
    ask() {
        "$HWNAS" compare resnet50 --price examples/prices.yaml --percentile p50 --profile \
            examples/profiles/xeon-2c.json,examples/profiles/v100-published.json "$@" \
            >"$answer"
    }
    ask --latency-target 100ms --load 1000/s
    while IFS= read -r line; do
        grep -qxF -- "    $line" docs/cpu-or-gpu.md || [ ! "$line" ] || { echo "$line" && false; }
    done < <(sed -n '4,$p' "$answer" | sed 's/ *$//')
    ask --latency-target 100ms --load 20/s
    says "$answer" 'winner     xeon-2c*1.389 USD a million'
    says "$answer" 'v100 *41.67'
    ask --latency-target 10ms --load 20/s
    says "$answer" 'xeon-2c *no: a batch alone takes 10.24 ms'
    says "$answer" 'out        xeon-2c: no setting will do'
    ask --latency-target 100ms --load 1000/s --percentile p99
    says "$answer" 'xeon-2c *15 *0.4167'
    says "$answer" 'out        v100: *its p99 is not recorded'
}

@test "a folder, an interval that is no share and a batch that no memory holds are told before anything is measured" {
    mkdir models
    refuses 2 "*'models' is a folder, and a model is a file*models'/\*.onnx*" profile models
    refuses 2 "*the interval must be a share below 1, not 2*0.01 is 1 %*" profile mnist_mlp --interval 2
    refuses 2 "*the interval must be a share below 1, not 1*" compare mnist_mlp --interval 1 --latency-target 1ms
    refuses 1 "*resnet50 with batch 262144 takes about * GiB for weights and activations, and there are * GiB of memory*a smaller batch*" \
        profile mnist_mlp resnet50 --batch 1,262144
}
