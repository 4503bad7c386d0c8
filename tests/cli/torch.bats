# The devices torch and torch-cuda: networks run by PyTorch, as the modules that hwnas writes of them.
load helpers

# python_with LINE...: a Python whose PyTorch has these lines, in which `calls` counts the runs of its linear layers.
python_with() {
    printf '%s\n' 'import os, runpy, sys, torch' 'inside, calls = torch.nn.Linear.forward, 0' 'def forward(self, x):' \
        '    global calls' '    calls += 1' "$@" '    return inside(self, x)' 'torch.nn.Linear.forward = forward' \
        'del sys.argv[0]' 'runpy.run_path(sys.argv[0], run_name="__main__")' >patched.py
    printf '#!/bin/sh\nexec /usr/bin/python3 %q "$@"\n' "$PWD/patched.py" >python
    chmod +x python
    export HWNAS_TORCH_PYTHON=$PWD/python
}

@test "torch: its outputs are the reference's, eager and compiled, of integers and of a batch" {
    need torch
    ends 0 profile mnist_cnn resnet32_cifar imdb_fasttext --device torch,torch:compiled --batch 1,2 --threads 1 --seconds 0.02 --verify --json
    is out "[r['status'] for r in d['rows']] == ['ok'] * 12 and all(r['verified_against'] == 'ref' for r in d['rows'])"
}

@test "torch: several outputs are computed as well" {
    need torch
    printf '%s\n' 'hwnas: 1' 'name: heads' 'input: {x: [4, 8]}' 'network:' '  - linear: {out: 4}' '  - output: first' \
        '  - linear: {out: 3}' '  - output: second' >heads.yaml
    ends 0 profile heads.yaml --device torch,torch:compiled --threads 1 --seconds 0.02 --verify --json
    is out "[r['status'] for r in d['rows']] == ['ok'] * 2 and all(r['verified_against'] == 'ref' for r in d['rows'])"
}

@test "torch: what PyTorch's optimizer of frozen modules computes wrongly is compiled without it" {
    need torch
    local act
    for act in hard_swish hard_sigmoid relu6; do
        printf '%s\n' 'hwnas: 1' 'name: padded' 'input: {image: [3, 16, 16]}' 'network:' '  - conv: {out: 72, kernel: 3}' "  - $act" \
            '  - conv: {out: 8, kernel: 1}' >$act.yaml
    done
    ends 0 profile hard_swish.yaml hard_sigmoid.yaml relu6.yaml --device torch:compiled --threads 1 --seconds 0.02 --verify --json
    is out "[r['status'] for r in d['rows']] == ['ok'] * 3 and all(r['verified_against'] == 'ref' for r in d['rows'])"
}

@test "torch: is measured as cpu is, and tells as much" {
    need torch
    ends 0 profile mnist_mlp --device cpu,torch --threads 1 --seconds 0.05 --json
    is out "d['rows'][0].keys() == d['rows'][1].keys()"
    is out "all(r['stop'] in ('interval', 'budget') and type(r['disturbed']) is int for r in d['rows'])"
    is out "all((d['rows'][0][k] is None) == (d['rows'][1][k] is None) for k in ('shared_share', 'clock_hertz', 'cpu_time'))"
    is out "d['rows'][0]['realtime'] >= d['rows'][1]['realtime'] and d['rows'][1]['peak_memory_bytes'] > 0"
    ends 0 profile mnist_mlp --device torch --mode cold --threads 1 --seconds 0.05 --json
    is out "d['rows'][0]['status'] == 'ok' and d['rows'][0]['mode'] == 'cold'"
}

@test "torch: holds the core that it is measured on" {
    need torch
    python_with '    if calls == 20:' '        names = open("/proc/net/unix").read().split()' \
        '        print(sorted(os.sched_getaffinity(0)), [n for n in names if n.startswith("@hwnas-core-")], file=open("seen", "w"))'
    HWNAS_CORE_LOCKS=-torch-$BASHPID ends 0 profile mnist_mlp --device torch --threads 1 --seconds 0.05
    /usr/bin/python3 - "$BASHPID" <<'END'
import ast, sys
cores, locks = open("seen").read().split("] [")
[core] = ast.literal_eval(cores + "]")
assert f"@hwnas-core-{core}-torch-{sys.argv[1]}" in ast.literal_eval("[" + locks), (core, locks)
END
}

