# What the tests of the benchmarks share: a benchmark still runs when its shortest form ends well and with a figure. What the
# figures are does not matter.
load ../cli/modules

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
