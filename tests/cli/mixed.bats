# --dtype mixed of export, profile and compare: for each layer 8-bit integers or floats, by what it gains and what it costs.
load helpers

MODEL=$HWNAS_SRC/tests/data/fashion_tiny.onnx
IMAGES=$HWNAS_SRC/tests/data/fashion_images.gz
LABELS=$HWNAS_SRC/tests/data/fashion_labels.gz
RANGE="--scale 1/255 --mean 0.286 --std 0.353"
DATA="--data $IMAGES $RANGE"

setup() {
    cd "$BATS_TEST_TMPDIR"
}

# mixed PERCENT ARGUMENT...
mixed() {
    local error=$1
    shift
    ends 0 export "$MODEL" --format onnx --dtype mixed --max-error "$error" --out mixed.onnx --json "$@"
}

# file SCRIPT: of the operators of a file that has been written, as the package onnx reads it.
file() {
    need onnx
    /usr/bin/python3 -c "
import onnx, sys, json
graph = onnx.load('$1').graph
by_output = {o: n for n in graph.node for o in n.output}
def is_s8(node):
    return by_output[node.input[1]].op_type == 'DequantizeLinear' if node.input[1] in by_output else False
products = [n for n in graph.node if n.op_type in ('Conv', 'Gemm', 'MatMul')]
told = {l['name']: l['dtype'] == 's8' for l in json.load(open('out'))['layers']}
$2"
}

