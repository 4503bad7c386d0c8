#include "report/compare_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/precision_notes.h"
#include "report/profile_text.h"

#define MS 1e3

enum { BAR = 40 };

static int percent_of(const hwnas_query *query)
{
    return (int)(100 * query->percentile + 0.5);
}

static const char *currency_of(const hwnas_comparison *c)
{
    return c->prices ? c->prices->currency : "";
}

/* ---- What is asked ---- */

static void add_question(hwnas_str *out, const hwnas_comparison *c)
{
    const hwnas_query *q = &c->query;
    if (q->load > 0)
        hwnas_str_addf(out, "%g requests/s", q->load);
    else
        hwnas_str_add(out, "one machine, as many requests as it may take");
    if (isfinite(q->target))
        hwnas_str_addf(out, ", p%d <= %g ms with waiting", percent_of(q), q->target * MS);
    hwnas_str_addf(out, ", machines busy for at most %g %% of their time\n", 100 * q->utilisation);
    if (c->prices)
        hwnas_str_addf(out, "prices in %s an hour, of %s\n", c->prices->currency, c->prices->path);
}

static bool is_first_of_device(const hwnas_comparison *c, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (!strcmp(c->choices[i].device, c->choices[at].device))
            return false;
    return true;
}

static const hwnas_device_info *info_of(const hwnas_device_choice *choice)
{
    const hwnas_profile *p = choice->profile;
    for (size_t i = 0; i < p->n_devices; i++)
        if (!strcmp(p->devices[i].spelling, choice->row->device))
            return &p->devices[i].info;
    return NULL;
}

/* 128600 and not 1.286e+05; yours to free(). */
static char *figure(double value)
{
    return hwnas_printf(value < 1000 ? "%.4g" : "%.0f", value);
}

void hwnas_comparison_devices(hwnas_str *out, const hwnas_comparison *c)
{
    hwnas_grid grid = {0};
    for (int i = 0; i < 4; i++)
        hwnas_grid_column(&grid,
                          (const char *const[]){"device", "what it is", "figures", "price"}[i],
                          HWNAS_GRID_LEFT);
    for (size_t i = 0; i < c->n_choices; i++) {
        const hwnas_device_choice *choice = &c->choices[i];
        const hwnas_device_info *info = info_of(choice);
        if (!is_first_of_device(c, i))
            continue;
        hwnas_grid_cell(&grid, "%s", choice->device);
        hwnas_grid_cell(&grid, "%s%s%s", info ? info->name : "?",
                        info && *info->library ? ", " : "", info ? info->library : "");
        hwnas_grid_cell(&grid, "%s, %.*s", choice->profile->source,
                        (int)strcspn(choice->profile->date, "T"), choice->profile->date);
        if (choice->price)
            hwnas_grid_rest(&grid, "%g %s%s%s%s%s%s%s%s", choice->price->per_hour, currency_of(c),
                            strcmp(choice->price->device, choice->device) ? " as " : "",
                            strcmp(choice->price->device, choice->device) ? choice->price->device
                                                                          : "",
                            *choice->price->source ? " (" : "", choice->price->source,
                            *choice->price->source && *choice->price->date ? ", " : "",
                            *choice->price->source ? choice->price->date : "",
                            *choice->price->source ? ")" : "");
        else
            hwnas_grid_rest(&grid, "-");
    }
    hwnas_grid_text(out, &grid);
    hwnas_grid_done(&grid);
}

/* ---- One network ---- */

/* The same of all rows is said once. */
static bool has_several(const hwnas_comparison *c, const hwnas_answer *answer, bool of_precision)
{
    const hwnas_profile_row *first = c->choices[answer->first].row;
    for (size_t i = 1; i < answer->n; i++) {
        const hwnas_profile_row *row = c->choices[answer->first + i].row;
        if (of_precision ? row->precision != first->precision || row->mixing != first->mixing
                         : row->streams != first->streams)
            return true;
    }
    return of_precision ? first->precision != HWNAS_F32 || first->mixing : first->streams != 1;
}

void hwnas_choice_begin_row(hwnas_grid *grid, const hwnas_answer *answer,
                            const hwnas_device_choice *choice)
{
    hwnas_grid_cell(grid, "%s",
                    choice == answer->winner      ? "*"
                    : choice == answer->runner_up ? "+"
                                                  : "");
    hwnas_grid_cell(grid, "%s", choice->device);
    hwnas_grid_cell(grid, "%d", choice->row->batch);
    hwnas_grid_cell(grid, "%d", choice->row->threads);
}

