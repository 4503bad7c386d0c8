/* trial_words.c: what a trial came to, in a few words (front.h). */
#include <string.h>

#include "report/front.h"

/* A limit is kept or missed by the whole interval, so it is a part of what is said of one. */
static void add_words(hwnas_str *out, const hwnas_trial *trial, const hwnas_goal *goal,
                      bool is_of_limit)
{
    const hwnas_value_row *v = hwnas_trial_value(trial, goal->name);
    if (!v)
        return;
    const hwnas_metric shown = hwnas_metric_shown(goal->metric, v->value), *m = &shown;
    hwnas_str_addf(out, "%s%s %.*f%s%s", out->n ? ", " : "", *m->unit ? goal->name : m->title,
                   m->decimals, v->value / m->scale, *m->unit ? " " : "", m->unit);
    if (is_of_limit && m->source == HWNAS_FROM_DEVICE && hwnas_value_has_interval(v))
        hwnas_str_addf(out, " [%.*f, %.*f]", m->decimals, v->low / m->scale, m->decimals,
                       v->high / m->scale);
    const hwnas_source_kind *source = &hwnas_sources[v->source];
    if (source->doubt)
        hwnas_str_addf(out, " ! %s", source->doubt);
    else if (source->is_said)
        hwnas_str_addf(out, " (%s)", source->name);
}

char *hwnas_trial_words(const hwnas_trial *trial, const hwnas_goals *goals)
{
    hwnas_str words = {0};
    hwnas_str_add(&words, "");
    for (int i = 0; i < goals->n_objectives; i++)
        add_words(&words, trial, &goals->objectives[i], false);
    return words.s;
}

char *hwnas_limit_words(const hwnas_trial *trial, const hwnas_goals *goals)
{
    hwnas_str words = {0};
    hwnas_str_add(&words, "");
    for (int i = 0; i < goals->n_limits; i++) {
        bool is_said = false;
        for (int j = 0; j < i; j++)
            is_said |= !strcmp(goals->limits[j].goal.name, goals->limits[i].goal.name);
        if (!is_said)
            add_words(&words, trial, &goals->limits[i].goal, true);
    }
    return words.s;
}
