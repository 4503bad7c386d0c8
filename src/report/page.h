/* page.h: a study as a page of HTML: the data it shows, and the one file that has all it needs.
 *
 * The data is one JSON object; what draws it is in page/, which the build puts into the library. */
#ifndef HWNAS_REPORT_PAGE_H
#define HWNAS_REPORT_PAGE_H

#include <hwnas/page.h>
#include <jansson.h>

#include "base/str.h"
#include "study/explain.h"

/* A file that pages are made of. */
typedef struct hwnas_page_part {
    const char *name, *text; /* NULL behind the last */
} hwnas_page_part;
extern const hwnas_page_part hwnas_page_parts[];

/* Format "hwnas.page" version 1; docs/json.md describes it. `explanation`: of the winner, or NULL
 * and `why_not`, a sentence. `predictions`: by hwnas_page_predictions(), borrowed. A new reference.
 */
json_t *hwnas_page_json(const hwnas_summary *summary, const hwnas_explanation *explanation,
                        const char *why_not, json_t *predictions);
/* Of each trial whose accuracy was predicted first and trained or told then: what was predicted, in
 * the unit that the metric is shown in, by number. A new reference. */
HWNAS_CHECKED hwnas_status hwnas_page_predictions(json_t **out, const hwnas_summary *summary,
                                                  hwnas_store *store);
/* The page of such an object, which has no line breaks; or one that gets it from `source`, a path
 * on the server that it comes from (NULL: none). */
void hwnas_page_draw(hwnas_str *out, const char *json, const char *source);

/* What failed last in this thread, with its file: why a page lacks something. Yours to free(). */
char *hwnas_page_failure(void);

/* ---- Parts of the object ---- */

/* All trials, a list for each thing that is known of them. A new reference; NULL: a name is not
 * UTF-8. */
json_t *hwnas_page_columns(const hwnas_summary *summary);
/* Adds `choices` (those of the space), `networks` (layers of the front's) and `original` (the trial
 * of the model that a space was derived from), or `space_error`. */
void hwnas_page_add_networks(json_t *to, const hwnas_summary *summary);

#endif
