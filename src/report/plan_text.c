#include "report/plan_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store.h"
#include "report/held_text.h"
#include "study/identity.h"
#include "study/job_data.h"

static void add_goals(hwnas_str *out, const hwnas_job *job)
{
    hwnas_str_add(out, "judged by   ");
    for (int i = 0; i < job->goals.n_objectives; i++)
        hwnas_str_addf(out, "%s %s %s", i ? "," : "",
                       job->goals.objectives[i].metric->is_maximised ? "most" : "least",
                       job->goals.objectives[i].name);
    hwnas_str_add(out, job->goals.is_front_per_device ? ", a front for each device\n" : "\n");
    for (int i = 0; i < job->goals.n_limits; i++)
        hwnas_str_addf(out, "%s%s\n", i ? "             " : "constraints  ",
                       job->goals.limits[i].text);
}

static void add_setting(hwnas_str *out, const hwnas_setting_kind *setting, const hwnas_job *job,
                        const hwnas_job_device *device)
{
    const hwnas_setting_values *given = hwnas_setting_of_job(setting, job);
    const int own = hwnas_setting_of_device(setting, device);
    char text[HWNAS_SETTING_TEXT];
    hwnas_str_addf(out, ", %s ", setting->name);
    for (int i = 0; i < (own ? 1 : given->n); i++) {
        hwnas_setting_text(text, setting, own ? own : given->values[i]);
        hwnas_str_addf(out, "%s%s", i ? " or " : "", text);
    }
}

/* By what layers get a precision each. */
static void add_choice(hwnas_str *out, const hwnas_job *job)
{
    if (isfinite(hwnas_settings_max_error(job)))
        hwnas_str_addf(out, ", largest error %g %%", 100 * hwnas_settings_max_error(job));
    if (!isnan(job->max_loss))
        hwnas_str_addf(out, ", largest loss %g points", job->max_loss);
    if (!job->data)
        return;
    char *name = hwnas_job_data_name(job);
    hwnas_str_addf(out, " on %s", name);
    free(name);
}

static void add_devices(hwnas_str *out, const hwnas_plan *plan, const hwnas_job *job)
{
    for (int i = 0; i < job->goals.devices.n; i++) {
        const hwnas_job_device *d = &job->goals.devices.rows[i];
        const hwnas_row_name row = hwnas_job_row_name(&job->goals.devices, i);
        bool is_replayed = hwnas_starts_with(d->spelling, "replay:");
        hwnas_str_addf(out, "%s  %s%s%s", is_replayed ? "looked up  " : "measured   ", row.text,
                       strcmp(row.text, d->spelling) ? " = " : "",
                       strcmp(row.text, d->spelling) ? d->spelling : "");
        if (!is_replayed) {
            for (int k = 0; k < HWNAS_N_SETTINGS; k++)
                add_setting(out, &hwnas_setting_table[k], job, d);
            if (hwnas_settings_may_be_mixed(job))
                add_choice(out, job);
            hwnas_str_addf(out, ", until the interval is %.3g %% or %.3g s are over",
                           100 * job->interval, job->max_seconds);
        }
        hwnas_str_add(out, "\n");
    }
    if (job->predictor)
        hwnas_str_addf(out, "accuracy     %s %s\n",
                       hwnas_starts_with(job->predictor, "table:") ? "looked up in"
                       : plan->trains                              ? "trained by"
                                                                   : "predicted by",
                       job->predictor);
}

static void add_end(hwnas_str *out, const hwnas_job *job)
{
    int n = 0;
    hwnas_str_add(out, "ends         ");
    if (job->max_trials)
        hwnas_str_addf(out, "%safter %lld trial%s", n++ ? ", or " : "", (long long)job->max_trials,
                       job->max_trials == 1 ? "" : "s");
    if (job->max_minutes > 0)
        hwnas_str_addf(out, "%safter %.4g minutes", n++ ? ", or " : "", job->max_minutes);
    if (!isnan(job->hourly))
        hwnas_str_addf(out, ", which cost %.4g at %.4g an hour", job->money, job->hourly);
    if (job->improvement > 0)
        hwnas_str_addf(
            out,
            "%swhen the front improves by less than %.4g %% over a quarter of the trials, "
            "50 at least",
            n++ ? ", or " : "", 100 * job->improvement);
    for (int i = 0; i < job->goals.n_targets; i++)
        hwnas_str_addf(out, "%s%s",
                       i   ? " and "
                       : n ? ", or at "
                           : "at ",
                       job->goals.targets[i].text);
    hwnas_str_add(out, "\n");
}

typedef struct duration {
    char text[32];
} duration;

/* In the unit that people would say. */
static duration words_for(double seconds)
{
    duration d;
    bool is_long = seconds >= 7200, is_short = seconds < 120;
    if (seconds < 1)
        snprintf(d.text, sizeof d.text, "less than a second");
    else
        snprintf(d.text, sizeof d.text, "%.3g %s",
                 is_long    ? seconds / 3600
                 : is_short ? seconds
                            : seconds / 60,
                 is_long    ? "hours"
                 : is_short ? "seconds"
                            : "minutes");
    return d;
}

static void add_trainings(hwnas_str *out, const hwnas_plan *plan)
{
    if (!plan->trains_here)
        return;
    hwnas_str_add(out, "trainings    ");
    if (isnan(plan->n_trainings))
        hwnas_str_add(out, "one for each trial");
    else
        hwnas_str_addf(out, "up to %.0f more", plan->n_trainings);
    if (isnan(plan->seconds_a_training))
        hwnas_str_add(out, "; how long one takes is not known, as there is no result yet\n");
    else
        hwnas_str_addf(out, ", of %s each by the results that there are\n",
                       words_for(plan->seconds_a_training).text);
}

