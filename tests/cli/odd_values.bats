# Files and samples of which results would be wrong in silence, or that have to be read another way than most.
load helpers

setup_file() {
    /usr/bin/python3 -c 'import onnx' 2>/dev/null || skip "needs Debian's python3-onnx"
}

# models: files whose weights, constants or shapes are odd, and samples.
models() {
    /usr/bin/python3 - <<'END'
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT = TensorProto.FLOAT, TensorProto.INT64
node = helper.make_node

def save(name, nodes, inputs, outputs, constants={}):
    graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info(k, t, s) for k, t, s in inputs],
                              [helper.make_tensor_value_info(k, t, s) for k, t, s in outputs],
                              [numpy_helper.from_array(np.array(v), k) for k, v in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), name + ".onnx")

row, pair = ("x", FLOAT, [1, 3]), ("y", FLOAT, [1, 2])
weight = np.ones((3, 2), np.float32)
for name, value in [("nan", np.nan), ("infinite", np.inf)]:
    odd = weight.copy()
    odd[1, 1] = value
    save(name, [node("MatMul", ["x", "w"], ["y"], name="head")], [row], [pair], {"w": odd})
# A mask is made of infinities.
save("mask", [node("Add", ["x", "m"], ["s"]), node("Softmax", ["s"], ["y"])], [row], [("y", FLOAT, [1, 3])],
     {"m": np.array([[0, 0, -np.inf]], np.float32)})
wholes, added = ("x", INT, [1, 3]), [("y", INT, [1, 3])]
save("large", [node("Add", ["x", "c"], ["y"], name="sum")], [wholes], added, {"c": np.array([1, 2**24 + 1, 5])})
save("held", [node("Add", ["x", "c"], ["y"], name="sum")], [wholes], added, {"c": np.array([1, 2**24 + 2, 5])})
# The end of a slice is as large as can be, and nothing is computed with it.
save("to_the_end", [node("Slice", ["x", "from", "to", "axis"], ["y"])], [row], [("y", FLOAT, [1, 2])],
     {"from": np.array([1]), "to": np.array([2**40 + 1]), "axis": np.array([1])})

save("two", [node("MatMul", ["a", "b"], ["y"])], [("a", FLOAT, [2, 3]), ("b", FLOAT, [3, 4])],
     [("y", FLOAT, [2, 4])])
save("open", [node("MatMul", ["a", "b"], ["y"])], [("a", FLOAT, ["n", "k"]), ("b", FLOAT, ["k", "m"])],
     [("y", FLOAT, ["n", "m"])])
sequence = ["batch", "length", 4]
save("sequence", [node("Softmax", ["x"], ["y"])], [("x", FLOAT, sequence)], [("y", FLOAT, sequence)])
save("nameless", [node("Softmax", ["x"], ["y"])], [("x", FLOAT, [None, None, 4])], [("y", FLOAT, [None, None, 4])])
save("fixed", [node("Softmax", ["x"], ["y"])], [("x", FLOAT, [1, 7, 4])], [("y", FLOAT, [1, 7, 4])])
save("constant", [node("Identity", ["c"], ["first"]), node("Identity", ["c"], ["second"]), node("Add", ["x", "c"], ["y"])],
     [row], [(name, FLOAT, [1, 3]) for name in ("first", "second", "y")], {"c": np.arange(3, dtype=np.float32)[None]})

random = np.random.default_rng(1)
values = lambda *shape: random.standard_normal(shape).astype(np.float32)
np.save("row.npy", np.ones((1, 3), np.float32))
np.save("wholes.npy", np.array([[1, 2, 3]]))
np.save("large.npy", np.array([[1, 2**24 + 1, 3]]))
np.savez("pair.npz", a=values(2, 3), b=values(3, 4))
np.savez("odd_pair.npz", a=values(2, 3), b=values(2, 4))
np.save("sequences.npy", values(5, 7, 4))
END
}

@test "weights that are no numbers are told by name, masks of infinities are not" {
    models
    ends 0 run nan.onnx --input row.npy --output y.npy
    says err "nan.onnx: weight 'w' of node 'head' (matmul) has NaN in 1 of its 6 values"
    ends 0 run infinite.onnx --input row.npy --output y.npy
    says err "weight 'w' of node 'head' (matmul) has infinity in 1 of its 6 values"
    ends 0 profile nan.onnx --device null --seconds 0.01
    [ "$(grep -c "has NaN" err)" -eq 1 ]
    ends 2 optimize nan.onnx --data row.npy --out fast.onnx # too small to change
    [ "$(grep -c "has NaN" err)" -eq 1 ]
    ends 0 run mask.onnx --input row.npy --output y.npy
    [ ! -s err ]
}

