#include "report/training_costs_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/grid.h"

static const double HOUR = 3600; /* seconds */

char *hwnas_training_plan_words(const hwnas_training_plan *plan)
{
    return hwnas_printf("%.0f sample%s, %g epoch%s", plan->samples, plan->samples == 1 ? "" : "s",
                        plan->epochs, plan->epochs == 1 ? "" : "s");
}

static void put_headings(hwnas_grid *grid, const hwnas_training_plan *plan)
{
    static const struct {
        const char *name;
        hwnas_grid_side side;
    } headings[] = {{"", HWNAS_GRID_LEFT},
                    {"model", HWNAS_GRID_LEFT},
                    {"device", HWNAS_GRID_LEFT},
                    {"batch", HWNAS_GRID_RIGHT},
                    {"threads", HWNAS_GRID_RIGHT},
                    {"dtype", HWNAS_GRID_LEFT},
                    {"steps", HWNAS_GRID_RIGHT},
                    {"hours", HWNAS_GRID_RIGHT},
                    {"95 % interval", HWNAS_GRID_LEFT}};
    for (size_t i = 0; i < sizeof headings / sizeof *headings; i++)
        hwnas_grid_column(grid, headings[i].name, headings[i].side);
    if (plan->currency)
        hwnas_grid_column(grid, plan->currency, HWNAS_GRID_RIGHT);
}

static void put_row(hwnas_grid *grid, const hwnas_profile_row *row, bool has_money)
{
    const hwnas_training_cost *t = &row->train;
    const int decimals = hwnas_figure_decimals(t->seconds / HOUR);
    hwnas_grid_cell(grid, "%s", t->is_cheapest ? "*" : "");
    hwnas_grid_cell(grid, "%s", row->model);
    hwnas_grid_cell(grid, "%s", row->device);
    hwnas_grid_cell(grid, "%d", row->batch);
    hwnas_grid_cell(grid, "%d", row->threads);
    hwnas_grid_cell(grid, "%s", hwnas_profile_row_dtype(row));
    hwnas_grid_cell(grid, "%lld", (long long)t->steps);
    hwnas_grid_figure(grid, t->seconds / HOUR);
    if (isnan(t->low) || isnan(t->high))
        hwnas_grid_cell(grid, "-%s", row->m.is_unstable ? " ?" : "");
    else
        hwnas_grid_cell(grid, "[%.*f, %.*f]%s", decimals, t->low / HOUR, decimals, t->high / HOUR,
                        row->m.is_unstable ? " ?" : "");
    if (has_money)
        hwnas_grid_figure(grid, t->money);
}

/* What the cheapest batch saves: the cheapest setting of each other batch, against it. */
static void add_others(hwnas_str *out, const hwnas_profile *profile, const hwnas_profile_row *best)
{
    for (size_t i = 0; i < profile->n_rows; i++) {
        const hwnas_profile_row *row = &profile->rows[i];
        bool is_best = row->batch != best->batch && !isnan(row->train.seconds) &&
                       !strcmp(row->model, best->model) && !strcmp(row->device, best->device);
        for (size_t k = 0; k < profile->n_rows && is_best; k++) {
            const hwnas_profile_row *other = &profile->rows[k];
            if (other->batch == row->batch && !strcmp(other->model, row->model) &&
                !strcmp(other->device, row->device) &&
                (other->train.seconds < row->train.seconds ||
                 (other->train.seconds == row->train.seconds && k < i)))
                is_best = false;
        }
        if (is_best)
            hwnas_str_addf(out, "; batch %d takes %.2f times as long", row->batch,
                           row->train.seconds / best->train.seconds);
    }
}

static void add_cheapest(hwnas_str *out, const hwnas_profile *profile, const hwnas_profile_row *row)
{
    hwnas_str_addf(out, "cheapest: %s, %s: batch %d, %d thread%s, %s: %.4g h", row->model,
                   row->device, row->batch, row->threads, row->threads == 1 ? "" : "s",
                   hwnas_profile_row_dtype(row), row->train.seconds / HOUR);
    if (!isnan(row->train.money))
        hwnas_str_addf(out, ", %.4g %s", row->train.money, profile->plan.currency);
    add_others(out, profile, row);
    hwnas_str_add(out, "\n");
}

void hwnas_training_costs_text(hwnas_str *out, const hwnas_profile *profile)
{
    hwnas_grid grid = {0};
    size_t n = 0;
    for (size_t i = 0; i < profile->n_rows; i++)
        n += !isnan(profile->rows[i].train.seconds);
    if (!n)
        return;
    char *plan = hwnas_training_plan_words(&profile->plan);
    hwnas_str_addf(out, "\n%s:\n\n", plan);
    free(plan);
    put_headings(&grid, &profile->plan);
    for (size_t i = 0; i < profile->n_rows; i++)
        if (!isnan(profile->rows[i].train.seconds))
            put_row(&grid, &profile->rows[i], profile->plan.currency != NULL);
    hwnas_grid_text(out, &grid);
    hwnas_grid_done(&grid);
    hwnas_str_add(out, "\n");
    for (size_t i = 0; i < profile->n_rows; i++)
        if (profile->rows[i].train.is_cheapest)
            add_cheapest(out, profile, &profile->rows[i]);
    hwnas_str_add(out, "steps alone: reading samples, validation and the program's start come on "
                       "top; another batch may need other epochs\n");
}