@test "torch: what fails in Python fails the network, with its message, and the next one is measured" {
    need torch
    python_with '    if self.out_features == 10 and calls > 6:' '        raise RuntimeError("no luck today")'
    ends 1 profile mnist_mlp imdb_fasttext --device torch --threads 1 --seconds 0.05 --json
    is out "[r['status'] for r in d['rows']] == ['unsupported', 'ok']"
    is out "d['rows'][0]['message'].startswith('RuntimeError: no luck today')"
    python_with '    if self.out_features == 10 and calls > 6:' '        raise MemoryError("too large")'
    ends 1 profile mnist_mlp imdb_fasttext --device torch --threads 1 --seconds 0.05 --json
    is out "[r['status'] for r in d['rows']] == ['out_of_memory', 'ok'] and 'too large' in d['rows'][0]['message']"
    python_with '    if self.out_features == 10 and calls > 6:' '        os.abort()'
    ends 1 profile mnist_mlp imdb_fasttext --device torch --threads 1 --seconds 0.05 --json
    is out "[r['status'] for r in d['rows']] == ['crashed', 'ok'] and 'SIGABRT' in d['rows'][0]['message']"
}

@test "torch: profile measures it eager and compiled, and says which" {
    need torch
    ends 0 profile mnist_mlp imdb_fasttext --device torch,torch:compiled --threads 1 --seconds 0.05 --json
    is out "[r['status'] for r in d['rows']] == ['ok'] * 4 and all(r['p50_seconds'] > 0 for r in d['rows'])"
    is out "sorted(x['library'].split(', ')[1] for x in d['devices'])[1] == 'eager'"
    is out "sorted(x['library'].split(', ')[1] for x in d['devices'])[0].startswith('compiled by torch.')"
    is out "all(x['library'].startswith('PyTorch ' + '$(/usr/bin/python3 -c 'import torch; print(torch.__version__)')') for x in d['devices'])"
}

@test "torch: compare sets the runtimes side by side, and a search runs on it" {
    need torch
    ends 0 compare mnist_mlp --device cpu,torch --threads 1 --batch 1 --seconds 0.05 --json
    is out "sorted(c['device'] for c in d['networks'][0]['choices']) == ['cpu', 'torch']"
    ends 0 search --space nas_bench_macro --accuracy nas_bench_macro_cifar10 --device torch --threads 1 \
        --objectives accuracy,latency.p50 --trials 3 --ties 0 --confirm 0 --seconds 0.05 --study s.db --json
    is out "d['trials'] == d['finished'] == 3 and d['failed'] == 0 and len(d['front']) >= 1"
    ends 0 study show s.db --json
    is out "'PyTorch' in str(d['devices'])"
}

@test "torch: what is lacking is said, in devices too" {
    printf '#!/bin/sh\nexec /usr/bin/python3 -S "$@"\n' >bare # without the folder of Debian's packages
    chmod +x bare
    HWNAS_TORCH_PYTHON=$PWD/bare ends 1 profile mnist_mlp --device torch
    says out "has no PyTorch"
    HWNAS_TORCH_PYTHON=$PWD/bare refuses 1 "has no PyTorch*HWNAS_TORCH_PYTHON" devices torch
    HWNAS_TORCH_PYTHON=/no/such/python refuses 1 "cannot start the runner '/no/such/python'*python3-torch" devices torch
    need torch
    refuses 1 "torch does not run networks 'faster'*torch:compiled" devices torch:faster
    ends 0 devices torch:compiled --json
    is out "d['devices'][0]['works'] and d['devices'][0]['native'] == ['f32']"
    ends 1 profile mnist_mlp --device torch --dtype bf16 --threads 1
    says out "the device 'torch' does not compute in bf16"
}

