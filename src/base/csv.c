/* csv.c: libcsv splits the text into cells; here they are counted, placed and kept.
 *
 * libcsv does not say where in the text it is, so it is fed one line at a time. A quoted cell may
 * span lines: a row is placed at the line where it begins. */
#include "base/csv.h"

#include <csv.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

#define LIMIT ((size_t)256 << 20)
#define MAX_COLUMNS 4096 /* keeps the search for names that appear twice short */

typedef struct loader {
    hwnas_csv *csv;
    struct csv_parser parser;
    hwnas_status status; /* the first failure; callbacks cannot return one */
    const char **cells;  /* the header's names, NULL, then the cells */
    size_t n_cells, cells_capacity, lines_capacity;
    size_t row_cells; /* of the row being read */
    bool has_header;
    int line, row_line, cell_line; /* being read, where the row began, where the cell began */
} loader;

static hwnas_place at(const loader *l, int line)
{
    return (hwnas_place){.file = l->csv->path, .line = line};
}

static void push_cell(loader *l, const char *cell)
{
    HWNAS_GROW(l->cells, l->n_cells, l->cells_capacity);
    l->cells[l->n_cells++] = cell;
}

static void on_cell(void *bytes, size_t length, void *data)
{
    loader *l = data;
    if (l->status != HWNAS_OK)
        return;
    hwnas_place place = at(l, l->row_line);
    if (l->has_header && l->row_cells == l->csv->n_columns)
        l->status =
            hwnas_fail(HWNAS_E_INPUT, &place,
                       "the row has more cells than the header, which has %zu", l->csv->n_columns);
    else if (l->row_cells == MAX_COLUMNS)
        l->status = hwnas_fail(HWNAS_E_INPUT, &place, "more than %d columns", MAX_COLUMNS);
    else
        push_cell(l, length ? hwnas_arena_string(l->csv->arena, bytes, length) : "");
    l->row_cells++;
    l->cell_line = l->line;
}

static hwnas_status end_header(loader *l)
{
    hwnas_place place = at(l, l->row_line);
    for (size_t i = 0; i < l->n_cells; i++) {
        if (!*l->cells[i])
            return hwnas_fail(HWNAS_E_INPUT, &place, "column %zu has no name", i + 1);
        for (size_t j = 0; j < i; j++)
            if (!strcmp(l->cells[i], l->cells[j]))
                return hwnas_fail(HWNAS_E_INPUT, &place, "columns %zu and %zu are both called '%s'",
                                  j + 1, i + 1, l->cells[i]);
    }
    l->csv->n_columns = l->n_cells;
    l->has_header = true;
    push_cell(l, NULL);
    return HWNAS_OK;
}

static hwnas_status end_row(loader *l)
{
    hwnas_csv *csv = l->csv;
    hwnas_place place = at(l, l->row_line);
    if (l->row_cells < csv->n_columns)
        return hwnas_fail(HWNAS_E_INPUT, &place, "the row has %zu cells, the header has %zu",
                          l->row_cells, csv->n_columns);
    HWNAS_GROW(csv->lines, csv->n_rows, l->lines_capacity);
    csv->lines[csv->n_rows++] = l->row_line;
    return HWNAS_OK;
}

static void on_row(int terminator, void *data)
{
    (void)terminator;
    loader *l = data;
    if (l->status == HWNAS_OK)
        l->status = l->has_header ? end_row(l) : end_header(l);
    l->row_cells = 0;
    l->row_line = 0;
}

/* Up to and with the next LF, CR LF or lone CR. */
static size_t line_length(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (text[i] == '\n' || (text[i] == '\r' && (i + 1 == n || text[i + 1] != '\n')))
            return i + 1;
    return n;
}

static bool is_blank(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strchr(" \t\r\n", text[i]) || !text[i])
            return false;
    return true;
}

/* Of the header: what stands outside of quotes. Programs write semicolons where a comma is the
 * decimal one. */
static char separator_of(const char *line, size_t n)
{
    char found = 0;
    bool is_quoted = false;
    for (size_t i = 0; i < n; i++) {
        is_quoted ^= line[i] == '"';
        if (!is_quoted && line[i] == ',')
            return ',';
        if (!is_quoted && !found && (line[i] == ';' || line[i] == '\t'))
            found = line[i];
    }
    return found ? found : ',';
}

static hwnas_status parse_line(loader *l, const char *text, size_t n)
{
    l->line++;
    if (!l->row_line) { /* not inside a quoted cell of a row that began above */
        if (is_blank(text, n))
            return HWNAS_OK;
        l->row_line = l->cell_line = l->line;
        if (!l->csv->separator) {
            l->csv->separator = separator_of(text, n);
            csv_set_delim(&l->parser, (unsigned char)l->csv->separator);
        }
    }
    hwnas_place place = at(l, l->line);
    if (memchr(text, '\0', n))
        return hwnas_fail(HWNAS_E_INPUT, &place, "a zero byte: this is not a text file");
    size_t n_parsed = csv_parse(&l->parser, text, n, on_cell, on_row, l);
    if (l->status != HWNAS_OK)
        return l->status;
    if (n_parsed < n && csv_error(&l->parser) != CSV_EPARSE)
        return hwnas_fail(HWNAS_E_MEMORY, &place, "%s", csv_strerror(csv_error(&l->parser)));
    if (n_parsed < n)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "a quote inside a cell"),
                          "put the whole cell in quotes and write each quote in it twice");
    return HWNAS_OK;
}

