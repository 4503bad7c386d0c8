/* search_fixture.h: made-up spaces and NAS-Bench-Macro for strategies to search. */
#ifndef HWNAS_TESTS_SEARCH_FIXTURE_H
#define HWNAS_TESTS_SEARCH_FIXTURE_H

#include "search/search.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { MAX_GENES = 16, MAX_VALUES = 4 };

/* A space of n_genes genes with the integers 0 to n_values - 1. */
typedef struct test_space {
    hwnas_space space;
    hwnas_gene genes[MAX_GENES];
    hwnas_value values[MAX_VALUES];
    const char *labels[MAX_VALUES];
    hwnas_choice choice; /* which all genes are positions of */
} test_space;

void make_space(test_space *t, size_t n_genes, size_t n_values);
/* With as many of the objectives as the strategy can do, and a ladder for one that climbs. */
hwnas_strategy *make(const char *name, const test_space *t, uint64_t seed, int n_objectives);
/* These must succeed. */
void ask(hwnas_strategy *strategy, uint64_t trial, hwnas_arch *out);
void tell(hwnas_strategy *strategy, uint64_t trial, const hwnas_arch *arch,
          const hwnas_score *score);
/* The architecture as a number, its genes as digits. */
size_t index_of(const hwnas_arch *arch);
/* Objectives in conflict: the sum of the genes, their distance from 2, and the first of them. */
hwnas_score toy_score(const hwnas_arch *arch);

/* NAS-Bench-Macro: accuracy and MACs of all 3^8 encodings, sorted by encoding. The first is for a
 * group of tests to begin with. */
int load_macro(void **state);
hwnas_score macro_score(const hwnas_arch *arch);

#endif
