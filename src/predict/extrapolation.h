/* extrapolation.h: how far an estimate may be off outside what its predictor has learned from.
 *
 * A model's own deviation tells how rows scatter among values that it has seen, and little of what
 * lies beyond. So a fit leaves each value of each choice out in turn, fits to the rows without it,
 * asks for those with it, and keeps how far off it is: an error for each
 * step beyond the values that are left, and one between them. Steps are differences of logarithms
 * of amounts, and 1 of symbols. An estimate outside gets the error of each choice that is, by its
 * distance from the nearest value that was seen; errors of several choices add up as variances.
 *
 * Where few values can be left out they may all have been easy, so an estimate is in doubt by its
 * own step as well: by how much it differs from that of the network with the nearest values that
 * were seen.
 *
 * Of a choice that had one value, or whose values cannot be left out, nothing is known. There a
 * network may be anywhere in the table: the error is the spread of all results, and more where it
 * moves the network by more MACs than the table does.
 *
 * Sizes (domain.h) are left out as well: the tenth of the rows with the fewest MACs, that with the
 * most, and the same of parameters, all in one fit to the rest. An error for a factor e beyond an
 * end of a size is what these were off by for each such factor. Where that is not known results
 * are taken to spread over the sizes of the table as they do. */
#ifndef HWNAS_PREDICT_EXTRAPOLATION_H
#define HWNAS_PREDICT_EXTRAPOLATION_H

#include "predict/domain.h"
#include "predict/model.h"

/* Where a value lies from others of its choice. */
typedef struct hwnas_reach {
    double distance; /* from the nearest */
    bool is_between; /* some are below it and some above */
} hwnas_reach;
/* `others`: labels. A value among them has the distance 0. */
hwnas_reach hwnas_reach_of(const hwnas_space *space, const hwnas_choice *choice, const char *label,
                           const json_t *others);

/* What a file keeps of it, a new reference: {"table_sd", "per_macs", "slope", "choices": {NAME:
 * {"tried", "between", "beyond"}}, "sizes": {NAME: {"below", "above"}}}, deviations in the target's
 * unit; `per_macs` and `sizes` are for a factor e, `slope` is the mean of the model's over the
 * rows. `archs`: of the rows. As long as a fit to
 * a few hundred rows for each value of each choice. */
HWNAS_CHECKED hwnas_status hwnas_extrapolation_learn(json_t **out, const hwnas_model *model,
                                                     const hwnas_rows *rows,
                                                     hwnas_arch *const *archs, const json_t *domain,
                                                     uint64_t seed);

typedef struct hwnas_extrapolation hwnas_extrapolation;
/* `errors`: as above, or HWNAS_E_INPUT. Space, map and sizes are borrowed. */
HWNAS_CHECKED hwnas_status hwnas_extrapolation_new(hwnas_extrapolation **out, const json_t *errors,
                                                   const json_t *domain, const hwnas_space *space,
                                                   const hwnas_domain_map *map,
                                                   const hwnas_sizes *sizes);
void hwnas_extrapolation_free(hwnas_extrapolation *extrapolation); /* accepts NULL */

/* Widens the estimate that a model made of a network outside the domain; builds it where its MACs
 * matter, and costs another estimate where values are outside. `row`: of the network in the model's
 * encoding, with its facts; NULL: its sizes are inside. */
void hwnas_extrapolation_widen(hwnas_estimate *estimate, const hwnas_extrapolation *extrapolation,
                               const hwnas_arch *arch, const double *row, const hwnas_model *model);

/* For a factor e of a size below its least and above its greatest. */
typedef struct hwnas_size_error {
    double below, above;
} hwnas_size_error;
hwnas_size_error hwnas_extrapolation_of_size(const json_t *errors, const hwnas_size_range *range);

/* The greatest deviation that a choice may add with one of the values `unseen`; *is_known: from
 * values that were left out, else it is the least. */
double hwnas_extrapolation_most(bool *is_known, const json_t *errors, const hwnas_space *space,
                                const hwnas_choice *choice, const json_t *seen,
                                const json_t *unseen);

#endif
