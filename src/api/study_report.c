/* study_report.c: studies of hwnas.h as reports: what was found, and why. */
#include <stdlib.h>

#include "api/report_handle.h"
#include "api/study_report.h"
#include "base/c_locale.h"
#include "base/mem.h"
#include "report/explain_text.h"
#include "report/front.h"

/* ---- The front ---- */

static void front_text(hwnas_str *out, const void *found)
{
    hwnas_front_text(out, found);
}

static json_t *front_json(const void *found)
{
    return hwnas_front_json(found);
}

static void front_free(void *found)
{
    hwnas_summary_free(found);
}

hwnas_report *hwnas_report_of_study(hwnas_summary *summary)
{
    static const hwnas_report_kind kind = {
        .text = front_text, .json = front_json, .free = front_free};
    return hwnas_report_new(&kind, summary);
}

static hwnas_status load(hwnas_summary **out, const char *path)
{
    hwnas_store *store;
    TRY(hwnas_store_open(&store, path, HWNAS_STORE_READ));
    const hwnas_status status = hwnas_summary_load(out, store, path);
    hwnas_store_close(store);
    return status;
}

hwnas_status hwnas_study_report(hwnas_report **out, const char *path)
{
    IN_C_LOCALE;
    hwnas_summary *summary;
    TRY(load(&summary, path));
    *out = hwnas_report_of_study(summary);
    return HWNAS_OK;
}

/* ---- Why ---- */

typedef struct found_explanation {
    hwnas_summary *summary;
    hwnas_explanation explanation; /* of the summary */
} found_explanation;

static void explanation_text(hwnas_str *out, const void *found)
{
    hwnas_explain_text(out, &((const found_explanation *)found)->explanation);
}

static json_t *explanation_json(const void *found)
{
    return hwnas_explain_json(&((const found_explanation *)found)->explanation);
}

static void explanation_free(void *found)
{
    found_explanation *f = found;
    hwnas_explanation_done(&f->explanation);
    hwnas_summary_free(f->summary);
    free(f);
}

hwnas_status hwnas_study_explain(hwnas_report **out, const char *path, int64_t trial)
{
    static const hwnas_report_kind kind = {
        .text = explanation_text, .json = explanation_json, .free = explanation_free};
    IN_C_LOCALE;
    found_explanation *found = hwnas_alloc(sizeof *found);
    hwnas_status status = load(&found->summary, path);
    if (status == HWNAS_OK)
        status = hwnas_explain(&found->explanation, found->summary, (long)trial);
    if (status == HWNAS_OK)
        *out = hwnas_report_new(&kind, found);
    else
        explanation_free(found);
    return status;
}
