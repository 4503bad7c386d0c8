/* report_handle.c: reports in hwnas.h. */
#include "api/report_handle.h"

#include <stdlib.h>
#include <string.h>

#include <hwnas/page.h>

#include "base/c_locale.h"
#include "base/file.h"
#include "base/mem.h"
#include "report/page.h"

typedef struct written_file {
    char *path, *remark; /* remark NULL: none */
} written_file;

struct hwnas_report {
    const hwnas_report_kind *kind;
    void *found;
    hwnas_status status;
    hwnas_error error; /* with a status that is a failure */
    size_t n_notes, note_capacity, n_files, file_capacity;
    char **notes;
    written_file *files;
    json_t *added; /* members of its object besides, or NULL */
};

/* ---- What is rendered already ---- */

static void rendered_text(hwnas_str *out, const void *found)
{
    const hwnas_rendering *rendered = found;
    hwnas_str_addn(out, rendered->text.s ? rendered->text.s : "", rendered->text.n);
}

static void rendered_csv(hwnas_str *out, const void *found)
{
    const hwnas_rendering *rendered = found;
    hwnas_str_addn(out, rendered->csv.s ? rendered->csv.s : "", rendered->csv.n);
}

static json_t *rendered_json(const void *found)
{
    return json_incref(((const hwnas_rendering *)found)->json);
}

static void rendered_free(void *found)
{
    hwnas_rendering_done(found);
    free(found);
}

hwnas_report *hwnas_report_of(hwnas_rendering *rendered)
{
    static const hwnas_report_kind table = {.csv = rendered_csv, .free = rendered_free},
                                   list = {.csv = rendered_csv,
                                           .json = rendered_json,
                                           .free = rendered_free},
                                   object = {.text = rendered_text,
                                             .json = rendered_json,
                                             .free = rendered_free},
                                   all = {.text = rendered_text,
                                          .csv = rendered_csv,
                                          .json = rendered_json,
                                          .free = rendered_free};
    const hwnas_report_kind *kind = !rendered->csv.s    ? &object
                                    : !rendered->json   ? &table
                                    : !rendered->text.s ? &list
                                                        : &all;
    hwnas_rendering *found = hwnas_alloc(sizeof *found);
    *found = *rendered;
    *rendered = (hwnas_rendering){0};
    return hwnas_report_new(kind, found);
}

/* ---- Making one ---- */

hwnas_report *hwnas_report_new(const hwnas_report_kind *kind, void *found)
{
    hwnas_report *report = hwnas_alloc(sizeof *report);
    *report = (hwnas_report){.kind = kind, .found = found};
    return report;
}

void hwnas_report_end(hwnas_report *report, hwnas_status status)
{
    report->status = status;
    if (status != HWNAS_OK)
        report->error = *hwnas_last_error();
}

void hwnas_report_add_note(hwnas_report *report, const char *note)
{
    HWNAS_GROW(report->notes, report->n_notes, report->note_capacity);
    report->notes[report->n_notes++] = hwnas_strdup(note);
}

void hwnas_report_add_left_out(hwnas_report *report, const char *note)
{
    hwnas_report_add_note(report, note);
    json_object_set_new(hwnas_report_added(report), "left_out", json_string(note));
}

void hwnas_report_add_file(hwnas_report *report, const char *path, const char *remark)
{
    HWNAS_GROW(report->files, report->n_files, report->file_capacity);
    report->files[report->n_files++] =
        (written_file){hwnas_strdup(path), remark && *remark ? hwnas_strdup(remark) : NULL};
}

json_t *hwnas_report_added(hwnas_report *report)
{
    if (!report->added)
        report->added = json_object();
    return report->added;
}

/* ---- Asking it ---- */

json_t *hwnas_report_json(const hwnas_report *report)
{
    json_t *json = report->kind->json(report->found);
    if (json && report->added)
        json_object_update(json, report->added);
    return json;
}

bool hwnas_report_is_of_study(const hwnas_report *report)
{
    return report->kind->is_of_study;
}

/* JSON may have delete, and U+0080 to U+009F, as they are; a terminal obeys them. */
static char *escape(const char *json)
{
    hwnas_str out = {0};
    const char *from = json;
    for (const char *at = json; *at; at++) {
        const unsigned char c = (unsigned char)at[0], next = (unsigned char)at[1];
        const bool is_c1 = c == 0xC2 && next < 0xA0;
        if (!is_c1 && c != 0x7F)
            continue;
        hwnas_str_addn(&out, from, (size_t)(at - from));
        hwnas_str_addf(&out, "\\u00%02x", is_c1 ? next : c);
        at += is_c1;
        from = at + 1;
    }
    hwnas_str_add(&out, from);
    return out.s;
}

static hwnas_status dump(char **out, json_t *json, size_t flags)
{
    char *text = json ? json_dumps(json, flags) : NULL;
    json_decref(json);
    if (!text) /* nothing else keeps it from being made */
        return hwnas_fail(HWNAS_E_INPUT, NULL, "a name in the answer is not UTF-8");
    *out = escape(text);
    free(text);
    return HWNAS_OK;
}

