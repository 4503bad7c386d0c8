/* open_trials.c: several trials at a time, where the next network travels while one is measured, or
 * several boards measure.
 *
 * A trial is opened when the strategy proposes it, and ended when its turn has come: results count
 * in the order in which their networks were proposed, whoever is ready first. So how many are open
 * decides what a strategy knew when it proposed, and how many boards there are does not. */
#include <stdlib.h>

#include "study/ask_tell.h"

size_t hwnas_session_most_open(const hwnas_session *s)
{
    return s->job->parallel ? (size_t)s->job->parallel
                            : (size_t)hwnas_evaluator_room(s->setup.evaluator);
}

static hwnas_status write_begun(hwnas_session *s, hwnas_trial *trial, bool is_open, bool is_new)
{
    if (is_open)
        return is_new ? hwnas_session_start_asked(s, trial) : HWNAS_OK;
    return is_new ? hwnas_session_write_whole(s, trial)
                  : hwnas_session_write(s, trial, HWNAS_EVENT_FINISHED);
}

hwnas_status hwnas_session_open_trial(hwnas_session *s, uint64_t number, const hwnas_arch *walked,
                                      int rung, bool is_new)
{
    bool is_open;
    hwnas_asked *asked = hwnas_asked_add(s, number, walked);
    asked->trial.rung = rung;
    asked->is_again = !is_new;
    hwnas_status status = hwnas_session_evaluate_begin(&is_open, s, asked);
    if (status == HWNAS_OK)
        status = write_begun(s, &asked->trial, is_open, is_new);
    if (status != HWNAS_OK) {
        hwnas_asked_remove(s, asked);
        hwnas_asked_free(asked);
        return status;
    }
    return is_open ? HWNAS_OK : hwnas_asked_settle(s, asked);
}

bool hwnas_session_is_open(const hwnas_session *s, uint64_t number)
{
    for (size_t i = 0; i < s->n_asked; i++)
        if (s->asked[i]->trial.number == number)
            return true;
    return false;
}

hwnas_status hwnas_session_end_trial(hwnas_session *s)
{
    hwnas_asked *asked = s->asked[0];
    hwnas_trial *trial = hwnas_alloc(sizeof *trial);
    hwnas_trial_copy(trial, &asked->trial);
    const hwnas_status status = hwnas_session_evaluate_end(s, trial, asked);
    if (status != HWNAS_OK) {
        /* It stays "running" in the store: the next session repeats it. */
        hwnas_trials_free(trial, 1);
        return status;
    }
    return hwnas_asked_finish(s, asked, trial);
}
