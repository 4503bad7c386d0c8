/* starts.c: after a study of another device first a few of its networks, which tell how latencies
 * differ, then in turns those that should be on the front; then the ends of the space. */
#include "study/starts.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "study/study_facts.h"
#include "study/warm.h"
#include "study/warm_order.h"

/* Trials that were taken over come first in the store. */
static hwnas_status find_taken_over(bool *was_taken_over, const hwnas_session *s, const char *code)
{
    *was_taken_over = false;
    return s->n_warm ? hwnas_store_has_code(was_taken_over, s->store, code, s->n_warm) : HWNAS_OK;
}

static bool is_start(const hwnas_session *s, const hwnas_arch *arch)
{
    for (int i = 0; i < s->n_starts; i++)
        if (hwnas_arch_equal(s->starts[i], arch))
            return true;
    return false;
}

/* Takes `arch`. */
static hwnas_status add(hwnas_session *s, hwnas_arch *arch)
{
    bool is_left_out = s->n_starts >= HWNAS_ALL_STARTS || is_start(s, arch);
    hwnas_status status = HWNAS_OK;
    if (!is_left_out) {
        char *code = hwnas_arch_code(arch);
        status = find_taken_over(&is_left_out, s, code);
        free(code);
    }
    if (is_left_out || status != HWNAS_OK)
        hwnas_arch_free(arch);
    else
        s->starts[s->n_starts++] = arch;
    return status;
}

/* Takes all of them. */
static hwnas_status add_all(hwnas_session *s, hwnas_arch **archs, int n)
{
    hwnas_status status = HWNAS_OK;
    for (int i = 0; i < n; i++)
        if (status == HWNAS_OK)
            status = add(s, archs[i]);
        else
            hwnas_arch_free(archs[i]);
    return status;
}

static hwnas_status add_ends(hwnas_session *s)
{
    hwnas_arch *archs[HWNAS_MAX_STARTS];
    const int n = hwnas_probe_starts(archs, s->job, s->setup.walked);
    s->n_first = 0;
    return add_all(s, archs, n);
}

static hwnas_status add_best(hwnas_session *s)
{
    hwnas_arch *archs[HWNAS_MAX_WARM_STARTS];
    const int n = s->job->warm_start
                      ? hwnas_warm_start_best(archs, HWNAS_MAX_WARM_STARTS, s->job, s->setup.walked)
                      : 0;
    return add_all(s, archs, n);
}

/* ---- In the order of another device's latencies ---- */

static const char fact_key[] = "warm_order";

/* What has been found so far, and whether there is more to come. */
static hwnas_status keep(const hwnas_session *s, bool is_complete)
{
    json_t *codes = json_array();
    for (int i = 0; i < s->n_starts; i++) {
        char *code = hwnas_arch_code(s->starts[i]);
        json_array_append_new(codes, json_string(code));
        free(code);
    }
    json_t *fact = json_pack("{s:o, s:b, s:i}", "networks", codes, "complete", is_complete,
                             "rounds", s->n_rounds);
    const hwnas_status status = hwnas_facts_set_json(s->store, fact_key, fact);
    json_decref(fact);
    return status;
}

static hwnas_status recall(hwnas_session *s, const json_t *fact)
{
    const json_t *codes = json_object_get(fact, "networks");
    for (size_t i = 0; i < json_array_size(codes); i++) {
        hwnas_arch *arch;
        const char *code = json_string_value(json_array_get(codes, i));
        TRY(hwnas_arch_parse(&arch, s->setup.walked, code ? code : ""));
        TRY(add(s, arch));
    }
    s->n_rounds = (int)json_integer_value(json_object_get(fact, "rounds"));
    s->n_first = s->n_starts;
    return HWNAS_OK;
}

static hwnas_status take_first(hwnas_session *s)
{
    hwnas_warm_order *order;
    hwnas_arch *archs[HWNAS_WARM_FIRST];
    TRY(hwnas_warm_order_open(&order, s));
    const int n = order ? hwnas_warm_order_first(archs, order, s->job->seed) : 0;
    hwnas_warm_order_close(order);
    TRY(add_all(s, archs, n));
    s->n_first = s->n_starts;
    return s->n_first ? keep(s, false) : HWNAS_OK;
}

hwnas_status hwnas_session_find_starts(hwnas_session *s)
{
    hwnas_status status = HWNAS_OK;
    json_t *fact = NULL;
    TRY_OUT(hwnas_facts_json(&fact, s->store, fact_key));
    if (fact)
        TRY_OUT(recall(s, fact));
    else if (s->job->warm_start && s->next == s->n_warm && !s->is_shared)
        TRY_OUT(take_first(s));
    if (!s->n_first)
        TRY_OUT(add_best(s));
    if (!s->n_first || json_is_true(json_object_get(fact, "complete")))
        TRY_OUT(add_ends(s));
out:
    json_decref(fact);
    return status;
}

hwnas_status hwnas_session_add_starts(hwnas_session *s)
{
    hwnas_warm_order *order;
    hwnas_arch *archs[HWNAS_WARM_ROUND];
    hwnas_status status = HWNAS_OK;
    double error = 0;
    int n = 0;
    if (!s->n_first || s->next - s->n_warm != (uint64_t)s->n_first)
        return HWNAS_OK;
    if (hwnas_warm_order_open(&order, s) != HWNAS_OK)
        hwnas_error_clear(); /* that study has gone since */
    if (order)
        status = hwnas_warm_order_next(archs, &n, &error, order, s);
    hwnas_warm_order_close(order);
    TRY(status);
    TRY(add_all(s, archs, n));
    if (n)
        hwnas_log(HWNAS_LOG_INFO,
                  "latencies of '%s' carried over by %d networks, in the median within %.0f %%: %d "
                  "more are worth measuring",
                  s->job->warm_start, s->n_first, 100 * error, n);
    else if (!s->n_rounds)
        TRY(add_best(s)); /* nothing could be learnt */
    const bool is_complete = s->n_starts == s->n_first || ++s->n_rounds >= HWNAS_WARM_ROUNDS;
    s->n_first = s->n_starts;
    TRY(keep(s, is_complete));
    return is_complete ? add_ends(s) : HWNAS_OK;
}
