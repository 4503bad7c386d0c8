# Shapes of ONNX files: an open batch wherever it stands, --shape, and files that cannot be read among others.
load helpers

# make FILE INPUT=DIM,DIM...: a network that adds up its inputs, after a product with a matrix of 8 rows; names of
# dimensions are open, "?" has none.
make() {
    /usr/bin/python3 - "$@" <<'END'
import sys
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

inputs, nodes, last = [], [], None
for text in sys.argv[2:]:
    name, dims = text.split("=")
    dims = [int(d) if d.lstrip("-").isdigit() else None if d == "?" else d for d in dims.split(",")]
    inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, dims))
    nodes.append(helper.make_node("MatMul", [name, "w"], [name + "_w"]))
    if last:
        nodes.append(helper.make_node("Add", [last, name + "_w"], [name + "_sum"]))
    last = name + ("_sum" if last else "_w")
weight = np.linspace(-1, 1, 32, dtype=np.float32).reshape(8, 4)
graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info(last, TensorProto.FLOAT, None)],
                          [numpy_helper.from_array(weight, "w")])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), sys.argv[1])
END
}

# cached FILE OPERATOR...: attention to what is in a cache and to x, as decoders of text are exported: keys are the cache
# and x, to the scores comes a mask, to the answer how long the cache is; the keys are the next cache. The cache goes
# through the operators first, which leave its values as they are, or nearly.
cached() {
    /usr/bin/python3 - "$@" <<'END'
import sys
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

def value(name, *dims):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)

def node(op, inputs, output, **attributes):
    return helper.make_node(op, inputs.split(), [output], **attributes)

through = {
    "Identity": [node("Identity", "%s", "%s_1")],
    "Cast": [node("Cast", "%s", "%s_1", to=TensorProto.FLOAT)],
    "Transpose": [node("Transpose", "%s", "%s_t"), node("Transpose", "%s_t", "%s_1", perm=[2, 1, 0])],
    "Unsqueeze": [node("Unsqueeze", "%s two", "%s_u"), node("Squeeze", "%s_u two", "%s_1")],
    "Reshape": [node("Reshape", "%s heads", "%s_h"), node("Reshape", "%s_h whole", "%s_1")],
    "Shape": [node("Shape", "%s", "%s_s"), node("Reshape", "%s %s_s", "%s_1")],
    "Concat": [node("Concat", "%s none", "%s_1", axis=1)],
    "Flatten": [node("Flatten", "%s", "%s_f"), node("Reshape", "%s_f whole", "%s_1")],
    "Slice": [node("Slice", "%s none_yet four two_axes", "%s_a"), node("Slice", "%s four eight two_axes", "%s_b"),
              node("Concat", "%s_a %s_b", "%s_1", axis=2)],
    "Backwards": [node("Slice", "%s minus least two_axes minus", "%s_r"), node("Slice", "%s_r minus least two_axes minus", "%s_1")],
    "Split": [helper.make_node("Split", ["%s"], ["%s_a", "%s_b"], axis=2), node("Concat", "%s_a %s_b", "%s_1", axis=2)],
    "Expand": [node("Expand", "%s ones_8", "%s_1")],
    "Gather": [node("Unsqueeze", "%s none_yet", "%s_u"), node("Concat", "%s_u %s_u", "%s_s", axis=0), node("Gather", "%s_s first", "%s_1")],
    "Arithmetic": [node("Neg", "%s", "%s_n"), node("Mul", "%s_n minus_half", "%s_h"), node("Sum", "%s_h %s_h", "%s_s"),
                   node("Where", "yes %s_s %s_h", "%s_w"), node("Clip", "%s_w lowest", "%s_1")],
    "Zeros": [node("Shape", "%s", "%s_s"), node("ConstantOfShape", "%s_s", "%s_z"), node("Add", "%s %s_z", "%s_1")],
    "Range": [node("Shape", "%s", "%s_s"), node("Gather", "%s_s place", "%s_l"), node("Range", "first %s_l step", "%s_p"),
              node("Cast", "%s_p", "%s_c", to=TensorProto.FLOAT), node("Unsqueeze", "%s_c one", "%s_u"),
              node("Add", "%s %s_u", "%s_1")],
}
nodes, past = [], "past"
for operator in sys.argv[2:]:
    for step in through[operator]:
        copy = onnx.NodeProto()
        copy.CopyFrom(step)
        for names in copy.input, copy.output:
            names[:] = [name.replace("%s", past) for name in names]
        nodes.append(copy)
    past += "_1"
