#include "profile/baseline_measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

/* Of `after-idle` and `sustained` the seconds are a part. */
static hwnas_status use_mode(hwnas_measure_options *options, const hwnas_profile_row *row)
{
    char *mode = isnan(row->mode_seconds) ? hwnas_strdup(row->mode)
                                          : hwnas_printf("%s=%.17g", row->mode, row->mode_seconds);
    hwnas_status status = hwnas_mode_parse(options, mode);
    free(mode);
    return status;
}

static bool has_option(const hwnas_profile_row *row, const char *option)
{
    return row->command && strstr(row->command, option);
}

/* The setting of a recorded row as a sweep of one. */
static hwnas_status prepare(hwnas_sweep *out, hwnas_arena *arena, const hwnas_profile_row *row,
                            const hwnas_sweep *asked)
{
    if (row->choice_samples > 0)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                          "its layers were chosen by samples of the user's, which a profile does "
                          "not hold; its command measures it again");
    /* How a single copy was measured only the command tells. */
    const bool is_window = row->streams > 1 || has_option(row, " --streams ");
    *out = (hwnas_sweep){.models = {row->model},
                         .n_models = 1,
                         .code = row->arch,
                         .n_devices = 1,
                         .devices = {row->device},
                         .n_batches = 1,
                         .batches = {row->batch},
                         .n_threads = 1,
                         .threads = {row->threads},
                         .n_precisions = row->mixing ? 0 : 1,
                         .mixings = row->mixing ? 1U << row->mixing : 0,
                         .max_error = row->max_error,
                         .precisions = {row->precision},
                         .n_streams = 1,
                         .streams = {is_window ? row->streams : 0},
                         .skips = has_option(row, " --skip-unsupported"),
                         .on_skipped = asked->on_skipped,
                         .context = asked->context,
                         .options = asked->options};
    out->options.exec.training = row->training;
    if (row->shape)
        TRY(hwnas_shapes_parse(out->shapes, &out->n_shapes, arena, row->shape));
    return row->mode ? use_mode(&out->options, row) : HWNAS_OK;
}

/* What cannot be measured, as its model is gone, is no reason to leave out the others. */
static hwnas_status measure(hwnas_baseline_row *row, hwnas_profile *now, const hwnas_sweep *asked)
{
    hwnas_sweep one;
    hwnas_status status = prepare(&one, now->arena, row->before, asked);
    if (status == HWNAS_OK)
        status = hwnas_sweep_run(now, &one);
    if (status == HWNAS_OK) {
        row->now = now->rows[now->n_rows - 1];
    } else {
        const char *message = hwnas_last_error()->message;
        row->now.status = status;
        row->now.message = hwnas_arena_string(now->arena, message, strlen(message));
    }
    row->n_tries++;
    return status == HWNAS_E_INTERRUPTED ? status : HWNAS_OK;
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
    if (row->status != HWNAS_OK)
        return false;
    for (int i = 0; i < asked->n_models; i++)
        if (!strcmp(asked->models[i], row->model))
            return true;
    return asked->n_models == 0;
}

/* All that is asked for is there to be measured again. */
static hwnas_status check(const hwnas_profile *recorded, const hwnas_sweep *asked)
{
    static const char *const message =
        "the recorded profile holds no measurement of what is asked for";
    bool has_any = false;
    for (size_t k = 0; k < recorded->n_rows; k++)
        has_any |= recorded->rows[k].status == HWNAS_OK;
    if (!has_any)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "%s", message);
    for (int i = 0; i < asked->n_models; i++) {
        bool is_there = false;
        for (size_t k = 0; k < recorded->n_rows; k++)
            is_there |= recorded->rows[k].status == HWNAS_OK &&
                        !strcmp(recorded->rows[k].model, asked->models[i]);
        if (!is_there)
            return hwnas_fail(HWNAS_E_INPUT, NULL, "%s: '%s'", message, asked->models[i]);
    }
    return HWNAS_OK;
}

hwnas_status hwnas_baseline_conclude(const hwnas_baseline *baseline)
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

hwnas_status hwnas_baseline_measure(hwnas_baseline *baseline, hwnas_profile *now,
                                    const hwnas_sweep *asked)
{
    const hwnas_profile *recorded = baseline->before;
    TRY(check(recorded, asked));
    baseline->now = now;
    baseline->rows = hwnas_alloc(recorded->n_rows * sizeof *baseline->rows);
    size_t n_asked = 0;
    for (size_t i = 0; i < recorded->n_rows; i++)
        n_asked += is_asked(asked, &recorded->rows[i]);
    for (size_t i = 0; i < recorded->n_rows; i++) {
        const hwnas_profile_row *before = &recorded->rows[i];
        if (!is_asked(asked, before))
            continue;
        hwnas_baseline_row *row = &baseline->rows[baseline->n];
        row->before = before;
        hwnas_sweep_tell(asked, before, baseline->n + 1, n_asked);
        TRY(look(row, now, asked, baseline->tolerance));
        baseline->n++;
    }
    return HWNAS_OK;
}

void hwnas_baseline_done(hwnas_baseline *baseline)
{
    free(baseline->rows);
}
