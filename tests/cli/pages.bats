# The commands of README.md and of docs/, as they stand there and in their order, on small files. What no test
# can run is marked in the page, with the reason (commands.py).
load helpers

DATA=$HWNAS_SRC/tests/data

setup_file() {
    find_ort
    load_torch
}

teardown_file() {
    end_torch
}

# Long searches and large networks are cut short: a page's command is right when it runs, not when it has found much.
SHORTER=(
    -e 's/ +# .*$//'
    -e 's/hwnas devices$/hwnas devices cpu/'
    -e 's/ --minutes [0-9.]+/ --minutes 0.1/'
    -e '/hwnas calibrate/s/ --minutes 0.1/ --minutes 0.05/'
    -e '/hwnas calibrate/s/ -n 10 / -n 3 /'
    -e 's/ --seconds 12.5/ --seconds 0.1/'
    -e '/--profile /s/ --latency-target [0-9]+ms/ --latency-target 9000ms --percentile p50/'
    -e 's/accel_nasbench --arch CODE/nas_bench_macro --arch 22221220/'
    -e "/hwnas optimize/s/\$/ --constraints 'macs <= 0.7 x' --max-loss 95 --minutes 0.1/"
    -e '/hwnas profile/s/$/ --seconds 0.05/'
    -e '/--device cpu,ort,torch/s/$/ --batch 1 --threads 1/'
    -e '/hwnas compare .*--training --device cpu,torch/s/$/ --batch 4 --threads 1/'
    -e '/hwnas compare .*--dtype f32,s8,mixed/s/$/ --batch 1 --threads 1/'
    -e '/hwnas compare/{' -e '/ --(outputs|profile) /!s/$/ --seconds 0.05/' -e '}'
    -e '/examples.profiles/!s/(hwnas .*)resnet50/\1mnist_cnn/'
    -e '/hwnas search/s/$/ --trials 3 --seconds 0.05/'
    -e 's/ --trial 80 / --trial 2 /'
    -e '/hwnas (search|study)/s/(latency[^ ]* <= [0-9]+) ms/\1000 ms/g' # what a busy machine keeps as well
)

