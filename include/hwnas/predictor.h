/* predictor.h: architecture -> accuracy: for those who write a kind of predictor.
 *
 * A kind is a table of functions, and is named as "KIND:REST" where a predictor is asked for. A
 * predictor has scratch memory: one thread at a time. */
#ifndef HWNAS_PUBLIC_PREDICTOR_H
#define HWNAS_PUBLIC_PREDICTOR_H

#include <hwnas.h>
#include <hwnas/space.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HWNAS_PREDICTOR_ABI 2

/* What a predictor trains: a program of the user's, asked for each network or within a budget. */
typedef struct hwnas_trainings {
    size_t n_known;  /* results that are there */
    size_t budget;   /* in all, these included; 0: every network that is asked for is trained */
    size_t n_jobs;   /* at a time */
    double seconds;  /* of one, the mean of the results; NaN: not known */
    double spent;    /* seconds that this process has waited for trainings */
    size_t reserved; /* of the budget, for the end of the search */
} hwnas_trainings;

/* Called many times a second while programs train: `n_done` networks of `n` have been, in
 * `seconds`. */
typedef struct hwnas_training_watch {
    void (*tell)(void *context, size_t n_done, size_t n, double seconds); /* NULL: nobody watches */
    void *context;
} hwnas_training_watch;
/* Which networks a predictor with a budget trains: what may be among the best, none (only
 * estimates), or each that is asked for as long as there is budget. */
typedef enum hwnas_training_mode {
    HWNAS_TRAIN_PROMISING,
    HWNAS_TRAIN_NONE,
    HWNAS_TRAIN_EACH,
} hwnas_training_mode;
/* One kind. A predictor of it embeds hwnas_predictor as its first member. */
typedef struct hwnas_predictor_ops {
    unsigned abi;     /* HWNAS_PREDICTOR_ABI; checked before anything else is believed */
    const char *name; /* "KIND:REST" where a predictor is named */
    bool ranks_only;  /* its mean orders networks and is not an estimate of the target */
    bool heeds_stop;  /* its scores take long and look at `stop` */
    /* (optional) Makes one from what follows "KIND:", for architectures of the space, and sets ops,
     * space, kind, target and unit of its hwnas_predictor. */
    hwnas_status (*open)(hwnas_predictor **out, const char *rest, const hwnas_space *space);
    /* out[i] is of archs[i], n > 0; all or none. */
    hwnas_status (*score)(hwnas_estimate *out, hwnas_predictor *predictor,
                          const hwnas_arch *const *archs, size_t n);
    /* (optional) The only architectures that it has a score of, n of them, borrowed from it: a
     * search stays among them. */
    const hwnas_arch *const *(*recall)(size_t *n, const hwnas_predictor *predictor);
    /* (optional; NULL: it trains nothing) All but `spent`. */
    void (*trainings)(hwnas_trainings *out, const hwnas_predictor *predictor);
    /* Frees what it made itself; target and unit are freed by the library. */
    void (*free)(hwnas_predictor *predictor);
} hwnas_predictor_ops;

struct hwnas_predictor {
    const hwnas_predictor_ops *ops;
    const hwnas_space *space; /* borrowed */
    const char *kind;         /* what a user calls it; borrowed */
    char *target, *unit; /* what it estimates, "top1_pct", and in which unit, "%"; by malloc() */
    /* The rest is the library's to set, all 0 at first. */
    const volatile sig_atomic_t *stop; /* NULL: never asked to */
    uint64_t n_asked;                  /* networks that the search has asked for before */
    hwnas_training_watch watch;
    hwnas_training_mode train_mode;
    double spent; /* seconds of trainings */
};

/* Adds a kind to those that may be named; the table is borrowed and stays. To be called before the
 * library is used otherwise, in the only thread. HWNAS_E_INPUT: the name is taken, or is not one;
 * HWNAS_E_UNSUPPORTED: built for another version of this header. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_register_predictor(const hwnas_predictor_ops *kind);

#ifdef __cplusplus
}
#endif
#endif