@test "the error is kept, and what is told is what the file has" {
    for limit in 0.2 1 4; do
        mixed $limit $DATA --calibrate 256
        is out 'd["format"] == "hwnas.mix" and d["samples"] == 256 and len(d["layers"]) == 4'
        is out "all(w['fits'] == (w['largest_error'] <= $limit / 100) for w in d['ways'])"
        is out 'sum(w["written"] for w in d["ways"]) == 1 and all(w["fits"] for w in d["ways"] if w["written"])'
        file mixed.onnx "
assert len(products) == len(told), (len(products), told)
assert sum(map(is_s8, products)) == sum(told.values()), told"
        # On the same samples, by another command.
        error=$(/usr/bin/python3 -c 'import json
print(max(w["largest_error"] for w in json.load(open("out"))["ways"] if w["written"]))')
        ends 0 run "$MODEL" --input "$IMAGES" --output f32.bin $RANGE
        ends 0 run mixed.onnx --input "$IMAGES" --output mixed.bin $RANGE
        need numpy
        /usr/bin/python3 -c "import numpy as np
a, b = np.fromfile('f32.bin', 'f4'), np.fromfile('mixed.bin', 'f4')
assert abs(abs(a - b).max() / abs(a).max() - $error) < 1e-4, (abs(a - b).max() / abs(a).max(), $error)"
    done
}

@test "with any error allowed no layer stays that gains, and with hardly any all do" {
    mixed 1000 $DATA
    is out 'all(l["dtype"] == "s8" or l["s8_seconds"] > 0.98 * l["f32_seconds"] for l in d["layers"]) or
            [w["name"] for w in d["ways"] if w["written"]] == ["f32"]'
    mixed 0.0001 $DATA
    is out 'all(l["dtype"] == "f32" for l in d["layers"])'
    file mixed.onnx "assert not any(n.op_type == 'QuantizeLinear' for n in graph.node)"
}

@test "ONNX Runtime has the accuracy that we have" {
    local peer=$HWNAS_SRC/tests/peers
    node "$peer/ort_run.mjs" version >/dev/null 2>&1 || skip "ONNX Runtime is not installed"
    mixed 2 $DATA
    node "$peer/ort_evaluate.mjs" mixed.onnx "$IMAGES" "$LABELS" 0.00392156862745098 0.286 0.353 1 1 >ort.json
    ends 0 evaluate mixed.onnx --data "$IMAGES" --labels "$LABELS" $RANGE --json
    right=$(/usr/bin/python3 -c 'import json; print(json.load(open("ort.json"))["right"])')
    is out "abs(d['values']['top1']['value'] - 100 * $right / 256) <= 100 / 256" # one image, by rounding
}

@test "as a table; random inputs where there are no samples, and a network of a space" {
    ends 0 export --space mnist_cnn --format onnx --dtype mixed --max-error 0.5 --out net.onnx
    says out "mnist_cnn, cpu, batch 1: 4 layers that can be in s8; error at most 0.5 %*layers in s8*of f32*written*"
    says err "*random inputs: --data FILE has yours*"
    [ -s net.onnx ]
}

@test "a limit of 0 is 0: all stays in floats" {
    mixed 0 $DATA
    is out 'd["max_error"] == 0 and all(l["dtype"] == "f32" for l in d["layers"])'
    is out '[w["name"] for w in d["ways"] if w["written"]] == ["f32"]'
}

@test "profile and compare choose, measure and show it beside the others" {
    ends 0 profile "$MODEL" --dtype f32,mixed --max-error 1000 --seconds 0.1 --json --save p.json
    is out '[r["dtype"] for r in d["rows"]] == ["f32", "mixed"]'
    is out 'd["rows"][1]["max_error"] == 10 and 0 <= d["rows"][1]["mixed_error"] <= 10'
    is out 'd["rows"][0]["max_error"] is None and d["rows"][0]["layers_in_s8"] == 0'
    is out 'd["rows"][0]["digest"] == d["rows"][1]["digest"] and "--dtype mixed --max-error 1000" in d["rows"][1]["command"]'
    ends 0 profile "$MODEL" --dtype mixed --max-error 0 --seconds 0.1
    says out "*mixed: 0 layers in s8, the others in f32, largest difference from f32 0.00 %*limit 0 %*"
    # What was kept is read again.
    ends 0 compare --profile p.json --percentile p50 --json
    is out '{c["measured"]["dtype"] for c in d["networks"][0]["choices"]} == {"f32", "mixed"}'
    ends 0 compare "$MODEL" --dtype mixed --threads 1 --batch 1 --streams 1 --seconds 0.1
    says out "*mixed*"
}

# parts: even.npz and odd.npz, the samples that choose and those that are held out, and all.npz. Each is a mixture of two
# images between whose classes f32 hardly decides, so that a small error decides otherwise. Labels are what f32 says.
parts() {
    need numpy
    /usr/bin/python3 - "$IMAGES" <<'END'
import gzip, sys, numpy as np
x = np.frombuffer(gzip.open(sys.argv[1]).read(), np.uint8, offset=16).reshape(-1, 1, 28, 28)
x = (x / 255 - 0.286) / 0.353
np.save("x.npy", np.concatenate([x + t * (np.roll(x, 1, 0) - x) for t in np.linspace(0.2, 0.8, 16)]).astype("f4"))
END
    ends 0 run "$MODEL" --input x.npy --output y.npy
    /usr/bin/python3 - <<'END'
import numpy as np
x, y = (np.load(f).reshape(16, 256, -1) for f in ("x.npy", "y.npy"))
best = np.sort(y, 2)
nearest = (best[..., -1] - best[..., -2]).argmin(0), np.arange(256)
x, y = x[nearest].reshape(-1, 1, 28, 28), y[nearest].argmax(1)
np.savez("all.npz", x=x, y=y)
np.savez("even.npz", x=x[::2], y=y[::2])
np.savez("odd.npz", x=x[1::2], y=y[1::2])
END
}

# top1 NAME FILE ARGUMENT...: what `evaluate` says, as a variable.
top1() {
    local name=$1
    shift
    ends 0 evaluate "$@" --json
    printf -v "$name" %s "$(/usr/bin/python3 -c 'import json; print(json.load(open("out"))["values"]["top1"]["value"])')"
}

@test "with labels accuracy judges, and tells on samples that are held out what was lost" {
    parts
    top1 even "$MODEL" --data even.npz
    top1 odd "$MODEL" --data odd.npz
    top1 even_s8 "$MODEL" --data even.npz --dtype s8
    ends 0 export "$MODEL" --format onnx --dtype mixed --max-loss 0 --data all.npz --out mixed.onnx --json
    cp out mix.json
    is mix.json 'd["metric"] == "top1" and d["samples"] == d["held_out"] == 128 and d["max_loss"] == 0 and d["max_error"] is None'
    is mix.json "all(w['fits'] == ($even <= w['accuracy'] + 1e-6) for w in d['ways'])"
    is mix.json "[(w['accuracy'], w['held_out_accuracy']) for w in d['ways'] if w['name'] == 'f32'] == [($even, $odd)]"
    is mix.json "[w['accuracy'] for w in d['ways'] if w['name'] == 's8'] == [$even_s8]"
    is mix.json 'all(w["fits"] for w in d["ways"] if w["written"])'
    top1 written mixed.onnx --data odd.npz
    is mix.json "[abs(w['held_out_accuracy'] - $written) <= 100 / 128 for w in d['ways'] if w['written']] == [True]" # one image, by rounding
    # In eight bits it loses more than nothing: the limit is one.
    is mix.json "$even_s8 < $even"

    ends 0 profile "$MODEL" --dtype mixed --max-loss 40.5 --data all.npz --seconds 0.1 --json
    is out '[(r["choice_samples"], r["held_out_samples"], r["accuracy_metric"], r["max_loss"]) for r in d["rows"]] == [(128, 128, "top1", 40.5)]'
    s8=$(/usr/bin/python3 -c 'import json; print(*[w["held_out_accuracy"] for w in json.load(open("mix.json"))["ways"] if w["name"] == "s8"])')
    is out "d['rows'][0]['f32_accuracy'] == $odd and d['rows'][0]['s8_accuracy'] == $s8"
    is out 'd["rows"][0]["accuracy_low"] < d["rows"][0]["accuracy"] <= d["rows"][0]["accuracy_high"]'
    # The command of the row does it again.
    command=$(/usr/bin/python3 -c 'import json; print(json.load(open("out"))["rows"][0]["command"])')
    eval "ends 0 ${command#hwnas }"
    says out "*top1 on 128 samples held out: mixed *, f32 *, all in s8 *at most 40.5 points below f32*"

    # So does a comparison, which keeps what it measured.
    ends 0 compare "$MODEL" --dtype mixed --threads 1 --batch 1 --streams 1 --percentile p50 --max-loss 40.5 --data all.npz --seconds 0.1 \
        --save p.json
    says out "*winner *layer* in s8, *on 128 samples*top1 on 128 samples held out: mixed *, all in s8 *at most 40.5 points below f32*"
    not grep "may cost accuracy" out
    cp out told
    ends 0 compare --profile cpu=p.json --percentile p50 --json
    is out "[(c['measured']['choice_samples'], c['measured']['max_loss'], c['measured']['f32_accuracy'], c['measured']['s8_accuracy'])
             for c in d['networks'][0]['choices']] == [(128, 40.5, $odd, $s8)]"
    ends 0 compare --profile cpu=p.json --percentile p50
    grep "top1 on" told >here
    grep "top1 on" out >read
    cmp here read
}

