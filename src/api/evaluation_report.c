/* evaluation_report.c: figures of a network on data, for people and for programs. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/evaluation.h"
#include "api/report_handle.h"
#include "base/c_locale.h"
#include "base/mem.h"
#include "base/str.h"

const hwnas_metric_value *hwnas_evaluation_value(const hwnas_evaluation *evaluation, size_t i)
{
    return i < evaluation->n_values ? &evaluation->values[i] : NULL;
}

const hwnas_metric_value *hwnas_evaluation_find(const hwnas_evaluation *evaluation,
                                                const char *metric)
{
    for (size_t i = 0; i < evaluation->n_values; i++)
        if (!strcmp(evaluation->values[i].metric, metric))
            return &evaluation->values[i];
    return NULL;
}

int64_t hwnas_evaluation_samples(const hwnas_evaluation *evaluation)
{
    return evaluation->n;
}

const char *hwnas_evaluation_task(const hwnas_evaluation *evaluation)
{
    return hwnas_task_name(evaluation->task);
}

/* ---- Text ---- */

/* Names for people; others are called as the value is. */
static const char *title_of(const char *metric)
{
    static const char *const rows[][2] = {
        {"top1", "top-1"},
        {"top5", "top-5"},
        {"original.top1", "original's top-1"},
        {"mse", "MSE"},
        {"mae", "MAE"},
        {"original.top5", "original's top-5"},
        {"r2", "R2"},
        {"sqnr", "SQNR"},
        {"original.loss", "original's loss"},
        {"largest_difference", "largest difference"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i][0], metric))
            return rows[i][1];
    return metric;
}

static void add_value(hwnas_str *out, const hwnas_metric_value *v)
{
    const bool is_share = !strcmp(v->unit, "%");
    const int digits = is_share || !strcmp(v->unit, "dB") ? 2 : 4;
    const char *unit = strcmp(v->unit, "nats") ? v->unit : "";
    const char *form = is_share || digits == 2 ? "%.*f" : "%.*g";
    char value[32], low[32], high[32];
    snprintf(value, sizeof value, form, digits, v->value);
    hwnas_str_addf(out, "%-20s %10s %-2s", title_of(v->metric), value, unit);
    if (isfinite(v->low) && isfinite(v->high)) {
        snprintf(low, sizeof low, form, digits, v->low);
        snprintf(high, sizeof high, form, digits, v->high);
        hwnas_str_addf(out, " [%s, %s]", low, high);
    }
    hwnas_str_add(out, "\n");
}

static void write_text(hwnas_str *out, const void *found)
{
    const hwnas_evaluation *e = found;
    hwnas_str_addf(out, "%s, %s, %s: %" PRId64 " samples\n\n", e->model, e->device,
                   hwnas_precision_name(e->precision), e->n);
    for (size_t i = 0; i < e->n_values; i++)
        add_value(out, &e->values[i]);
    hwnas_str_add(out, "\n[ ] 95 % interval\n");
}

/* ---- JSON ---- */

static json_t *number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *to_json(const void *found)
{
    const hwnas_evaluation *e = found;
    json_t *values = json_object();
    for (size_t i = 0; i < e->n_values; i++) {
        const hwnas_metric_value *v = &e->values[i];
        json_object_set_new(values, v->metric,
                            json_pack("{s:o, s:o, s:o, s:s}", "value", number(v->value), "low",
                                      number(v->low), "high", number(v->high), "unit", v->unit));
    }
    return json_pack(
        "{s:s, s:i, s:s, s:s?, s:s, s:s?, s:s, s:s, s:i, s:s, s:I, s:I, s:I, s:f, s:o}", "format",
        "hwnas.evaluation", "version", 1, "model", e->model, "against", e->original, "data",
        e->data, "labels", e->labels, "device", e->device, "dtype",
        hwnas_precision_name(e->precision), "batch", e->batch, "task", hwnas_task_name(e->task),
        "samples", (json_int_t)e->n, "samples_there", (json_int_t)e->n_samples, "not_finite",
        (json_int_t)e->not_finite, "seconds", e->seconds, "values", values);
}

static hwnas_report *make(const hwnas_report_kind *kind, const hwnas_evaluation *evaluation)
{
    hwnas_report *report = hwnas_report_new(kind, (void *)evaluation);
    if (evaluation->not_finite) {
        char *note = hwnas_printf("for %" PRId64 " samples the network gave values that are not "
                                  "finite",
                                  evaluation->not_finite);
        hwnas_report_add_note(report, note);
        free(note);
    }
    if (evaluation->n < evaluation->n_samples)
        hwnas_report_end(report, hwnas_fail(HWNAS_E_INTERRUPTED, NULL,
                                            "interrupted; %" PRId64 " of %" PRId64
                                            " samples were evaluated",
                                            evaluation->n, evaluation->n_samples));
    return report;
}

hwnas_status hwnas_evaluation_report(hwnas_report **out, const hwnas_evaluation *evaluation)
{
    IN_C_LOCALE;
    static const hwnas_report_kind kind = {.text = write_text, .json = to_json};
    *out = make(&kind, evaluation);
    return HWNAS_OK;
}

static void free_found(void *found)
{
    hwnas_evaluation_free(found);
}

hwnas_report *hwnas_api_report_of_evaluation(hwnas_evaluation *evaluation)
{
    static const hwnas_report_kind kind = {.text = write_text, .json = to_json, .free = free_found};
    return make(&kind, evaluation);
}
