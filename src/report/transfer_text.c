#include "report/transfer_text.h"

static json_t *to_json(const hwnas_transfer_result *r, const char *device, const char *path)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < r->n; i++)
        json_array_append_new(rows,
                              json_pack("{s:s, s:f, s:f, s:b}", "code", r->rows[i].code, "seconds",
                                        r->rows[i].measured, "left_out_error", r->rows[i].left_out,
                                        "unstable", r->rows[i].is_unstable));
    return json_pack("{s:s, s:i, s:s, s:I, s:I, s:o, s:f, s:f, s:s?}", "format", "hwnas.transfer",
                     "version", 1, "device", device, "networks", (json_int_t)r->n_rows,
                     "other_devices", (json_int_t)r->n_sources, "measured", rows, "median_error",
                     r->error, "median_interval", r->width, "file", path);
}

static void add_text(hwnas_str *out, const hwnas_transfer_result *r, const char *device,
                     const char *path)
{
    bool is_unstable = false;
    hwnas_str_addf(out,
                   "%zu of %zu networks measured on %s, the others estimated from %zu other "
                   "device%s\n\n",
                   r->n, r->n_rows, device, r->n_sources, r->n_sources == 1 ? "" : "s");
    hwnas_str_add(out, "  measured ms  estimated from the others  network\n");
    for (size_t i = 0; i < r->n; i++) {
        hwnas_str_addf(out, "  %11.4g  %+24.1f %%  %s%s\n", 1e3 * r->rows[i].measured,
                       100 * r->rows[i].left_out, r->rows[i].code,
                       r->rows[i].is_unstable ? " ?" : "");
        is_unstable |= r->rows[i].is_unstable;
    }
    if (is_unstable)
        hwnas_str_add(out, "?: the machine was disturbed meanwhile\n");
    hwnas_str_addf(out,
                   "\nestimates are %.1f %% off in the median of these, each estimated from "
                   "the others;\nhalf of the 90 %% intervals are narrower than +- %.1f %%\n",
                   100 * r->error, 100 * r->width);
    if (path)
        hwnas_str_addf(out,
                       "written to %s; search it with --device 'replay:%s#latency_ms', and "
                       "measure what it finds\n",
                       path, path);
}

void hwnas_transfer_tell(hwnas_rendering *out, const hwnas_transfer_result *result,
                         const char *device, const char *path)
{
    add_text(&out->text, result, device, path);
    out->json = to_json(result, device, path);
}
