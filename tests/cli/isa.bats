# The CPU on older processors: oneDNN is told to know no more than their instruction sets, and all has to be
# right. Those without VNNI (x86 before Ice Lake and Zen 4) add two products of bytes in 16 bits.
load helpers

setup_file() {
    [ "$(uname -m)" = x86_64 ] || skip "instruction sets of x86-64"
    export OMP_NUM_THREADS=1
}

OLDER="SSE41 AVX2 AVX512_CORE"

# on ISA COMMAND...: with no more instructions than these.
on() {
    local isa=$1
    shift
    ONEDNN_MAX_CPU_ISA=$isa "$@"
}

# program NAME: a unit program passes on each older instruction set.
program() {
    local isa
    for isa in $OLDER; do
        CMOCKA_MESSAGE_OUTPUT=STDOUT on "$isa" "${HWNAS%/*}/tests/unit/$1" >said 2>&1 && continue
        echo "$1 with ONEDNN_MAX_CPU_ISA=$isa:"
        grep -v '^\[ *\(RUN\|OK\) *\]' said
        return 1
    done
}

# What is compared lane by lane with a jump each is three to ten times as slow, and nobody would see why.
@test "older processors: loops of ours compare vectors, not lane by lane" {
    command -v objdump >/dev/null || skip "needs Debian's binutils"
    objdump -d --no-show-raw-insn "$HWNAS" |
        awk '/^[0-9a-f]+ </ { name = $2 } name ~ /x86_64_v3/ { n[name]++; jumps[name] += /v(u)?comiss/ }
            END { for (name in n) print name, n[name], jumps[name] }' >loops
    grep -q 'apply_posts' loops || skip "built without versions by instruction set"
    awk '$3 > 4 { print "compares lane by lane:", $0; bad = 1 } END { exit bad }' loops
}

@test "older processors: operators, blocks, broadcasts, loops and transposed convolutions" {
    local name
    for name in operators blocks broadcasts loops deconv; do
        program "test_device_$name"
    done
}

@test "older processors: each precision" {
    program test_precision
}

@test "older processors: random graphs" {
    HWNAS_GRAPHS=${HWNAS_GRAPHS:-20} program test_random_graphs
}

@test "older processors: networks of bytes are right, and said to be emulated" {
    local isa
    for isa in $OLDER; do
        on "$isa" "$HWNAS" profile mnist_mlp resnet32_cifar mobilenet_v2 deit_tiny --dtype s8 --threads 1 \
            --seconds 0.01 --verify --json >out
        is out "[(r['status'], r['verified_against']) for r in d['rows']] == [('ok', 'ref')] * 4"
    done
}

# Each input is at most 255, each weight 127, and two of them are 64,770: more than 16 bits hold.
@test "older processors: a file of eight bits that overflows is told, with what to do" {
    need onnx
    /usr/bin/python3 - <<'END'
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

def save(largest):
    tensors = {"s": np.float32(2 / 255), "z": np.uint8(0), "w": np.full((256, 64), largest, np.int8),
               "one": np.float32(1 / largest), "none": np.int8(0), "offset": np.float32(1)}
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "offset"], ["shifted"]),
         helper.make_node("QuantizeLinear", ["shifted", "s", "z"], ["bytes"]),
         helper.make_node("DequantizeLinear", ["bytes", "s", "z"], ["a"]),
         helper.make_node("DequantizeLinear", ["w", "one", "none"], ["b"]),
         helper.make_node("MatMul", ["a", "b"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [16, 256])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [16, 64])],
        [numpy_helper.from_array(np.array(v), k) for k, v in tensors.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    onnx.save(model, f"bits_{largest}.onnx")

save(127)
save(64)
np.save("x.npy", np.ones((16, 256), np.float32))
END
    local isa
    for isa in $OLDER; do
        on "$isa" "$HWNAS" profile bits_64.onnx --threads 1 --seconds 0.01 --verify >out 2>err
        says out "ref"
        not grep -q "16 bits" err
        on "$isa" ends 0 profile bits_127.onnx --threads 1 --seconds 0.01
        says err "note: bits_127.onnx: results may be wrong here*16 bits*weights of 'y'*reduce_range=True"
        on "$isa" ends 0 run bits_127.onnx --input x.npy --output y.npy
        says err "note: bits_127.onnx: results may be wrong here*16 bits"
        on "$isa" ends 0 evaluate bits_127.onnx --data x.npy --against bits_64.onnx
        says err "note: bits_127.onnx: results may be wrong here*16 bits"
        on "$isa" ends 1 compare --outputs bits_127.onnx --tolerance 0.01
        says err "note: bits_127.onnx: results may be wrong here*16 bits"
    done
    local got=0
    on AVX2 "$HWNAS" profile bits_127.onnx --threads 1 --seconds 0.01 --verify >out 2>err || got=$?
    cat out err
    [ "$got" -ne 0 ]
    says err "the result on cpu in f32 is wrong"
    says err "no instructions for products of bytes (VNNI)*reduce_range=True"
}

