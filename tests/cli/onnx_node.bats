# The operators, judged by the tests of ONNX itself: tests/peers/onnx_node.py.
load helpers

need_onnx() {
    /usr/bin/python3 -c 'import onnx.backend.test.case' 2>/dev/null || skip "needs Debian's python3-onnx"
}

by_library() { # by_library DEVICE
    need_onnx
    /usr/bin/python3 "$HWNAS_SRC/tests/peers/onnx_node.py" "$HWNAS" "$1" --library "${HWNAS%/*}/libhwnas.so.0"
}

@test "ref computes what ONNX's node tests want" {
    by_library ref
}

@test "cpu computes what ONNX's node tests want" {
    by_library cpu
}

@test "what is written of ONNX's operators is valid to onnx's checker, and to ONNX Runtime" {
    local with=()
    need_onnx
    find_ort
    [ -z "${HWNAS_ORT_LIBRARY:-}" ] || with=(--ort)
    /usr/bin/python3 "$HWNAS_SRC/tests/peers/onnx_written.py" "${HWNAS%/*}/libhwnas.so.0" "${with[@]}"
}

@test "operands are repeated as numpy repeats them" {
    need_onnx
    /usr/bin/python3 "$HWNAS_SRC/tests/peers/repeated.py" "$HWNAS" cpu f32
}
