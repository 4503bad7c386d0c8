/* predictor import: takes in results that were filled into a table of suggestions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/csv.h"
#include "cli/cli.h"
#include "graph/elaborate.h"
#include "predict/import.h"

/* The space that the table itself names. */
static hwnas_status read_space(char **out, const char *path)
{
    hwnas_csv *csv;
    TRY(hwnas_csv_load(&csv, path));
    long column = hwnas_csv_column(csv, "space");
    hwnas_place place = {.file = path, .line = 1};
    hwnas_status status = HWNAS_OK;
    if (column < 0)
        status = hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place,
                                       "no column 'space' says of which "
                                       "space the networks are"),
                            "add --space SPACE");
    for (size_t row = 1; status == HWNAS_OK && row < csv->n_rows; row++)
        if (strcmp(hwnas_csv_cell(csv, row, (size_t)column),
                   hwnas_csv_cell(csv, 0, (size_t)column))) {
            place.line = csv->lines[row];
            status = hwnas_hint(
                hwnas_fail(HWNAS_E_INPUT, &place, "this row is of another space than the first"),
                "tell the results of each space by themselves");
        }
    if (status == HWNAS_OK)
        *out = hwnas_strdup(hwnas_csv_cell(csv, 0, (size_t)column));
    hwnas_csv_free(csv);
    return status;
}

static hwnas_status print(const hwnas_import_result *told, const char *into, const char *space,
                          const char *target, bool as_json)
{
    if (as_json)
        return hwnas_print_json(json_pack(
            "{s:s, s:i, s:s, s:I, s:I, s:I, s:I}", "format", "hwnas.import", "version", 1, "file",
            into, "taken", (json_int_t)told->n_taken, "known", (json_int_t)told->n_known, "empty",
            (json_int_t)told->n_empty, "networks", (json_int_t)told->n_networks));
    hwnas_say(
        stdout,
        "%s: %zu results taken, %zu known before, %zu not filled in; it has %zu networks now\n",
        into, told->n_taken, told->n_known, told->n_empty, told->n_networks);
    hwnas_say(stdout, "then: hwnas predictor fit %s %s --target %s --out NAME.json\n", space, into,
              target);
    return HWNAS_OK;
}

hwnas_status hwnas_cmd_predictor_import(int argc, char **argv)
{
    static const hwnas_usage usage = {
        .synopsis = "predictor import FILE.csv",
        .summary = "Takes the results of trained networks into a file that 'predictor fit' reads.",
        .notes = "FILE is the table that 'predictor suggest' wrote, with results filled in; rows\n"
                 "without one wait. A column 'sd' may give the deviation of a result.",
        .min_arguments = 1,
        .max_arguments = 1};
    hwnas_import_options tell = {.target = "accuracy_pct"};
    const char *space_given = NULL, *into = NULL, *printed = NULL;
    bool as_json = false, done;
    int n;
    const hwnas_option options[] = {
        {"into", 'i', HWNAS_OPTION_TEXT, &into, "FILE.csv",
         "results of all rounds (SPACE.results.csv)"},
        {"space", 0, HWNAS_OPTION_TEXT, &space_given, "SPACE", "where the table does not name it"},
        {"target", 't', HWNAS_OPTION_TEXT, &tell.target, "COLUMN",
         "the result's column (accuracy_pct)"},
        {"printed", 0, HWNAS_OPTION_TEXT, &printed, "UNIT", "percent or fraction, of an accuracy"},
        {"json", 0, HWNAS_OPTION_FLAG, &as_json, NULL, "print one JSON object"},
        {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, &tell.data, &n, &done));
    if (done)
        return HWNAS_OK;
    if (printed && !(tell.printed = hwnas_printed_of(printed)))
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--printed is percent or fraction, not '%s'",
                          printed);
    hwnas_status status = HWNAS_OK;
    hwnas_space *space = NULL;
    hwnas_import_result told;
    char *name = NULL, *standard = NULL;
    if (space_given)
        name = hwnas_strdup(space_given);
    else
        TRY_OUT(read_space(&name, tell.data));
    TRY_OUT(hwnas_graph_load_space(&space, name));
    standard = hwnas_printf("%s.results.csv", space->name);
    tell.into = into ? into : standard;
    TRY_OUT(hwnas_import(&told, space, &tell));
    TRY_OUT(print(&told, tell.into, name, tell.target, as_json));
out:
    free(standard);
    free(name);
    hwnas_space_free(space);
    return status;
}
