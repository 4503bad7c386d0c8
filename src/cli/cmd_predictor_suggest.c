/* predictor suggest: networks to train, as files to train from and a table to fill in. */
#include <hwnas/training.h>

#include "cli/cli.h"

hwnas_status hwnas_cmd_predictor_suggest(int argc, char **argv)
{
    static const hwnas_usage usage = {
        .synopsis = "predictor suggest SPACE",
        .summary =
            "Picks the networks of a space whose training would teach most about the others,\n"
            "and writes them as ONNX, PyTorch and YAML with a table to fill in; without\n"
            "--out it prints the table.",
        .notes = "hwnas predictor suggest nas_bench_201 -n 20 --out first\n"
                 "hwnas predictor import first/results.csv",
        .min_arguments = 1,
        .max_arguments = 1};
    hwnas_suggestion_options suggestion = HWNAS_SUGGESTION_OPTIONS_INIT;
    hwnas_report *report;
    const char *space;
    long n = 20, seed = 0, pool = 0;
    bool as_json = false, done;
    int n_arguments;
    const hwnas_option options[] = {
        {"number", 'n', HWNAS_OPTION_INT, &n, "N", "how many networks (20)"},
        {"out", 'o', HWNAS_OPTION_TEXT, &suggestion.folder, "DIR", "directory to make"},
        {"data", 0, HWNAS_OPTION_TEXT, &suggestion.data, "FILE.csv",
         "networks with results already"},
        {"target", 't', HWNAS_OPTION_TEXT, &suggestion.target, "COLUMN",
         "the result's column (accuracy_pct)"},
        {"proxy", 0, HWNAS_OPTION_TEXT, &suggestion.proxy, "NAME",
         "spread over this proxy as well"},
        {"pool", 0, HWNAS_OPTION_INT, &pool, "N", "networks to pick from (500)"},
        {"seed", 0, HWNAS_OPTION_INT, &seed, "N", "of the networks to pick from (0)"},
        {"json", 0, HWNAS_OPTION_FLAG, &as_json, NULL, "one JSON object"},
        {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, &space, &n_arguments, &done));
    if (done)
        return HWNAS_OK;
    if (n < 1 || n > 1000)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "-n must be between 1 and 1000");
    if (pool > 5000)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--pool must be at most 5000");
    suggestion.n = (size_t)n;
    suggestion.pool = (size_t)pool;
    suggestion.seed = (uint64_t)seed;
    TRY(hwnas_space_suggest(&report, space, &suggestion));
    return hwnas_print_report(report, as_json             ? HWNAS_JSON
                                      : suggestion.folder ? HWNAS_TEXT
                                                          : HWNAS_CSV);
}
