#include "study/study_facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "base/log.h"
#include "base/str.h"
#include "graph/elaborate.h"
#include "measure/conditions.h"
#include "space/among.h"
#include "study/identity.h"
#include "study/job_source.h"

/* " 0123456789abcdef" of the values that may be chosen; "": all may, and fingerprints of such
 * spaces are as they were. */
static char *hash_kept(const hwnas_space *space)
{
    hwnas_str kept = {0};
    for (size_t g = 0; g < space->n_genes; g++) {
        if (!space->genes[g].kept)
            continue;
        hwnas_str_addf(&kept, "%zu:", g);
        for (size_t v = 0; v < space->genes[g].n_values; v++)
            hwnas_str_add(&kept, space->genes[g].kept[v] ? "1" : "0");
    }
    char *hash = kept.n ? hwnas_printf(" %016llx", (unsigned long long)XXH3_64bits(kept.s, kept.n))
                        : hwnas_strdup("");
    free(kept.s);
    return hash;
}

char *hwnas_space_fingerprint(const hwnas_space *space)
{
    hwnas_arch *last = hwnas_arch_new(space);
    hwnas_graph *graph = NULL;
    const char *digest = "none";
    for (size_t i = 0; i < space->n_genes; i++)
        last->genes[i] = (uint16_t)(space->genes[i].n_values - 1);
    hwnas_arch_settle(last);
    char *code = hwnas_arch_code(last), *count = hwnas_space_count(space, NULL);
    hwnas_digest built;
    if (hwnas_graph_build(&graph, last, 1) == HWNAS_OK) {
        built = hwnas_graph_digest(graph);
        digest = built.hex;
    }
    char *kept = hash_kept(space);
    char *text = hwnas_printf("%s %s %s %s%s", space->name, count, code, digest, kept);
    hwnas_graph_free(graph);
    free(kept);
    free(code);
    free(count);
    hwnas_arch_free(last);
    return text;
}

hwnas_status hwnas_facts_json(json_t **out, hwnas_store *store, const char *key)
{
    char *text = NULL;
    TRY(hwnas_store_get(&text, store, key));
    *out = text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
    free(text);
    return HWNAS_OK;
}

hwnas_status hwnas_facts_set_json(hwnas_store *store, const char *key, const json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    if (!text) /* nothing else keeps it from being made */
        return hwnas_fail(HWNAS_E_INPUT, NULL, "a name that the study is to keep is not UTF-8");
    hwnas_status status = hwnas_store_set(store, key, text);
    free(text);
    return status;
}

static hwnas_status check_text(const char *what, const char *text)
{
    json_t *json = text ? json_string(text) : NULL;
    const bool is_good = !text || json;
    json_decref(json);
    return is_good
               ? HWNAS_OK
               : hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL, "the %s '%s' is not UTF-8", what, text),
                            "give the file or its directory another name");
}

static hwnas_status check_texts(const hwnas_job *job)
{
    TRY(check_text("space", job->space));
    TRY(check_text("accuracy", job->predictor));
    TRY(check_text("data", job->data));
    for (int i = 0; i < job->goals.devices.n; i++)
        TRY(check_text("device", job->goals.devices.rows[i].spelling));
    return check_text("study of the warm start", job->warm_start);
}

hwnas_status hwnas_facts_write(hwnas_store *store, const hwnas_job *job, const hwnas_space *space)
{
    TRY(check_texts(job));
    hwnas_status status = HWNAS_OK;
    json_t *identity = hwnas_job_identity(job), *fingerprint = hwnas_job_fingerprint(job);
    char *text = hwnas_space_fingerprint(space);
    TRY_OUT(hwnas_store_set(store, "version", hwnas_version()));
    TRY_OUT(hwnas_store_set(store, "proposing", hwnas_strategy_checksum()));
    TRY_OUT(hwnas_store_set(store, "space", text));
    TRY_OUT(hwnas_job_keep(store, job));
    TRY_OUT(hwnas_facts_set_json(store, "fingerprint", fingerprint));
    TRY_OUT(
        hwnas_facts_set_json(store, "job", identity)); /* the last: it says that all are there */
out:
    free(text);
    json_decref(identity);
    json_decref(fingerprint);
    return status;
}

/* ---- Checking ---- */

static hwnas_status check_space(const char *theirs, const hwnas_space *space,
                                const hwnas_place *place)
{
    char *mine = hwnas_space_fingerprint(space);
    size_t length = strcspn(theirs, " ");
    bool is_same = !strcmp(mine, theirs);
    bool is_same_name = strlen(space->name) == length && !strncmp(space->name, theirs, length);
    free(mine);
    if (is_same)
        return HWNAS_OK;
    if (is_same_name)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, place,
                                     "the space '%s' has changed since this study was made",
                                     space->name),
                          "give another --study");
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, place,
                                 "this study was made with the space %.*s, not %s",
                                 (int)length, theirs, space->name),
                      "continue it with the job that made it, or give another --study");
}

/* One key of the two, told in the words of the identities. What is as it is when nothing is said of
 * it may be missing in either. */
