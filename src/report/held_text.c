#include "report/held_text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "predict/domain.h"
#include "trial/metric.h"

void hwnas_held_text(hwnas_str *out, const json_t *held, int indent)
{
    const char *name, *title = "held";
    json_t *row, *label;
    size_t i;
    json_object_foreach((json_t *)held, name, row)
    {
        hwnas_str_addf(out, "%-*s%s at ", indent, title, name);
        json_array_foreach(json_object_get(row, "kept"), i, label)
            hwnas_str_addf(out, "%s%s", i ? ", " : "", json_string_value(label));
        const json_int_t n = json_integer_value(json_object_get(row, "left_out"));
        hwnas_str_addf(out, ": the predictor has not seen its %lld other value%s\n", (long long)n,
                       n > 1 ? "s" : "");
        title = "";
    }
    if (held)
        hwnas_str_addf(out, "%-*s--domain free searches all\n", indent, "");
}

void hwnas_sizes_text(hwnas_str *out, const hwnas_sizes *sizes, int indent)
{
    for (size_t i = 0; sizes && i < sizes->n; i++) {
        const hwnas_size_range *range = &sizes->ranges[i];
        const char *name = range->name + strlen("log ");
        const hwnas_metric *metric = hwnas_metric_of_value(name);
        const double low = exp(range->low) / metric->scale, high = exp(range->high) / metric->scale;
        if (i)
            hwnas_str_addf(out, ", %s from %.4g to %.4g %s", name, low, high, metric->unit);
        else
            hwnas_str_addf(out, "%-*s%s from %.4g to %.4g %s", indent, "sizes", name, low, high,
                           metric->unit);
    }
    if (sizes && sizes->n)
        hwnas_str_add(out, ": the predictor has seen no others; --domain free takes all\n");
}

void hwnas_left_out_text(hwnas_str *out, size_t n, int indent)
{
    if (n)
        hwnas_str_addf(out,
                       "\n%*s%zu left out: of a size outside what the predictor has learned from "
                       "(domain: free takes them)",
                       indent, "", n);
}

void hwnas_among_text(hwnas_str *out, uint64_t n_among, int indent)
{
    if (n_among)
        hwnas_str_addf(out, "%-*s%" PRIu64 " networks that the job's tables have values of\n",
                       indent, "among", n_among);
}
