/* studies.c: what is done with studies as a whole: finding, merging and shrinking them, and what
 * they were made with.
 */
#include <stdlib.h>
#include <string.h>

#include "api/report_handle.h"
#include "api/study_handle.h"
#include "base/c_locale.h"
#include "report/grid.h"
#include "study/environment.h"
#include "study/merge.h"
#include "study/study_facts.h"

/* ---- Listing ---- */

typedef struct listed {
    char *space, *ended, *problem; /* problem: why it cannot be opened; NULL: it can */
    uint64_t n_trials, n_finished;
    int64_t bytes;
    bool is_running;
} listed;

static hwnas_status look_at(listed *out, hwnas_store *store)
{
    TRY(hwnas_store_count(&out->n_trials, &out->n_finished, store));
    TRY(hwnas_store_size(&out->bytes, store));
    TRY(hwnas_store_get(&out->space, store, "space"));
    if (out->space)
        out->space[strcspn(out->space, " ")] = '\0';
    return hwnas_store_get(&out->ended, store, "ended");
}

static void look(listed *out, const char *name)
{
    hwnas_store *store = NULL;
    hwnas_status status = hwnas_store_open(&store, name, HWNAS_STORE_READ);
    *out = (listed){.is_running = hwnas_study_is_running(name)};
    if (status == HWNAS_OK)
        status = look_at(out, store);
    hwnas_store_close(store);
    if (status == HWNAS_OK)
        return;
    out->problem = hwnas_strdup(hwnas_last_error()->message);
    hwnas_error_clear();
}

static void listed_done(listed *l)
{
    free(l->space);
    free(l->ended);
    free(l->problem);
}

static const char *state_of(const listed *l)
{
    return l->problem ? l->problem : l->is_running ? "running" : l->ended ? l->ended : "not ended";
}

static void add_row(hwnas_grid *grid, json_t *rows, const char *name, const listed *l)
{
    hwnas_grid_cell(grid, "%s", name);
    hwnas_grid_cell(grid, "%s", l->space ? l->space : "");
    hwnas_grid_cell(grid, "%llu", (unsigned long long)l->n_finished);
    hwnas_grid_number(grid, l->bytes < 1000000 ? 3 : 1, (double)l->bytes / 1e6);
    hwnas_grid_rest(grid, "%s", state_of(l));
    json_array_append_new(
        rows, json_pack("{s:s, s:s?, s:I, s:I, s:I, s:b, s:s?, s:s?}", "study", name, "space",
                        l->space, "trials", (json_int_t)l->n_trials, "finished",
                        (json_int_t)l->n_finished, "bytes", (json_int_t)l->bytes, "running",
                        l->is_running, "ended", l->ended, "problem", l->problem));
}

hwnas_status hwnas_studies_list(hwnas_report **out, const char *where)
{
    IN_C_LOCALE;
    char **names = NULL;
    size_t n = 0;
    hwnas_grid grid = {0};
    hwnas_rendering told = {0};
    json_t *rows = json_array();
    hwnas_status status = hwnas_store_list(&names, &n, where ? where : ".");
    hwnas_grid_column(&grid, "study", HWNAS_GRID_LEFT);
    hwnas_grid_column(&grid, "space", HWNAS_GRID_LEFT);
    hwnas_grid_column(&grid, "finished", HWNAS_GRID_RIGHT);
    hwnas_grid_column(&grid, "MB", HWNAS_GRID_RIGHT);
    hwnas_grid_column(&grid, "state", HWNAS_GRID_LEFT);
    for (size_t i = 0; i < n; i++) {
        listed l;
        look(&l, names[i]);
        add_row(&grid, rows, names[i], &l);
        listed_done(&l);
        free(names[i]);
    }
    free(names);
    if (status == HWNAS_OK) {
        hwnas_grid_text(&told.text, &grid);
        told.json =
            json_pack("{s:s, s:i, s:O}", "format", "hwnas.studies", "version", 1, "studies", rows);
        *out = hwnas_report_of(&told);
    }
    hwnas_grid_done(&grid);
    json_decref(rows);
    return status;
}

/* ---- Merging ---- */

