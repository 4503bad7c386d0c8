# GPUs that are not here: what is missing is said, and what can be known without one.
load helpers

# Skips unless cuda-dry works: the module was built, and CUDA's libraries are installed.
need_dry() {
    "$HWNAS" devices cuda-dry --json >out 2>err </dev/null || skip "cuda-dry does not work here"
    python3 -c "
import json, sys
sys.exit(not [d for d in json.load(open('out'))['devices'] if d['name'] == 'cuda-dry' and d['works']])" ||
        skip "cuda-dry does not work here"
}

@test "without the module, devices says so and all else works" {
    HWNAS_MODULES= cp "$HWNAS" ./hwnas-alone
    export HWNAS_PATH=$HWNAS_SRC # what is not in its place finds no data by itself
    local HWNAS=./hwnas-alone
    HWNAS_MODULES=$PWD refuses 1 "no module hwnas-cuda.so" forecast mnist_mlp --device cuda-dry:l4
    says err "looked in $PWD"
    share_rooflines
    HWNAS_MODULES=$PWD ends 0 devices --json
    python3 -c "
import json
works = {d['name']: d['works'] for d in json.load(open('out'))['devices']}
assert works['cpu'] and not works['cuda'] and not works['cuda-dry'], works"
}

@test "a module that is none, or of another interface, is refused" {
    echo nonsense >hwnas-cuda.so
    HWNAS_MODULES=$PWD refuses 1 "cannot load the module" forecast mnist_mlp --device cuda-dry:l4
    cat >other.c <<'END'
const struct { unsigned abi; const char *name, *version; const void *devices; } hwnas_module_entry = {999, "x", "9", 0};
END
    gcc -shared -fPIC other.c -o hwnas-cuda.so || skip "no gcc"
    HWNAS_MODULES=$PWD refuses 1 "speaks version 999 of the interface" forecast mnist_mlp --device cuda-dry:l4
    echo 'int nothing;' >other.c
    gcc -shared -fPIC other.c -o hwnas-cuda.so
    HWNAS_MODULES=$PWD refuses 1 "not a module of hwnas" forecast mnist_mlp --device cuda-dry:l4
}

@test "forecast tells steps and memory of a GPU that is not here" {
    need_dry
    ends 0 forecast mnist_mlp --device cuda-dry:l4 --dtype f16 --steps
    says out "cuDNN   linear, relu"
    says out "NVIDIA L4"
    says out "fits"
    ends 0 forecast mnist_mlp --device cuda-dry:l4 --dtype f16 --json
    python3 -c "
import json
d = json.load(open('out'))
assert d['format'] == 'hwnas.forecast' and len(d['steps']) == d['library_steps'] + d['own_steps']
assert d['weight_bytes'] >= 2 * 669706 and d['device_bytes'] > 20 << 30, d  # Keras prints 669,706 parameters"
    refuses 2 "no 'h300' in gpus" forecast mnist_mlp --device cuda-dry:h300
    refuses 2 "for which" forecast mnist_mlp --device cuda-dry
    refuses 1 "does not tell" forecast mnist_mlp --device null
}

@test "plans that were kept are told" {
    need_dry
    local n
    # A network of two equal layers asks twice; what was made for the first is there for the second.
    cat >twice.yaml <<'END'
hwnas: 1
name: twice
input: {x: [64]}
network:
  - linear: {out: 64}
  - linear: {out: 64}
END
    for n in made kept; do
        HWNAS_PLANS=$PWD/plans ends 0 forecast twice.yaml --device cuda-dry:l4 --dtype tf32 --json
        cp out $n
    done
    python3 -c "
import json
made, kept = json.load(open('made')), json.load(open('kept'))
assert (made['cache_lookups'], made['cache_hits']) == (2, 1), made
assert (kept['cache_lookups'], kept['cache_hits']) == (2, 2), kept"
    HWNAS_PLANS= ends 0 forecast twice.yaml --device cuda-dry:l4 --dtype tf32
    says out "plans        2: 1 were kept from before"
}

@test "making plans for longer than the timeout is no hang" {
    need_dry
    cat >space.yaml <<'END'
hwnas: 1
name: many
input:
  image: [3, 32, 32]
choices:
  width: {values: [24, 32]}
network:
  - conv: {out: width, kernel: 3, pad: 1}
  - hard_swish
  - conv: {out: width + 8, kernel: 3, pad: 1}
  - hard_swish
  - conv: {out: width + 16, kernel: 1}
  - gelu
  - conv: {out: width + 24, kernel: 3, pad: 1}
  - sigmoid
  - conv: {out: width + 32, kernel: 3, pad: 1}
  - hard_swish
  - conv: {out: width + 40, kernel: 1}
  - gelu
  - conv: {out: width + 48, kernel: 3, pad: 1}
  - hard_swish
  - conv: {out: width + 56, kernel: 3, pad: 1}
  - sigmoid
  - global_avg_pool
  - flatten
  - linear: {out: 10}
END
    cat >job.yaml <<'END'
space: space.yaml
device: cuda-dry:h200
dtype: f16
objectives: [latency.p50, params]
budget: {trials: 1}
measure: {timeout: 5, estimate: off}
END
    HWNAS_PLANS=$PWD/plans "$HWNAS" search job.yaml --verify none --json >out 2>err || true
    /usr/bin/python3 - job.db <<'END'
import sqlite3, sys
rows = sqlite3.connect(sys.argv[1]).execute("SELECT status, message FROM trial").fetchall()
assert rows and all(status == "unsupported" and "would run and fit" in message for status, message in rows), rows
END
    [ "$(ls plans/*.plan | wc -l)" -ge 8 ]
}

@test "products without tensor cores are told" {
    need_dry
    ends 0 forecast cifar10_cnn --device cuda-dry:h200 --dtype bf16 --steps # three channels
    says out "cuDNN, no tensor cores"
    says out "! 1 of the steps by 'cuDNN, no tensor cores': slow"
    # Without the list they are told as well; f32 and tf32 are without and with them; bf16 needs no such hint.
    not grep "f32 multiplies" out
    ends 0 forecast cifar10_cnn --device cuda-dry:h200 --dtype bf16
    says out "! 1 of the steps by 'cuDNN, no tensor cores': slow; --steps tells which"
    ends 0 forecast cifar10_cnn --device cuda-dry:h200
    says out "! f32 multiplies without tensor cores; --dtype tf32 uses them"
    ends 0 forecast cifar10_cnn --device cuda-dry:h200 --dtype tf32
    not grep "f32 multiplies" out
}

@test "a model larger than the GPU is told with figures" {
    need_dry
    sed 's/"totalGlobalMem": [0-9]*/"totalGlobalMem": 537919488/' "$HWNAS_SRC/gpus/l4.json" >small.json
    refuses 1 "needs 3 MiB of the GPU's memory (weights 3" forecast mnist_mlp --device cuda-dry:small.json
    says err "NVIDIA L4 has 513"
    head -c 600 "$HWNAS_SRC/gpus/l4.json" >cut.json
    refuses 2 "cut.json" forecast mnist_mlp --device cuda-dry:cut.json
}
