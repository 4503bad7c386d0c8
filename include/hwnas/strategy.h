/* strategy.h: what proposes the next architecture: for those who write one.
 *
 * A strategy sees encodings and numbers, never a device. It is steady-state: any number of asks may
 * be open, tells come in any order, and its state is a function of the seed and of that order
 * alone, so a study is continued by telling it again what the store remembers, with a note of what
 * was asked and not told yet. All its functions
 * are called in one thread. */
#ifndef HWNAS_PUBLIC_STRATEGY_H
#define HWNAS_PUBLIC_STRATEGY_H

#include <hwnas.h>
#include <hwnas/space.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HWNAS_STRATEGY_ABI 3

enum { HWNAS_MAX_OBJECTIVES = 16 };
enum { HWNAS_MAX_MARGINS = 16 };

/* How a trial ended, as numbers. All objectives are minimised: the study negates the others. */
typedef struct hwnas_score {
    double objectives[HWNAS_MAX_OBJECTIVES]; /* NaN: not known (infeasible only) */
    double violation; /* 0: feasible; > 0: sum of the relative excesses over the limits;
                         INFINITY: the trial failed and `objectives` mean nothing */
    /* (optional) By limit, the relative excess over it: <= 0 where it is met, NaN where not known.
     * It tells a model how near to a limit feasible trials are, which `violation` does not. */
    int n_margins;
    double margins[HWNAS_MAX_MARGINS];
    int rung;         /* that it was evaluated at; 0 is the real thing (hwnas_strategy_ops.rung) */
    bool is_estimate; /* some value is none of a measurement; the trial may be told again */
} hwnas_score;

typedef struct hwnas_strategy_config {
    const hwnas_space *space; /* borrowed */
    int n_objectives;
    uint64_t seed;
    int population; /* nsga2, regularized-evolution; 0: its default */

    /* What is known of the search beforehand; 0: not known. */
    uint64_t max_trials;
    double trial_seconds;
    int n_rungs; /* ways to evaluate a network, from the real thing to the cheapest; 0: 1 */
} hwnas_strategy_config;

typedef struct hwnas_strategy hwnas_strategy;

typedef struct hwnas_strategy_ops {
    unsigned abi;       /* HWNAS_STRATEGY_ABI; checked before anything else is believed */
    const char *name;   /* what a job's `strategy` says */
    const char *help;   /* a line */
    int max_objectives; /* 0: any number */
    /* While nothing is feasible it proposes what comes nearer to the limits: when it finds nothing,
     * that says something. */
    bool seeks_feasible;
    /* (optional) The fewest trials that it makes sense with. */
    uint64_t (*min_trials)(const hwnas_strategy_config *config);
    /* HWNAS_E_INPUT for a search that it cannot do. */
    hwnas_status (*create)(hwnas_strategy **out, const hwnas_strategy_config *config);
    /* Fills `out` with a new proposal for trial number `trial` (from 0, each asked once, in order).
     * HWNAS_E_EXHAUSTED when it has no architecture left that was not proposed before. */
    hwnas_status (*ask)(hwnas_strategy *strategy, uint64_t trial, hwnas_arch *out);
    /* (optional) At which rung a trial that was asked is to be evaluated: 0 is the real thing, the
     * highest the cheapest. The same architecture may then be asked again, at a lower rung. Also of
     * a trial that was not asked: the search itself begins with a few networks. */
    int (*rung)(const hwnas_strategy *strategy, uint64_t trial);
    /* Also accepts trials that were asked of an earlier process, and a trial that was told as an
     * estimate once more, as it was measured: then that counts in the place of the estimate. */
    hwnas_status (*tell)(hwnas_strategy *strategy, uint64_t trial, const hwnas_arch *arch,
                         const hwnas_score *score);
    void (*free)(hwnas_strategy *strategy);
    /* (optional) Trial `trial` was asked of an earlier process as `arch`, with all before it told
     * as then, and is not told yet: what `ask` would remember of it. Without it the strategy learns
     * of the trial when it is told, and may propose the network once more. */
    void (*note)(hwnas_strategy *strategy, uint64_t trial, const hwnas_arch *arch);
} hwnas_strategy_ops;

/* Concrete strategies embed this as their first member. */
struct hwnas_strategy {
    const hwnas_strategy_ops *ops;
};

/* Adds a strategy to those that a job may name; the table is borrowed and stays. To be called
 * before the library is used otherwise, in the only thread. HWNAS_E_INPUT: the name is taken, or is
 * not one; HWNAS_E_UNSUPPORTED: built for another version of this header. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_register_strategy(const hwnas_strategy_ops *strategy);

/* ---- For those who write one ---- */

/* The stream of one trial. What a trial proposes then depends on what was told before it and on
 * nothing else, which is what lets another process take over. */
HWNAS_API hwnas_rng hwnas_strategy_rng(const hwnas_strategy_config *config, uint64_t trial);

/* A trial is better when it is less infeasible, then when it dominates; neither need be better. */
HWNAS_API bool hwnas_score_is_better(const hwnas_score *a, const hwnas_score *b, int n_objectives);

/* The encodings that a strategy has proposed or been told, so that none comes twice. */
typedef struct hwnas_seen {
    const hwnas_space *space; /* borrowed */
    uint64_t space_size;      /* encodings; 0: more than could ever be seen */
    size_t n, room;
    uint16_t *genes;  /* of each that was seen, one after the other */
    uint32_t *hashes; /* of these */
    size_t capacity;
    uint32_t *slots; /* where each of them is, from 1 on; 0: empty */
} hwnas_seen;

HWNAS_API void hwnas_seen_init(hwnas_seen *seen, const hwnas_space *space);
HWNAS_API void hwnas_seen_done(hwnas_seen *seen);
HWNAS_API bool hwnas_seen_has(const hwnas_seen *seen, const hwnas_arch *arch);
HWNAS_API void hwnas_seen_add(hwnas_seen *seen, const hwnas_arch *arch); /* a copy, unless it is
                                                                            there */
/* Fails with HWNAS_E_EXHAUSTED: there is no other network. */
HWNAS_API hwnas_status hwnas_seen_all(const hwnas_seen *seen);
/* As hwnas_arch_sample() draws from the encodings not seen; `out` is not added. HWNAS_E_EXHAUSTED
 * when there is none, or none was found. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_seen_sample_new(const hwnas_seen *seen, hwnas_arch *out,
                                                           hwnas_rng *rng);

#ifdef __cplusplus
}
#endif
#endif