static void put_choice(hwnas_grid *grid, const hwnas_comparison *c, const hwnas_answer *answer,
                       const hwnas_device_choice *choice)
{
    const hwnas_profile_row *row = choice->row;
    const double promised = hwnas_profile_row_latency(row, c->query.percentile);
    const int decimals = hwnas_grid_decimals(row->m.p50 * MS);
    hwnas_choice_begin_row(grid, answer, choice);
    if (has_several(c, answer, false))
        hwnas_grid_cell(grid, "%d", row->streams);
    if (has_several(c, answer, true))
        hwnas_grid_cell(grid, "%s", hwnas_profile_row_dtype(row));
    if (row->status != HWNAS_OK) {
        hwnas_grid_rest(grid, "%s", choice->flaw);
        return;
    }
    hwnas_grid_cell(grid, "%.*f%s", decimals, row->m.p50 * MS, row->m.is_unstable ? " ?" : "");
    if (c->query.percentile > 0.5)
        hwnas_grid_number(grid, decimals, promised * MS);
    hwnas_grid_number(grid, 1, row->items_per_second);
    if (choice->flaw) {
        hwnas_grid_rest(grid, "no: %s", choice->flaw);
        return;
    }
    hwnas_grid_number(grid, 1, choice->machine_rate);
    hwnas_grid_number(grid, decimals, choice->response.total * MS);
    if (c->query.load > 0)
        hwnas_grid_cell(grid, "%ld", choice->machines);
    if (!c->prices)
        return;
    hwnas_grid_figure(grid, choice->per_hour);
    hwnas_grid_figure(grid, choice->per_million);
    hwnas_grid_figure(grid, choice->requests_per_price);
}

/* A column with a percentile or a currency in its name. */
static void put_heading(hwnas_grid *grid, const char *format, const char *with)
{
    char *heading = hwnas_printf("%s%s", format, with);
    hwnas_grid_column(grid, heading, HWNAS_GRID_RIGHT);
    free(heading);
}

static void put_headings(hwnas_grid *grid, const hwnas_comparison *c, const hwnas_answer *answer)
{
    char percentile[32];
    snprintf(percentile, sizeof percentile, "p%d", percent_of(&c->query));
    hwnas_grid_column(grid, "", HWNAS_GRID_LEFT);
    hwnas_grid_column(grid, "device", HWNAS_GRID_LEFT);
    hwnas_grid_column(grid, "batch", HWNAS_GRID_RIGHT);
    hwnas_grid_column(grid, "threads", HWNAS_GRID_RIGHT);
    if (has_several(c, answer, false))
        hwnas_grid_column(grid, "streams", HWNAS_GRID_RIGHT);
    if (has_several(c, answer, true))
        hwnas_grid_column(grid, "dtype", HWNAS_GRID_LEFT);
    hwnas_grid_column(grid, "p50 ms", HWNAS_GRID_RIGHT);
    if (c->query.percentile > 0.5)
        put_heading(grid, percentile, " ms");
    hwnas_grid_column(grid, "items/s", HWNAS_GRID_RIGHT);
    hwnas_grid_column(grid, "given req/s", HWNAS_GRID_RIGHT);
    put_heading(grid, percentile, " served ms");
    if (c->query.load > 0)
        hwnas_grid_column(grid, "machines", HWNAS_GRID_RIGHT);
    if (!c->prices)
        return;
    put_heading(grid, currency_of(c), "/h");
    put_heading(grid, currency_of(c), "/million");
    put_heading(grid, "req/s per ", currency_of(c));
}

static void add_setting(hwnas_str *out, const hwnas_device_choice *choice)
{
    const hwnas_profile_row *row = choice->row;
    hwnas_str_addf(out, "%s, batch %d, %d thread%s, %d stream%s, %s", choice->device, row->batch,
                   row->threads, row->threads == 1 ? "" : "s", row->streams,
                   row->streams == 1 ? "" : "s", hwnas_profile_row_dtype(row));
}

