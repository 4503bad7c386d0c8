/* explain: why a search came to a network, and what stands beside it. */
#include "cli/cli.h"
#include "report/explain_text.h"
#include "store/store.h"

static const hwnas_usage usage = {
    .synopsis = "explain STUDY",
    .summary = "Says why a network of a study stands where it does: its neighbours one change away, which\n"
               "choice costs what, and what a looser limit would buy.",
    .notes = "Neighbours that the study measured are told with their trial. Of the others, latencies are\n"
             "estimated from what it measured (marked ~), and nothing is run.",
    .min_arguments = 1,
    .max_arguments = 1};

hwnas_status hwnas_cmd_explain(int argc, char **argv)
{
    const char *path;
    bool as_json = false, done;
    long trial = -1;
    int n;
    const hwnas_option options[] = {
        {"trial", 0, HWNAS_OPTION_INT, &trial, "N", "this trial (the winner)"},
        {"json", 0, HWNAS_OPTION_FLAG, &as_json, NULL, "one JSON object"},
        {0}};
    hwnas_status status = HWNAS_OK;
    hwnas_store *store = NULL;
    hwnas_summary *summary = NULL;
    hwnas_explanation explanation = {0};
    TRY(hwnas_options_parse(&usage, options, argc, argv, &path, &n, &done));
    if (done)
        return HWNAS_OK;
    TRY_OUT(hwnas_store_open(&store, path, HWNAS_STORE_READ));
    TRY_OUT(hwnas_summary_load(&summary, store, path));
    TRY_OUT(hwnas_explain(&explanation, summary, trial));
    if (as_json) {
        status = hwnas_print_json(hwnas_explain_json(&explanation));
    } else {
        hwnas_str text = {0};
        hwnas_explain_text(&text, &explanation);
        status = hwnas_print_text(&text);
    }
out:
    hwnas_explanation_done(&explanation);
    hwnas_summary_free(summary);
    hwnas_store_close(store);
    return status;
}
