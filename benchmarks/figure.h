/* figure.h: what every benchmark ends with. */
#ifndef HWNAS_BENCHMARKS_FIGURE_H
#define HWNAS_BENCHMARKS_FIGURE_H

#include <stdio.h>

/* A figure of which more is better. */
static inline void print_figure(const char *name, double value, const char *unit, double goal)
{
    printf("figure %s %.0f %s goal %.0f %s\n", name, value, unit, goal,
           value >= goal ? "met" : "short");
}

#endif
