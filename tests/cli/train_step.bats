# profile --training: a training step in the place of an inference.
load helpers

# same_gradients NETWORK BATCH [smooth]: those of the device cpu are PyTorch's. $arch: which network of a space.
same_gradients() {
    ends 0 export --space "$1" ${arch:+--arch "$arch"} --batch "$2" --format onnx --out "$1.onnx"
    gradients_of "$1.onnx" "${@:3}"
}

# gradients_of NET.onnx [smooth]: the same of a file.
gradients_of() {
    /usr/bin/python3 "$HWNAS_SRC/tests/peers/torch_gradients.py" "$HWNAS" "${HWNAS%/*}/tests/cli/train_step" \
        1e-4 "$1" f32 "${@:2}"
}

@test "training: gradients are PyTorch's: perceptron, convolutions and pools, an embedding" {
    need torch
    same_gradients mnist_mlp 8
    same_gradients mnist_cnn 4
    same_gradients imdb_fasttext 8
}

@test "training: gradients are PyTorch's: residuals and batch norms" {
    need torch
    same_gradients resnet32_cifar 4 smooth
}

@test "training: gradients are PyTorch's: a transformer, whose scores are scaled by one number and whose biases are added to rows" {
    need torch
    arch=layers=2,hidden=128,heads=2,ffn=41 same_gradients bert:length=8,vocabulary=64 3
}

@test "training: gradients are PyTorch's: operands that are repeated" {
    need torch
    # Along the first dimensions, the last, all of them, and in the middle.
    printf '%s\n' 'hwnas: 1' 'name: repeated' 'input: {x: [4, 6]}' 'network:' \
        '  - linear: {out: 6}' \
        '  - add: [[], [weight: {shape: [6]}]]' \
        '  - mul: [[], [weight: {shape: [4, 1]}]]' \
        '  - mul: [[], [weight: {shape: [1]}]]' \
        '  - tanh' \
        '  - add: [[], [weight: {shape: [4, 6]}]]' \
        '  - transpose: {order: [0, 2, 1]}' \
        '  - mul: [[], [weight: {shape: [1, 4]}]]' \
        '  - mul: [[], [weight: {shape: [1, 1]}]]' \
        '  - flatten' '  - linear: {out: 3}' >repeated.yaml
    same_gradients repeated.yaml 5
}

@test "training: gradients are PyTorch's: LSTM and GRU in one direction and in both, stacked, from the end as well" {
    need torch
    same_gradients imdb_bilstm 2
    same_gradients lstm_text_generation 3
    printf '%s\n' 'hwnas: 1' 'name: mixed' 'input: {x: [6, 10]}' 'network:' \
        '  - lstm: {out: 9}' \
        '  - lstm: {out: 5, bidirectional: true, biases: 1}' \
        '  - gru: {out: 7}' \
        '  - gru: {out: 4, bidirectional: true, biases: 0}' \
        '  - flatten' '  - linear: {out: 3}' >mixed.yaml
    same_gradients mixed.yaml 3
    # ONNX has a direction that spaces have not: the words for it are of one length.
    [ "$(grep -ao forward mixed.yaml.onnx | wc -l)" -eq 2 ]
    sed 's/forward/reverse/' mixed.yaml.onnx >reverse.onnx
    gradients_of reverse.onnx
}

