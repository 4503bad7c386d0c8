/* cmd_forecast.c: what a device makes of a model: its steps and its memory. Compiles, runs nothing, so it
 * says what a GPU would do that is not here (cuda-dry). */
#include <stdlib.h>

#include "cli/cli.h"
#include "device/device.h"
#include "graph/op.h"
#include "profile/model_load.h"
#include "report/grid.h"

#define MEBI 1048576.0

static const hwnas_usage usage = {
    .synopsis = "forecast MODEL",
    .summary = "Compiles a model for a device and tells the steps and the memory; runs nothing.",
    .notes =
        "MODEL is an ONNX file, a YAML file, or the name of a space or of a network of the zoo.\n"
        "hwnas forecast resnet50 --device cuda-dry:h200 --batch 32 --dtype f16\n"
        "hwnas forecast vit_b16 --device cuda-dry:l4 --steps",
    .min_arguments = 1,
    .max_arguments = 1};

typedef struct forecast {
    const char *model, *device_name;
    hwnas_graph *graph; /* as it is compiled */
    hwnas_device *device;
    hwnas_exec *exec;
    hwnas_device_info info;
    hwnas_footprint footprint;
    size_t n_steps;
    const hwnas_exec_step *steps;
} forecast;

static void forecast_done(forecast *p)
{
    hwnas_exec_free(p->exec);
    hwnas_device_close(p->device);
    hwnas_graph_free(p->graph);
}

static hwnas_status make(forecast *p, const char *code, int batch, const hwnas_exec_options *options)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_device_options device_options = {0};
    hwnas_graph *raw = NULL;
    TRY_OUT(hwnas_model_load(&raw, p->model, code, batch, NULL));
    TRY_OUT(hwnas_graph_fold(&p->graph, raw));
    TRY_OUT(hwnas_device_open(&p->device, p->device_name, &device_options));
    p->device->ops->describe(p->device, &p->info);
    TRY_OUT(hwnas_device_compile(&p->exec, p->device, p->graph, options));
    if (!p->exec->ops->steps || !p->exec->ops->footprint)
        TRY_OUT(hwnas_hint(hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                                      "the device '%s' does not tell what it is going to do",
                                      p->exec->ops->name),
                           "cuda-dry and cuda do"));
    p->exec->ops->footprint(p->exec, &p->footprint);
    p->n_steps = p->exec->ops->steps(p->exec, &p->steps);
out:
    hwnas_graph_free(raw);
    return status;
}

/* "conv, relu, add"; a step without nodes converts types or layouts. */
static void add_operators(hwnas_str *out, const forecast *p, const hwnas_exec_step *step)
{
    if (!step->n_nodes)
        hwnas_str_add(out, "conversion");
    for (size_t i = 0; i < step->n_nodes; i++)
        hwnas_str_addf(out, "%s%s", i ? ", " : "", p->graph->nodes[step->nodes[i]].op->name);
}

static void add_steps(hwnas_str *out, const forecast *p)
{
    hwnas_grid grid = {0};
    hwnas_grid_column(&grid, "step", HWNAS_GRID_RIGHT);
    hwnas_grid_column(&grid, "by", HWNAS_GRID_LEFT);
    hwnas_grid_column(&grid, "operators", HWNAS_GRID_LEFT);
    hwnas_grid_column(&grid, "layer", HWNAS_GRID_LEFT);
    for (size_t i = 0; i < p->n_steps; i++) {
        hwnas_str operators = {0};
        const hwnas_exec_step *step = &p->steps[i];
        add_operators(&operators, p, step);
        hwnas_grid_cell(&grid, "%zu", i + 1);
        hwnas_grid_cell(&grid, "%s", step->how);
        hwnas_grid_cell(&grid, "%s", operators.s);
        hwnas_grid_cell(&grid, "%s", step->n_nodes ? p->graph->nodes[step->nodes[0]].name : "");
        hwnas_str_done(&operators);
    }
    hwnas_grid_text(out, &grid);
    hwnas_grid_done(&grid);
    hwnas_str_add(out, "\n");
}

static size_t all_bytes(const hwnas_footprint *f)
{
    return f->weight_bytes + f->activation_bytes + f->workspace_bytes + f->buffer_bytes;
}

