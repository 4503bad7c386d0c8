#include "study/job_goals.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

static hwnas_place text_place(const hwnas_yaml *node)
{
    hwnas_place place = node->place;
    place.column += node->is_quoted && node->is_verbatim; /* the text begins after the quote */
    return place;
}

static hwnas_status read_objective(hwnas_job *job, const char *text, const hwnas_place *place,
                                   bool is_verbatim)
{
    return hwnas_goals_parse(job->goals.objectives, &job->goals.n_objectives, HWNAS_MAX_OBJECTIVES,
                             text, place, is_verbatim, &job->goals.devices);
}

/* A list, or the same on one line: "accuracy, latency.p50". */
hwnas_status hwnas_job_read_objectives(hwnas_job *job, const hwnas_yaml *node)
{
    job->goals.n_objectives = 0;
    if (node->kind == HWNAS_YAML_SCALAR) {
        const char *text;
        TRY(hwnas_yaml_text(&text, node, "objectives"));
        hwnas_place place = text_place(node);
        for (const char *at = text;; at++) {
            size_t n = strcspn(at, ",");
            hwnas_place here = place;
            here.column += (int)(at - text);
            TRY(read_objective(job, hwnas_arena_string(job->arena, at, n), &here,
                               node->is_verbatim));
            at += n;
            if (!*at)
                return HWNAS_OK;
        }
    }
    TRY(hwnas_yaml_expect(node, HWNAS_YAML_SEQUENCE, "objectives"));
    if (node->n < 1)
        return hwnas_fail(HWNAS_E_INPUT, &node->place, "a search has 1 to %d objectives",
                          HWNAS_MAX_OBJECTIVES);
    for (size_t i = 0; i < node->n; i++) {
        const char *text;
        TRY(hwnas_yaml_text(&text, node->items[i], "an objective"));
        hwnas_place place = text_place(node->items[i]);
        TRY(read_objective(job, text, &place, node->items[i]->is_verbatim));
    }
    return HWNAS_OK;
}

/* An expression, or a list of them. */
static hwnas_status read_limits(hwnas_limit *limits, int *n, hwnas_job *job, const hwnas_yaml *node,
                                const char *what)
{
    const hwnas_yaml *const alone[] = {node};
    bool is_list = node->kind == HWNAS_YAML_SEQUENCE;
    const hwnas_yaml *const *items = is_list ? (const hwnas_yaml *const *)node->items : alone;
    *n = 0;
    for (size_t i = 0; i < (is_list ? node->n : 1); i++) {
        const char *text;
        TRY(hwnas_yaml_text(&text, items[i], what));
        hwnas_place place = text_place(items[i]);
        TRY(hwnas_limits_parse(limits, n, HWNAS_MAX_LIMITS, text, &place, items[i]->is_verbatim,
                               &job->goals.devices));
    }
    return HWNAS_OK;
}

hwnas_status hwnas_job_read_constraints(hwnas_job *job, const hwnas_yaml *node)
{
    return read_limits(job->goals.limits, &job->goals.n_limits, job, node, "a constraint");
}

hwnas_status hwnas_job_read_until(hwnas_job *job, const hwnas_yaml *node)
{
    return read_limits(job->goals.targets, &job->goals.n_targets, job, node, "until");
}
