# evaluate and run: a trained network on samples in files, against PyTorch, ONNX Runtime and NumPy.
load helpers

MODEL=$HWNAS_SRC/tests/data/fashion_tiny.onnx
IMAGES=$HWNAS_SRC/tests/data/fashion_images.gz
LABELS=$HWNAS_SRC/tests/data/fashion_labels.gz
RANGE="--scale 1/255 --mean 0.286 --std 0.353"

# python: runs a script that has NumPy as np, the images x, the labels y and the images as the network takes them.
PRELUDE="import gzip
import numpy as np
images = gzip.open('$IMAGES').read()
x = np.frombuffer(images[16:], np.uint8).reshape(-1, 28, 28)
y = np.frombuffer(gzip.open('$LABELS').read()[8:], np.uint8)
prepared = ((x / 255 - 0.286) / 0.353).astype(np.float32)"
python() {
    need numpy
    { echo "$PRELUDE" && cat; } | /usr/bin/python3 -
}

# same_as_pytorch ARGUMENT...: what PyTorch gives these 256 images (benchmarks/optimize/train.py): 224 right, the
# loss 0.3486.
same_as_pytorch() {
    ends 0 evaluate "$@" --json
    is out 'd["format"] == "hwnas.evaluation" and d["samples"] == 256 and d["task"] == "classify"'
    is out 'd["values"]["top1"]["value"] == 87.5 and d["values"]["top5"]["value"] == 100'
    is out 'abs(d["values"]["loss"]["value"] - 0.3486) < 1e-4'
}

@test "a network gives the answers that PyTorch gave" {
    same_as_pytorch "$MODEL" --data "$IMAGES" --labels "$LABELS" $RANGE
    # Wilson's interval of 224 of 256, and the normal one of the mean.
    is out '[round(d["values"]["top1"][k], 2) for k in ("low", "high")] == [82.89, 91.0]'
    is out 'd["values"]["loss"]["low"] < 0.3486 < d["values"]["loss"]["high"]'
    ends 0 evaluate "$MODEL" --data "$IMAGES" --labels "$LABELS" $RANGE
    says out "top-1*87.50 %*[[]82.89, 91.00]"
    [ ! -s err ]
}

@test "on the 10,000 test images as well" {
    local data=/usr/share/datasets/fashion-mnist/t10k
    [ -e $data-images-idx3-ubyte.gz ] || skip "needs Debian's dataset-fashion-mnist"
    ends 0 evaluate "$MODEL" --data $data-images-idx3-ubyte.gz --labels $data-labels-idx1-ubyte.gz $RANGE --json
    is out 'abs(d["values"]["top1"]["value"] - 85.80) < 0.015' # 8580 of them, by PyTorch
    is out 'abs(d["values"]["loss"]["value"] - 0.396119) < 1e-5'
}

@test "ONNX Runtime gives the same answers" {
    local peer=$HWNAS_SRC/tests/peers
    node "$peer/ort_run.mjs" version >/dev/null 2>&1 || skip "ONNX Runtime is not installed"
    node "$peer/ort_evaluate.mjs" "$MODEL" "$IMAGES" "$LABELS" 0.00392156862745098 0.286 0.353 100 1 ort.bin >ort.json
    is ort.json 'd["right"] == 224'
    ends 0 run "$MODEL" --input "$IMAGES" --output ours.bin --batch 64 $RANGE
    need numpy
    /usr/bin/python3 -c 'import numpy as np
a, b = np.fromfile("ort.bin", "f4"), np.fromfile("ours.bin", "f4")
assert a.shape == b.shape == (2560,) and np.abs(a - b).max() < 1e-4, np.abs(a - b).max()'
}