hwnas_status hwnas_report_write(char **out, const hwnas_report *report, hwnas_format format)
{
    IN_C_LOCALE;
    static const char *const names[HWNAS_N_FORMATS] = {"text", "JSON",       "CSV",
                                                       "DOT",  "JSON lines", "Markdown"};
    const hwnas_report_kind *kind = report->kind;
    void (*const write[HWNAS_N_FORMATS])(hwnas_str *,
                                         const void *) = {[HWNAS_TEXT] = kind->text,
                                                          [HWNAS_CSV] = kind->csv,
                                                          [HWNAS_DOT] = kind->dot,
                                                          [HWNAS_JSONL] = kind->jsonl,
                                                          [HWNAS_MARKDOWN] = kind->markdown};
    if (format == HWNAS_JSON && kind->json)
        return dump(out, hwnas_report_json(report), JSON_INDENT(2));
    if ((unsigned)format >= HWNAS_N_FORMATS || !write[format])
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "there is no %s of this report",
                          (unsigned)format < HWNAS_N_FORMATS ? names[format] : "such format");
    hwnas_str text = {0};
    hwnas_str_add(&text, ""); /* a report of no lines is a text, too */
    write[format](&text, report->found);
    if (format == HWNAS_JSONL) {
        *out = escape(text.s);
        hwnas_str_done(&text);
        return HWNAS_OK;
    }
    hwnas_clean(text.s, "\n\t");
    *out = text.s;
    return HWNAS_OK;
}

/* Numbers to be looked at have few digits, so that the page of a large study opens soon. */
hwnas_status hwnas_page_data(char **out, const hwnas_report *page)
{
    IN_C_LOCALE;
    if (!page->kind->html)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "there is no page of this report");
    return dump(out, hwnas_report_json(page), JSON_COMPACT | JSON_REAL_PRECISION(7));
}

hwnas_status hwnas_page_html(char **out, const hwnas_report *page)
{
    char *json;
    hwnas_str html = {0};
    TRY(hwnas_page_data(&json, page));
    page->kind->html(&html, json, NULL);
    free(json);
    *out = html.s;
    return HWNAS_OK;
}

char *hwnas_page_following(const char *source)
{
    hwnas_str html = {0};
    hwnas_page_draw(&html, "null", source);
    return html.s;
}

hwnas_status hwnas_page_picture(char **out, const hwnas_report *page, const char *picture)
{
    IN_C_LOCALE;
    hwnas_str svg = {0};
    if (!page->kind->svg)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "there is no picture of this report");
    TRY(page->kind->svg(&svg, page->found, picture));
    *out = svg.s;
    return HWNAS_OK;
}

/* Takes the text. */
static hwnas_status save(char *text, const char *path)
{
    const hwnas_status status = hwnas_file_write(path, text, strlen(text));
    free(text);
    return status;
}

hwnas_status hwnas_page_save(const hwnas_report *page, const char *path)
{
    char *html;
    TRY(hwnas_page_html(&html, page));
    return save(html, path);
}

hwnas_status hwnas_page_save_picture(const hwnas_report *page, const char *picture,
                                     const char *path)
{
    char *svg;
    TRY(hwnas_page_picture(&svg, page, picture));
    return save(svg, path);
}

hwnas_status hwnas_page_save_tables(const hwnas_report *page, const char *format, const char *path)
{
    IN_C_LOCALE;
    hwnas_str text = {0};
    const bool is_csv = !strcmp(format, "csv");
    void (*const write)(hwnas_str *, const void *) =
        is_csv ? page->kind->csv : page->kind->markdown;
    if (!is_csv && strcmp(format, "markdown") != 0)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "tables are \"csv\" or \"markdown\"");
    if (!write)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "there are no tables of this report");
    write(&text, page->found);
    return save(text.s, path);
}

hwnas_status hwnas_report_conclude(const hwnas_report *report)
{
    const hwnas_error *e = &report->error;
    if (report->status == HWNAS_OK)
        return HWNAS_OK;
    const hwnas_place place = {.file = e->file, .line = e->line, .column = e->column};
    hwnas_status status = hwnas_fail(report->status, *e->file ? &place : NULL, "%s", e->message);
    return *e->hint ? hwnas_hint(status, "%s", e->hint) : status;
}

const char *hwnas_report_note(const hwnas_report *report, size_t i)
{
    return i < report->n_notes ? report->notes[i] : NULL;
}

const char *hwnas_report_file(const hwnas_report *report, size_t i, const char **remark)
{
    if (i >= report->n_files)
        return NULL;
    if (remark)
        *remark = report->files[i].remark;
    return report->files[i].path;
}

void hwnas_report_free(hwnas_report *report)
{
    if (!report)
        return;
    if (report->kind->free)
        report->kind->free(report->found);
    for (size_t i = 0; i < report->n_notes; i++)
        free(report->notes[i]);
    for (size_t i = 0; i < report->n_files; i++) {
        free(report->files[i].path);
        free(report->files[i].remark);
    }
    json_decref(report->added);
    free(report->notes);
    free(report->files);
    free(report);
}
