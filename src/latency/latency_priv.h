/* latency_priv.h: what a table holds; latency_table.c fills it, latency_fit.c makes sense of it. */
#ifndef HWNAS_LATENCY_LATENCY_PRIV_H
#define HWNAS_LATENCY_LATENCY_PRIV_H

#include "latency/latency_table.h"

enum {
    HWNAS_PART_FEATURES = 4, /* logarithms of MACs and of bytes read, written and of weights */
    HWNAS_NET_FEATURES = 6,  /* how full the caches are; see latency_fit.c */
    /* Steady networks that make the others no measure of the machine's level, or of our error. */
    HWNAS_LATENCY_FEW_STEADY = 5,
};

/* What is known of a part. */
typedef struct hwnas_timed_part {
    hwnas_part part;
    int kind;       /* index of the table's kinds; -1: of none of these */
    bool is_timed;  /* ever, also since the last fit */
    double n;       /* how often it was timed, as the fit knows; 0: predicted */
    double mean;    /* of the logarithms of seconds, levels taken out */
    double seconds; /* estimate */
    double sd;      /* of its logarithm */
} hwnas_timed_part;

/* Parts of the same operators, which differ in shapes. A Gaussian process over these. */
typedef struct hwnas_part_kind {
    uint64_t kind;
    size_t n, capacity; /* rows: parts that were timed */
    double *rows;       /* n x HWNAS_PART_FEATURES, centred */
    double centre[HWNAS_PART_FEATURES];
    double *weights;                  /* of the rows in a prediction */
    double mean, length, smooth, own; /* hyper-parameters; sd in logarithms */
    double factor; /* correction that whole networks taught: of its share of the time */
} hwnas_part_kind;

/* A network that was measured: an observation with its parts by index. */
typedef struct hwnas_timed_network {
    double seconds;
    bool is_steady;
    size_t n_parts, n_sets;
    int *parts, *set_of;
    double *set_seconds;
    double features[HWNAS_NET_FEATURES];
    double level; /* how slow the machine was meanwhile, as a logarithm */
} hwnas_timed_network;

/* How sure a ridge regression (latency_ridge.h) is of its d coefficients together. */
typedef struct hwnas_posterior {
    size_t d;
    double *covariance; /* d x d; owned */
} hwnas_posterior;

enum { HWNAS_LATENCY_JUDGED = 300 };

struct hwnas_latency_table {
    size_t n_parts, part_capacity;
    hwnas_timed_part *parts;
    size_t n_slots; /* of `slots`: hash table of signatures, a power of two; -1: free */
    int *slots;
    size_t n_kinds, kind_capacity;
    hwnas_part_kind *kinds;
    hwnas_part_kind any; /* of parts of all kinds, for those of a kind never seen */
    size_t n_networks, network_capacity, n_steady;
    hwnas_timed_network *networks;

    size_t n_fitted;                    /* networks that the fit below knows; 0: none */
    double centre[HWNAS_NET_FEATURES];  /* of their features */
    double context[HWNAS_NET_FEATURES]; /* effect of these on all parts */
    double context_mean;
    double scale[HWNAS_NET_FEATURES]; /* of the features, where the context was fitted */
    hwnas_posterior of_context;       /* of their standardised effects, and the mean */
    double whole;                     /* sum of the parts -> the network, as a logarithm */
    hwnas_posterior of_whole;         /* of the factors of the first d - 1 kinds, and of `whole` */
    double residual; /* sd of a network's logarithm around its estimate, levels taken out */
    double level_sd; /* of the levels */

    size_t n_judged; /* the last HWNAS_LATENCY_JUDGED of these are kept */
    double errors[HWNAS_LATENCY_JUDGED],
        scores[HWNAS_LATENCY_JUDGED];     /* relative; in standard deviations */
    bool is_inside[HWNAS_LATENCY_JUDGED]; /* their intervals, as they were then */
    double widening;                      /* of the intervals, by these */
};

/* Fits everything anew to what was added. */
void hwnas_latency_table_fit(hwnas_latency_table *table);
/* Predicts a part that was never timed. */
void hwnas_latency_table_predict(const hwnas_latency_table *table, hwnas_timed_part *part);
/* Of a network: features that its parts' times depend on beside the parts themselves. */
void hwnas_latency_table_features(double *out, const hwnas_part *parts, size_t n);
double hwnas_latency_table_context(const hwnas_latency_table *table, const double *features);
/* Variance of an estimate's logarithm because context and corrections are known from so many
 * networks only. `shares`: of the sum of the parts, by kind of the table; `strange`: of parts of no
 * such kind. */
double hwnas_latency_table_unsure(const hwnas_latency_table *table, const double *features,
                                  const double *shares, double strange);

#endif