/* Of networks that were tried; a part that only trains has none. */
static void add_seconds(hwnas_str *out, const hwnas_plan *plan)
{
    static const char *const titles[HWNAS_PLAN_NETWORKS] = {"the smallest network", "the largest",
                                                            "a random one"};
    if (plan->part == 1U << HWNAS_TASK_TRAINING)
        return;
    hwnas_str_addf(out, "%s about %.3g s%s", plan->part ? "this part   " : "a trial     ",
                   plan->seconds_a_trial, plan->part ? " a trial" : "");
    for (int i = 0; i < HWNAS_PLAN_NETWORKS; i++)
        if (!isnan(plan->seconds[i]))
            hwnas_str_addf(out, "; %s %.3g s", titles[i], plan->seconds[i]);
    hwnas_str_add(out, "\n");
}

static void add_time(hwnas_str *out, const hwnas_plan *plan)
{
    const duration time = words_for(60 * plan->minutes);
    char trials[32];
    snprintf(trials, sizeof trials, "%.0f trial%s", plan->trials,
             rint(plan->trials) == 1 ? "" : "s");
    if (isnan(plan->seconds_a_trial)) {
        hwnas_str_add(out, "a trial      the networks that were tried for their time failed\n");
        return;
    }
    add_seconds(out, plan);
    hwnas_str_add(out, "in all       ");
    if (isnan(plan->trials))
        hwnas_str_add(out, "as many trials as it takes\n");
    else if (isnan(plan->minutes))
        hwnas_str_addf(out, "%s %s, and the time of the trainings\n",
                       plan->part ? "up to" : "about", trials);
    else if (plan->part) /* others may share them, and not all of them get as far as its part */
        hwnas_str_addf(out, "up to %s; all by this worker: %s\n", trials, time.text);
    else
        hwnas_str_addf(out, "about %s in %s%s\n", trials, time.text,
                       plan->measures_again ? ", with near ties and confirmation at the end" : "");
}

/* What it does of a trial, where others do the rest. */
static void add_part(hwnas_str *out, const hwnas_plan *plan, const hwnas_job *job)
{
    if (!plan->part)
        return;
    char *part = hwnas_tasks_words(plan->part, job);
    hwnas_str_addf(out, "does only    %s; other workers do the rest of each trial\n", part);
    free(part);
}

void hwnas_plan_text(hwnas_str *out, const hwnas_plan *plan, const hwnas_job *job)
{
    hwnas_str_addf(out, "space        %s: %s%s encodings\n", job->space,
                   plan->is_exact ? "" : "up to ", plan->encodings);
    hwnas_str_addf(out, "strategy     %s: %s\n", plan->strategy->name, plan->strategy->help);
    if (*plan->choice.why)
        hwnas_str_addf(out, "             chosen because %s\n", plan->choice.why);
    hwnas_held_text(out, plan->held, 13);
    hwnas_sizes_text(out, &plan->sizes, 13);
    hwnas_among_text(out, plan->choice.n_among, 13);
    add_goals(out, job);
    if (plan->missed)
        hwnas_str_addf(out, "             note: the smallest network misses %s\n", plan->missed);
    if (plan->shortage)
        hwnas_str_addf(out, "             note: %.3g s are too few samples for %s\n",
                       job->max_seconds, plan->shortage);
    add_devices(out, plan, job);
    if (job->warm_start)
        hwnas_str_addf(out, "begins with  up to %zu trial%s of %s\n", plan->n_warm,
                       plan->n_warm == 1 ? "" : "s", job->warm_start);
    if (plan->n_outside)
        hwnas_str_addf(out,
                       "             without %zu outside what the predictor has learned from\n",
                       plan->n_outside);
    add_end(out, job);
    add_part(out, plan, job);
    add_trainings(out, plan);
    add_time(out, plan);
    hwnas_str_addf(out, "study        %s%s\n", job->study,
                   plan->study_exists ? ", which exists: go on with --resume" : "");
    hwnas_str_add(out, "Nothing was written.\n");
}

static json_t *number(double value)
{
    return isnan(value) ? json_null() : json_real(value);
}

json_t *hwnas_plan_json(const hwnas_plan *plan, const hwnas_job *job)
{
    json_t *json = json_pack(
        "{s:s, s:i, s:o, s:s, s:b, s:s, s:s, s:o, s:o, s:o, s:s?, s:I, s:s, s:b}", "format",
        "hwnas.dry_run", "version", 1, "job", hwnas_job_identity(job), "encodings_exact",
        plan->encodings, "encodings_are_exact", plan->is_exact, "strategy", plan->strategy->name,
        "why", plan->choice.why, "seconds_a_trial", number(plan->seconds_a_trial), "trials",
        number(plan->trials), "minutes", number(plan->minutes), "missed", plan->missed, "warm",
        (json_int_t)plan->n_warm, "study", job->study, "study_exists", plan->study_exists);
    json_object_set_new(json, "shortage",
                        plan->shortage ? json_string(plan->shortage) : json_null());
    json_object_set_new(json, "warm_outside", json_integer((json_int_t)plan->n_outside));
    if (plan->part) {
        char *part = hwnas_tasks_words(plan->part, job);
        json_object_set_new(json, "only", json_string(part));
        free(part);
    }
    if (plan->trains_here) {
        json_object_set_new(json, "trainings", number(plan->n_trainings));
        json_object_set_new(json, "seconds_a_training", number(plan->seconds_a_training));
    }
    return json;
}