nodes += [
    node("Concat", past + " x", "keys", axis=1),
    node("Transpose", "keys", "turned", perm=[0, 2, 1]),
    node("MatMul", "x turned", "scores"),
    node("Unsqueeze", "mask one", "row"),
    node("Add", "scores row", "masked"),
    node("Softmax", "masked", "shares", axis=2),
    node("MatMul", "shares keys", "mixed"),
    node("Shape", past, "past_shape"),
    node("Gather", "past_shape one", "length"),
    node("Cast", "length", "length_f", to=TensorProto.FLOAT),
    node("Size", past, "size"),
    node("Cast", "size", "size_f", to=TensorProto.FLOAT),
    node("Add", "length_f size_f", "of_past"),
    node("Add", "mixed of_past", "y"),
]
graph = helper.make_graph(
    nodes, "g",
    [value("x", "batch_size", "sequence_length", 8), value("mask", "batch_size", "past_sequence_length + sequence_length"),
     value("past", "batch_size", "past_sequence_length", 8)],
    [value("y", "batch_size", "sequence_length", 8), value("keys", "batch_size", "total", 8)],
    [numpy_helper.from_array(np.array([1]), "one"), numpy_helper.from_array(np.array([-2]), "two"),
     numpy_helper.from_array(np.array([0, 0, 2, 4]), "heads"), numpy_helper.from_array(np.array([0, -1, 8]), "whole"),
     numpy_helper.from_array(np.zeros([1, 0, 8], np.float32), "none")] +
    [numpy_helper.from_array(np.array(items), name) for name, items in {
        "none_yet": [0], "four": [4], "eight": [8], "two_axes": [2], "minus": [-1], "least": [-(2**63)], "ones_8": [1, 1, 8],
        "first": 0, "place": 1, "step": 1, "yes": [True], "minus_half": np.float32(-0.5), "lowest": np.float32(-1e9)}.items()])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), sys.argv[1])
END
}

setup_file() {
    need onnx
}

# rows EXPRESSION ARGUMENT...: what Python makes of the rows of a profile, on a device that computes nothing.
rows() {
    local what=$1
    shift
    "$HWNAS" profile "$@" --device null --seconds 0.02 --json >rows.json
    json rows.json "[$what for r in d['rows']]"
}

@test "an open batch, wherever it stands" {
    make first.onnx x=batch,8
    [ "$(rows "(r['batch'], r['macs'])" first.onnx --batch 1,8)" = "[(1, 32), (8, 256)]" ]
    make unnamed.onnx x=?,8
    [ "$(rows "(r['batch'], r['macs'])" unnamed.onnx --batch 1,8)" = "[(1, 32), (8, 256)]" ]
    make minus.onnx x=-1,8
    [ "$(rows "r['batch']" minus.onnx --batch 4)" = "[4]" ]
    make second.onnx x=100,N,8
    [ "$(rows "(r['batch'], r['macs'])" second.onnx --batch 1,8)" = "[(1, 3200), (8, 25600)]" ]
    make nameless.onnx x=100,?,8
    [ "$(rows "(r['batch'], r['macs'])" nameless.onnx --batch 8)" = "[(8, 25600)]" ]
    make default.onnx x=batch,8
    [ "$(rows "r['batch']" default.onnx)" = "[1]" ]
    # What is called the batch is it, though another one comes first.
    make sequence.onnx x=steps,batch_size,8
    refuses 2 "*dimension 0 of input 'x' is open: 'steps'*steps x batch_size x 8*--shape x=... of profile, compare, run, evaluate and export*" profile sequence.onnx --device null
    [ "$(rows "(r['batch'], r['macs'])" sequence.onnx --shape x=50x4x8)" = "[(4, 6400)]" ]
}

@test "a fixed first dimension needs no --batch" {
    make fixed.onnx x=64,8
    [ "$(rows "(r['batch'], r['macs'])" fixed.onnx)" = "[(64, 2048)]" ]
    refuses 2 "*fixed.onnx has a batch of 64, not 8*leave --batch out*" profile fixed.onnx --batch 8 --device null
    # compare asks for 1 and 8 by itself: this has 64.
    "$HWNAS" compare fixed.onnx --device null --seconds 0.05 --threads 1 --json >compared.json
    [ "$(json compared.json "[c['measured']['batch'] for c in d['networks'][0]['choices']]")" = "[64]" ]
    make open.onnx x=batch,8
    "$HWNAS" compare open.onnx --device null --seconds 0.05 --threads 1 --json >compared.json
    [ "$(json compared.json "sorted(c['measured']['batch'] for c in d['networks'][0]['choices'])")" = "[1, 8]" ]
}