@test "files of every kind and type hold the same samples" {
    python <<'END'
np.save("x.npy", x), np.save("y.npy", y)
np.savez("plain.npz", x=x, y=y)
np.savez_compressed("packed.npz", x=x[:, None], y=y.astype(np.int64)[:, None])
np.savez("named.npz", pixels=x.astype(np.int32), classes=y.astype(np.float64))
np.savez("input.npz", image=x.astype(np.float16), y=y.astype(np.int8))
np.save("big_endian.npy", x.astype(">f8"))
np.save("wide.npy", x.astype(np.int64)), np.save("flat.npy", x.reshape(-1, 784).astype(np.float32))
np.save("last.npy", x[..., None]), np.save("fortran_labels.npy", np.asfortranarray(y))
np.save("prepared.npy", prepared)
gzip.open("y.npy.gz", "wb").write(open("y.npy", "rb").read())
open("images-idx3-ubyte", "wb").write(images)
END
    local file
    for file in plain.npz packed.npz input.npz "named.npz --x pixels --y classes" "x.npy --labels y.npy" \
        "x.npy --labels y.npy.gz" "big_endian.npy --labels y.npy" "wide.npy --labels $LABELS" \
        "flat.npy --labels plain.npz" "last.npy --labels fortran_labels.npy" "images-idx3-ubyte --labels y.npy" \
        "last.npy --labels y.npy --layout nhwc" "image=x.npy --labels y.npy"; do
        same_as_pytorch "$MODEL" --data $file $RANGE
    done
    same_as_pytorch "$MODEL" --data prepared.npy --labels y.npy
    ends 0 evaluate "$MODEL" --data x.npy --labels y.npy $RANGE --limit 100 --json
    is out 'd["samples"] == 100'
}

@test "batches that are open, fixed, of 1, and the last one that is not full" {
    need onnx
    /usr/bin/python3 - "$MODEL" <<'END'
import sys
import onnx
for batch in (1, 100):
    model = onnx.load(sys.argv[1])
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = batch
    onnx.save(model, f"fixed{batch}.onnx")
END
    local data="--data $IMAGES --labels $LABELS $RANGE"
    same_as_pytorch fixed1.onnx $data
    is out 'd["batch"] == 1'
    same_as_pytorch fixed100.onnx $data
    is out 'd["batch"] == 100'
    same_as_pytorch fixed100.onnx $data --against fixed1.onnx
    is out 'd["values"]["agreement"]["value"] == 100'
    same_as_pytorch "$MODEL" $data --batch 256
    same_as_pytorch "$MODEL" $data --batch 1000
    same_as_pytorch "$MODEL" $data --device ref --batch 7
    refuses 2 "a batch of 100, not 7" evaluate fixed100.onnx $data --batch 7
}

@test "channels first and last, each with its own range" {
    python <<'END'
rng = np.random.default_rng(1)
x = rng.integers(0, 256, (20, 8, 8, 3), np.uint8)
np.save("last.npy", x), np.save("first.npy", np.ascontiguousarray(x.transpose(0, 3, 1, 2)))
means, deviations = np.array([.5, .4, .3])[:, None, None], np.array([.2, .3, .4])[:, None, None]
np.save("want.npy", (x.transpose(0, 3, 1, 2) / 255 - means) / deviations)
END
    echo 'hwnas: 1
name: nothing
input: {x: [3, 8, 8]}
network: [relu]' >nothing.yaml
    local file
    for file in "first.npy" "first.npy --layout nchw" "last.npy --layout nhwc"; do
        ends 0 run nothing.yaml --input $file --scale 1/255 --mean .5,.4,.3 --std .2,.3,.4 --output out.npy
        /usr/bin/python3 -c 'import numpy as np
assert np.allclose(np.load("out.npy"), np.maximum(np.load("want.npy"), 0), atol=1e-6)'
    done
    refuses 2 "a sample is (8, 8, 3), input 'x' of the network takes (3, 8, 8)*--layout nhwc" \
        run nothing.yaml --input last.npy --output out.npy
    refuses 2 "2 values of the mean; input 'x' has 3 channels" \
        run nothing.yaml --input first.npy --mean 1,2 --output out.npy
}

