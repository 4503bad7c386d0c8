# HWNAS_CUDA
# Looks for the headers of CUDA 12, with cuBLAS and NVRTC, and cuDNN 9.8 or newer, which the module for GPUs is built with;
# the libraries are opened when it runs. Without them there is no module, and all else is built.
AC_DEFUN([HWNAS_CUDA], [
    AC_ARG_WITH([cuda],
        [AS_HELP_STRING([--with-cuda=DIR], [where CUDA and cuDNN are (/usr/local/cuda); no: do without])],
        [], [with_cuda=auto])
    have_cuda=no
    hwnas_cuda_dirs=$with_cuda
    AS_IF([test "x$with_cuda" = xauto || test "x$with_cuda" = xyes],
        [hwnas_cuda_dirs="${CUDA_HOME:-} /usr /usr/local/cuda"])
    AS_IF([test "x$with_cuda" != xno], [
        hwnas_save_CPPFLAGS=$CPPFLAGS
        for hwnas_dir in $hwnas_cuda_dirs; do
            AC_MSG_CHECKING([for CUDA 12 and cuDNN 9.8 in $hwnas_dir])
            CPPFLAGS="$hwnas_save_CPPFLAGS -I$hwnas_dir/include"
            AC_PREPROC_IFELSE([AC_LANG_SOURCE([[
                #include <cublasLt.h>
                #include <cuda.h>
                #include <cudnn.h>
                #include <nvrtc.h>
                #if CUDA_VERSION < 12000 || CUDNN_VERSION < 90800
                #error
                #endif]])],
                [have_cuda=$hwnas_dir], [])
            AC_MSG_RESULT([$have_cuda])
            test "x$have_cuda" = xno || break
        done
        CPPFLAGS=$hwnas_save_CPPFLAGS
        AS_IF([test "x$have_cuda" = xno && test "x$with_cuda" != xauto],
            [AC_MSG_ERROR([no CUDA 12 with cuDNN 9.8 in $hwnas_cuda_dirs])])
    ])
    AS_IF([test "x$have_cuda" != xno], [
        CUDA_CPPFLAGS="-isystem $have_cuda/include"
        CUDA_LIBRARIES=$have_cuda/lib64
    ])
    AC_SUBST([CUDA_CPPFLAGS])
    AC_SUBST([CUDA_LIBRARIES])
    AM_CONDITIONAL([HAVE_CUDA], [test "x$have_cuda" != xno])
])
