/* profile.h: measurements of models side by side: what `hwnas profile` prints and saves, and what
 * `hwnas compare` reads. */
#ifndef HWNAS_PROFILE_PROFILE_H
#define HWNAS_PROFILE_PROFILE_H

#include "base/mem.h"
#include "data/score.h"
#include "graph/graph.h"
#include "measure/conditions.h"
#include "measure/measure.h"
#include "profile/layers.h"
#include "profile/slow.h"

/* Strings are borrowed, from the profile's arena or from who made the row. */
typedef struct hwnas_profile_device {
    const char *spelling; /* "cpu" */
    hwnas_device_info info;
} hwnas_profile_device;

/* A training whose cost is asked for. */
typedef struct hwnas_training_plan {
    double samples;       /* of the training set; 0: not asked */
    double epochs;        /* passes over them, also parts of one */
    const char *currency; /* of what it costs; NULL: no prices */
} hwnas_training_plan;

/* What it takes (profile/training_cost.h). NaN: not known, or not asked. */
typedef struct hwnas_training_cost {
    int64_t steps;
    double seconds, low, high; /* by the median of a step and its interval */
    double money;              /* in the plan's currency */
    bool is_cheapest;          /* of the rows of this network on this device */
} hwnas_training_cost;

/* One model under one setting. */
typedef struct hwnas_profile_row {
    const char *model, *device;
    const char *arch;    /* which network of a space; NULL: there is only one */
    hwnas_digest digest; /* of the graph; "" in profiles that do not come from hwnas */
    const char *shape;   /* of an ONNX file's inputs, "ids=1x128"; NULL: as the file has it */
    int batch, threads, streams;
    hwnas_precision precision;
    hwnas_mixing
        mixing;         /* if set, layers have precisions of their own (precision/mix.h), and ... */
    const char *floats; /* ... the others are in "f32" or "bf16"; else NULL */
    int layers_in_s8, layers_in_bf16; /* of one that is mixed */
    double max_error;   /* NaN: it is not mixed; limit on ... */
    double mixed_error; /* ... the largest difference from f32, of the largest output; or NaN */
    int64_t choice_samples, held_out_samples; /* by which it was chosen, and judged; 0: none */
    const char *accuracy_metric; /* "top1", "r2"; NULL: the samples have no labels, and these ... */
    double max_loss;             /* ... points below f32 that it may be on those of the choice, */
    hwnas_estimate_95 accuracy, f32_accuracy, s8_accuracy; /* on the others, in percent: NaN */
    hwnas_optimizer training;  /* a run is a training step */
    hwnas_training_cost train; /* what a whole training takes */
    hwnas_costs costs; /* of the whole batch */
    hwnas_status
        status; /* of the measurement; when it failed, what follows `message` means nothing */
    const char *message; /* why it failed */
    const char *hint;    /* what to try then; NULL: nothing is known */
    hwnas_measurement m; /* of one run, which is a batch */
    double items_per_second;
    hwnas_layers *layers;    /* what each part took; NULL: not asked for */
    const char *doubt;       /* why the measurement is unstable; NULL when it is not */
    const char *cause;       /* what of the machine's own limits explains it; NULL: nothing known */
    const char *throttle;    /* what held a device's clock down: "power", "heat"; NULL: nothing */
    const char *mode, *stop; /* "hot"; "interval" or "budget": why sampling ended */
    double mode_seconds;     /* that belong to the mode; NaN: none */
    const char *command;     /* that makes this row again */
    const char *verified_against; /* what its result was compared with; NULL: it was not */
    const char *unverified;       /* why not, where it was asked for */
    double verified_error, verified_tolerance; /* NaN: it was not */
    hwnas_slow_code slow;                      /* how much of it is no code to deploy */
} hwnas_profile_row;

/* The machine that did the measuring. */
typedef struct hwnas_host {
    const char *processor, *system; /* "Linux 6.1.0 x86_64" */
    int cores;                      /* that the process could use */
    int64_t memory_bytes;
    hwnas_conditions conditions; /* governor, turbo, heat and quota when the profile was begun */
} hwnas_host;

/* What was asked, and the answers. */
typedef struct hwnas_profile {
    hwnas_arena *arena;
    const char *name;    /* what the user calls the machine; NULL: nothing */
    const char *source;  /* "measured", or where published figures stand */
    const char *date;    /* "2026-01-31T12:00:00Z" */
    const char *version; /* of hwnas */
    hwnas_host host;
    hwnas_training_plan plan; /* of the rows' `train` */
    size_t n_devices, n_rows;
    hwnas_profile_device *devices;
    hwnas_profile_row *rows;
    size_t device_capacity, row_capacity;
} hwnas_profile;

/* What a row is computed in, as `--dtype` says it: "s8", "mixed". Static. */
const char *hwnas_profile_row_dtype(const hwnas_profile_row *row);

/* Empty, of this machine, measured now. */
hwnas_profile *hwnas_profile_new(void);
void hwnas_profile_free(hwnas_profile *profile); /* accepts NULL */

/* Adds a device unless it is there; notes what it says of itself either way. `info` NULL: it did
 * not come to say anything. */
void hwnas_profile_add_device(hwnas_profile *profile, const char *spelling,
                              const hwnas_device_info *info);
/* A new row; valid until the next is added. */
hwnas_profile_row *hwnas_profile_add_row(hwnas_profile *profile);

/* The failure of the first row that has one: a profile of which a part failed is not a success. */
HWNAS_CHECKED hwnas_status hwnas_profile_check(const hwnas_profile *profile);

#endif
