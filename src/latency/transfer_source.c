#include "latency/transfer_source.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "graph/elaborate.h"
#include "latency/latency_file.h"
#include "trial/metric.h"

/* Networks that are drawn where a table of latencies can estimate any: as many as tell the parts of
 * a space apart; and how often it is tried to find another one. */
enum { DRAWN = 1000, TRIES = 4 * DRAWN };

void hwnas_transfer_source_done(hwnas_transfer_source *s)
{
    for (size_t i = 0; i < s->n && !s->table; i++)
        hwnas_arch_free(s->archs[i]);
    if (!s->table)
        free(s->archs);
    hwnas_table_free(s->table);
    free(s->logs);
    *s = (hwnas_transfer_source){0};
}

/* ---- A CSV ---- */

static double unit_of(const char *column)
{
    return !fnmatch("*_ms", column, 0) ? 1e-3 : !fnmatch("*_us", column, 0) ? 1e-6 : 0;
}

static hwnas_status read_column(hwnas_transfer_source *s, const hwnas_csv *csv, size_t column,
                                size_t device)
{
    for (size_t row = 0; row < s->n; row++) {
        double value;
        TRY(hwnas_csv_number(&value, csv, row, column));
        if (!(value > 0))
            return hwnas_hint(hwnas_fail(HWNAS_E_INPUT,
                                         &(hwnas_place){.file = csv->path, .line = csv->lines[row]},
                                         "'%s' is %g, not above 0", csv->names[column], value),
                              "leave out the row or the column");
        s->logs[row * s->n_devices + device] = log(unit_of(csv->names[column]) * value);
    }
    return HWNAS_OK;
}

static hwnas_status read_csv(hwnas_transfer_source *s, const hwnas_space *space, const char *path)
{
    size_t device = 0;
    TRY(hwnas_table_load(&s->table, space, path));
    const hwnas_csv *csv = s->table->csv;
    s->n = s->table->n;
    s->archs = s->table->archs;
    for (size_t i = 0; i < csv->n_columns; i++)
        s->n_devices += unit_of(csv->names[i]) > 0;
    if (!s->n_devices)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &(hwnas_place){.file = csv->path},
                                     "no column has latencies of another device"),
                          "their names end in _ms or _us");
    s->logs = hwnas_alloc((s->n * s->n_devices + 1) * sizeof *s->logs);
    for (size_t i = 0; i < csv->n_columns; i++)
        if (unit_of(csv->names[i]) > 0)
            TRY(read_column(s, csv, i, device++));
    return HWNAS_OK;
}

/* ---- A study ---- */

enum { MOST_DEVICES = 64 };

static bool is_latency(const hwnas_value_row *v)
{
    return hwnas_metric_of_value(v->metric) == hwnas_metric_of(HWNAS_LATENCY) &&
           v->source != HWNAS_ESTIMATED && v->value > 0;
}

static bool is_whole(const hwnas_trial *trial)
{
    return trial->is_finished && trial->status == HWNAS_OK && !trial->rung &&
           !trial->is_stopped_early;
}

/* The names of its latencies, "latency.p50 on pi", which are borrowed from the trials. */
static size_t find_devices(const char *names[MOST_DEVICES], const hwnas_trial *trials, size_t n)
{
    size_t n_devices = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < trials[i].n_values && is_whole(&trials[i]); k++) {
            const hwnas_value_row *v = &trials[i].values[k];
            bool is_new = is_latency(v) && n_devices < MOST_DEVICES;
            for (size_t d = 0; d < n_devices && is_new; d++)
                is_new = strcmp(names[d], v->metric) != 0;
            if (is_new)
                names[n_devices++] = v->metric;
        }
    return n_devices;
}

static bool read_trial(double *logs, const hwnas_trial *trial, const char *const *names, size_t n)
{
    bool has = is_whole(trial);
    for (size_t d = 0; d < n && has; d++) {
        const hwnas_value_row *v = hwnas_trial_value(trial, names[d]);
        has = v && is_latency(v);
        logs[d] = has ? log(v->value) : 0;
    }
    return has;
}

