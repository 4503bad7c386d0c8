/* space: check, count, sample, show. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "graph/elaborate.h"
#include "report/dot.h"
#include "report/network.h"

/* More encodings than this are not built one by one to count the distinct ones. */
#define MAX_ENUMERATED 200000

/* ---- check ---- */

/* A setting may make another network of a space: each of its words is tried, with the others as
 * they are. */
static hwnas_status check_settings(const hwnas_space *space, const char *name)
{
    const char joint = name[hwnas_space_name_length(name)] ? ',' : ':';
    hwnas_status status = HWNAS_OK;
    for (size_t i = 0; i < space->n_settings; i++)
        for (size_t v = 0; v < space->settings[i].n_values && status == HWNAS_OK; v++) {
            char *value = hwnas_value_text(&space->settings[i].values[v]);
            char *variant = hwnas_printf("%s%c%s=%s", name, joint, space->settings[i].name, value);
            hwnas_space *other = NULL;
            status = hwnas_graph_load_space(&other, variant);
            if (status != HWNAS_OK)
                hwnas_context(status, "with %s=%s", space->settings[i].name, value);
            hwnas_space_free(other);
            free(variant);
            free(value);
        }
    return status;
}

static hwnas_status check(int argc, char **argv)
{
    static const hwnas_usage usage = {
        .synopsis = "space check SPACE",
        .summary = "Reads a space and builds some of its networks; says what is wrong and where.",
        .min_arguments = 1,
        .max_arguments = 1};
    const char *name;
    bool as_json = false, done;
    int n;
    const hwnas_option options[] = {
        {"json", 0, HWNAS_OPTION_FLAG, &as_json, NULL, "one JSON object"}, {0}};
    hwnas_space *space;
    TRY(hwnas_options_parse(&usage, options, argc, argv, &name, &n, &done));
    if (done)
        return HWNAS_OK;
    TRY(hwnas_graph_load_space(&space, name));
    hwnas_status status = check_settings(space, name);
    if (status != HWNAS_OK) {
        hwnas_space_free(space);
        return status;
    }
    char *count = hwnas_space_count(space, NULL);
    if (as_json)
        status = hwnas_print_json(json_pack(
            "{s:s, s:i, s:s, s:s, s:I, s:I, s:s}", "format", "hwnas.check", "version", 1, "space",
            space->name, "file", space->path, "choices", (json_int_t)space->n_choices, "positions",
            (json_int_t)space->n_genes, "encodings_exact", count));
    else
        hwnas_say(stdout, "%s: good; %zu choices in %zu positions, %s encodings\n", space->path,
                  space->n_choices, space->n_genes, count);
    free(count);
    hwnas_space_free(space);
    return status;
}

/* ---- count ---- */

static int compare_digests(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(hwnas_digest));
}

/* Number of networks with different graphs, by building every encoding. */
static hwnas_status count_distinct(uint64_t *out, const hwnas_space *space, uint64_t n)
{
    hwnas_status status = HWNAS_OK;
    hwnas_arch *arch = hwnas_arch_first(space);
    hwnas_digest *digests = hwnas_alloc(n * sizeof *digests);
    uint64_t i = 0, distinct = 0;
    do {
        hwnas_graph *graph;
        TRY_OUT(hwnas_graph_build(&graph, arch, 1));
        digests[i++] = hwnas_graph_digest(graph);
        hwnas_graph_free(graph);
    } while (hwnas_arch_next(arch) && i < n);
    qsort(digests, i, sizeof *digests, compare_digests);
    for (uint64_t k = 0; k < i; k++)
        distinct += k == 0 || compare_digests(&digests[k], &digests[k - 1]) != 0;
    *out = distinct;
out:
    free(digests);
    hwnas_arch_free(arch);
    return status;
}

