/* expr.h: the tables of the expression language, for those who read or write it as text. */
#ifndef HWNAS_SPACE_EXPR_H
#define HWNAS_SPACE_EXPR_H

#include "space/lang.h"

typedef struct hwnas_operator_row {
    const char *text;
    int precedence; /* higher binds tighter */
} hwnas_operator_row;
extern const hwnas_operator_row hwnas_operator_rows[HWNAS_N_OPERATORS];

typedef struct hwnas_function_row {
    const char *name;
    int min_args, max_args; /* max_args < 0: any number */
    hwnas_status (*apply)(hwnas_value *out, const hwnas_value *args, size_t n,
                          const hwnas_place *place);
} hwnas_function_row;
extern const hwnas_function_row hwnas_functions[]; /* ends with a NULL name */

/* Names of the current tensor's dimensions, without the batch: "in", "height", "width"; NULL ends. */
extern const char *const hwnas_tensor_names[];

#endif
