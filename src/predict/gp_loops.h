/* gp_loops.h: the loops over rows in which the kernel of the Gaussian process spends its time,
 * compiled for more than one instruction set.
 *
 * All versions give the same bits: each element goes through the same operations in the same order,
 * none of them is fused, and sums have a fixed number of lanes, whatever the registers
 * have, so a fit does not depend on what the processor has. */
#ifndef HWNAS_PREDICT_GP_LOOPS_H
#define HWNAS_PREDICT_GP_LOOPS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct hwnas_gp_loops {
    const char *isa;
    bool (*is_supported)(void); /* by this processor */
    /* Adds `weight` where x[j] is not `value`. */
    void (*add_mismatches)(double *restrict sums, const double *restrict x, double value,
                           double weight, size_t n);
    /* Adds weight (x[j] - value)^2. */
    void (*add_distances)(double *restrict distances, const double *restrict x, double value,
                          double weight, size_t n);
    /* Adds x[j] value. */
    void (*add_products)(double *restrict products, const double *restrict x, double value,
                         size_t n);
    /* amplitude (1 + r + r^2 / 3) exp(-r - mismatches[j]) with r = sqrt(5 distances[j]), a Matern
     * kernel of 5/2, plus linear products[j]. The exponential is within 2e-16, relative; beyond
     * e^-700 as there. Leaves r in place of the distances, the exponential in place of the
     * mismatches. */
    void (*finish)(double *restrict out, double *restrict distances, double *restrict mismatches,
                   const double *restrict products, double amplitude, double linear, size_t n);
    /* In place of what finish() left of both sums the derivatives by them of weights[j] times the
     * Matern kernel. */
    void (*derive)(double *restrict distances, double *restrict mismatches,
                   const double *restrict weights, double amplitude, size_t n);
    /* The sum of slopes[j] (x[j] - value)^2, and of slopes[j] where x[j] is not `value`. */
    double (*sum_distances)(const double *slopes, const double *x, double value, size_t n);
    double (*sum_mismatches)(const double *slopes, const double *x, double value, size_t n);
    double (*sum_products)(const double *a, const double *b, size_t n);
} hwnas_gp_loops;

/* From the best to the one that every processor has, which is the last. */
extern const hwnas_gp_loops hwnas_gp_loops_all[];
/* The first that is supported. */
const hwnas_gp_loops *hwnas_gp_loops_best(void);

#endif
