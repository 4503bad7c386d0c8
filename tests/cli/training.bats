# Networks that are trained by a recipe: `accuracy: train:RECIPE`. Tiny networks and 256 images.
load helpers

DATA=$HWNAS_SRC/tests/data

setup() {
    need torch yaml
    export HWNAS_TORCH_PYTHON=/usr/bin/python3 XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
    mkdir "$BATS_TEST_TMPDIR/work"
    cd "$BATS_TEST_TMPDIR/work" || exit
    cat >tiny.yaml <<'END'
hwnas: 1
name: tiny
input: {image: [1, 28, 28]}
choices:
  width: {values: [4, 8]}
network:
  - conv: {out: width, kernel: 3, stride: 2, pad: 1}
  - batch_norm
  - relu
  - global_avg_pool
  - flatten
  - linear: {out: 10}
END
    printf 'arch\nwidth=4\nwidth=8\n' >both.csv
    printf 'arch\nwidth=8\n' >one.csv
}

# recipe LINE...: writes recipe.yaml; its data are lines 1 to 7.
recipe() {
    cat >recipe.yaml <<END
data:
  train: $DATA/fashion_images.gz
  train-labels: $DATA/fashion_labels.gz
  validation: 0.25
  scale: 1/255
  mean: 0.286
  std: 0.353
END
    printf '%s\n' "$@" >>recipe.yaml
}

# wrong PLACE PATTERN: the recipe is refused before anything is trained, and says where and why.
wrong() {
    refuses 2 "recipe.yaml:$1: $2" predictor score train:recipe.yaml tiny.yaml one.csv
    [ ! -e recipe.tiny.csv ]
    [ -z "$(find . -name '*.pt')" ]
}

# held_python: writes ./python, in which a training stops for ever as it tells of the epoch that stands in the file `hold`;
# what it tells is in the file `said` as well. Where there is a file `deadly`, each epoch kills the process that had loaded
# PyTorch for it, as counting() knows it. A file `own.py` is run first, and its tell() hears all that is told.
held_python() {
    cat >python <<'END'
#!/usr/bin/python3
import builtins, os, runpy, sys, time
plain = print
own = runpy.run_path("own.py") if os.path.exists("own.py") else {"tell": len}

def tell(*words, **how):
    text = " ".join(map(str, words))
    own["tell"](text)
    with open("said", "a") as file:
        file.write(text + "\n")
    plain(*words, **how)
    while os.path.exists("hold") and text.startswith(f"epoch {open('hold').read().strip()} "):
        time.sleep(0.05)
    if os.path.exists("deadly") and text.startswith("epoch "):
        loader = int(open("loaded").read().split()[-1])
        if loader != os.getpid():
            os.kill(loader, 9)
            time.sleep(600)

builtins.print = tell
sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(sys.argv[0])
runpy.run_path(sys.argv[0], run_name="__main__")
END
    chmod +x python
}

