/* done.c: what a session remembers of its finished trials: scores, fronts, which networks were run.
 * All else of them is in the store, so that a study of a million trials fits into memory. */
#include <math.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "study/session.h"
#include "trial/judge.h"

/* A network that was run, to find it again. */
typedef struct known {
    char digest[33];
    hwnas_settings settings;
    int rung;
    uint64_t number;
} known;

/* ---- Memory of what is done ---- */

static int compare_networks(const void *a, const void *b)
{
    const known *x = a, *y = b;
    const int order = strcmp(x->digest, y->digest);
    return order                ? order
           : x->rung != y->rung ? x->rung - y->rung
                                : memcmp(&x->settings, &y->settings, sizeof x->settings);
}

static const known *find_known(const hwnas_session *s, const char *digest, hwnas_settings settings,
                               int rung)
{
    known key = {.settings = settings, .rung = rung};
    memcpy(key.digest, digest, sizeof key.digest);
    void *found = s->runs_again ? NULL : tfind(&key, &s->by_network, compare_networks);
    return found ? *(known **)found : NULL;
}

bool hwnas_session_has_duplicate(const hwnas_session *s, const char *digest,
                                 hwnas_settings settings)
{
    return find_known(s, digest, settings, 0) != NULL;
}

hwnas_status hwnas_session_duplicate(const hwnas_trial **out, hwnas_session *s, const char *digest,
                                     hwnas_settings settings, int rung)
{
    hwnas_trial *last = rung ? &s->promoted : &s->duplicate;
    const known *found = find_known(s, digest, settings, rung);
    *out = NULL;
    if (!found)
        return HWNAS_OK;
    hwnas_trial_done(last);
    *last = (hwnas_trial){0};
    TRY(hwnas_store_trial(last, s->store, found->number));
    *out = last;
    return HWNAS_OK;
}

/* The first of a network stays. */
static void remember(hwnas_session *s, const hwnas_trial *trial, hwnas_settings settings)
{
    known *row = hwnas_alloc(sizeof *row);
    *row = (known){.settings = settings, .rung = trial->rung, .number = trial->number};
    memcpy(row->digest, trial->digest, sizeof row->digest);
    if (*(known **)tsearch(row, &s->by_network, compare_networks) != row)
        free(row);
}

/* A wrong result belongs on no front. */
static bool is_wrong(const hwnas_session *s, size_t id)
{
    return hwnas_verified_is_wrong(s->verified, s->done[id].number);
}

static void add_to_fronts(hwnas_session *s, size_t id)
{
    if (s->scores.rows[id].violation != 0 || s->done[id].rung || s->done[id].is_partial ||
        is_wrong(s, id))
        return;
    hwnas_point point = {.id = id};
    memcpy(point.objectives, hwnas_scores_objectives(&s->scores, id),
           (size_t)s->scores.n_objectives * sizeof *point.objectives);
    /* Whoever keeps it from these keeps it from the others as well. */
    if (s->done[id].is_unstable || hwnas_front_insert(&s->steady, &point))
        hwnas_front_insert(&s->front, &point);
}

static hwnas_settings settings_of(const hwnas_session *s, const hwnas_trial *trial)
{
    char *code = hwnas_strdup(trial->code);
    const hwnas_settings settings = hwnas_settings_cut(code, s->job);
    free(code);
    return settings;
}

/* Puts a finished trial where it belongs: into the memory, on the fronts, among those that wait. */
static void place(hwnas_session *s, size_t id, const hwnas_trial *trial)
{
    const bool is_estimate = s->scores.rows[id].is_estimate;
    if (is_wrong(s, id))
        return;
    s->is_target_met |= hwnas_trial_meets_targets(trial, &s->job->goals);
    if (trial->status == HWNAS_OK && hwnas_trial_was_run(trial))
        remember(s, trial, settings_of(s, trial));
    if (is_estimate && !trial->rung)
        hwnas_waiting_add(&s->waiting, id, trial, &s->steady);
    else
        add_to_fronts(s, id);
    if (!is_estimate)
        hwnas_waiting_update(&s->waiting, &s->steady);
}

static void note_done(hwnas_session *s, size_t id, const hwnas_trial *trial)
{
    hwnas_done *done = &s->done[id];
    hwnas_evidence evidence = {0};
    hwnas_evidence_add(&evidence, trial, &s->job->goals);
    s->evidence.n_missed += evidence.n_missed - done->is_missed;
    s->evidence.n_disturbed += evidence.n_disturbed - done->is_disturbed;
    *done = (hwnas_done){.number = trial->number,
                         .rung = trial->rung,
                         .is_unstable = trial->is_unstable,
                         .is_partial = hwnas_trial_is_partial(trial),
                         .is_missed = evidence.n_missed,
                         .is_disturbed = evidence.n_disturbed};
    s->last_status = trial->status;
    if (s->winner_id == (long)id)
        s->winner_id = -1;
}