# follow PAGE LEAST: runs the commands of a page, at least that many.
follow() {
    local line n=0 failed=0
    alone
    hwnas() { "$HWNAS" "$@"; }
    export PATH=${HWNAS%/*}:/usr/bin:$PATH # Debian's Python has PyTorch
    take_rooflines
    /usr/bin/python3 "$HWNAS_SRC/tests/cli/commands.py" "$HWNAS_SRC/$1" >commands
    computes bf16 || SHORTER+=(-e 's/(--dtype [^ ]*),bf16/\1/' -e 's/--dtype bf16/--dtype f32/')
    while read -r line; do
        [[ $line = run\ * ]] || continue
        line=$(sed -E "${SHORTER[@]}" <<<"${line#run }" | images_here)
        echo "\$ $line"
        eval "$line" </dev/null || { echo "exit code $?"; failed=1; }
        n=$((n + 1))
    done <commands
    leave_rooflines
    [ $failed = 0 ]
    [ $n -ge "$2" ]
}

# block PAGE WORDS: the block of a page whose first line begins so, without what indents it.
block() {
    awk -v words="$2" '
        /^```/ { fence = !fence; if (inside) exit; next }
        { bare = $0; if (!fence) sub(/^    /, "", bare) }
        !inside && index(bare, words) == 1 { inside = 1 }
        inside && (fence ? 0 : !/^    /) { exit }
        inside { print bare }' "$HWNAS_SRC/$1"
}

# images: trained.onnx and images that it knows, as a user has them.
images() {
    cp "$DATA/fashion_tiny.onnx" net.onnx
    cp "$DATA/fashion_images.gz" images.gz
    cp "$DATA/fashion_labels.gz" labels.gz
    /usr/bin/python3 - <<END
import gzip
import numpy as np
x = np.frombuffer(gzip.open("images.gz").read()[16:], np.uint8).reshape(-1, 1, 28, 28)
y = np.frombuffer(gzip.open("labels.gz").read()[8:], np.uint8)
x = ((x / 255 - 0.286) / 0.353).astype(np.float32)
np.savez("val.npz", x=x, y=y.astype(np.int64))
np.save("x.npy", x[:4])
END
}

# table FROM TO ROWS: the first rows of a table of tests/data.
table() { head -n "$3" "$DATA/$1" >"$2"; }

@test "README.md" {
    need torch numpy
    images
    mv net.onnx model.onnx
    block README.md 'space: accel_nasbench' | sed 's/<= 10 ms/<= 10000 ms/' >job.yaml
    grep -q '10000 ms' job.yaml
    "$HWNAS" profile mnist_cnn --device null --seconds 0.02 --name gpu --save gpu.json >gpu.txt
    sed 's/xeon-2c:/here:/; s/v100:/gpu:/' "$HWNAS_SRC/examples/prices.yaml" >prices.yaml
    follow README.md 20
    [ -s best.onnx ]
    [ -s job.html ]
}

@test "a tutorial: a search, its report, the winner as a file" {
    follow docs/tutorial-search.md 9
    [ -s first.html ]
    [ -s best.onnx ]
    [ -s best.py ]
}

# trainable PAGE: space.yaml and recipe.yaml of a page, the recipe with the few images of tests/data.
trainable() {
    block "$1" 'hwnas: 1' >space.yaml
    block "$1" 'data:' | images_here | sed 's/epochs: 3/epochs: 1/' >recipe.yaml
}

# images_here: text, with the few images of tests/data in the place of Fashion-MNIST's.
images_here() {
    sed -E -e "s|/usr/[^ ]*images[^ ]*|$DATA/fashion_images.gz|" -e "s|/usr/[^ ]*labels[^ ]*|$DATA/fashion_labels.gz|"
}

@test "a tutorial: networks are trained in a search, the winner to the end, and written in 8 bits" {
    need torch numpy yaml
    export HWNAS_TORCH_PYTHON=$LOADED_PYTHON
    trainable docs/tutorial-train.md
    follow docs/tutorial-train.md 10
    [ -s clothes.html ]
    [ -s best-trained.onnx ]
    [ -s best-s8.onnx ]
}

@test "a tutorial: a profile, its roofline, a comparison" {
    follow docs/tutorial-profile.md 7
    [ -s here.html ]
    [ -s roofline.svg ]
    [ -s choice.html ]
}

@test "docs/cluster.md" {
    job
    "$HWNAS" search job.yaml --study monday.db --quiet
    "$HWNAS" search job.yaml --study tuesday.db --seed 2 --quiet
    cp monday.db phone.db
    follow docs/cluster.md 5
    [ -s both.db ]
}

@test "docs/cpu-or-gpu.md" {
    cp -r "$HWNAS_SRC/examples" .
    follow docs/cpu-or-gpu.md 2
    [ -s xeon-2c.json ]
}

@test "docs/evaluate.md" {
    need numpy onnx
    images
    /usr/bin/python3 - <<END
import numpy as np, onnx
from onnx import TensorProto, helper
def tensor(name): return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 4])
graph = helper.make_graph([helper.make_node("Add", ["a", "b"], ["sum"])], "two", [tensor("a"), tensor("b")], [tensor("sum")])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), "two.onnx")
for name in "ab": np.save(name + ".npy", np.ones((3, 4), np.float32))
END
    follow docs/evaluate.md 6
    [ -s small.onnx ]
    [ -s mixed.onnx ]
    [ -s y.npy ]
}

@test "docs/latency-table.md" {
    table nas_bench_201_latency.csv published.csv 300
    follow docs/latency-table.md 2
}

@test "docs/optimize.md" {
    need torch numpy
    images
    mv net.onnx model.onnx
    follow docs/optimize.md 2
}

@test "docs/predictors.md" {
    need numpy
    table nas_bench_macro.csv DATA.csv 20
    cp "$HWNAS_SRC/search_spaces/nas_bench_macro.yaml" SPACE
    follow docs/predictors.md 1
    [ "$(wc -l <vectors.csv)" -ge 19 ]
}

@test "docs/precision.md" {
    images
    cp "$HWNAS_SRC/examples/prices.yaml" .
    follow docs/precision.md 2
}

@test "docs/profiling.md" {
    follow docs/profiling.md 1
}

@test "docs/report.md" {
    "$HWNAS" search "$REPLAY" --study quickstart.db --trials 40 --quiet
    "$HWNAS" search "$REPLAY" --study other.db --trials 40 --seed 2 --quiet
    follow docs/report.md 9
    [ -s for-you.html ]
    [ -s front.svg ]
    [ -s here.html ]
}

@test "docs/search-spaces.md" {
    need torch onnx
    cp "$DATA/fashion_tiny.onnx" model.onnx
    follow docs/search-spaces.md 1
    "$HWNAS" space check mine.yaml
}

@test "docs/training.md" {
    need torch numpy yaml
    export HWNAS_TORCH_PYTHON=$LOADED_PYTHON
    trainable docs/training.md
    cp recipe.yaml long.yaml
    block docs/training.md 'space: space.yaml' | sed /train-budget/d >job.yaml
    cp "$HWNAS_SRC/examples/prices.yaml" .
    follow docs/training.md 5
    [ -s best-trained.onnx ]
}

@test "a page without a test of its own has no command" {
    local page
    for page in "$HWNAS_SRC"/docs/*.md; do
        page=docs/${page##*/}
        grep -q "$page" "$HWNAS_SRC"/tests/cli/*.bats ||
            [ -z "$(/usr/bin/python3 "$HWNAS_SRC/tests/cli/commands.py" "$HWNAS_SRC/$page")" ] || { echo "$page"; return 1; }
    done
}

@test "each page of docs/ is in one of the four parts of docs/README.md" {
    local page
    for page in "$HWNAS_SRC"/docs/*.md; do
        page=${page##*/}
        [ "$page" = README.md ] || grep -q "^| \[$page\]($page) |" "$HWNAS_SRC/docs/README.md" || { echo "$page"; return 1; }
    done
}
