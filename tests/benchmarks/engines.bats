#!/usr/bin/env bats
# The benchmarks of devices and of what is measured on them.
load helpers

setup_file() { # no measurement is taken again and again because the other core is busy
    export HWNAS_RUNNER=${HWNAS%/*}/tests/cli/still_runner STILL_COUNTS_OWN=1
}

@test "threads" { measures "$here/threads" --quick mnist_mlp imdb_fasttext; }
@test "compile_speed" {
    [ -x benchmarks/compile_speed ] || skip "built without CUDA"
    measures benchmarks/compile_speed --quick accel_nasbench
}

@test "latency_table" { measures benchmarks/latency_table --quick --minutes 0.05 --networks 4 nas_bench_201; }
@test "decode" { measures benchmarks/decode --quick; }
@test "mix_exhaustive" { measures benchmarks/mix_exhaustive --quick; }
@test "search_device" { measures "$here/search_device" --quick --studies "$BATS_TEST_TMPDIR/studies"; }
@test "training" {
    need torch
    measures "$here/training" --quick --only mnist_mlp
}

@test "supernet" {
    need torch
    [ -e /usr/share/datasets/fashion-mnist ] || skip "needs Debian's dataset-fashion-mnist"
    measures "$here/supernet" --quick
}
@test "proof" {
    need torch yaml
    [ -e /usr/share/datasets/fashion-mnist ] || skip "needs Debian's dataset-fashion-mnist"
    measures "$here/proof" --quick --part random
}

@test "ssh_overhead" {
    [ -x /usr/sbin/sshd ] || skip "sshd is not installed (Debian's openssh-server)"
    measures "$here/ssh_overhead" --quick
}

@test "search-throughput" { measures "$here/search-throughput" --quick; }
@test "optimize" {
    [ -d "${HWNAS_ORT:-$HWNAS_SRC/.deps/node}/node_modules/onnxruntime-node" ] || skip "needs onnxruntime-node"
    need numpy
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
