# The predictor `onnx:FILE`: a model of the user's, here made by PyTorch (Debian's python3-torch).
load helpers

setup_file() {
    has_module torch || export NO_TORCH=1
}

setup() {
    [[ ! ${NO_TORCH-} || $BATS_TEST_DESCRIPTION == vectors* ]] ||
        skip "Debian's python3-torch is not installed"
    mkdir "$BATS_TEST_TMPDIR/work"
    cd "$BATS_TEST_TMPDIR/work" || exit
    head -n 101 "$HWNAS_SRC/tests/data/nas_bench_201.csv" >data.csv
}

# model LAYOUT OPTION...: encodes the table, fits and writes model.onnx, and what PyTorch says to expected.
model() {
    "$HWNAS" predictor encode nas_bench_201 data.csv --layout "$1" >vectors.csv
    shift
    /usr/bin/python3 "$HWNAS_SRC/tests/peers/torch_predictor.py" vectors.csv data.csv \
        c100_test_top1_pct model.onnx "$@" >expected
}

# agrees: scores are PyTorch's. Both differ from double precision by up to 1e-5, in opposite directions where chance has it so.
agrees() {
    ends 0 predictor score onnx:model.onnx nas_bench_201 data.csv
    /usr/bin/python3 - <<'END'
import csv
ours = [(float(r["mean"]), float(r["sd"])) for r in csv.DictReader(open("out"))]
theirs = [tuple(map(float, line.split())) for line in open("expected")]
assert len(ours) == len(theirs) == 100
assert all(abs(a - b) <= 4e-5 * max(1, abs(b)) for x, y in zip(ours, theirs) for a, b in zip(x, y))
END
}

@test "a model of PyTorch's, as PyTorch runs it" {
    model one-hot
    agrees
    ends 0 predictor eval onnx:model.onnx#c100_test_top1_pct nas_bench_201 data.csv --json
    is out "d['rows'] == 100 and d['kendall_tau'] > 0.6"
}

@test "the other layout, one output for both numbers, and batches that do not divide the rows" {
    model values --one-output --batch 7
    agrees
}

@test "a model of another length, of other outputs, or no model" {
    model one-hot
    refuses 2 "input is 1x30*'nas_bench_macro' it must be batch x 24 (one-hot) or 8 (values)" \
        predictor eval onnx:model.onnx nas_bench_macro "$TABLE"
    ends 0 export --space nas_bench_201 --arch 421211 --format onnx --out net.onnx
    refuses 2 "input is 1x3x32x32" predictor eval onnx:net.onnx nas_bench_201 data.csv
    refuses 2 "nothing.onnx: cannot open" predictor eval onnx:nothing.onnx nas_bench_201 data.csv
    refuses 2 "names no file" predictor eval onnx: nas_bench_201 data.csv
    head -c 100 model.onnx >half.onnx
    refuses 2 "half.onnx" predictor eval onnx:half.onnx nas_bench_201 data.csv
    /usr/bin/python3 - <<'END'
import torch
torch.onnx.export(torch.nn.Linear(30, 3), torch.zeros(1, 30), "three.onnx")
nan = torch.nn.Linear(30, 1)
torch.nn.init.constant_(nan.bias, float("nan"))
torch.onnx.export(nan, torch.zeros(1, 30), "nan.onnx")
torch.onnx.export(torch.nn.Linear(30, 2), torch.zeros(1, 30), "negative.onnx")
END
    refuses 2 "a mean for each row" predictor eval onnx:three.onnx nas_bench_201 data.csv
    refuses 2 "the model gives the mean nan" predictor score onnx:nan.onnx nas_bench_201 data.csv
    refuses 2 "the model gives the deviation -" predictor score onnx:negative.onnx nas_bench_201 data.csv
}

@test "vectors: conditions, symbols, numbers" {
    cat >space.yaml <<'END'
hwnas: 1
name: cond
input: {features: [4]}
choices:
  depth: {values: [1, 2]}
  width: {each_of: 2, values: [8, 16], when: "i < depth"}
network:
  - for: {w: width}
    do:
      - linear: {out: w}
END
    printf 'code\n"depth=1,width=16.8"\n"depth=2,width=16.16"\n' >codes.csv
    ends 0 predictor encode space.yaml codes.csv
    cat >want <<'END'
code,depth[1]=1,depth[1]=2,width[1]=8,width[1]=16,width[2]=8,width[2]=16
"depth=1,width=16.8",1,0,0,1,0,0
"depth=2,width=16.16",0,1,0,1,0,1
END
    diff want out
    ends 0 predictor encode space.yaml codes.csv --layout values
    says out '"depth=1,width=16.8",1,16,0'
    refuses 2 "did you mean 'values'" predictor encode space.yaml codes.csv --layout value
}
