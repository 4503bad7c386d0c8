# HWNAS_ORT
# Looks for the header of ONNX Runtime's C interface, which the device `ort` is built with; the library
# is opened when it runs. Without it all else is built.
AC_DEFUN([HWNAS_ORT], [
    AC_ARG_WITH([onnxruntime],
        [AS_HELP_STRING([--with-onnxruntime=DIR], [where onnxruntime_c_api.h is; no: do without])],
        [], [with_onnxruntime=auto])
    have_ort=no
    hwnas_ort_dirs=$with_onnxruntime
    AS_IF([test "x$with_onnxruntime" = xauto || test "x$with_onnxruntime" = xyes],
        [hwnas_ort_dirs="/usr/include/onnxruntime /usr/local/include/onnxruntime `cd "$srcdir" && pwd`/.deps/onnxruntime/usr/include/onnxruntime"])
    AS_IF([test "x$with_onnxruntime" != xno], [
        hwnas_save_CPPFLAGS=$CPPFLAGS
        for hwnas_dir in $hwnas_ort_dirs; do
            AC_MSG_CHECKING([for ONNX Runtime's header in $hwnas_dir])
            CPPFLAGS="$hwnas_save_CPPFLAGS -I$hwnas_dir"
            AC_PREPROC_IFELSE([AC_LANG_SOURCE([[
                #include <onnxruntime_c_api.h>
                #if ORT_API_VERSION < 16
                #error
                #endif]])],
                [have_ort=$hwnas_dir], [])
            AC_MSG_RESULT([$have_ort])
            test "x$have_ort" = xno || break
        done
        CPPFLAGS=$hwnas_save_CPPFLAGS
        AS_IF([test "x$have_ort" = xno && test "x$with_onnxruntime" != xauto],
            [AC_MSG_ERROR([no onnxruntime_c_api.h of ONNX Runtime 1.16 or newer in $hwnas_ort_dirs])])
    ])
    AS_IF([test "x$have_ort" != xno], [ORT_CPPFLAGS="-isystem $have_ort"])
    AC_SUBST([ORT_CPPFLAGS])
    AM_CONDITIONAL([HAVE_ORT], [test "x$have_ort" != xno])
])
