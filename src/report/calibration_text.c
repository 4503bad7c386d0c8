#include "report/calibration_text.h"

static json_t *to_json(const hwnas_calibration *c)
{
    json_t *held_out = json_pack("{s:I}", "networks", (json_int_t)c->n_held_out);
    const struct {
        const char *name;
        double value;
    } shares[] = {{"median_error", c->error},
                  {"within_5", c->within_5},
                  {"within_10", c->within_10},
                  {"coverage", c->coverage}};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        json_object_set_new(held_out, shares[i].name,
                            c->n_held_out ? json_real(shares[i].value) : json_null());
    return json_pack("{s:s, s:i, s:s, s:I, s:I, s:I, s:f, s:{s:I, s:I}, s:o}", "format",
                     "hwnas.calibration", "version", 1, "key", c->key, "measured",
                     (json_int_t)c->n_measured, "unstable", (json_int_t)c->n_unstable, "failed",
                     (json_int_t)c->n_failed, "seconds", c->seconds, "table", "networks",
                     (json_int_t)c->table.n_networks, "parts", (json_int_t)c->table.n_parts,
                     "held_out", held_out);
}

static void add_text(hwnas_str *out, const hwnas_calibration *c)
{
    hwnas_str_addf(out, "%zu networks measured in %.0f s", c->n_measured, c->seconds);
    if (c->n_unstable)
        hwnas_str_addf(out, ", %zu of them while the machine was disturbed", c->n_unstable);
    if (c->n_failed)
        hwnas_str_addf(out, ", %zu failed", c->n_failed);
    hwnas_str_addf(out, "\nthe table has %zu networks and %zu parts\n", c->table.n_networks,
                   c->table.n_parts);
    if (c->n_held_out)
        hwnas_str_addf(
            out,
            "%zu random networks, estimated before they were measured: %.1f %% off in the "
            "median,\n%.0f %% within 5 %%, %.0f %% within 10 %%, %.0f %% in the 95 %% interval\n",
            c->n_held_out, 100 * c->error, 100 * c->within_5, 100 * c->within_10,
            100 * c->coverage);
}

void hwnas_calibration_tell(hwnas_rendering *out, const hwnas_calibration *calibration)
{
    add_text(&out->text, calibration);
    out->json = to_json(calibration);
}

char *hwnas_calibration_words(const hwnas_calibration *c)
{
    hwnas_str words = {0};
    hwnas_str_addf(&words, "%4.0f s: %zu networks, %zu parts", c->seconds, c->table.n_networks,
                   c->table.n_parts);
    if (c->n_held_out)
        hwnas_str_addf(&words, "; estimates of random ones: %.1f %% off in the median",
                       100 * c->error);
    return words.s;
}