@test "a network is trained as a plain PyTorch program trains it, and once" {
    recipe 'epochs: 3' 'batch: 192' 'optimizer: {name: sgd, rate: 0.2}' 'schedule: cosine' 'label-smoothing: 0.1' 'threads: 1'
    ends 0 predictor score train:recipe.yaml tiny.yaml one.csv
    cp out first
    [ "$(cut -d, -f1 recipe.tiny.csv)" = "$(printf 'code\n"8"')" ] || [ "$(wc -l <recipe.tiny.csv)" = 2 ]
    ends 0 export --space tiny.yaml --arch width=8 --format pytorch --out net.py
    rm recipe.tiny.trainings/recipe.json
    /usr/bin/python3 "$HWNAS_SRC/tests/peers/plain_training.py" net.py "$DATA" recipe.tiny.trainings/*.json
    # It is known: nothing is trained again, and the results are a table like others.
    HWNAS_TORCH_PYTHON=/bin/false ends 0 predictor score train:recipe.yaml tiny.yaml one.csv
    cmp out first
    ends 0 predictor score table:recipe.tiny.csv#accuracy_pct tiny.yaml one.csv
    cmp <(cut -d, -f1,2 out) <(cut -d, -f1,2 first)
}

@test "a shifted image is a part of itself with a black edge, whatever scale, mean and deviation it has" {
    /usr/bin/python3 - "$HWNAS_SRC/training" <<'END'
import sys
sys.path.insert(0, sys.argv[1])
import loop, numpy as np, torch
from torch.nn import functional as F
raw = np.random.default_rng(0).integers(0, 256, (64, 3, 8, 8)).astype(np.uint8)
samples = loop.Samples(raw, None, {"scale": "1/255", "mean": "0.5:0.4:0.3", "std": "0.2:0.3:0.4"}, (3, 8, 8))
torch.manual_seed(1)
found = loop.vary(samples.inputs(np.arange(64), "cpu"), {"shift": 2}, samples.scaled(torch.zeros(1, 3, 1, 1)))
# As He et al., CVPR 2016, vary CIFAR-10: the bytes get their edge before they are normalised.
edged = F.pad(torch.from_numpy(raw).float() / 255, [2] * 4)
edged = (edged - torch.tensor([0.5, 0.4, 0.3])[:, None, None]) / torch.tensor([0.2, 0.3, 0.4])[:, None, None]
places = set()
for image, parts in zip(found, edged.unfold(2, 8, 1).unfold(3, 8, 1)):
    off = (parts.permute(1, 2, 0, 3, 4) - image).abs().amax((2, 3, 4))
    assert off.min() < 1e-6
    places.add(int(off.argmin()))
assert len(places) > 15
END
}

@test "what was killed goes on where it was: no finished training is lost or done twice" {
    recipe 'epochs: 12' 'batch: 16' 'augment: {flip: true, shift: 2, crop: 0.7, cutout: 4}' 'ema: 0.9' 'threads: 1'
    held_python
    HWNAS_TORCH_PYTHON=$PWD/python ends 0 predictor score train:recipe.yaml tiny.yaml both.csv
    cp out whole
    mkdir again
    cp tiny.yaml recipe.yaml both.csv python again
    cd again
    local round pid
    for round in 1 2; do
        rm -f said
        echo $((4 * round)) >hold
        HWNAS_TORCH_PYTHON=$PWD/python "$HWNAS" predictor score train:recipe.yaml tiny.yaml both.csv >out 2>err </dev/null &
        pid=$!
        until grep -qs "^epoch $((4 * round)) " said; do kill -0 $pid || { cat err; return 1; }; sleep 0.05; done
        kill -9 $pid
        wait $pid || true
        mv said "said.$round"
    done
    rm hold
    HWNAS_TORCH_PYTHON=$PWD/python ends 0 predictor score train:recipe.yaml tiny.yaml both.csv
    cmp out ../whole
    # What went on did not begin anew.
    grep -q '^epoch 1 ' said.1
    not grep -q '^epoch 1 ' said.2
    [ "$(wc -l <recipe.tiny.csv)" = 3 ]
    # The answer of a finished training that nobody heard is not computed again.
    head -n 2 recipe.tiny.csv >one
    mv one recipe.tiny.csv
    rm said
    HWNAS_TORCH_PYTHON=$PWD/python ends 0 predictor score train:recipe.yaml tiny.yaml both.csv
    cmp out ../whole
    [ -s said ]
    not grep -q '^epoch' said
    # Results of two recipes are not mixed.
    sed -i 's/epochs: 12/epochs: 4/' recipe.yaml
    printf 'arch\nwidth=4\n' >both.csv
    head -n 1 recipe.tiny.csv >one
    mv one recipe.tiny.csv
    refuses 2 'recipe.yaml: the networks of recipe.tiny.trainings were trained otherwise: epochs was 12, is 4*#cache=' \
        predictor score train:recipe.yaml tiny.yaml both.csv
}

@test "a storm of kills in one search that trains: no finished training is lost or done twice" {
    local n=3
    [ -z "${HWNAS_LONG:-}" ] || n=50
    sed "s/^name: tiny/name: many/; s/values: .*/values: [$(seq -s, 2 61)]}/" tiny.yaml >many.yaml
    recipe 'epochs: 3' 'batch: 16' 'threads: 1'
    /usr/bin/python3 "$HWNAS_SRC/tests/cli/training_storm.py" "$HWNAS" $n >&3
}

@test "a recipe that is wrong is told with its place before anything is trained" {
    recipe 'epoch: 3'
    wrong 8:1 "the recipe has no key 'epoch'*did you mean 'epochs'?"
    recipe 'epochs: 3' 'optimizer: {name: adam}'
    wrong 9:19 "name is sgd or adamw, not 'adam'*did you mean 'adamw'?"
    recipe 'epochs: 3' 'schedule: steps'
    wrong 9:11 "*needs the epochs at which the rate falls"
    recipe 'epochs: [3'
    wrong 9:1 "this is not YAML"
    refuses 2 'other.yaml: there is no such recipe' predictor score train:other.yaml tiny.yaml one.csv
    refuses 2 "no option 'job'*did you mean 'jobs'?" predictor score train:recipe.yaml#job=2 tiny.yaml one.csv
}