@test "--shape gives open dimensions, those of one name together, and sweeps" {
    make two.onnx ids=batch,sequence,8 mask=batch,sequence,8
    refuses 2 "*dimension 1 of input 'ids' is open: 'sequence'*batch x sequence x 8*--shape ids=...*" profile two.onnx --device null
    [ "$(rows "(r['shape'], r['batch'], r['macs'])" two.onnx --shape ids=1x128x8)" = "[('ids=1x128x8', 1, 8192)]" ]
    [ "$(rows "(r['batch'], r['macs'])" two.onnx --shape ids=2x128x8,mask=2x128x8)" = "[(2, 16384)]" ]
    [ "$(rows "(r['shape'], r['macs'])" two.onnx --shape 'ids=1x{32,64}x8')" = "[('ids=1x32x8', 2048), ('ids=1x64x8', 4096)]" ]
    [ "$(rows "r['shape']" two.onnx --shape 'ids=1x{32,64}x8,mask=1x{32,64}x8')" = \
        "['ids=1x32x8,mask=1x32x8', 'ids=1x64x8,mask=1x64x8']" ]
    # The row's command makes the row again.
    [[ $(json rows.json "d['rows'][1]['command']") == *" --shape ids=1x64x8,mask=1x64x8 "* ]]
    # A recorded shape is measured again as it was.
    "$HWNAS" profile two.onnx --shape 'ids=1x32x8' --device null --seconds 0.05 --save then.json >out
    says out "*ids=1x32x8*"
    "$HWNAS" compare --baseline then.json --tolerance 0.99 --seconds 0.05 >out || [ $? -eq 1 ]
    says out "*two.onnx*"
}

@test "--shape gives open dimensions by their names, and what is a sum of them" {
    cached cached.onnx
    [ "$(rows "(r['shape'], r['macs'])" cached.onnx --shape sequence_length=1,past_sequence_length=127)" = \
        "[('sequence_length=1,past_sequence_length=127', 2048)]" ]
    # Prefill, with an empty cache, and decode.
    [ "$(rows "(r['batch'], r['macs'])" cached.onnx --shape 'sequence_length={128,1},past_sequence_length={0,127}')" = \
        "[(1, 262144), (1, 2048)]" ]
    [ "$(rows "(r['batch'], r['macs'])" cached.onnx --shape sequence_length=1,past_sequence_length=127,batch_size=4)" = "[(4, 8192)]" ]
    [ "$(rows "(r['batch'], r['macs'])" cached.onnx --shape sequence_length=1,past_sequence_length=127 --batch 4)" = "[(4, 8192)]" ]
    # By an input and by a name.
    [ "$(rows "r['macs']" cached.onnx --shape x=1x1x8,past_sequence_length=127)" = "[2048]" ]
    refuses 2 "*give the dimension 'sequence_length' two lengths, 1 and 2" \
        profile cached.onnx --device null --shape x=1x1x8,sequence_length=2
    refuses 2 "*dimension 1 of input 'mask' is open: 'past_sequence_length + sequence_length'*" \
        profile cached.onnx --device null --shape sequence_length=1
    # All that are open are named at once, and none that is a sum or was given.
    refuses 2 "*'sequence_length'*or by names --shape 'sequence_length=...,past_sequence_length=...'" \
        profile cached.onnx --device null
    refuses 2 "*is open*or by names --shape 'past_sequence_length=...'" \
        profile cached.onnx --device null --shape sequence_length=1
    refuses 2 "*a shape is given for 'sequence', which is no input and no open dimension*x=batch_size x sequence_length x 8*" \
        profile cached.onnx --device null --shape sequence=1
    refuses 2 "*a shape is given for 'sequence_length', which is one dimension*" \
        profile cached.onnx --device null --shape sequence_length=1x1
    refuses 2 "*the dimension 'past_sequence_length + sequence_length' two lengths, 9 and 5" \
        profile cached.onnx --device null --shape mask=1x9,sequence_length=2,past_sequence_length=3
    # A batch in a sum.
    make doubled.onnx x=batch,1,8 'y=batch,batch + batch,8'
    [ "$(rows "(r['batch'], r['macs'])" doubled.onnx --batch 4)" = "[(4, 1152)]" ]
    # Parts without values have the others' shape, and no more dimensions than can be.
    /usr/bin/python3 - <<'END'
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

def write(name, nodes, empty):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 4])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(np.zeros(empty, np.float32), "e")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), name)

write("other.onnx", [helper.make_node("Concat", ["x", "e"], ["y"], axis=1)], [1, 0, 9])
write("axis.onnx", [helper.make_node("Concat", ["x", "e"], ["y"], axis=3)], [1, 0, 4])
write("deep.onnx", [helper.make_node("Shape", ["e"], ["s"]), helper.make_node("Cast", ["s"], ["f"], to=1),
                    helper.make_node("ReduceSum", ["f"], ["t"], keepdims=0), helper.make_node("Mul", ["x", "t"], ["y"])],
      [3] * 19 + [0])
END
    # What has no values is not turned into what has some.
    /usr/bin/python3 - <<'END'
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