# with_gpu [KIND]: a PyTorch that finds a GPU, whose part the processor plays (tests/peers/standin/torch_on_gpu.py).
with_gpu() {
    need torch
    printf '#!/bin/sh\nexec /usr/bin/python3 %q "$@"\n' "$HWNAS_SRC/tests/peers/standin/torch_on_gpu.py" >python
    chmod +x python
    export HWNAS_TORCH_PYTHON=$PWD/python STANDIN_CUDA=${1:-}
}

@test "torch-cuda: outputs are the reference's in each precision, eager and as a CUDA graph; compiled too" {
    with_gpu
    ends 0 profile mnist_cnn imdb_fasttext --device torch-cuda,torch-cuda:0:graph --dtype f32,tf32,bf16 --batch 2 --threads 1 --seconds 0.02 \
        --verify --json
    is out "[(r['status'], r['verified_against'], r['energy_joules']) for r in d['rows']] == [('ok', 'ref', None)] * 12"
    is out "[(x['name'], x['isa']) for x in d['devices']] == [('a stand-in', 'sm_90')] * 2"
    is out "sorted(x['library'].split(', ', 1)[1] for x in d['devices']) == ['CUDA 13.0, as a CUDA graph', 'CUDA 13.0, eager']"
    ends 0 profile mnist_cnn --device torch-cuda:0:compiled --threads 1 --seconds 0.02 --verify --json
    is out "d['rows'][0]['status'] == 'ok' and d['rows'][0]['verified_against'] == 'ref'"
}

@test "torch-cuda: a training step is measured, its memory is what PyTorch counts, and compare sets it beside cpu" {
    with_gpu
    ends 0 profile mnist_cnn --training --device torch-cuda:0 --dtype f32,tf32,bf16 --batch 4 --threads 1 --seconds 0.02 --json
    is out "[r['status'] for r in d['rows']] == ['ok'] * 3"
    is out "all(r['memory_bytes'] == 4 * r['params'] for r in d['rows'])" # the stand-in counts weights
    ends 0 compare mnist_cnn --training --device cpu,torch-cuda:0 --batch 4 --threads 1 --seconds 0.02 --json
    says out '"torch-cuda:0"'
    ends 1 profile mnist_cnn --training --device torch-cuda:0:graph --threads 1
    says out "a training step is not recorded as a CUDA graph"
    ends 1 profile mnist_cnn --training --device torch-cuda:0 --dtype f16 --threads 1
    says out "does not train in f16"
}

@test "torch-cuda: memory that is short fails the network, a lost GPU its process, and the next one is measured" {
    with_gpu
    printf '%s\n' 'hwnas: 1' 'name: wide' 'input: {x: [4096]}' 'network:' '  - linear: {out: 8192}' >wide.yaml
    ends 1 profile wide.yaml mnist_mlp --device torch-cuda:0 --threads 1 --seconds 0.02 --json
    is out "[r['status'] for r in d['rows']] == ['out_of_memory', 'ok']"
    is out "'CUDA out of memory' in d['rows'][0]['message']"
    with_gpu lost
    ends 1 profile mnist_mlp --device torch-cuda:0 --threads 1 --seconds 0.02 --json
    is out "d['rows'][0]['status'] == 'crashed' and 'illegal memory access' in d['rows'][0]['message']"
}

@test "torch-cuda: what is lacking is said with what to try" {
    need torch
    refuses 1 "there is no GPU 'torch-cuda:first'*torch-cuda:0:compiled" devices torch-cuda:first
    refuses 1 "torch does not run networks 'cuda:0'*a GPU is torch-cuda:0" devices torch:cuda:0
    with_gpu none
    refuses 1 "was built without CUDA*HWNAS_TORCH_PYTHON" devices torch-cuda:0
    with_gpu driver
    refuses 1 "cannot use the GPU: Found no NVIDIA driver*nvidia-smi" devices torch-cuda:0
    with_gpu
    refuses 1 "there is no GPU 7: PyTorch sees 1*counted from 0" devices torch-cuda:7
    ends 0 devices torch-cuda:0:graph --json
    is out "d['devices'][0]['works'] and d['devices'][0]['native'] == ['f32', 'tf32', 'bf16', 'f16']"
}
