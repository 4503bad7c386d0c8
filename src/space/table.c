/* table.c: rows of a CSV as architectures, and an index over them. */
#include "space/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "space/table_columns.h"

/* The public part first, so that a hwnas_table is one of these. Open addressing with linear
 * probing; a slot holds a row plus one, 0 is free. */
typedef struct indexed_table {
    hwnas_table table;
    size_t *slots, mask;
} indexed_table;

static hwnas_status parse_row(hwnas_arch **out, const hwnas_table_columns *columns,
                              const hwnas_space *space, const hwnas_csv *csv, size_t row)
{
    hwnas_str code = {0};
    hwnas_table_columns_code(&code, columns, space, csv, row);
    hwnas_status status = hwnas_arch_parse(out, space, code.s);
    hwnas_str_done(&code);
    if (status == HWNAS_OK)
        return status;
    hwnas_error error = *hwnas_last_error(); /* it knows what is wrong, not where */
    const hwnas_place place = {.file = csv->path, .line = csv->lines[row]};
    return hwnas_hint(hwnas_fail(status, &place, "%s", error.message), "%s", error.hint);
}

/* The slot of an architecture, or the free one where it belongs. */
static size_t *find_slot(const indexed_table *indexed, const hwnas_arch *arch)
{
    size_t at = hwnas_arch_hash(arch) & indexed->mask;
    while (indexed->slots[at] &&
           !hwnas_arch_equal(indexed->table.archs[indexed->slots[at] - 1], arch))
        at = (at + 1) & indexed->mask;
    return &indexed->slots[at];
}

static hwnas_status none_inside(const hwnas_table *table, const hwnas_space *space)
{
    const hwnas_error error = *hwnas_last_error(); /* of the first row */
    const hwnas_place place = {.file = table->csv->path, .line = table->csv->lines[0]};
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place,
                                 "none of the table's %zu rows is of the space '%s'; the first: %s",
                                 table->csv->n_rows, space->name, error.message),
                      "%s", error.hint);
}

static hwnas_status parse_rows(hwnas_table *table, const hwnas_table_columns *columns,
                               const hwnas_space *space, bool is_part)
{
    table->archs = hwnas_alloc((table->csv->n_rows + 1) * sizeof *table->archs);
    for (; table->n < table->csv->n_rows; table->n++) {
        const hwnas_status status =
            parse_row(&table->archs[table->n], columns, space, table->csv, table->n);
        if (status != HWNAS_OK && !is_part)
            return status;
        table->n_inside += status == HWNAS_OK;
    }
    if (table->n_inside == table->n)
        return HWNAS_OK;
    if (!table->n_inside && parse_row(&table->archs[0], columns, space, table->csv, 0) != HWNAS_OK)
        return none_inside(table, space);
    hwnas_error_clear();
    return HWNAS_OK;
}

static hwnas_status load(hwnas_table **out, const hwnas_space *space, const char *path,
                         bool is_part)
{
    hwnas_status status = HWNAS_OK;
    hwnas_table_columns columns = {0};
    const char *names;
    char *file = hwnas_table_file(&names, path);
    indexed_table *indexed = hwnas_alloc(sizeof *indexed);
    hwnas_table *table = &indexed->table;
    TRY_OUT(hwnas_csv_load(&table->csv, file));
    TRY_OUT(hwnas_table_columns_find(&columns, space, table->csv, names));
    TRY_OUT(parse_rows(table, &columns, space, is_part));

    size_t n_slots = 16;
    while (n_slots < 2 * table->n)
        n_slots *= 2;
    indexed->mask = n_slots - 1;
    indexed->slots = hwnas_alloc(n_slots * sizeof *indexed->slots);
    for (size_t row = 0; row < table->n; row++) {
        if (!table->archs[row])
            continue;
        size_t *slot = find_slot(indexed, table->archs[row]);
        if (!*slot)
            *slot = row + 1;
    }
    *out = table;
    table = NULL;
out:
    hwnas_table_free(table);
    hwnas_table_columns_done(&columns);
    free(file);
    return status;
}

hwnas_status hwnas_table_load(hwnas_table **out, const hwnas_space *space, const char *path)
{
    return load(out, space, path, false);
}

hwnas_status hwnas_table_load_part(hwnas_table **out, const hwnas_space *space, const char *path)
{
    return load(out, space, path, true);
}

void hwnas_table_free(hwnas_table *table)
{
    if (!table)
        return;
    indexed_table *indexed = (indexed_table *)table;
    for (size_t row = 0; row < table->n; row++)
        hwnas_arch_free(table->archs[row]);
    free(table->archs);
    free(indexed->slots);
    hwnas_csv_free(table->csv);
    free(indexed);
}

/* Networks whose rows have different values, and the first two such rows. */
typedef struct repeats {
    size_t n, first, again;
} repeats;

static void note_repeats(const repeats *r, const hwnas_csv *csv, size_t column)
{
    if (r->n)
        hwnas_log(
            HWNAS_LOG_NOTE,
            "%s:%d: the network of %s:%d again, with another '%s'%s; the mean of all rows of a "
            "network counts",
            csv->path, csv->lines[r->again], csv->path, csv->lines[r->first], csv->names[column],
            r->n > 1 ? ", and so have others" : "");
}

hwnas_status hwnas_table_values(double **out, const hwnas_table *table, size_t column)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_csv *csv = table->csv;
    repeats r = {0};
    double *values = hwnas_alloc((table->n + 1) * sizeof *values), value;
    /* Of the first row of a network: how many it is the sum of, the first of them, and whether they
     * differ. */
    struct {
        double value;
        size_t n, row;
        bool differ;
    } *of = hwnas_alloc((table->n + 1) * sizeof *of);
    for (size_t row = 0; row < table->n; row++) {
        values[row] = NAN;
        if (!table->archs[row] || !*hwnas_csv_cell(csv, row, column))
            continue;
        TRY_OUT(hwnas_csv_number(&value, csv, row, column));
        const size_t at = (size_t)hwnas_table_find(table, table->archs[row]);
        if (!of[at].n) {
            of[at].row = row;
            of[at].value = value;
        } else if (value != of[at].value && !of[at].differ) {
            of[at].differ = true;
            if (!r.n++)
                r.first = of[at].row, r.again = row;
        }
        values[at] = of[at].n++ ? values[at] + value : value;
    }
    for (size_t row = 0; row < table->n; row++)
        if (of[row].n)
            values[row] = of[row].differ ? values[row] / (double)of[row].n : of[row].value;
    note_repeats(&r, csv, column);
    *out = values;
    values = NULL;
out:
    free(values);
    free(of);
    return status;
}

long hwnas_table_find(const hwnas_table *table, const hwnas_arch *arch)
{
    return (long)*find_slot((const indexed_table *)table, arch) - 1;
}
