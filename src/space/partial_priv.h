/* partial_priv.h: what the reduction of expressions (partial.c) and of sums and extremes, which
 * fold into one number (partial_fold.c), share.
 *
 * Each function that reduces leaves the key as it was when what it returns is known, else with the
 * rest of its expression behind it. */
#ifndef HWNAS_SPACE_PARTIAL_PRIV_H
#define HWNAS_SPACE_PARTIAL_PRIV_H

#include "space/bounds.h"
#include "space/expr.h"
#include "space/partial.h"

/* ---- partial.c ---- */

void hwnas_partial_put(hwnas_partial *p, const void *bytes, size_t n);
void hwnas_partial_put_tag(hwnas_partial *p, char tag, int op);
void hwnas_partial_put_value(hwnas_partial *p, const hwnas_value *value);
/* `r`, with the key as it was at `mark`. */
hwnas_bounds hwnas_partial_forget(hwnas_partial *p, size_t mark, hwnas_bounds r);
/* A part of a longer key: the value stands in it when it is known. */
hwnas_bounds hwnas_partial_part(hwnas_partial *p, hwnas_bounds r);
/* A list is a choice of several positions, or is written as one. */
bool hwnas_partial_is_list(const hwnas_partial *p, const hwnas_expr *expr);
size_t hwnas_partial_list_length(const hwnas_partial *p, const hwnas_expr *list);
hwnas_bounds hwnas_partial_reduce_item(hwnas_partial *p, const hwnas_expr *list, size_t i);
hwnas_bounds hwnas_partial_reduce(hwnas_partial *p, const hwnas_expr *expr);

/* ---- partial_fold.c ---- */

bool hwnas_partial_is_call(const hwnas_expr *expr, const char *name);
bool hwnas_partial_is_sum(const hwnas_partial *p, const hwnas_expr *expr);
/* A sum of whole numbers: the known terms are one number, in whichever order they come. false: it
 * is none, or may be too large; then the key is as it was. */
bool hwnas_partial_reduce_sum(hwnas_bounds *out, hwnas_partial *p, const hwnas_expr *expr);
/* A sum in the order in which eval.c adds, for what is not whole. */
hwnas_bounds hwnas_partial_reduce_ordered_sum(hwnas_partial *p, const hwnas_expr *expr);
/* The largest of whole numbers, or the smallest: the known ones are one number. */
bool hwnas_partial_reduce_extreme(hwnas_bounds *out, hwnas_partial *p, const hwnas_expr *expr,
                                  bool is_max);

#endif
