# HWNAS_POSTGRESQL
# Looks for the header of PostgreSQL's client library, which studies in PostgreSQL are built with; the
# library is opened when it runs. Without it all else is built.
AC_DEFUN([HWNAS_POSTGRESQL], [
    AC_ARG_WITH([postgresql],
        [AS_HELP_STRING([--without-postgresql], [no studies in PostgreSQL])], [], [with_postgresql=auto])
    have_postgresql=no
    AS_IF([test "x$with_postgresql" != xno],
        [PKG_CHECK_MODULES([LIBPQ], [libpq >= 12], [have_postgresql=yes], [have_postgresql=no])])
    AS_IF([test "x$have_postgresql" = xno && test "x$with_postgresql" = xyes],
        [AC_MSG_ERROR([libpq not found; install libpq-dev])])
    AM_CONDITIONAL([HAVE_POSTGRESQL], [test $have_postgresql = yes])
])