for name, node, numbers in [
    ("some", helper.make_node("Reshape", ["e", "n"], ["z"]), [1, 5]),
    ("any", helper.make_node("Reshape", ["e", "n"], ["z"]), [-1, 0]),
    ("opens", helper.make_node("Reshape", ["e", "n"], ["z"]), [1, -1, -1, 4]),
    ("below", helper.make_node("Reshape", ["e", "n"], ["z"]), [1, 0, -4]),
    ("fourth", helper.make_node("Reshape", ["e", "n"], ["z"]), [1, 0, 4, 0]),
    ("shapeless", helper.make_node("Reshape", ["e"], ["z"]), [0]),
    ("scalar", helper.make_node("Reshape", ["e", "n"], ["z"]), []),
    ("negative", helper.make_node("Reshape", ["e", "n"], ["z"]), [0]),
    ("order", helper.make_node("Transpose", ["e"], ["z"], perm=[0, 0, 1]), [0]),
    ("squeeze", helper.make_node("Squeeze", ["e", "n"], ["z"]), [2]),
    ("join", helper.make_node("Add", ["e", "x"], ["z"]), [0]),
    ("wide", helper.make_node("Expand", ["e", "n"], ["z"]), [1, 3, 4]),
    ("lookup", helper.make_node("Gather", ["e", "n"], ["z"], axis=1), [0]),
    ("deepest", helper.make_node("Gather", ["e", "n"], ["z"], axis=3), [0]),
    ("level", helper.make_node("Flatten", ["e"], ["z"], axis=4), [0]),
    ("cut", helper.make_node("Slice", ["e", "n", "n", "n"], ["z"]), [5]),
    ("still", helper.make_node("Slice", ["e", "n", "n", "n", "n"], ["z"]), [0]),
    ("parts", helper.make_node("Split", ["e", "n"], ["z"], axis=2), [5]),
    ("twice", helper.make_node("Unsqueeze", ["e", "n"], ["z"]), [0, 0]),
]:
    graph = helper.make_graph([node, helper.make_node("Concat", ["z", "x"], ["y"], axis=1)], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 4])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(np.zeros([1, 0, 4], np.float32), "e"),
                               numpy_helper.from_array(np.array(numbers, np.int64), "n")])
    if name == "negative":
        graph.initializer[0].dims[:] = [-1, 0]
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), name + ".onnx")
END
    refuses 2 "*(Reshape): 'e' has no values, and the shape wants some" profile some.onnx --device null
    refuses 2 "*(Reshape): 'e' has no values, and the shape leaves a length open that could be any" profile any.onnx --device null
    refuses 2 "*(Reshape): 'e' *shape has more than one length below 0, or one below -1" profile opens.onnx --device null
    refuses 2 "*(Reshape): 'e' *shape has more than one length below 0, or one below -1" profile below.onnx --device null
    refuses 2 "*(Reshape): 'e' *shape copies a dimension that is not there" profile fourth.onnx --device null
    refuses 2 "*(Reshape): 'e' has no values, and the shape is missing" profile shapeless.onnx --device null
    refuses 2 "*(Reshape): 'e' has no values, and the shape wants some" profile scalar.onnx --device null
    refuses 2 "*'e' would have the shape -1x0*" profile negative.onnx --device null
    refuses 1 "*(Transpose): attribute 'perm' does not name each dimension once" profile order.onnx --device null
    refuses 1 "*(Squeeze): attribute 'axes' names a dimension that is not 1" profile squeeze.onnx --device null
    refuses 1 "*(Unsqueeze): attribute 'axes' names a dimension twice" profile twice.onnx --device null
    refuses 2 "*(Add) cannot join the shapes 1x0x4 and 1x2x4" profile join.onnx --device null
    refuses 2 "*(Expand) cannot make 1x3x4 of 1x0x4" profile wide.onnx --device null
    refuses 2 "*(Gather) looks values up in 'e', which has none" profile lookup.onnx --device null
    refuses 1 "*(Gather): attribute 'axis' does not fit" profile deepest.onnx --device null
    refuses 1 "*(Flatten): attribute 'axis' names a dimension that is not there" profile level.onnx --device null
    refuses 1 "*(Slice): attribute 'axes' names a dimension that is not there, or a step is 0" profile cut.onnx --device null
    refuses 1 "*(Slice): attribute 'axes' names a dimension that is not there, or a step is 0" profile still.onnx --device null
    refuses 1 "*(Split): attribute 'split' has sizes that are not the input's parts" profile parts.onnx --device null
    refuses 2 "*(Concat): 'e' has another shape than the others" profile other.onnx --device null
    refuses 2 "*(Concat): there is no axis 3" profile axis.onnx --device null
    refuses 1 "*constant 'e' has 20 dimensions; 8 go" profile deep.onnx --device null
    # Without a token there is nothing to answer, and the keys are the cache.
    ends 0 profile cached.onnx --device null --shape sequence_length=0,past_sequence_length=1
}