@test "data that do not fit, a GPU or PyTorch that is not there: told before anything is trained" {
    local device=cuda:63 # which no machine has
    recipe 'epochs: 3' "device: $device"
    wrong 9:9 "there is no GPU $device: PyTorch *write device: auto"
    recipe 'epochs: 3'
    mkdir -p images/cat images/dog
    sed -i "s|train: .*|train: images|" recipe.yaml
    wrong 2:10 "no images in */images*a folder for each class"
    /usr/bin/python3 - <<'END'
import numpy as np
np.savez('other.npz', x=np.zeros((64, 28, 28), np.uint8), y=np.full(64, 10))
END
    sed -i "s|train: .*|train: other.npz|; /train-labels/d" recipe.yaml
    wrong 2:10 "*a label is 10, of 10 classes from 0 on"
    /usr/bin/python3 - <<'END'
import numpy as np
x, y = np.zeros((64, 28, 28), np.float32), np.arange(64) % 10
holes, halves, numbers = x.copy(), y.astype(np.float32), np.zeros((64, 10), np.float32)
holes[41, 3, 3], halves[5], numbers[7, 2] = np.nan, 2.5, np.inf
np.savez('below.npz', x=x, y=np.where(y == 3, -2, y))
np.savez('holes.npz', x=holes, y=y)
np.savez('halves.npz', x=x, y=halves)
np.savez('numbers.npz', x=x, y=numbers)
END
    sed -i "s|train: .*|train: below.npz|" recipe.yaml
    wrong 2:10 "*a label is -2, of 10 classes from 0 on"
    sed -i "s|train: .*|train: halves.npz|" recipe.yaml
    wrong 2:10 "*a label is 2.5, and classes are whole numbers"
    # What has no finite loss is no matter of the rate.
    sed -i "s|train: .*|train: holes.npz|" recipe.yaml
    wrong 2:10 "*holes.npz: sample 42 of 64 has a value that is no finite number"
    sed -i "s|train: .*|train: numbers.npz|" recipe.yaml
    wrong 2:10 "*numbers.npz: a label is no finite number"
    cat >without <<'END'
#!/usr/bin/python3
import os, runpy, sys
sys.modules["torch"] = None
sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(sys.argv[0])
runpy.run_path(sys.argv[0], run_name="__main__")
END
    chmod +x without
    recipe 'epochs: 3'
    HWNAS_TORCH_PYTHON=./without refuses 2 "has no torch*HWNAS_TORCH_PYTHON" predictor score train:recipe.yaml tiny.yaml one.csv
    # One that breaks while others wait for it to be loaded.
    mkdir broken
    printf 'import time\ntime.sleep(1)\nraise ImportError("it is broken", name="torch")\n' >broken/torch.py
    PYTHONPATH=$PWD/broken refuses 2 "has no torch: it is broken*HWNAS_TORCH_PYTHON" predictor score train:recipe.yaml tiny.yaml one.csv
    HWNAS_TORCH_PYTHON=./nowhere refuses 2 "./nowhere: there is no such program" predictor score train:recipe.yaml tiny.yaml one.csv
    # All that train say so, and a search before its first trial.
    HWNAS_TORCH_PYTHON=./without refuses 2 "has no torch*HWNAS_TORCH_PYTHON" train tiny.yaml --arch width=8 --recipe recipe.yaml
    HWNAS_TORCH_PYTHON=./without refuses 2 "has no torch*HWNAS_TORCH_PYTHON" \
        search --space tiny.yaml --accuracy train:recipe.yaml --objectives accuracy,macs --trials 2 --study s.db
    [ ! -e s.db ]
}

@test "a training that diverges is a failed trial with its reason" {
    recipe 'epochs: 2' 'batch: 32' 'optimizer: {rate: 1e9}' 'threads: 1'
    ends 1 search --space tiny.yaml --accuracy train:recipe.yaml --objectives accuracy,macs --trials 2 --study s.db --quiet
    ends 0 study trials s.db --json
    is out 'len(d["trials"]) == 2 and all("the training diverged in epoch 1" in t["message"] for t in d["trials"])'
    [ ! -e recipe.tiny.csv ]
}

