#include "study/scores.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void hwnas_scores_set(hwnas_scores *s, size_t at, const hwnas_score *score)
{
    const size_t m = (size_t)s->n_objectives;
    assert(at <= s->n);
    if (at == s->room) {
        s->room = s->room ? 2 * s->room : 16;
        s->rows = hwnas_realloc(s->rows, s->room * sizeof *s->rows);
        s->objectives = hwnas_realloc(s->objectives, s->room * m * sizeof *s->objectives);
    }
    s->rows[at] = (struct hwnas_score_row){
        .violation = score->violation, .rung = score->rung, .is_estimate = score->is_estimate};
    memcpy(s->objectives + at * m, score->objectives, m * sizeof *s->objectives);
    s->n += at == s->n;
}

void hwnas_scores_done(hwnas_scores *s)
{
    free(s->rows);
    free(s->objectives);
    *s = (hwnas_scores){.n_objectives = s->n_objectives};
}