static void read_trials(hwnas_transfer_source *s, const hwnas_space *space,
                        const hwnas_trial *trials, size_t n)
{
    const char *names[MOST_DEVICES];
    s->n_devices = find_devices(names, trials, n);
    s->archs = hwnas_alloc((n + 1) * sizeof *s->archs);
    s->logs = hwnas_alloc((n * s->n_devices + 1) * sizeof *s->logs);
    for (size_t i = 0; i < n && s->n_devices; i++)
        if (read_trial(s->logs + s->n * s->n_devices, &trials[i], names, s->n_devices) &&
            hwnas_arch_parse(&s->archs[s->n], space, trials[i].code) == HWNAS_OK)
            s->n++;
    hwnas_error_clear(); /* of codes that name more than a network, such as its threads */
}

/* The fact begins with the name of the space. */
static bool is_of_space(const char *fact, const hwnas_space *space)
{
    const size_t n = strlen(space->name);
    return fact && !strncmp(fact, space->name, n) && fact[n] == ' ';
}

static hwnas_status read_study(hwnas_transfer_source *s, const hwnas_space *space, const char *path)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_place place = {.file = path};
    hwnas_store *store;
    hwnas_trial *trials = NULL;
    size_t n = 0;
    char *fact = NULL;
    TRY(hwnas_store_open(&store, path, HWNAS_STORE_READ));
    TRY_OUT(hwnas_store_get(&fact, store, "space"));
    if (!is_of_space(fact, space)) {
        status = hwnas_fail(HWNAS_E_INPUT, &place, "the study is of another space than '%s'",
                            space->name);
        goto out;
    }
    TRY_OUT(hwnas_store_trials(&trials, &n, store));
    read_trials(s, space, trials, n);
    if (!s->n)
        status = hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place,
                                       "no network of the study has a latency on each device"),
                            "its search must have measured latency.p50");
out:
    hwnas_trials_free(trials, n);
    free(fact);
    hwnas_store_close(store);
    return status;
}

/* ---- A table of latencies ---- */

static bool is_among(const hwnas_arch *arch, const hwnas_transfer_source *s, size_t n_genes)
{
    for (size_t i = 0; i < s->n; i++)
        if (!memcmp(s->archs[i]->genes, arch->genes, n_genes * sizeof *arch->genes))
            return true;
    return false;
}

/* Draws networks, and cuts them into parts. */
static hwnas_parts *draw(hwnas_transfer_source *s, const hwnas_space *space, uint64_t seed)
{
    hwnas_rng rng = hwnas_rng_new(seed, 0x736f75726365); /* the stream "source" */
    hwnas_arch *arch = hwnas_arch_new(space);
    hwnas_parts *parts = hwnas_alloc(DRAWN * sizeof *parts);
    s->archs = hwnas_alloc(DRAWN * sizeof *s->archs);
    for (int i = 0; i < TRIES && s->n < DRAWN && hwnas_arch_sample(arch, &rng); i++) {
        hwnas_graph *graph;
        if (is_among(arch, s, space->n_genes) || hwnas_graph_build(&graph, arch, 1) != HWNAS_OK)
            continue;
        hwnas_graph_cut(&parts[s->n], graph);
        s->archs[s->n++] = hwnas_arch_copy(arch);
        hwnas_graph_free(graph);
    }
    hwnas_error_clear(); /* of those that cannot be built */
    hwnas_arch_free(arch);
    return parts;
}

