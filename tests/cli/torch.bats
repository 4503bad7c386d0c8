# The device torch: networks run by PyTorch, as the modules that hwnas writes of them.
load helpers

RUNNER=$HWNAS_SRC/runners/torch_runner.py

needs_torch() {
    /usr/bin/python3 -c "import torch" 2>/dev/null || skip "needs Debian's python3-torch"
}

@test "torch: the module's outputs are the reference's, eager and compiled" {
    local name
    needs_torch
    for name in mnist_cnn resnet32_cifar; do
        ends 0 export --space $name --format onnx --fold --out $name.onnx
    done
    /usr/bin/python3 "$HWNAS_SRC/tests/cli/torch_runner.py" "$HWNAS" "$RUNNER" mnist_cnn.onnx resnet32_cifar.onnx
}

@test "torch: profile measures it eager and compiled, and says which" {
    needs_torch
    ends 0 profile mnist_mlp imdb_fasttext --device torch,torch:compiled --threads 1 --seconds 0.05 --json
    is out "[r['status'] for r in d['rows']] == ['ok'] * 4 and all(r['p50_seconds'] > 0 for r in d['rows'])"
    is out "sorted(x['library'].split(', ')[1] for x in d['devices'])[1] == 'eager'"
    is out "sorted(x['library'].split(', ')[1] for x in d['devices'])[0].startswith('compiled by torch.')"
    is out "all(x['library'].startswith('PyTorch ' + '$(/usr/bin/python3 -c 'import torch; print(torch.__version__)')') for x in d['devices'])"
}

@test "torch: compare sets the runtimes side by side, and a search runs on it" {
    needs_torch
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
    needs_torch
    refuses 1 "torch does not run networks 'faster'*torch:compiled" devices torch:faster
    ends 0 devices torch:compiled --json
    is out "d['devices'][0]['works'] and d['devices'][0]['native'] == ['f32']"
    ends 1 profile mnist_mlp --device torch --mode cold --threads 1
    says out "torch measures in f32, one run after the other"
}
