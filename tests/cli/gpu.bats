# GPUs that are not here: what is missing is said, and what can be known without one.
load helpers

# Skips unless cuda-dry works: the module was built, and CUDA's libraries are installed.
need_dry() {
    ends 0 devices --json
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

@test "a model larger than the GPU is told with figures" {
    need_dry
    sed 's/"totalGlobalMem": [0-9]*/"totalGlobalMem": 537919488/' "$HWNAS_SRC/gpus/l4.json" >small.json
    refuses 1 "needs 3 MiB of the GPU's memory (weights 3" forecast mnist_mlp --device cuda-dry:small.json
    says err "NVIDIA L4 has 513"
    head -c 600 "$HWNAS_SRC/gpus/l4.json" >cut.json
    refuses 2 "cut.json" forecast mnist_mlp --device cuda-dry:cut.json
}