@test "profile without labels compares outputs on the samples" {
    ends 0 profile "$MODEL" --dtype mixed $DATA --max-error 1 --calibrate 32 --seconds 0.1 --json --save p.json
    is out 'd["rows"][0]["choice_samples"] == 32 and d["rows"][0]["mixed_error"] <= 0.01 == d["rows"][0]["max_error"]'
    is out 'd["rows"][0]["accuracy"] is None and d["rows"][0]["held_out_samples"] == 0 and "--scale" in d["rows"][0]["command"]'
    ends 1 compare --baseline p.json --seconds 0.1
    says out "*chosen by samples of the user's*"
}

@test "samples that do not fit are told before anything is measured" {
    ends 2 profile "$MODEL" --dtype f32 $DATA
    says err "*nothing mixed is measured*"
    ends 2 profile "$MODEL" --dtype mixed --labels "$LABELS"
    says err "*--labels needs --data*"
    ends 2 profile "$MODEL" --dtype mixed $DATA --labels "$LABELS" --max-loss -1
    says err "*--max-loss must be a number >= 0*"
    ends 2 profile "$MODEL" --dtype f32,mixed $DATA --max-loss 3
    says err "*--max-loss needs --labels*"
    [ ! -s out ]
    ends 2 export "$MODEL" --format onnx --dtype mixed $DATA --max-loss 0 --out net.onnx
    says err "*--max-loss needs --labels*"
    [ ! -e net.onnx ]
    ends 2 profile "$MODEL" --dtype f32,mixed --data absent.npz
    [ ! -s out ]
    ends 2 profile "$MODEL" --dtype f32,mixed --data "$LABELS" # another shape
    [ ! -s out ]
    cp "$HWNAS_SRC/tests/data/profile_layers.json" p.json
    refuses 2 "nothing mixed is measured" compare "$MODEL" --dtype f32 $DATA
    refuses 2 "--labels needs --data" compare "$MODEL" --dtype mixed --labels "$LABELS"
    refuses 2 "--limit needs --data" compare "$MODEL" --dtype mixed --limit 5
    refuses 2 "calibrate is of samples" compare "$MODEL" --dtype mixed --calibrate 5
    refuses 2 "how samples are read*and there are none" compare "$MODEL" --dtype mixed --scale 2
    refuses 2 "--max-loss needs --labels" compare "$MODEL" --dtype f32,mixed $DATA --max-loss 3
    refuses 2 "absent.npz" compare "$MODEL" --dtype f32,mixed --data absent.npz
    refuses 2 "nothing is measured here" compare --profile p.json --dtype mixed $DATA
    refuses 2 "--baseline measures what its file holds" compare --baseline p.json $DATA
    refuses 2 "--input belongs to --outputs*hint: *--data FILE" compare "$MODEL" --dtype mixed --input "$IMAGES"
    refuses 2 "which need no labels" compare --outputs "$MODEL" $DATA
    cp "$IMAGES" mine.gz
    refuses 2 "mine.gz" compare "$MODEL" --dtype mixed --data mine.gz $RANGE --save mine.gz
    cmp "$IMAGES" mine.gz
    refuses 2 "mine.gz" compare "$MODEL" --dtype mixed $DATA --labels mine.gz --save mine.gz
    refuses 2 "mine.gz" profile "$MODEL" --dtype mixed $DATA --labels mine.gz --save mine.gz
    cmp "$IMAGES" mine.gz
    ends 2 profile "$MODEL" --dtype f32,mixed $DATA --labels "$IMAGES"
    says err "*$IMAGES: *a label is (28, 28): these do not fit*"
    [ ! -s out ]
    need numpy
    /usr/bin/python3 -c 'import numpy as np; np.save("wrong.npy", np.full(256, 10))' # of eleven classes
    ends 2 profile "$MODEL" --dtype f32,mixed $DATA --labels wrong.npy
    says err "*wrong.npy*label of sample 0 is 10*"
    [ ! -s out ]
}

