#include "cli/baseline.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "report/baseline_text.h"

/* The setting of a recorded row as a sweep of one. */
static hwnas_status prepare(hwnas_sweep *out, const hwnas_profile_row *row,
                            const hwnas_sweep *asked)
{
    /* How a single copy was measured only the command tells. */
    const bool is_window =
        row->streams > 1 || (row->command && strstr(row->command, " --streams "));
    *out = (hwnas_sweep){.models = {row->model},
                         .n_models = 1,
                         .code = row->arch,
                         .n_devices = 1,
                         .devices = {hwnas_strdup(row->device)},
                         .n_batches = 1,
                         .batches = {row->batch},
                         .n_threads = 1,
                         .threads = {row->threads},
                         .n_precisions = 1,
                         .precisions = {row->precision},
                         .n_streams = 1,
                         .streams = {is_window ? row->streams : 0},
                         .options = asked->options};
    return row->mode ? hwnas_mode_parse(&out->options, row->mode) : HWNAS_OK;
}

static hwnas_status measure(hwnas_baseline_row *row, hwnas_profile *now, const hwnas_sweep *asked)
{
    hwnas_sweep one;
    hwnas_status status = prepare(&one, row->before, asked);
    if (status == HWNAS_OK)
        status = hwnas_sweep_run(now, &one);
    if (status == HWNAS_OK) {
        row->now = now->rows[now->n_rows - 1];
        row->n_tries++;
    }
    hwnas_sweep_done(&one);
    return status;
}

/* What looks slower is looked at once more: of many rows some are always unlucky. */
static hwnas_status look(hwnas_baseline_row *row, hwnas_profile *now, const hwnas_sweep *asked,
                         double tolerance)
{
    do {
        TRY(measure(row, now, asked));
        hwnas_baseline_judge(row, tolerance);
    } while (row->n_tries < 2 && !row->trouble && row->judgement.verdict == HWNAS_SLOWER);
    return HWNAS_OK;
}

static bool is_asked(const hwnas_sweep *asked, const hwnas_profile_row *row)
{
    for (int i = 0; i < asked->n_models; i++)
        if (!strcmp(asked->models[i], row->model))
            return true;
    return asked->n_models == 0;
}

static hwnas_status print(const hwnas_baseline *baseline, bool as_json)
{
    hwnas_str text = {0};
    if (as_json)
        return hwnas_print_json(hwnas_baseline_json(baseline));
    hwnas_baseline_text(&text, baseline);
    return hwnas_print_text(&text);
}

static hwnas_status conclude(const hwnas_baseline *baseline)
{
    for (size_t i = 0; i < baseline->n; i++) {
        const hwnas_baseline_row *row = &baseline->rows[i];
        if (!row->trouble && row->judgement.verdict == HWNAS_SLOWER)
            return hwnas_fail(HWNAS_E_SLOWER, NULL, "%s got slower: %.4g ms, recorded %.4g ms",
                              row->before->model, 1e3 * row->now.m.p50, 1e3 * row->before->m.p50);
    }
    for (size_t i = 0; i < baseline->n; i++) {
        const hwnas_baseline_row *row = &baseline->rows[i];
        if (row->trouble)
            return hwnas_fail(row->now.status == HWNAS_OK ? HWNAS_E_INPUT : row->now.status, NULL,
                              "%s: %s", row->before->model, row->trouble);
    }
    return HWNAS_OK;
}

hwnas_status hwnas_baseline_run(const hwnas_profile *recorded, const hwnas_sweep *asked,
                                double tolerance, bool as_json)
{
    hwnas_status status = HWNAS_OK;
    hwnas_profile *now = hwnas_profile_new();
    hwnas_baseline baseline = {.before = recorded, .now = now, .tolerance = tolerance};
    baseline.rows = hwnas_alloc(recorded->n_rows * sizeof *baseline.rows);
    for (size_t i = 0; i < recorded->n_rows; i++) {
        const hwnas_profile_row *before = &recorded->rows[i];
        if (before->status != HWNAS_OK || !is_asked(asked, before))
            continue;
        hwnas_baseline_row *row = &baseline.rows[baseline.n];
        row->before = before;
        TRY_OUT(look(row, now, asked, tolerance));
        baseline.n++;
    }
    if (!baseline.n)
        TRY_OUT(hwnas_fail(HWNAS_E_INPUT, NULL,
                           "the recorded profile holds no measurement of what is asked for"));
    TRY_OUT(print(&baseline, as_json));
    TRY_OUT(conclude(&baseline));
out:
    free(baseline.rows);
    hwnas_profile_free(now);
    return status;
}