@test "regression and tokens: the figures are NumPy's" {
    need onnx
    /usr/bin/python3 - <<'END'
import json
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

def save(path, node, kind, shape_in, shape_out, constants):
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", kind, ["n", *shape_in])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, ["n", *shape_out])], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), path)

rng = np.random.default_rng(1)
table = rng.normal(size=(11, 7)).astype(np.float32)
save("numbers.onnx", helper.make_node("Tanh", ["x"], ["out"]), TensorProto.FLOAT, [3], [3], [])
save("tokens.onnx", helper.make_node("Gather", ["table", "x"], ["out"]), TensorProto.INT64, [5], [5, 7],
     [numpy_helper.from_array(table, "table")])
x = rng.normal(size=(70, 3)).astype(np.float32)
y = np.tanh(x) + rng.normal(size=x.shape) / 4
np.savez("numbers.npz", x=x, y=y)
error = np.tanh(x.astype(np.float64)) - y
tokens, labels = rng.integers(0, 11, (50, 5)), rng.integers(0, 7, (50, 5))
labels[:, 4] = -100
np.savez("tokens.npz", x=tokens, y=labels), np.savez("beyond.npz", x=tokens + 1, y=labels)
logits = table.astype(np.float64)[tokens]
loss = np.log(np.exp(logits).sum(-1)) - np.take_along_axis(logits, np.maximum(labels, 0)[..., None], -1)[..., 0]
sums = loss[:, :4].sum(1)
with open("want.json", "w") as file:
    json.dump({"mse": (error**2).mean(), "mae": abs(error).mean(),
               "r2": 1 - (error**2).sum() / ((y - y.mean(0))**2).sum(),
               "top1": 100 * (logits.argmax(-1) == labels)[:, :4].mean(), "loss": loss[:, :4].mean(),
               "low": loss[:, :4].mean() - 1.959963984540054 * sums.std(ddof=1) / 4 / 50**.5}, file)
END
    local want key
    ends 0 evaluate numbers.onnx --data numbers.npz --json
    for key in mse mae r2; do
        want=$(json want.json "d['$key']")
        is out "abs(d['values']['$key']['value'] - $want) < 1e-6 and d['task'] == 'regress'"
        is out "d['values']['$key']['low'] < $want < d['values']['$key']['high']"
    done
    ends 0 evaluate tokens.onnx --data tokens.npz --json
    for key in top1 loss; do
        want=$(json want.json "d['$key']")
        is out "abs(d['values']['$key']['value'] - $want) < 1e-5 and d['task'] == 'tokens'"
    done
    is out "abs(d['values']['loss']['low'] - $(json want.json "d['low']")) < 1e-5"
    is out 'd["values"]["perplexity"]["value"] > 1'
    refuses 2 "beyond.npz: sample * of 'x' has the value 11; the network's table has the numbers 0 to 10" \
        evaluate tokens.onnx --data beyond.npz
}

@test "against an original: agreement, noise and the largest difference" {
    computes bf16 || skip "this processor has no bf16"
    ends 0 evaluate "$MODEL" --data "$IMAGES" $RANGE --against "$MODEL" --json
    is out 'd["values"]["agreement"]["value"] == 100 and d["values"]["largest_difference"]["value"] == 0'
    is out 'd["task"] == "none" and d["values"]["sqnr"]["value"] is None'
    ends 0 evaluate "$MODEL" --data "$IMAGES" $RANGE --against "$MODEL" --dtype bf16 --json
    mv out bf16.json
    # By hand, of the outputs that run gives.
    "$HWNAS" run "$MODEL" --input "$IMAGES" $RANGE --batch 32 --output f32.npy
    "$HWNAS" run "$MODEL" --input "$IMAGES" $RANGE --batch 32 --output bf16.npy --dtype bf16
    need numpy
    /usr/bin/python3 - <<'END'
import json
import numpy as np
a, b = (np.load(f"{name}.npy").astype(float) for name in ("f32", "bf16"))
with open("bf16.json") as file:
    got = {key: value["value"] for key, value in json.load(file)["values"].items()}
assert a.shape == (256, 10) and abs(got["sqnr"] - 10 * np.log10((a**2).sum() / ((a - b)**2).sum())) < 1e-6
assert abs(got["largest_difference"] - abs(a - b).max()) < 1e-9
assert got["agreement"] == 100 * (a.argmax(1) == b.argmax(1)).mean()
END
}

