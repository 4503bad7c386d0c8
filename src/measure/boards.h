/* boards.h: the runners of a device: one, or with `ssh:A+B` one on each of several machines of one
 * kind, which serve one search at the same time. */
#ifndef HWNAS_MEASURE_BOARDS_H
#define HWNAS_MEASURE_BOARDS_H

#include "measure/runner.h"

enum { HWNAS_MAX_BOARDS = 16 };

typedef struct hwnas_boards {
    int n, threads;
    hwnas_runner *runners[HWNAS_MAX_BOARDS];
} hwnas_boards;

/* Nothing is started yet. `out` stays as it is on failure. */
HWNAS_CHECKED hwnas_status hwnas_boards_open(hwnas_boards *out, const char *spelling, int threads);
void hwnas_boards_close(hwnas_boards *boards); /* accepts none */
/* Ends what runs on them; it is started again when it is needed, and must be on the same machines.
 */
void hwnas_boards_rest(hwnas_boards *boards);
/* Something else on this machine has its turn: hwnas_runner_make_way(). */
void hwnas_boards_make_way(hwnas_boards *boards);
/* The same where the number is another one. */
void hwnas_boards_set_threads(hwnas_boards *boards, int threads);
/* Starts all of them. HWNAS_E_INPUT: they are not of one kind, or two are the same machine. */
HWNAS_CHECKED hwnas_status hwnas_boards_describe(hwnas_device_info *out, hwnas_boards *boards);

/* How many networks they can have at the same time, so that none waits for its next; 1: one is sent
 * when the one before is measured. */
int hwnas_boards_room(const hwnas_boards *boards);
/* Nothing that was sent ahead is wanted any more. */
void hwnas_boards_forget(hwnas_boards *boards);
/* The one that a network is to be sent to ahead of its turn: that which has it, or the one with the
 * least to do; NULL: none can be reached. Looks for those that could not be. */
hwnas_runner *hwnas_boards_take_ahead(const hwnas_boards *boards, const hwnas_graph *graph,
                                      const hwnas_measure_options *options);
/* The one that is to measure a network now: that which it was sent to; the first; another, when
 * that cannot be reached. Where none of several can be reached, waits until one is back; five
 * minutes later it gives up. */
HWNAS_CHECKED hwnas_status hwnas_boards_choose(hwnas_runner **out, const hwnas_boards *boards,
                                               const hwnas_graph *graph,
                                               const hwnas_measure_options *options);
/* After a measurement on `runner` ended with `status`: whether to choose again, as its board cannot
 * be reached and there are others. When the network has cost too many links, *status says so. */
bool hwnas_boards_choose_again(hwnas_status *status, hwnas_losses *losses,
                               const hwnas_boards *boards, hwnas_runner *runner);

#endif
