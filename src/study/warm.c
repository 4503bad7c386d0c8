#include "study/warm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "study/study_facts.h"
#include "study/identity.h"
#include "trial/judge.h"
#include "study/summary.h"
#include "study/verified.h"

static bool is_text(const json_t *object, const char *key, const char *text)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value && !strcmp(value, text);
}

static bool has_same_settings(const hwnas_job_device *a, const hwnas_job_device *b)
{
    bool same = true;
    for (int i = 0; i < HWNAS_N_SETTINGS; i++)
        same &= hwnas_setting_of_device(&hwnas_setting_table[i], a) ==
                hwnas_setting_of_device(&hwnas_setting_table[i], b);
    return same;
}

/* The device of theirs that measures as ours `d` does: the same processor, library, instruction
 * set, threads, batch and precision; -1: none. */
static int find_device(const hwnas_job *job, int d, const hwnas_evaluator *evaluator,
                       const hwnas_job *theirs, const json_t *infos)
{
    const hwnas_device_info *info = hwnas_evaluator_device(evaluator, d);
    const hwnas_job_device *ours = &job->goals.devices.rows[d];
    for (int i = 0; i < theirs->goals.devices.n && info; i++) {
        const hwnas_job_device *row = &theirs->goals.devices.rows[i];
        const json_t *other =
            json_object_get(infos, hwnas_job_row_name(&theirs->goals.devices, i).text);
        if (!strcmp(row->spelling, ours->spelling) && !strcmp(row->phase, ours->phase) &&
            is_text(other, "name", info->name) && is_text(other, "library", info->library) &&
            is_text(other, "isa", info->isa) &&
            json_integer_value(json_object_get(other, "threads")) == info->threads &&
            has_same_settings(row, ours))
            return i;
    }
    return -1;
}

static bool is_same_setting(const hwnas_setting_values *a, const hwnas_setting_values *b)
{
    return a->n == b->n && !memcmp(a->values, b->values, (size_t)a->n * sizeof *a->values);
}

/* Keeps the measured values of devices that are the same, under their names in the job. */
static void translate(hwnas_trial *trial, const hwnas_job *job, const hwnas_job *theirs,
                      const int *same)
{
    size_t n = 0;
    for (size_t i = 0; i < trial->n_values; i++) {
        hwnas_value_row v = trial->values[i];
        const hwnas_metric *metric = hwnas_metric_of_value(v.metric);
        if (!metric || v.source != HWNAS_MEASURED)
            continue;
        for (int d = 0; d < job->goals.devices.n; d++) {
            if (same[d] < 0 ||
                strcmp(v.metric, hwnas_goal_of(metric, same[d], &theirs->goals.devices).name))
                continue;
            if (metric->per == HWNAS_PRICE_OF_MILLION)
                continue; /* its price was theirs */
            v.metric = hwnas_intern(hwnas_goal_of(metric, d, &job->goals.devices).name);
            trial->values[n++] = v;
            break;
        }
    }
    trial->n_values = n;
}

static int by_order(const void *a, const void *b)
{
    const hwnas_trial *x = a, *y = b;
    return (x->order > y->order) - (x->order < y->order);
}

/* Layers of both got their precisions by the same samples and limits. */
static hwnas_status find_same_choice(bool *out, hwnas_store *store, const hwnas_job *job)
{
    static const char *const keys[] = {"data", "max-error", "max-loss"};
    json_t *theirs = NULL;
    TRY(hwnas_facts_json(&theirs, store, "fingerprint"));
    json_t *ours = hwnas_job_fingerprint(job);
    *out = true;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *a = json_object_get(ours, keys[i]), *b = json_object_get(theirs, keys[i]);
        *out &= a == b || json_equal(a, b);
    }
    json_decref(ours);
    json_decref(theirs);
    return HWNAS_OK;
}