# A slice and a part of what is joined have the same gaps between their rows of channels.
@test "training: gradients are PyTorch's: parts that are joined" {
    need torch
    printf '%s\n' 'hwnas: 1' 'name: shuffle' 'input: {x: [3, 6, 6]}' 'network:' \
        '  - conv: {out: 8, kernel: 3, pad: 1}' \
        '  - concat:' \
        '      - - slice: {end: 4}' \
        '      - - slice: {begin: 4}' \
        '        - conv: {out: 4, kernel: 3, pad: 1}' \
        '  - concat: [[slice: {begin: 4}], [slice: {end: 4}]]' \
        '  - flatten' '  - linear: {out: 3}' >shuffle.yaml
    same_gradients shuffle.yaml 2
    # The last states of a recurrent layer that reads in both directions are joined too.
    /usr/bin/python3 - <<'END'
import torch
class Last(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = torch.nn.GRU(10, 5, batch_first=True, bidirectional=True)
        self.out = torch.nn.Linear(5, 3)
    def forward(self, x):
        return self.out(self.gru(x)[1].transpose(0, 1)).flatten(1)
class Place(Last):
    def forward(self, x):
        y, h = self.gru(x)
        return self.out(y[:, -1, :5] + h[1])
for name, module in ("last", Last()), ("place", Place()):
    torch.onnx.export(module.eval(), torch.zeros(2, 6, 10), name + ".onnx", input_names=["x"], output_names=["y"])
END
    gradients_of last.onnx
    gradients_of place.onnx # by a Gather of one constant
}

@test "training: profile measures a step, with either optimizer, and keeps that it was one" {
    ends 0 profile mnist_mlp --training --batch 4 --threads 1 --seconds 0.05 --json --save sgd.json
    is out "[r['status'] for r in d['rows']] == ['ok'] and d['rows'][0]['training'] == 'sgd'"
    # At least weights and momentum, as floats.
    is out "d['rows'][0]['memory_bytes'] > 2 * 4 * d['rows'][0]['params']"
    is sgd.json "d['rows'][0]['training'] == 'sgd' and ' --training --optimizer sgd' in d['rows'][0]['command']"
    cp out sgd
    ends 0 profile mnist_mlp --training --optimizer adamw --batch 4 --threads 1 --seconds 0.05 --json
    is out "d['rows'][0]['training'] == 'adamw'"
    is out "d['rows'][0]['memory_bytes'] >= $(json sgd "d['rows'][0]['memory_bytes'] + 4 * d['rows'][0]['params']")"
    ends 0 profile mnist_mlp --batch 4 --threads 1 --seconds 0.05 --json
    is out "d['rows'][0]['training'] == 'none'"
    # A step is no slow inference.
    refuses 2 "has no inference that could be compared" compare --profile sgd.json
}

@test "training: --layers tells forward, loss, backward and update" {
    ends 0 profile mnist_cnn --training --layers --batch 4 --threads 1 --seconds 0.1 --json
    is out "{l['how'] for l in d['rows'][0]['layers']['list']} == {'forward', 'loss', 'backward', 'update'}"
}

@test "training: in bf16 as well" {
    share_rooflines
    "$HWNAS" devices cpu --json >devices
    is devices "'bf16' in d['devices'][0]['native'] + d['devices'][0]['emulated']" || skip "needs products in bf16"
    ends 0 profile mnist_cnn lstm_text_generation --training --dtype bf16 --batch 4 --threads 1 --seconds 0.05 --json
    is out "[(r['status'], r['dtype']) for r in d['rows']] == [('ok', 'bf16')] * 2"
}

@test "training: PyTorch's step is measured beside it" {
    need torch
    ends 0 profile mnist_cnn imdb_fasttext --training --device torch --batch 4 --threads 1 --seconds 0.05 --json
    is out "[r['status'] for r in d['rows']] == ['ok'] * 2 and all(r['memory_bytes'] > 0 for r in d['rows'])"
}

@test "training: what cannot be trained is told, and why" {
    ends 1 profile mnist_mlp --training --device ref
    says out "the device 'ref' does not train"
    ends 1 profile mnist_mlp --training --dtype f16
    says out "the device 'cpu' does not train in f16"
    if [ "$(uname -m)" = x86_64 ]; then
        ONEDNN_MAX_CPU_ISA=AVX2 ends 1 profile mnist_mlp --training --dtype bf16
        says out "this processor has no bf16"
        says err "it trains in f32"
    fi
    refuses 2 "--optimizer belongs to --training" profile mnist_mlp --optimizer adamw
    refuses 2 "there is no optimizer 'adam'*sgd, adamw" profile mnist_mlp --training --optimizer adam
    refuses 2 "training steps are measured in the mode hot" profile mnist_mlp --training --mode cold
    printf '%s\n' 'hwnas: 1' 'name: slopes' 'input: {x: [4, 8, 8]}' 'network:' '  - prelu' '  - flatten' '  - linear: {out: 4}' >slopes.yaml
    ends 1 profile slopes.yaml --training
    says out "has no gradient of the operator 'prelu'"
}

# told_and_held NETWORK BATCH: bytes that a step is told to need, and the most that its process held.
told_and_held() {
    ends 0 profile "$1" --training --batch "$2" --threads 1 --seconds 0.01 --runs 1 --json
    json out "f\"{d['rows'][0]['memory_bytes']} {d['rows'][0]['peak_memory_bytes']}\""
}

@test "training: the memory of a step is told within a tenth of what is then held" {
    local network less more few many
    told_and_held mnist_mlp 1 >figures
    [[ $(<figures) != *" 0" ]] || skip "the system does not tell a process its peak"
    # What a larger batch takes more, so that code, libraries and compiled primitives do not count ...
    for network in "mnist_mlp 64 2048" "mnist_cnn 8 96" "imdb_fasttext 16 512" "resnet32_cifar 8 64" "imdb_bilstm 4 32" \
        "lstm_text_generation 8 128"; do
        read -r network few many <<<"$network"
        less=$(told_and_held "$network" "$few")
        more=$(told_and_held "$network" "$many")
        /usr/bin/python3 - "$network" $less $more <<'END' || return 1
import sys
name, (a, b, c, d) = sys.argv[1], map(int, sys.argv[2:])
told, held = c - a, d - b
assert abs(told - held) <= 0.1 * held, f"{name}: told {told / 2**20:.1f} MiB more, held {held / 2**20:.1f}"
END
    done
    # ... and all of it, where it is more than they take: no weight is held twice.
    read -r less more <<<"$(told_and_held bert_base:length=8 1)"
    [ "$less" -ge $((800 << 20)) ]
    [ $((more - less)) -le $((more / 10)) ]
}