@test "layers of several shapes are told apart in CSV" {
    make two.onnx ids=batch,sequence,8 mask=batch,sequence,8
    "$HWNAS" profile two.onnx --shape 'ids=1x{32,64}x8' --device cpu --layers --seconds 0.02 --csv >layers.csv
    /usr/bin/python3 - <<'END'
import csv
rows = list(csv.DictReader(open("layers.csv")))
# Columns stay where they were: new ones are the last.
assert list(rows[0])[:9] == "model device batch threads dtype position layer operators how".split() and list(rows[0])[-1] == "shape"
assert sorted({r["shape"] for r in rows}) == ["ids=1x32x8", "ids=1x64x8"], rows
END
    "$HWNAS" profile mnist_mlp --layers --seconds 0.02 --csv >layers.csv
    /usr/bin/python3 -c 'import csv; assert {r["shape"] for r in csv.DictReader(open("layers.csv"))} == {""}'
}

@test "a file for an input that has no values in the shape is told to be left out" {
    cached cached.onnx
    /usr/bin/python3 - <<'END'
import numpy as np

for name, shape in ("x", (1, 5, 8)), ("mask", (1, 5)), ("past", (1, 0, 8)):
    np.save(name + ".npy", np.ones(shape, np.float32))
END
    local -a prefill=(cached.onnx --device ref --shape sequence_length=5,past_sequence_length=0 --output y.npz --input x=x.npy --input mask=mask.npy)
    refuses 2 "*input 'past' has no values in this shape*leave past=FILE out*" run "${prefill[@]}" --input past=past.npy
    refuses 2 "*no input 'passed'*" run "${prefill[@]}" --input passed=past.npy
    "$HWNAS" run "${prefill[@]}"
}

@test "a network of which no input has values is told so" {
    /usr/bin/python3 - <<'END'
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

for name, node in ("open", helper.make_node("Concat", ["x", "c"], ["y"], axis=0)), ("none", helper.make_node("Relu", ["c"], ["y"])):
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])] * (name == "open"),
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(np.ones([2, 4], np.float32), "c")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), name + ".onnx")
np.save("x.npy", np.ones([1, 3, 4], np.float32))
END
    refuses 2 "*no input of open.onnx has values in this shape" profile open.onnx --device null --shape n=0
    refuses 2 "*no input of the network has values in this shape" run open.onnx --shape n=0 --input x=x.npy --output y.npz
    refuses 2 "*none.onnx has no inputs, only constants" profile none.onnx --device null
    refuses 2 "*the network has no inputs, only constants" run none.onnx --input x=x.npy --output y.npz
    "$HWNAS" profile open.onnx --device null --shape n=1 --seconds 0.02 >out
}

@test "wrong shapes are told with their place and a hint" {
    make two.onnx ids=batch,sequence,8 mask=batch,sequence,8
    local text
    for text in ids ids= =1x2 ids=1x ids=1xx8 'ids=1x{32' 'ids=1x{}' 'ids=1x{32,64}x{1,2,3}' ids=1x8,, ids=1x8,ids=1x8 \
        ids=99999999999x8 ids=-1x8 'ids=1x8 '; do
        refuses 2 "*--shape '$text': *ids=1x{32,64}*" profile two.onnx --device null --shape "$text"
    done
    refuses 2 "*shape that is given for input 'ids' has another number of dimensions*batch x sequence x 8*" \
        profile two.onnx --device null --shape ids=1x128
    refuses 2 "*given for input 'ids' differs where the file's is fixed*batch x sequence x 8*" \
        profile two.onnx --device null --shape ids=1x128x9
    refuses 2 "*given for input 'mask' gives a dimension of one name two lengths*" \
        profile two.onnx --device null --shape ids=1x128x8,mask=1x64x8
    refuses 2 "*a shape is given for 'tokens', which is no input*ids=batch x sequence x 8, mask=batch x sequence x 8*" \
        profile two.onnx --device null --shape tokens=1x128x8
    refuses 2 "*has a batch of 1, not 8*what --shape says*" profile two.onnx --device null --shape ids=1x128x8 --batch 8
    refuses 2 "*is no ONNX file*" profile mnist_mlp --device null --shape x=1x784
    refuses 2 "*one shape*" compare two.onnx --device null --shape 'ids=1x{1,2}x8'
}

ORT=$HWNAS_SRC/tests/peers/ort_run.mjs