@test "a search trains what it looks at, from a folder of images" {
    need PIL
    /usr/bin/python3 - "$DATA" <<'END'
import gzip, os, sys
import numpy as np
from PIL import Image
images = np.frombuffer(gzip.open(sys.argv[1] + '/fashion_images.gz').read()[16:], np.uint8).reshape(-1, 28, 28)
labels = np.frombuffer(gzip.open(sys.argv[1] + '/fashion_labels.gz').read()[8:], np.uint8)
for i, (image, label) in enumerate(zip(images, labels)):
    os.makedirs(f'images/{label}', exist_ok=True)
    Image.fromarray(image).save(f'images/{label}/{i:03}.png')
END
    mkdir job
    cat >job/recipe.yaml <<'END'
data: {train: ../images, validation: 0.25, mean: 0.286, std: 0.353}
epochs: 2
batch: 16
optimizer: {name: adamw, rate: 0.01}
schedule: one-cycle
precision: bf16
threads: 1
END
    cat >job/job.yaml <<'END'
space: ../tiny.yaml
accuracy: train:recipe.yaml
objectives: [accuracy, macs]
budget: {trials: 2}
study: s.db
END
    ends 0 search job/job.yaml --dry-run
    says out 'accuracy     trained by train:*recipe.yaml'
    [ -z "$(ls -d recipe.tiny.* s.db 2>/dev/null)" ]
    ends 0 search job/job.yaml --json
    is out 'd["finished"] == 2 and all(t["objectives"]["accuracy"]["source"] == "trained" for t in d["front"])'
    [ "$(wc -l <recipe.tiny.csv)" = 3 ]
    # Decoded once, for all networks.
    [ "$(find recipe.tiny.trainings -name 'images-*.npy' | wc -l)" = 1 ]
    # It is the recipe's contents that the study knows: another one is another search.
    sed -i 's/epochs: 2/epochs: 3/' job/recipe.yaml
    ends 2 search job/job.yaml --resume
}

# A space with enough networks for three rungs, and a recipe that has them.
ladder() {
    sed 's/name: tiny/name: many/; s/values: \[4, 8\]/values: [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]/' tiny.yaml >many.yaml
    recipe 'epochs: 6' 'batch: 16' 'optimizer: {rate: 0.2}' 'schedule: {name: steps, at: [4]}' 'threads: 1' \
        'augment: {shift: 2}' 'rungs: [{epochs: 1, data: 0.5, resolution: 0.5}, {epochs: 3}]'
}

SEARCH_RUNGS=(search --space many.yaml --accuracy train:recipe.yaml --objectives accuracy,macs --strategy successive-halving --trials 14 --study s.db --json)

# whole_ladder: the files of a search over the ladder that nothing ended, in this folder. It is made once for all tests.
whole_ladder() {
    local made=$BATS_FILE_TMPDIR/ladder
    if [ ! -s "$made/out" ]; then
        ladder
        ends 0 "${SEARCH_RUNGS[@]}"
        cp -r . "$made"
    else
        cp -r "$made/." .
    fi
}

@test "cheaper trainings first: most networks are trained at a rung, the best third goes on" {
    whole_ladder
    # The front has whole trainings alone.
    is out 'd["finished"] == 14 and d["front"] and all(t["objectives"]["accuracy"]["source"] == "trained" for t in d["front"])'
    ends 0 study show s.db
    says out '*cheaper rung'
    [ "$(wc -l <recipe.many.csv)" = 2 ]
    [ "$(wc -l <recipe.many.rung1.csv)" -ge 4 ]
    [ "$(wc -l <recipe.many.rung2.csv)" -ge 10 ]
    /usr/bin/python3 - <<'END'
import csv, glob, json
def read(name):
    return {row["digest"]: float(row["accuracy_pct"]) for row in csv.DictReader(open(name))}
whole, half, cheap = read("recipe.many.csv"), read("recipe.many.rung1.csv"), read("recipe.many.rung2.csv")
assert set(whole) < set(half) < set(cheap), "each went through the cheaper ones"
for rungs, values, epochs in (("", whole, 6), (".rung1", half, 3), (".rung2", cheap, 1)):
    for digest, accuracy in values.items():
        told = json.load(open(f"recipe.many.trainings/{digest}{rungs}.json"))
        assert len(told["curve"]) == epochs and abs(told["accuracy"] - accuracy) < 1e-3, told
assert sorted(half.values()) != sorted(cheap.values())
END
    # A rung is what a recipe with its epochs is: the schedule is as much shorter.
    sed -n 1,2p recipe.many.rung1.csv >want
    sed -i '/^rungs/d; s/epochs: 6/epochs: 3/; s/at: .4./at: [2]/' recipe.yaml
    printf 'arch\n%s\n' "$(sed -n '2s/,.*//p' recipe.many.rung1.csv)" >one.csv
    ends 0 predictor score train:recipe.yaml#cache=plain.csv many.yaml one.csv
    cmp <(cut -d, -f1-3 plain.csv) <(cut -d, -f1-3 want)
}

