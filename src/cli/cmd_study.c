/* study: looks at a study without changing it. */
#include "cli/cli.h"
#include "report/front.h"
#include "store/store.h"

static hwnas_status show(int argc, char **argv)
{
    static const hwnas_usage usage = {.synopsis = "study show STUDY",
                                      .summary =
                                          "Prints what a study has found so far; it may still run.",
                                      .min_arguments = 1,
                                      .max_arguments = 1};
    const char *path;
    bool as_json = false, done;
    int n;
    const hwnas_option options[] = {
        {"json", 0, HWNAS_OPTION_FLAG, &as_json, NULL, "one JSON object"}, {0}};
    hwnas_store *store;
    hwnas_summary *summary;
    TRY(hwnas_options_parse(&usage, options, argc, argv, &path, &n, &done));
    if (done)
        return HWNAS_OK;
    TRY(hwnas_store_open(&store, path, HWNAS_STORE_READ));
    hwnas_status status = hwnas_summary_load(&summary, store, path);
    hwnas_store_close(store);
    TRY(status);
    if (as_json) {
        status = hwnas_print_json(hwnas_front_json(summary));
    } else {
        hwnas_str text = {0};
        hwnas_front_text(&text, summary);
        status = hwnas_print_text(&text);
    }
    hwnas_summary_free(summary);
    return status;
}

static const hwnas_command commands[] = {
    {"show", "print front, winner and figures of a study", show},
    {0},
};

hwnas_status hwnas_cmd_study(int argc, char **argv)
{
    return hwnas_dispatch("hwnas study", "STUDY is the SQLite file of a search.", commands, argc,
                          argv);
}
