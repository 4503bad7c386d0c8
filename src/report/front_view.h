/* front_view.h: a front with all that was tried, as two axes show it: which metrics, how far they
 * go, and what each trial is there. What draws it, as a picture or in characters, is elsewhere. */
#ifndef HWNAS_REPORT_FRONT_VIEW_H
#define HWNAS_REPORT_FRONT_VIEW_H

#include "study/summary.h"

/* What a trial is, from the least to what covers all others. */
typedef enum hwnas_mark {
    HWNAS_MARK_NONE, /* it has not both values, or failed */
    HWNAS_MARK_MISSED,
    HWNAS_MARK_ESTIMATED,
    HWNAS_MARK_DOMINATED,
    HWNAS_MARK_FRONT,
    HWNAS_MARK_WINNER,
} hwnas_mark;

/* Borrows the trials and the goals; release with hwnas_front_view_done(). Values are in the units
 * that their metrics are shown in. */
typedef struct hwnas_front_view {
    const hwnas_goals *goals;
    const hwnas_goal *x, *y; /* x NULL: there is one objective, so no front to draw */
    size_t n, n_front, n_drawn;
    const hwnas_trial **trials; /* heap */
    hwnas_mark *marks;          /* heap, of each trial */
} hwnas_front_view;

/* Across stands the first objective behind the first one that a device gives, else the second. */
void hwnas_front_view_init(hwnas_front_view *out, const hwnas_goals *goals, size_t n_trials);
/* Each trial once, in any order. */
void hwnas_front_view_add(hwnas_front_view *view, const hwnas_trial *trial, bool is_on_front,
                          bool is_winner);
/* The first front of a study. */
void hwnas_front_view_of(hwnas_front_view *out, const hwnas_summary *summary);
void hwnas_front_view_done(hwnas_front_view *view);

/* A value of the goal as it is shown. */
double hwnas_goal_shown(const hwnas_goal *goal, double value);
/* "latency.p50, ms"; yours to free(). */
char *hwnas_goal_title(const hwnas_goal *goal);
/* The first limit on a goal of the job; NULL: there is none. */
const hwnas_limit *hwnas_front_view_limit(const hwnas_front_view *view, const hwnas_goal *goal);
/* Where all but the outermost 3 % of the trials are, the winner and the limit, and some room. Only
 * where something is drawn. */
void hwnas_front_view_range(double *low, double *high, const hwnas_front_view *view,
                            const hwnas_goal *goal);

#endif
