#include "report/space_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "graph/elaborate.h"
#include "graph/enumerate.h"
#include "trial/metric.h"

/* More encodings than this are not built one by one to count the distinct ones. */
#define MAX_ENUMERATED 200000

/* ---- Choices ---- */

/* "{1 2 3}", of the values that may be chosen; the labels themselves in `json`. */
static char *list_labels(json_t *json, const hwnas_gene *gene)
{
    hwnas_str text = {0};
    for (size_t v = 0; v < gene->n_values; v++) {
        if (!hwnas_gene_keeps(gene, v))
            continue;
        hwnas_str_addf(&text, "%s%s", text.n ? " " : "{", gene->labels[v]);
        json_array_append_new(json, json_string(gene->labels[v]));
    }
    hwnas_str_add(&text, "}");
    return text.s;
}

/* A choice: the labels of each position; positions in a row that have the same are told once. */
static json_t *show_choice(hwnas_str *text, const hwnas_space *space, const hwnas_choice *choice)
{
    json_t *positions = json_array();
    hwnas_str_addf(text, "  %-11s", choice->name);
    for (size_t p = 0, n = 1; p < choice->n_positions; p += n, n = 1) {
        const hwnas_gene *gene = &space->genes[choice->first_gene + p];
        json_t *labels = json_array();
        char *list = list_labels(labels, gene);
        while (p + n < choice->n_positions && gene[n].labels == gene->labels)
            n++;
        hwnas_str_addf(text, n > 1 ? "%s%s x %zu" : "%s%s", p ? " " : "", list, n);
        for (size_t i = 0; i < n; i++)
            json_array_append(positions, labels);
        json_decref(labels);
        free(list);
    }
    hwnas_str_add(text, choice->when ? "  (conditional)\n" : "\n");
    const char separator[2] = {choice->short_labels ? '\0' : choice->separator, '\0'};
    return json_pack("{s:s, s:o, s:s}", "name", choice->name, "positions", positions, "separator",
                     separator);
}

static json_t *show_setting(hwnas_str *text, const hwnas_setting *setting)
{
    char *value = hwnas_value_text(&setting->value);
    json_t *json = json_pack("{s:s, s:s}", "name", setting->name, "value", value);
    hwnas_str_addf(text, "  %-11s%s", setting->name, value);
    for (size_t i = 0; i < setting->n_values; i++) {
        char *one = hwnas_value_text(&setting->values[i]);
        hwnas_str_addf(text, "%s%s%s", i ? " " : " of {", one,
                       i + 1 < setting->n_values ? "" : "}");
        free(one);
    }
    hwnas_str_add(text, "\n");
    free(value);
    return json;
}

void hwnas_space_tell_choices(hwnas_rendering *out, const hwnas_space *space)
{
    json_t *choices = json_array(), *settings = json_array();
    char *encodings = hwnas_space_count(space, NULL);
    hwnas_str_addf(&out->text, "%s: %s\n%s encodings\n\n", space->name,
                   space->about ? space->about : "", encodings);
    for (size_t c = 0; c < space->n_choices; c++)
        json_array_append_new(choices, show_choice(&out->text, space, &space->choices[c]));
    if (space->n_settings)
        hwnas_str_addf(&out->text, "\nsettings, as in %s:%s=VALUE\n\n", space->name,
                       space->settings[0].name);
    for (size_t i = 0; i < space->n_settings; i++)
        json_array_append_new(settings, show_setting(&out->text, &space->settings[i]));
    hwnas_str_add(&out->text,
                  "\n--arch CODE shows one network; 'hwnas space sample' gives codes\n");
    out->json = json_pack("{s:s, s:i, s:s, s:s?, s:s, s:o, s:o}", "format", "hwnas.space",
                          "version", 1, "space", space->name, "about", space->about,
                          "encodings_exact", encodings, "choices", choices, "settings", settings);
    free(encodings);
}

/* ---- Numbers ---- */

