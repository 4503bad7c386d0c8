# The PyTorch and YAML exports: as they were when a person last read them (golden/*.py), as Python
# sees them, and as PyTorch computes them. HWNAS_UPDATE_GOLDEN=1 writes the golden files anew.

bats_require_minimum_version 1.5.0
load modules

# golden file, space, code
NETWORKS="accel_b0        accel_nasbench   e=1666666,k=3353553,l=1223341,se=1111111
          accel_mixed     accel_nasbench   e=1446466,k=5335555,l=1331322,se=0010011
          macro_22212220  nas_bench_macro  22212220
          macro_00100110  nas_bench_macro  00100110
          statements_loop $HWNAS_SRC/tests/data/every_statement.yaml w=16,d=121,act=relu.hard.relu
          statements_flat $HWNAS_SRC/tests/data/every_statement.yaml w=24,d=111,act=relu.relu.relu
          operators       $HWNAS_SRC/tests/data/every_operator.yaml c=12,gate=softmax
          layers          $HWNAS_SRC/tests/data/more_layers.yaml groups=4,kernel=3,act=prelu
          volumes         $HWNAS_SRC/tests/data/volumes.yaml kernel=3,stride=2
          cell_421211     nas_bench_201    421211
          cell_334131     nas_bench_201    334131
          named           $HWNAS_SRC/tests/data/named_tensors.yaml size=24,taps=3,op=conv.pool.skip
          modules         $HWNAS_SRC/tests/data/modules.yaml 2
          shapes          $HWNAS_SRC/tests/data/shapes.yaml h=8,deep=1
          sequences       $HWNAS_SRC/tests/data/sequences.yaml hidden=12,heads=4,directions=2
          sequences_step  $HWNAS_SRC/tests/data/sequences.yaml:phase=step hidden=12,heads=2,directions=1
          decoder         $HWNAS_SRC/tests/data/decoder.yaml heads=242,tied=1"

setup_file() {
    export MODULES=$BATS_FILE_TMPDIR
    local name space code
    while read -r name space code; do
        "$HWNAS" export --space "$space" --arch "$code" --format pytorch --out "$MODULES/$name.py"
    done <<<"$NETWORKS"
}

without_version() {
    sed 's/hwnas [0-9][0-9.]*[0-9]/hwnas VERSION/' "$1"
}

@test "the exports are the golden ones" {
    local name rest golden
    while read -r name rest; do
        golden=$HWNAS_SRC/tests/cli/golden/$name.py
        if [ -n "$HWNAS_UPDATE_GOLDEN" ]; then
            without_version "$MODULES/$name.py" >"$golden"
        fi
        diff -u "$golden" <(without_version "$MODULES/$name.py")
    done <<<"$NETWORKS"
}

