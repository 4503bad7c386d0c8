/* scores.h: the scores of a study's trials, without the room that most objectives and limits would
 * take: there may be a million. */
#ifndef HWNAS_STUDY_SCORES_H
#define HWNAS_STUDY_SCORES_H

#include <hwnas/strategy.h>

typedef struct hwnas_scores {
    int n_objectives; /* to be set first; the rest begins with 0 */
    size_t n, room;
    struct hwnas_score_row {
        double violation;
        int rung;
        bool is_estimate;
    } * rows;
    double *objectives; /* n_objectives of each */
} hwnas_scores;

/* The score of a trial; at n it is added. */
void hwnas_scores_set(hwnas_scores *scores, size_t at, const hwnas_score *score);
void hwnas_scores_done(hwnas_scores *scores);

static inline const double *hwnas_scores_objectives(const hwnas_scores *scores, size_t at)
{
    return scores->objectives + at * (size_t)scores->n_objectives;
}

#endif
