/* space: check, count, sample, show. */
#include <string.h>

#include "cli/cli.h"

/* Prints the report, if there is one by `status`, and closes what it was made of. */
static hwnas_status print_and_close(hwnas_status status, hwnas_report *report, hwnas_format format,
                                    hwnas_space *space)
{
    if (status == HWNAS_OK)
        status = hwnas_print_report(report, format);
    hwnas_space_close(space);
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
    hwnas_report *report = NULL;
    TRY(hwnas_options_parse(&usage, options, argc, argv, &name, &n, &done));
    if (done)
        return HWNAS_OK;
    TRY(hwnas_space_validate(&report, name));
    return hwnas_print_report(report, as_json ? HWNAS_JSON : HWNAS_TEXT);
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
    hwnas_report *report = NULL;
    TRY(hwnas_options_parse(&usage, options, argc, argv, &name, &n, &done));
    if (done)
        return HWNAS_OK;
    TRY(hwnas_space_open(&space, name));
    hwnas_status status = hwnas_space_count_networks(&report, space);
    return print_and_close(status, report, as_json ? HWNAS_JSON : HWNAS_TEXT, space);
}

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
    hwnas_report *report = NULL;
    TRY(hwnas_options_parse(&usage, options, argc, argv, &name, &n, &done));
    if (done)
        return HWNAS_OK;
    TRY(hwnas_space_open(&space, name));
    hwnas_status status =
        hwnas_space_sample_networks(&report, space, (size_t)n_samples, (uint64_t)seed);
    return print_and_close(status, report, as_json ? HWNAS_JSON : HWNAS_TEXT, space);
}

/* ---- show ---- */

/* It leaves no choice. */
static bool is_fixed(const hwnas_space *space)
{
    char *count = hwnas_space_count(space, NULL);
    const bool is_one = !strcmp(count, "1");
    hwnas_free(count);
    return is_one;
}

static hwnas_status show_network(hwnas_space *space, const char *code, int batch,
                                 hwnas_format format)
{
    hwnas_network_options options = HWNAS_NETWORK_OPTIONS_INIT;
    hwnas_network *network = NULL;
    hwnas_report *report = NULL;
    options.batch = batch;
    hwnas_status status = hwnas_network_open_in(&network, space, code, &options);
    if (status == HWNAS_OK)
        status = hwnas_network_report(&report, network);
    if (status == HWNAS_OK)
        status = hwnas_print_report(report, format);
    hwnas_network_close(network);
    hwnas_space_close(space);
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
    hwnas_report *report = NULL;
    TRY(hwnas_options_parse(&usage, options, argc, argv, &name, &n, &done));
    if (done)
        return HWNAS_OK;
    if (batch < 1 || batch > 1 << 20)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--batch must be between 1 and %d", 1 << 20);
    if (as_dot && as_json)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--dot and --json exclude each other");
    const hwnas_format format = as_dot ? HWNAS_DOT : as_json ? HWNAS_JSON : HWNAS_TEXT;
    TRY(hwnas_space_open(&space, name));
    if (code || is_fixed(space))
        return show_network(space, code, (int)batch, format);
    hwnas_status status =
        as_dot ? hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "--dot shows one network: which?"),
                            "add --arch CODE; 'hwnas space sample %s' gives codes", name)
               : hwnas_space_report(&report, space);
    return print_and_close(status, report, format, space);
}

/* ---- derive ---- */

static hwnas_status derive(int argc, char **argv)
{
    static const hwnas_usage usage = {
        .synopsis = "space derive MODEL.onnx --out SPACE.yaml",
        .summary = "Writes a space whose first network is a model, and whose choices are what can "
                   "change in it.",
        .notes = "Channels that can only go together are one choice.",
        .min_arguments = 1,
        .max_arguments = 1};
    const char *model, *path = NULL;
    bool as_json = false, done;
    int n;
    const hwnas_option options[] = {
        {"out", 'o', HWNAS_OPTION_TEXT, &path, "FILE", "the YAML file"},
        {"json", 0, HWNAS_OPTION_FLAG, &as_json, NULL, "one JSON object"},
        {0}};
    hwnas_report *report = NULL;
    TRY(hwnas_options_parse(&usage, options, argc, argv, &model, &n, &done));
    if (done)
        return HWNAS_OK;
    if (!path)
        return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "--out is needed"),
                          "hwnas space derive model.onnx --out mine.yaml");
    TRY(hwnas_space_derive(path, model));
    TRY(hwnas_space_validate(&report, path));
    return hwnas_print_report(report, as_json ? HWNAS_JSON : HWNAS_TEXT);
}

static const hwnas_command commands[] = {
    {"check", "say whether a space is right, and where it is not", check},
    {"count", "count encodings and distinct networks", count},
    {"derive", "make a space of a trained model", derive},
    {"sample", "print random architectures", sample},
    {"show", "print the choices, or one network layer by layer", show},
    {0},
};

hwnas_status hwnas_cmd_space(int argc, char **argv)
{
    return hwnas_dispatch("hwnas space", "SPACE is a YAML file or the name of a space that ships.",
                          commands, argc, argv);
}