# equals_ort MODEL SHAPES DEVICE...: on each device the outputs of random inputs are ONNX Runtime's.
equals_ort() {
    local model=$1 shapes=$2 device
    shift 2
    HWNAS_SHAPES=$shapes node "$ORT" input "$model" in.bin
    for device; do
        "$HWNAS" run "$model" --device "$device" --shape "$shapes" --input in.bin --output out.bin
        HWNAS_SHAPES=$shapes node "$ORT" compare "$model" in.bin out.bin 1e-5
    done
}

@test "ONNX Runtime computes the same in the shapes that are given" {
    command -v node >/dev/null || skip "needs node"
    local shapes
    node "$ORT" version >/dev/null 2>&1 || skip "needs onnxruntime-node"
    make two.onnx ids=batch,sequence,8 mask=batch,sequence,8
    for shapes in ids=1x128x8,mask=1x128x8 ids=3x7x8,mask=3x7x8; do
        equals_ort two.onnx "$shapes" cpu ref
    done
    make second.onnx x=100,N,8
    equals_ort second.onnx x=100x3x8 cpu
    cached cached.onnx
    for shapes in x=1x5x8,mask=1x5,past=1x0x8 x=2x1x8,mask=2x8,past=2x7x8; do
        equals_ort cached.onnx "$shapes" cpu ref
    done
    # What has no values goes through what passes values on.
    local operator
    for operator in Identity Cast Transpose Unsqueeze Reshape Shape Concat Flatten Slice Backwards Split Expand Gather Arithmetic \
        Zeros Range "Cast Identity Reshape Transpose Concat Unsqueeze" "Split Arithmetic Gather Expand Slice Flatten"; do
        cached through.onnx $operator
        for shapes in x=1x5x8,mask=1x5,past=1x0x8 x=1x2x8,mask=1x9,past=1x7x8; do
            equals_ort through.onnx "$shapes" ref
        done
    done
}

