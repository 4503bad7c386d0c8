# compare --outputs: what two networks compute of the same inputs, against NumPy and ONNX Runtime.
load helpers

MODEL=$HWNAS_SRC/tests/data/fashion_tiny.onnx
IMAGES=$HWNAS_SRC/tests/data/fashion_images.gz

# network FILE ALPHA: a network, and the alpha of its second activation.
network() {
    cat >"$1" <<EOF
hwnas: 1
name: network
input: {image: [3, 16, 16]}
network:
  - conv: {out: 8, kernel: 3, pad: 1}
  - relu
  - conv: {out: 8, kernel: 3, pad: 1}
  - leaky_relu: {alpha: $2}
  - conv: {out: 4, kernel: 1}
EOF
}

@test "the processor computes what the reference does, node by node" {
    ends 0 compare --outputs mobilenet_v2 --json
    is out 'd["format"] == "hwnas.differences" and d["random_inputs"] and d["runs"] == 1'
    is out '[s["device"] for s in d["compared"]] == ["ref", "cpu"]'
    is out 'len(d["nodes"]) > 150 and d["compared"][0]["other_nodes"] == 0'
    is out 'all(0 <= n["largest_error"] < 1e-4 for n in d["nodes"] + d["outputs"])'
    is out 'any(n["largest_error"] > 0 for n in d["nodes"])'
}

@test "a network is the file that is exported of it" {
    ends 0 export --space deit_tiny --format onnx --out d.onnx
    ends 0 compare --outputs deit_tiny d.onnx --csv
    says out "kind,name,op,shape,largest_value*output,*,0,0,0,false"
    not grep -v ',0,0,0,false$' <(tail -n +2 out)
    [ "$(wc -l <out)" -gt 300 ]
}

@test "differences are those that NumPy finds in what run writes" {
    computes bf16 || skip "this processor has no bf16"
    need numpy
    range="--scale 1/255 --mean 0.286 --std 0.353"
    ends 0 run "$MODEL" --input "$IMAGES" $range --batch 256 --output f32.npy
    ends 0 run "$MODEL" --input "$IMAGES" $range --batch 256 --dtype bf16 --output bf16.npy
    ends 0 compare --outputs "$MODEL" --device cpu,cpu --dtype f32,bf16 --input "$IMAGES" $range --batch 256 --json
    /usr/bin/python3 - <<'EOF'
import json
import numpy as np
right, got = np.load("f32.npy"), np.load("bf16.npy")
found = json.load(open("out"))["outputs"][0]
difference = np.abs(got - right).max()
assert difference > 0
assert np.isclose(found["largest_difference"], difference, rtol=1e-6), found
assert np.isclose(found["largest_value"], np.abs(right).max(), rtol=1e-6), found
noise = np.sqrt(((got - right).astype(float) ** 2).sum() / (right.astype(float) ** 2).sum())
assert np.isclose(found["noise"], noise, rtol=1e-5), (found, noise)
EOF
}

@test "outputs are of the network as it is deployed, batch norms folded" {
    computes bf16 || skip "this processor has no bf16"
    need numpy
    /usr/bin/python3 -c "
import numpy as np
np.save('x.npy', np.random.default_rng(1).normal(size=(1, 3, 32, 32)).astype(np.float32))"
    ends 0 run resnet32_cifar --input x.npy --output f32.npy
    ends 0 run resnet32_cifar --input x.npy --dtype bf16 --output bf16.npy
    ends 0 compare --outputs resnet32_cifar --device cpu,cpu --dtype f32,bf16 --input x.npy --tolerance 1 --json
    /usr/bin/python3 -c "
import json
import numpy as np
difference = np.abs(np.load('f32.npy') - np.load('bf16.npy')).max()
found = json.load(open('out'))['outputs'][0]
assert difference > 0 and np.isclose(found['largest_difference'], difference, rtol=1e-6), (found, difference)"
}

@test "the first node that differs is named" {
    network a.yaml 0.1
    network b.yaml 0.5
    ends 0 compare --outputs a.yaml a.yaml
    says out "equal"
    not grep -q '!' out
    ends 1 compare --outputs a.yaml b.yaml
    says out "first 'leaky_relu' (leaky_relu)"
    says err "output 'conv_2' differs by"
    ends 1 compare --outputs a.yaml b.yaml --json
    is out '[n["name"] for n in d["nodes"] if n["beyond_tolerance"]] == ["leaky_relu", "conv_2"]'
    ends 0 compare --outputs a.yaml b.yaml --tolerance 1
    ends 0 compare --outputs a.yaml a.yaml --tolerance 0
    ends 1 compare --outputs a.yaml --tolerance 0
}

@test "ONNX Runtime is the other side" {
    find_ort
    [ -n "${HWNAS_ORT_LIBRARY:-}" ] || skip "there is no ONNX Runtime"
    ends 0 compare --outputs "$MODEL" --device ort,cpu --json
    is out 'len(d["nodes"]) > 5 and all(n["largest_error"] < 1e-4 for n in d["nodes"])'
    is out 'd["compared"][0]["device"] == "ort"'
}

@test "what cannot be compared is refused" {
    network a.yaml 0.1
    sed 's/16, 16/8, 8/' a.yaml >small.yaml
    sed '$d' a.yaml >short.yaml
    refuses 2 "input 'image' of a.yaml is 1x3x16x16, 'image' of small.yaml is 1x3x8x8" compare --outputs a.yaml small.yaml
    refuses 2 "output 'conv_2' of a.yaml is 1x4x16x16, 'leaky_relu' of short.yaml is 1x8x16x16" compare --outputs a.yaml short.yaml
    refuses 2 "one model or two, not 3" compare --outputs a.yaml a.yaml a.yaml
    refuses 2 "one model or two, not 0" compare --outputs
    refuses 2 "takes 2 devices at most, not 3" compare --outputs a.yaml --device cpu,ref,cpu
    refuses 2 "no mixed precision" compare --outputs a.yaml --dtype mixed
    refuses 2 "--outputs goes without --load" compare --outputs a.yaml --load 3
    refuses 2 "--outputs goes without --seconds" compare --outputs a.yaml --seconds 3
    refuses 2 "of --outputs --input, and there are none" compare --outputs a.yaml --scale 3
    refuses 2 "--input belongs to --outputs" compare a.yaml --input x.npy
    refuses 2 "--tolerance belongs to --baseline, or to --outputs" compare a.yaml --device null --tolerance 0.1
    refuses 1 "computes nothing" compare --outputs a.yaml --device null
    refuses 2 "no-such-file" compare --outputs a.yaml --input no-such-file.npy
}

@test "a large network on ref is told to take long" {
    "$HWNAS" compare --outputs vgg16 >out 2>err </dev/null &
    until grep -q "another runtime" err || ! kill -0 $! 2>/dev/null; do sleep 0.05; done
    kill $! 2>/dev/null || true
    says err "note: ref takes about"
    says err "s for vgg16; another runtime"
}