hwnas_status hwnas_studies_merge(hwnas_report **out, const char *const *studies, size_t n,
                                 const char *to)
{
    IN_C_LOCALE;
    hwnas_merged merged;
    hwnas_rendering told = {0};
    if (!n)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "no study to take trials from");
    TRY(hwnas_text_check("the name of the study", to));
    TRY(hwnas_study_merge(&merged, to, studies, n));
    hwnas_str_addf(
        &told.text,
        "trials      %llu\nthe same    %llu left out\nunfinished  %llu left out\nstudy       %s\n",
        (unsigned long long)merged.n_trials, (unsigned long long)merged.n_same,
        (unsigned long long)merged.n_unfinished, to);
    told.json = json_pack("{s:s, s:i, s:s, s:I, s:I, s:I}", "format", "hwnas.merged", "version", 1,
                          "study", to, "trials", (json_int_t)merged.n_trials, "same",
                          (json_int_t)merged.n_same, "unfinished", (json_int_t)merged.n_unfinished);
    *out = hwnas_report_of(&told);
    return HWNAS_OK;
}

/* ---- Shrinking ---- */

static hwnas_status vacuum(int64_t *before, int64_t *after, hwnas_store *store)
{
    TRY(hwnas_store_size(before, store));
    TRY(hwnas_store_vacuum(store));
    return hwnas_store_size(after, store);
}

hwnas_status hwnas_study_vacuum(hwnas_report **out, const char *path)
{
    IN_C_LOCALE;
    hwnas_store *store;
    hwnas_rendering told = {0};
    int64_t before, after;
    hwnas_status status = hwnas_store_open(&store, path, HWNAS_STORE_RESUME);
    if (status == HWNAS_E_NOT_FOUND)
        return hwnas_hint(status, "'hwnas study list' lists those that are there");
    TRY(status);
    status = vacuum(&before, &after, store);
    hwnas_store_close(store);
    TRY(status);
    hwnas_str_addf(&told.text, "%.2f MB, before %.2f MB\n", (double)after / 1e6,
                   (double)before / 1e6);
    told.json =
        json_pack("{s:s, s:i, s:s, s:I, s:I}", "format", "hwnas.vacuum", "version", 1, "study",
                  path, "bytes", (json_int_t)after, "bytes_before", (json_int_t)before);
    *out = hwnas_report_of(&told);
    return HWNAS_OK;
}

/* ---- What it was made with ---- */

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "not known";
}

static void environment_text(hwnas_str *out, const json_t *e)
{
    const json_t *space = json_object_get(e, "space"), *machines = json_object_get(e, "machines");
    const json_t *contents = json_object_get(e, "contents");
    const char *name;
    json_t *device;
    hwnas_str_addf(out, "%-11s hwnas %s\n", "begun by", text_of(e, "begun_by"));
    hwnas_str_addf(out, "%-11s %s, %s networks, digest %s of %s\n", "space", text_of(space, "name"),
                   text_of(space, "networks"), text_of(space, "digest"), text_of(space, "largest"));
    if (json_is_string(json_object_get(contents, "accuracy")))
        hwnas_str_addf(out, "%-11s %s\n", "accuracy", text_of(contents, "accuracy"));
    for (size_t i = 0; i < json_array_size(json_object_get(contents, "devices")); i++) {
        const json_t *one = json_array_get(json_object_get(contents, "devices"), i);
        hwnas_str_addf(out, "%-11s %s: %s\n", "device", text_of(one, "name"),
                       text_of(one, "device"));
    }
    json_object_foreach(json_object_get(e, "devices"), name, device)
        hwnas_str_addf(out, "%-11s %s: %s, %s, %s, threads %d\n", "measured on", name,
                       text_of(device, "name"), text_of(device, "library"), text_of(device, "isa"),
                       (int)json_integer_value(json_object_get(device, "threads")));
    for (size_t i = 0; i < json_array_size(machines); i++) {
        const json_t *m = json_array_get(machines, i);
        hwnas_str_addf(out, "%-11s %s: hwnas %s, %s %s, %s, %s\n", "machine", text_of(m, "host"),
                       text_of(m, "hwnas"), text_of(m, "system"), text_of(m, "kernel"),
                       text_of(m, "machine"), text_of(m, "processor"));
    }
}

hwnas_status hwnas_study_environment(hwnas_report **out, hwnas_study *study)
{
    IN_C_LOCALE;
    hwnas_rendering told = {0};
    TRY(hwnas_environment_load(&told.json, hwnas_study_store(study)));
    environment_text(&told.text, told.json);
    *out = hwnas_report_of(&told);
    return HWNAS_OK;
}
