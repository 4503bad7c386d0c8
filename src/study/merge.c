#define _GNU_SOURCE 1 /* tdestroy() */
#include "study/merge.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "study/identity.h"
#include "study/study_facts.h"

/* What a study that is made of others takes from the first: `job` is the last, as it says that all
 * are there. */
static const char *const facts[] = {"version",     "proposing", "space",      "fingerprint",
                                    "devices",     "strategy",  "conditions", "held",
                                    "environment", "source",    "job"};
enum { N_FACTS = sizeof facts / sizeof *facts };

typedef struct merge {
    hwnas_store *to;
    const char *first; /* name of the study that the others are compared with */
    json_t *fingerprint, *devices;
    char *space;
    char *weights; /* of the first study that says of which supernet it is; NULL: none does */
    const char *weights_of; /* its name */
    void *codes; /* search tree of those that are taken */
    hwnas_merged done;
    double seconds;
} merge;

/* ---- Whether they fit together ---- */

static hwnas_status fail_other(const char *study, const char *what, const char *than)
{
    const hwnas_place place = {.file = study};
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "it has another %s than %s", what, than),
                      "only studies of one job can be merged; seed and strategy may differ");
}

/* The part of a job that says what its trials mean. */
static json_t *meaning_of(json_t *fingerprint)
{
    static const char *const ways[] = {"seed", "strategy", "population"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        json_object_del(fingerprint, ways[i]);
    return fingerprint;
}

static hwnas_status read_json(json_t **out, hwnas_store *from, const char *key)
{
    const hwnas_place place = {.file = hwnas_store_path(from)};
    TRY(hwnas_facts_json(out, from, key));
    if (*out && !strcmp(key, "fingerprint"))
        hwnas_fingerprint_renew(*out);
    return *out ? HWNAS_OK
                : hwnas_fail(HWNAS_E_INPUT, &place, "the study does not say what it searched for");
}

/* An older study does not say; all that do are of the same supernet. */
static hwnas_status check_weights(merge *m, hwnas_store *from)
{
    char *weights = NULL;
    TRY(hwnas_store_get(&weights, from, HWNAS_WEIGHTS_FACT));
    if (weights && !m->weights) {
        m->weights = weights;
        m->weights_of = hwnas_store_path(from);
        return HWNAS_OK;
    }
    const bool is_other = weights && strcmp(weights, m->weights) != 0;
    free(weights);
    return is_other ? fail_other(hwnas_store_path(from), "supernet", m->weights_of) : HWNAS_OK;
}

static hwnas_status check(merge *m, hwnas_store *from)
{
    hwnas_status status = HWNAS_OK;
    const char *study = hwnas_store_path(from), *key;
    json_t *fingerprint = NULL, *devices = NULL, *value;
    char *space = NULL;
    TRY_OUT(read_json(&fingerprint, from, "fingerprint"));
    TRY_OUT(read_json(&devices, from, "devices"));
    TRY_OUT(hwnas_store_get(&space, from, "space"));
    if (!space || strcmp(space, m->space) != 0) {
        status = fail_other(study, "space", m->first);
        goto out;
    }
    TRY_OUT(check_weights(m, from));
    json_object_foreach(meaning_of(fingerprint), key,
                        value) if (!json_equal(value, json_object_get(m->fingerprint, key)))
    {
        status = fail_other(study, key, m->first);
        goto out;
    }
    if (json_object_size(fingerprint) != json_object_size(m->fingerprint))
        status = fail_other(study, "job", m->first);
    else if (!json_equal(devices, m->devices))
        status = fail_other(study, "machine", m->first);
out:
    json_decref(fingerprint);
    json_decref(devices);
    free(space);
    return status;
}

/* ---- Trials ---- */

static int compare_codes(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* *is_new: no earlier study has it. */
static void note_code(bool *is_new, merge *m, const char *code)
{
    *is_new = !tfind(code, &m->codes, compare_codes);
    if (*is_new)
        (void)tsearch(hwnas_strdup(code), &m->codes, compare_codes);
}

static hwnas_status add_trial(merge *m, hwnas_trial *trial)
{
    bool is_new;
    note_code(&is_new, m, trial->code);
    if (!is_new) {
        m->done.n_same++;
        return HWNAS_OK;
    }
    trial->number = m->done.n_trials++;
    TRY(hwnas_store_start(m->to, trial->number, trial->code, trial->digest, trial->rung));
    TRY(hwnas_store_note(m->to, trial->number, HWNAS_EVENT_ASKED));
    return hwnas_store_finish(m->to, trial);
}

static int by_order(const void *a, const void *b)
{
    const hwnas_trial *x = *(hwnas_trial *const *)a, *y = *(hwnas_trial *const *)b;
    return (x->order > y->order) - (x->order < y->order);
}

static hwnas_status take_trials(merge *m, hwnas_store *from)
{
    hwnas_status status = HWNAS_OK;
    hwnas_trial *trials = NULL, **finished = NULL;
    size_t n = 0, n_finished = 0;
    TRY_OUT(hwnas_store_trials(&trials, &n, from));
    TRY_OUT(hwnas_store_replace(trials, n, from));
    finished = hwnas_alloc((n + 1) * sizeof *finished);
    for (size_t i = 0; i < n; i++)
        if (trials[i].is_finished)
            finished[n_finished++] = &trials[i];
    m->done.n_unfinished += n - n_finished;
    qsort(finished, n_finished, sizeof *finished, by_order);
    for (size_t i = 0; i < n_finished && status == HWNAS_OK; i++)
        status = add_trial(m, finished[i]);
out:
    free(finished);
    hwnas_trials_free(trials, n);
    return status;
}

/* ---- Facts ---- */

static hwnas_status copy_facts(const merge *m, hwnas_store *from)
{
    for (int i = 0; i < N_FACTS; i++) {
        char *text = NULL;
        TRY(hwnas_store_get(&text, from, facts[i]));
        const hwnas_status status = text ? hwnas_store_set(m->to, facts[i], text) : HWNAS_OK;
        free(text);
        TRY(status);
    }
    return HWNAS_OK;
}

static hwnas_status add_seconds(merge *m, hwnas_store *from)
{
    char *text = NULL;
    TRY(hwnas_store_get(&text, from, "wall_seconds"));
    m->seconds += text ? strtod(text, NULL) : 0;
    free(text);
    return HWNAS_OK;
}

/* ---- The whole ---- */

static hwnas_status begin(merge *m, hwnas_store *from)
{
    m->first = hwnas_store_path(from);
    TRY(read_json(&m->fingerprint, from, "fingerprint"));
    TRY(read_json(&m->devices, from, "devices"));
    meaning_of(m->fingerprint);
    TRY(hwnas_store_get(&m->space, from, "space"));
    TRY(check_weights(m, from));
    return m->space ? HWNAS_OK : fail_other(m->first, "format", m->first);
}

static hwnas_status take(merge *m, hwnas_store **from, size_t n)
{
    char seconds[32];
    TRY(begin(m, from[0]));
    for (size_t i = 1; i < n; i++)
        TRY(check(m, from[i]));
    for (size_t i = 0; i < n; i++) {
        TRY(take_trials(m, from[i]));
        TRY(add_seconds(m, from[i]));
    }
    snprintf(seconds, sizeof seconds, "%.3f", m->seconds);
    TRY(hwnas_store_set(m->to, "wall_seconds", seconds));
    if (m->weights)
        TRY(hwnas_store_set(m->to, HWNAS_WEIGHTS_FACT, m->weights));
    return copy_facts(m, from[0]);
}

static hwnas_status create(hwnas_store **out, const char *to)
{
    bool is_there;
    TRY(hwnas_store_exists(&is_there, to));
    const hwnas_status status = hwnas_store_open(out, to, HWNAS_STORE_CREATE);
    return status == HWNAS_E_INPUT && is_there
               ? hwnas_hint(status, "--out names a study that is not there yet")
               : status;
}

hwnas_status hwnas_study_merge(hwnas_merged *out, const char *to, const char *const *from, size_t n)
{
    hwnas_status status = HWNAS_OK;
    merge m = {0};
    hwnas_store **stores = hwnas_alloc((n + 1) * sizeof *stores);
    for (size_t i = 0; i < n; i++)
        TRY_OUT(hwnas_store_open(&stores[i], from[i], HWNAS_STORE_READ));
    TRY_OUT(create(&m.to, to));
    TRY_OUT(hwnas_store_begin(m.to));
    TRY_OUT(hwnas_store_end(m.to, take(&m, stores, n)));
    *out = m.done;
out:
    tdestroy(m.codes, free);
    json_decref(m.fingerprint);
    json_decref(m.devices);
    free(m.space);
    free(m.weights);
    if (status == HWNAS_OK)
        hwnas_store_close(m.to);
    else
        hwnas_store_remove(m.to);
    for (size_t i = 0; i < n; i++)
        hwnas_store_close(stores[i]);
    free(stores);
    return status;
}