static hwnas_status compare_key(const char *key, const json_t *mine, const json_t *theirs,
                                const json_t *my_words, const json_t *their_words,
                                const hwnas_place *place)
{
    if (json_equal(json_object_get(mine, key), json_object_get(theirs, key)) ||
        (!json_object_get(mine, key) && !json_object_get(theirs, key)))
        return HWNAS_OK;
    const json_t *now = json_object_get(my_words, key), *then = json_object_get(their_words, key);
    now = now ? now : json_object_get(mine, key);
    then = then ? then : json_object_get(theirs, key);
    char *now_text = json_dumps(now, JSON_ENCODE_ANY);
    char *then_text = json_dumps(then, JSON_ENCODE_ANY);
    hwnas_status status =
        json_equal(now, then)
            ? hwnas_fail(HWNAS_E_INPUT, place,
                         "the %s has other contents since this study was made: %s", key, now_text)
            : hwnas_fail(HWNAS_E_INPUT, place, "%s: this study was made with %s, not %s",
                         key, then_text ? then_text : "the default",
                         now_text ? now_text : "the default");
    hwnas_hint(status, "continue it with the job that made it, or give another --study");
    free(now_text);
    free(then_text);
    return status;
}

static hwnas_status compare(const json_t *mine, const json_t *theirs, const json_t *my_words,
                            const json_t *their_words, const hwnas_place *place)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)mine, key, value)
        TRY(compare_key(key, mine, theirs, my_words, their_words, place));
    json_object_foreach((json_t *)theirs, key, value)
        TRY(compare_key(key, mine, theirs, my_words, their_words, place));
    return HWNAS_OK;
}

hwnas_status hwnas_facts_note_version(hwnas_store *store, const char *study)
{
    hwnas_status status = HWNAS_OK;
    char *theirs = NULL, *proposing = NULL;
    TRY_OUT(hwnas_store_get(&theirs, store, "version"));
    TRY_OUT(hwnas_store_get(&proposing, store, "proposing"));
    if (theirs && strcmp(theirs, hwnas_version()) != 0)
        hwnas_log(HWNAS_LOG_NOTE,
                  "%s was begun by hwnas %s, and this is %s: what comes next may differ from what "
                  "that version would propose",
                  study, theirs, hwnas_version());
    else if (proposing && strcmp(proposing, hwnas_strategy_checksum()) != 0)
        hwnas_log(HWNAS_LOG_NOTE,
                  "%s was begun by another build of hwnas %s, with other code for proposals: what "
                  "comes next may differ from what that one would propose",
                  study, hwnas_version());
out:
    free(theirs);
    free(proposing);
    return status;
}

static hwnas_status check_among(const hwnas_setup *setup, const hwnas_place *place)
{
    const uint64_t then = setup->choice.n_among;
    const size_t n = setup->walked->among ? setup->walked->among->n : 0;
    if (!then || then == n)
        return HWNAS_OK;
    char *now = n ? hwnas_printf("%zu", n) : hwnas_strdup("the whole space");
    const hwnas_status status =
        hwnas_fail(HWNAS_E_INPUT, place,
                   "this study is limited to the %llu networks that its tables had; they now "
                   "have %s",
                   (unsigned long long)then, now);
    free(now);
    return hwnas_hint(
        status, "continue it with the tables that it was begun with, or give another --study");
}

hwnas_status hwnas_facts_check(hwnas_store *store, const hwnas_job *job, const hwnas_setup *setup)
{
    hwnas_status status = HWNAS_OK;
    hwnas_place place = {.file = job->study};
    json_t *mine = hwnas_job_fingerprint(job), *my_words = hwnas_job_identity(job);
    json_t *theirs = NULL, *their_words = NULL;
    char *their_space = NULL;
    TRY_OUT(hwnas_facts_json(&theirs, store, "fingerprint"));
    TRY_OUT(hwnas_facts_json(&their_words, store, "job"));
    TRY_OUT(hwnas_store_get(&their_space, store, "space"));
    if (!theirs || !their_words || !their_space) {
        status = hwnas_fail(HWNAS_E_INPUT, &place, "the study does not say what it searched for");
        goto out;
    }
    const bool was_by_path = hwnas_fingerprint_renew(theirs);
    TRY_OUT(check_space(their_space, setup->wide, &place));
    TRY_OUT(compare(mine, theirs, my_words, their_words, &place));
    TRY_OUT(check_among(setup, &place));
    if (!json_equal(my_words, their_words))
        TRY_OUT(hwnas_facts_set_json(store, "job", my_words));
    if (was_by_path)
        TRY_OUT(hwnas_facts_set_json(store, "fingerprint", mine));
    status = hwnas_job_keep(store, job); /* its budget may be another */
out:
    json_decref(mine);
    json_decref(my_words);
    json_decref(theirs);
    json_decref(their_words);
    free(their_space);
    return status;
}