@test "ONNX Runtime gives what has no values the same shapes" {
    command -v node >/dev/null || skip "needs node"
    node "$ORT" version >/dev/null 2>&1 || skip "needs onnxruntime-node"
    /usr/bin/python3 - <<'END'
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

nodes, constants, shapes = [], [], ["x"]

def case(op, *inputs, n_outputs=1, **attributes):
    """A node of constants, and the shapes of what it gives."""
    names = []
    for i, value in enumerate(inputs):
        names.append(f"c{len(constants)}")
        constants.append(numpy_helper.from_array(np.asarray(value), names[-1]))
    outputs = [f"z{len(nodes)}_{i}" for i in range(n_outputs)]
    nodes.append(helper.make_node(op, names, outputs, **attributes))
    for output in outputs:
        nodes.append(helper.make_node("Shape", [output], [output + "s"]))
        nodes.append(helper.make_node("Cast", [output + "s"], [output + "f"], to=TensorProto.FLOAT))
        shapes.append(output + "f")

def floats(*dims):
    return np.ones(dims, np.float32)

for op in """Abs Acos Acosh Asin Asinh Atan Atanh Ceil Celu Cos Cosh Dropout Elu Erf Exp Floor HardSigmoid Identity IsInf IsNaN
        LeakyRelu Log LogSoftmax Neg Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softmax Softplus Softsign Sqrt Tan
        Tanh ThresholdedRelu""".split():
    case(op, floats(2, 0, 3))
case("Clip", floats(0, 2), np.float32(0), np.float32(6))
case("Cast", floats(0), to=TensorProto.INT32)
case("Not", np.ones([0, 2], bool))
for op in "Add Sub Mul Div Pow Max Min Sum Mean Equal Less LessOrEqual Greater GreaterOrEqual".split():
    case(op, floats(2, 0, 3), floats(3))
    case(op, floats(1), floats(4, 1, 0))
    case(op, floats(5, 1, 3), floats(0, 1))
for op in "And Or Xor".split():
    case(op, np.ones([3, 1], bool), np.ones([0], bool))
case("Mod", floats(3, 0), floats(1), fmod=1)
case("Max", floats(2, 1), floats(0), floats(4, 1, 1))
case("Where", np.ones([2, 1, 1], bool), floats(0, 3), floats(1))
case("PRelu", floats(2, 0), floats(1))
case("QuantizeLinear", floats(2, 0), np.float32(0.5), np.uint8(3))
case("DequantizeLinear", np.ones([0, 2], np.uint8), np.float32(0.5), np.uint8(3))
for axis in range(-3, 4):
    case("Flatten", floats(2, 0, 3), axis=axis)
for starts, ends, axes, steps in ([0], [2], [0], [1]), ([2], [-3], [2], [-2]), ([5, 0], [9, 9], [0, 2], [1, 2]), ([-1], [-(2**63)], [1], [-1]):
    case("Slice", floats(3, 0, 4), starts, ends, axes, steps)
for starts, ends, steps in ([2], [2], [1]), ([4], [0], [3]), ([0], [3], [-1]), ([-9], [-5], [1]), ([9], [2**63 - 1], [1]):
    case("Slice", floats(5, 4), starts, ends, [1], steps)
case("Split", floats(4, 0, 6), [2, 0, 4], axis=2, n_outputs=3)
case("Split", floats(4, 0), axis=1, n_outputs=2)
case("Split", floats(4, 0), axis=0, n_outputs=2)
case("Split", floats(6), [0, 6, 0], n_outputs=3)
case("Expand", floats(1, 0, 3), [2, 1, 3])
case("Expand", floats(0, 1), [4, 1, 1, 5])
case("Expand", floats(3, 1), [2, 3, 0])
case("Expand", floats(2, 0), np.zeros([0], np.int64))
case("Gather", floats(2, 0, 3), 1)
case("Gather", floats(2, 0, 3), [[0, 2]], axis=-1)
case("Gather", floats(2, 3), np.zeros([4, 0], np.int64), axis=1)
case("ConstantOfShape", [2, 0, 3])
case("Range", 3, 3, 1)
case("Range", 3, 5, -1)
case("Transpose", floats(2, 0, 3), perm=[1, 2, 0])
case("Reshape", floats(2, 0, 3), [3, -1, 2, 7])
case("Reshape", floats(2, 0, 3), [0, 0, 5])
case("Concat", floats(2, 0, 3), floats(2, 0, 5), axis=2)
case("Squeeze", floats(1, 0, 1))
case("Unsqueeze", floats(0), [0, 2])
reductions = "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare".split()
for op in reductions: # over what has values, too
    axes = [[2]] if op == "Sum" else []
    case("Reduce" + op, floats(2, 0, 3), *axes, **({} if axes else {"axes": [2]}))
    case("Reduce" + op, floats(2, 0, 3), *axes, keepdims=0, **({} if axes else {"axes": [2]}))
case("MatMul", floats(2, 3), floats(3, 0))
case("MatMul", floats(0, 3), floats(3, 2))
case("MatMul", floats(5, 1, 0, 4), floats(5, 4, 3))
case("MatMul", floats(1, 0, 4), floats(4, 5))
case("MatMul", floats(0), floats(0, 0))
case("Tile", floats(2, 0, 3), [2, 5, 1])
case("Tile", floats(2, 3), [0, 2])
case("Pad", floats(2, 0, 3), [1, 0, 0, 0, 0, 2])
case("Pad", floats(2, 0), [1, 0, 0, 0], mode="edge")

def made(op, *inputs, **attributes):
    """The same where values are made of nothing: these, too."""
    case(op, *inputs, **attributes)
    z = nodes[-3].output[0]
    nodes.append(helper.make_node("Reshape", [z, "whole"], [z + "v"]))
    nodes.append(helper.make_node("Clip", [z + "v", "least", "most"], [z + "w"])) # what is infinite has no distance
    shapes.append(z + "w")

constants += [numpy_helper.from_array(np.array([-1]), "whole"), numpy_helper.from_array(np.float32(-9), "least"),
              numpy_helper.from_array(np.float32(9), "most")]
for op in reductions:
    axes = [[1]] if op == "Sum" else []
    for keepdims in 0, 1:
        made("Reduce" + op, floats(2, 0, 3), *axes, keepdims=keepdims, **({} if axes else {"axes": [1]}))
        made("Reduce" + op, floats(2, 0, 3), keepdims=keepdims)
made("MatMul", floats(2, 0), floats(0, 3))
made("MatMul", floats(4, 2, 0), floats(0, 3))
made("MatMul", floats(0), floats(0, 3))
made("Pad", floats(2, 0, 3), [1, 1, 0, 0, 0, 2])
made("Pad", floats(2, 0), [0, 2, 0, 1], np.float32(2.5))
for at in range(0, len(shapes), 50):
    nodes.append(helper.make_node("Concat", shapes[at:at + 50], [f"part{at}"], axis=0))
nodes.append(helper.make_node("Concat", [f"part{at}" for at in range(0, len(shapes), 50)], ["y"], axis=0))
graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
                          [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], constants)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), "shapes.onnx")
END
    node "$ORT" input shapes.onnx in.bin
    "$HWNAS" run shapes.onnx --device ref --input in.bin --output out.bin
    node "$ORT" compare shapes.onnx in.bin out.bin 1e-7
}

@test "outputs without values are left out, and a Split may have parts without" {
    /usr/bin/python3 - <<'END'
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

def write(name, nodes, outputs, opset=13, **constants):
    value = lambda n, dims: helper.make_tensor_value_info(n, TensorProto.FLOAT, dims)
    graph = helper.make_graph(nodes, "g", [value("x", [2, 3])], [value(n, None) for n in outputs],
                              [numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]), name)

