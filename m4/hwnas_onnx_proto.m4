# HWNAS_ONNX_PROTO
# Finds protoc-c and the system's onnx.proto, from which the ONNX classes are generated.
AC_DEFUN([HWNAS_ONNX_PROTO], [
    AC_PATH_PROG([PROTOC_C], [protoc-c])
    AS_IF([test -z "$PROTOC_C"], [AC_MSG_ERROR([protoc-c not found; install protobuf-c-compiler])])
    AC_ARG_WITH([onnx-proto],
        [AS_HELP_STRING([--with-onnx-proto=DIR], [directory that holds onnx.proto])],
        [ONNX_PROTO_DIR=$withval], [ONNX_PROTO_DIR=/usr/include/onnx])
    AS_IF([test ! -f "$ONNX_PROTO_DIR/onnx.proto"],
        [AC_MSG_ERROR([no onnx.proto in $ONNX_PROTO_DIR; install libonnx-dev])])
    AC_SUBST([ONNX_PROTO_DIR])
])
