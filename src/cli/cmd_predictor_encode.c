/* predictor encode: the networks of a table as vectors, to fit a model of one's own on. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "graph/elaborate.h"
#include "predict/vector.h"
#include "space/table.h"

static hwnas_status find_layout(const hwnas_vector_layout **out, const char *name)
{
    const char *names[8] = {0};
    for (int i = 0; hwnas_vector_layouts[i].name; i++) {
        names[i] = hwnas_vector_layouts[i].name;
        if (strcmp(names[i], name))
            continue;
        *out = &hwnas_vector_layouts[i];
        return HWNAS_OK;
    }
    const char *near = hwnas_nearest(name, names);
    return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "there is no layout '%.60s'", name),
                      "did you mean '%s'?", near ? near : names[0]);
}

static hwnas_status print(const hwnas_table *table, const hwnas_space *space,
                          const hwnas_vector_layout *layout)
{
    hwnas_vector *vector = hwnas_vector_new(layout, space);
    float *values = hwnas_alloc((vector->n + 1) * sizeof *values);
    hwnas_str text = {0};
    hwnas_str_add(&text, "code");
    for (size_t i = 0; i < vector->n; i++)
        hwnas_str_addf(&text, ",%s", vector->columns[i].name);
    hwnas_str_add(&text, "\n");
    for (size_t row = 0; row < table->n; row++) {
        char *code = hwnas_arch_code(table->archs[row]);
        hwnas_str_addf(&text, "\"%s\"", code);
        free(code);
        hwnas_vector_fill(values, vector, table->archs[row]);
        for (size_t i = 0; i < vector->n; i++)
            hwnas_str_addf(&text, ",%.9g", values[i]);
        hwnas_str_add(&text, "\n");
    }
    free(values);
    hwnas_vector_free(vector);
    return hwnas_print_text(&text);
}

hwnas_status hwnas_cmd_predictor_encode(int argc, char **argv)
{
    static const hwnas_usage usage = {
        .synopsis = "predictor encode SPACE DATA.csv",
        .summary = "Prints each network of a table as a vector, as CSV: the input of onnx:FILE.",
        .notes = "Layouts: one-hot (a 1 among 0s for each value), values (the values themselves).",
        .min_arguments = 2,
        .max_arguments = 2};
    const char *arguments[2], *name = "one-hot";
    bool done;
    int n;
    const hwnas_option options[] = {
        {"layout", 'l', HWNAS_OPTION_TEXT, &name, "NAME", "one-hot (the default) or values"}, {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, arguments, &n, &done));
    if (done)
        return HWNAS_OK;
    hwnas_status status = HWNAS_OK;
    const hwnas_vector_layout *layout = NULL;
    hwnas_space *space = NULL;
    hwnas_table *table = NULL;
    TRY_OUT(find_layout(&layout, name));
    TRY_OUT(hwnas_graph_load_space(&space, arguments[0]));
    TRY_OUT(hwnas_table_load(&table, space, arguments[1]));
    TRY_OUT(print(table, space, layout));
out:
    hwnas_table_free(table);
    hwnas_space_free(space);
    return status;
}
