/* profile.h: what devices do with networks: measured side by side, compared, forecast, learnt.
 *
 * Each function gives a report (hwnas.h). Where it measures it does so in a runner, as a measurer
 * does. Any thread may call them; two that measure at a time disturb each other. */
#ifndef HWNAS_PUBLIC_PROFILE_H
#define HWNAS_PUBLIC_PROFILE_H

#include <hwnas.h>
#include <hwnas/data.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- What this machine can do ---- */

typedef struct hwnas_survey_options {
    size_t size;
    bool refresh; /* measure again what is known from an earlier call */
    /* (optional) Becomes nonzero, in a signal handler or another thread: HWNAS_E_INTERRUPTED. */
    const volatile sig_atomic_t *cancel;
    const char *device; /* this one alone, such as "ssh:pi"; NULL: all that the library knows */
    /* (optional) Is told what is measured, in a line, in the calling thread. */
    void (*progress)(void *context, const char *words);
    void *context;
} hwnas_survey_options;
#define HWNAS_SURVEY_OPTIONS_INIT                                                                  \
    {                                                                                              \
        sizeof(hwnas_survey_options), false, NULL, NULL, NULL, NULL                                \
    }

/* The devices that the library knows: whether each works here, its precisions, how fast it computes
 * and moves values at most; and whether measurements may have real-time priority. Text, JSON
 * ("hwnas.devices"). One that was asked for by name and does not work is a failure. The first time
 * seconds for each precision; the figures are kept in the user's cache. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_devices_survey(hwnas_report **out,
                                                          const hwnas_survey_options *options);

/* Puts the runner that scripts/build-runner has packed on the machine of a device `ssh:HOST`, into
 * its user's home, and asks it who it is. `file`: the packed runner; NULL: that for its kind of
 * machine, from the folder `runners` of the installation. `cancel` (optional) as above. Text, JSON
 * ("hwnas.runner").
 */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_runner_install(hwnas_report **out, const char *device,
                                                          const char *file,
                                                          const volatile sig_atomic_t *cancel);

/* ---- Profiles: models under settings ---- */

/* As many copies as there are cores for; one where the network does not run on cores. */
#define HWNAS_STREAMS_FILL (-1)
/* All cores that this process may use. */
#define HWNAS_THREADS_ALL (-1)

/* Which models, each under every combination of the settings. Lists have 1 to 16 entries, those of
 * models 64; empty ones have their default. All is borrowed during the call. */
typedef struct hwnas_profile_options {
    size_t size;
    const char *const *models; /* names as hwnas_network_open() takes them */
    size_t n_models;
    const char *code; /* which network of a space */
    const char *const *devices;
    size_t n_devices; /* 0: "cpu" */
    const int *batches;
    size_t n_batches;   /* 0: 1, or what an ONNX file fixes */
    const int *threads; /* or HWNAS_THREADS_ALL */
    size_t n_threads;   /* 0: 1; hwnas_compare(): 1 and all cores */
    const hwnas_precision *precisions;
    size_t n_precisions;  /* 0: HWNAS_F32 */
    const int *streams;   /* copies at a time, on cores of their own; or HWNAS_STREAMS_FILL */
    size_t n_streams;     /* 0: one copy, measured as hwnas_measurer_measure() does */
    const char *mode;     /* as in hwnas_measurer_options; NULL: "hot", the only one with streams */
    const char *priority; /* "realtime", "normal"; NULL: "auto", realtime where allowed */
    double interval;      /* relative; 0: 0.01 */
    double seconds;       /* for each; 0: 1 */
    int min_runs;         /* of each, at least; 0: 30 */
    bool with_layers;     /* the parts of each network: time, work, share of the roofline */
    bool verifies;        /* each result is compared with a reference; a wrong one gets no time */
    bool skips;       /* nodes of ONNX files that cannot be computed are left out, with a note */
    const char *name; /* what the machine is called, in a profile that is kept */
    const char *save; /* (optional) file to keep it in, for hwnas_compare() */
    /* (optional) Becomes nonzero, in a signal handler or another thread: the report has what was
     * finished, and concludes with HWNAS_E_INTERRUPTED. */
    const volatile sig_atomic_t *cancel;
    /* (optional) Shapes of ONNX files' inputs, "ids=1x128,mask=1x128", or lengths of open
     * dimensions by their names, "sequence_length=128": open dimensions become these, wherever they
     * have the same name; "ids=1x{32,64,128}" and "sequence_length={1,128}" are measured in each.
     */
    const char *shape;
    /* A training step is measured in the place of an inference: forward, loss, backward and the
     * update of the weights. */
    hwnas_optimizer training;
    /* A set of bits 1 << hwnas_mixing: besides the precisions (none: alone) each network is
     * measured so, its layers chosen first as hwnas_network_mix() does, on random inputs unless
     * there is data: minutes for a large network. On the device cpu. */
    unsigned mixings;
    double max_error; /* of that: the limit on the largest difference from fp32, relative to the
                         largest output; below 0: 0.05, or none where there are labels */
    /* (optional) With `training`: what a whole one takes, of so many samples, in so many passes
     * over them, also parts of one (0: 1), for what an hour of each device costs (YAML file, NULL:
     * nobody asked). */
    double samples, epochs;
    const char *prices;
    /* (optional) With `mixings`: samples for each of the models, and their labels, in the place of
     * random inputs; hwnas_network_mix() says how they count. */
    const hwnas_data_file *data;
    size_t n_data;
    const hwnas_dataset_options *data_options; /* NULL: all defaults */
    int64_t calibrate;                         /* as in hwnas_network_mix_options; so ... */
    double max_loss;
    /* (optional) Is told what is measured next, in a line, in the calling thread. */
    void (*progress)(void *context, const char *words);
    void *context;
} hwnas_profile_options;
#define HWNAS_PROFILE_OPTIONS_INIT                                                                 \
    {                                                                                              \
        .size = sizeof(hwnas_profile_options), .max_error = -1, .max_loss = -1                     \
    }

