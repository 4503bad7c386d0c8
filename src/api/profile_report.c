#include "api/profile_report.h"

#include "api/report_handle.h"
#include "report/layer_table.h"
#include "report/profile_text.h"
#include "report/training_costs_text.h"

static void profile_text(hwnas_str *out, const void *found)
{
    hwnas_profile_text(out, found);
    hwnas_training_costs_text(out, found);
    hwnas_layers_text(out, found);
}

static void profile_csv(hwnas_str *out, const void *found)
{
    hwnas_profile_csv(out, found);
}

static void profile_markdown(hwnas_str *out, const void *found)
{
    hwnas_profile_markdown(out, found);
    hwnas_layers_markdown(out, found);
}

static void layers_csv(hwnas_str *out, const void *found)
{
    hwnas_layers_csv(out, found);
}

static json_t *profile_json(const void *found)
{
    return hwnas_profile_json(found);
}

static void profile_free(void *found)
{
    hwnas_profile_free(found);
}

static const hwnas_report_kind report_of_profile = {.text = profile_text,
                                                    .json = profile_json,
                                                    .csv = profile_csv,
                                                    .markdown = profile_markdown,
                                                    .free = profile_free};
static const hwnas_report_kind report_of_layers = {.text = profile_text,
                                                   .json = profile_json,
                                                   .csv = layers_csv,
                                                   .markdown = profile_markdown,
                                                   .free = profile_free};

hwnas_report *hwnas_report_of_profile(hwnas_profile *profile, bool with_layers)
{
    return hwnas_report_new(with_layers ? &report_of_layers : &report_of_profile, profile);
}