@test "they are Python in 88 columns, of which every name is used" {
    [ -x /usr/bin/python3 ] || skip "needs Debian's python3"
    [ "$(ls "$MODULES"/*.py | wc -l)" -eq 17 ]
    /usr/bin/python3 - "$MODULES"/*.py <<'END'
import ast
import builtins
import sys

for path in sys.argv[1:]:
    text = open(path).read()
    tree = ast.parse(text, path)
    assert all(len(line) <= 88 and line == line.rstrip() for line in text.split("\n")), path
    assert text.endswith("\n") and not text.endswith("\n\n"), path
    stored, loaded = set(), set(dir(builtins))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (loaded if isinstance(node.ctx, ast.Load) else stored).add(node.id)
        elif isinstance(node, ast.arg):
            stored.add(node.arg)
        elif isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            stored.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            stored.update(alias.name for alias in node.names)
    unread = stored - loaded - {"_", "__init__", "forward", "build"}
    unknown = loaded - stored - set(dir(builtins)) - {"__name__"}
    assert not unread and not unknown, (path, unread, unknown)
END
}

@test "pyflakes has nothing to say" {
    need pyflakes
    /usr/bin/python3 -m pyflakes "$MODULES"/*.py
}

@test "they say how to use themselves: python3 FILE" {
    need torch
    run /usr/bin/python3 "$MODULES/accel_b0.py"
    [ "$status" -eq 0 ]
    [ "$output" = "output (1, 1000), 5,288,548 parameters" ] || {
        echo "$output"
        false
    }
}

# equal SPACE CODE [SPACE CODE]...: PyTorch computes each network as ref does.
equal() {
    need torch
    need onnx
    /usr/bin/python3 "$HWNAS_SRC/tests/peers/torch_parity.py" "$HWNAS" "$@"
}

@test "PyTorch computes what ref computes, and can train it" {
    local name space code networks=()
    while read -r name space code; do
        networks+=("$space" "$code")
    done <<<"$NETWORKS"
    equal "${networks[@]}"
}

@test "PyTorch's operators that only other choices use" {
    local choice networks=()
    for choice in sigmoid hard_sigmoid tanh; do
        networks+=("$HWNAS_SRC/tests/data/every_operator.yaml" "c=8,gate=$choice")
    done
    for choice in groups=1,kernel=2,act=silu groups=16,kernel=4,act=relu6; do
        networks+=("$HWNAS_SRC/tests/data/more_layers.yaml" $choice)
    done
    equal "${networks[@]}"
}

@test "cells without a convolution, of copies, of zeros, and of every operator" {
    equal nas_bench_201 000000 nas_bench_201 111111 nas_bench_201 333132 nas_bench_201 012340
}

# space_of NAME INPUT: a space of the statements in standard input.
space_of() {
    printf 'hwnas: 1\nname: %s\ninput: %s\nchoices:\n  c: {values: [4, 8]}\nnetwork:\n' "$1" "$2"
    cat
}

@test "what templates cannot say is one class with a line for each node, which computes the same" {
    cd "$BATS_TEST_TMPDIR"
    space_of lopsided '{image: [c, 8, 8]}' >lopsided.yaml <<'END'
  - conv: {out: 6, kernel: 3, pad: [0, 1, 2, 1]}
  - avg_pool: {kernel: 2, stride: 1, pad: [0, 0, 1, 1]}
  - batch_norm
  - max_pool: {kernel: 2, stride: 2, pad: [1, 0, 0, 1]}
END
    space_of late_flatten '{image: [c, 8, 8]}' >late_flatten.yaml <<'END'
  - conv: {out: 6, kernel: 3}
  - flatten: {axis: 2}
END
    space_of tied_loop '{tokens: {shape: [4], type: int64}}' >tied_loop.yaml <<'END'
  - embedding: {entries: 7, out: c}
  - repeat: 2
    do:
      - residual:
          - layer_norm
          - tied_linear
          - linear: {out: c}
  - lstm: {out: 3, bidirectional: 1}
  - gru: {out: 5, last: 1}
END
    local name
    for name in lopsided late_flatten tied_loop; do
        "$HWNAS" export --space $name.yaml --arch 4 --format pytorch --out $name.py
        [ "$(grep -c ^class $name.py)" -eq 1 ]
    done
    equal lopsided.yaml 4 late_flatten.yaml 4 tied_loop.yaml 4
}

@test "an ONNX file as PyTorch, with its weights beside it" {
    need torch
    need onnx
    cd "$BATS_TEST_TMPDIR"
    "$HWNAS" export --space resnet32_cifar --format onnx --out net.onnx
    run --separate-stderr "$HWNAS" export net.onnx --format pytorch --out net.py
    [ "$status" -eq 0 ]
    [ -z "$output" ]
    [ "$stderr" = "hwnas: note: the weights are in net.safetensors" ]
    cd / # the weights are looked for beside the module
    [ "$(/usr/bin/python3 "$BATS_TEST_TMPDIR/net.py")" = "output (1, 10), 464,154 parameters" ]
    cd "$BATS_TEST_TMPDIR"
    rm net.safetensors
    run /usr/bin/python3 net.py
    [ "$status" -ne 0 ]
    [[ $output == *"net.safetensors"* ]]
    run "$HWNAS" export net.onnx --format yaml --out net.yaml
    [ "$status" -eq 2 ]
    [[ $output == *"an ONNX file is written as pytorch, not as yaml"* ]]
    run "$HWNAS" export net.onnx --format pytorch --out /dev/null
    [ "$status" -eq 2 ]
    [[ $output == *"does not end in .py"* ]]
    run "$HWNAS" export net.onnx --format pytorch --trial 3 --out net.py
    [ "$status" -eq 2 ]
    [[ $output == *"--best and --trial go with a study"* ]]
}

@test "ONNX files with names that Python has, and without an input" {
    need torch
    need onnx
    cd "$BATS_TEST_TMPDIR"
    /usr/bin/python3 - <<'END'
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def save(name, title, node, inputs, constant):
    value = [helper.make_tensor_value_info(i, TensorProto.FLOAT, [2, 3]) for i in [*inputs, "x"]]
    constants = [numpy_helper.from_array(np.ones((2, 3), np.float32), constant)]
    graph = helper.make_graph([node], title, value[:-1], value[-1:], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), name)


save("none.onnx", "none", helper.make_node("Relu", ["c"], ["x"]), [], "c")
save("words.onnx", 'a """ b\\', helper.make_node("Add", ["import", "forward"], ["x"]), ["import"], "forward")
END
    local name
    for name in none words; do
        "$HWNAS" export $name.onnx --format pytorch --out $name.py
        /usr/bin/python3 $name.py >out
        [[ $(<out) == "output (2, 3), "* ]]
    done
}

@test "PyTorch computes the blocks that people build, from ONNX files, as ONNX Runtime does" {
    need torch
    need onnx
    node "$HWNAS_SRC/tests/peers/ort_run.mjs" version >/dev/null 2>&1 ||
        skip "needs onnxruntime-node: scripts/install-deps --check"
    cd "$BATS_TEST_TMPDIR"
    /usr/bin/python3 "$HWNAS_SRC/tests/peers/blocks.py" .
    /usr/bin/python3 "$HWNAS_SRC/tests/peers/torch_run.py" "$HWNAS" ./*.onnx
    node "$HWNAS_SRC/tests/peers/ort_run.mjs" compare-all .
}

@test "PyTorch computes what ONNX's node tests want, the first two of each operator" {
    need torch
    need onnx
    /usr/bin/python3 "$HWNAS_SRC/tests/peers/torch_node.py" "$HWNAS" --cases 2
}

@test "PyTorch computes networks in int8 and of every operator of a space, from ONNX files" {
    need torch
    need onnx
    cd "$BATS_TEST_TMPDIR"
    "$HWNAS" export --space mnist_cnn --format onnx --dtype s8 --out s8.onnx
    local space code name n=0
    while read -r name space code; do
        case $name in operators | sequences | decoder | named | shapes | cell_421211) ;; *) continue ;; esac
        "$HWNAS" export --space "$space" --arch "$code" --format onnx --out $((++n)).onnx
    done <<<"$NETWORKS"
    [ "$n" -eq 6 ]
    /usr/bin/python3 "$HWNAS_SRC/tests/peers/torch_run.py" "$HWNAS" ./*.onnx
}

@test "the YAML export is the same network, with no choice left" {
    local name space code digest="s/.*\"digest\": *\"\([0-9a-f]*\)\".*/\1/p"
    while read -r name space code; do
        "$HWNAS" export --space "$space" --arch "$code" --format yaml --out "$MODULES/$name.yaml"
        [ "$("$HWNAS" space show "$space" --arch "$code" --json | sed -n "$digest")" = \
            "$("$HWNAS" space show "$MODULES/$name.yaml" --arch "$code" --json | sed -n "$digest")" ]
        "$HWNAS" space count "$MODULES/$name.yaml" --json | grep -q '"encodings": *1\b'
        grep -qF "$code" "$MODULES/$name.yaml"
    done <<<"$NETWORKS"
    # Everything but the section itself stays as it was.
    diff <(sed '/^choices:/,/^$/d' "$HWNAS_SRC/search_spaces/nas_bench_macro.yaml") \
        <(sed -e '/^# Fixed by/d' -e '/^choices:/,/^$/d' "$MODULES/macro_22212220.yaml")
}

