#include "report/grid.h"

#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hwnas/terminal.h>

#include "base/mem.h"
#include "base/str.h"

enum { GAP = 2 }; /* between columns */

static atomic_int most_columns;

void hwnas_set_columns(int columns)
{
    atomic_store(&most_columns, columns > 0 ? columns : 0);
}

int hwnas_grid_most_columns(void)
{
    return atomic_load(&most_columns);
}

static void add(hwnas_grid *grid, char *text, bool is_rest)
{
    if (grid->n_cells == grid->capacity) {
        grid->capacity = grid->capacity ? 2 * grid->capacity : 64;
        grid->cells = hwnas_realloc(grid->cells, grid->capacity * sizeof *grid->cells);
        grid->is_rest = hwnas_realloc(grid->is_rest, grid->capacity * sizeof *grid->is_rest);
    }
    if (text)
        hwnas_clean(text, ""); /* a line in a name would be a row of the table */
    grid->cells[grid->n_cells] = text;
    grid->is_rest[grid->n_cells++] = is_rest;
}

void hwnas_grid_column(hwnas_grid *grid, const char *heading, hwnas_grid_side side)
{
    grid->sides[grid->n_columns++] = side;
    add(grid, hwnas_strdup(heading), false);
}

void hwnas_grid_cell(hwnas_grid *grid, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add(grid, hwnas_vprintf(format, arguments), false);
    va_end(arguments);
}

void hwnas_grid_take(hwnas_grid *grid, char *text)
{
    add(grid, text, false);
}

void hwnas_grid_number(hwnas_grid *grid, int decimals, double value)
{
    if (isnan(value))
        hwnas_grid_cell(grid, "-");
    else
        hwnas_grid_cell(grid, "%.*f", decimals, value);
}

void hwnas_grid_rest(hwnas_grid *grid, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add(grid, hwnas_vprintf(format, arguments), true);
    va_end(arguments);
    while (grid->n_cells % (size_t)grid->n_columns)
        add(grid, NULL, false);
}

/* Columns on a terminal: bytes that do not continue a character of UTF-8. */
static int width_of(const char *text)
{
    int width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static void add_spaces(hwnas_str *out, int n)
{
    if (n > 0)
        hwnas_str_addf(out, "%*s", n, "");
}

static void strip(hwnas_str *out)
{
    while (out->n && out->s[out->n - 1] == ' ')
        out->s[--out->n] = '\0';
}

/* Where the lines of each row begin. */
typedef struct folding {
    int indent;
    bool begins_line[HWNAS_GRID_COLUMNS];
} folding;

/* Lines as full as they can be. Below the second column, unless the first one is wide. */
static folding fold(const hwnas_grid *grid, const int *widths)
{
    const int columns = atomic_load(&most_columns), second = widths[0] + GAP;
    folding out = {.indent = second < columns / 4 ? second : GAP};
    int at = widths[0];
    for (int c = 1; c < grid->n_columns && columns > 0; c++) {
        out.begins_line[c] = at + GAP + widths[c] > columns;
        at = (out.begins_line[c] ? out.indent : at + GAP) + widths[c];
    }
    return out;
}

static void add_row(hwnas_str *out, const hwnas_grid *grid, size_t first, const int *widths,
                    const folding *folds)
{
    for (int c = 0; c < grid->n_columns; c++) {
        const char *text = grid->cells[first + (size_t)c];
        const bool is_last = c + 1 == grid->n_columns || grid->is_rest[first + (size_t)c];
        const int padding = widths[c] - width_of(text);
        if (is_last && !*text)
            break;
        if (folds->begins_line[c]) {
            strip(out);
            hwnas_str_add(out, "\n");
        }
        if (c)
            add_spaces(out, folds->begins_line[c] ? folds->indent : GAP);
        if (grid->sides[c] == HWNAS_GRID_RIGHT && !grid->is_rest[first + (size_t)c])
            add_spaces(out, padding);
        hwnas_str_add(out, text);
        if (is_last)
            break;
        if (grid->sides[c] == HWNAS_GRID_LEFT)
            add_spaces(out, padding);
    }
    strip(out);
    hwnas_str_add(out, "\n");
}

void hwnas_grid_text(hwnas_str *out, const hwnas_grid *grid)
{
    int widths[HWNAS_GRID_COLUMNS] = {0};
    for (size_t i = 0; i < grid->n_cells; i++) {
        int *widest = &widths[i % (size_t)grid->n_columns];
        if (!grid->cells[i] || grid->is_rest[i])
            continue;
        const int width = width_of(grid->cells[i]);
        *widest = width > *widest ? width : *widest;
    }
    const folding folds = fold(grid, widths);
    for (size_t i = 0; i < grid->n_cells; i += (size_t)grid->n_columns)
        add_row(out, grid, i, widths, &folds);
}

void hwnas_markdown_text(hwnas_str *out, const char *text)
{
    for (; *text; text++) {
        if (strchr("\\`*_[]<>|&~#", *text))
            hwnas_str_add(out, "\\");
        hwnas_str_addn(out, (unsigned char)*text < ' ' ? " " : text, 1);
    }
}

static void add_markdown_row(hwnas_str *out, const hwnas_grid *grid, size_t first)
{
    for (int c = 0; c < grid->n_columns; c++) {
        hwnas_str_add(out, "| ");
        const char *cell = grid->cells[first + (size_t)c];
        hwnas_markdown_text(out, cell ? cell : ""); /* none behind hwnas_grid_rest() */
        hwnas_str_add(out, " ");
    }
    hwnas_str_add(out, "|\n");
}

void hwnas_grid_markdown(hwnas_str *out, const hwnas_grid *grid)
{
    add_markdown_row(out, grid, 0);
    for (int c = 0; c < grid->n_columns; c++)
        hwnas_str_add(out, grid->sides[c] == HWNAS_GRID_RIGHT ? "| ---: " : "| --- ");
    hwnas_str_add(out, "|\n");
    for (size_t i = (size_t)grid->n_columns; i < grid->n_cells; i += (size_t)grid->n_columns)
        add_markdown_row(out, grid, i);
}

void hwnas_grid_done(hwnas_grid *grid)
{
    for (size_t i = 0; i < grid->n_cells; i++)
        free(grid->cells[i]);
    free(grid->cells);
    free(grid->is_rest);
}

int hwnas_figure_decimals(double value)
{
    return value < 100 ? hwnas_grid_decimals(value) : 0;
}

void hwnas_grid_figure(hwnas_grid *grid, double value)
{
    hwnas_grid_number(grid, hwnas_figure_decimals(value), value);
}

int hwnas_grid_decimals(double value)
{
    /* Figures of a tiny network keep their digits. */
    for (int decimals = 7; decimals > 4; decimals--)
        if (value > 0 && value < pow(10, 3 - decimals))
            return decimals;
    return value < 1 ? 4 : value < 10 ? 3 : value < 100 ? 2 : 1;
}

double hwnas_shown_difference(double difference, int decimals)
{
    return fabs(difference) < 0.5 * pow(10, -decimals) ? 0 : difference;
}
