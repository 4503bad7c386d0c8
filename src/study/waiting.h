/* waiting.h: trials that were only estimated and may yet belong to the front, and which of them to
 * measure next.
 *
 * A search with a table of latencies looks at many networks before it measures one: the more it has
 * seen, the fewer of them are worth a measurement. First come those that would be on the front if
 * the estimates were true. One that turns out slower than estimated gives way to what it kept off;
 * so it goes on until each network of the front is measured.
 *
 * A disturbed measurement is no good: the trial waits on for a while, up to a third time; and after
 * some of them nothing is measured for some seconds, if there is time. The search goes on
 * meanwhile, as estimates do not mind.
 *
 * Those that look best are in part those whose estimates err most, and the machine may be slower
 * than it was when the table learnt: how estimates and measurements of this search differ is put
 * right. */
#ifndef HWNAS_STUDY_WAITING_H
#define HWNAS_STUDY_WAITING_H

#include "search/pareto.h"
#include "store/store.h"
#include "study/job.h"

/* The last so many estimates that were remeasured say how they differ. */
enum { HWNAS_WAITING_RATIOS = 15 };

typedef struct hwnas_waiting_row hwnas_waiting_row;

typedef struct hwnas_waiting {
    const hwnas_goals *goals;
    size_t n, capacity;
    hwnas_waiting_row *rows;
    double ratios[HWNAS_WAITING_RATIOS]; /* measured / estimated latency; a ring */
    size_t n_ratios;
    int n_disturbed; /* tries on end */
    double next_try; /* when the machine may be quiet again */
} hwnas_waiting;

/* A job whose search may put measurements off: one device, one front, and no target, as that should
 * be noticed at once. */
bool hwnas_waiting_suits(const hwnas_goals *goals);

/* Adds an estimated trial, unless it is unable to improve (trial/skip.h) beside `front`, which was
 * measured. The id is the caller's; the trial is copied. */
void hwnas_waiting_add(hwnas_waiting *waiting, size_t id, const hwnas_trial *trial,
                       const hwnas_front *front);
/* Removes a trial, as it was measured, or failed to be. */
void hwnas_waiting_tell(hwnas_waiting *waiting, size_t id, const hwnas_trial *measured);
/* After a measurement: those that are unable to improve by now go. */
void hwnas_waiting_update(hwnas_waiting *waiting, const hwnas_front *front);
void hwnas_waiting_clear(hwnas_waiting *waiting); /* none waits */
void hwnas_waiting_done(hwnas_waiting *waiting);

/* Measured / estimated latency, the median of the last ones; 1 while there are few. */
double hwnas_waiting_ratio(const hwnas_waiting *waiting);

/* Keeps a trial whose measurement was disturbed, `now` in seconds (base/clock.h); false: it was put
 * off often enough, and is to be told as it is. */
bool hwnas_waiting_put_off(hwnas_waiting *waiting, size_t id, double now);

/* How many trials would be on the front, beside what is measured of it, if the estimates were true,
 * corrected by the ratio; of those that were not put off beyond `now`, *next is the id of one. */
size_t hwnas_waiting_front(size_t *next, const hwnas_waiting *waiting, const hwnas_front *front,
                           double now);
/* The trials that will probably be measured next, at most so many: those that would be on the
 * front, then others that can improve. Returns how many. */
size_t hwnas_waiting_list(size_t *ids, size_t most, const hwnas_waiting *waiting,
                          const hwnas_front *front, double now);
/* How many are not unable to improve and not put off; *next is the id of one whose best end no
 * other's dominates. */
size_t hwnas_waiting_possible(size_t *next, const hwnas_waiting *waiting, double now);
/* How many a search that is over would still measure, and how many of these were trained. */
size_t hwnas_waiting_left(size_t *n_trained, const hwnas_waiting *waiting,
                          const hwnas_front *front);

#endif
