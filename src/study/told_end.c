#include "study/told_end.h"

#include <math.h>

#include <jansson.h>

#include "base/mem.h"
#include "study/study_facts.h"

static const char key[] = "exhausted";

/* The study's clock has milliseconds: whose budgets differ by less have the same, be it by a
 * rounding or because one was given as money. */
static const double RESOLUTION = 1e-3;

hwnas_status hwnas_told_end_write(hwnas_store *store, const char *why, uint64_t n_trials,
                                  double seconds)
{
    json_t *fact = json_pack("{s:I, s:s}", "trials", (json_int_t)n_trials, "why", why);
    if (!isnan(seconds))
        json_object_set_new(fact, "seconds", json_real(seconds));
    const hwnas_status status = hwnas_facts_set_json(store, key, fact);
    json_decref(fact);
    return status;
}

hwnas_status hwnas_told_end_read(char **why, hwnas_store *store, uint64_t n_trials, double seconds)
{
    json_t *fact = NULL;
    TRY(hwnas_facts_json(&fact, store, key));
    const json_t *n = json_object_get(fact, "trials"), *words = json_object_get(fact, "why");
    const json_t *of = json_object_get(fact, "seconds");
    const bool holds = json_is_string(words) && json_is_integer(n) &&
                       (uint64_t)json_integer_value(n) == n_trials &&
                       (!of || seconds <= json_number_value(of) + RESOLUTION);
    *why = holds ? hwnas_strdup(json_string_value(words)) : NULL;
    json_decref(fact);
    return HWNAS_OK;
}
