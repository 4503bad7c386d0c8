# HWNAS_UPLOT
# Looks for uPlot, which draws the charts of `hwnas report` and becomes a part of the library. Without it all else is
# built, and a report has no charts.
AC_DEFUN([HWNAS_UPLOT], [
    AC_ARG_WITH([uplot],
        [AS_HELP_STRING([--with-uplot=DIR], [where the npm package uplot is; no: do without])],
        [], [with_uplot=auto])
    have_uplot=no
    hwnas_dir=$with_uplot
    AS_IF([test "x$with_uplot" = xauto || test "x$with_uplot" = xyes],
        [hwnas_dir="`cd "$srcdir" && pwd`/.deps/uplot/node_modules/uplot"])
    AS_IF([test "x$with_uplot" != xno], [
        AC_MSG_CHECKING([for uPlot in $hwnas_dir])
        AS_IF([test -r "$hwnas_dir/dist/uPlot.iife.min.js" && test -r "$hwnas_dir/dist/uPlot.min.css" &&
            test -r "$hwnas_dir/LICENSE"], [have_uplot=$hwnas_dir])
        AC_MSG_RESULT([$have_uplot])
        AS_IF([test "x$have_uplot" = xno && test "x$with_uplot" != xauto],
            [AC_MSG_ERROR([no dist/uPlot.iife.min.js in $hwnas_dir])])
    ])
    UPLOT_FILES=
    AS_IF([test "x$have_uplot" != xno],
        [UPLOT_FILES="$have_uplot/LICENSE $have_uplot/dist/uPlot.iife.min.js $have_uplot/dist/uPlot.min.css"])
    AC_SUBST([UPLOT_FILES])
])
