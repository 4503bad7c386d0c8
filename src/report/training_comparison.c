/* training_comparison.c: which machine trains a network cheapest, for people. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/compare_text.h"
#include "report/training_costs_text.h"

#define MS 1e3

static const double HOUR = 3600; /* seconds */

static void add_question(hwnas_str *out, const hwnas_comparison *c)
{
    const hwnas_training_plan *plan = &c->query.plan;
    hwnas_str_addf(out, "training steps with %s", hwnas_optimizer_name(c->query.training));
    if (plan->samples > 0) {
        char *words = hwnas_training_plan_words(plan);
        hwnas_str_addf(out, "; %s", words);
        free(words);
    }
    hwnas_str_add(out, "\n");
    if (c->prices)
        hwnas_str_addf(out, "prices in %s an hour, of %s\n", c->prices->currency, c->prices->path);
}

static void put_headings(hwnas_grid *grid, const hwnas_comparison *c)
{
    static const char *const settings[] = {"", "device", "batch", "threads", "dtype"};
    const bool has_plan = c->query.plan.samples > 0;
    char *speed = hwnas_printf("speed / %s", c->query.base);
    char *cost = hwnas_printf("%s / %s", c->prices ? "cost" : "time", c->query.base);
    char *million = hwnas_printf("%s/million", c->prices ? c->prices->currency : "");
    for (int i = 0; i < 5; i++)
        hwnas_grid_column(grid, settings[i], i == 2 || i == 3 ? HWNAS_GRID_RIGHT : HWNAS_GRID_LEFT);
    hwnas_grid_column(grid, "step ms", HWNAS_GRID_RIGHT);
    hwnas_grid_column(grid, "samples/s", HWNAS_GRID_RIGHT);
    hwnas_grid_column(grid, speed, HWNAS_GRID_RIGHT);
    if (has_plan)
        hwnas_grid_column(grid, "hours", HWNAS_GRID_RIGHT);
    if (c->prices)
        hwnas_grid_column(grid, has_plan ? c->prices->currency : million, HWNAS_GRID_RIGHT);
    if (has_plan || c->prices)
        hwnas_grid_column(grid, cost, HWNAS_GRID_RIGHT);
    free(million);
    free(cost);
    free(speed);
}

static void put_choice(hwnas_grid *grid, const hwnas_comparison *c, const hwnas_answer *answer,
                       const hwnas_device_choice *choice)
{
    const hwnas_profile_row *row = choice->row;
    const bool has_plan = c->query.plan.samples > 0;
    hwnas_choice_begin_row(grid, answer, choice);
    hwnas_grid_cell(grid, "%s", hwnas_profile_row_dtype(row));
    if (choice->flaw) {
        hwnas_grid_rest(grid, "no: %s", choice->flaw);
        return;
    }
    hwnas_grid_cell(grid, "%.*f%s", hwnas_grid_decimals(row->m.p50 * MS), row->m.p50 * MS,
                    row->m.is_unstable ? " ?" : "");
    hwnas_grid_number(grid, 1, choice->rate);
    hwnas_grid_number(grid, 2, choice->speed_to_base);
    if (has_plan)
        hwnas_grid_figure(grid, choice->train.seconds / HOUR);
    if (c->prices)
        hwnas_grid_figure(grid, has_plan ? choice->train.money : choice->per_million);
    if (has_plan || c->prices)
        hwnas_grid_number(grid, 2, choice->cost_to_base);
}

static void add_setting(hwnas_str *out, const hwnas_device_choice *choice)
{
    const hwnas_profile_row *row = choice->row;
    hwnas_str_addf(out, "%s, batch %d, %d thread%s, %s", choice->device, row->batch, row->threads,
                   row->threads == 1 ? "" : "s", hwnas_profile_row_dtype(row));
}

static void add_cost(hwnas_str *out, const hwnas_comparison *c, const hwnas_device_choice *choice)
{
    if (c->query.plan.samples > 0)
        hwnas_str_addf(out, ": %.4g h", choice->train.seconds / HOUR);
    else
        hwnas_str_addf(out, ": %.4g samples/s", choice->rate);
    if (c->prices && c->query.plan.samples > 0)
        hwnas_str_addf(out, ", %.4g %s", choice->train.money, c->prices->currency);
    else if (c->prices)
        hwnas_str_addf(out, ", %.4g %s a million samples", choice->per_million,
                       c->prices->currency);
}

void hwnas_training_comparison_verdict(hwnas_str *out, const hwnas_comparison *c,
                                       const hwnas_answer *answer)
{
    if (!answer->winner) {
        hwnas_str_add(out, "\nwinner     none: no setting trains it\n");
        return;
    }
    hwnas_str_add(out, "\nwinner     ");
    add_setting(out, answer->winner);
    add_cost(out, c, answer->winner);
    hwnas_str_add(out, "\n");
    if (answer->runner_up) {
        hwnas_str_add(out, "runner-up  ");
        add_setting(out, answer->runner_up);
        add_cost(out, c, answer->runner_up);
        hwnas_str_addf(out, "; %s %.3g times as much\n", c->prices ? "costs" : "takes",
                       answer->ratio);
    }
    if (isnan(answer->winner->speed_to_base))
        hwnas_str_addf(out, "           '%s' has no step of this network that could be the base\n",
                       c->query.base);
    if (answer->doubt)
        hwnas_str_addf(out, "!          %s\n", answer->doubt);
}

void hwnas_training_comparison_fill(hwnas_grid *grid, const hwnas_comparison *c,
                                    const hwnas_answer *answer)
{
    put_headings(grid, c);
    for (size_t k = 0; k < answer->n; k++)
        put_choice(grid, c, answer, &c->choices[answer->first + k]);
}

void hwnas_training_comparison_text(hwnas_str *out, const hwnas_comparison *c)
{
    bool has_doubt = false;
    add_question(out, c);
    hwnas_str_add(out, "\n");
    hwnas_comparison_devices(out, c);
    for (size_t i = 0; i < c->n_answers; i++) {
        const hwnas_answer *answer = &c->answers[i];
        hwnas_grid grid = {0};
        hwnas_str_addf(out, "\n%s%s%s\n\n", answer->model, answer->arch ? " " : "",
                       answer->arch ? answer->arch : "");
        hwnas_training_comparison_fill(&grid, c, answer);
        hwnas_grid_text(out, &grid);
        hwnas_grid_done(&grid);
        hwnas_training_comparison_verdict(out, c, answer);
    }
    for (size_t i = 0; i < c->n_choices; i++)
        has_doubt |= !c->choices[i].flaw && c->choices[i].row->m.is_unstable;
    hwnas_str_addf(out,
                   "\n* winner, + runner-up; / %s: in units of its best setting; steps alone: "
                   "reading samples and validation\n  come on top, and another batch or precision "
                   "may need other epochs\n",
                   c->query.base);
    if (has_doubt)
        hwnas_str_add(out, "? the machine was disturbed while this was measured\n");
}
