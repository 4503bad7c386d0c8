#include "report/outcome.h"

#include <stdlib.h>

#include "report/front.h"

/* When most trials failed, and none was good, why the last of them did. */
static hwnas_status most_failed(const hwnas_summary *summary)
{
    const hwnas_trial *last = &summary->trials[summary->n_trials - 1];
    while (!last->is_finished || last->status == HWNAS_OK)
        last--;
    return hwnas_hint(hwnas_fail(last->status, NULL, "%zu of %zu trials failed, last error: %s",
                                 summary->n_failed, summary->n_finished,
                                 last->message ? last->message : "?"),
                      "'hwnas study show %s --json' lists the failures", summary->study);
}

/* Networks would have met the constraints, were they computed right; NULL: none would. */
static const hwnas_trial *find_wrong(const hwnas_summary *summary)
{
    for (size_t i = 0; i < summary->n_trials; i++)
        if (summary->trials[i].is_finished && summary->trials[i].status == HWNAS_E_WRONG_RESULT)
            return &summary->trials[i];
    return NULL;
}

static hwnas_status no_winner(const hwnas_summary *summary)
{
    const hwnas_trial *wrong = find_wrong(summary);
    if (wrong)
        return hwnas_fail(
            HWNAS_E_WRONG_RESULT, NULL,
            "each network that met the constraints gave a wrong result; trial %llu: %s",
            (unsigned long long)wrong->number, wrong->message);
    if (2 * summary->n_failed > summary->n_finished)
        return most_failed(summary);
    TRY(hwnas_evidence_check(&summary->evidence));
    hwnas_str limits = {0};
    for (int i = 0; i < summary->job.goals.n_limits; i++)
        hwnas_str_addf(&limits, "%s%s", i ? " and " : "", summary->job.goals.limits[i].text);
    const char *wanted = limits.s ? limits.s : "the objectives";
    hwnas_status status = summary->n_finished == 1
                              ? hwnas_fail(HWNAS_E_INFEASIBLE, NULL,
                                           "the one network that was tried misses %s", wanted)
                              : hwnas_fail(HWNAS_E_INFEASIBLE, NULL, "none of %zu networks met %s",
                                           summary->n_finished, wanted);
    hwnas_str_done(&limits);
    if (summary->closest >= 0) {
        const hwnas_trial *closest = &summary->trials[summary->closest];
        char *words = hwnas_limit_words(closest, &summary->job.goals);
        status = hwnas_fail(status, NULL, "%s; the closest is trial %llu, %s: %s",
                            hwnas_last_error()->message, (unsigned long long)closest->number,
                            closest->code, words);
        free(words);
    }
    return hwnas_hint(status,
                      "relax the constraint, or search on with --resume and a larger budget");
}

hwnas_status hwnas_summary_conclude(const hwnas_summary *summary, const hwnas_job *job)
{
    if (summary->is_interrupted)
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INTERRUPTED, NULL, "interrupted after %zu trials",
                       summary->n_finished),
            "'hwnas search %s%s--study %s --resume' goes on; give other options again",
            job->path ? job->path : "", job->path ? " " : "", job->study);
    return hwnas_summary_winner(summary) >= 0 ? HWNAS_OK : no_winner(summary);
}
