# HWNAS_MICROHTTPD
# Looks for libmicrohttpd, by which `hwnas watch` serves its page. Without it all else is built.
AC_DEFUN([HWNAS_MICROHTTPD], [
    PKG_CHECK_MODULES([MICROHTTPD], [libmicrohttpd >= 0.9.71], [have_microhttpd=yes], [have_microhttpd=no])
    AM_CONDITIONAL([HAVE_MICROHTTPD], [test $have_microhttpd = yes])
])