static hwnas_status read_study(hwnas_warm_study *out, hwnas_store *store, const hwnas_job *job,
                               const hwnas_space *walked, const hwnas_evaluator *evaluator)
{
    hwnas_status status = HWNAS_OK;
    hwnas_place place = {.file = job->warm_start};
    char *space = NULL, *mine = hwnas_space_fingerprint(walked);
    json_t *infos = NULL, *verified = NULL;
    TRY_OUT(hwnas_store_get(&space, store, "space"));
    TRY_OUT(hwnas_facts_json(&out->identity, store, "job"));
    TRY_OUT(hwnas_facts_json(&infos, store, "devices"));
    if (!space || !out->identity || strcmp(space, mine)) {
        status = hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, &place, "the study is of another space than '%s'",
                       walked->name),
            "a warm start needs a study of the same space, with the same settings left open");
        goto out;
    }
    TRY_OUT(hwnas_job_goals(&out->job, out->identity));
    bool same_settings = true, same_choice = true;
    for (int i = 0; i < HWNAS_N_SETTINGS; i++) {
        const hwnas_setting_kind *s = &hwnas_setting_table[i];
        same_settings &=
            is_same_setting(hwnas_setting_of_job(s, job), hwnas_setting_of_job(s, &out->job));
    }
    const bool is_mixed = hwnas_settings_may_be_mixed(job);
    if (is_mixed)
        TRY_OUT(find_same_choice(&same_choice, store, job));
    same_settings &= same_choice;
    for (int d = 0; d < job->goals.devices.n; d++) {
        out->same[d] = same_settings ? find_device(job, d, evaluator, &out->job, infos) : -1;
        /* Which layers have which precision is kept by the device's name. */
        if (is_mixed && out->same[d] >= 0 &&
            strcmp(hwnas_job_row_name(&job->goals.devices, d).text,
                   hwnas_job_row_name(&out->job.goals.devices, out->same[d]).text) != 0)
            out->same[d] = -1;
    }
    TRY_OUT(hwnas_store_trials(&out->trials, &out->n, store));
    TRY_OUT(hwnas_verified_load(&verified, store));
    hwnas_verified_apply(out->trials, out->n, verified, NULL);
    qsort(out->trials, out->n, sizeof *out->trials, by_order);
out:
    json_decref(verified);
    json_decref(infos);
    free(space);
    free(mine);
    return status;
}

hwnas_status hwnas_warm_study_read(hwnas_warm_study *out, const hwnas_job *job,
                                   const hwnas_space *walked, const hwnas_evaluator *evaluator)
{
    hwnas_store *store;
    hwnas_warm_study study = {0};
    TRY(hwnas_store_open(&store, job->warm_start, HWNAS_STORE_READ));
    const hwnas_status status = read_study(&study, store, job, walked, evaluator);
    hwnas_store_close(store);
    if (status == HWNAS_OK)
        *out = study;
    else
        hwnas_warm_study_done(&study);
    return status;
}

void hwnas_warm_study_done(hwnas_warm_study *study)
{
    hwnas_trials_free(study->trials, study->n);
    json_decref(study->identity);
    *study = (hwnas_warm_study){0};
}

bool hwnas_warm_is_whole(const hwnas_trial *trial)
{
    return trial->is_finished && trial->status == HWNAS_OK && !trial->rung &&
           !trial->is_stopped_early;
}

hwnas_status hwnas_warm_start_load(hwnas_warm_start *out, const hwnas_job *job,
                                   const hwnas_space *walked, const hwnas_evaluator *evaluator)
{
    hwnas_warm_study study;
    TRY(hwnas_warm_study_read(&study, job, walked, evaluator));
    out->trials = hwnas_alloc((study.n + 1) * sizeof *out->trials);
    for (size_t i = 0; i < study.n; i++) {
        if (!hwnas_warm_is_whole(&study.trials[i]))
            continue;
        translate(&study.trials[i], job, &study.job, study.same);
        out->trials[out->n++] = study.trials[i];
        study.trials[i] = (hwnas_trial){0};
    }
    hwnas_warm_study_done(&study);
    return HWNAS_OK;
}

void hwnas_warm_start_done(hwnas_warm_start *warm)
{
    hwnas_trials_free(warm->trials, warm->n);
    *warm = (hwnas_warm_start){0};
}

/* ---- Its best ---- */

static int take_best(hwnas_arch **out, int most, const hwnas_summary *summary,
                     const hwnas_space *walked)
{
    int n = 0;
    for (int f = 0; f < summary->n_fronts; f++) {
        const hwnas_summary_front *front = &summary->fronts[f];
        const int share = most / summary->n_fronts;
        const int n_taken = (int)front->n < share ? (int)front->n : share;
        for (int i = 0; i < n_taken; i++) {
            const size_t at = n_taken > 1 ? (size_t)i * (front->n - 1) / (size_t)(n_taken - 1) : 0;
            if (hwnas_arch_parse(&out[n], walked, summary->trials[front->trials[at]].code) ==
                HWNAS_OK)
                n++;
        }
    }
    return n;
}

int hwnas_warm_start_best(hwnas_arch **out, int most, const hwnas_job *job,
                          const hwnas_space *walked)
{
    hwnas_store *store;
    hwnas_summary *summary = NULL;
    int n = 0;
    if (hwnas_store_open(&store, job->warm_start, HWNAS_STORE_READ) == HWNAS_OK) {
        if (hwnas_summary_load(&summary, store, job->warm_start) == HWNAS_OK)
            n = take_best(out, most, summary, walked);
        hwnas_summary_free(summary);
        hwnas_store_close(store);
    }
    hwnas_error_clear();
    return n;
}
