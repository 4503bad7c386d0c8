#include "study/turns.h"

#include <stdlib.h>

static const double SHARE = 0.25; /* of the time of a measurement, for one turn */

double hwnas_turns_budget(int n, double seconds)
{
    return HWNAS_TURN_ROUNDS * SHARE * seconds * n;
}

/* Where one runner cannot hold all of them. */
static hwnas_status take_alone(hwnas_turns *out, hwnas_evaluator *e,
                               const hwnas_candidate *candidates, int n, int device, double seconds,
                               const volatile sig_atomic_t *stop)
{
    hwnas_status status = HWNAS_OK;
    const size_t n_rows = (size_t)(HWNAS_TURN_ROUNDS * n);
    hwnas_trial *rows = hwnas_alloc(n_rows * sizeof *rows);
    for (int k = 0; k < HWNAS_TURN_ROUNDS * n; k++) {
        const int r = k / n, i = r % 2 ? n - 1 - k % n : k % n; /* forwards, then backwards */
        if (stop && *stop) {
            status = hwnas_fail(HWNAS_E_INTERRUPTED, NULL, "interrupted between two turns");
            goto out;
        }
        TRY_OUT(hwnas_evaluate_on(&rows[r * n + i], e, &candidates[i], device, SHARE * seconds));
    }
    *out = (hwnas_turns){.n = n, .n_rounds = HWNAS_TURN_ROUNDS, .rows = rows};
    rows = NULL;
out:
    if (rows)
        hwnas_trials_free(rows, n_rows);
    return status;
}

hwnas_status hwnas_turns_take(hwnas_turns *out, hwnas_evaluator *e,
                              const hwnas_candidate *candidates, int n, int device, double seconds,
                              bool wants_all, const volatile sig_atomic_t *stop)
{
    if (wants_all || !hwnas_evaluate_can_race(e, candidates, n, device))
        return take_alone(out, e, candidates, n, device, seconds, stop);
    hwnas_turns turns = {.n = n};
    TRY(hwnas_evaluate_race(&turns.rows, &turns.n_rounds, e, candidates, n, device,
                            hwnas_turns_budget(1, seconds)));
    *out = turns;
    return HWNAS_OK;
}

void hwnas_turns_done(hwnas_turns *turns)
{
    hwnas_trials_free(turns->rows, (size_t)(turns->n_rounds * turns->n));
}