@test "int8 takes its ranges from the samples" {
    ends 0 evaluate "$MODEL" --data "$IMAGES" --labels "$LABELS" $RANGE --dtype s8 --calibrate 128 --against "$MODEL" --json
    is out 'd["values"]["top1"]["value"] > 85 and d["values"]["sqnr"]["value"] > 20'
    # Ranges of one image that is nearly black are wrong for the others.
    python <<'END'
np.savez("dark.npz", x=np.concatenate([0 * prepared[:1], prepared]), y=np.concatenate([y[:1], y]))
END
    ends 0 evaluate "$MODEL" --data dark.npz --dtype s8 --calibrate 1 --batch 1 --json
    is out 'd["values"]["top1"]["value"] < 80'
}

@test "a file in int8 with ranges of the samples, as ONNX Runtime computes it" {
    local peer=$HWNAS_SRC/tests/peers
    "$HWNAS" export "$MODEL" --format onnx --dtype s8 --data "$IMAGES" $RANGE --calibrate 128 --out s8.onnx
    ends 0 evaluate s8.onnx --data "$IMAGES" --labels "$LABELS" $RANGE --against "$MODEL" --json
    is out 'd["values"]["top1"]["value"] > 85 and d["values"]["sqnr"]["value"] > 20 and d["batch"] == 1'
    # Ranges of the first image alone are worse.
    "$HWNAS" export "$MODEL" --format onnx --dtype s8 --data "$IMAGES" $RANGE --calibrate 1 --out one.onnx
    mv out many.json
    ends 0 evaluate one.onnx --data "$IMAGES" $RANGE --against "$MODEL" --json
    is out "d['values']['sqnr']['value'] < $(json many.json 'd["values"]["sqnr"]["value"]')"
    refuses 2 "--data goes with --format onnx --dtype s8" \
        export "$MODEL" --format pytorch --data "$IMAGES" --out net.py
    node "$peer/ort_run.mjs" version >/dev/null 2>&1 || skip "ONNX Runtime is not installed"
    node "$peer/ort_evaluate.mjs" s8.onnx "$IMAGES" "$LABELS" 0.00392156862745098 0.286 0.353 1 1 >ort.json
    is ort.json "abs(d['right'] / 2.56 - $(json many.json 'd["values"]["top1"]["value"]')) < 1"
}

@test "run: several inputs by name, outputs in .npy, .npz and raw" {
    python <<'END'
a, b = np.arange(12, dtype=np.float32).reshape(4, 3), np.ones((4, 3), np.float32)
np.save("a.npy", a), np.save("b.npy", b), np.savez("both.npz", a=a, b=b), np.savez("half.npz", b=b)
np.concatenate([a[:1].ravel(), b[:1].ravel()]).tofile("raw.bin")
END
    echo 'hwnas: 1
name: sums
input: {a: [3], b: [3]}
network:
  - add: [[from: a], [from: b]]
  - output: sum
  - from: a
  - relu
  - output: second' >sums.yaml
    local how
    for how in "--input a=a.npy --input b=b.npy" "--input both.npz" "--input b=b.npy --input a=a.npy --batch 3"; do
        ends 0 run sums.yaml $how --output out.npz
        /usr/bin/python3 -c 'import numpy as np
out = list(np.load("out.npz").values())
assert (out[0] == np.arange(12).reshape(4, 3) + 1).all() and (out[1] == np.arange(12).reshape(4, 3)).all(), out'
    done
    ends 0 run sums.yaml --input both.npz --output out.npz --batch 2 --json
    is out "d['format'] == 'hwnas.run' and d['model'] == 'sums.yaml' and d['file'] == 'out.npz'"
    /usr/bin/python3 -c 'import json, numpy
said = [(o["name"], o["shape"]) for o in json.load(open("out"))["outputs"]]
assert said == [(n, list(a.shape)) for n, a in numpy.load("out.npz").items()], said'
    ends 0 run sums.yaml --input raw.bin --output out.bin
    /usr/bin/python3 -c 'import numpy as np
assert np.fromfile("out.bin", "f4").tolist() == [1, 2, 3, 0, 1, 2]'
    refuses 2 "a .npy has one array, there are 2*.npz" run sums.yaml --input both.npz --output out2.npy
    refuses 2 "the network has no input 'c'" run sums.yaml --input c=a.npy --output x.npy
    refuses 2 "there is no file for input 'b'" run sums.yaml --input a=a.npy --output x.npy
    refuses 2 "half.npz: there is no array 'a'; there are b" run sums.yaml --input half.npz --output x.npy
    refuses 2 "both.npz: this would be written over what is read" run sums.yaml --input both.npz --output both.npz
    head -c 12 raw.bin >short.bin
    refuses 2 "short.bin: the file has 12 bytes, the arrays take 24 in fp32" run sums.yaml --input short.bin --output x.npy
    [ ! -e x.npy ]
    [ ! -e out2.npy ]
}

