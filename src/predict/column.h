/* column.h: an architecture's choices as columns of numbers, for models of all kinds.
 *
 * A column is a coding of one gene, or the sum of a coding over several genes of one choice: "log
 * e[1]", "op[2]", "op[2]=3", "sum log e", "sum op=3". Fitted predictors (feature_encoding.h),
 * vectors for other people's models (vector.h), the search's Gaussian processes (search/columns.h)
 * and the study's (study/response.h) are lists of these; what they know of the network beside its
 * choices each adds itself. */
#ifndef HWNAS_PREDICT_COLUMN_H
#define HWNAS_PREDICT_COLUMN_H

#include "space/arch.h"

typedef enum hwnas_coding {
    HWNAS_CODING_CODE,   /* the place of the gene's value among its values, from 0: a category */
    HWNAS_CODING_NUMBER, /* the value, a number */
    HWNAS_CODING_LOG,    /* its logarithm, to six digits as facts have (graph_facts.h) */
    HWNAS_CODING_IS,     /* 1 for one of the values, else 0 */
    HWNAS_CODING_FACT,   /* not of the choices: whoever has the column fills it in */
} hwnas_coding;

typedef struct hwnas_column {
    const char *name; /* positions count from 1 */
    hwnas_coding coding;
    size_t choice, position;    /* of the first gene */
    size_t first_gene, n_genes; /* summed over; 0: FACT */
    const double *codes;        /* of each value of the first gene, then of the second, ... */
    bool has_conditions;        /* a gene may not count: then it is */
    double absent;
    size_t n_levels; /* values of the first gene, and "absent" where it may be */
} hwnas_column;

/* `value`: what IS asks for. `absent`: what a gene is that does not count because a condition does
 * not hold; NAN: what it would be. */
hwnas_column hwnas_column_make(hwnas_arena *arena, const hwnas_space *space, size_t first_gene,
                               size_t n_genes, hwnas_coding coding, uint16_t value, double absent);

/* One number for each of the columns; those of facts stay as they are. */
void hwnas_column_fill_row(double *out, const hwnas_column *columns, size_t n,
                           const hwnas_arch *arch);

/* A number's value; false: it is none. */
bool hwnas_value_number(double *out, const hwnas_value *value);

#endif