@test "a search over rungs that is killed ends as it would have" {
    whole_ladder
    mv out whole
    mkdir again
    cp many.yaml recipe.yaml again
    cd again
    # Python in which a training waits while there are as many results as the file `hold` says.
    cat >python <<'END'
#!/bin/sh
until [ ! -e hold ] || [ "$(cat recipe.many.csv recipe.many.rung*.csv 2>/dev/null | grep -vc ^code)" -lt "$(cat hold)" ]; do sleep 0.05; done
exec /usr/bin/python3 "$@"
END
    chmod +x python
    local n pid
    for n in 3 9; do
        echo $n >hold
        HWNAS_TORCH_PYTHON=$PWD/python "$HWNAS" "${SEARCH_RUNGS[@]}" $([ ! -e s.db ] || echo --resume) --quiet >out 2>err &
        pid=$!
        until [ "$(cat recipe.many.csv recipe.many.rung*.csv 2>/dev/null | grep -vc ^code)" -ge $n ]; do kill -0 $pid || { cat err; return 1; }; sleep 0.05; done
        kill -9 $pid
        wait $pid || true
    done
    "$HWNAS" "${SEARCH_RUNGS[@]}" --resume >out
    [ "$(json ../whole '[(t["arch"], t["objectives"]["accuracy"]["value"]) for t in d["front"]]')" = "$(json out '[(t["arch"], t["objectives"]["accuracy"]["value"]) for t in d["front"]]')" ]
    # None is lost, none is there twice.
    for n in recipe.many.csv recipe.many.rung1.csv recipe.many.rung2.csv; do cmp <(cut -d, -f1-3 $n) <(cut -d, -f1-3 ../$n); done
}

@test "rungs that cannot be are told before anything is trained" {
    recipe 'epochs: 6' 'rungs: [{epochs: 6}]'
    wrong 9:18 "each rung must cost more than the one before, and less than the whole"
    recipe 'epochs: 6' 'rungs: [{epochs: 3}, {data: 0.1}]'
    wrong 9:29 "each rung must cost more*the cheapest comes first"
    recipe 'epochs: 6' 'rungs: [{epoch: 3}]'
    wrong 9:10 "a rung of rungs has no key 'epoch'*did you mean 'epochs'?"
    recipe 'epochs: 6' 'rungs: 3'
    wrong 9:8 "rungs must be a list"
    refuses 2 "'rungs' is of a program of your own" predictor score train:recipe.yaml#rungs=2 tiny.yaml one.csv
    # A network that takes one size alone.
    sed -i '/global_avg_pool/d' tiny.yaml
    recipe 'epochs: 6' 'rungs: [{resolution: 0.5}]'
    wrong 9:8 "the network does not take these samples in a lower resolution"
}

@test "a program that trains is told its rung" {
    printf '#!/bin/sh\necho "$HWNAS_RUNG" >>rungs\necho "$HWNAS_CODE $HWNAS_RUNG" | awk "{ print 90 - 10 * \$2 - \$1 %% 7 }"\n' >train
    sed -i 's/%%/%/' train
    chmod +x train
    ladder
    ends 0 search --space many.yaml --accuracy command:./train#rungs=2 --objectives accuracy --strategy successive-halving --trials 16 --study s.db --json
    [ "$(sort rungs | uniq -c | tr -s ' ' | tr '\n' ';')" = " 4 0; 12 1;" ]
    is out 'all(t["objectives"]["accuracy"]["value"] > 80 for t in d["front"])'
    # So are the smallest networks, with which a search begins where there is a limit.
    rm rungs
    ends 0 search --space many.yaml --accuracy command:./train#rungs=2,cache=small.csv --objectives accuracy --strategy successive-halving \
        --constraints 'macs < 1 G' --trials 4 --study small.db
    [ "$(tr '\n' ' ' <rungs)" = '1 1 1 0 ' ]
    # Where no rungs are asked for, all trainings are whole.
    rm rungs
    ends 0 search --space many.yaml --accuracy command:./train#cache=other.csv --objectives accuracy --trials 4 --study t.db
    [ "$(sort -u rungs)" = 0 ]
    refuses 2 "'rungs' of a command must be a whole number from 1 to 8" search --space many.yaml --accuracy command:./train#rungs=9 --objectives accuracy --trials 4 --study u.db
}

# The page's search runs in pages.bats, with fewer epochs.
@test "the files of docs/training.md are good as they stand there" {
    awk '/^```yaml$/ { n++; inside = 1; next } /^```/ { inside = 0 } inside { print > ("block" n) }' "$HWNAS_SRC/docs/training.md"
    mv block1 space.yaml
    sed "s|/usr/share/datasets/fashion-mnist/.*images.*|$DATA/fashion_images.gz|; s|/usr/share/datasets/fashion-mnist/.*labels.*|$DATA/fashion_labels.gz|" block2 >recipe.yaml
    [ "$(grep -c "$DATA" recipe.yaml)" = 4 ]
    mv block3 job.yaml
    ends 0 search job.yaml --device null --dry-run
    says out 'trainings    up to 20 more'
}

