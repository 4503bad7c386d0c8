/* curve.h: where a training will end, by its curve so far and by whole curves of earlier trainings.
 *
 * The other trainings are of the same recipe: with a schedule of the rate a curve is no power law,
 * and what other networks' curves did from the same epoch on is the best guide. So what is still to
 * be gained is a linear regression on the last value and on its last step, over the earlier
 * trainings, where shares in % are log odds; a ridge draws it to the mean gain. What is known of
 * the end is Student's t about it (Gelman et al., "Bayesian Data Analysis", 3rd ed., section 14.2).
 * Klein et al., "Learning Curve Prediction with Bayesian Neural Networks", ICLR 2017, learn from
 * other networks' curves, too; Domhan et al., "Speeding up Automatic Hyperparameter Optimization of
 * Deep Neural Networks by Extrapolation of Learning Curves", IJCAI 2015, stop what hardly can win.
 *
 * Values are finite. Nothing is kept; any thread. */
#ifndef HWNAS_PREDICT_CURVE_H
#define HWNAS_PREDICT_CURVE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct hwnas_curve {
    const double *values; /* after each epoch; borrowed */
    size_t n;
    double end; /* what came of it */
} hwnas_curve;

typedef struct hwnas_curve_end {
    double mean, sd; /* in the values' unit */
    /* Student's t that says it: of values, or of their log odds. */
    double middle, scale;
    int freedom;
    bool is_of_odds;
} hwnas_curve_end;

/* With fewer whole curves nothing is told. */
enum { HWNAS_CURVES_FEWEST = 8 };

/* `values` has n > 0 of them. Of `known` those count that are as long; false: these are too few.
 * `is_percent`: values lie between 0 and 100. */
bool hwnas_curve_extrapolate(hwnas_curve_end *out, const double *values, size_t n,
                             const hwnas_curve *known, size_t n_known, bool is_percent);

/* How likely it is that the training ends at `floor` or above; 0 to 1. */
double hwnas_curve_chance(const hwnas_curve_end *end, double floor);
/* The middle interval in which it ends by a chance of `share`, above 0 and below 1. */
void hwnas_curve_interval(double *low, double *high, const hwnas_curve_end *end, double share);

#endif