@test "labels by which no loss can be told choose nothing" {
    need numpy
    /usr/bin/python3 - <<'END'
import numpy as np
np.save("same.npy", np.full((256, 10), 0.1))
np.save("differ.npy", np.arange(2560.0).reshape(256, 10))
END
    ends 2 export "$MODEL" --format onnx --dtype mixed $DATA --labels same.npy --limit 32 --out net.onnx
    says err "*same.npy: all labels of the samples that choose are the same (16 of 32 *hint: *max-error*"
    # One of two samples chooses.
    ends 2 export "$MODEL" --format onnx --dtype mixed $DATA --labels differ.npy --limit 2 --out net.onnx
    says err "*differ.npy: all labels of the samples that choose are the same (1 of 2 *"
    [ ! -e net.onnx ]
    refuses 2 "*same.npy: all labels of the samples that choose are the same (16 of 32 *" profile "$MODEL" --dtype f32,mixed $DATA \
        --labels same.npy --limit 32
    # Two of three choose; of the other by itself there is no r2.
    ends 0 profile "$MODEL" --dtype mixed $DATA --labels differ.npy --limit 3 --seconds 0.1
    says out "*r2 on 1 sample held out: mixed not defined, f32 not defined, all in s8 not defined; at most 1 point below f32*"
}

