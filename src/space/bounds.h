/* bounds.h: what is known of a value that depends on open genes: the value itself, or between which
 * numbers it lies. Private to space/. */
#ifndef HWNAS_SPACE_BOUNDS_H
#define HWNAS_SPACE_BOUNDS_H

#include "space/lang.h"

/* Whole numbers below this are exact as doubles, and so are their quotients when rounded down. */
#define HWNAS_BOUNDS_EXACT 0x1p50

typedef enum hwnas_truth { HWNAS_FALSE, HWNAS_TRUE, HWNAS_OPEN } hwnas_truth;

/* What is known of a value. */
typedef struct hwnas_bounds {
    bool is_known;
    bool is_error;     /* known: it cannot be computed */
    hwnas_value value; /* known, and no error */
    bool is_number;    /* unless it fails */
    bool is_whole;     /* the same, of 64 bits */
    bool may_fail;
    double low, high; /* of a number */
} hwnas_bounds;

hwnas_bounds hwnas_bounds_known(hwnas_value value);
hwnas_bounds hwnas_bounds_int(int64_t i);
hwnas_bounds hwnas_bounds_failure(void);  /* it cannot be computed */
hwnas_bounds hwnas_bounds_anything(void); /* nothing is known */
/* Both ends included; what may overflow has none. */
hwnas_bounds hwnas_bounds_between(double low, double high, bool is_whole, bool may_fail);
hwnas_bounds hwnas_bounds_truth(bool may_fail); /* 0 or 1 */

/* HWNAS_OPEN also for what may fail. */
hwnas_truth hwnas_bounds_decide(const hwnas_bounds *bounds);
/* Of two operands of which one is open. */
hwnas_bounds hwnas_bounds_operator(hwnas_operator op, const hwnas_bounds *a, const hwnas_bounds *b);
/* Of a function of one argument, "floor". */
hwnas_bounds hwnas_bounds_call(const char *function, const hwnas_bounds *argument);

#endif
