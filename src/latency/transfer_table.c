#include "latency/transfer_table.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/file.h"
#include "base/stats.h"
#include "device/device.h"
#include "graph/elaborate.h"
#include "space/table.h"

typedef struct carrier {
    const hwnas_transfer_how *options;
    const hwnas_space *space;
    hwnas_table *table;
    size_t n_sources, *sources; /* columns */
    double *factors;            /* to seconds */
    hwnas_transfer *transfer;
    hwnas_device *memory; /* that looks up, or NULL and a runner */
    hwnas_runner *runner;
    size_t n, rows[HWNAS_TRANSFER_MOST];
    double seconds[HWNAS_TRANSFER_MOST], low[HWNAS_TRANSFER_MOST], high[HWNAS_TRANSFER_MOST];
    bool unstable[HWNAS_TRANSFER_MOST];
} carrier;

/* ---- The table ---- */

static double unit_of(const char *column)
{
    return !fnmatch("*_ms", column, 0) ? 1e-3 : !fnmatch("*_us", column, 0) ? 1e-6 : 0;
}

static hwnas_status find_sources(carrier *c)
{
    const hwnas_csv *csv = c->table->csv;
    c->sources = hwnas_alloc((csv->n_columns + 1) * sizeof *c->sources);
    c->factors = hwnas_alloc((csv->n_columns + 1) * sizeof *c->factors);
    for (size_t i = 0; i < csv->n_columns; i++)
        if (unit_of(csv->names[i]) > 0) {
            c->sources[c->n_sources] = i;
            c->factors[c->n_sources++] = unit_of(csv->names[i]);
        }
    if (c->n_sources)
        return HWNAS_OK;
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &(hwnas_place){.file = csv->path},
                                 "no column has latencies of another device"),
                      "their names end in _ms or _us");
}

static hwnas_status read_logs(double *logs, const carrier *c)
{
    const hwnas_csv *csv = c->table->csv;
    for (size_t row = 0; row < c->table->n; row++)
        for (size_t s = 0; s < c->n_sources; s++) {
            double value;
            TRY(hwnas_csv_number(&value, csv, row, c->sources[s]));
            if (!(value > 0))
                return hwnas_hint(
                    hwnas_fail(HWNAS_E_INPUT,
                               &(hwnas_place){.file = csv->path, .line = csv->lines[row]},
                               "'%s' is %g, not above 0", csv->names[c->sources[s]], value),
                    "leave out the row or the column");
            logs[row * c->n_sources + s] = log(c->factors[s] * value);
        }
    return HWNAS_OK;
}

static hwnas_status read_facts(double *facts, const carrier *c)
{
    for (size_t row = 0; row < c->table->n; row++) {
        hwnas_graph *graph;
        TRY(hwnas_graph_build(&graph, c->table->archs[row], 1));
        hwnas_transfer_facts(facts + row * HWNAS_TRANSFER_FACTS, graph);
        hwnas_graph_free(graph);
    }
    return HWNAS_OK;
}

static hwnas_status learn_table(carrier *c)
{
    hwnas_status status = HWNAS_OK;
    const size_t n = c->table->n, n_genes = c->space->n_genes;
    double *logs = hwnas_alloc(n * c->n_sources * sizeof *logs);
    double *facts = hwnas_alloc(n * HWNAS_TRANSFER_FACTS * sizeof *facts);
    uint16_t *genes = hwnas_alloc((n * n_genes + 1) * sizeof *genes);
    TRY_OUT(read_logs(logs, c));
    TRY_OUT(read_facts(facts, c));
    for (size_t row = 0; row < n; row++)
        memcpy(genes + row * n_genes, c->table->archs[row]->genes, n_genes * sizeof *genes);
    c->transfer =
        hwnas_transfer_new(n, c->n_sources, logs, HWNAS_TRANSFER_FACTS, facts, n_genes, genes);
out:
    free(logs);
    free(facts);
    free(genes);
    return status;
}

/* ---- The device ---- */

static hwnas_status open_device(carrier *c)
{
    const hwnas_transfer_how *o = c->options;
    const hwnas_device_ops *ops;
    const char *argument;
    TRY(hwnas_device_find(&ops, &argument, o->device));
    if (!ops->lookup)
        return hwnas_runner_open(&c->runner, o->device, o->threads);
    const hwnas_device_options options = {.threads = o->threads};
    TRY(hwnas_device_open(&c->memory, o->device, &options));
    if (!strcmp(ops->lookup_metric(c->memory), "latency.p50"))
        return HWNAS_OK;
    return hwnas_fail(HWNAS_E_INPUT, NULL, "the device '%s' has no latencies, but %s", o->device,
                      ops->lookup_metric(c->memory));
}

static hwnas_status look_up(carrier *c, size_t i)
{
    const char *metric;
    char *code = hwnas_arch_code(c->table->archs[c->rows[i]]);
    const hwnas_status status = c->memory->ops->lookup(&c->seconds[i], &metric, c->memory, code);
    c->low[i] = c->high[i] = c->seconds[i];
    free(code);
    return status;
}

static hwnas_status run(carrier *c, size_t i)
{
    hwnas_measure_options options = HWNAS_MEASURE_DEFAULTS;
    hwnas_measurement m;
    hwnas_graph *graph;
    options.exec.precision = c->options->precision;
    options.stop = c->options->stop;
    TRY(hwnas_graph_build(&graph, c->table->archs[c->rows[i]], c->options->batch));
    const hwnas_status status = hwnas_runner_measure(&m, c->runner, graph, &options);
    hwnas_graph_free(graph);
    if (status != HWNAS_OK)
        return status;
    c->seconds[i] = m.p50;
    c->low[i] = m.p50_low;
    c->high[i] = m.p50_high;
    c->unstable[i] = m.is_unstable;
    return HWNAS_OK;
}

