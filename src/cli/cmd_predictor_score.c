/* predictor score: what a predictor says of the networks of a table, as CSV. */
#include <math.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "graph/elaborate.h"
#include "predict/predict.h"
#include "space/table.h"

static hwnas_status print(const hwnas_table *table, const hwnas_estimate *estimates)
{
    hwnas_str text = {0};
    hwnas_str_add(&text, "code,mean,sd\n");
    for (size_t i = 0; i < table->n; i++) {
        char *code = hwnas_arch_code(table->archs[i]);
        hwnas_str_addf(&text, "\"%s\",%.10g,", code, estimates[i].mean);
        if (!isnan(estimates[i].sd))
            hwnas_str_addf(&text, "%.10g", estimates[i].sd);
        hwnas_str_add(&text, "\n");
        free(code);
    }
    return hwnas_print_text(&text);
}

hwnas_status hwnas_cmd_predictor_score(int argc, char **argv)
{
    static const hwnas_usage usage = {
        .synopsis = "predictor score PREDICTOR SPACE DATA.csv",
        .summary = "Prints code, mean and standard deviation for each row of a table, as CSV; no\n"
                   "deviation where none is claimed.",
        .notes = "PREDICTOR is a file, the name of one that ships, table:FILE#COLUMN, proxy:NAME,\n"
                 "onnx:FILE or command:PROGRAM.",
        .min_arguments = 3,
        .max_arguments = 3};
    const char *arguments[3];
    bool done;
    int n;
    const hwnas_option options[] = {{0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, arguments, &n, &done));
    if (done)
        return HWNAS_OK;
    hwnas_status status = HWNAS_OK;
    hwnas_space *space = NULL;
    hwnas_predictor *predictor = NULL;
    hwnas_table *table = NULL;
    hwnas_estimate *estimates = NULL;
    TRY_OUT(hwnas_graph_load_space(&space, arguments[1]));
    TRY_OUT(hwnas_predictor_load(&predictor, arguments[0], space));
    if (hwnas_predictor_heeds_stop(predictor))
        hwnas_predictor_stop_on(predictor, hwnas_stop_on_signals());
    TRY_OUT(hwnas_table_load(&table, space, arguments[2]));
    estimates = hwnas_alloc(table->n * sizeof *estimates);
    TRY_OUT(hwnas_predictor_score(estimates, predictor, (const hwnas_arch *const *)table->archs,
                                  table->n));
    TRY_OUT(print(table, estimates));
out:
    free(estimates);
    hwnas_table_free(table);
    hwnas_predictor_free(predictor);
    hwnas_space_free(space);
    return status;
}