@test "mixed-bf16: layers may be in bf16 or all floats, with the error that this has" {
    share_rooflines
    "$HWNAS" devices cpu --json >devices
    is devices '"bf16" in d["devices"][0]["native"]' || skip "this processor has no instructions for bf16"
    ends 0 export "$MODEL" --format onnx --dtype mixed-bf16 --max-error 3 --out mixed.onnx --json $DATA --calibrate 256
    cp out mix.json
    is mix.json '{w["name"]: w["floats"] for w in d["ways"]}["bf16"] == "bf16"'
    is mix.json 'all(l["bf16_seconds"] > 0 and l["bf16_noise_alone"] > 0 and l["dtype"] in ("s8", "bf16", "f32") for l in d["layers"])'
    is mix.json 'all(sum(l["dtype"] == p for l in d["layers"]) == w["layers_in_" + p] for p in ("s8", "bf16") for w in d["ways"] if w["written"])'
    floats=$(/usr/bin/python3 -c 'import json; print(*(w["floats"] for w in json.load(open("mix.json"))["ways"] if w["written"]))')
    if [ "$floats" = bf16 ]; then says err "*the file is in f32: --dtype bf16*"; fi
    ends 0 run "$MODEL" --input "$IMAGES" --output f32.bin $RANGE
    ends 0 run "$MODEL" --dtype bf16 --input "$IMAGES" --output bf16.bin $RANGE
    ends 0 run mixed.onnx --dtype "$floats" --input "$IMAGES" --output mixed.bin $RANGE
    need numpy
    /usr/bin/python3 - <<'END'
import json, numpy as np
ways = json.load(open("mix.json"))["ways"]
right = np.fromfile("f32.bin", "f4")
error = lambda file: abs(np.fromfile(file, "f4") - right).max() / abs(right).max()
told = {w["name"]: w["largest_error"] for w in ways}
assert abs(error("bf16.bin") - told["bf16"]) < 1e-4, (error("bf16.bin"), told)
[written] = [w for w in ways if w["written"]]
assert abs(error("mixed.bin") - written["largest_error"]) < 1e-4 and written["largest_error"] <= 0.03, (error("mixed.bin"), written)
END
    ends 0 profile "$MODEL" --dtype mixed-bf16 --seconds 0.1 --json --save p.json
    is out 'd["rows"][0]["dtype"] == "mixed-bf16" and d["rows"][0]["floats"] in ("f32", "bf16") and "--dtype mixed-bf16" in d["rows"][0]["command"]'
    # Chosen anew; a machine that others use may be slower by then.
    "$HWNAS" compare --baseline p.json --seconds 0.1 >out 2>err || says err "*got slower: *"
    says out "*mixed-bf16*"
}

@test "where layers cannot be chosen the row says why" {
    ends 1 profile "$MODEL" --device ref --dtype mixed --seconds 0.1
    says out "*on the device cpu alone*"
    ends 2 profile "$MODEL" --dtype s8 --max-error 1
    says err "*--max-error goes with --dtype mixed*"
    ends 2 profile "$MODEL" --dtype mixed --max-error -1
}

@test "what cannot be is told, and writes nothing" {
    ends 2 export "$MODEL" --format pytorch --dtype mixed --out net.py
    says err "*mixed with --format onnx*"
    ends 2 export "$MODEL" --format onnx --dtype s8 --max-error 1 $DATA --out net.onnx
    says err "*--max-error goes with --dtype mixed*"
    ends 2 export "$MODEL" --format onnx --dtype mixed --max-error -1 --out net.onnx
    ends 2 export "$MODEL" --format onnx --dtype mixed --data "$LABELS" --out net.onnx
    ends 0 export "$MODEL" --format onnx --dtype s8 $DATA --out s8.onnx
    ends 2 export s8.onnx --format onnx --dtype mixed --out net.onnx
    says err "*quantized already*network of floats*"
    cp "$MODEL" mine.onnx
    ends 2 export mine.onnx --format onnx --dtype mixed --out mine.onnx
    cmp mine.onnx "$MODEL"
    [ ! -e net.onnx ]
    [ ! -e net.py ]
}
