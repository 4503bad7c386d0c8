/* grid.h: a table for people: cells in rows, columns as wide as what is in them. */
#ifndef HWNAS_REPORT_GRID_H
#define HWNAS_REPORT_GRID_H

#include "base/str.h"

typedef enum hwnas_grid_side { HWNAS_GRID_LEFT, HWNAS_GRID_RIGHT } hwnas_grid_side;

enum { HWNAS_GRID_COLUMNS = 72 };

/* Zeroed at first; release with hwnas_grid_done(). */
typedef struct hwnas_grid {
    int n_columns;
    hwnas_grid_side sides[HWNAS_GRID_COLUMNS];
    size_t n_cells, capacity; /* the first row is the headings */
    char **cells;             /* heap */
    bool *is_rest;            /* stands across what is left of its row */
} hwnas_grid;

/* All columns come before the first cell. The heading is copied. */
void hwnas_grid_column(hwnas_grid *grid, const char *heading, hwnas_grid_side side);
/* The next cell, from left to right. */
void hwnas_grid_cell(hwnas_grid *grid, const char *format, ...) HWNAS_PRINTF(2, 3);
/* The same of a text that is made already; it is freed. */
void hwnas_grid_take(hwnas_grid *grid, char *text);
/* A number with its decimals; NaN is "-". */
void hwnas_grid_number(hwnas_grid *grid, int decimals, double value);
/* Text across the columns that are left of this row. */
void hwnas_grid_rest(hwnas_grid *grid, const char *format, ...) HWNAS_PRINTF(2, 3);
/* What hwnas_set_columns() says; 0: no end. */
int hwnas_grid_most_columns(void);
/* In lines as long as that. */
void hwnas_grid_text(hwnas_str *out, const hwnas_grid *grid);
/* A text in which Markdown sees no markup. */
void hwnas_markdown_text(hwnas_str *out, const char *text);
/* As a table of Markdown (GitHub's), in which no text is markup. What stands across several columns
 * is in the first of them. */
void hwnas_grid_markdown(hwnas_str *out, const hwnas_grid *grid);
void hwnas_grid_done(hwnas_grid *grid);

/* So many that a figure has about four digits. */
int hwnas_grid_decimals(double value);
/* The same for what may be cents or thousands, seconds or weeks: of a large one none. */
int hwnas_figure_decimals(double value);
/* A figure with these; NaN is "-". */
void hwnas_grid_figure(hwnas_grid *grid, double value);
/* A difference to be shown with a sign: 0 where these decimals show no digit of it, so that nobody
 * reads "-0.00". */
double hwnas_shown_difference(double difference, int decimals);

#endif
