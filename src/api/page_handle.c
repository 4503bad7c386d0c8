/* page_handle.c: hwnas/page.h: pages of files, and pictures of them. */
#include <hwnas/page.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "api/report_handle.h"
#include "base/c_locale.h"
#include "base/file.h"
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
