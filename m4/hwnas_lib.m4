# HWNAS_LIB(PREFIX, LIBRARY, FUNCTION, HEADER, PACKAGE)
# A library that has no pkg-config file: sets PREFIX_LIBS or says which package is missing.
AC_DEFUN([HWNAS_LIB], [
    AC_CHECK_HEADER([$4], [], [AC_MSG_ERROR([$4 not found; install $5])])
    AC_CHECK_LIB([$2], [$3], [$1_LIBS="-l$2"], [AC_MSG_ERROR([lib$2 not found; install $5])])
    AC_SUBST([$1_LIBS])
])