/* Bars of the best setting of each device, so that the answer is seen before it is read. */
static void add_bars(hwnas_str *out, const hwnas_comparison *c, const hwnas_answer *answer)
{
    hwnas_grid grid = {0};
    double most = 0;
    char *heading = c->prices ? hwnas_printf("%s for a million requests", currency_of(c))
                              : hwnas_strdup("requests/s of a machine");
    hwnas_grid_column(&grid, "", HWNAS_GRID_LEFT);
    hwnas_grid_column(&grid, heading, HWNAS_GRID_LEFT);
    free(heading);
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < answer->n_good; i++) {
            const hwnas_device_choice *choice = &c->choices[answer->first + i];
            const double value = c->prices ? choice->per_million : choice->rate;
            bool is_best = true;
            for (size_t k = 0; k < i; k++)
                is_best &= strcmp(c->choices[answer->first + k].device, choice->device) != 0;
            if (!is_best)
                continue;
            most = fmax(most, value);
            if (pass == 0)
                continue;
            const int length = (int)(BAR * value / most + 0.5);
            hwnas_grid_cell(&grid, "%s", choice->device);
            char *text = figure(value);
            hwnas_grid_cell(&grid, "%.*s %s", length < 1 ? 1 : length,
                            "########################################", text);
            free(text);
        }
    hwnas_str_add(out, "\n");
    hwnas_grid_text(out, &grid);
    hwnas_grid_done(&grid);
}

/* Why a setting that is not the winner costs more: price and requests of a machine. */
static void add_reason(hwnas_str *out, const hwnas_comparison *c, const hwnas_answer *answer)
{
    const hwnas_device_choice *a = answer->winner, *b = answer->runner_up;
    const bool is_other = strcmp(a->device, b->device) != 0;
    hwnas_str_addf(out, answer->ratio < 1000 ? "%s %.3g times as much" : "%s %.0f times as much",
                   c->prices ? "costs" : "takes", answer->ratio);
    if (!is_other)
        hwnas_str_add(out, c->prices ? " on the same device" : " of the machine's time");
    else if (c->prices)
        hwnas_str_addf(out,
                       ": an hour of it costs %.3g times that of %s, and it takes %.3g times the "
                       "requests",
                       b->price->per_hour / a->price->per_hour, a->device,
                       b->machine_rate / a->machine_rate);
    else
        hwnas_str_addf(out, " of a machine's time for a request");
    hwnas_str_add(out, "\n");
}

static void add_cost(hwnas_str *out, const hwnas_comparison *c, const hwnas_device_choice *choice)
{
    char *rate = figure(choice->rate);
    if (c->query.load > 0)
        hwnas_str_addf(out, "%ld machine%s", choice->machines, choice->machines == 1 ? "" : "s");
    else
        hwnas_str_addf(out, "%s requests/s a machine", rate);
    if (c->prices)
        hwnas_str_addf(out, ", %.4g %s an hour, %.4g %s a million requests", choice->per_hour,
                       currency_of(c), choice->per_million, currency_of(c));
    free(rate);
    if (!isnan(choice->response.total))
        hwnas_str_addf(out, ", p%d %.4g ms", percent_of(&c->query), choice->response.total * MS);
}

/* Devices that have no setting that would do. */
static void add_losers(hwnas_str *out, const hwnas_comparison *c, const hwnas_answer *answer)
{
    for (size_t i = answer->n_good; i < answer->n; i++) {
        const hwnas_device_choice *choice = &c->choices[answer->first + i];
        bool is_told = false;
        for (size_t k = 0; k < i; k++)
            is_told |= !strcmp(c->choices[answer->first + k].device, choice->device);
        if (!is_told)
            hwnas_str_addf(out, "out        %s: no setting will do; the first: %s\n",
                           choice->device, choice->flaw);
    }
}

static const char indent[] = "           ";

/* What the layers of a setting are computed in, which its dtype does not tell. */
static void add_mixed(hwnas_str *out, const hwnas_device_choice *choice)
{
    if (!choice->row->mixing)
        return;
    hwnas_str_add(out, indent);
    hwnas_mixed_words(out, indent, choice->row);
}

static void add_verdict(hwnas_str *out, const hwnas_comparison *c, const hwnas_answer *answer)
{
    hwnas_str_add(out, "\n");
    if (answer->winner) {
        hwnas_str_add(out, "winner     ");
        add_setting(out, answer->winner);
        hwnas_str_addf(out, "; the %s of %zu setting%s that will do\n%s",
                       c->prices ? "cheapest" : "one with the most requests for a machine",
                       answer->n_good, answer->n_good == 1 ? "" : "s", indent);
        add_cost(out, c, answer->winner);
        hwnas_str_add(out, "\n");
        add_mixed(out, answer->winner);
    } else {
        hwnas_str_add(out, "winner     none: no setting keeps the target\n");
    }
    if (answer->runner_up) {
        hwnas_str_add(out, "runner-up  ");
        add_setting(out, answer->runner_up);
        hwnas_str_addf(out, "\n%s", indent);
        add_reason(out, c, answer);
        add_mixed(out, answer->runner_up);
    }
    add_losers(out, c, answer);
    if (answer->doubt)
        hwnas_str_addf(out, "!          %s\n", answer->doubt);
    if (answer->winner)
        hwnas_slow_code_line(out, answer->winner->row);
}

