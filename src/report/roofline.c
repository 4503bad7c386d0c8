/* roofline.c: rooflines as text and JSON. */
#include "report/roofline.h"

#include <stdlib.h>

#define GIGA 1e9
#define MEGA 1e6

/* "143.9 [143.1, 144.3]", in units of 1e9. */
static void add_rate(hwnas_str *out, int width, const hwnas_rate *rate)
{
    char *text = hwnas_printf("%.1f [%.1f, %.1f]", rate->p50 / GIGA, rate->low / GIGA,
                              rate->high / GIGA);
    hwnas_str_addf(out, "  %*s", width, text);
    free(text);
}

void hwnas_roofline_text(hwnas_str *out, const char *indent, const hwnas_roofline *rooflines,
                         size_t n)
{
    bool is_unstable = false;
    hwnas_str_addf(out, "%s%7s  %9s  %24s  %20s  GB/s of", indent, "threads", "precision", "GFLOP/s",
                   "memory GB/s");
    for (int i = 0; n && i < HWNAS_N_BANDWIDTHS - 1; i++)
        hwnas_str_addf(out, " %7.3g", rooflines->bandwidths[i].bytes / MEGA);
    hwnas_str_add(out, " MB\n");
    for (const hwnas_roofline *r = rooflines; r < rooflines + n; r++) {
        hwnas_str_addf(out, "%s%7d  %9s", indent, r->threads, hwnas_precision_name(r->precision));
        add_rate(out, 24, &r->flops);
        add_rate(out, 20, hwnas_roofline_memory(r));
        hwnas_str_addf(out, "%9s", "");
        for (int i = 0; i < HWNAS_N_BANDWIDTHS - 1; i++)
            hwnas_str_addf(out, " %7.1f", r->bandwidths[i].rate.p50 / GIGA);
        hwnas_str_add(out, r->is_unstable ? " ?\n" : "\n");
        is_unstable |= r->is_unstable;
    }
    if (is_unstable)
        hwnas_str_addf(out, "%s?: the machine was disturbed meanwhile; this is not kept\n", indent);
}

json_t *hwnas_roofline_json(const hwnas_roofline *r)
{
    json_t *bandwidths = json_array();
    for (int i = 0; i < HWNAS_N_BANDWIDTHS; i++) {
        const hwnas_rate *rate = &r->bandwidths[i].rate;
        json_array_append_new(bandwidths,
                              json_pack("{s:f, s:f, s:f, s:f}", "bytes", r->bandwidths[i].bytes,
                                        "bytes_per_second", rate->p50, "low", rate->low, "high",
                                        rate->high));
    }
    return json_pack("{s:s, s:i, s:f, s:f, s:f, s:f, s:o, s:b}", "precision",
                     hwnas_precision_name(r->precision), "threads", r->threads, "flops_per_second",
                     r->flops.p50, "flops_low", r->flops.low, "flops_high", r->flops.high,
                     "cache_bytes", r->cache_bytes, "bandwidths", bandwidths, "unstable",
                     r->is_unstable);
}
