/* turns.h: networks measured in turns on one device, so that whatever changes on the machine
 * meanwhile changes all of them.
 *
 * They take turns in one runner (measure/race.h) where it can hold all of them and what is wanted
 * follows from the median latency. Else each turn is a short measurement of its own, forwards and
 * backwards, one after the other. */
#ifndef HWNAS_STUDY_TURNS_H
#define HWNAS_STUDY_TURNS_H

#include "study/evaluate.h"

/* Nine rounds: the fewest whose 95 % interval of a median leaves out one on each side. */
enum { HWNAS_TURN_ROUNDS = 9 };
/* A race is over sooner where its verdicts are clear; fewer rounds than these bound no median. */
enum { HWNAS_TURN_LEAST = 6 };

typedef struct hwnas_turns {
    int n, n_rounds;
    hwnas_trial *rows; /* values of each network in each round: rows[round * n + network]; owned */
} hwnas_turns;

/* Seconds that `n` networks take at most, where one measurement has at most `seconds`. */
double hwnas_turns_budget(int n, double seconds);

/* Measures `n` networks on a device that runs. `wants_all`: each metric that the device gives, not
 * only what follows from the median latency. No rounds where the machine let none be whole. `out`
 * is to be done with after success. HWNAS_E_INTERRUPTED: `stop` (NULL: never) was set. */
HWNAS_CHECKED hwnas_status hwnas_turns_take(hwnas_turns *out, hwnas_evaluator *evaluator,
                                            const hwnas_candidate *candidates, int n, int device,
                                            double seconds, bool wants_all,
                                            const volatile sig_atomic_t *stop);
void hwnas_turns_done(hwnas_turns *turns);

#endif
