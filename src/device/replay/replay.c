/* replay.c: published measurements of real devices, read from a table: `replay:FILE#COLUMN`.
 *
 * A row is found by an architecture's code. The choices that the code names are columns of the
 * table; a code without a name, or with a single one, is also looked for in the columns `arch` and
 * `code`. What the values are, and in which unit, is told by the end of the column's name. */
#include "device/devices.h"

#include <fnmatch.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "base/csv.h"
#include "base/str.h"

enum { MAX_KEYS = 32 };

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

typedef struct replay_device {
    hwnas_device base;
    hwnas_csv *csv;
    size_t column; /* of the values */
    const struct meaning *meaning;
    /* The index: open addressing over rows + 1, 0 is empty; made for the key columns of the first
     * code, and again when a code names others. */
    size_t n_keys, n_slots;
    size_t keys[MAX_KEYS];
    size_t *slots;
} replay_device;

/* An architecture's code taken apart; texts are borrowed from `copy`. */
typedef struct parsed_code {
    char *copy;
    size_t n;
    size_t columns[MAX_KEYS];
    const char *values[MAX_KEYS];
} parsed_code;

static void replay_close(hwnas_device *base)
{
    replay_device *device = (replay_device *)base;
    hwnas_csv_free(device->csv);
    free(device->slots);
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

static hwnas_status replay_open(hwnas_device **out, const char *argument,
                                const hwnas_device_options *options)
{
    (void)options;
    hwnas_status status = HWNAS_OK;
    const char *column = strrchr(argument, '#');
    if (!column || column == argument || !column[1])
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, NULL, "device 'replay' needs a table and a column"),
            "write replay:FILE.csv#COLUMN");
    double value;
    replay_device *device = hwnas_alloc(sizeof *device);
    char *path = hwnas_printf("%.*s", (int)(column++ - argument), argument);
    TRY_OUT(hwnas_csv_load(&device->csv, path));
    TRY_OUT(hwnas_csv_require(&device->column, device->csv, column));
    device->meaning = meaning_of(column);
    if (!device->meaning) {
        status = unclear(device->csv, column);
        goto out;
    }
    for (size_t row = 0; row < device->csv->n_rows; row++)
        if (*hwnas_csv_cell(device->csv, row, device->column))
            TRY_OUT(hwnas_csv_number(&value, device->csv, row, device->column));
    *out = &device->base;
    device = NULL;
out:
    if (device)
        replay_close(&device->base);
    free(path);
    return status;
}

static void replay_describe(const hwnas_device *base, hwnas_device_info *out)
{
    const replay_device *device = (const replay_device *)base;
    *out = (hwnas_device_info){.library = "published table", .isa = "none", .threads = 0};
    snprintf(out->name, sizeof out->name, "%s#%s", device->csv->path,
             device->csv->names[device->column]);
}

/* The column of a choice. Tables of a space with one choice call it by other names. */
static hwnas_status column_of(size_t *out, const hwnas_csv *csv, const char *choice, bool is_single)
{
    const char *names[] = {choice, is_single ? "arch" : NULL, is_single ? "code" : NULL};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const long column = names[i] ? hwnas_csv_column(csv, names[i]) : -1;
        if (column >= 0) {
            *out = (size_t)column;
            return HWNAS_OK;
        }
    }
    return choice ? hwnas_csv_require(out, csv, choice)
                  : hwnas_fail(HWNAS_E_INPUT, NULL, "%s has no column 'arch' or 'code'", csv->path);
}

static hwnas_status parse_code(parsed_code *out, const hwnas_csv *csv, const char *code)
{
    out->copy = hwnas_strdup(code);
    const bool is_single = !strchr(code, ',');
    char *rest = out->copy;
    for (char *part; (part = strsep(&rest, ","));) {
        char *value = strchr(part, '=');
        if (out->n == MAX_KEYS || (!value && !is_single))
            return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL, "'%s' is not an architecture", code),
                              "write NAME=VALUES for each choice, joined by commas");
        if (value)
            *value++ = '\0';
        TRY(column_of(&out->columns[out->n], csv, value ? part : NULL, is_single));
        out->values[out->n++] = value ? value : part;
    }
    return HWNAS_OK;
}

static XXH64_hash_t hash_next(XXH64_hash_t hash, const char *text)
{
    return XXH3_64bits_withSeed(text, strlen(text), hash);
}

static bool row_matches(const replay_device *device, size_t row, const char *const *values)
{
    for (size_t i = 0; i < device->n_keys; i++)
        if (strcmp(hwnas_csv_cell(device->csv, row, device->keys[i]), values[i]))
            return false;
    return true;
}

/* The slot of the row with these values, or the empty one where it would be. */
static size_t *find_slot(const replay_device *device, const char *const *values)
{
    XXH64_hash_t hash = 0;
    for (size_t i = 0; i < device->n_keys; i++)
        hash = hash_next(hash, values[i]);
    for (size_t at = hash & (device->n_slots - 1);; at = (at + 1) & (device->n_slots - 1)) {
        size_t *slot = &device->slots[at];
        if (!*slot || row_matches(device, *slot - 1, values))
            return slot;
    }
}

/* Where a table measured one architecture more than once, the first row counts. */
static void index_by(replay_device *device, const parsed_code *code)
{
    const hwnas_csv *csv = device->csv;
    free(device->slots);
    device->n_keys = code->n;
    memcpy(device->keys, code->columns, sizeof device->keys);
    for (device->n_slots = 16; device->n_slots < 2 * csv->n_rows;)
        device->n_slots *= 2;
    device->slots = hwnas_alloc(device->n_slots * sizeof *device->slots);
    for (size_t row = 0; row < csv->n_rows; row++) {
        const char *values[MAX_KEYS];
        for (size_t i = 0; i < device->n_keys; i++)
            values[i] = hwnas_csv_cell(csv, row, device->keys[i]);
        size_t *slot = find_slot(device, values);
        if (!*slot)
            *slot = row + 1;
    }
}

static hwnas_status replay_lookup(double *out, const char **metric, hwnas_device *base,
                                  const char *code)
{
    hwnas_status status = HWNAS_OK;
    replay_device *device = (replay_device *)base;
    parsed_code parsed = {0};
    double value = 0;
    TRY_OUT(parse_code(&parsed, device->csv, code));
    if (parsed.n != device->n_keys ||
        memcmp(parsed.columns, device->keys, parsed.n * sizeof *parsed.columns))
        index_by(device, &parsed);
    const size_t row = *find_slot(device, parsed.values);
    if (!row || !*hwnas_csv_cell(device->csv, row - 1, device->column)) {
        status = hwnas_fail(HWNAS_E_NOT_FOUND, NULL, "%s has no %s for '%s'", device->csv->path,
                            device->csv->names[device->column], code);
        goto out;
    }
    TRY_OUT(hwnas_csv_number(&value, device->csv, row - 1, device->column));
    *out = value * device->meaning->factor;
    *metric = device->meaning->metric;
out:
    free(parsed.copy);
    return status;
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
    .lookup_metric = replay_lookup_metric,
};