hwnas_status hwnas_facts_check_weights(hwnas_store *store, const char *study, const char *file,
                                       const char *hash, bool is_used)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_place place = {.file = study};
    char *theirs = NULL;
    if (!file)
        return HWNAS_OK;
    TRY(hwnas_store_get(&theirs, store, HWNAS_WEIGHTS_FACT));
    if (!theirs && hash && is_used)
        status = hwnas_store_set(store, HWNAS_WEIGHTS_FACT, hash);
    else if (theirs && (!hash || strcmp(theirs, hash) != 0))
        status = hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, &place,
                       hash ? "the accuracies of this study are of other weights than those of %s"
                            : "the weights that the accuracies of this study are of are not there: "
                              "%s",
                       file),
            "bring them back with the samples beside them, or give another --study");
    free(theirs);
    return status;
}

static json_t *describe_devices(const hwnas_job *job, const hwnas_evaluator *evaluator)
{
    json_t *devices = json_object();
    for (int i = 0; i < job->goals.devices.n; i++) {
        const hwnas_device_info *info = hwnas_evaluator_device(evaluator, i);
        if (info)
            json_object_set_new(devices, hwnas_job_row_name(&job->goals.devices, i).text,
                                json_pack("{s:s, s:s, s:s, s:i}", "name", info->name, "library",
                                          info->library, "isa", info->isa, "threads",
                                          info->threads));
    }
    return devices;
}

hwnas_status hwnas_facts_write_devices(hwnas_store *store, const hwnas_job *job,
                                       const hwnas_evaluator *evaluator)
{
    json_t *devices = describe_devices(job, evaluator), *before = NULL;
    hwnas_status status = hwnas_facts_json(&before, store, "devices");
    if (before) /* those that other workers have */
        json_object_update_missing(devices, before);
    if (status == HWNAS_OK)
        status = hwnas_facts_set_json(store, "devices", devices);
    json_decref(devices);
    json_decref(before);
    return status;
}

/* "Intel(R) Xeon(R), oneDNN 2.6.0, avx512_core, threads 2"; yours to free(). */
static char *device_words(const json_t *device)
{
    return hwnas_printf("%s, %s, %s, threads %d",
                        json_string_value(json_object_get(device, "name")),
                        json_string_value(json_object_get(device, "library")),
                        json_string_value(json_object_get(device, "isa")),
                        (int)json_integer_value(json_object_get(device, "threads")));
}

hwnas_status hwnas_facts_check_devices(hwnas_store *store, const hwnas_job *job,
                                       const hwnas_evaluator *evaluator)
{
    const hwnas_place place = {.file = job->study};
    hwnas_status status = HWNAS_OK;
    json_t *then = NULL, *now = describe_devices(job, evaluator), *device;
    const char *name;
    TRY_OUT(hwnas_facts_json(&then, store, "devices"));
    json_object_foreach(now, name, device)
    {
        const json_t *before = json_object_get(then, name);
        if (!before || json_equal(before, device))
            continue;
        char *theirs = device_words(before), *ours = device_words(device);
        status = hwnas_fail(HWNAS_E_INPUT, &place,
                            "the trials of this study were measured on another '%s': %s; here it "
                            "is %s",
                            name, theirs, ours);
        hwnas_hint(status,
                   "latencies of two machines cannot be compared: continue it where it began, or "
                   "begin another study with --study OTHER.db --warm-start %s, which measures the "
                   "best of this one here first",
                   job->study);
        free(theirs);
        free(ours);
        goto out;
    }
out:
    json_decref(then);
    json_decref(now);
    return status;
}

hwnas_status hwnas_facts_write_conditions(hwnas_store *store)
{
    const hwnas_conditions conditions = hwnas_conditions_read(hwnas_conditions_root());
    json_t *fact = hwnas_conditions_json(&conditions);
    hwnas_status status = hwnas_facts_set_json(store, "conditions", fact);
    json_decref(fact);
    return status;
}

hwnas_status hwnas_facts_choice(hwnas_choice_of_strategy *out, bool *is_there, hwnas_store *store)
{
    json_t *fact = NULL;
    TRY(hwnas_facts_json(&fact, store, "strategy"));
    const char *name = json_string_value(json_object_get(fact, "name"));
    const char *why = json_string_value(json_object_get(fact, "why"));
    *is_there = name != NULL;
    if (name) {
        snprintf(out->name, sizeof out->name, "%s", name);
        snprintf(out->why, sizeof out->why, "%s", why ? why : "");
        out->max_trials = (uint64_t)json_integer_value(json_object_get(fact, "max_trials"));
        out->n_among = (uint64_t)json_integer_value(json_object_get(fact, "among"));
    }
    json_decref(fact);
    return HWNAS_OK;
}

hwnas_status hwnas_facts_write_choice(hwnas_store *store, const hwnas_choice_of_strategy *choice)
{
    json_t *fact =
        json_pack("{s:s, s:s, s:I, s:I}", "name", choice->name, "why", choice->why, "max_trials",
                  (json_int_t)choice->max_trials, "among", (json_int_t)choice->n_among);
    hwnas_status status = hwnas_facts_set_json(store, "strategy", fact);
    json_decref(fact);
    return status;
}
