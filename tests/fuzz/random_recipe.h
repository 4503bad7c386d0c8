/* random_recipe.h: what the makers of recipes share with what runs them. */
#ifndef HWNAS_TESTS_RANDOM_RECIPE_H
#define HWNAS_TESTS_RANDOM_RECIPE_H

#include "tests/fuzz/random_graph.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

typedef random_recipe recipe;
typedef random_step step;

/* Step number `index` as a node of a graph; `tensors` are those of the steps before it. */
hwnas_status random_add_step(int *out, hwnas_graph *graph, const step *s, int index,
                             const int *tensors);

/* Which steps the outputs need. */
void random_find_needed(bool *is_needed, const recipe *r);

/* ---- Making ---- */

typedef struct random_maker {
    recipe *r;
    random_source *source;
    hwnas_graph *graph; /* the same, for its shapes */
    int tensors[RANDOM_MAX_STEPS];
} maker;

/* A number below `n`. */
int random_below(maker *m, int n);
bool random_maybe(maker *m, int percent);
#define ONE_OF(m, array) ((array)[random_below(m, (int)COUNT(array))])

int random_rank(const maker *m, int v);
const int64_t *random_dims(const maker *m, int v);

/* These append a step and give its number; -1 where there is no room, the graph does not take it,
 * or it is too large, and where a step that it is made of is -1. */
int random_append(maker *m, const step *s);
/* A node of one or two steps. */
int random_node(maker *m, const char *op, int a, int b, const char *format, ...) HWNAS_PRINTF(5, 6);
/* Of two steps, neither of which may be missing. */
int random_join(maker *m, const char *op, int a, int b);
int random_function(maker *m, const char *op, int x);
int random_constant(maker *m, int rank, const int64_t *dims);
int random_number(maker *m, float value, hwnas_dtype dtype);
/* A part of `v`'s dimensions, some of them one, that can be repeated to be like `v`. */
int random_constant_for(maker *m, int v);

/* An earlier step other than `v`, or -1. `is_alike`: of its shape. */
int random_earlier(maker *m, int v, bool is_alike);

/* Any operator of step `x`, or a block of some operators; -1: none was made. */
int random_make_any(maker *m, int x);

#endif
