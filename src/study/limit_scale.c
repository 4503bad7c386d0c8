/* limit_scale.c: limits on an accuracy that are of another scale than the accuracies. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "study/evaluator.h"

/* Of what a table has; false: it is none. */
static bool find_range(double *least, double *most, size_t *n, hwnas_predictor *predictor)
{
    const hwnas_arch *const *archs =
        predictor->ops->recall ? predictor->ops->recall(n, predictor) : NULL;
    *least = INFINITY;
    *most = -INFINITY;
    for (size_t i = 0; archs && i < *n; i++) {
        hwnas_estimate e;
        if (hwnas_predictor_score(&e, predictor, &archs[i], 1) != HWNAS_OK) {
            hwnas_error_clear();
            return false;
        }
        *least = fmin(*least, e.mean);
        *most = fmax(*most, e.mean);
    }
    return archs && *n;
}

/* Whether all of these, or none, keep it. */
static const char *excludes(const hwnas_limit *limit, double least, double most)
{
    const bool keeps_least = hwnas_limit_violation(limit, least, least) == 0,
               keeps_most = hwnas_limit_violation(limit, most, most) == 0;
    return keeps_least && keeps_most     ? "none"
           : !keeps_least && !keeps_most ? "all"
                                         : NULL;
}

static void tell_of(const hwnas_limit *limit, hwnas_predictor *predictor)
{
    double least, most;
    size_t n;
    char at[64] = "";
    const hwnas_place *place = &limit->place;
    if (place->line)
        snprintf(at, sizeof at, ":%d:%d", place->line, place->column);
    const char *file = place->file ? place->file : "", *colon = place->file ? ": " : "";
    const bool has_range = find_range(&least, &most, &n, predictor);
    const char *excluded = has_range ? excludes(limit, least, most) : NULL;
    const bool is_percent = !strcmp(hwnas_predictor_unit(predictor), "%") || (has_range && most > 1);
    const bool is_fraction = is_percent && limit->value > 0 && limit->value <= 1;
    char *hint = is_fraction ? hwnas_printf("; they are in percent: %g?", 100 * limit->value)
                             : hwnas_strdup("");
    if (excluded)
        hwnas_log(HWNAS_LOG_NOTE,
                  "%s%s%s%s excludes %s of %zu networks, which have %.4g to %.4g%s", file, at, colon,
                  limit->text, excluded, n, least, most, hint);
    else if (is_fraction && !has_range)
        hwnas_log(HWNAS_LOG_NOTE, "%s%s%s%s is a limit of %g %%%s", file, at, colon, limit->text,
                  limit->value, hint);
    free(hint);
}

void hwnas_evaluator_tell_of_limits(const hwnas_evaluator *e)
{
    const hwnas_goals *goals = &e->job->goals;
    for (int i = 0; i < goals->n_limits && e->predictor; i++)
        if (goals->limits[i].goal.metric->source == HWNAS_FROM_PREDICTOR)
            tell_of(&goals->limits[i], e->predictor);
}