static void fill_table(hwnas_grid *grid, const hwnas_comparison *c, const hwnas_answer *answer)
{
    put_headings(grid, c, answer);
    for (size_t i = 0; i < answer->n; i++)
        put_choice(grid, c, answer, &c->choices[answer->first + i]);
}

static void add_answer(hwnas_str *out, const hwnas_comparison *c, const hwnas_answer *answer)
{
    hwnas_grid grid = {0};
    hwnas_str_addf(out, "\n%s%s%s\n\n", answer->model, answer->arch ? " " : "",
                   answer->arch ? answer->arch : "");
    fill_table(&grid, c, answer);
    hwnas_grid_text(out, &grid);
    hwnas_grid_done(&grid);
    if (answer->n_good)
        add_bars(out, c, answer);
    add_verdict(out, c, answer);
}

void hwnas_comparison_text(hwnas_str *out, const hwnas_comparison *c)
{
    bool has_doubt = false, has_narrow = false;
    if (c->query.training) {
        hwnas_training_comparison_text(out, c);
        return;
    }
    add_question(out, c);
    hwnas_str_add(out, "\n");
    hwnas_comparison_devices(out, c);
    for (size_t i = 0; i < c->n_answers; i++)
        add_answer(out, c, &c->answers[i]);
    for (size_t i = 0; i < c->n_choices; i++) {
        const hwnas_profile_row *row = c->choices[i].row;
        has_doubt |= row->status == HWNAS_OK && row->m.is_unstable;
        has_narrow |= (row->precision != HWNAS_F32 || row->mixing) && !row->accuracy_metric;
    }
    hwnas_str_add(out, "\n* winner, + runner-up; given: requests/s that each machine gets; served: "
                       "with filling a batch and waiting\n");
    if (has_doubt)
        hwnas_str_add(out, "? the machine was disturbed while this was measured\n");
    if (has_narrow)
        hwnas_str_add(out, "other precisions than f32 may cost accuracy: that is not compared "
                           "here\n");
}

/* ---- Markdown ---- */

/* Each line of a verdict is an item of a list, without the margin. */
static void add_items(hwnas_str *out, const char *text)
{
    while (*text) {
        const size_t n = strcspn(text, "\n"), margin = strspn(text, " ");
        if (n > margin) {
            char *line = hwnas_printf("%.*s", (int)(n - margin), text + margin);
            hwnas_str_add(out, "- ");
            hwnas_markdown_text(out, line);
            hwnas_str_add(out, "\n");
            free(line);
        }
        text += n + (text[n] == '\n');
    }
}

static void add_answer_markdown(hwnas_str *out, const hwnas_comparison *c,
                                const hwnas_answer *answer)
{
    hwnas_grid grid = {0};
    hwnas_str verdict = {0};
    hwnas_str_add(out, out->n ? "\n## " : "## ");
    hwnas_markdown_text(out, answer->model);
    hwnas_str_add(out, answer->arch ? " " : "");
    hwnas_markdown_text(out, answer->arch ? answer->arch : "");
    hwnas_str_add(out, "\n\n");
    if (c->query.training)
        hwnas_training_comparison_fill(&grid, c, answer);
    else
        fill_table(&grid, c, answer);
    hwnas_grid_markdown(out, &grid);
    hwnas_grid_done(&grid);
    hwnas_str_add(out, "\n");
    if (c->query.training)
        hwnas_training_comparison_verdict(&verdict, c, answer);
    else
        add_verdict(&verdict, c, answer);
    add_items(out, verdict.s ? verdict.s : "");
    hwnas_str_done(&verdict);
}

void hwnas_comparison_markdown(hwnas_str *out, const hwnas_comparison *c)
{
    for (size_t i = 0; i < c->n_answers; i++)
        add_answer_markdown(out, c, &c->answers[i]);
}
