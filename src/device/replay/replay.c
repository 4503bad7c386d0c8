/* replay.c: published measurements of real devices, read from a table: `replay:FILE#COLUMN`.
 *
 * Its rows are read as those of all tables (space/table.h); rows of other spaces are passed over.
 * What the values are, and in which unit, is told by the end of the column's name. */
#include "device/devices.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "space/table.h"
#include "space/table_columns.h"

/* First match wins. */
static const struct meaning {
    const char *pattern, *metric;
    double factor; /* to SI */
} meanings[] = {
    {"*_ms", "latency.p50", 1e-3},
    {"*_us", "latency.p50", 1e-6},
    {"*_mj", "energy", 1e-3},
    {"*macs_count*", "macs", 1},
    {"*macs_m", "macs", 1e6},
    {"*params_count", "params", 1},
    {"*params_m", "params", 1e6},
};

/* An architecture that has a value. */
typedef struct record {
    char *code;
    size_t row;
} record;

typedef struct replay_device {
    hwnas_device base;
    char *path; /* with the columns' names, as a table is named */
    char *column;
    const struct meaning *meaning;
    hwnas_table *table; /* of the space; NULL before it is known */
    size_t index;       /* of the column */
    double *values;     /* of it, as hwnas_table_values() has them */
    size_t n;
    const hwnas_arch **archs; /* those with a value, the first row of each; borrowed */
    record *records;          /* of these, by code */
} replay_device;

static void forget(replay_device *device)
{
    for (size_t i = 0; i < device->n; i++)
        free(device->records[i].code);
    free(device->records);
    free(device->archs);
    free(device->values);
    hwnas_table_free(device->table);
    device->records = NULL;
    device->archs = NULL;
    device->values = NULL;
    device->table = NULL;
    device->n = 0;
}

static void replay_close(hwnas_device *base)
{
    replay_device *device = (replay_device *)base;
    forget(device);
    free(device->path);
    free(device->column);
    free(device);
}

static const struct meaning *meaning_of(const char *column)
{
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if (!fnmatch(meanings[i].pattern, column, 0))
            return &meanings[i];
    return NULL;
}

static hwnas_status unclear(const hwnas_csv *csv, const char *column)
{
    hwnas_str known = {0};
    for (size_t i = 0; i < csv->n_columns; i++)
        if (meaning_of(csv->names[i]))
            hwnas_str_addf(&known, "%s%s", known.n ? ", " : "", csv->names[i]);
    hwnas_status status =
        hwnas_fail(HWNAS_E_INPUT, NULL,
                   "what column '%s' of %s measures is not clear from its name", column, csv->path);
    status = known.n ? hwnas_hint(status, "columns that can be replayed: %s", known.s)
                     : hwnas_hint(status, "names end in _ms, _us, _mj, macs_count, macs_m, "
                                          "params_count or params_m");
    hwnas_str_done(&known);
    return status;
}

/* That the column is there, of numbers, and means something. */
static hwnas_status check_column(replay_device *device)
{
    hwnas_status status = HWNAS_OK;
    hwnas_csv *csv = NULL;
    const char *names;
    char *file = hwnas_table_file(&names, device->path);
    double value;
    TRY_OUT(hwnas_csv_load(&csv, file));
    TRY_OUT(hwnas_csv_require(&device->index, csv, device->column));
    device->meaning = meaning_of(device->column);
    if (!device->meaning) {
        status = unclear(csv, device->column);
        goto out;
    }
    for (size_t row = 0; row < csv->n_rows; row++)
        if (*hwnas_csv_cell(csv, row, device->index))
            TRY_OUT(hwnas_csv_number(&value, csv, row, device->index));
out:
    hwnas_csv_free(csv);
    free(file);
    return status;
}

static hwnas_status replay_open(hwnas_device **out, const char *argument,
                                const hwnas_device_options *options)
{
    (void)options;
    const char *column = strrchr(argument, '#');
    if (!column || column == argument || !column[1])
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, NULL, "device 'replay' needs a table and a column"),
            "write replay:FILE.csv#COLUMN");
    replay_device *device = hwnas_alloc(sizeof *device);
    device->path = hwnas_printf("%.*s", (int)(column - argument), argument);
    device->column = hwnas_strdup(column + 1);
    const hwnas_status status = check_column(device);
    if (status == HWNAS_OK)
        *out = &device->base;
    else
        replay_close(&device->base);
    return status;
}

static void replay_describe(const hwnas_device *base, hwnas_device_info *out)
{
    const replay_device *device = (const replay_device *)base;
    const char *names;
    char *file = hwnas_table_file(&names, device->path);
    *out = (hwnas_device_info){.library = "published table", .isa = "none", .threads = 0};
    snprintf(out->name, sizeof out->name, "%s#%s", file, device->column);
    free(file);
}

static int by_code(const void *a, const void *b)
{
    return strcmp(((const record *)a)->code, ((const record *)b)->code);
}

static void find_records(replay_device *device)
{
    const hwnas_table *table = device->table;
    device->archs = hwnas_alloc((table->n_inside + 1) * sizeof *device->archs);
    device->records = hwnas_alloc((table->n_inside + 1) * sizeof *device->records);
    for (size_t row = 0; row < table->n; row++) {
        if (isnan(device->values[row]))
            continue;
        device->archs[device->n] = table->archs[row];
        device->records[device->n++] = (record){hwnas_arch_code(table->archs[row]), row};
    }
    qsort(device->records, device->n, sizeof *device->records, by_code);
}

static hwnas_status replay_recall(const hwnas_arch *const **out, size_t *n, hwnas_device *base,
                                  const hwnas_space *space)
{
    replay_device *device = (replay_device *)base;
    forget(device);
    TRY(hwnas_table_load_part(&device->table, space, device->path));
    TRY(hwnas_table_values(&device->values, device->table, device->index));
    find_records(device);
    *out = device->archs;
    *n = device->n;
    return device->n ? HWNAS_OK
                     : hwnas_fail(HWNAS_E_INPUT, NULL,
                                  "column '%s' of %s is empty for all networks of "
                                  "the space '%s'",
                                  device->column, device->table->csv->path, space->name);
}

static hwnas_status replay_lookup(double *out, const char **metric, hwnas_device *base,
                                  const char *code)
{
    const replay_device *device = (const replay_device *)base;
    const record wanted = {.code = (char *)code};
    const record *found =
        device->n ? bsearch(&wanted, device->records, device->n, sizeof *device->records, by_code)
                  : NULL;
    if (!found)
        return hwnas_fail(HWNAS_E_NOT_FOUND, NULL, "%s has no %s for '%s'", device->path,
                          device->column, code);
    *out = device->values[found->row] * device->meaning->factor;
    *metric = device->meaning->metric;
    return HWNAS_OK;
}

static const char *replay_lookup_metric(const hwnas_device *base)
{
    return ((const replay_device *)base)->meaning->metric;
}

const hwnas_device_ops hwnas_replay_device = {
    .abi = HWNAS_DEVICE_ABI,
    .name = "replay",
    .help = "published measurements: replay:FILE.csv#COLUMN",
    .open = replay_open,
    .describe = replay_describe,
    .close = replay_close,
    .lookup = replay_lookup,
    .recall = replay_recall,
    .lookup_metric = replay_lookup_metric,
};