none = helper.make_node("Slice", ["x", "zero", "zero"], ["none"])
relu = helper.make_node("Relu", ["x"], ["y"])
write("two.onnx", [none, relu], ["none", "y"], zero=[0])
write("one.onnx", [none], ["none"], zero=[0])
# As ONNX's own reference has it; ONNX Runtime refuses more parts than values.
write("parts.onnx", [helper.make_node("Split", ["x"], ["a", "b", "c", "d"], num_outputs=4),
                     helper.make_node("Concat", ["d", "b", "c", "a"], ["y"], axis=0)], ["y", "c"], opset=18)
write("edge.onnx", [none, helper.make_node("Pad", ["none", "pads"], ["y"], mode="edge")], ["y"], zero=[0], pads=[1, 0, 0, 0])
write("product.onnx", [none, helper.make_node("MatMul", ["none", "x"], ["y"])], ["y"], zero=[0])
write("tile.onnx", [none, helper.make_node("Tile", ["none", "pads"], ["y"])], ["y"], zero=[0], pads=[1, 0, 0])
write("huge.onnx", [none, helper.make_node("Pad", ["none", "pads"], ["y"])], ["y"], zero=[0], pads=[5000, 5000, 0, 0])
np.arange(6, dtype=np.float32).tofile("in.bin")
END
    for device in ref cpu; do
        ends 0 run two.onnx --device $device --input in.bin --output out.bin
        cmp in.bin out.bin
        ends 0 run parts.onnx --device $device --input in.bin --output out.bin
        [ "$(/usr/bin/python3 -c 'import numpy as np; print(np.fromfile("out.bin", "f4").tolist())')" = "[3.0, 4.0, 5.0, 0.0, 1.0, 2.0]" ]
    done
    refuses 1 "*output 'none' has no values, and it has no other that has some" run one.onnx --device ref --input in.bin --output out.bin
    refuses 1 "*(Pad): attribute 'mode' repeats values where there are none" profile edge.onnx --device null
    refuses 2 "*(MatMul) cannot multiply the shapes 0x3 and 2x3" profile product.onnx --device null
    refuses 1 "*(Tile): attribute 'repeats' are not one for each axis" profile tile.onnx --device null
    refuses 1 "*(Pad) makes more than 2^24 values of what has none" profile huge.onnx --device null
}

@test "a file that cannot be read does not end the others" {
    make a.onnx x=batch,8
    make b.onnx x=batch,8
    echo nonsense >bad.onnx
    ends 2 profile a.onnx bad.onnx missing.onnx b.onnx --device null --batch 1,4 --threads 1 --seconds 0.02 --save all.json
    says err "hwnas: bad.onnx: *"
    says out "*a.onnx *bad.onnx *missing.onnx *b.onnx *"
    [ "$(json all.json "[(r['model'], r['batch']) for r in d['rows'] if r['status'] == 'ok']")" = \
        "[('a.onnx', 1), ('a.onnx', 4), ('b.onnx', 1), ('b.onnx', 4)]" ]
    [ "$(json all.json "sorted({r['model'] for r in d['rows'] if r['status'] != 'ok' and r['message']})")" = \
        "['bad.onnx', 'missing.onnx']" ]
    # Nothing is measured where none can be read, nor after a wrong name.
    refuses 2 "*bad.onnx*" profile bad.onnx bad.onnx --device null
    refuses 2 "*no 'nothing'*" profile a.onnx nothing --device null
    # One batch of two fits.
    make fixed.onnx x=4,8
    ends 2 profile fixed.onnx --device null --batch 1,4 --seconds 0.02 --json
    [ "$(json out "[(r['batch'], r['status'] == 'ok') for r in d['rows']]")" = "[(1, False), (4, True)]" ]
}

@test "export and evaluate take --shape" {
    make two.onnx ids=batch,sequence,8
    refuses 2 "*dimension 1 of input 'ids' is open: 'sequence'*--shape ids=...*evaluate and export*" \
        export two.onnx --format onnx --dtype w8 --out fixed.onnx
    ends 0 export two.onnx --format onnx --dtype w8 --shape ids=2x4x8 --out fixed.onnx
    [ "$(rows "(r['batch'], r['macs'])" fixed.onnx)" = "[(2, 256)]" ]
    /usr/bin/python3 -c 'import numpy
numpy.savez("val.npz", ids=numpy.ones((6, 4, 8), numpy.float32), y=numpy.zeros((6, 4), int))'
    ends 0 evaluate two.onnx --data val.npz --device ref # the samples have the shape
    ends 0 evaluate two.onnx --data val.npz --device ref --shape sequence=4
    says out "6 samples"
}
