/* page_handle.c: hwnas/page.h: pages of files, and pictures of them. */
#include <hwnas/page.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "api/report_handle.h"
#include "base/c_locale.h"
#include "base/file.h"
#include "report/layer_table.h"
#include "report/page.h"
#include "report/png.h"
#include "report/profile_text.h"
#include "report/recorded.h"

/* ---- What was recorded ---- */

static json_t *recorded_json(const void *found)
{
    return hwnas_recorded_page(found);
}

static void recorded_csv(hwnas_str *out, const void *found)
{
    hwnas_profile_csv(out, ((const hwnas_recorded *)found)->profile);
}

static void recorded_markdown(hwnas_str *out, const void *found)
{
    hwnas_profile_markdown(out, ((const hwnas_recorded *)found)->profile);
    hwnas_layers_markdown(out, ((const hwnas_recorded *)found)->profile);
}

static hwnas_status recorded_svg(hwnas_str *out, const void *found, const char *picture)
{
    return hwnas_recorded_picture(out, found, picture);
}

static void recorded_free(void *found)
{
    hwnas_recorded_done(found);
    free(found);
}

static hwnas_status open_recorded(hwnas_report **out, const char *path)
{
    static const hwnas_report_kind kind = {.json = recorded_json,
                                           .csv = recorded_csv,
                                           .html = hwnas_page_draw,
                                           .markdown = recorded_markdown,
                                           .svg = recorded_svg,
                                           .free = recorded_free};
    hwnas_recorded recorded;
    TRY(hwnas_recorded_load(&recorded, path));
    hwnas_recorded *found = hwnas_alloc(sizeof *found);
    *found = recorded;
    *out = hwnas_report_new(&kind, found);
    return HWNAS_OK;
}

/* JSON begins with a brace, maybe behind a byte order mark, and comes from a pipe as well; a study
 * does neither. A mark of UTF-16 is what its reader complains of. */
static bool is_recorded(const char *path)
{
    struct stat st;
    char start[64] = "";
    if (stat(path, &st) || S_ISDIR(st.st_mode))
        return false;
    if (!S_ISREG(st.st_mode))
        return true;
    FILE *file = hwnas_file_stream(path);
    if (!file)
        return false;
    start[fread(start, 1, sizeof start - 1, file)] = '\0';
    fclose(file);
    const char *at = start + (hwnas_starts_with(start, "\xef\xbb\xbf") ? 3 : 0);
    at += strspn(at, " \t\r\n");
    return *at == '{' || hwnas_starts_with(at, "\xff\xfe") || hwnas_starts_with(at, "\xfe\xff");
}

hwnas_status hwnas_page_open(hwnas_report **out, const char *path)
{
    IN_C_LOCALE;
    hwnas_study *study;
    if (is_recorded(path))
        return open_recorded(out, path);
    TRY(hwnas_study_read(&study, path));
    hwnas_status status = hwnas_page_of_study(out, study);
    hwnas_study_close(study);
    return status;
}

/* ---- Several files in one page ---- */

static hwnas_status add_study(hwnas_report *page, const char *path)
{
    const char *note;
    hwnas_report *other;
    if (json_object_get(hwnas_report_added(page), "beside"))
        return hwnas_fail(HWNAS_E_USAGE, NULL, "%s: a page has two studies at most", path);
    TRY(hwnas_page_open(&other, path));
    json_t *json = hwnas_report_json(other);
    for (size_t i = 0; (note = hwnas_report_note(other, i)); i++)
        hwnas_report_add_note(page, note);
    hwnas_report_free(other);
    if (!json)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "%s: a name in it is not UTF-8", path);
    json_object_set_new(hwnas_report_added(page), "beside", json);
    return HWNAS_OK;
}

static bool has_layers(const hwnas_recorded *recorded)
{
    size_t i;
    json_t *row;
    json_array_foreach(recorded->rows, i, row)
    {
        if (json_array_size(json_object_get(json_object_get(row, "layers"), "list")))
            return true;
    }
    return false;
}

/* Whether some row is of a network of the study, by its code. */
static bool is_of_trial(const hwnas_recorded *recorded, const hwnas_report *page)
{
    bool is_one = false;
    size_t i, k;
    json_t *row, *code, *study = hwnas_report_json(page);
    json_t *codes = json_object_get(json_object_get(study, "trials"), "arch");
    json_array_foreach(recorded->rows, i, row)
    {
        json_array_foreach(codes, k, code)
        {
            is_one |= json_equal(json_object_get(row, "arch"), code);
        }
    }
    json_decref(study);
    return is_one;
}

static hwnas_status add_recorded(hwnas_report *page, const char *path)
{
    hwnas_status status = HWNAS_OK;
    hwnas_recorded recorded;
    const hwnas_place place = {.file = path};
    TRY(hwnas_recorded_load(&recorded, path));
    if (!has_layers(&recorded))
        TRY_OUT(hwnas_hint(
            hwnas_fail(HWNAS_E_INFEASIBLE, &place, "it has no layers, which the page would show"),
            "`hwnas profile SPACE --arch CODE --layers --save FILE` records them"));
    json_t *profiles = json_object_get(hwnas_report_added(page), "profiles");
    if (!profiles) {
        profiles = json_array();
        json_object_set_new(hwnas_report_added(page), "profiles", profiles);
    }
    json_t *shown = hwnas_recorded_page(&recorded);
    json_object_set(shown, "rows", recorded.rows); /* of a comparison, too */
    json_array_append_new(profiles, shown);
    if (!is_of_trial(&recorded, page)) {
        char *note = hwnas_printf("%s: no row is of a network of this study", path);
        hwnas_report_add_note(page, note);
        free(note);
    }
out:
    hwnas_recorded_done(&recorded);
    return status;
}

hwnas_status hwnas_page_add(hwnas_report *page, const char *path)
{
    IN_C_LOCALE;
    if (!hwnas_report_is_of_study(page))
        return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL,
                                     "%s: only the page of a study takes another file", path),
                          "the study comes first");
    return is_recorded(path) ? add_recorded(page, path) : add_study(page, path);
}

/* ---- Pictures ---- */

hwnas_status hwnas_page_save_png(const hwnas_report *page, const char *picture, const char *path)
{
    char *svg;
    hwnas_str png = {0};
    TRY(hwnas_page_picture(&svg, page, picture));
    hwnas_status status = hwnas_png_draw(&png, svg);
    free(svg);
    TRY(status);
    status = hwnas_file_write(path, png.s, png.n);
    hwnas_str_done(&png);
    return status;
}
