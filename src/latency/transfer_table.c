#include "latency/transfer_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/file.h"
#include "base/stats.h"
#include "device/device.h"
#include "graph/elaborate.h"
#include "latency/latency_table.h"
#include "latency/transfer_source.h"

typedef struct carrier {
    const hwnas_transfer_how *options;
    const hwnas_space *space;
    hwnas_transfer_source source;
    hwnas_transfer *transfer;
    hwnas_device *memory; /* that looks up, or NULL and a runner */
    hwnas_runner *runner;
    char *own_key; /* the runner's, of a table of latencies */
    size_t n, rows[HWNAS_TRANSFER_MOST];
    double seconds[HWNAS_TRANSFER_MOST], low[HWNAS_TRANSFER_MOST], high[HWNAS_TRANSFER_MOST];
    bool unstable[HWNAS_TRANSFER_MOST];
} carrier;

/* ---- The other devices ---- */

static hwnas_status read_facts(double *facts, const carrier *c)
{
    for (size_t row = 0; row < c->source.n; row++) {
        hwnas_graph *graph;
        TRY(hwnas_graph_build(&graph, c->source.archs[row], 1));
        hwnas_transfer_facts(facts + row * HWNAS_TRANSFER_FACTS, graph);
        hwnas_graph_free(graph);
    }
    return HWNAS_OK;
}

static hwnas_status learn_source(carrier *c)
{
    hwnas_status status = HWNAS_OK;
    const size_t n = c->source.n, n_genes = c->space->n_genes;
    double *facts = hwnas_alloc(n * HWNAS_TRANSFER_FACTS * sizeof *facts);
    uint16_t *genes = hwnas_alloc((n * n_genes + 1) * sizeof *genes);
    TRY_OUT(read_facts(facts, c));
    for (size_t row = 0; row < n; row++)
        memcpy(genes + row * n_genes, c->source.archs[row]->genes, n_genes * sizeof *genes);
    c->transfer = hwnas_transfer_new(n, c->source.n_devices, c->source.logs, HWNAS_TRANSFER_FACTS,
                                     facts, n_genes, genes);
out:
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
    if (!ops->lookup) {
        const hwnas_exec_options exec = {.precision = o->precision};
        hwnas_device_info info;
        TRY(hwnas_runner_open(&c->runner, o->device, o->threads));
        TRY(hwnas_runner_describe(&info, c->runner));
        c->own_key = hwnas_latency_table_key(o->device, &info, &exec);
        return HWNAS_OK;
    }
    const hwnas_device_options options = {.threads = o->threads};
    TRY(hwnas_device_open(&c->memory, o->device, &options));
    if (strcmp(ops->lookup_metric(c->memory), "latency.p50") != 0)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "the device '%s' has no latencies, but %s",
                          o->device, ops->lookup_metric(c->memory));
    const hwnas_arch *const *archs;
    size_t n;
    return ops->recall(&archs, &n, c->memory, c->space);
}

static hwnas_status look_up(carrier *c, size_t i)
{
    const char *metric;
    char *code = hwnas_arch_code(c->source.archs[c->rows[i]]);
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
    TRY(hwnas_graph_build(&graph, c->source.archs[c->rows[i]], c->options->batch));
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
            char *code = hwnas_arch_code(c->source.archs[c->rows[i]]);
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

/* As the CSV names networks, else by their codes. */
static void name_columns(hwnas_str *text, const carrier *c)
{
    const hwnas_csv *csv = c->source.table ? c->source.table->csv : NULL;
    if (!csv)
        hwnas_str_add(text, "arch,");
    for (size_t i = 0; csv && i < csv->n_columns; i++)
        if (names_network(c, csv->names[i]))
            hwnas_str_addf(text, "%s,", csv->names[i]);
}

static void name_row(hwnas_str *text, const carrier *c, size_t row)
{
    const hwnas_csv *csv = c->source.table ? c->source.table->csv : NULL;
    char *code = csv ? NULL : hwnas_arch_code(c->source.archs[row]);
    if (code) {
        hwnas_csv_text(text, code);
        hwnas_str_add(text, ",");
    }
    for (size_t i = 0; csv && i < csv->n_columns; i++)
        if (names_network(c, csv->names[i])) {
            hwnas_csv_text(text, hwnas_csv_cell(csv, row, i));
            hwnas_str_add(text, ",");
        }
    free(code);
}

static hwnas_status write_table(const carrier *c)
{
    hwnas_str text = {0};
    name_columns(&text, c);
    hwnas_str_add(&text, "latency_ms,low_ms,high_ms,is_measured\n");
    for (size_t row = 0; row < c->source.n; row++) {
        hwnas_transferred e = hwnas_transfer_estimate(c->transfer, row);
        bool is_measured = false;
        for (size_t i = 0; i < c->n; i++)
            if (c->rows[i] == row) {
                e = (hwnas_transferred){c->seconds[i], c->low[i], c->high[i]};
                is_measured = true;
            }
        name_row(&text, c, row);
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
    const size_t n = c->source.n;
    double *widths = hwnas_alloc(n * sizeof *widths);
    *out = (hwnas_transfer_result){.n_rows = n, .n_sources = c->source.n_devices, .n = c->n};
    out->rows = hwnas_alloc(c->n * sizeof *out->rows);
    for (size_t i = 0; i < c->n; i++) {
        out->rows[i].code = hwnas_arch_code(c->source.archs[c->rows[i]]);
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
    TRY_OUT(open_device(c));
    TRY_OUT(
        hwnas_transfer_source_read(&c->source, space, options->from, c->own_key, options->seed));
    TRY_OUT(learn_source(c));
    c->n = hwnas_transfer_choose(c->rows, c->transfer, options->n, &rng);
    if (c->n < HWNAS_TRANSFER_LEAST) {
        status = hwnas_fail(HWNAS_E_INPUT, &(hwnas_place){.file = options->from},
                            "%zu networks are too few to learn from", c->n);
        goto out;
    }
    TRY_OUT(measure_all(c));
    TRY_OUT(hwnas_transfer_fit(c->transfer, c->n, c->rows, c->seconds));
    if (options->out)
        TRY_OUT(write_table(c));
    conclude(out, c);
out:
    hwnas_transfer_free(c->transfer);
    hwnas_transfer_source_done(&c->source);
    hwnas_runner_close(c->runner);
    hwnas_device_close(c->memory);
    free(c->own_key);
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
