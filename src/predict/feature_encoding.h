/* feature_encoding.h: an architecture as a row of numbers with names, for fitted predictors.
 *
 * Three parts, in this order. *Genes*: one column for each position of a choice; numbers are
 * continuous (their logarithm where all are positive, because widths, depths and expansions act by
 * their ratio), symbols are categorical, and so is what a condition can take away, with one more
 * level for "not there". *Sums* over the positions of a choice: of its numbers, or how often each
 * symbol occurs. *Facts* about the graph (graph_facts.h): those that differ between the networks at
 * hand. Genes and sums follow from the space; facts are a list of names that a file keeps. */
#ifndef HWNAS_PREDICT_FEATURE_ENCODING_H
#define HWNAS_PREDICT_FEATURE_ENCODING_H

#include "predict/column.h"

typedef enum hwnas_column_part {
    HWNAS_COLUMN_GENE,
    HWNAS_COLUMN_SUM,
    HWNAS_COLUMN_FACT,
    HWNAS_N_COLUMN_PARTS
} hwnas_column_part;

typedef struct hwnas_feature_encoding {
    const hwnas_space *space; /* borrowed; NULL: any, and there are only facts */
    hwnas_arena *arena;
    size_t n_columns;
    hwnas_column *columns;
    size_t first[HWNAS_N_COLUMN_PARTS + 1]; /* columns of part p: first[p] to first[p + 1] - 1 */
    const char **cells;                     /* whose paths are among the facts, NULL-terminated */
    hwnas_space *plain; /* the space as its file has it where `space` has other settings, or NULL */
} hwnas_feature_encoding;

/* Whether the values of a choice are amounts, more of which is more, by their logarithm or as they
 * are, or symbols. */
hwnas_coding hwnas_choice_coding(const hwnas_space *space, const hwnas_choice *choice);

/* `facts`: the names of the facts that are columns, sorted. */
hwnas_feature_encoding *hwnas_feature_encoding_new(const hwnas_space *space,
                                                   const char *const *facts, size_t n_facts);
void hwnas_feature_encoding_free(hwnas_feature_encoding *encoding); /* accepts NULL */

/* Facts are those of the network under the settings of the space's file, which a predictor that
 * ships was fitted to: how long a text is when a decoder is timed does not change how well it
 * writes. */
HWNAS_CHECKED hwnas_status hwnas_feature_encoding_use_plain(hwnas_feature_encoding *encoding);

/* Facts that differ among networks drawn from the space and `archs`, without those that say the
 * same as one before them (a correlation of 1). The list is the encoding's own. */
HWNAS_CHECKED hwnas_status hwnas_feature_encoding_find(hwnas_feature_encoding **out,
                                                       const hwnas_space *space,
                                                       const hwnas_arch *const *archs, size_t n);

/* Writes genes and sums (out[0] on), and with `with_facts` the facts behind them, for which it
 * builds the graph; the architecture may be of another space when the encoding is for any. */
HWNAS_CHECKED hwnas_status hwnas_feature_encoding_row(const hwnas_feature_encoding *encoding,
                                                      double *out, const hwnas_arch *arch,
                                                      bool with_facts);

/* Hash of the names of a space's choices and the labels of their values: what an encoding means.
 * 16 hex digits, yours to free(). */
char *hwnas_space_digest(const hwnas_space *space);

#endif