@test "hwnas train: a network with its weights, and the accuracy of the file" {
    recipe 'epochs: 6' 'batch: 16' 'optimizer: {rate: 0.2}' 'ema: 0.9' 'threads: 1'
    sed -i 's/validation: 0.25/validation: 0.25\n  test: 0.25/' recipe.yaml
    ends 0 train tiny.yaml --arch width=8 --recipe recipe.yaml --out whole --json
    cp out told
    is told 'd["samples"] == 64'
    [ "$(grep -c '^epoch ' err)" = 6 ]
    [ "$(wc -l <whole.csv)" = 7 ]
    says whole.csv 'epoch,loss,validation_loss,validation_pct'
    # What the file computes is what PyTorch does with the checkpoint.
    /usr/bin/python3 - <<'END'
import importlib.util, json
import numpy as np, torch
spec = importlib.util.spec_from_file_location('net', 'whole.py')
net = importlib.util.module_from_spec(spec)
spec.loader.exec_module(net)
state = torch.load('whole.pt')
model = net.build().eval()
model.load_state_dict(state['weights'])
samples = np.load('whole-test.npz')
x = (torch.tensor(samples['x'].reshape(-1, 1, 28, 28).astype(np.float32)) / 255 - 0.286) / 0.353
right = (model(x).argmax(1).numpy() == samples['y']).mean() * 100
told = json.load(open('told'))['values']['top1']['value']
assert len(x) == 64 and abs(told - right) < 1e-6, (told, right)
END
    # The samples that test have trained nothing.
    ends 0 evaluate whole.onnx --data whole-test.npz --scale 1/255 --mean 0.286 --std 0.353 --json
    [ "$(json out 'd["values"]["top1"]["value"]')" = "$(json told 'd["values"]["top1"]["value"]')" ]
    refuses 2 'whole.csv is there already*--overwrite' train tiny.yaml --arch width=8 --recipe recipe.yaml --out whole
    # Killed, it goes on, to the same.
    held_python
    echo 2 >hold
    HWNAS_TORCH_PYTHON=$PWD/python "$HWNAS" train tiny.yaml --arch width=8 --recipe recipe.yaml --out again >out 2>err </dev/null &
    local pid=$!
    until grep -qs '^epoch 2 ' err; do kill -0 $pid || { cat err; return 1; }; sleep 0.05; done
    kill -9 $pid
    wait $pid || true
    rm hold
    [ ! -e again.onnx ]
    ends 0 train tiny.yaml --arch width=8 --recipe recipe.yaml --out again
    not grep -q '^epoch 1 ' err
    cmp again.csv whole.csv
    says out 'top-1'
    # Killed between two of its files, too; without a checkpoint they are somebody else's.
    for end in py onnx csv; do # in the reverse order of their writing
        rm -f again.py again.$end
        [ $end != csv ] || rm again.onnx
        ends 0 train tiny.yaml --arch width=8 --recipe recipe.yaml --out again
        not grep -q '^epoch ' err
        cmp again.$end whole.$end
    done
    rm again.csv
    refuses 2 'again.onnx is there already*--overwrite' train tiny.yaml --arch width=8 --recipe recipe.yaml --out again
    rm again.onnx again.pt
    refuses 2 'again.py is there already*--overwrite' train tiny.yaml --arch width=8 --recipe recipe.yaml --out again
    # What cannot be is told.
    refuses 2 'is no network of a space' train whole.onnx --recipe recipe.yaml --out other
    refuses 2 "recipe is missing" train tiny.yaml --arch width=8
    sed -i 's/rate: 0.2/rate: 1e9/' recipe.yaml
    refuses 2 'recipe.yaml:11:19: the training diverged in epoch 1' train tiny.yaml --arch width=8 --recipe recipe.yaml --out other
    [ ! -e other.onnx ]
}

# counting: Pythons note in the file `loaded` which process loads PyTorch; a fork of it does not.
counting() {
    mkdir site
    cat >site/sitecustomize.py <<'END'
import os, sys

class Finder:
    def find_spec(self, name, *_):
        if name == "torch":
            with open(os.environ["LOADED"], "a") as file:
                file.write(f"{os.getpid()}\n")

sys.meta_path.insert(0, Finder())
END
    export PYTHONPATH=$PWD/site LOADED=$PWD/loaded
}