/* Measures latency, throughput, memory and compile time. Concludes with the failure of the first
 * ONNX file that could not be read, or model that could not be measured under a setting, when the
 * others are measured; mistakes in names and options, and that no file can be read, are told before
 * anything is. Text, JSON ("hwnas.profile"), CSV. Takes options->seconds for each
 * combination, and compiling. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_models_profile(hwnas_report **out,
                                                          const hwnas_profile_options *options);

/* ---- Comparisons ---- */

/* A profile that was kept, of any machine. */
typedef struct hwnas_recorded_profile {
    const char *name; /* of the machine; NULL: that in the file, or the file's */
    const char *path;
} hwnas_recorded_profile;

typedef struct hwnas_compare_options {
    size_t size;
    /* Which models, NULL or none of them: all that the profiles have; and how they are measured
     * here, where they are: streams HWNAS_STREAMS_FILL unless there are others. */
    const hwnas_profile_options *models;
    bool measures; /* here, beside the recorded ones */
    const hwnas_recorded_profile *recorded;
    size_t n_recorded;  /* at most 32 */
    const char *prices; /* (optional) YAML file of what an hour of each device costs */
    double percentile;  /* of the latency that is promised: 0.5, 0.9, 0.99; 0: 0.99 */
    double target;      /* seconds, with waiting; 0: none */
    double load;        /* requests a second; 0: one machine as full as may be */
    double utilisation; /* share of its time that a machine is busy at most; 0: 0.8 */
    /* Where `models->training` is set: the device, or name of a profile, in units of whose best
     * setting the others are told; NULL: the first. */
    const char *base;
} hwnas_compare_options;
#define HWNAS_COMPARE_OPTIONS_INIT                                                                 \
    {                                                                                              \
        .size = sizeof(hwnas_compare_options)                                                      \
    }

/* Says which device serves each model cheapest (docs/cpu-or-gpu.md). Concludes with
 * HWNAS_E_INFEASIBLE where none keeps the target. With `models->training` it says which device
 * trains it cheapest (docs/training.md): percentile, target, load, utilisation and streams are
 * refused, and `models->samples` and `epochs` are those of the training, 0: per sample. Text, JSON
 * ("hwnas.comparison"), CSV. Cheap where nothing is measured. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_compare(hwnas_report **out,
                                                   const hwnas_compare_options *options);

typedef struct hwnas_baseline_options {
    size_t size;
    const char *recorded; /* the file of a profile of this machine */
    double tolerance;     /* share that a network may be slower; 0: 0.05 */
    /* Which of its models, NULL or none of them: all; and interval, seconds, cancel. */
    const hwnas_profile_options *models;
} hwnas_baseline_options;
#define HWNAS_BASELINE_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(hwnas_baseline_options), NULL, 0, NULL                                              \
    }

