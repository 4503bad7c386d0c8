#include "report/differences_text.h"

#include <math.h>

#include "base/csv.h"
#include "graph/op.h"
#include "report/grid.h"

enum { MOST_NODES = 40 }; /* that text shows */

typedef hwnas_compared_sides compared;

static bool is_beyond(const hwnas_difference *d, const compared *sides)
{
    return !(d->error.largest <= sides->tolerance);
}

/* Signal to noise, in dB; infinite where they are equal. */
static double sqnr(const hwnas_difference *d)
{
    return -20 * log10(d->error.noise);
}

static const char *op_name(const hwnas_difference *d)
{
    return d->op ? d->op->name : "input";
}

/* ---- Text ---- */

static void add_row(hwnas_grid *grid, const hwnas_difference *d, const compared *sides)
{
    hwnas_grid_cell(grid, "%s", d->name);
    hwnas_grid_cell(grid, "%s", op_name(d));
    hwnas_grid_cell(grid, "%s", d->shape.s);
    hwnas_grid_cell(grid, "%.3g", d->value);
    if (isinf(d->error.largest))
        hwnas_grid_cell(grid, "not finite");
    else
        hwnas_grid_cell(grid, "%.3g %%", 100 * d->error.largest);
    if (d->error.noise > 0 && isfinite(d->error.noise))
        hwnas_grid_cell(grid, "%.1f", sqnr(d));
    else
        hwnas_grid_cell(grid, "%s", d->error.noise > 0 ? "-" : "equal");
    hwnas_grid_cell(grid, "%s", is_beyond(d, sides) ? "!" : "");
}

static void begin_table(hwnas_grid *grid, const char *what)
{
    hwnas_grid_column(grid, what, HWNAS_GRID_LEFT);
    hwnas_grid_column(grid, "op", HWNAS_GRID_LEFT);
    hwnas_grid_column(grid, "shape", HWNAS_GRID_LEFT);
    hwnas_grid_column(grid, "largest value", HWNAS_GRID_RIGHT);
    hwnas_grid_column(grid, "difference", HWNAS_GRID_RIGHT);
    hwnas_grid_column(grid, "SQNR dB", HWNAS_GRID_RIGHT);
    hwnas_grid_column(grid, "", HWNAS_GRID_LEFT);
}

static void end_table(hwnas_str *out, hwnas_grid *grid)
{
    hwnas_str_add(out, "\n");
    hwnas_grid_text(out, grid);
    hwnas_grid_done(grid);
}

/* So many nodes have a larger difference, or one as large and come before. */
static size_t rank_of(const hwnas_differences *d, size_t node)
{
    size_t rank = 0;
    for (size_t i = 0; i < d->n_nodes; i++)
        rank += d->nodes[i].error.largest > d->nodes[node].error.largest ||
                (i < node && d->nodes[i].error.largest >= d->nodes[node].error.largest);
    return rank;
}

static void add_nodes(hwnas_str *out, const hwnas_differences *d, const compared *sides)
{
    hwnas_grid grid = {0};
    const hwnas_difference *first = NULL;
    size_t n_beyond = 0;
    begin_table(&grid, "node");
    for (size_t i = 0; i < d->n_nodes; i++) {
        const bool beyond = is_beyond(&d->nodes[i], sides);
        first = beyond && !first ? &d->nodes[i] : first;
        n_beyond += beyond;
        if (d->n_nodes <= MOST_NODES || rank_of(d, i) < MOST_NODES)
            add_row(&grid, &d->nodes[i], sides);
    }
    end_table(out, &grid);
    if (d->n_nodes > MOST_NODES)
        hwnas_str_addf(out, "the %d largest of %zu (--csv and --json have all)\n", MOST_NODES,
                       d->n_nodes);
    if (first)
        hwnas_str_addf(out, "! beyond %.3g %%: %zu of %zu nodes, first '%s' (%s)\n",
                       100 * sides->tolerance, n_beyond, d->n_nodes, first->name, op_name(first));
}

