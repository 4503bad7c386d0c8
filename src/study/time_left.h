/* time_left.h: how long the trials that are left will take, and how sure that is, by what those
 * took that are done. */
#ifndef HWNAS_STUDY_TIME_LEFT_H
#define HWNAS_STUDY_TIME_LEFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HWNAS_TIME_LEFT_BLOCKS = 32, HWNAS_TIME_LEFT_LEAST = 8 };

/* Trials in blocks of equal size, as neighbours are alike: in some rounds of a search most are only
 * estimated, in others each is measured. Full, there are half as many blocks of twice the size. */
typedef struct hwnas_time_left {
    uint64_t block;                          /* trials in one; 0: not begun */
    uint64_t n;                              /* trials so far */
    double ends[HWNAS_TIME_LEFT_BLOCKS + 1]; /* of blocks, in seconds; ends[0] is when it began */
} hwnas_time_left;

void hwnas_time_left_begin(hwnas_time_left *t, double now);
/* Another trial is finished. */
void hwnas_time_left_add(hwnas_time_left *t, double now);
/* The interval in which the seconds for `n_left` more trials lie with 95 %, as if blocks were drawn
 * independently from what they were so far; one that is not over yet counts where it takes longer
 * than others did. false: there are too few of them. */
bool hwnas_time_left_find(double *low, double *high, const hwnas_time_left *t, double n_left,
                          double now);

#endif
