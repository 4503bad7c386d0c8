/* expr.h: the tables of the expression language, for those who read or write it as text. */
#ifndef HWNAS_SPACE_EXPR_H
#define HWNAS_SPACE_EXPR_H

#include "space/lang.h"

typedef struct hwnas_operator_row {
    const char *text;
    int precedence; /* higher binds tighter */
} hwnas_operator_row;
extern const hwnas_operator_row hwnas_operator_rows[HWNAS_N_OPERATORS];

/* Of two operands: comparisons, arithmetic and a[i]. */
HWNAS_CHECKED hwnas_status hwnas_operator_apply(hwnas_value *out, hwnas_operator op,
                                                const hwnas_value *a, const hwnas_value *b,
                                                const hwnas_place *place);

typedef struct hwnas_function_row {
    const char *name;
    int min_args, max_args; /* max_args < 0: any number */
    hwnas_status (*apply)(hwnas_value *out, const hwnas_value *args, size_t n,
                          const hwnas_place *place);
} hwnas_function_row;
extern const hwnas_function_row hwnas_functions[]; /* ends with a NULL name */

/* Facts of the current tensor, NULL ends: "in" are the channels of an image or the features of
 * anything else, "height" and "width" an image's, "length" a sequence's. */
extern const char *const hwnas_tensor_names[];
/* Which of `n_dims` dimensions, counted without the batch, a fact is; -1 when the tensor has no
 * such. */
int hwnas_tensor_dimension(int slot, int n_dims);

#endif