@test "PyTorch is loaded once for all trainings, and they come to what they come to alone" {
    recipe 'epochs: 4' 'threads: 1'
    held_python
    counting
    HWNAS_TORCH_PYTHON=$PWD/python ends 0 predictor score train:recipe.yaml tiny.yaml both.csv
    cp out together
    [ "$(wc -l <loaded)" = 1 ]
    [ "$(grep -c '^epoch ' said)" = 8 ]
    # Nothing is left of it.
    not kill -0 "$(cat loaded)"
    # Where the process that has loaded it is killed, it is started again for the training, which goes on, and for all later ones.
    rm -r recipe.tiny.* loaded said
    echo 2 >hold
    HWNAS_TORCH_PYTHON=$PWD/python "$HWNAS" predictor score train:recipe.yaml tiny.yaml both.csv >out 2>err </dev/null &
    local pid=$!
    until grep -qs '^epoch 2 ' said; do kill -0 $pid || { cat err; return 1; }; sleep 0.05; done
    kill -9 "$(cat loaded)"
    until [ "$(wc -l <loaded)" -gt 1 ]; do kill -0 $pid || { cat err; return 1; }; sleep 0.05; done
    rm hold
    wait $pid
    cmp out together
    [ "$(wc -l <loaded)" = 2 ]
    [ "$(grep -c '^epoch 1 ' said)" = 2 ] # that of each network, once
    [ "$(grep -c 'note: the process that had loaded PyTorch ended, and is started again' err)" = 1 ]
    # One that ends again and again is not.
    rm -r recipe.tiny.* loaded said
    touch deadly
    HWNAS_TORCH_PYTHON=$PWD/python ends 0 predictor score train:recipe.yaml#retries=9 tiny.yaml both.csv
    rm deadly
    cmp out together
    [ "$(wc -l <loaded)" = 6 ] # the training that went on by itself, and the other
    [ "$(grep -c 'PyTorch ended, and is started again' err)" = 3 ]
    [ "$(grep -c 'is not started again (it ended too often): each training loads PyTorch from now on' err)" = 1 ]
    # Where a socket cannot be, each training loads it.
    rm -r recipe.tiny.* loaded
    local long
    long=$PWD/$(printf 'x%.0s' {1..120})
    mkdir "$long"
    TMPDIR=$long ends 0 predictor score train:recipe.yaml tiny.yaml both.csv
    cmp out together
    [ "$(wc -l <loaded)" = 3 ] # and the check
    [ -z "$(ls "$long")" ]
}

# training: the number of the one that is under way, whose parent is a fork as well.
training() {
    pgrep -P "$(pgrep -P "$(tail -n 1 loaded)")"
}

@test "a fork of the process that has loaded PyTorch ends as a program of its own would" {
    recipe 'epochs: 400' 'threads: 1'
    held_python
    counting
    # Told to end, by the limit of time; killed from outside; by hwnas being killed.
    echo 3 >hold
    HWNAS_TORCH_PYTHON=$PWD/python refuses 1 "'train:recipe.yaml' did not end within 6 s, and was killed" \
        predictor score train:recipe.yaml#timeout=6 tiny.yaml one.csv
    grep -q '^epoch 1 ' said
    not kill -0 "$(cat loaded)"
    rm -r recipe.tiny.* said loaded
    HWNAS_TORCH_PYTHON=$PWD/python "$HWNAS" predictor score train:recipe.yaml#retries=0 tiny.yaml one.csv >out 2>err </dev/null &
    local pid=$! fork
    until grep -qs '^epoch 3 ' said; do kill -0 $pid || { cat err; return 1; }; sleep 0.05; done
    fork=$(training)
    kill -SEGV "$fork"
    wait $pid && return 1
    grep -q "'train:recipe.yaml' died of SIGSEGV" err
    rm -r recipe.tiny.* said loaded
    HWNAS_TORCH_PYTHON=$PWD/python "$HWNAS" predictor score train:recipe.yaml tiny.yaml one.csv >out 2>err </dev/null &
    pid=$!
    until grep -qs '^epoch 3 ' said; do kill -0 $pid || { cat err; return 1; }; sleep 0.05; done
    fork=$(training)
    kill -9 $pid
    wait $pid || true
    local i
    for i in {1..100}; do kill -0 "$fork" 2>/dev/null || break; sleep 0.1; done
    not kill -0 "$fork"
    not kill -0 "$(cat loaded)"
}