static hwnas_status measure_all(carrier *c)
{
    for (size_t i = 0; i < c->n; i++) {
        const hwnas_status status = c->memory ? look_up(c, i) : run(c, i);
        if (status != HWNAS_OK) {
            char *code = hwnas_arch_code(c->table->archs[c->rows[i]]);
            hwnas_context(status, "architecture %s", code);
            free(code);
            return status;
        }
        if (c->options->progress)
            c->options->progress(c->options->context, i + 1);
    }
    return HWNAS_OK;
}

/* ---- What comes of it ---- */

static bool names_network(const carrier *c, const char *column)
{
    bool is = !strcmp(column, "arch") || !strcmp(column, "code");
    for (size_t i = 0; i < c->space->n_choices && !is; i++)
        is = !strcmp(column, c->space->choices[i].name);
    return is;
}

static hwnas_status write_table(const carrier *c)
{
    const hwnas_csv *csv = c->table->csv;
    hwnas_str text = {0};
    for (size_t i = 0; i < csv->n_columns; i++)
        if (names_network(c, csv->names[i]))
            hwnas_str_addf(&text, "%s,", csv->names[i]);
    hwnas_str_add(&text, "latency_ms,low_ms,high_ms,is_measured\n");
    for (size_t row = 0; row < c->table->n; row++) {
        hwnas_transferred e = hwnas_transfer_estimate(c->transfer, row);
        bool is_measured = false;
        for (size_t i = 0; i < c->n; i++)
            if (c->rows[i] == row) {
                e = (hwnas_transferred){c->seconds[i], c->low[i], c->high[i]};
                is_measured = true;
            }
        for (size_t i = 0; i < csv->n_columns; i++)
            if (names_network(c, csv->names[i])) {
                hwnas_csv_text(&text, hwnas_csv_cell(csv, row, i));
                hwnas_str_add(&text, ",");
            }
        hwnas_str_addf(&text, "%.6g,%.6g,%.6g,%d\n", 1e3 * e.seconds, 1e3 * e.low, 1e3 * e.high,
                       is_measured);
    }
    const hwnas_status status = hwnas_file_write(c->options->out, text.s, text.n);
    hwnas_str_done(&text);
    return status;
}

static void conclude(hwnas_transfer_result *out, const carrier *c)
{
    double errors[HWNAS_TRANSFER_MOST];
    const size_t n = c->table->n;
    double *widths = hwnas_alloc(n * sizeof *widths);
    *out = (hwnas_transfer_result){.n_rows = n, .n_sources = c->n_sources, .n = c->n};
    out->rows = hwnas_alloc(c->n * sizeof *out->rows);
    for (size_t i = 0; i < c->n; i++) {
        out->rows[i].code = hwnas_arch_code(c->table->archs[c->rows[i]]);
        out->rows[i].measured = c->seconds[i];
        out->rows[i].left_out = hwnas_transfer_left_out(c->transfer, i);
        out->rows[i].is_unstable = c->unstable[i];
        errors[i] = fabs(out->rows[i].left_out);
    }
    for (size_t row = 0; row < n; row++) {
        const hwnas_transferred e = hwnas_transfer_estimate(c->transfer, row);
        widths[row] = (e.high - e.low) / 2 / e.seconds;
    }
    hwnas_sort(errors, c->n);
    hwnas_sort(widths, n);
    out->error = hwnas_quantile(errors, c->n, 0.5);
    out->width = hwnas_quantile(widths, n, 0.5);
    free(widths);
}

hwnas_status hwnas_transfer_table(hwnas_transfer_result *out, const hwnas_space *space,
                                  const hwnas_transfer_how *options)
{
    hwnas_status status = HWNAS_OK;
    carrier *c = hwnas_alloc(sizeof *c);
    hwnas_rng rng = hwnas_rng_new(options->seed, 0x7472616e73); /* the stream "trans" */
    *c = (carrier){.options = options, .space = space};
    if (options->n < HWNAS_TRANSFER_LEAST || options->n > HWNAS_TRANSFER_MOST) {
        status = hwnas_fail(HWNAS_E_INPUT, NULL, "%zu networks cannot be measured, but %d to %d",
                            options->n, HWNAS_TRANSFER_LEAST, HWNAS_TRANSFER_MOST);
        goto out;
    }
    TRY_OUT(hwnas_file_check_output(options->out, options->from));
    TRY_OUT(hwnas_table_load(&c->table, space, options->from));
    TRY_OUT(find_sources(c));
    TRY_OUT(learn_table(c));
    c->n = hwnas_transfer_choose(c->rows, c->transfer, options->n, &rng);
    if (c->n < HWNAS_TRANSFER_LEAST) {
        status = hwnas_fail(HWNAS_E_INPUT, &(hwnas_place){.file = options->from},
                            "%zu networks are too few to learn from", c->n);
        goto out;
    }
    TRY_OUT(open_device(c));
    TRY_OUT(measure_all(c));
    TRY_OUT(hwnas_transfer_fit(c->transfer, c->n, c->rows, c->seconds));
    if (options->out)
        TRY_OUT(write_table(c));
    conclude(out, c);
out:
    hwnas_transfer_free(c->transfer);
    hwnas_table_free(c->table);
    hwnas_runner_close(c->runner);
    hwnas_device_close(c->memory);
    free(c->sources);
    free(c->factors);
    free(c);
    return status;
}

void hwnas_transfer_result_done(hwnas_transfer_result *result)
{
    for (size_t i = 0; i < result->n; i++)
        free(result->rows[i].code);
    free(result->rows);
    *result = (hwnas_transfer_result){0};
}