void hwnas_space_tell_size(hwnas_rendering *out, const hwnas_space *space)
{
    char *count = hwnas_space_count(space, NULL);
    out->json = json_pack("{s:s, s:i, s:s, s:s, s:I, s:I, s:s}", "format", "hwnas.check", "version",
                          1, "space", space->name, "file", space->path, "choices",
                          (json_int_t)space->n_choices, "positions", (json_int_t)space->n_genes,
                          "encodings_exact", count);
    hwnas_str_addf(&out->text, "%s: good; %zu choice%s in %zu position%s, %s encoding%s\n",
                   space->path, space->n_choices, space->n_choices == 1 ? "" : "s", space->n_genes,
                   space->n_genes == 1 ? "" : "s", count, strcmp(count, "1") ? "s" : "");
    free(count);
}

hwnas_status hwnas_space_tell_count(hwnas_rendering *out, const hwnas_space *space)
{
    hwnas_status status = HWNAS_OK;
    bool is_exact;
    char *encodings = hwnas_space_count(space, &is_exact);
    const uint64_t few = hwnas_space_count_up_to(space, MAX_ENUMERATED),
                   whole = hwnas_space_count_up_to(space, INT64_MAX);
    uint64_t distinct = 0;
    if (few)
        TRY_OUT(hwnas_graph_count_distinct(&distinct, space, few));
    out->json = json_pack("{s:s, s:i, s:s, s:o, s:s, s:b, s:o, s:b}", "format", "hwnas.count",
                          "version", 1, "space", space->name, "encodings",
                          whole ? json_integer((json_int_t)whole) : json_real(atof(encodings)),
                          "encodings_exact", encodings, "encodings_is_exact", is_exact, "distinct",
                          few ? json_integer((json_int_t)distinct) : json_null(),
                          "distinct_is_exact", few != 0);
    if (few)
        hwnas_str_addf(&out->text, "encodings  %s\ndistinct   %llu network%s\n", encodings,
                       (unsigned long long)distinct, distinct == 1 ? "" : "s");
    else
        hwnas_str_addf(&out->text,
                       "encodings  %s%s (%.2e)\ndistinct   at most as many: too many to build "
                       "each\n",
                       is_exact ? "" : "at most ", encodings, atof(encodings));
out:
    free(encodings);
    return status;
}

/* ---- Samples ---- */

static hwnas_status tell_network(hwnas_rendering *out, json_t *archs, const hwnas_arch *arch)
{
    hwnas_graph *graph;
    hwnas_costs costs;
    TRY(hwnas_graph_build(&graph, arch, 1));
    hwnas_graph_costs(&costs, graph);
    hwnas_graph_free(graph);
    char *code = hwnas_arch_code(arch);
    json_array_append_new(archs,
                          json_pack("{s:s, s:I, s:I}", "arch", code, "params",
                                    (json_int_t)costs.params, "macs", (json_int_t)costs.macs));
    const hwnas_metric params =
        hwnas_metric_shown(hwnas_metric_of(HWNAS_PARAMS), (double)costs.params);
    const hwnas_metric macs = hwnas_metric_shown(hwnas_metric_of(HWNAS_MACS), (double)costs.macs);
    hwnas_str_addf(&out->text, "%s  %.*f %s  %.*f %s\n", code, params.decimals,
                   (double)costs.params / params.scale, params.title, macs.decimals,
                   (double)costs.macs / macs.scale, macs.title);
    free(code);
    return HWNAS_OK;
}

hwnas_status hwnas_space_tell_sample(hwnas_rendering *out, const hwnas_space *space, size_t n,
                                     uint64_t seed)
{
    hwnas_status status = HWNAS_OK;
    hwnas_arch *arch = hwnas_arch_new(space);
    hwnas_rng rng = hwnas_rng_new(seed, 1);
    json_t *archs = json_array();
    out->json = json_pack("{s:s, s:i, s:s, s:o}", "format", "hwnas.sample", "version", 1, "space",
                          space->name, "archs", archs);
    for (size_t i = 0; i < n; i++) {
        if (!hwnas_arch_sample(arch, &rng)) {
            status = hwnas_space_none_found(space);
            break;
        }
        TRY_OUT(tell_network(out, archs, arch));
    }
out:
    hwnas_arch_free(arch);
    return status;
}