@test "two trainings at a time are forks of one process, each on the cores that it was given" {
    recipe 'epochs: 4' 'optimizer: {rate: 0.2}' 'threads: 1'
    held_python
    counting
    HWNAS_TORCH_PYTHON=$PWD/python ends 0 predictor score train:recipe.yaml tiny.yaml both.csv
    cp out one_by_one
    rm -r recipe.tiny.* said loaded
    # Whoever hands a training over is put on one core, in turns.
    cat >own.py <<'END'
import os, sys
cores, turn = sorted(os.sched_getaffinity(0)), 0
while "--jobs=2" in sys.argv and "WANTED" not in os.environ:
    try:
        os.close(os.open(f"client{turn}", os.O_CREAT | os.O_EXCL))
        os.environ["WANTED"] = f"[{cores[turn % len(cores)]}]"
        os.sched_setaffinity(0, {cores[turn % len(cores)]})
    except FileExistsError:
        turn += 1

def tell(text):
    if text.startswith("epoch 1 "):
        keeper = open(f"/proc/{os.getppid()}/stat").read().rpartition(")")[2].split()
        with open("who", "a") as file:
            file.write(f"{os.getpid()} {keeper[1]} {os.environ['WANTED']} {sorted(os.sched_getaffinity(0))}\n")
END
    echo 2 >hold
    HWNAS_TORCH_PYTHON=$PWD/python "$HWNAS" predictor score train:recipe.yaml#jobs=2 tiny.yaml both.csv >out 2>err </dev/null &
    local pid=$! training server wanted cores
    until [ "$(grep -cs '^epoch 2 ' said)" = 2 ]; do kill -0 $pid || { cat err; return 1; }; sleep 0.05; done
    [ "$(wc -l <who)" = 2 ]
    [ "$(nproc)" = 1 ] || [ "$(cut -d' ' -f3 who | sort -u | wc -l)" = 2 ]
    while read -r training server wanted cores; do
        kill -0 "$training"
        [ "$server" = "$(cat loaded)" ]
        [ "$cores" = "$wanted" ]
    done <who
    # One that is killed is tried once more, and goes on; the other one hears nothing of that.
    kill -9 "$(tail -n 1 who | cut -d' ' -f1)"
    rm hold
    wait $pid
    cmp out one_by_one
    [ "$(wc -l <loaded)" = 1 ]
    [ "$(grep -c '^epoch ' said)" = 8 ]
    [ "$(grep -c '^was epoch ' said)" = 2 ]
    [ "$(wc -l <recipe.tiny.csv)" = 3 ]
}

@test "what a training started is gone when it is over, also what left its group" {
    recipe 'epochs: 2' 'threads: 1'
    held_python
    # A training notes whether what the earlier ones started is there, and starts something that stays in a session of its own.
    cat >own.py <<'END'
import os, subprocess

def tell(text):
    if not text.startswith("epoch 1 "):
        return
    with open("lasting", "a+") as file:
        file.seek(0)
        for number in file.read().split():
            with open("found", "a") as found:
                found.write("there\n" if os.path.exists(f"/proc/{number}") else "gone\n")
        number = subprocess.run(["sh", "-c", "setsid sleep 1000 >&- 2>&- & echo $!"], capture_output=True, text=True).stdout
        file.write(number)
END
    HWNAS_TORCH_PYTHON=$PWD/python ends 0 predictor score train:recipe.yaml tiny.yaml both.csv
    [ "$(<found)" = gone ]
    # So it is where a training is killed, when its time is over.
    rm -r recipe.tiny.* lasting found
    echo 1 >hold
    HWNAS_TORCH_PYTHON=$PWD/python ends 1 search --space tiny.yaml --accuracy train:recipe.yaml#timeout=8 --objectives accuracy,macs --trials 2 --study s.db --quiet
    [ "$(<found)" = gone ]
    ends 0 study trials s.db --json
    is out 'all("did not end within 8 s" in t["message"] for t in d["trials"])'
}

@test "who is told to end as the process that had loaded PyTorch dies says so in one line" {
    local status=0
    HWNAS_FORK_SERVER=$PWD/socket PYTHONPATH=$HWNAS_SRC/training /usr/bin/python3 - >out 2>err <<'END' || status=$?
import os, signal, socket, sys, threading
import fork_server

listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind("socket")
listener.listen()

def die():
    client = listener.accept()[0]
    socket.recv_fds(client, 1 << 20, 3)
    client.send(fork_server.BEGUN)
    client.close()

plain = fork_server.receive

def receive(*how):
    what = plain(*how)
    if not what:
        os.kill(os.getpid(), signal.SIGTERM) # at the worst moment
    return what

fork_server.receive = receive
threading.Thread(target=die).start()
sys.argv = ["train.py"]
fork_server.hand_over()
END
    [ "$status" = 1 ]
    [ "$(<err)" = 'train.py: the process that had loaded PyTorch ended' ]
}

@test "a process that has loaded PyTorch and does not answer is not waited for, and later forks for nobody" {
    HWNAS_FORK_SERVER=$PWD/socket PYTHONPATH=$HWNAS_SRC/training /usr/bin/python3 - <<'END'
import os, socket, sys
import fork_server

listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind("socket")
listener.listen()
fork_server.PATIENCE = 0.2
sys.argv = ["train.py"]
fork_server.hand_over() # returns: this process trains itself
try:
    fork_server.Client(listener.accept()[0])
except ValueError:
    sys.exit(0)
sys.exit("a client that is gone is served")
END
}
