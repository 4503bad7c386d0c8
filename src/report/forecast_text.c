#include "report/forecast_text.h"

#include <string.h>

#include "graph/op.h"
#include "report/grid.h"

#define KIBI 1024.0
#define MEBI 1048576.0

/* "conv, relu, add"; a step without nodes converts types or layouts. */
static void add_operators(hwnas_str *out, const hwnas_forecast *p, const hwnas_exec_step *step)
{
    if (!step->n_nodes)
        hwnas_str_add(out, "conversion");
    for (size_t i = 0; i < step->n_nodes; i++)
        hwnas_str_addf(out, "%s%s", i ? ", " : "", p->graph->nodes[step->nodes[i]].op->name);
}

static void add_steps(hwnas_str *out, const hwnas_forecast *p)
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

/* How many steps are computed in each way that is known to be slow. */
static void add_slow(hwnas_str *out, const hwnas_forecast *p)
{
    for (size_t i = 0; i < p->n_steps; i++) {
        const char *how = p->steps[i].how;
        size_t n = 0, before = 0;
        for (size_t k = 0; k < p->n_steps; k++)
            if (!strcmp(p->steps[k].how, how)) {
                n++;
                before += k < i;
            }
        if (strchr(how, ',') && !before)
            hwnas_str_addf(out, "! %zu of the steps by '%s': slow%s\n", n, how,
                           p->with_steps ? "" : "; --steps tells which");
    }
    if (p->precision == HWNAS_F32 && hwnas_device_exact_is_slow(&p->info))
        hwnas_str_addf(out, "! " HWNAS_EXACT_IS_SLOW "\n", "--dtype");
}

static size_t all_bytes(const hwnas_footprint *f)
{
    return f->weight_bytes + f->activation_bytes + f->workspace_bytes + f->buffer_bytes;
}

/* So that it would be 0.0 MiB, or one digit of it. */
static bool is_small(size_t bytes)
{
    return bytes > 0 && (double)bytes < 0.95 * MEBI;
}

void hwnas_forecast_text(hwnas_str *out, const hwnas_forecast *p)
{
    const hwnas_footprint *f = &p->footprint;
    if (p->with_steps)
        add_steps(out, p);
    hwnas_str_addf(out, "%s on %s (%s%s%s): would run\n", p->model, p->info.name, p->info.library,
                   *p->info.isa ? ", " : "", p->info.isa);
    hwnas_str_addf(out, "  steps        %zu: %zu by the library, %zu by kernels of our own\n",
                   f->n_steps, f->n_library, f->n_own);
    if (f->n_lookups)
        hwnas_str_addf(out, "  plans        %zu: %zu were kept from before\n", f->n_lookups,
                       f->n_hits);
    const struct {
        const char *name;
        size_t bytes;
    } rows[] = {{"weights", f->weight_bytes},
                {"activations", f->activation_bytes},
                {"workspace", f->workspace_bytes},
                {"buffers", f->buffer_bytes},
                {"together", all_bytes(f)}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        hwnas_str_addf(out, "  %-12s %.1f %s\n", rows[i].name,
                       (double)rows[i].bytes / (is_small(rows[i].bytes) ? KIBI : MEBI),
                       is_small(rows[i].bytes) ? "KiB" : "MiB");
    if (f->device_bytes)
        hwnas_str_addf(out, "  fits         in %.0f MiB: %.1f %% of them\n",
                       (double)f->device_bytes / MEBI,
                       100 * (double)all_bytes(f) / (double)f->device_bytes);
    add_slow(out, p);
}

static json_t *steps_json(const hwnas_forecast *p)
{
    json_t *steps = json_array();
    for (size_t i = 0; i < p->n_steps; i++) {
        json_t *nodes = json_array();
        for (size_t k = 0; k < p->steps[i].n_nodes; k++)
            json_array_append_new(nodes, json_string(p->graph->nodes[p->steps[i].nodes[k]].name));
        json_array_append_new(steps,
                              json_pack("{s:s, s:o}", "how", p->steps[i].how, "nodes", nodes));
    }
    return steps;
}

json_t *hwnas_forecast_json(const hwnas_forecast *p)
{
    const hwnas_footprint *f = &p->footprint;
    return json_pack(
        "{s:s, s:i, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}",
        "format", "hwnas.forecast", "version", 1, "model", p->model, "device", p->device_name,
        "description", p->info.name, "library", p->info.library, "library_steps",
        (json_int_t)f->n_library, "own_steps", (json_int_t)f->n_own, "weight_bytes",
        (json_int_t)f->weight_bytes, "activation_bytes", (json_int_t)f->activation_bytes,
        "workspace_bytes", (json_int_t)f->workspace_bytes, "buffer_bytes",
        (json_int_t)f->buffer_bytes, "device_bytes", (json_int_t)f->device_bytes, "cache_lookups",
        (json_int_t)f->n_lookups, "cache_hits", (json_int_t)f->n_hits, "steps", steps_json(p));
}