static void add_text(hwnas_str *out, const hwnas_differences *d, const compared *sides)
{
    hwnas_grid grid = {0};
    for (int s = 0; s < 2; s++)
        hwnas_str_addf(out, "%s%s (%s, %s)", s ? " against " : "", sides->models[!s],
                       sides->devices[!s], hwnas_precision_name(sides->precisions[!s]));
    hwnas_str_addf(out, ", %zu %s%s\n", sides->n_runs,
                   sides->are_random ? "run on random inputs" : "run on samples",
                   sides->n_runs == 1 ? "" : ", together");
    begin_table(&grid, "output");
    for (size_t i = 0; i < d->n_outputs; i++)
        add_row(&grid, &d->outputs[i], sides);
    end_table(out, &grid);
    if (d->n_nodes)
        add_nodes(out, d, sides);
    for (int s = 0; s < 2; s++)
        if (d->n_others[s])
            hwnas_str_addf(out, "%s has %zu nodes of other names or shapes, not compared\n",
                           sides->models[s], d->n_others[s]);
    hwnas_str_add(out, "\ndifference: the largest, of the largest value; nodes: each computed for "
                       "itself, outputs as deployed\n");
}

/* ---- CSV ---- */

static void add_csv_row(hwnas_str *out, const hwnas_difference *d, const char *kind,
                        const compared *sides)
{
    hwnas_str_addf(out, "%s,", kind);
    hwnas_csv_text(out, d->name);
    hwnas_str_addf(out, ",%s,%s,%.9g,%.9g,%.9g,%.9g,%s\n", op_name(d), d->shape.s, d->value,
                   d->difference, d->error.largest, d->error.noise,
                   is_beyond(d, sides) ? "true" : "false");
}

static void add_csv(hwnas_str *out, const hwnas_differences *d, const compared *sides)
{
    hwnas_str_add(out, "kind,name,op,shape,largest_value,largest_difference,largest_error,noise,"
                       "beyond_tolerance\n");
    for (size_t i = 0; i < d->n_outputs; i++)
        add_csv_row(out, &d->outputs[i], "output", sides);
    for (size_t i = 0; i < d->n_nodes; i++)
        add_csv_row(out, &d->nodes[i], "node", sides);
}

/* ---- JSON ---- */

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *list_json(const hwnas_difference *list, size_t n, const compared *sides)
{
    json_t *out = json_array();
    for (size_t i = 0; i < n; i++) {
        const hwnas_difference *d = &list[i];
        json_array_append_new(
            out,
            json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:b}", "name", d->name, "op", op_name(d),
                      "shape", d->shape.s, "largest_value", number(d->value), "largest_difference",
                      number(d->difference), "largest_error", number(d->error.largest), "noise",
                      number(d->error.noise), "beyond_tolerance", is_beyond(d, sides)));
    }
    return out;
}

static json_t *sides_json(const hwnas_differences *d, const compared *sides)
{
    json_t *out = json_array();
    for (int s = 0; s < 2; s++)
        json_array_append_new(out, json_pack("{s:s, s:s, s:s, s:I}", "model", sides->models[s],
                                             "device", sides->devices[s], "dtype",
                                             hwnas_precision_name(sides->precisions[s]),
                                             "other_nodes", (json_int_t)d->n_others[s]));
    return out;
}

void hwnas_differences_render(hwnas_rendering *out, const hwnas_differences *d,
                              const hwnas_compared_sides *sides)
{
    add_text(&out->text, d, sides);
    add_csv(&out->csv, d, sides);
    out->json =
        json_pack("{s:s, s:i, s:o, s:I, s:b, s:f, s:o, s:o}", "format", "hwnas.differences",
                  "version", 1, "compared", sides_json(d, sides), "runs", (json_int_t)sides->n_runs,
                  "random_inputs", sides->are_random, "tolerance", sides->tolerance, "outputs",
                  list_json(d->outputs, d->n_outputs, sides), "nodes",
                  list_json(d->nodes, d->n_nodes, sides));
}

hwnas_status hwnas_differences_judge(const hwnas_differences *d, const hwnas_compared_sides *sides)
{
    const hwnas_difference *worst = NULL;
    for (size_t i = 0; i < d->n_outputs; i++)
        if (is_beyond(&d->outputs[i], sides) &&
            (!worst || d->outputs[i].error.largest > worst->error.largest))
            worst = &d->outputs[i];
    if (!worst)
        return HWNAS_OK;
    if (isinf(worst->error.largest))
        return hwnas_fail(HWNAS_E_WRONG_RESULT, NULL,
                          "output '%s' is not finite, or on one side alone", worst->name);
    return hwnas_hint(hwnas_fail(HWNAS_E_WRONG_RESULT, NULL,
                                 "output '%s' differs by %.3g %% of its largest value, more than "
                                 "%.3g %%",
                                 worst->name, 100 * worst->error.largest, 100 * sides->tolerance),
                      "--tolerance SHARE is how much may be");
}