static hwnas_status parse(loader *l, const char *text, size_t n)
{
    for (size_t done = 0, length; done < n; done += length) {
        length = line_length(text + done, n - done);
        TRY(parse_line(l, text + done, length));
    }
    hwnas_place place = at(l, l->cell_line);
    if (csv_fini(&l->parser, on_cell, on_row, l))
        return hwnas_fail(HWNAS_E_INPUT, &place, "the quote that opens here is never closed");
    TRY(l->status);
    place.line = 0;
    if (!l->has_header)
        return hwnas_fail(HWNAS_E_INPUT, &place, "the file is empty, a header row was expected");
    return HWNAS_OK;
}

hwnas_status hwnas_csv_parse(hwnas_csv **out, const char *path, const char *text, size_t n)
{
    hwnas_csv *csv = hwnas_alloc(sizeof *csv);
    csv->arena = hwnas_arena_new();
    csv->path = hwnas_arena_printf(csv->arena, "%s", path);
    loader l = {.csv = csv};
    csv_init(&l.parser, CSV_STRICT | CSV_STRICT_FINI);
    hwnas_status status = parse(&l, text, n);
    csv_free(&l.parser);
    csv->names = l.cells;
    if (status != HWNAS_OK) {
        hwnas_csv_free(csv);
        return status;
    }
    csv->cells = l.cells + csv->n_columns + 1;
    *out = csv;
    return HWNAS_OK;
}

hwnas_status hwnas_csv_load(hwnas_csv **out, const char *path)
{
    hwnas_csv *csv = NULL;
    char *text = NULL;
    size_t n = 0;
    hwnas_place place = {.file = path};
    TRY(hwnas_file_read_text(&text, &n, path, LIMIT));
    hwnas_status status = hwnas_csv_parse(&csv, path, text, n);
    free(text);
    if (status == HWNAS_OK && !csv->n_rows) {
        hwnas_csv_free(csv);
        return hwnas_fail(HWNAS_E_INPUT, &place, "there is a header but no row");
    }
    if (status == HWNAS_OK)
        *out = csv;
    return status;
}

void hwnas_csv_free(hwnas_csv *csv)
{
    if (!csv)
        return;
    free(csv->names); /* the cells are behind them */
    free(csv->lines);
    hwnas_arena_free(csv->arena);
    free(csv);
}

long hwnas_csv_column(const hwnas_csv *csv, const char *name)
{
    for (size_t i = 0; i < csv->n_columns; i++)
        if (!strcmp(csv->names[i], name))
            return (long)i;
    return -1;
}

hwnas_status hwnas_csv_require(size_t *out, const hwnas_csv *csv, const char *name)
{
    long column = hwnas_csv_column(csv, name);
    if (column >= 0) {
        *out = (size_t)column;
        return HWNAS_OK;
    }
    hwnas_place place = {.file = csv->path};
    hwnas_status status = hwnas_fail(HWNAS_E_INPUT, &place, "there is no column '%s'", name);
    const char *nearest = hwnas_nearest(name, csv->names);
    if (nearest)
        return hwnas_hint(status, "did you mean '%s'?", nearest);
    hwnas_str list = {0};
    for (size_t i = 0; i < csv->n_columns; i++)
        hwnas_str_addf(&list, "%s%s", i ? ", " : "", csv->names[i]);
    hwnas_hint(status, "the columns are %s", list.s);
    hwnas_str_done(&list);
    return status;
}

const char *hwnas_csv_cell(const hwnas_csv *csv, size_t row, size_t column)
{
    return csv->cells[row * csv->n_columns + column];
}

/* As strtod(). */
static double to_number(const hwnas_csv *csv, const char *cell, const char **end)
{
    char *to, text[64];
    const char *comma = csv->separator == ',' ? NULL : strchr(cell, ',');
    if (!comma || strchr(cell, '.') || strlen(cell) >= sizeof text) {
        const double value = strtod(cell, &to);
        *end = to;
        return value;
    }
    strcpy(text, cell);
    text[comma - cell] = '.';
    const double value = strtod(text, &to);
    *end = cell + (to - text);
    return value;
}

hwnas_status hwnas_csv_number(double *out, const hwnas_csv *csv, size_t row, size_t column)
{
    const char *cell = hwnas_csv_cell(csv, row, column), *name = csv->names[column];
    hwnas_place place = {.file = csv->path, .line = csv->lines[row]};
    if (!*cell)
        return hwnas_fail(HWNAS_E_INPUT, &place, "column '%s' is empty, a number was expected",
                          name);
    const char *end;
    const double value = to_number(csv, cell, &end);
    /* strtod() also takes hexadecimal, "inf" and "nan". */
    if (*end || cell[strspn(cell, "+-.,0123456789eE")])
        return hwnas_fail(HWNAS_E_INPUT, &place, "column '%s': '%s' is not a number", name, cell);
    if (!isfinite(value))
        return hwnas_fail(HWNAS_E_INPUT, &place, "column '%s': %s is too large", name, cell);
    *out = value;
    return HWNAS_OK;
}

void hwnas_csv_text(hwnas_str *out, const char *text)
{
    if (!strpbrk(text, ",\"\n")) {
        hwnas_str_add(out, text);
        return;
    }
    hwnas_str_add(out, "\"");
    for (; *text; text++)
        hwnas_str_addf(out, *text == '"' ? "\"\"" : "%c", *text);
    hwnas_str_add(out, "\"");
}