@test "wrong data is refused with the place and what to try" {
    python <<'END'
np.save("x.npy", prepared), np.save("y.npy", y), np.save("wide.npy", np.stack([y] * 3, 1))
np.save("short.npy", y[:100]), np.save("high.npy", np.where(np.arange(256) == 17, 10, y))
np.save("half.npy", np.where(np.arange(256) == 3, 0.5, y)), np.save("negative.npy", y.astype(np.int16) - 5)
nan = prepared.copy()
nan[200, 3, 3] = np.nan
np.save("nan.npy", nan), np.save("none.npy", prepared[:0]), np.save("scalar.npy", np.float32(1))
np.save("small.npy", prepared[:, :14]), np.save("fortran.npy", np.asfortranarray(prepared))
np.save("words.npy", np.array(["a", "b"])), np.save("one_hot.npy", np.eye(10, dtype=np.int64)[y])
np.savez("named.npz", pixels=prepared), np.savez("empty.npz")
np.save("objects.npy", np.array([None, {}]), allow_pickle=True)
whole = open("x.npy", "rb").read()
open("cut.npy", "wb").write(whole[:-100]), open("cut_header.npy", "wb").write(whole[:50])
open("long.npy", "wb").write(whole + b"x"), gzip.open("x.npy.gz", "wb").write(whole)
np.savez_compressed("packed.npz", x=prepared, y=y)
for name in ("x.npy.gz", "packed.npz"):
    data = open(name, "rb").read()
    middle = len(data) // 2
    open("cut_" + name, "wb").write(data[:middle])
    open("changed_" + name, "wb").write(data[:middle] + bytes(99) + data[middle + 99:])
open("huge.npy", "wb").write(whole[:128].replace(b"(256, 28, 28), }         ", b"(256000000000, 28, 28), }"))
END
    mkfifo pipe.npy
    while IFS='|' read -r message arguments; do
        refuses 2 "$message" evaluate "$MODEL" $arguments || { echo "of: $arguments" && false; }
    done <<'END'
--data is missing|--labels y.npy
no labels to compare with*hint: --labels FILE|--data x.npy
has 100 rows, but there are 256 samples|--data x.npy --labels short.npy
high.npy: the label of sample 17 is 10; the network has the classes 0 to 9*count from 1|--data x.npy --labels high.npy
half.npy: the label of sample 3 is 0.5|--data x.npy --labels half.npy
negative.npy: the label of sample|--data x.npy --labels negative.npy
nan.npy: sample 200 of 'image' has the value nan*look at x[[]200]|--data nan.npy --labels y.npy
none.npy: *no samples|--data none.npy --labels y.npy
scalar.npy: the array is a single number|--data scalar.npy --labels y.npy
a sample is (14, 28), input 'image' of the network takes (1, 28, 28)|--data small.npy --labels y.npy
fortran.npy: *Fortran's order*ascontiguousarray|--data fortran.npy --labels y.npy
words.npy: the array is of the type '<U1'|--data words.npy --labels y.npy
objects.npy: the array is of the type '?O'|--data objects.npy --labels y.npy
the network gives (10,) for a sample, a label is (3,)|--data x.npy --labels wide.npy
there is no array 'image' or 'x'; there are pixels*--x names|--data named.npz --labels y.npy
empty.npz: there is no array|--data empty.npz --labels y.npy
cut.npy: the array has *was the file copied whole|--data cut.npy --labels y.npy
cut_header.npy: the file ends within the header|--data cut_header.npy --labels y.npy
long.npy: the array has |--data long.npy --labels y.npy
cut_x.npy.gz: |--data cut_x.npy.gz --labels y.npy
changed_x.npy.gz: |--data changed_x.npy.gz --labels y.npy
cut_packed.npz: the archive cannot be read|--data cut_packed.npz
changed_packed.npz: |--data changed_packed.npz
huge.npy: the array has 0 bytes of values; its shape (256000000000, 28, 28) needs|--data huge.npy --labels y.npy
pipe.npy: this is a pipe|--data pipe.npy --labels y.npy
no file of arrays*.npy and .npz|--data /etc/passwd --labels y.npy
--scale: 'x' is no number|--data x.npy --labels y.npy --scale x
--mean: ',2' is no number|--data x.npy --labels y.npy --mean 1,,2
a standard deviation of 0|--data x.npy --labels y.npy --std 0
the layout is nchw or nhwc, not 'hwc'|--data x.npy --labels y.npy --layout hwc
there is no task 'segment'|--data x.npy --labels y.npy --task segment
these do not fit the task tokens|--data x.npy --labels y.npy --task tokens
these do not fit the task classify*y.argmax(1)|--data x.npy --labels one_hot.npy --task classify
precision|--data x.npy --labels y.npy --dtype f8
END
    refuses 1 "the device null computes nothing" evaluate "$MODEL" --data x.npy --labels y.npy --device null
}