/* Takes what is known of a finished trial, for the first time or as it was measured by now: tells
 * the strategy, as it would if nobody had looked at results, and remembers it. */
static hwnas_status learn(hwnas_session *s, size_t id, const hwnas_trial *trial,
                          const hwnas_arch *walked)
{
    const hwnas_score score = hwnas_trial_score(trial, &s->job->goals);
    hwnas_scores_set(&s->scores, id, &score);
    note_done(s, id, trial);
    s->n_failed += trial->status != HWNAS_OK;
    place(s, id, trial);
    return s->setup.strategy->ops->tell(s->setup.strategy, trial->number, walked, &score);
}

/* The fronts of what is known now. */
static void find_fronts(hwnas_session *s)
{
    s->front.n = s->steady.n = 0;
    for (size_t id = 0; id < s->n_done; id++)
        if (!s->scores.rows[id].is_estimate)
            add_to_fronts(s, id);
}

hwnas_status hwnas_session_absorb(hwnas_session *s, const hwnas_trial *trial,
                                  const hwnas_arch *walked)
{
    HWNAS_GROW(s->done, s->n_done, s->done_room);
    s->done[s->n_done] = (hwnas_done){0};
    TRY(learn(s, s->n_done++, trial, walked));
    return trial->status == HWNAS_OK ? hwnas_session_publish(s) : HWNAS_OK;
}

bool hwnas_session_find_closest(size_t *id, const hwnas_session *s)
{
    double least = INFINITY;
    size_t closest = 0;
    for (size_t i = 0; i < s->n_done && !s->front.n; i++)
        if (!s->scores.rows[i].rung && s->scores.rows[i].violation < least && !is_wrong(s, i)) {
            least = s->scores.rows[i].violation;
            closest = i;
        }
    if (isinf(least) || !s->scores.rows[closest].is_estimate)
        return false;
    *id = closest;
    return true;
}

static void forget_networks(hwnas_session *s)
{
    while (s->by_network) {
        known *row = *(known **)s->by_network;
        tdelete(row, &s->by_network, compare_networks);
        free(row);
    }
}

hwnas_status hwnas_session_drop_wrong(hwnas_session *s)
{
    forget_networks(s);
    hwnas_waiting_clear(&s->waiting);
    s->front.n = s->steady.n = 0;
    s->is_target_met = false;
    for (size_t i = 0; i < s->n_done; i++) {
        hwnas_trial trial;
        TRY(hwnas_session_trial(&trial, s, i));
        place(s, i, &trial);
        hwnas_trial_done(&trial);
    }
    return HWNAS_OK;
}

hwnas_status hwnas_session_trial(hwnas_trial *out, const hwnas_session *s, size_t id)
{
    return hwnas_store_trial(out, s->store, s->done[id].number);
}

const hwnas_trial *hwnas_session_winner(hwnas_session *s)
{
    if (!s->front.n)
        return NULL;
    const size_t id = s->front.points[0].id;
    if (s->winner_id == (long)id)
        return &s->winner;
    hwnas_trial trial;
    if (hwnas_session_trial(&trial, s, id) != HWNAS_OK) {
        hwnas_error_clear();
        return NULL;
    }
    hwnas_trial_done(&s->winner);
    s->winner = trial;
    s->winner_id = (long)id;
    return &s->winner;
}

hwnas_status hwnas_session_renew(hwnas_session *s, size_t id, const hwnas_trial *trial,
                                 const hwnas_arch *walked)
{
    TRY(learn(s, id, trial, walked));
    find_fronts(s); /* where it may stand with what it was */
    return HWNAS_OK;
}

void hwnas_session_forget(hwnas_session *s)
{
    forget_networks(s);
    json_decref(s->verified);
    s->verified = NULL;
    while (s->n_asked)
        hwnas_asked_free(s->asked[--s->n_asked]);
    free(s->asked);
    s->asked = NULL;
    s->asked_room = 0;
    hwnas_arch_free(s->proposed);
    s->proposed = NULL;
    free(s->done);
    s->done = NULL;
    s->n_done = s->done_room = 0;
    hwnas_scores_done(&s->scores);
    hwnas_trial_done(&s->duplicate);
    hwnas_trial_done(&s->promoted);
    s->duplicate = s->promoted = (hwnas_trial){0};
    hwnas_trial_done(&s->winner);
    s->winner = (hwnas_trial){0};
    s->winner_id = -1;
    while (s->n_starts)
        hwnas_arch_free(s->starts[--s->n_starts]);
    hwnas_front_done(&s->front);
    hwnas_front_done(&s->steady);
    hwnas_waiting_done(&s->waiting);
}
