/* race.h: several networks measured in turns in one process, so that whatever happens to the
 * machine happens to all of them.
 *
 * A block gives each network two turns: all in a random order, then all in the reverse of it, A B B
 * A for two. What changes steadily within a block cancels out. Differences are taken within blocks,
 * and their spread over the blocks is what the interval of a difference stands on: a randomised
 * block design (Montgomery, "Design and Analysis of Experiments", chapter 4). */
#ifndef HWNAS_MEASURE_RACE_H
#define HWNAS_MEASURE_RACE_H

#include <jansson.h>

#include "measure/machine.h"
#include "measure/verdict.h"

enum { HWNAS_RACE_MOST = 32, HWNAS_RACE_BLOCKS = 256 };

typedef struct hwnas_race {
    int n;                           /* networks */
    int n_blocks;                    /* in which nobody was disturbed */
    int n_aside;                     /* blocks that were set aside */
    hwnas_measurement *measurements; /* of each network, over all its turns; no drift, no trend */
    double *blocks;                  /* [block * n + network]: its latency in that block, seconds */
} hwnas_race;
void hwnas_race_done(hwnas_race *race); /* accepts what is all zero */

/* How network `after` differs from `before`, by the blocks: the median of the ratios and its 95 %
 * interval. Ambiguous where fewer than six blocks count, or more were set aside than count. */
hwnas_judgement hwnas_race_judge(const hwnas_race *race, int before, int after, double tolerance);

/* Runs networks on a device that has them compiled. `options` are those of each: the budget is n
 * times its max_seconds, and no more than twice that. It ends before when every two are judged
 * same, faster or slower with options->interval as tolerance. Orders follow from the first graph's
 * seed. `out` is to be done with. */
HWNAS_CHECKED hwnas_status hwnas_race_run(hwnas_race *out, hwnas_exec *const *execs,
                                          const hwnas_graph *const *graphs, int n,
                                          const hwnas_measure_options *options,
                                          hwnas_machine *machine);

/* The same in a runner, each in a precision of its own or (NULL) all in that of the options. All
 * networks are in its memory at once, so a memory limit counts for their sum. A failure of one
 * fails the race. */
HWNAS_CHECKED hwnas_status hwnas_runner_race(hwnas_race *out, hwnas_runner *runner,
                                             const hwnas_graph *const *graphs,
                                             const hwnas_precision *precisions, int n,
                                             const hwnas_measure_options *options);

json_t *hwnas_wire_race(const hwnas_race *race);
/* false: something is missing or of another type. */
bool hwnas_wire_read_race(hwnas_race *out, const json_t *object);

#endif