static hwnas_status count(int argc, char **argv)
{
    static const hwnas_usage usage = {
        .synopsis = "space count SPACE",
        .summary = "Counts encodings, and distinct networks where they can be built one by one.",
        .min_arguments = 1,
        .max_arguments = 1};
    const char *name;
    bool as_json = false, done;
    int n;
    const hwnas_option options[] = {
        {"json", 0, HWNAS_OPTION_FLAG, &as_json, NULL, "one JSON object"}, {0}};
    hwnas_space *space;
    TRY(hwnas_options_parse(&usage, options, argc, argv, &name, &n, &done));
    if (done)
        return HWNAS_OK;
    TRY(hwnas_graph_load_space(&space, name));
    hwnas_status status = HWNAS_OK;
    bool is_exact;
    char *encodings = hwnas_space_count(space, &is_exact);
    uint64_t few = hwnas_space_count_up_to(space, MAX_ENUMERATED);
    uint64_t whole = hwnas_space_count_up_to(space, INT64_MAX), distinct = 0;
    if (few)
        TRY_OUT(count_distinct(&distinct, space, few));
    if (as_json) {
        TRY_OUT(hwnas_print_json(
            json_pack("{s:s, s:i, s:s, s:o, s:s, s:b, s:o, s:b}", "format", "hwnas.count",
                      "version", 1, "space", space->name, "encodings",
                      whole ? json_integer((json_int_t)whole) : json_real(atof(encodings)),
                      "encodings_exact", encodings, "encodings_is_exact", is_exact, "distinct",
                      few ? json_integer((json_int_t)distinct) : json_null(), "distinct_is_exact",
                      few != 0)));
    } else if (few) {
        hwnas_say(stdout, "encodings  %s\ndistinct   %llu network%s\n", encodings,
                  (unsigned long long)distinct, distinct == 1 ? "" : "s");
    } else {
        hwnas_say(stdout,
                  "encodings  %s%s (%.2e)\ndistinct   at most as many: too many to build each\n",
                  is_exact ? "" : "at most ", encodings, atof(encodings));
    }
out:
    free(encodings);
    hwnas_space_free(space);
    return status;
}

/* ---- sample ---- */

static hwnas_status sample(int argc, char **argv)
{
    static const hwnas_usage usage = {
        .synopsis = "space sample SPACE",
        .summary = "Prints random architectures, uniform over the encodings, with their costs.",
        .min_arguments = 1,
        .max_arguments = 1};
    const char *name;
    bool as_json = false, done;
    long n_samples = 10, seed = 0;
    int n;
    const hwnas_option options[] = {
        {"number", 'n', HWNAS_OPTION_INT, &n_samples, "N", "how many (10)"},
        {"seed", 0, HWNAS_OPTION_INT, &seed, "N", "another seed, other architectures (0)"},
        {"json", 0, HWNAS_OPTION_FLAG, &as_json, NULL, "one JSON object"},
        {0}};
    hwnas_space *space;
    TRY(hwnas_options_parse(&usage, options, argc, argv, &name, &n, &done));
    if (done)
        return HWNAS_OK;
    TRY(hwnas_graph_load_space(&space, name));
    hwnas_status status = HWNAS_OK;
    hwnas_arch *arch = hwnas_arch_new(space);
    hwnas_rng rng = hwnas_rng_new((uint64_t)seed, 1);
    json_t *archs = json_array();
    for (long i = 0; i < n_samples; i++) {
        hwnas_graph *graph;
        hwnas_costs costs;
        if (!hwnas_arch_sample(arch, &rng)) {
            status = hwnas_space_none_found(space);
            goto out;
        }
        TRY_OUT(hwnas_graph_build(&graph, arch, 1));
        hwnas_graph_costs(&costs, graph);
        hwnas_graph_free(graph);
        char *code = hwnas_arch_code(arch);
        if (as_json)
            json_array_append_new(archs, json_pack("{s:s, s:I, s:I}", "arch", code, "params",
                                                   (json_int_t)costs.params, "macs",
                                                   (json_int_t)costs.macs));
        else
            hwnas_say(stdout, "%s  %.3f M params  %.1f MMACs\n", code, (double)costs.params / 1e6,
                      (double)costs.macs / 1e6);
        free(code);
    }
    if (as_json)
        TRY_OUT(hwnas_print_json(json_pack("{s:s, s:i, s:s, s:O}", "format", "hwnas.sample",
                                           "version", 1, "space", space->name, "archs", archs)));
out:
    json_decref(archs);
    hwnas_arch_free(arch);
    hwnas_space_free(space);
    return status;
}

/* ---- show ---- */

