#!/usr/bin/env bats
# Every benchmark still runs: its shortest form ends well and with a figure. What the figures are does not matter here.

setup() {
    cd "${HWNAS%/*}" # where benchmarks are run: the build directory
    here=$HWNAS_SRC/benchmarks
    export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
}

# measures COMMAND...: it ends with 0, and its last line is a figure.
measures() {
    run timeout 900 "$@" # a hang; how long it takes does not matter
    [ "$status" = 0 ] && [[ ${lines[-1]} =~ ^figure\ [^\ ]+\ [^\ ]+\ [^\ ]+\ goal\ [^\ ]+\ (met|short)$ ]] && return
    echo "$* ended with status $status, and with:"
    tail -n 20 <<<"$output"
    return 1
}

needs_ort_headers() {
    [ -x benchmarks/engine_ort ] || skip "the headers of ONNX Runtime's C interface are not installed"
}

@test "every benchmark of the folder has a test" {
    # A script, or a program that prints figures itself.
    for file in $(find "$here" -maxdepth 1 -type f -executable) $(grep -l '"figure.h"' "$here"/*.c); do
        name=${file##*/}
        grep -q "^@test \"${name%.c}\"" "$BATS_TEST_FILENAME" || { echo "$name has none"; return 1; }
    done
}

@test "threads" { measures "$here/threads" --quick mnist_mlp imdb_fasttext; }
@test "space" { measures benchmarks/space --quick; }
@test "compile_speed" {
    [ -x benchmarks/compile_speed ] || skip "built without CUDA"
    measures benchmarks/compile_speed --quick accel_nasbench
}
@test "latency_table" { measures benchmarks/latency_table --quick --minutes 0.05 --networks 4 nas_bench_201; }
@test "mix_exhaustive" { measures benchmarks/mix_exhaustive --quick; }
@test "search" { measures "$here/search" --quick --runs "$BATS_TEST_TMPDIR/runs"; }
@test "problems" { measures "$here/problems" --quick --work "$BATS_TEST_TMPDIR/problems"; }
@test "regret" { measures "$here/regret" --quick; }
@test "search_ceiling" { measures "$here/search_ceiling" --quick; }
@test "search_device" { measures "$here/search_device" --quick --studies "$BATS_TEST_TMPDIR/studies"; }
@test "training" {
    /usr/bin/python3 -c "import torch" || skip "needs Debian's python3-torch"
    measures "$here/training" --quick --only mnist_mlp
}
@test "supernet" {
    /usr/bin/python3 -c "import torch" || skip "needs Debian's python3-torch"
    [ -e /usr/share/datasets/fashion-mnist ] || skip "needs Debian's dataset-fashion-mnist"
    measures "$here/supernet" --quick
}
@test "transfer" { measures "$here/transfer" --quick; }
@test "warm_start" { measures "$here/warm_start" --quick --trials 40; }
@test "ssh_overhead" {
    [ -x /usr/sbin/sshd ] || skip "sshd is not installed (Debian's openssh-server)"
    measures "$here/ssh_overhead" --quick
}
@test "cluster" { measures "$here/cluster" --quick; }
@test "limits_hold" { measures "$here/limits_hold" --quick; }
@test "predictors" { measures "$here/predictors" --quick --only nb201 --seeds 1 --out "$BATS_TEST_TMPDIR"; }
@test "extrapolation" {
    measures "$here/extrapolation" --quick --only gpt_m --size 100 --out "$BATS_TEST_TMPDIR/extrapolation.csv"
}
@test "optimism" { measures "$here/optimism" --quick --work "$BATS_TEST_TMPDIR/optimism"; }
@test "proxies" { measures "$here/proxies" --quick; }
@test "suggest" { measures "$here/suggest" --quick; }
@test "search-throughput" { measures "$here/search-throughput" --quick; }

@test "optimize" {
    [ -d "${HWNAS_ORT:-$HWNAS_SRC/.deps/node}/node_modules/onnxruntime-node" ] || skip "needs onnxruntime-node"
    /usr/bin/python3 -c "import numpy" || skip "needs Debian's python3-numpy"
    measures "$here/optimize/run" --quick
}

@test "engine" {
    needs_ort_headers
    measures "$here/engine" --quick
}

@test "repeatability" {
    needs_ort_headers
    measures "$here/repeatability" --quick --dir "$BATS_TEST_TMPDIR"
}
