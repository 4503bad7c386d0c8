/* pattern.h: operators that are written as several, as text, and where a graph has them.
 *
 *     x                   any tensor; each time the same one
 *     S, B                weights: a scale, a shift
 *     (exp PART)          a node of an operator, by its name in a space. Numbers at the end are its
 *                         attributes that are numbers. Reductions keep their dimensions, and all of
 *                         a pattern are over the same axes of tensors of x's shape.
 *     (* PART... NUMBER)  a product of tensors and a number, 1 where none is said. A part may be
 *                         (^ PART POWER).
 *     (+ PART... NUMBER)  a sum of tensors and a number, 0 where none is said. A part may be
 *                         (- PART), which is taken away.
 *     #                   in the place of a number: any, which the match tells
 *
 * Products and sums are what a file computes, not how: their parts may be in any order and nested
 * in any way, a square is x x or x^2, and 1 / sqrt(x), reciprocal(sqrt(x)) and a division by
 * sqrt(x) are (^ x -0.5). Numbers are constants of one value, alike within 1e-6. */
#ifndef HWNAS_GRAPH_PATTERN_H
#define HWNAS_GRAPH_PATTERN_H

#include "graph/op.h"
#include "graph/rewrite.h"

typedef struct hwnas_pattern hwnas_pattern;

typedef enum hwnas_pattern_variable {
    HWNAS_PATTERN_X,
    HWNAS_PATTERN_SCALE,
    HWNAS_PATTERN_SHIFT,
    HWNAS_PATTERN_N_VARIABLES
} hwnas_pattern_variable;

enum { HWNAS_PATTERN_MAX_NODES = 32 };

typedef struct hwnas_match {
    int output;                                  /* tensor: of the node where it ends */
    int tensors[HWNAS_PATTERN_N_VARIABLES];      /* by variable; -1: the pattern has it not */
    double number;                               /* of # */
    const hwnas_node *reduction;                 /* one of them; NULL: there is none */
    int n_nodes, nodes[HWNAS_PATTERN_MAX_NODES]; /* that it is made of, in no order */
} hwnas_match;

/* The pattern is the arena's. A text that is none ends the program: texts are in our sources. */
const hwnas_pattern *hwnas_pattern_parse(hwnas_arena *arena, const char *text);

/* Where the pattern ends at a node: x and the output are floats of one shape, no value between them
 * is an output or read by other nodes, and `accepts` says yes. `uses` as of hwnas_graph_uses().
 * False: it does not; `out` is then undefined. */
bool hwnas_pattern_match(hwnas_match *out, const hwnas_pattern *pattern, const hwnas_graph *graph,
                         const hwnas_uses *uses, int node,
                         bool (*accepts)(const hwnas_match *match, void *context), void *context);

#endif