/* The choices of a space: what there is to decide. */
/* "{1 2 3}"; the labels themselves in `json`. */
static char *list_labels(json_t *json, size_t n, const char *const *labels)
{
    hwnas_str text = {0};
    for (size_t v = 0; v < n; v++) {
        hwnas_str_addf(&text, "%s%s", v ? " " : "{", labels[v]);
        json_array_append_new(json, json_string(labels[v]));
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
        char *list = list_labels(labels, gene->n_values, gene->labels);
        while (p + n < choice->n_positions && gene[n].labels == gene->labels)
            n++;
        hwnas_str_addf(text, n > 1 ? "%s%s x %zu" : "%s%s", p ? " " : "", list, n);
        for (size_t i = 0; i < n; i++)
            json_array_append(positions, labels);
        json_decref(labels);
        free(list);
    }
    hwnas_str_add(text, choice->when ? "  (conditional)\n" : "\n");
    return json_pack("{s:s, s:o}", "name", choice->name, "positions", positions);
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

static hwnas_status show_choices(const hwnas_space *space, bool as_json)
{
    hwnas_str text = {0};
    json_t *choices = json_array(), *settings = json_array();
    char *encodings = hwnas_space_count(space, NULL);
    hwnas_str_addf(&text, "%s: %s\n%s encodings\n\n", space->name, space->about ? space->about : "",
                   encodings);
    for (size_t c = 0; c < space->n_choices; c++)
        json_array_append_new(choices, show_choice(&text, space, &space->choices[c]));
    if (space->n_settings)
        hwnas_str_addf(&text, "\nsettings, as in %s:%s=VALUE\n\n", space->name,
                       space->settings[0].name);
    for (size_t i = 0; i < space->n_settings; i++)
        json_array_append_new(settings, show_setting(&text, &space->settings[i]));
    hwnas_str_add(&text, "\n--arch CODE shows one network; 'hwnas space sample' gives codes\n");
    json_t *json =
        json_pack("{s:s, s:i, s:s, s:s?, s:s, s:o, s:o}", "format", "hwnas.space", "version", 1,
                  "space", space->name, "about", space->about, "encodings_exact", encodings,
                  "choices", choices, "settings", settings);
    free(encodings);
    if (as_json) {
        hwnas_str_done(&text);
        return hwnas_print_json(json);
    }
    json_decref(json);
    return hwnas_print_text(&text);
}

enum view { AS_TABLE, AS_JSON, AS_DOT };

static hwnas_status show_network(const hwnas_space *space, const char *code, int batch,
                                 enum view view)
{
    hwnas_status status = HWNAS_OK;
    hwnas_arch *arch = NULL;
    hwnas_graph *graph = NULL;
    if (code)
        TRY_OUT(hwnas_arch_parse(&arch, space, code));
    else
        arch = hwnas_arch_first(space);
    TRY_OUT(hwnas_graph_build(&graph, arch, batch));
    if (view == AS_JSON) {
        json_t *json = hwnas_network_report(graph);
        char *text = hwnas_arch_code(arch);
        json_object_set_new(json, "arch", json_string(text));
        free(text);
        TRY_OUT(hwnas_print_json(json));
    } else {
        hwnas_str text = {0};
        (view == AS_DOT ? hwnas_network_dot : hwnas_network_text)(&text, graph);
        TRY_OUT(hwnas_print_text(&text));
    }
out:
    hwnas_graph_free(graph);
    hwnas_arch_free(arch);
    return status;
}

static hwnas_status show(int argc, char **argv)
{
    static const hwnas_usage usage = {
        .synopsis = "space show SPACE",
        .summary = "Shows what a space lets choose, or one of its networks layer by layer.",
        .min_arguments = 1,
        .max_arguments = 1};
    const char *name, *code = NULL;
    bool as_json = false, as_dot = false, done;
    long batch = 1;
    int n;
    const hwnas_option options[] = {
        {"arch", 'a', HWNAS_OPTION_TEXT, &code, "CODE", "the network to show"},
        {"batch", 'b', HWNAS_OPTION_INT, &batch, "N", "batch size (1)"},
        {"dot", 0, HWNAS_OPTION_FLAG, &as_dot, NULL,
         "the network as a Graphviz graph: | dot -Tsvg >network.svg"},
        {"json", 0, HWNAS_OPTION_FLAG, &as_json, NULL, "one JSON object"},
        {0}};
    hwnas_space *space;
    TRY(hwnas_options_parse(&usage, options, argc, argv, &name, &n, &done));
    if (done)
        return HWNAS_OK;
    if (batch < 1 || batch > 1 << 20)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--batch must be between 1 and %d", 1 << 20);
    if (as_dot && as_json)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--dot and --json exclude each other");
    TRY(hwnas_graph_load_space(&space, name));
    const bool is_fixed = hwnas_space_count_up_to(space, 1) == 1;
    const enum view view = as_dot ? AS_DOT : as_json ? AS_JSON : AS_TABLE;
    hwnas_status status = HWNAS_OK;
    if (code || is_fixed)
        status = show_network(space, code, (int)batch, view);
    else if (as_dot)
        status = hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "--dot shows one network: which?"),
                            "add --arch CODE; 'hwnas space sample %s' gives codes", name);
    else
        status = show_choices(space, as_json);
    hwnas_space_free(space);
    return status;
}

static const hwnas_command commands[] = {
    {"check", "say whether a space is right, and where it is not", check},
    {"count", "count encodings and distinct networks", count},
    {"sample", "print random architectures", sample},
    {"show", "print the choices, or one network layer by layer", show},
    {0},
};

hwnas_status hwnas_cmd_space(int argc, char **argv)
{
    return hwnas_dispatch("hwnas space", "SPACE is a YAML file or the name of a space that ships.",
                          commands, argc, argv);
}