# As PyTorch has it: what is missing becomes 0, and what a mask of the input leaves out counts nothing.
@test "run takes NaN and infinity in inputs of floats, of samples and of arrays that run once" {
    need onnx
    cd "$BATS_TEST_TMPDIR"
    /usr/bin/python3 - <<'END'
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

node = helper.make_node
for name, n, rows in [("samples", "batch", 2), ("once", 2, 1)]:
    graph = helper.make_graph(
        [node("IsNaN", ["x"], ["odd"]), node("Where", ["odd", "zero", "x"], ["filled"]),
         node("Add", ["filled", "mask"], ["sum"]), node("Softmax", ["sum"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [n, 4]),
         helper.make_tensor_value_info("mask", TensorProto.FLOAT, ["batch" if rows == 2 else 1, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [n, 4])],
        [numpy_helper.from_array(np.zeros(1, np.float32), "zero")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), name + ".onnx")
    x = np.array([[1, np.nan, 3, 4], [np.nan, 2, 1, 0]], np.float32)
    mask = np.array([[0, 0, -np.inf, 0], [0, -np.inf, 0, 0]], np.float32)[:rows]
    np.savez(name + ".npz", x=x, mask=mask)
    e = np.exp(np.nan_to_num(x) + mask)
    np.save(name + ".npy", e / e.sum(1, keepdims=True))
END
    local name device
    for name in samples once; do
        for device in ref cpu; do
            ends 0 run "$name.onnx" --device "$device" --input "$name.npz" --output got.npy
            /usr/bin/python3 -c 'import numpy, sys
want, got = numpy.load(sys.argv[1] + ".npy"), numpy.load("got.npy")
assert numpy.abs(got - want).max() < 1e-6, (sys.argv, got, want)' "$name"
        done
    done
    # An output of NaN has no score.
    ends 2 evaluate samples.onnx --data samples.npz --labels samples.npy
    says err "samples.npz: sample 0 of 'x' has the value nan*look at x[[]0]; 'hwnas run' accepts it"
}

@test "of the greatest and the least NaN is the greatest, as in PyTorch, of few and of many" {
    need torch
    need onnx
    cd "$BATS_TEST_TMPDIR"
    /usr/bin/python3 - <<'END'
import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

x = np.random.default_rng(1).permutation(100).astype(np.float32)[None]
x[0, [0, 50, 99]] = np.nan
x[0, [1, 51]] = np.inf
np.save("x.npy", x)
wanted, nodes, outputs, constants = {}, [], [], []
for k in 5, 60, 100:
    constants.append(numpy_helper.from_array(np.array([k]), f"k{k}"))
    for largest in 0, 1:
        name = f"y{k}_{largest}"
        nodes.append(helper.make_node("TopK", ["x", f"k{k}"], [name, f"{name}i"], largest=largest))
        outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, k]))
        wanted[name] = torch.from_numpy(x).topk(k, largest=bool(largest))[0].numpy()
graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 100])], outputs, constants)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), "top.onnx")
np.savez("wanted.npz", **wanted)
END
    ends 0 run top.onnx --input x.npy --output got.npz
    /usr/bin/python3 -c 'import numpy
wanted, got = numpy.load("wanted.npz"), numpy.load("got.npz")
for name in wanted:
    assert numpy.array_equal(wanted[name], got[name], equal_nan=True), (name, wanted[name], got[name])'
}

@test "whole numbers that no float holds are told of constants, and refused of samples" {
    models
    ends 0 run large.onnx --input wholes.npy --output y.npy
    says err "node 'sum' (add) computes with 16777217 of 'c' as with 16777216"
    local name
    for name in held to_the_end; do
        ends 0 profile "$name.onnx" --device null --seconds 0.01
        not grep -q '2^24' err
    done
    refuses 2 "large.npy: sample 0 of 'x' has the value 16777217 where a whole number up to 2^24 is needed" \
        run held.onnx --input large.npy --output y.npy
}

# NumPy multiplies the same.
multiplied() {
    /usr/bin/python3 -c "import numpy as np
given, got = np.load('pair.npz'), np.load('y.npy')
assert got.shape == (2, 4) and np.abs(got - given['a'] @ given['b']).max() < 1e-5, got"
}

@test "run: inputs whose first dimensions differ are arrays of one run" {
    models
    ends 0 run two.onnx --input pair.npz --output y.npy
    multiplied
    refuses 2 "odd_pair.npz: the array is (2, 4), input 'b' of the network is (3, 4)*it runs once*" \
        run two.onnx --input odd_pair.npz --output z.npy
    ends 0 run open.onnx --input pair.npz --output y.npy
    multiplied
}

@test "run and evaluate: open dimensions are those of the samples where no shape is given" {
    models
    local name
    for name in sequence nameless; do
        ends 0 run "$name.onnx" --input sequences.npy --output y.npy
        /usr/bin/python3 -c "import numpy as np
x, y = np.load('sequences.npy'), np.load('y.npy')
e = np.exp(x)
assert np.abs(e / e.sum(-1, keepdims=True) - y).max() < 1e-5"
        ends 0 evaluate "$name.onnx" --data sequences.npy --against sequence.onnx --json
        is out 'd["values"]["largest_difference"]["value"] < 1e-6'
    done
    ends 0 evaluate sequence.onnx --data sequences.npy --against nameless.onnx --shape x=5x7x4 --json
    # A shape may be one of either alone.
    ends 0 evaluate fixed.onnx --data sequences.npy --against sequence.onnx --shape length=7 --json
    is out 'd["values"]["largest_difference"]["value"] < 1e-6'
    ends 0 evaluate sequence.onnx --data sequences.npy --against fixed.onnx --shape length=7
    refuses 2 "a shape is given for 'width'*" evaluate sequence.onnx --data sequences.npy --against fixed.onnx --shape width=7
    refuses 2 "a sample is (7, 4), input 'x' of the network takes (6, 4)" \
        run sequence.onnx --input sequences.npy --output z.npy --shape length=6
}

@test "a constant that is an output has the output's name, in what is computed and written" {
    models
    ends 0 run constant.onnx --input row.npy --output y.npz
    ends 0 export constant.onnx --format onnx --dtype s8 --data row.npy --out again.onnx
    ends 0 run again.onnx --input row.npy --output z.npz
    /usr/bin/python3 -c "import numpy as np
for name in ('y.npz', 'z.npz'):
    got = np.load(name)
    assert sorted(got) == ['first', 'second', 'y'], sorted(got)
    assert (got['first'] == [[0, 1, 2]]).all() and (got['second'] == [[0, 1, 2]]).all() and np.allclose(got['y'], [[1, 2, 3]], atol=0.1), got"
}
