/* recorded.h: what `hwnas profile --save` and `hwnas compare --json` wrote, as a page and as
 * pictures. */
#ifndef HWNAS_REPORT_RECORDED_H
#define HWNAS_REPORT_RECORDED_H

#include <jansson.h>

#include "base/str.h"
#include "profile/profile.h"

typedef struct hwnas_recorded {
    char *path;
    json_t *json;           /* of the file: "hwnas.profile" or "hwnas.comparison" (docs/json.md) */
    json_t *rows;           /* what was measured, as rows of a profile */
    hwnas_profile *profile; /* of these rows */
} hwnas_recorded;

/* Reads a file and looks at all that a page draws: what cannot be is HWNAS_E_INPUT. */
HWNAS_CHECKED hwnas_status hwnas_recorded_load(hwnas_recorded *out, const char *path);
void hwnas_recorded_done(hwnas_recorded *recorded);

/* The file's object with one more member, `page`: `file`, `hwnas` (which wrote the page), and
 * `pictures`. A new reference. */
json_t *hwnas_recorded_page(const hwnas_recorded *recorded);

/* One SVG document: "sweep", latency and throughput of all rows; "roofline", the layers of the
 * first row that has them. HWNAS_E_USAGE: there is no picture of that name; HWNAS_E_INFEASIBLE: the
 * file has nothing to draw in it. */
HWNAS_CHECKED hwnas_status hwnas_recorded_picture(hwnas_str *out, const hwnas_recorded *recorded,
                                                  const char *name);

/* ---- Of one or more rows ---- */

/* false: they have nothing to draw. */
bool hwnas_sweep_picture(hwnas_str *out, const json_t *rows);
bool hwnas_roofline_picture(hwnas_str *out, const json_t *row);

#endif