# Signed bytes that become unsigned ones would overflow with these weights: they are left as they are.
@test "older processors: signed bytes with weights of eight bits are right" {
    need onnx
    /usr/bin/python3 - <<'END'
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

def save(name, kernel, groups=1):
    tensors = {"s": np.float32(1 / 127), "z": np.int8(0), "w": kernel, "one": np.float32(1 / 127)}
    graph = helper.make_graph(
        [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["bytes"]),
         helper.make_node("DequantizeLinear", ["bytes", "s", "z"], ["a"]),
         helper.make_node("DequantizeLinear", ["w", "one", "z"], ["b"]),
         helper.make_node("Conv", ["a", "b"], ["y"], pads=[1] * 4, group=groups)], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 64, 10, 9])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 32, 10, 9])],
        [numpy_helper.from_array(np.array(v), k) for k, v in tensors.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), name + ".onnx")

random = np.random.default_rng(1)
save("largest", np.full((32, 64, 3, 3), 127, np.int8))
save("seven", random.integers(-63, 64, (32, 64, 3, 3)).astype(np.int8))
save("eight", random.integers(-127, 128, (32, 64, 3, 3)).astype(np.int8))
save("grouped", random.integers(-127, 128, (32, 32, 3, 3)).astype(np.int8), 2)
END
    local isa
    for isa in $OLDER; do
        on "$isa" ends 0 profile largest.onnx seven.onnx eight.onnx grouped.onnx --threads 1 --seconds 0.01 --verify --json
        is out "[(r['status'], r['verified_against']) for r in d['rows']] == [('ok', 'ref')] * 4"
    done
}

# largest FILE: the largest magnitude of a weight of bytes in an ONNX file.
largest() {
    /usr/bin/python3 - "$1" <<'END'
import sys
import onnx
from onnx import numpy_helper

kernels = [numpy_helper.to_array(t) for t in onnx.load(sys.argv[1]).graph.initializer
           if t.data_type == onnx.TensorProto.INT8]
print(max(abs(k.astype(int)).max() for k in kernels if k.ndim > 1))
END
}

@test "older processors: weights of bytes have seven bits in the files that are written there" {
    need onnx
    local isa
    for isa in $OLDER; do
        on "$isa" "$HWNAS" export --space mnist_cnn --format onnx --dtype s8 --out "$isa.onnx"
        [ "$(largest "$isa.onnx")" -eq 63 ]
    done
}

@test "older processors: with AVX2 a small network in bytes stays near what it is in floats" {
    grep -qw avx2 /proc/cpuinfo || skip "this processor has no AVX2"
    on AVX2 ends 0 evaluate "$HWNAS_SRC/tests/data/fashion_tiny.onnx" --data "$HWNAS_SRC/tests/data/fashion_images.gz" \
        --scale 1/255 --mean 0.286 --std 0.353 --dtype s8 --against "$HWNAS_SRC/tests/data/fashion_tiny.onnx" --json
    is out 'd["values"]["sqnr"]["value"] > 20'
}
