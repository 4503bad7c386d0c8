/* told_end.h: why no other trial of a shared study is to be begun, where one worker has to decide
 * that for all: a strategy that has nothing more to propose, which those who do not propose cannot
 * see, and time that is over, as clocks differ. */
#ifndef HWNAS_STUDY_TOLD_END_H
#define HWNAS_STUDY_TOLD_END_H

#include "store/store.h"

/* In the transaction that finds the end: it holds as long as there are so many trials, and, unless
 * `seconds` is NaN, for whoever has no more time for them than that; so `seconds` are finite. */
HWNAS_CHECKED hwnas_status hwnas_told_end_write(hwnas_store *store, const char *why,
                                                uint64_t n_trials, double seconds);
/* *why: half a sentence, yours to free(); NULL: nobody has told of an end that holds for whoever
 * has so many `seconds` (INFINITY: without an end). */
HWNAS_CHECKED hwnas_status hwnas_told_end_read(char **why, hwnas_store *store, uint64_t n_trials,
                                               double seconds);

#endif
