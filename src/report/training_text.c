#include "report/training_text.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

static json_t *number(double value)
{
    return isnan(value) ? json_null() : json_real(value);
}

void hwnas_scores_tell(hwnas_rendering *out, const hwnas_predictor_scores *s, const char *how,
                       const char *chosen)
{
    hwnas_str *text = &out->text;
    out->json = json_pack("{s:s, s:i, s:s, s:I, s:f, s:o, s:o, s:o, s:o, s:o*}", "format",
                          "hwnas.scores", "version", 1, "how", how, "rows", (json_int_t)s->n_rows,
                          "kendall_tau", s->kendall_tau, "rmse", number(s->rmse),
                          "mean_absolute_error", number(s->mean_absolute_error), "top_tenth_tau",
                          number(s->top_tenth_tau), "coverage_90", number(s->coverage_90), "chosen",
                          chosen ? json_string(chosen) : NULL);
    hwnas_str_addf(text, "%s, %zu rows\n  Kendall tau  %.4f\n", how, s->n_rows, s->kendall_tau);
    if (!isnan(s->rmse))
        hwnas_str_addf(text, "  RMSE         %.4f\n  MAE          %.4f\n", s->rmse,
                       s->mean_absolute_error);
    if (!isnan(s->top_tenth_tau))
        hwnas_str_addf(text, "  Kendall tau among the highest tenth  %.4f\n", s->top_tenth_tau);
    if (!isnan(s->coverage_90))
        hwnas_str_addf(text, "  inside the 90 %% interval  %.1f %%\n", 100 * s->coverage_90);
    if (chosen)
        hwnas_str_addf(text, "\nfitted: %s\n", chosen);
}

void hwnas_import_tell(hwnas_rendering *out, const hwnas_import_result *told, const char *into,
                       const char *space, const char *target)
{
    out->json = json_pack("{s:s, s:i, s:s, s:I, s:I, s:I, s:I}", "format", "hwnas.import",
                          "version", 1, "file", into, "taken", (json_int_t)told->n_taken, "known",
                          (json_int_t)told->n_known, "empty", (json_int_t)told->n_empty, "networks",
                          (json_int_t)told->n_networks);
    hwnas_str_addf(
        &out->text,
        "%s: %zu results taken, %zu known before, %zu not filled in; it has %zu networks now\n",
        into, told->n_taken, told->n_known, told->n_empty, told->n_networks);
    hwnas_str_addf(&out->text, "then: hwnas predictor fit %s %s --target %s --out NAME.json\n",
                   space, into, target);
}

void hwnas_estimates_csv(hwnas_str *out, const hwnas_table *table, const hwnas_estimate *estimates,
                         const hwnas_predictor *predictor)
{
    const bool has_domain = hwnas_predictor_domain(predictor);
    hwnas_str_addf(out, "code,mean,sd%s\n", has_domain ? ",outside" : "");
    for (size_t i = 0; i < table->n; i++) {
        char *code = hwnas_arch_code(table->archs[i]);
        hwnas_str_addf(out, "\"%s\",%.10g,", code, estimates[i].mean);
        if (!isnan(estimates[i].sd))
            hwnas_str_addf(out, "%.10g", estimates[i].sd);
        if (has_domain) {
            hwnas_str_add(out, ",");
            if (estimates[i].is_outside)
                hwnas_predictor_outside(out, predictor, table->archs[i]);
        }
        hwnas_str_add(out, "\n");
        free(code);
    }
}

void hwnas_vectors_csv(hwnas_str *out, const hwnas_table *table, const hwnas_space *space,
                       const hwnas_vector_layout *layout)
{
    hwnas_vector *vector = hwnas_vector_new(layout, space);
    float *values = hwnas_alloc((vector->n + 1) * sizeof *values);
    hwnas_str_add(out, "code");
    for (size_t i = 0; i < vector->n; i++)
        hwnas_str_addf(out, ",%s", vector->columns[i].name);
    hwnas_str_add(out, "\n");
    for (size_t row = 0; row < table->n; row++) {
        char *code = hwnas_arch_code(table->archs[row]);
        hwnas_str_addf(out, "\"%s\"", code);
        free(code);
        hwnas_vector_fill(values, vector, table->archs[row]);
        for (size_t i = 0; i < vector->n; i++)
            hwnas_str_addf(out, ",%.9g", values[i]);
        hwnas_str_add(out, "\n");
    }
    free(values);
    hwnas_vector_free(vector);
}