/* What a key's table says of each network; false: it is not relied on, or knows another space. */
static hwnas_status estimate(bool *is_known, double *logs, const hwnas_transfer_source *s,
                             const hwnas_parts *parts, hwnas_latency_file *file, const char *key)
{
    hwnas_latency_table *table = hwnas_latency_table_new();
    hwnas_status status = hwnas_latency_load(table, file, key, INT64_MAX);
    size_t n_parts = 0, n_unknown = 0;
    *is_known = status == HWNAS_OK && hwnas_latency_table_is_trusted(table);
    for (size_t i = 0; i < s->n && *is_known; i++) {
        hwnas_latency_estimate e;
        *is_known = hwnas_latency_table_estimate(&e, table, &parts[i]);
        if (!*is_known)
            break;
        logs[i] = log(e.seconds);
        n_parts += (size_t)e.n_parts;
        n_unknown += (size_t)e.n_unknown;
    }
    *is_known &= 2 * n_unknown < n_parts;
    hwnas_latency_table_free(table);
    return status;
}

static hwnas_status estimate_all(hwnas_transfer_source *s, const hwnas_parts *parts,
                                 hwnas_latency_file *file, const char *own_key)
{
    hwnas_status status = HWNAS_OK;
    size_t n_keys = 0;
    char **keys = NULL;
    TRY(hwnas_latency_keys(&keys, &n_keys, file));
    double *columns = hwnas_alloc((n_keys * s->n + 1) * sizeof *columns);
    for (size_t k = 0; k < n_keys; k++) {
        bool is_known = false;
        if (!own_key || strcmp(keys[k], own_key) != 0)
            TRY_OUT(estimate(&is_known, columns + s->n_devices * s->n, s, parts, file, keys[k]));
        s->n_devices += is_known;
    }
    s->logs = hwnas_alloc((s->n * s->n_devices + 1) * sizeof *s->logs);
    for (size_t i = 0; i < s->n; i++)
        for (size_t d = 0; d < s->n_devices; d++)
            s->logs[i * s->n_devices + d] = columns[d * s->n + i];
out:
    for (size_t k = 0; k < n_keys; k++)
        free(keys[k]);
    free(keys);
    free(columns);
    return status;
}

static hwnas_status read_latencies(hwnas_transfer_source *s, const hwnas_space *space,
                                   const char *path, const char *own_key, uint64_t seed)
{
    hwnas_latency_file *file;
    char *note = NULL;
    TRY(hwnas_latency_open(&file, &note, path));
    free(note);
    hwnas_parts *parts = draw(s, space, seed);
    hwnas_status status = estimate_all(s, parts, file, own_key);
    for (size_t i = 0; i < s->n; i++)
        hwnas_parts_done(&parts[i]);
    free(parts);
    hwnas_latency_close(file);
    if (status == HWNAS_OK && !s->n_devices)
        status = hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &(hwnas_place){.file = path},
                                       "the table knows the networks of '%s' on no other device "
                                       "well enough to be relied on",
                                       space->name),
                            "hwnas calibrate fills it there, for some minutes");
    return status;
}

/* ---- Which of them ---- */

enum kind { CSV, STUDY, LATENCIES };

/* By the head of an SQLite file: its application id stands at byte 68, the highest byte first. */
static enum kind kind_of(const char *path)
{
    unsigned char head[72] = {0};
    if (!strncmp(path, "postgres", 8) && strstr(path, "://"))
        return STUDY;
    FILE *file = fopen(path, "re");
    if (file && fread(head, 1, sizeof head, file) != sizeof head)
        head[0] = '\0';
    if (file)
        fclose(file);
    if (memcmp(head, "SQLite format 3", 16) != 0)
        return CSV;
    return memcmp(head + 68, HWNAS_LATENCY_CACHE_ID, 4) ? STUDY : LATENCIES;
}

hwnas_status hwnas_transfer_source_read(hwnas_transfer_source *out, const hwnas_space *space,
                                        const char *path, const char *own_key, uint64_t seed)
{
    hwnas_status status = HWNAS_OK;
    hwnas_transfer_source source = {0};
    switch (kind_of(path)) {
    case CSV:
        status = read_csv(&source, space, path);
        break;
    case STUDY:
        status = read_study(&source, space, path);
        break;
    case LATENCIES:
        status = read_latencies(&source, space, path, own_key, seed);
        break;
    }
    if (status == HWNAS_OK)
        *out = source;
    else
        hwnas_transfer_source_done(&source);
    return status;
}
