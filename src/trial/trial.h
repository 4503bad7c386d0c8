/* trial.h: one network that was tried, and what came of it: values, each with what it rests on. */
#ifndef HWNAS_TRIAL_TRIAL_H
#define HWNAS_TRIAL_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* What a value rests on. */
typedef enum hwnas_source {
    HWNAS_COMPUTED,     /* of the graph, or by a proxy; the same each time */
    HWNAS_MEASURED,     /* on the device, with an interval */
    HWNAS_REPLAYED,     /* published or recorded by others */
    HWNAS_TOLD,         /* by the program that asked for the network; with or without an interval */
    HWNAS_TRAINED,      /* by a training of this network, or on all samples */
    HWNAS_PARTIAL,      /* on some samples: enough to say that a limit is missed, not by how much */
    HWNAS_PREDICTED,    /* by a predictor, with a standard deviation */
    HWNAS_EXTRAPOLATED, /* the same, of a network with values that it has not learned from */
    HWNAS_OTHER_SIZE,   /* the same, where nothing but the size is outside */
    HWNAS_LEFT_OUT,  /* the same, where a search was to stay inside: on no front, as if it failed */
    HWNAS_PRIOR,     /* predicted of floats, less what int8 costs networks of its family */
    HWNAS_OF_FLOATS, /* predicted of floats, where what the network is in costs unknown points */
    HWNAS_OF_CURVE,  /* predicted by the curve of a training that was ended; on no front either */
    HWNAS_ESTIMATED, /* in the place of a measurement; such a trial is on no front */
    HWNAS_N_SOURCES
} hwnas_source;

typedef struct hwnas_source_kind {
    const char *name;  /* in the store, in JSON and in tables */
    bool is_said;      /* in words its name stands behind the value: "66.12 % (predicted)" */
    const char *doubt; /* (optional) the same, instead of the name: "66.12 % ! outside ..." */
    bool is_predicted; /* a training would know better */
    bool is_expectable; /* what a prediction is worth once it was chosen was measured (chosen.h) */
    bool is_partial;      /* of a part of the samples or epochs: a trial with it is on no front */
    bool is_left_out;     /* a trial with it meets no limits, whatever its values are */
    bool is_of_run;    /* a device ran the network: what it took holds for its duplicates */
} hwnas_source_kind;
extern const hwnas_source_kind hwnas_sources[HWNAS_N_SOURCES];

/* HWNAS_N_SOURCES: there is none of that name. */
hwnas_source hwnas_source_from_name(const char *name);

/* One named value of a trial, e.g. "latency.p50" = 0.0081 s, measured, [0.0080, 0.0082]. */
typedef struct hwnas_value_row {
    const char *metric;      /* interned (base/intern.h), or a literal */
    double value, low, high; /* NaN for low and high when there is no interval; SI units */
    const char *unit;        /* "s", "%", "MACs", "params", "bytes"; as the metric */
    hwnas_source source;
    int rounds; /* it was measured so often side by side with its rivals; 0: once, alone */
} hwnas_value_row;

/* Both ends of its interval are known. */
bool hwnas_value_has_interval(const hwnas_value_row *value);
/* They are those of runs: the value lies between them, and another one's can be compared. */
bool hwnas_value_is_bounded(const hwnas_value_row *value);
/* The ends that a limit must hold for: those of a measurement, or that were told, else the value,
 * as nothing else promises an interval. */
double hwnas_value_low(const hwnas_value_row *value);
double hwnas_value_high(const hwnas_value_row *value);

typedef struct hwnas_trial {
    uint64_t number; /* from 0, in the order of asking */
    int rung;        /* of the ladder of evaluations: 0 is the real thing, others are cheaper */
    char *code;      /* architecture; owned */
    char digest[33]; /* canonical hash of the graph */
    bool is_finished;
    int64_t order;       /* in which it finished, from 0; -1 while running */
    hwnas_status status; /* finished: HWNAS_OK or why it failed */
    char *message;       /* of a failure; owned, may be NULL */
    /* Its measurement is marked: the machine was disturbed (hwnas_measurement_doubt()); of several
     * devices one is enough. */
    bool is_unstable;
    /* Its measurement ended when it was clear that the network is beaten: enough to say so, too few
     * samples for a number that stands for the network in another search. */
    bool is_stopped_early;
    char *detail;     /* JSON object: samples, stop, command, ...; owned, may be NULL */
    double seconds;   /* wall time that it took */
    double violation; /* 0: feasible */
    size_t n_values, value_room;
    hwnas_value_row *values; /* owned */
} hwnas_trial;

void hwnas_trials_free(hwnas_trial *trials, size_t n);
void hwnas_trial_done(hwnas_trial *trial);                        /* frees what it owns */
void hwnas_trial_copy(hwnas_trial *out, const hwnas_trial *from); /* all of it */

/* NULL: the trial has no value of that name. */
const hwnas_value_row *hwnas_trial_value(const hwnas_trial *trial, const char *metric);
void hwnas_trial_add(hwnas_trial *trial, const hwnas_value_row *value); /* a copy, at the end */

/* The first value of a source; NULL: none is. */
const hwnas_value_row *hwnas_trial_value_of(const hwnas_trial *trial, hwnas_source source);
/* Some value was measured. */
bool hwnas_trial_is_measured(const hwnas_trial *trial);
/* Some value is of a run: measured, or told. */
bool hwnas_trial_was_run(const hwnas_trial *trial);
/* Some value is an estimate in the place of a measurement: it cannot be on a front. */
bool hwnas_trial_is_estimated(const hwnas_trial *trial);
/* Some value is of a part of the samples or epochs: it cannot be on a front. */
bool hwnas_trial_is_partial(const hwnas_trial *trial);

#endif
