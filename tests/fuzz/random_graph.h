/* random_graph.h: graphs of random operators, and what `cpu` makes of them against `ref`.
 *
 * A recipe is a graph as a list of steps, so that it can be made smaller and printed. */
#ifndef HWNAS_TESTS_RANDOM_GRAPH_H
#define HWNAS_TESTS_RANDOM_GRAPH_H

#include <stdio.h>

#include "base/rng.h"
#include "device/device.h"

enum { RANDOM_MAX_STEPS = 96, RANDOM_MAX_OUTPUTS = 4, RANDOM_MAX_INPUTS = 3 };

typedef struct random_step {
    const char *op; /* NULL: an input of the graph, or a constant */
    bool is_constant;
    char attrs[96];
    int n_inputs, inputs[RANDOM_MAX_INPUTS]; /* steps */
    hwnas_dtype dtype;
    int rank;
    int64_t dims[HWNAS_MAX_RANK];
    bool is_given; /* a constant of one number, which is `value`; else its values are near one */
    float value;
} random_step;

typedef struct random_recipe {
    uint64_t seed; /* of weights and inputs */
    int n, n_outputs, outputs[RANDOM_MAX_OUTPUTS];
    random_step steps[RANDOM_MAX_STEPS];
} random_recipe;

/* Where choices come from: bytes while there are some, or, with NULL, the generator. */
typedef struct random_source {
    const uint8_t *bytes;
    size_t n_bytes;
    hwnas_rng rng;
} random_source;

/* A graph of 4 to 12 operators, or blocks of some operators. */
void random_recipe_make(random_recipe *out, random_source *source, uint64_t seed);
void random_recipe_print(FILE *to, const random_recipe *recipe);

/* How far off the CPU is, in units of what rounding explains: above 1 something is wrong. */
typedef struct random_verdict {
    hwnas_status status; /* of the CPU: another than HWNAS_OK is wrong too */
    bool says_nothing;   /* `ref` has no finite numbers, or rounding explains everything */
    double ratio;
} random_verdict;
random_verdict random_recipe_judge(const random_recipe *recipe, hwnas_device *cpu,
                                   hwnas_device *ref, hwnas_precision precision);
bool random_verdict_is_bad(const random_verdict *verdict);

/* Leaves out what is not needed to be wrong. */
void random_recipe_shrink(random_recipe *recipe, hwnas_device *cpu, hwnas_device *ref,
                          hwnas_precision precision);

#endif