@test "a class token goes with any batch" {
    need torch
    need onnx
    cd "$BATS_TEST_TMPDIR"
    /usr/bin/python3 - <<'END'
import numpy as np, torch
from torch import nn
class Vit(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.token = nn.Conv2d(3, 16, 4, 4), nn.Parameter(torch.randn(1, 1, 16))
        self.positions = nn.Parameter(torch.randn(1, 17, 16))
        self.qkv, self.out, self.head = nn.Linear(16, 48), nn.Linear(16, 16), nn.Linear(16, 7)
    def forward(self, x):
        n = x.shape[0]
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(n, -1, -1), x], 1) + self.positions
        q, k, v = self.qkv(x).reshape(n, 17, 3, 4, 4).permute(2, 0, 3, 1, 4).unbind(0)
        x = x + self.out(((q @ k.transpose(-2, -1)).softmax(-1) @ v).transpose(1, 2).reshape(n, 17, 16))
        return self.head(x[:, 0])
torch.manual_seed(3)
net = Vit().eval()
x = torch.randn(7, 3, 16, 16)
def save(name, n, **how):
    torch.onnx.export(net, x[:n], name, opset_version=13, input_names=['x'], output_names=['y'], **how)
save('open.onnx', 1, dynamic_axes={'x': {0: 'n'}, 'y': {0: 'n'}})
save('one.onnx', 1)
save('four.onnx', 4)
np.save('x.npy', x.numpy())
with torch.no_grad():
    np.save('y.npy', net(x).numpy())
END
    local name
    for name in open one four; do
        "$HWNAS" export $name.onnx --format pytorch --out $name.py
    done
    /usr/bin/python3 - <<'END'
import importlib, sys
import numpy as np, torch
sys.path.insert(0, '.')
x, y = np.load('x.npy'), np.load('y.npy')
for name in ('open', 'one', 'four'):
    net = importlib.import_module(name).build().eval()
    for n in (1, 4, 7):
        with torch.no_grad():
            ours = net(torch.from_numpy(x[:n])).numpy()
        assert ours.shape == y[:n].shape and abs(ours - y[:n]).max() < 1e-5, (name, n)
END
}
