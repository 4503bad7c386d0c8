#include "report/held_text.h"

#include <inttypes.h>

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

void hwnas_among_text(hwnas_str *out, uint64_t n_among, int indent)
{
    if (n_among)
        hwnas_str_addf(out, "%-*s%" PRIu64 " networks that the job's tables have values of\n",
                       indent, "among", n_among);
}
