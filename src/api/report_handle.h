/* report_handle.h: how a public function makes the report that it gives. */
#ifndef HWNAS_API_REPORT_HANDLE_H
#define HWNAS_API_REPORT_HANDLE_H

#include "report/rendering.h"

/* What can be asked of something that was found, when it is asked: NULL where there is no such
 * format. */
typedef struct hwnas_report_kind {
    void (*text)(hwnas_str *out, const void *found);
    json_t *(*json)(const void *found); /* a new reference; NULL: a name is not UTF-8 */
    void (*csv)(hwnas_str *out, const void *found);
    void (*dot)(hwnas_str *out, const void *found);
    void (*jsonl)(hwnas_str *out, const void *found);
    void (*html)(hwnas_str *out, const char *json, const char *source); /* hwnas_page_draw() */
    void (*markdown)(hwnas_str *out, const void *found);
    hwnas_status (*svg)(hwnas_str *out, const void *found, const char *picture);
    void (*free)(void *found); /* (optional) */
    bool is_of_study;          /* a page that others can be added to */
} hwnas_report_kind;

/* Takes `found`. */
hwnas_report *hwnas_report_new(const hwnas_report_kind *kind, void *found);
/* Of what is rendered already, which is taken. */
hwnas_report *hwnas_report_of(hwnas_rendering *told);

/* Keeps `status`, and the failure that this thread has recorded, as what the work came to. */
void hwnas_report_end(hwnas_report *report, hwnas_status status);
void hwnas_report_add_note(hwnas_report *report, const char *note);
/* The same of nodes that were left out, which its JSON has as well. */
void hwnas_report_add_left_out(hwnas_report *report, const char *note);
void hwnas_report_add_file(hwnas_report *report, const char *path, const char *remark);

/* The object of a report with what was added to it, a new reference; NULL: a name is not UTF-8. */
json_t *hwnas_report_json(const hwnas_report *report);
/* Members that its object gets besides; kept, and changed by whoever asks. */
json_t *hwnas_report_added(hwnas_report *report);
bool hwnas_report_is_of_study(const hwnas_report *report);

#endif
