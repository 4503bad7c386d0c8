/* columns.h: encodings as rows of numbers for a Gaussian process.
 *
 * Each gene is a categorical column with a length-scale of its own. Continuous columns: how often
 * each value stands in a choice of several places; how often each kind of layer occurs, one column
 * for all kinds that rise and fall together; the costs. Which kinds of layers are columns is read
 * from the networks tried so far. */
#ifndef HWNAS_SEARCH_COLUMNS_H
#define HWNAS_SEARCH_COLUMNS_H

#include "predict/column.h"
#include "predict/gp.h"
#include "search/encoding.h"

typedef struct hwnas_columns {
    hwnas_arena *arena;
    size_t n;
    hwnas_gp_column *columns; /* genes, counts of values, layers, costs, in this order */
    size_t n_choices, n_layers;
    hwnas_column *choices; /* genes and counts of values */
    uint64_t *layers;      /* kinds, sorted */
} hwnas_columns;

hwnas_columns *hwnas_columns_new(const hwnas_space *space, const hwnas_encoding *const *encodings,
                                 size_t n);
void hwnas_columns_free(hwnas_columns *columns); /* accepts NULL */

void hwnas_columns_row(const hwnas_columns *columns, double *out, const hwnas_encoding *encoding);

#endif