/* Measures again what a profile holds. Concludes with HWNAS_E_SLOWER when a network got slower,
 * twice in a row. Text, JSON ("hwnas.baseline"). Takes what the profile took. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_compare_baseline(hwnas_report **out,
                                                            const hwnas_baseline_options *options);

/* ---- Forecasts ---- */

typedef struct hwnas_forecast_options {
    size_t size;
    const char *device; /* NULL: "cuda-dry:h200" */
    hwnas_precision precision;
    bool with_steps; /* the text lists them; JSON does in any case */
} hwnas_forecast_options;
#define HWNAS_FORECAST_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(hwnas_forecast_options), NULL, HWNAS_F32, false                                     \
    }

/* Compiles a network for a device and tells its steps and its memory; runs nothing, so the device
 * need not be here (cuda-dry). HWNAS_E_UNSUPPORTED: the device cannot compute the network, or does
 * not tell. Text, JSON ("hwnas.forecast"). Milliseconds to seconds. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_network_forecast(hwnas_report **out,
                                                            const hwnas_network *network,
                                                            const hwnas_forecast_options *options);

/* ---- The table of latencies ---- */

typedef struct hwnas_calibration_options {
    size_t size;
    const char *device; /* NULL: "cpu" */
    int threads;        /* 0: all cores that this process may use */
    int batch;          /* 0: 1 */
    hwnas_precision precision;
    double seconds; /* to be spent; 0: 300 */
    uint64_t seed;  /* of the networks */
    /* (optional) Becomes nonzero, in a signal handler or another thread: the report concludes with
     * HWNAS_E_INTERRUPTED, and what was measured is kept. */
    const volatile sig_atomic_t *cancel;
    /* (optional) Is told how far it is, in a line, in the calling thread. */
    void (*progress)(void *context, const char *words);
    void *context;
} hwnas_calibration_options;
#define HWNAS_CALIBRATION_OPTIONS_INIT                                                             \
    {                                                                                              \
        sizeof(hwnas_calibration_options), NULL, 0, 0, HWNAS_F32, 0, 0, NULL, NULL, NULL           \
    }

/* Measures those networks of a space that teach the user's table of latencies most, so that
 * searches can estimate others without running them (docs/latency-table.md). Text, JSON
 * ("hwnas.calibration"). Takes options->seconds. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_space_calibrate(
    hwnas_report **out, const hwnas_space *space, const hwnas_calibration_options *options);

/* A table of latencies on other devices, carried over to one that measures a few of its networks.
 */
typedef struct hwnas_transfer_options {
    size_t size;
    const char *device; /* NULL: "cpu" */
    int threads;        /* 0: all cores that this process may use */
    int batch;          /* 0: 1 */
    hwnas_precision precision;
    /* A CSV of the space's architectures, whose columns in _ms or _us are devices; a study of the
     * space; or a table of latencies (docs/latency-table.md). */
    const char *from;
    const char *out;  /* the CSV to be written; NULL: none */
    int n;            /* networks to measure, 3 to 100; 0: 10 */
    uint64_t seed;    /* of the networks that are looked at */
    const volatile sig_atomic_t *cancel;                /* (optional) as above */
    void (*progress)(void *context, const char *words); /* (optional) as above */
    void *context;
} hwnas_transfer_options;
#define HWNAS_TRANSFER_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(hwnas_transfer_options), NULL, 0, 0, HWNAS_F32, NULL, NULL, 0, 0, NULL, NULL, NULL  \
    }

/* Measures those networks of the table that tell most of the others, and estimates all of them on
 * the device, each with its 90 % interval (docs/latency-table.md). `out` is written whole or not at
 * all. HWNAS_E_INPUT: the table has no other device. Text, JSON ("hwnas.transfer"). About a second
 * for 10,000 networks, and the measurements. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_space_transfer(hwnas_report **out,
                                                          const hwnas_space *space,
                                                          const hwnas_transfer_options *options);

#ifdef __cplusplus
}
#endif
#endif
