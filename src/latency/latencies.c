#include "latency/latencies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "latency/latency_file.h"
#include "measure/runner.h"

/* Steps are timed where the parts alone make an estimate as uncertain as this, as a logarithm. */
static const double UNCERTAIN = 0.01;
/* Of the budget, for steps: only how they share the time is taken from them. */
static const double STEPS_SHARE = 0.25;

typedef struct keyed {
    char *key;
    hwnas_latency_table *table;
} keyed;

/* What was observed and is not in the study yet. */
typedef struct open_row {
    char *key;
    hwnas_observation *observation;
} open_row;

struct hwnas_latencies {
    hwnas_latency_file *cache, *study; /* NULL: none */
    int64_t last; /* row of the cache that is read; later ones are of others, or in the study */
    char *note;
    size_t n, capacity;
    keyed *rows;
    size_t n_open, open_capacity;
    open_row *open;
};

bool hwnas_latencies_have_cache(const hwnas_latencies *l)
{
    return l->cache != NULL;
}

static void note_failure(hwnas_latencies *l)
{
    free(l->note);
    l->note = hwnas_printf("%s; going on without the shared table of latencies",
                           hwnas_last_error()->message);
    hwnas_error_clear();
}

hwnas_latencies *hwnas_latencies_open(bool with_cache)
{
    hwnas_latencies *l = hwnas_alloc(sizeof *l);
    char *path = with_cache ? hwnas_latency_cache_path() : NULL;
    if (path && hwnas_latency_open(&l->cache, &l->note, path) != HWNAS_OK)
        note_failure(l);
    free(path);
    if (l->cache && hwnas_latency_last(&l->last, l->cache) != HWNAS_OK)
        note_failure(l);
    return l;
}

static void forget_open(hwnas_latencies *l)
{
    for (size_t i = 0; i < l->n_open; i++) {
        free(l->open[i].key);
        hwnas_observation_free(l->open[i].observation);
    }
    l->n_open = 0;
}

void hwnas_latencies_close(hwnas_latencies *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->n; i++) {
        free(l->rows[i].key);
        hwnas_latency_table_free(l->rows[i].table);
    }
    free(l->rows);
    forget_open(l);
    free(l->open);
    hwnas_latency_close(l->cache);
    hwnas_latency_close(l->study);
    free(l->note);
    free(l);
}

const char *hwnas_latencies_note(const hwnas_latencies *l)
{
    return l->note;
}

/* How much of the cache a study knows: what was in it when the study began. */
static hwnas_status agree_on_last(hwnas_latencies *l, hwnas_store *study)
{
    char *text = NULL, now[32];
    TRY(hwnas_store_get(&text, study, "latency_cache"));
    if (!text) {
        snprintf(now, sizeof now, "%lld", (long long)l->last);
        return hwnas_store_set(study, "latency_cache", now);
    }
    l->last = strtoll(text, NULL, 10);
    free(text);
    return HWNAS_OK;
}

hwnas_status hwnas_latencies_use_study(hwnas_latencies *l, hwnas_store *study)
{
    hwnas_latency_close(l->study);
    l->study = NULL;
    if (!study)
        return HWNAS_OK;
    TRY(agree_on_last(l, study));
    TRY(hwnas_latency_of_study(&l->study, study));
    return hwnas_latencies_keep(l);
}

hwnas_status hwnas_latencies_keep(hwnas_latencies *l)
{
    for (size_t i = 0; i < l->n_open && l->study; i++)
        TRY(hwnas_latency_add(l->study, l->open[i].key, l->open[i].observation));
    forget_open(l);
    return HWNAS_OK;
}

static hwnas_status load(hwnas_latency_table *table, hwnas_latencies *l, const char *key)
{
    if (l->cache && hwnas_latency_load(table, l->cache, key, l->last) != HWNAS_OK)
        note_failure(l);
    return l->study ? hwnas_latency_replay(table, l->study, key) : HWNAS_OK;
}

hwnas_status hwnas_latencies_table(hwnas_latency_table **out, hwnas_latencies *l, const char *key)
{
    for (size_t i = 0; i < l->n; i++)
        if (!strcmp(l->rows[i].key, key)) {
            *out = l->rows[i].table;
            return HWNAS_OK;
        }
    hwnas_latency_table *table = hwnas_latency_table_new();
    hwnas_status status = load(table, l, key);
    if (status != HWNAS_OK) {
        hwnas_latency_table_free(table);
        return status;
    }
    HWNAS_GROW(l->rows, l->n, l->capacity);
    l->rows[l->n++] = (keyed){.key = hwnas_strdup(key), .table = table};
    *out = table;
    return HWNAS_OK;
}

/* Takes the observation. A cache that fails is left alone from then on. */
static void write(hwnas_latencies *l, const char *key, hwnas_observation *o)
{
    if (l->cache && hwnas_latency_add(l->cache, key, o) != HWNAS_OK) {
        note_failure(l);
        hwnas_latency_close(l->cache);
        l->cache = NULL;
    }
    HWNAS_GROW(l->open, l->n_open, l->open_capacity);
    l->open[l->n_open++] = (open_row){.key = hwnas_strdup(key), .observation = o};
}

static bool wants_steps(hwnas_latency_table *table, const hwnas_parts *parts, bool always)
{
    return always || hwnas_latency_table_doubt(table, parts) > UNCERTAIN;
}

static hwnas_measure_options options_with_steps(const hwnas_measure_options *options)
{
    hwnas_measure_options with_steps = *options;
    with_steps.steps_seconds = STEPS_SHARE * options->max_seconds;
    return with_steps;
}

hwnas_status hwnas_latencies_send_ahead(hwnas_latencies *l, const char *key, hwnas_runner *runner,
                                        const hwnas_graph *graph,
                                        const hwnas_measure_options *options)
{
    hwnas_latency_table *table;
    hwnas_parts parts = {0};
    TRY(hwnas_latencies_table(&table, l, key));
    hwnas_graph_cut(&parts, graph);
    const bool with_steps = wants_steps(table, &parts, false);
    const hwnas_measure_options more = options_with_steps(options);
    hwnas_parts_done(&parts);
    return hwnas_runner_send_ahead(runner, graph, with_steps, with_steps ? &more : options);
}

hwnas_status hwnas_latencies_measure(hwnas_measurement *out, hwnas_latencies *l, const char *key,
                                     hwnas_runner *runner, const hwnas_graph *graph,
                                     const hwnas_measure_options *options, bool always)
{
    hwnas_status status = HWNAS_OK;
    hwnas_latency_table *table;
    const hwnas_measure_options with_steps = options_with_steps(options);
    hwnas_parts parts = {0};
    hwnas_step_times steps = {0};
    hwnas_observation *o;
    hwnas_measurement m;
    TRY_OUT(hwnas_latencies_table(&table, l, key));
    hwnas_graph_cut(&parts, graph);
    TRY_OUT(wants_steps(table, &parts, always)
                ? hwnas_runner_measure_steps(&m, &steps, runner, graph, &with_steps)
                : hwnas_runner_measure(&m, runner, graph, options));
    o = options->mode == HWNAS_HOT ? hwnas_observation_new(graph, &m, &steps) : NULL;
    if (o) {
        hwnas_latency_table_tell(table, o);
        write(l, key, o);
    }
    *out = m;
out:
    hwnas_step_times_done(&steps);
    hwnas_parts_done(&parts);
    return status;
}
