# All networks of a space as slices of one set of weights: `hwnas export SPACE --supernet`, `accuracy: supernet:RECIPE`.
load helpers

DATA=$HWNAS_SRC/tests/data

setup_file() {
    load_torch
}

teardown_file() {
    end_torch
}

setup() {
    need torch yaml
    export HWNAS_TORCH_PYTHON=$LOADED_PYTHON XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
    mkdir "$BATS_TEST_TMPDIR/work"
    cd "$BATS_TEST_TMPDIR/work" || exit
    cat >tiny.yaml <<'END'
hwnas: 1
name: tiny
input: {image: [1, 28, 28]}
choices:
  width: {values: [[4, 8], [8, 12]]}
  depth: {each_of: 2, values: [1, 2]}
  kernel: {each_of: 2, values: [3, 5]}
  kind: {each_of: 2, values: [dense, separable]}
network:
  - for: {w: width, d: depth, k: kernel, t: kind}
    do:
      - conv: {out: w, kernel: 3, stride: 2, pad: 1}
      - batch_norm
      - relu
      - repeat: d
        do:
          - residual:
              - switch: t
                cases:
                  dense:
                    - conv: {out: w, kernel: k, pad: k // 2, bias: false}
                  separable:
                    - conv: {out: in, kernel: k, pad: k // 2, groups: in, bias: false}
                    - conv: {out: w}
              - batch_norm: {affine: "i == 0"}
              - relu
  - global_avg_pool
  - flatten
  - linear: {out: 10}
END
    cat >recipe.yaml <<END
data:
  train: $DATA/fashion_images.gz
  train-labels: $DATA/fashion_labels.gz
  validation: 0.5
  scale: 1/255
  mean: 0.286
  std: 0.353
epochs: 12
batch: 32
optimizer: {name: adamw, rate: 0.01}
threads: 1
END
}

# trained: the files of the recipe's supernet, ten networks (codes.csv) and what it says of them (ours.csv), in this folder. It is
# trained once for all tests.
trained() {
    local made=$BATS_FILE_TMPDIR/trained
    if [ -d "$made" ]; then
        cp "$made"/* .
        return
    fi
    "$HWNAS" space sample tiny.yaml --n 10 --seed 1 --json | /usr/bin/python3 -c '
import json, sys
print("arch", *("\"" + a["arch"] + "\"" for a in json.load(sys.stdin)["archs"]), sep="\n")' >codes.csv
    ends 0 predictor score supernet:recipe.yaml tiny.yaml codes.csv
    mv out ours.csv
    mkdir "$made"
    cp recipe.tiny.supernet* codes.csv ours.csv "$made"
}

@test "a supernet's networks have the parameters of the space's: six spaces that ship" {
    local space shape judged=()
    for space in fashion_mnist:1x28x28 nas_bench_macro:3x32x32 nas_bench_201:3x32x32 transnas_micro:3x64x64 \
        ofa_mobilenet_v3_224:3x64x64 accel_nasbench:3x64x64; do
        shape=${space#*:} space=${space%:*}
        ends 0 export "$space" --supernet "$space.py"
        "$HWNAS" space sample "$space" --n 12 --seed 3 --json >"$space.json"
        judged+=("$space.py" "$space.json" "$shape")
    done
    /usr/bin/python3 "$HWNAS_SRC/tests/peers/supernet.py" params "${judged[@]}"
}

# Names that blocks have in common: the inner loop's index, and a value that is told anew in each turn.
@test "a supernet's blocks have names of their own, as the space's have" {
    cat >space.yaml <<'END'
hwnas: 1
name: nested
input: {image: [1, 8, 8]}
choices:
  n: {each_of: 2, values: [1, 2, 3]}
templates:
  block(w):
    - let: {w: w + 1}
    - conv: {out: w, kernel: 1}
network:
  - let: {w: 4}
  - repeat: 2
    do:
      - let: {w: w * 2}
      - repeat: n[i]
        do:
          - conv: {out: w + i, kernel: 1}
      - conv: {out: w + 3 * i, kernel: 3, pad: 1}
  - conv: {out: w, kernel: 1}
  - block: {w: w}
  - global_avg_pool
  - flatten
  - linear: {out: 10}
END
    ends 0 export space.yaml --supernet net.py
    "$HWNAS" space sample space.yaml --n 9 --seed 1 --json >codes.json
    /usr/bin/python3 "$HWNAS_SRC/tests/peers/supernet.py" params net.py codes.json 1x8x8
}

@test "networks with slices of trained weights are as good by this engine as by PyTorch" {
    trained
    ends 0 export tiny.yaml --supernet net.py
    /usr/bin/python3 "$HWNAS_SRC/tests/peers/supernet.py" score net.py recipe.tiny.supernet codes.csv 32 >theirs
    /usr/bin/python3 - <<'END'
import csv
ours = [float(row["mean"]) for row in csv.DictReader(open("ours.csv"))]
theirs = [float(line) for line in open("theirs")]
# A sample that lies between two classes may fall on the other side: one of 96.
assert len(ours) == len(theirs) == 10 and all(abs(a - b) < 1.1 for a, b in zip(ours, theirs)), (ours, theirs)
assert sum(abs(a - b) < 0.01 for a, b in zip(ours, theirs)) >= 8, (ours, theirs)
assert len(set(ours)) > 3 and max(ours) > 25, ours  # it has learned, and networks differ
END
    # It is trained once, and a search judges by it.
    HWNAS_TORCH_PYTHON=/usr/bin/python3 ends 0 search --space tiny.yaml --accuracy supernet:recipe.yaml --device cpu \
        --objectives accuracy,latency.p50 --trials 4 --study s.db --seconds 0.05
    [ "$(grep -c '' recipe.tiny.supernet.csv)" = 13 ]
    ! grep -q 'epoch 1 of' err
    # A study goes on with these weights alone, whatever made the others. The same ones may be elsewhere.
    local how=(search --space tiny.yaml --accuracy supernet:recipe.yaml --device cpu --objectives accuracy,latency.p50 --seconds 0.05 --study s.db --resume)
    /usr/bin/python3 - <<'END'
import os, shutil
import numpy as np
shutil.copy("recipe.tiny.supernet.npz", "kept.npz")
weights = dict(np.load("kept.npz"))
name = sorted(weights)[0]
weights[name] = weights[name] + 1e-6
np.savez("recipe.tiny.supernet.npz", **weights)
END
    refuses 2 's.db: the accuracies of this study are of other weights than those of recipe.tiny.supernet.npz' "${how[@]}" --trials 5
    rm recipe.tiny.supernet.npz
    refuses 2 's.db: the weights that the accuracies of this study are of are not there: recipe.tiny.supernet.npz' "${how[@]}" --trials 5
    mv kept.npz recipe.tiny.supernet.npz
    ends 0 "${how[@]}" --trials 5
    # Nor are trials of two supernets put together.
    cp s.db t.db
    ends 0 study merge s.db t.db --out both.db
    /usr/bin/python3 -c '
import sqlite3
with sqlite3.connect("t.db") as t:
    assert t.execute("UPDATE fact SET value = ? WHERE key = ?", ("another", "weights")).rowcount == 1'
    refuses 2 't.db: it has another supernet than s.db' study merge s.db t.db --out none.db
    # One that does not say hides none of the others, and what they are of is known of all.
    /usr/bin/python3 -c '
import sqlite3
with sqlite3.connect("both.db") as old:
    assert old.execute("DELETE FROM fact WHERE key = ?", ("weights",)).rowcount == 1'
    refuses 2 't.db: it has another supernet than s.db' study merge both.db s.db t.db --out none.db
    ends 0 study merge both.db s.db --out all.db
    /usr/bin/python3 -c '
import sqlite3
of = [sqlite3.connect(f).execute("SELECT value FROM fact WHERE key = ?", ("weights",)).fetchone() for f in ("s.db", "all.db")]
assert of[0] and of[0] == of[1], of'
}

@test "a supernet that was killed goes on, and comes to the same weights" {
    printf 'arch\n"width=4.8,depth=11,kernel=33,kind=dense.dense"\n' >one.csv
    trained
    mkdir again
    cp tiny.yaml recipe.yaml one.csv again
    cd again
    "$HWNAS" predictor score supernet:recipe.yaml tiny.yaml one.csv >out 2>err </dev/null &
    local pid=$!
    until [ -e recipe.tiny.supernet.pt ]; do kill -0 $pid || { cat err; return 1; }; sleep 0.05; done
    kill -9 $pid
    wait $pid || true
    [ ! -e recipe.tiny.supernet.npz ]
    # A mark in the curve of what was kept: who begins anew loses it.
    /usr/bin/python3 -c '
import torch
state = torch.load("recipe.tiny.supernet.pt")
state["curve"][0][1] = 123.
torch.save(state, "recipe.tiny.supernet.pt")'
    ends 0 predictor score supernet:recipe.yaml tiny.yaml one.csv
    /usr/bin/python3 -c '
import numpy as np
a, b = np.load("recipe.tiny.supernet.npz"), np.load("../recipe.tiny.supernet.npz")
assert sorted(a) == sorted(b) and all((a[name] == b[name]).all() for name in a)'
    grep -q '^1,123,' recipe.tiny.supernet.csv
    # Of another recipe: refused, unless its files are others.
    sed -i 's/epochs: 12/epochs: 1/' recipe.yaml
    refuses 2 'recipe.yaml: recipe.tiny.supernet.npz was trained otherwise: the recipe was another' predictor score supernet:recipe.yaml tiny.yaml one.csv
    ends 0 predictor score 'supernet:recipe.yaml#weights=other' tiny.yaml one.csv
    [ -s other.npz ]
}

# cannot PLACE PATTERN: the space in space.yaml cannot share weights, and its line says why.
cannot() {
    refuses 1 "space.yaml:$1: $2" export space.yaml --supernet net.py
    [ ! -e net.py ]
}

@test "spaces that cannot be shared are refused at the line that is why" {
    sed 's/out: w, kernel: 3,/out: w, kernel: "d + 2",/' tiny.yaml >space.yaml
    cannot '12:*' "the weights of 'conv' cannot be shared: whether its kernel is odd"
    sed 's/- relu$/- prelu/' tiny.yaml >space.yaml
    cannot '14:*' "networks with 'prelu' cannot share weights yet"
    sed "s/affine: .*/affine: \"t == dense\"}/" tiny.yaml >space.yaml
    cannot '25:*' "the weights of 'batch_norm' cannot be shared: some networks learn its scale, and others have none"
    sed 's/\[1, 28, 28\]/[1, 28, "14 * depth[0]"]/' tiny.yaml >space.yaml
    cannot '3:*' "the input's shape is chosen, and samples have one"
    sed 's/- global_avg_pool/- max_pool: {kernel: 1, stride: "depth[0]"}/' tiny.yaml >space.yaml
    cannot '28:*' "the weights of 'flatten' cannot be shared: the size of the image"
    printf 'constraints:\n  - width[0] + width[1] < 20\n' | cat tiny.yaml - >space.yaml
    cannot '31:*' 'no network has all of the greatest values'
    sed '/^choices:/,/^network:/{/^network:/!d}; s/for: {.*/for: {w: [4], d: [1], k: [3], t: [dense]}/' tiny.yaml >space.yaml
    refuses 1 'space.yaml: the space has one network' export space.yaml --supernet net.py
    refuses 2 '--supernet goes with a space' export tiny.yaml --supernet net.py --format onnx
}

@test "what is wrong with a supernet is told before it is trained" {
    printf 'arch\n"width=4.8,depth=11,kernel=33,kind=dense.dense"\n' >one.csv
    refuses 2 "a supernet has no option 'stat'" predictor score 'supernet:recipe.yaml#stat=3' tiny.yaml one.csv
    refuses 2 "'count' of a supernet is how many samples" predictor score 'supernet:recipe.yaml#count=x' tiny.yaml one.csv
    for file in other.npz other.csv other.pt other.json; do
        echo mine >"$file"
        refuses 2 "recipe.yaml: there are files other.* that are of no supernet" predictor score 'supernet:recipe.yaml#weights=other' tiny.yaml one.csv
        [ "$(cat "$file")" = mine ]
        rm "$file"
    done
    refuses 2 'recipe.yaml: nothing can be written into the folder none' predictor score 'supernet:recipe.yaml#weights=none/other' tiny.yaml one.csv
    mkdir other.lock
    refuses 2 'recipe.yaml: other.lock cannot be written: Is a directory' predictor score 'supernet:recipe.yaml#weights=other' tiny.yaml one.csv
    rmdir other.lock
    refuses 2 'recipe.yaml: nothing can be written into the folder none' search --space tiny.yaml --accuracy 'supernet:recipe.yaml#weights=none/other' --device cpu --objectives accuracy --trials 2 --study s.db --dry-run
    refuses 2 'there is no such recipe' predictor score supernet:none.yaml tiny.yaml one.csv
    sed -i 's/epochs: 12/epochs: none/' recipe.yaml
    refuses 2 'recipe.yaml:8:9: epochs must be a whole number' search --space tiny.yaml --accuracy supernet:recipe.yaml --device cpu --objectives accuracy --trials 2 --study s.db --dry-run
    [ ! -e s.db ]
    [ -z "$(find . -name '*.supernet*')" ]
}

@test "too few samples are told before a supernet is trained, and one that diverges is trained once" {
    printf '#!/bin/sh\ncase "$*" in *--check* | *--serve*) ;; *) echo "$*" >>%s ;; esac\nexec /usr/bin/python3 "$@"\n' "$PWD/trainings" >python
    chmod +x python
    export HWNAS_TORCH_PYTHON=$PWD/python
    local search=(search --space tiny.yaml --accuracy supernet:recipe.yaml --device null --objectives accuracy --trials 8 --study s.db)
    sed -i 's/validation: 0.5/validation: 0.1/' recipe.yaml
    refuses 2 'recipe.yaml: 26 samples are too few to find statistics' "${search[@]}"
    [ ! -e trainings ]
    [ ! -e s.db ]
    sed -i 's/validation: 0.1/validation: 0.5/; s/rate: 0.01/rate: 1e9/' recipe.yaml
    refuses 2 'each of the first 5 trials failed, last error: the training diverged in epoch 1' "${search[@]}"
    [ "$(wc -l <trainings)" = 1 ]
}
