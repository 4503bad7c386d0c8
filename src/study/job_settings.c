#include "study/job_settings.h"

#include <string.h>

hwnas_status hwnas_job_read_setting_value(int *out, const hwnas_yaml *node,
                                          const hwnas_setting_kind *setting)
{
    const char *text;
    hwnas_precision precision;
    if (!strcmp(setting->name, "threads") && node->kind == HWNAS_YAML_SCALAR &&
        !strcmp(node->text, "all")) {
        *out = hwnas_device_cores();
        return HWNAS_OK;
    }
    if (!setting->word) {
        int64_t value;
        TRY(hwnas_yaml_int(&value, node, setting->name, 1, setting->most));
        *out = (int)value;
        return HWNAS_OK;
    }
    TRY(hwnas_yaml_text(&text, node, setting->name));
    *out = hwnas_setting_read(setting, text);
    return *out ? HWNAS_OK : hwnas_fail_at(hwnas_precision_find(&precision, text), &node->place);
}

static hwnas_status read_values(hwnas_setting_values *out, const hwnas_yaml *node,
                                const hwnas_setting_kind *setting)
{
    const char *what = setting->name;
    const hwnas_yaml *values = hwnas_yaml_get(node, "values");
    if (!values || values->kind != HWNAS_YAML_SEQUENCE || values->n < 1 ||
        values->n > HWNAS_MAX_SETTING_VALUES)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &node->place, "%s needs 1 to %d values", what,
                                     HWNAS_MAX_SETTING_VALUES),
                          "write %s: {values: [%s]}", what, setting->word ? "f32, s8" : "1, 2");
    out->n = (int)values->n;
    for (int i = 0; i < out->n; i++) {
        TRY(hwnas_job_read_setting_value(&out->values[i], values->items[i], setting));
        for (int j = 0; j < i; j++)
            if (out->values[j] == out->values[i])
                return hwnas_fail(HWNAS_E_INPUT, &values->items[i]->place, "%s has %s twice", what,
                                  values->items[i]->text);
    }
    return HWNAS_OK;
}

/* The mixture that has these precisions for its layers. */
static hwnas_status mix(hwnas_setting_values *values, const hwnas_yaml *per,
                        const hwnas_setting_kind *setting)
{
    static const struct {
        hwnas_mixing mixing;
        unsigned precisions;
    } rows[] = {{HWNAS_MIXED, 1U << HWNAS_F32 | 1U << HWNAS_S8},
                {HWNAS_MIXED_BF16, 1U << HWNAS_F32 | 1U << HWNAS_BF16 | 1U << HWNAS_S8}};
    const char *word = "";
    unsigned precisions = 0;
    if (!setting->word)
        return hwnas_fail(HWNAS_E_INPUT, &per->place, "%s is not of each layer", setting->name);
    TRY(hwnas_yaml_text(&word, per, "per"));
    if (strcmp(word, "layer") != 0)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &per->place, "per is not '%.30s'", word),
                          "write per: layer, or leave it out: one precision for all layers");
    for (int i = 0; i < values->n; i++)
        precisions |= hwnas_dtype_mixing(values->values[i])
                          ? ~0U /* is no precision of a layer */
                          : 1U << hwnas_dtype_precision(values->values[i]);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].precisions == precisions) {
            values->n = 1;
            values->values[0] = hwnas_setting_read(setting, hwnas_mixing_name(rows[i].mixing));
            return HWNAS_OK;
        }
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &per->place,
                                 "no mixture of precisions has these for its layers"),
                      "write {per: layer, values: [f32, s8]}, or [f32, bf16, s8]");
}

hwnas_status hwnas_job_read_setting(hwnas_setting_values *out, const hwnas_yaml *node,
                                    const hwnas_setting_kind *setting)
{
    static const char *const keys[] = {"values", "per", NULL};
    hwnas_setting_values values = {.place = node->place, .n = 1};
    if (node->kind != HWNAS_YAML_MAPPING) {
        TRY(hwnas_job_read_setting_value(&values.values[0], node, setting));
        *out = values;
        return HWNAS_OK;
    }
    TRY(hwnas_yaml_check_keys(node, setting->name, keys));
    const hwnas_yaml *per = hwnas_yaml_get(node, "per");
    TRY(read_values(&values, node, setting));
    if (per)
        TRY(mix(&values, per, setting));
    *out = values;
    return HWNAS_OK;
}