static hwnas_status print_text(const forecast *p, bool with_steps)
{
    const hwnas_footprint *f = &p->footprint;
    hwnas_str text = {0};
    if (with_steps)
        add_steps(&text, p);
    hwnas_str_addf(&text, "%s on %s (%s%s%s): would run\n", p->model, p->info.name,
                   p->info.library, *p->info.isa ? ", " : "", p->info.isa);
    hwnas_str_addf(&text, "  steps        %zu: %zu by the library, %zu by kernels of our own\n",
                   f->n_steps, f->n_library, f->n_own);
    const struct {
        const char *name;
        size_t bytes;
    } rows[] = {{"weights", f->weight_bytes},     {"activations", f->activation_bytes},
                {"workspace", f->workspace_bytes}, {"buffers", f->buffer_bytes},
                {"together", all_bytes(f)}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        hwnas_str_addf(&text, "  %-12s %.1f MiB\n", rows[i].name, (double)rows[i].bytes / MEBI);
    if (f->device_bytes)
        hwnas_str_addf(&text, "  fits         in %.0f MiB: %.1f %% of them\n",
                       (double)f->device_bytes / MEBI,
                       100 * (double)all_bytes(f) / (double)f->device_bytes);
    return hwnas_print_text(&text);
}

static json_t *steps_json(const forecast *p)
{
    json_t *steps = json_array();
    for (size_t i = 0; i < p->n_steps; i++) {
        json_t *nodes = json_array();
        for (size_t k = 0; k < p->steps[i].n_nodes; k++)
            json_array_append_new(nodes,
                                  json_string(p->graph->nodes[p->steps[i].nodes[k]].name));
        json_array_append_new(steps, json_pack("{s:s, s:o}", "how", p->steps[i].how, "nodes",
                                               nodes));
    }
    return steps;
}

static hwnas_status print_json(const forecast *p)
{
    const hwnas_footprint *f = &p->footprint;
    return hwnas_print_json(json_pack(
        "{s:s, s:i, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "format",
        "hwnas.forecast", "version", 1, "model", p->model, "device", p->device_name, "description",
        p->info.name, "library", p->info.library, "library_steps", (json_int_t)f->n_library,
        "own_steps", (json_int_t)f->n_own, "weight_bytes", (json_int_t)f->weight_bytes,
        "activation_bytes", (json_int_t)f->activation_bytes, "workspace_bytes",
        (json_int_t)f->workspace_bytes, "buffer_bytes", (json_int_t)f->buffer_bytes,
        "device_bytes", (json_int_t)f->device_bytes, "steps", steps_json(p)));
}

hwnas_status hwnas_cmd_forecast(int argc, char **argv)
{
    forecast p = {.device_name = "cuda-dry:h200"};
    const char *code = NULL, *precision = "f32";
    long batch = 1;
    bool as_json = false, with_steps = false, done;
    int n;
    hwnas_exec_options exec = {0};
    const hwnas_option options[] = {
        {"arch", 'a', HWNAS_OPTION_TEXT, &code, "CODE", "which network of a space"},
        {"device", 'd', HWNAS_OPTION_TEXT, &p.device_name, "DEVICE", "for what (cuda-dry:h200)"},
        {"batch", 'b', HWNAS_OPTION_INT, &batch, "N", "batch size (1)"},
        {"dtype", 0, HWNAS_OPTION_TEXT, &precision, "TYPE", "f32, tf32, bf16 or f16 (f32)"},
        {"steps", 's', HWNAS_OPTION_FLAG, &with_steps, NULL, "list the steps"},
        {"json", 0, HWNAS_OPTION_FLAG, &as_json, NULL, "one JSON object"},
        {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, &p.model, &n, &done));
    if (done)
        return HWNAS_OK;
    if (batch < 1 || batch > 1 << 20)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--batch is 1 to %d", 1 << 20);
    TRY(hwnas_precision_find(&exec.precision, precision));
    hwnas_status status = make(&p, code, (int)batch, &exec);
    if (status == HWNAS_OK)
        status = as_json ? print_json(&p) : print_text(&p, with_steps);
    forecast_done(&p);
    return status;
}