@test "Ctrl-C prints what there is" {
    local data=/usr/share/datasets/fashion-mnist/train
    [ -e $data-images-idx3-ubyte.gz ] || skip "needs Debian's dataset-fashion-mnist"
    "$HWNAS" evaluate "$MODEL" --data $data-images-idx3-ubyte.gz --labels $data-labels-idx1-ubyte.gz $RANGE \
        --device ref --threads 1 --json >out 2>err &
    local pid=$! code=0
    sleep 1.5
    kill -INT $pid
    wait $pid || code=$?
    [ $code -eq 130 ]
    says err "interrupted"
    [ ! -s out ] || is out '0 < d["samples"] < 60000 == d["samples_there"]'
}

@test "the commands of docs/evaluate.md do what it says" {
    local line n=0
    cp "$MODEL" net.onnx
    cp "$IMAGES" images.gz
    cp "$LABELS" labels.gz
    python <<'END'
np.save("x.npy", prepared), np.save("a.npy", prepared[:3, 0, :3]), np.save("b.npy", prepared[:3, 1, :3])
END
    need onnx
    /usr/bin/python3 - <<'END'
import onnx
from onnx import TensorProto, helper
a, b, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 3]) for name in "aby")
graph = helper.make_graph([helper.make_node("Add", ["a", "b"], ["y"])], "g", [a, b], [y])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), "two.onnx")
END
    find_ort
    while read -r line; do
        echo "$line"
        n=$((n + 1))
        [[ $line != *bf16* ]] || computes bf16 || continue
        [[ $line != *ort,* || ${HWNAS_ORT_LIBRARY:-} ]] || continue
        ends 0 ${line#hwnas }
        [ $n != 1 ] || diff <(sed '1d; /^$/d; s/^/    /' out) <(sed -n '/^    top-1/,/95 % interval$/{/./p}' "$HWNAS_SRC/docs/evaluate.md")
    done < <(grep -o '^    hwnas .*' "$HWNAS_SRC/docs/evaluate.md" | sed 's/^ *//')
    [ $n -eq 12 ]
}
