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

# export_modules: a program that puts modules and their inputs into `modules`; makes NAME.onnx of each.
export_modules() {
    { printf '%s\n' 'import torch' 'torch.manual_seed(1)' 'modules = {}' && cat && printf '%s\n' \
        'for name, (module, inputs) in modules.items():' \
        '    torch.onnx.export(module.eval(), tuple(inputs), name + ".onnx", opset_version=16,' \
        '                      input_names=["xyz"[i] for i in range(len(inputs))], output_names=["out"])'; } >export.py
    /usr/bin/python3 export.py
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

@test "training: gradients are PyTorch's: PReLU of channels, of features and of one factor" {
    need torch
    printf '%s\n' 'hwnas: 1' 'name: slopes' 'input: {x: [3, 6, 7]}' 'network:' \
        '  - conv: {out: 5, kernel: 3, pad: 1}' '  - prelu' '  - conv: {out: 4, kernel: 3}' '  - prelu' \
        '  - flatten' '  - linear: {out: 9}' '  - prelu' '  - linear: {out: 3}' >slopes.yaml
    same_gradients slopes.yaml 4
    export_modules <<'END'
class One(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.slope, self.out = torch.nn.Conv2d(2, 5, 3), torch.nn.PReLU(init=0.3), torch.nn.Linear(45, 3)
    def forward(self, x):
        return self.out(self.slope(self.conv(x)).flatten(1))
modules["one"] = One(), [torch.randn(2, 2, 5, 5)]
END
    gradients_of one.onnx
}

@test "training: gradients are PyTorch's: ELU, padding, larger images and sums" {
    need torch
    export_modules <<'END'
F = torch.nn.functional
class Images(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = torch.nn.ModuleList(torch.nn.Conv2d(a, b, 3) for a, b in ((3, 5), (5, 4), (4, 6), (6, 4)))
        self.out = torch.nn.Linear(4, 3)
    def forward(self, x):
        x = F.elu(self.convs[0](F.pad(x, (1, 2, 3, 1), mode="reflect")), 0.7)
        x = F.interpolate(self.convs[1](F.pad(x, (1, 0, 2, 1), mode="replicate")), scale_factor=2, mode="nearest")
        x = F.interpolate(F.elu(self.convs[2](x)), scale_factor=2, mode="bilinear", align_corners=False)
        return self.out(self.convs[3](F.pad(x, (0, 1, 2, 0))).sum((2, 3)))
modules["images"] = Images(), [torch.randn(2, 3, 6, 7)]
class Rows(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.out = torch.nn.Linear(6, 5), torch.nn.Linear(5, 3)
    def forward(self, x):
        return self.out(self.first(x).sum(1, keepdim=True)).flatten(1)
modules["rows"] = Rows(), [torch.randn(3, 4, 6)]
END
    gradients_of images.onnx
    gradients_of rows.onnx
}

@test "training: gradients are PyTorch's: further functions of one value" {
    need torch
    export_modules <<'END'
F = torch.nn.functional
class Functions(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.out = torch.nn.Linear(6, 8), torch.nn.Linear(8, 3)
    def forward(self, x):
        a = self.a(x)
        y = torch.erf(a) + torch.sin(a) * torch.cos(2 * a) - F.softplus(-a) + torch.log(1.5 + torch.sigmoid(a))
        return self.out(y + (1 + a * a) ** 1.5 + 1 / (2 + torch.tanh(a)) + F.elu(a, 0.6) ** 3)
modules["functions"] = Functions(), [torch.randn(5, 6)]
END
    gradients_of functions.onnx
}

@test "training: gradients are PyTorch's: choices, limits, repetitions, pairs of which both are repeated, and values put at places" {
    need torch
    export_modules <<'END'
class Choices(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.out = torch.nn.Linear(6, 8), torch.nn.Linear(6, 8), torch.nn.Linear(8, 3)
        self.row, self.one = torch.nn.Parameter(torch.randn(1, 1, 8)), torch.nn.Parameter(torch.randn(1))
    def forward(self, x):
        a, b = self.a(x), self.b(x)
        y = torch.where(x[:, :, :1] > 0.1, a, b) + torch.where(b < 0.2, self.row, self.one)
        y = y.clamp(-0.9, 1.1) + torch.tanh(self.row).expand(x.shape[0], x.shape[1], 8)
        return self.out(y.mean(1))
modules["choices"] = Choices(), [torch.randn(3, 4, 6)]
class Pairs(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.out = torch.nn.Linear(6, 5), torch.nn.Linear(6, 4), torch.nn.Linear(5, 3)
    def forward(self, x):
        a, b = self.a(x)[:, None], self.b(x)[:, :, None]
        y = (a + b) * (b - a) + 2 / (3 + torch.tanh(self.out.bias[0] * x[:, :1, None]))
        return self.out((y + a * b + b / (2 + torch.sigmoid(a))).flatten(1).reshape(-1, 5)).reshape(3, 12)
modules["pairs"] = Pairs(), [torch.randn(3, 6)]
class Places(torch.nn.Module):
    def __init__(self, reduce):
        super().__init__()
        self.a, self.b, self.out = torch.nn.Linear(6, 7), torch.nn.Linear(6, 2), torch.nn.Linear(7, 3)
        self.reduce = reduce
    def forward(self, x):
        at = torch.tensor([[1, 4], [0, 6], [5, 2]])
        a, b = self.a(x), self.b(x)
        return self.out(a.scatter_add(1, at, b) if self.reduce else a.scatter(1, at, b))
modules["replaced"] = Places(False), [torch.randn(3, 6)]
modules["added"] = Places(True), [torch.randn(3, 6)]
class Parts(Places):
    def forward(self, x):
        a = self.a(x).clone()
        a[:, 2:4] = self.b(x)
        return self.out(a)
modules["parts"] = Parts(False), [torch.randn(3, 6)]
END
    gradients_of choices.onnx
    gradients_of pairs.onnx
    gradients_of replaced.onnx
    gradients_of added.onnx
    gradients_of parts.onnx
}

# As in a diffusion model: nothing is learnt of a step's number.
@test "training: gradients are PyTorch's: behind a number that is cast, which has none" {
    need torch
    export_modules <<'END'
class Steps(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.time, self.image, self.out = torch.nn.Linear(4, 6), torch.nn.Linear(5, 6), torch.nn.Linear(6, 3)
        self.register_buffer("frequencies", torch.tensor([1.0, 0.1, 0.01, 0.001]))
    def forward(self, x, t):
        angles = t.float()[:, None] * self.frequencies
        return self.out(torch.tanh(self.time(torch.tanh(angles)) + self.image(x)))
modules["steps"] = Steps(), [torch.randn(3, 5), torch.tensor([3, 40, 7])]
END
    gradients_of steps.onnx
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
    printf '%s\n' 'hwnas: 1' 'name: loops' 'input: {x: [3, 6, 7]}' 'network:' '  - conv: {out: 5, kernel: 3, pad: 1}' '  - prelu' \
        '  - upsample: {by: 2}' '  - conv: {out: 4, kernel: 3}' '  - erf' '  - flatten' '  - linear: {out: 3}' >loops.yaml
    ends 0 profile loops.yaml --training --dtype bf16 --batch 4 --threads 2 --seconds 0.05 --json
    is out "[(r['status'], r['dtype']) for r in d['rows']] == [('ok', 'bf16')]"
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
    printf '%s\n' 'hwnas: 1' 'name: larger' 'input: {x: [4, 8, 8]}' 'network:' '  - conv_transpose: {out: 2, kernel: 2}' '  - flatten' '  - linear: {out: 4}' >larger.yaml
    ends 1 profile larger.yaml --training
    says out "has no gradient of the operator 'conv_transpose'"
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
