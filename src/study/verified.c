#include "study/verified.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"
#include "study/study_facts.h"

#define FACT "verified"

hwnas_status hwnas_verified_load(json_t **out, hwnas_store *store)
{
    json_t *verified = NULL;
    TRY(hwnas_facts_json(&verified, store, FACT));
    if (!verified)
        verified = json_object();
    if (!json_object_get(verified, "trials"))
        json_object_set_new(verified, "trials", json_object());
    if (!json_object_get(verified, "skipped"))
        json_object_set_new(verified, "skipped", json_object());
    *out = verified;
    return HWNAS_OK;
}

hwnas_status hwnas_verified_save(hwnas_store *store, const json_t *verified)
{
    return hwnas_facts_set_json(store, FACT, verified);
}

/* ---- Results of one trial: an object by device ---- */

static json_t *results_of(const json_t *verified, uint64_t number)
{
    const json_t *trials = json_object_get(verified, "trials");
    char key[24];
    if (!json_object_size(trials)) /* as in most large studies */
        return NULL;
    snprintf(key, sizeof key, "%llu", (unsigned long long)number);
    return json_object_get(trials, key);
}

static bool is_known(const json_t *result)
{
    return json_object_get(result, "against") != NULL;
}

static bool is_wrong(const json_t *result)
{
    return is_known(result) && json_object_get(result, "message");
}

bool hwnas_verified_is_known(const json_t *verified, uint64_t number, const char *device)
{
    return is_known(json_object_get(results_of(verified, number), device));
}

static const char *message_of(const json_t *result)
{
    const char *message = json_string_value(json_object_get(result, "message"));
    return message ? message : "?";
}

const char *hwnas_verified_wrong(const json_t *verified, uint64_t number)
{
    json_t *results = results_of(verified, number), *result;
    const char *device;
    if (!results) /* as of nearly all of a million */
        return NULL;
    json_object_foreach(results, device, result)
    {
        if (is_wrong(result))
            return message_of(result);
    }
    return NULL;
}

json_t *hwnas_verified_wrong_on(const json_t *verified, uint64_t number)
{
    const char *device;
    json_t *results = results_of(verified, number), *result, *names = json_array();
    json_object_foreach(results, device, result)
    {
        if (is_wrong(result))
            json_array_append_new(names, json_string(device));
    }
    return names;
}

bool hwnas_verified_is_wrong(const json_t *verified, uint64_t number)
{
    return hwnas_verified_wrong(verified, number) != NULL;
}

void hwnas_verified_note(json_t *verified, uint64_t number, const char *device,
                         const hwnas_verified *result, const char *message)
{
    char key[24];
    json_t *results = results_of(verified, number);
    json_t *one = result ? hwnas_wire_verified(result) : json_object();
    snprintf(key, sizeof key, "%llu", (unsigned long long)number);
    if (message)
        json_object_set_new(one, "message", json_string(message));
    if (!results) {
        results = json_object();
        json_object_set_new(json_object_get(verified, "trials"), key, results);
    }
    json_object_set_new(results, device, one);
}

void hwnas_verified_note_slow(json_t *verified, uint64_t number, const char *device,
                              const hwnas_slow_code *slow)
{
    json_t *result = json_object_get(results_of(verified, number), device);
    if (!result || !hwnas_slow_code_matters(slow))
        return;
    json_object_set_new(
        result, "slow",
        json_pack("{s:f, s:s, s:s, s:s, s:o}", "share", slow->share, "step", slow->name,
                  "operators", slow->ops, "how", slow->how, "roof_share",
                  isnan(slow->roof) ? json_null() : json_real(slow->roof)));
}

const json_t *hwnas_verified_slow(const json_t *verified, uint64_t number, const char *device)
{
    return json_object_get(json_object_get(results_of(verified, number), device), "slow");
}

static bool is_right(const json_t *results)
{
    const char *device;
    json_t *result;
    json_object_foreach((json_t *)results, device, result)
    {
        if (!is_known(result) || is_wrong(result))
            return false;
    }
    return json_object_size(results) > 0;
}

void hwnas_verified_count(size_t *n_right, size_t *n_wrong, const json_t *verified)
{
    const char *number, *device;
    json_t *results, *result;
    *n_right = *n_wrong = 0;
    json_object_foreach(json_object_get(verified, "trials"), number, results)
    {
        *n_right += is_right(results);
        json_object_foreach(results, device, result)
        {
            *n_wrong += is_wrong(result);
        }
    }
}

/* ---- In trials ---- */

/* What a trial's detail has of one result; NULL: nothing is known. */
static json_t *brief(const json_t *result)
{
    if (!is_known(result))
        return NULL;
    return json_pack("{s:O, s:O, s:O}", "against", json_object_get(result, "against"), "error",
                     json_object_get(result, "error"), "tolerance",
                     json_object_get(result, "tolerance"));
}

static void add_to_detail(hwnas_trial *trial, const json_t *results)
{
    const char *device;
    json_t *result, *all = json_object(), *first = NULL;
    json_t *detail = trial->detail ? json_loads(trial->detail, 0, NULL) : NULL;
    json_object_foreach((json_t *)results, device, result)
    {
        first = brief(result);
        if (first)
            json_object_set_new(all, device, first);
    }
    if (!detail)
        detail = json_object();
    if (json_object_size(all))
        json_object_set(detail, "verified", json_object_size(results) == 1 && first ? first : all);
    json_decref(all);
    free(trial->detail);
    trial->detail = json_dumps(detail, JSON_COMPACT);
    json_decref(detail);
}

static void fail_trial(hwnas_trial *trial, const char *message)
{
    free(trial->message);
    trial->message = hwnas_strdup(message);
    trial->status = HWNAS_E_WRONG_RESULT;
    trial->n_values = 0;
    trial->violation = INFINITY;
}

/* What a device computes wrong it has no time for: the trial is on no front of that device then. */
static void fail_on(hwnas_trial *trial, const char *device)
{
    char *end = hwnas_printf(" on %s", device);
    size_t n = 0;
    for (size_t i = 0; i < trial->n_values; i++)
        if (!hwnas_ends_with(trial->values[i].metric, end))
            trial->values[n++] = trial->values[i];
    trial->n_values = n;
    free(end);
}

/* Fails a trial as a whole, or, where each device has a front of its own, on those devices. */
static void fail_wrong(hwnas_trial *trial, const json_t *results, const char *message,
                       const hwnas_goals *goals)
{
    int n_wrong = 0;
    for (int d = 0; goals && d < goals->devices.n; d++)
        n_wrong += is_wrong(json_object_get(results, hwnas_job_row_name(&goals->devices, d).text));
    if (!goals || !goals->is_front_per_device || n_wrong == goals->devices.n) {
        fail_trial(trial, message);
        return;
    }
    for (int d = 0; d < goals->devices.n; d++)
        if (is_wrong(json_object_get(results, goals->devices.rows[d].name)))
            fail_on(trial, goals->devices.rows[d].name);
}

void hwnas_verified_apply(hwnas_trial *trials, size_t n, const json_t *verified,
                          const hwnas_goals *goals)
{
    if (!json_object_size(json_object_get(verified, "trials")))
        return;
    for (size_t i = 0; i < n; i++) {
        const json_t *results = results_of(verified, trials[i].number);
        const char *wrong = hwnas_verified_wrong(verified, trials[i].number);
        if (!results || !trials[i].is_finished)
            continue;
        add_to_detail(&trials[i], results);
        if (wrong)
            fail_wrong(&trials[i], results, wrong, goals);
    }
}
