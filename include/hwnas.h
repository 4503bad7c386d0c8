/* hwnas.h: the public face of libhwnas. docs/library.md shows it at work.
 *
 * Handles. hwnas_X_open() gives a handle, hwnas_X_close() takes it back; what is made of a handle
 * (an executable, a result) is given back with hwnas_X_free(). Both accept NULL. A handle belongs
 * to one thread at a time; different handles are independent, unless one was made with the other,
 * which then must stay open and is the same thread's: a network of an open space, an executable of
 * a device.
 *
 * Failures. A function that can fail returns a hwnas_status; a status other than HWNAS_OK comes
 * with a message that hwnas_last_error() gives in the same thread. Outputs come first, are called
 * `out`, and are untouched on failure. The library never prints.
 *
 * Ownership. Text that comes through `out`, or is returned as `char *`, is yours: hwnas_free().
 * What is returned as `const` is borrowed, as long as its handle is open. Text that is given is
 * copied.
 *
 * Options. A struct of options begins with its own size, which HWNAS_X_OPTIONS_INIT sets; what a
 * smaller one of an older header lacks has its default, as has each field that is 0. NULL: all
 * defaults. A size of 0 is taken for that of the library.
 *
 * Numbers are SI: seconds, bytes, counts. Text is UTF-8; JSON is described in docs/json.md. The
 * locale of the program does not matter, and is not changed.
 *
 * Networks are named as in the program: by a space (a YAML file, the name of one that ships or of a
 * network of the zoo, with settings behind it as in "bert:length=64"; or NAME.onnx) and a code
 * ("e=1666666,k=...", "22212220"; NULL where the space leaves nothing to choose).
 *
 * Cost. What is said to be cheap takes micro- to milliseconds; the rest is said where it is. */
#ifndef HWNAS_H
#define HWNAS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hwnas/version.h>

#if defined __GNUC__
#define HWNAS_API __attribute__((visibility("default")))
#define HWNAS_CHECKED __attribute__((warn_unused_result))
#define HWNAS_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define HWNAS_API
#define HWNAS_CHECKED
#define HWNAS_PRINTF(f, a)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Statuses, errors, version ---- */

typedef enum hwnas_status {
    HWNAS_OK = 0,
    HWNAS_E_USAGE,        /* the command line, or the call, is wrong */
    HWNAS_E_INPUT,        /* a file or value given by the user is wrong */
    HWNAS_E_NOT_FOUND,    /* a named thing does not exist */
    HWNAS_E_INFEASIBLE,   /* no network meets the constraints */
    HWNAS_E_EXHAUSTED,    /* no network of the space is left, or none is found */
    HWNAS_E_INTERRUPTED,  /* stopped on request; what is finished is saved */
    HWNAS_E_IO,           /* the system refused to read or write */
    HWNAS_E_MEMORY,       /* out of memory */
    HWNAS_E_UNSUPPORTED,  /* the device cannot do this */
    HWNAS_E_TIMEOUT,      /* the runner did not answer in time */
    HWNAS_E_CRASHED,      /* the runner died */
    HWNAS_E_LIBRARY,      /* a library that we use reported an error */
    HWNAS_E_SLOWER,       /* a network got slower than it was recorded */
    HWNAS_E_WRONG_RESULT, /* the device computes a network wrong */
    HWNAS_E_DISTURBED,    /* the machine was too busy for measurements that tell anything */
    HWNAS_N_STATUS
} hwnas_status;

/* Where in the user's files an error is. Line and column count from 1; 0 = not known. */
typedef struct hwnas_place {
    const char *file;
    int line, column;
} hwnas_place;

typedef struct hwnas_error {
    hwnas_status status;
    char message[1024]; /* one line: what is wrong */
    char hint[512];     /* one line: what to try; may be empty */
    char file[256];     /* the user's file; may be empty */
    int line, column;
} hwnas_error;

/* The last failure of this thread. Never NULL; borrowed, until the next call in this thread. */
HWNAS_API const hwnas_error *hwnas_last_error(void);

/* For what is registered and for callbacks: records a failure of this thread and returns `status`.
 * The message is one line without a full stop; `place` (NULL: nowhere) is where in the user's files
 * it is. hwnas_hint() adds what to try. */
HWNAS_API hwnas_status hwnas_fail(hwnas_status status, const hwnas_place *place, const char *format,
                                  ...) HWNAS_PRINTF(3, 4);
HWNAS_API hwnas_status hwnas_hint(hwnas_status status, const char *format, ...) HWNAS_PRINTF(2, 3);

/* What the library has to tell besides: a trial that failed and why, a runner that was started.
 * Nobody is told unless a program asks for it; NULL: nobody again. To be called in the only thread;
 * the function is called in the thread that works, with one line, borrowed during the call. */
typedef enum hwnas_log_level {
    HWNAS_LOG_WARNING, /* something went wrong, and the work goes on */
    HWNAS_LOG_INFO,
    HWNAS_LOG_DEBUG,
    HWNAS_LOG_NOTE, /* what the user should know before long work begins */
} hwnas_log_level;
typedef void hwnas_log_function(void *context, hwnas_log_level level, const char *line);
HWNAS_API void hwnas_set_log(hwnas_log_function *function, void *context);

/* "ok", "input", "out_of_memory", ...: the spelling used in stores and JSON. Static. */
HWNAS_API const char *hwnas_status_name(hwnas_status status);

/* The exit code that the program ends with: 0, 1, 2, 3 or 130. */
HWNAS_API int hwnas_status_exit_code(hwnas_status status);

/* The library that the program was linked with: "0.1.0", and as HWNAS_VERSION_NUMBER. */
HWNAS_API const char *hwnas_version(void);
HWNAS_API int hwnas_version_number(void);

/* Frees text that the library gave: free() of the C library that it was built with. */
HWNAS_API void hwnas_free(void *text);

/* Without memory for a large block (the values of a tensor, a file) a function fails by
 * HWNAS_E_MEMORY. Without memory for a small thing there is no way back: the handler is called, in
 * the thread that needs it. It makes room and returns nonzero, then the library tries again; or it
 * ends the process. When it returns 0, or there is none, the library prints a line to standard
 * error and calls exit(1). Set it before other threads use the library; NULL takes it away. */
typedef int hwnas_oom_handler(void *data);
HWNAS_API void hwnas_set_oom_handler(hwnas_oom_handler *handler, void *data);

/* ---- For programs with a command line ---- */

/* Makes a text harmless to a terminal, in place: control characters that are not in `kept` become
 * spaces, and bytes that are no UTF-8 question marks. Names and messages may come from anybody. */
HWNAS_API void hwnas_clean(char *text, const char *kept);

/* The name in the NULL-terminated list nearest to `wrong` by edit distance, for "did you mean";
 * NULL when none is near. */
HWNAS_API const char *hwnas_nearest(const char *wrong, const char *const *names);

/* Refuses an output that is the input, whatever their names: HWNAS_E_INPUT. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_file_check_output(const char *output, const char *input);

/* ---- Reports: what was found, for people and for programs ---- */

/* What the larger functions find, such as the rows of a profile. Its text is what the program
 * prints, its JSON what --json prints. What a report was made of must stay open. */
typedef struct hwnas_report hwnas_report;

typedef enum hwnas_format {
    HWNAS_TEXT, /* tables and sentences, harmless to a terminal */
    HWNAS_JSON, /* one object (docs/json.md) */
    HWNAS_CSV,
    HWNAS_DOT, /* a picture, in the language of Graphviz */
    HWNAS_N_FORMATS
} hwnas_format;

/* The report in a format; yours. HWNAS_E_UNSUPPORTED: it has none of that kind; HWNAS_E_INPUT: a
 * name in it is not UTF-8, which JSON has to be. Milliseconds. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_report_write(char **out, const hwnas_report *report,
                                                        hwnas_format format);
/* What the work came to: HWNAS_OK; or a failure, with its message, of work that has something to
 * report all the same: HWNAS_E_INTERRUPTED, HWNAS_E_INFEASIBLE, a row that was not measured. May be
 * asked as often as you like. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_report_conclude(const hwnas_report *report);
/* Note number i, from 0: what the user should know besides, as a sentence without a full stop; NULL
 * behind the last. */
HWNAS_API const char *hwnas_report_note(const hwnas_report *report, size_t i);
/* File number i that was written, from 0; NULL behind the last. `remark` (may be NULL) is what is
 * to be said of it, as "is in f32, where ...", or NULL. */
HWNAS_API const char *hwnas_report_file(const hwnas_report *report, size_t i, const char **remark);
HWNAS_API void hwnas_report_free(hwnas_report *report);

/* The versions of hwnas and of the libraries that it uses. Text, JSON. Cheap. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_library_versions(hwnas_report **out);

/* ---- Spaces: families of networks ---- */

typedef struct hwnas_space hwnas_space;

/* Reads a space and checks it: its grammar, its rules, that some of its networks can be built.
 * Milliseconds; up to a second where it has rules that are hard to count. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_space_open(hwnas_space **out, const char *name);
/* After everything that was opened with it. */
HWNAS_API void hwnas_space_close(hwnas_space *space);

HWNAS_API const char *hwnas_space_name(const hwnas_space *space);
/* What the space says of itself; "": nothing. */
HWNAS_API const char *hwnas_space_about(const hwnas_space *space);

/* Number of encodings that count, in decimal, as it may have dozens of digits; yours. With
 * conditions and constraints it is exact unless too many different things follow from the first
 * genes for those behind, as when sums of large numbers meet; then it is an upper bound. `is_exact`
 * may be NULL. */
HWNAS_API char *hwnas_space_count(const hwnas_space *space, bool *is_exact);

/* The code of a random network that meets the constraints, uniform over the encodings; number
 * `index` of the stream that `seed` names. HWNAS_E_INPUT where none is found. Cheap. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_space_sample(char **out, const hwnas_space *space,
                                                        uint64_t seed, uint64_t index);
/* The network after `code` (NULL: the first) in an order that has each that counts once.
 * HWNAS_E_EXHAUSTED after the last; HWNAS_E_UNSUPPORTED where they cannot be counted. Cheap. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_space_next(char **out, const hwnas_space *space,
                                                      const char *code);
/* Another network near to `code`: each gene changes with probability `rate`, at least one does.
 * Seeded as hwnas_space_sample(). Cheap. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_space_mutate(char **out, const hwnas_space *space,
                                                        const char *code, double rate,
                                                        uint64_t seed, uint64_t index);
/* Whether a code is one of the space and meets its constraints; else HWNAS_E_INPUT says where it
 * does not. `out` is the code as the library spells it, without genes that do not count; may be
 * NULL. Cheap. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_space_check(char **out, const hwnas_space *space,
                                                       const char *code);

/* What a space lets choose: its choices and settings. Text, JSON ("hwnas.space"). Cheap. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_space_report(hwnas_report **out,
                                                        const hwnas_space *space);
/* Opens the space of that name, and with each value of each of its settings; says where one is
 * wrong. Text, JSON ("hwnas.check"). Takes hwnas_space_open() for each. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_space_validate(hwnas_report **out, const char *name);
/* The number of encodings, and of different networks: at most 200,000 encodings are built, up to a
 * minute, to compare their digests; of more the number of networks is left open. Text, JSON
 * ("hwnas.count"). */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_space_count_networks(hwnas_report **out,
                                                                const hwnas_space *space);
/* Random networks with their parameters and MACs, uniform over the encodings; repetitions are
 * possible. Other ones than hwnas_space_sample() draws of that seed. Text, JSON ("hwnas.sample").
 * About a millisecond for each. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_space_sample_networks(hwnas_report **out,
                                                                 const hwnas_space *space, size_t n,
                                                                 uint64_t seed);

/* ---- Networks ---- */

typedef struct hwnas_network hwnas_network;

typedef struct hwnas_network_options {
    size_t size;
    int batch; /* 0: 1, or a trial's own; an ONNX file whose batch is fixed to another one
                  is refused */
    bool takes_own_batch; /* instead, such a file has its own; hwnas_network_input() tells it */
} hwnas_network_options;
#define HWNAS_NETWORK_OPTIONS_INIT                                                                 \
    {                                                                                              \
        sizeof(hwnas_network_options), 0, false                                                    \
    }

/* Of all the batch. */
typedef struct hwnas_costs {
    int64_t params;           /* learned values, with BatchNorm's affine, without its statistics */
    int64_t macs;             /* multiply-accumulates of convolutions and matrix products, as the
                                 published tables count them */
    int64_t weight_bytes;     /* all weights as stored, fp32 */
    int64_t activation_bytes; /* peak of live activations over the order of the nodes */
    int64_t peak_bytes;       /* weights plus that peak */
    int64_t layers;           /* nodes with learned weights and MACs */
} hwnas_costs;

/* An input or output. Arrays that are given and taken are float, whatever `type` says, in the order
 * of the dimensions, the last one fastest; the first one is the batch. */
typedef struct hwnas_array_info {
    const char *name;
    const char *type; /* "float32", "int64", ...: what the values mean, and what ONNX has */
    int rank;
    const int64_t *dims;
    int64_t count; /* of elements */
} hwnas_array_info;

/* Builds a network by its names, as a graph of untrained weights. Milliseconds; an ONNX file takes
 * its time to read, and keeps its weights. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_network_open(hwnas_network **out, const char *name,
                                                        const char *code,
                                                        const hwnas_network_options *options);
/* The same in an open space, which is borrowed. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_network_open_in(hwnas_network **out,
                                                           const hwnas_space *space,
                                                           const char *code,
                                                           const hwnas_network_options *options);
/* The network of a trial of a study, which may still run; `trial` -1: of the winner.
 * HWNAS_E_INFEASIBLE, HWNAS_E_DISTURBED: it has none; HWNAS_E_NOT_FOUND: no such trial. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_network_open_trial(hwnas_network **out,
                                                              const char *study, int64_t trial,
                                                              const hwnas_network_options *options);
HWNAS_API void hwnas_network_close(hwnas_network *network);

/* As hwnas_space_check() spells it; NULL: of an ONNX file. */
HWNAS_API const char *hwnas_network_code(const hwnas_network *network);
/* Hash of what it computes with unknown weights: 32 hex digits. Codes of one digest are one
 * network. */
HWNAS_API const char *hwnas_network_digest(const hwnas_network *network);
HWNAS_API const hwnas_costs *hwnas_network_costs(const hwnas_network *network);
/* Input and output number i, from 0; NULL: there is none. */
HWNAS_API const hwnas_array_info *hwnas_network_input(const hwnas_network *network, size_t i);
HWNAS_API const hwnas_array_info *hwnas_network_output(const hwnas_network *network, size_t i);
/* Layers, shapes, parameters, MACs and memory. Text, JSON ("hwnas.network"), DOT. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_network_report(hwnas_report **out,
                                                          const hwnas_network *network);

/* ---- Devices, and running networks in this process ---- */

typedef struct hwnas_device hwnas_device;
typedef struct hwnas_exec hwnas_exec;

/* What a network is computed in. Inputs and outputs are fp32 in every one of them. */
typedef enum hwnas_precision {
    HWNAS_F32,
    HWNAS_TF32, /* products of fp32 values with 10 bits of mantissa, on NVIDIA's tensor cores */
    HWNAS_BF16,
    HWNAS_F16,
    HWNAS_S8, /* quantised: 8-bit integers, ranges from calibration */
    HWNAS_N_PRECISIONS
} hwnas_precision;

/* "f32", "tf32", "bf16", "f16", "s8". Static. */
HWNAS_API const char *hwnas_precision_name(hwnas_precision precision);
/* HWNAS_E_INPUT with the known names for another one. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_precision_find(hwnas_precision *out, const char *name);

typedef struct hwnas_device_options {
    size_t size;
    int threads; /* 0: all cores that this process may use */
} hwnas_device_options;
#define HWNAS_DEVICE_OPTIONS_INIT                                                                  \
    {                                                                                              \
        sizeof(hwnas_device_options), 0                                                            \
    }

typedef struct hwnas_device_info {
    char name[128];   /* "Intel(R) Xeon(R) Processor, 2 cores" */
    char library[64]; /* "oneDNN 3.7.2" */
    char isa[64];     /* instruction set that the library uses */
    int threads;
    unsigned native;   /* precisions that it has instructions for: a set of bits
                          1 << hwnas_precision */
    unsigned emulated; /* those that it computes by way of others, without gain in speed */
    bool has_energy;   /* the machine has an energy counter; known to a runner alone */
    bool computes;     /* a run gives the network's outputs, so that they can be verified */
} hwnas_device_info;

/* Device number i that this library knows, built in or registered: what stands before ':' in its
 * spelling; NULL behind the last. `help` (NULL: not wanted) is a line about it. Static. */
HWNAS_API const char *hwnas_device_list(size_t i, const char **help);

/* Opens "cpu", "ref", "null", "cuda:0", "replay:FILE#COLUMN", "cuda-dry:h200" in this process. The
 * first of a process loads libraries: up to a second. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_device_open(hwnas_device **out, const char *spelling,
                                                       const hwnas_device_options *options);
/* After everything that was compiled for it. */
HWNAS_API void hwnas_device_close(hwnas_device *device);
HWNAS_API void hwnas_device_describe(hwnas_device_info *out, const hwnas_device *device);

/* How a network is to be compiled. */
typedef struct hwnas_exec_options {
    size_t size;
    hwnas_precision precision;
    /* (optional) S8: what ranges are found with: the network's inputs one after the other, as often
     * as `n_samples`; borrowed during the call. None: random ones. */
    size_t n_samples;
    const float *samples;
} hwnas_exec_options;
#define HWNAS_EXEC_OPTIONS_INIT                                                                    \
    {                                                                                              \
        sizeof(hwnas_exec_options), HWNAS_F32, 0, NULL                                             \
    }

/* Compiles for a device, as it would be deployed: batch norms folded, operators fused. The network
 * may be closed afterwards. HWNAS_E_UNSUPPORTED names what the device lacks. Milliseconds to
 * seconds. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_network_compile(hwnas_exec **out,
                                                           const hwnas_network *network,
                                                           hwnas_device *device,
                                                           const hwnas_exec_options *options);
/* One inference, complete on return: an array for each input and each output of the network, as
 * large as hwnas_array_info.count says. What a network does to the caller it may do here: to
 * measure one that nobody has run yet, use a measurer. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_exec_run(hwnas_exec *exec, const float *const *inputs,
                                                    float *const *outputs);
HWNAS_API void hwnas_exec_free(hwnas_exec *exec);

/* ---- Files of networks ---- */

typedef struct hwnas_export_options {
    size_t size;
    hwnas_precision precision; /* an ONNX file has HWNAS_S8 as QDQ nodes; others are F32 */
    bool is_folded;            /* ONNX: without batch norms and dead branches */
    bool as_measured;          /* of a trial, in its precision where a file can have it */
    /* (optional) Gets what the user should know of the file, as a sentence; yours. NULL: nothing.
     */
    char **note;
} hwnas_export_options;
#define HWNAS_EXPORT_OPTIONS_INIT                                                                  \
    {                                                                                              \
        sizeof(hwnas_export_options), HWNAS_F32, false, false, NULL                                \
    }

/* Writes a file, whole or not at all, and not over what the network was opened from. `format`:
 * "onnx", "pytorch", "yaml". A network of an ONNX file is written as "onnx" or "pytorch"; the
 * latter is NAME.py, with its weights beside it in NAME.safetensors. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_network_export(const hwnas_network *network,
                                                          const char *path, const char *format,
                                                          const hwnas_export_options *options);

/* ---- Predictors: accuracy without training ---- */

typedef struct hwnas_predictor hwnas_predictor;

typedef struct hwnas_estimate {
    /* In the predictor's unit. sd 0: exact as published; NaN: none is claimed. */
    double mean, sd;
    bool is_trained; /* the result of a training made for the asking, no estimate */
} hwnas_estimate;

/* `name`: a file, the name of a predictor that ships, "table:FILE#COLUMN", or another kind and what
 * it takes (docs/predictors.md). One fitted on another space is HWNAS_E_INPUT, unless it was fitted
 * for any. The space is borrowed. Milliseconds; a large table up to a second. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_predictor_open(hwnas_predictor **out, const char *name,
                                                          const hwnas_space *space);
HWNAS_API void hwnas_predictor_close(hwnas_predictor *predictor);

/* The column that it estimates, "val_top1_pct", and its unit, "%"; "": none is known. */
HWNAS_API const char *hwnas_predictor_target(const hwnas_predictor *predictor);
HWNAS_API const char *hwnas_predictor_unit(const hwnas_predictor *predictor);

/* Whether its scores take so long, as those that train, that they look at the flag below. */
HWNAS_API bool hwnas_predictor_heeds_stop(const hwnas_predictor *predictor);
/* Once `stop` is nonzero, set in a signal handler or another thread, such a score ends with
 * HWNAS_E_INTERRUPTED. Borrowed as long as the predictor is open. */
HWNAS_API void hwnas_predictor_stop_on(hwnas_predictor *predictor,
                                       const volatile sig_atomic_t *stop);

/* Scores n networks: out[i] is of codes[i]. All or none. Many at a time are cheaper than one by
 * one; a predictor that trains, or runs a proxy, takes its time. HWNAS_E_NOT_FOUND: a table has no
 * row. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_predictor_score_codes(hwnas_estimate *out,
                                                                 hwnas_predictor *predictor,
                                                                 const char *const *codes,
                                                                 size_t n);

/* ---- Measuring, in a process of its own ---- */

/* A measurer has a runner: a child process that compiles and runs networks, so that a crash, a hang
 * or a lack of memory is a status here, and the next measurement works again. The child comes with
 * the first measurement: the program `hwnas runner` as installed, or what $HWNAS_RUNNER names, or
 * the calling program itself, if it began with hwnas_runner_main(). */

/* For programs with devices of their own (hwnas/device.h), which a child must have too: to be
 * called at the beginning of main(), behind what registers them. true: this process was the child,
 * has done its work and should end with *exit_code. false: the program goes on, and the library
 * starts it again, with the one argument "runner", in order to measure. */
HWNAS_API bool hwnas_runner_main(int *exit_code, int argc, char *const *argv);

typedef struct hwnas_measurer hwnas_measurer;

typedef struct hwnas_measurer_options {
    size_t size;
    const char *device; /* NULL: "cpu" */
    int threads;        /* 0: all cores that this process may use */
    hwnas_precision precision;
    const char *mode;    /* "hot", "cold-weights", "cold", "after-idle=SECONDS",
                            "sustained=SECONDS"; NULL: "hot" (docs/measuring.md) */
    double interval;     /* sampling ends when the 95 % interval of the median is this narrow,
                            relative to it; 0: 0.01 */
    double seconds;      /* or so much time is spent in runs; 0: 1 */
    double timeout;      /* silence longer than this is a hang; 0: 60 s */
    size_t memory_limit; /* bytes of data that the runner may hold; 0: no limit */
    /* (optional) Becomes nonzero, in a signal handler or another thread: a measurement ends soon
     * with HWNAS_E_INTERRUPTED. Borrowed as long as the measurer is open. */
    const volatile sig_atomic_t *cancel;
    /* (optional) Is told what the runner does, "compiling", "sampling", several times a second, in
     * the calling thread. */
    void (*progress)(void *context, const char *phase);
    void *context;
} hwnas_measurer_options;
#define HWNAS_MEASURER_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(hwnas_measurer_options), NULL, 0, HWNAS_F32, NULL, 0, 0, 0, 0, NULL, NULL, NULL     \
    }

/* Starts nothing yet. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_measurer_open(hwnas_measurer **out,
                                                         const hwnas_measurer_options *options);
HWNAS_API void hwnas_measurer_close(hwnas_measurer *measurer);

/* One value of a network: "latency.p50" = 0.0081 s, measured, [0.0080, 0.0082]. */
typedef struct hwnas_metric_value {
    const char *metric;      /* docs/searching.md lists them */
    double value, low, high; /* low, high: 95 % interval; NaN: none */
    const char *unit;        /* "s", "1/s", "J", "bytes": SI */
    const char *source;      /* "measured", "predicted", "computed", ... */
} hwnas_metric_value;

typedef struct hwnas_result hwnas_result;

/* Measures a network: about options.seconds, and compiling. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_measurer_measure(hwnas_result **out,
                                                            hwnas_measurer *measurer,
                                                            const hwnas_network *network);
HWNAS_API void hwnas_result_free(hwnas_result *result);

/* Value number i, from 0; NULL behind the last. */
HWNAS_API const hwnas_metric_value *hwnas_result_value(const hwnas_result *result, size_t i);
/* The value of a metric; NULL: it was not measured, as energy without a counter. */
HWNAS_API const hwnas_metric_value *hwnas_result_find(const hwnas_result *result,
                                                      const char *metric);
/* Why the figures stand on shaky ground, as half a sentence; NULL: they do not. */
HWNAS_API const char *hwnas_result_doubt(const hwnas_result *result);
/* The object "hwnas.profile" with one row: what is measured, how, and the command that does it
 * again. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_result_json(char **out, const hwnas_result *result);

/* ---- Data: samples and labels in files, and what a network makes of them ---- */

/* Samples for the inputs of a network, and perhaps a label for each: arrays in files of NumPy
 * (.npy, .npz) or MNIST (IDX), also behind gzip, whose first dimension counts the samples. They are
 * read as they are needed, and may be larger than memory. A sample is taken for an input when it
 * has the same dimensions, but for those of 1, or when one of both is all in a row. */
typedef struct hwnas_dataset hwnas_dataset;

typedef struct hwnas_data_file {
    const char *input; /* of the network; NULL: its one input, or all of them by name in a .npz */
    const char *path;
    const char *array; /* in a .npz; NULL: that of the input's name, else "x" */
} hwnas_data_file;

typedef struct hwnas_dataset_options {
    size_t size;
    const char *labels;      /* file; NULL: the .npz of the samples, if it has them */
    const char *label_array; /* in a .npz; NULL: "y" */
    bool ignores_labels;
    int64_t limit; /* samples, from the first; 0: all */
    /* Of a network with one input; a value x becomes (x * scale - mean) / std. One mean for all, or
     * one for each channel of the input; so std. Borrowed during the call. */
    double scale; /* 0: 1 */
    size_t n_mean, n_std;
    const double *mean, *std;
    const char *layout; /* "nchw" or "nhwc", of the data; NULL: as the network's */
} hwnas_dataset_options;
#define HWNAS_DATASET_OPTIONS_INIT                                                                 \
    {                                                                                              \
        sizeof(hwnas_dataset_options), NULL, NULL, false, 0, 0, 0, 0, NULL, NULL, NULL             \
    }

/* Opens files and compares their shapes with the network's, which is borrowed. HWNAS_E_INPUT says
 * what does not fit, and what to try. Milliseconds. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_dataset_open(hwnas_dataset **out,
                                                        const hwnas_network *network,
                                                        size_t n_files,
                                                        const hwnas_data_file *files,
                                                        const hwnas_dataset_options *options);
HWNAS_API void hwnas_dataset_close(hwnas_dataset *data);
HWNAS_API int64_t hwnas_dataset_samples(const hwnas_dataset *data); /* at most `limit` */
HWNAS_API bool hwnas_dataset_has_labels(const hwnas_dataset *data);

typedef struct hwnas_evaluation_options {
    size_t size;
    hwnas_precision precision;
    int64_t calibrate; /* HWNAS_S8: ranges are found with so many of the first samples; 0: 64 */
    const char *task;  /* "classify", "tokens", "regress"; NULL: as the shapes of labels and
                          outputs say */
    const hwnas_network *against; /* compared with, in fp32; takes the same inputs; NULL: none */
    /* (optional) Becomes nonzero, in a signal handler or another thread: the evaluation ends soon,
     * with what it has. */
    const volatile sig_atomic_t *cancel;
    /* (optional) Is told after each batch, in the calling thread. */
    void (*progress)(void *context, int64_t n_done, int64_t n_samples);
    void *context;
} hwnas_evaluation_options;
#define HWNAS_EVALUATION_OPTIONS_INIT                                                              \
    {                                                                                              \
        sizeof(hwnas_evaluation_options), HWNAS_F32, 0, NULL, NULL, NULL, NULL, NULL               \
    }

/* Computes the outputs of all samples, in batches of the network's, in this process. out[i] is of
 * output i, the samples one behind the other, `n` of them; each is freed by hwnas_free(). The whole
 * of it is in memory. Of the options, `task` and `against` have no meaning. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_dataset_run(float **out, hwnas_dataset *data,
                                                       const hwnas_network *network,
                                                       hwnas_device *device,
                                                       const hwnas_evaluation_options *options);

/* Writes an ONNX file of 8-bit integers (QDQ) for other runtimes, batch norms folded, whole or not
 * at all. Ranges of activations come from the first `calibrate` samples (0: 64), run on the CPU. Of
 * a network whose batch is open the file has the batch that it was opened with. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_dataset_quantize(hwnas_dataset *data,
                                                            const hwnas_network *network,
                                                            const char *path, int64_t calibrate);

typedef struct hwnas_evaluation hwnas_evaluation;

/* The same, and compares the first output with the labels, or the original's, or both.
 * HWNAS_E_USAGE: there is nothing to compare with. */
HWNAS_API HWNAS_CHECKED hwnas_status
hwnas_dataset_evaluate(hwnas_evaluation **out, hwnas_dataset *data, const hwnas_network *network,
                       hwnas_device *device, const hwnas_evaluation_options *options);
HWNAS_API void hwnas_evaluation_free(hwnas_evaluation *evaluation);
/* Value number i, from 0; NULL behind the last. docs/evaluate.md lists them. */
HWNAS_API const hwnas_metric_value *hwnas_evaluation_value(const hwnas_evaluation *evaluation,
                                                           size_t i);
/* NULL: it was not computed. */
HWNAS_API const hwnas_metric_value *hwnas_evaluation_find(const hwnas_evaluation *evaluation,
                                                          const char *metric);
/* Samples that were evaluated: fewer than there are after `cancel`. */
HWNAS_API int64_t hwnas_evaluation_samples(const hwnas_evaluation *evaluation);
/* "classify", "tokens", "regress", "none". Static. */
HWNAS_API const char *hwnas_evaluation_task(const hwnas_evaluation *evaluation);
/* Text, JSON ("hwnas.evaluation"). Concludes with HWNAS_E_INTERRUPTED where samples are missing. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_evaluation_report(hwnas_report **out,
                                                             const hwnas_evaluation *evaluation);

/* Writes arrays to a file, whole or not at all: .npz by their names, .npy one of them; another
 * name: their values alone, in fp32, one array behind the other. Whole numbers are written as
 * int64. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_arrays_write(const char *path, size_t n,
                                                        const hwnas_array_info *arrays,
                                                        const float *const *values);

/* ---- Searching, in one call ---- */

/* How far a search is. Fields may follow in later versions. */
typedef struct hwnas_search_progress {
    uint64_t n_done, n_failed; /* trials */
    uint64_t max_trials;       /* 0: only time is limited */
    size_t n_front;            /* networks on the front so far */
    double seconds;            /* spent, of all sessions */
    double seconds_left;       /* NaN: not known yet */
    const char *winner;        /* code of the best so far; NULL: none is feasible yet */
    const char *phase;         /* what is being done; "": the next trial */
    double trials_per_minute;
    const char *best; /* the winner's objectives, "accuracy 66.12 %, latency.p50 9.810 ms"; NULL */
} hwnas_search_progress;

/* A key of a job, docs/searching.md, that may be said outside of its file as well. */
typedef struct hwnas_job_key_info {
    const char *name;     /* "budget.trials" of the file is "trials" here */
    char letter;          /* short form on the command line; 0: none */
    bool is_rare;         /* seldom needed: --help names it without explaining it */
    const char *argument; /* "N", "FILE" */
    const char *help;     /* a line */
} hwnas_job_key_info;

/* Key number i, from 0; false: there is none. Static texts. */
HWNAS_API bool hwnas_job_key_list(hwnas_job_key_info *out, size_t i);

/* The value of a key, in the place of the file's, as it would stand on the command line. */
typedef struct hwnas_job_flag {
    const char *name; /* of a key; NULL ends a list */
    const char *value;
} hwnas_job_flag;

typedef struct hwnas_search_options {
    size_t size;
    const char *study;  /* SQLite file; NULL: the job's */
    bool resume;        /* go on with an existing study */
    int64_t max_trials; /* 0: the job's */
    /* (optional) Becomes nonzero, in a signal handler or another thread: the search ends soon and
     * what is finished is kept. Borrowed during the call. */
    const volatile sig_atomic_t *cancel;
    /* (optional) Is told after each trial, in the calling thread. */
    void (*progress)(void *context, const hwnas_search_progress *progress);
    void *context;
    bool overwrite; /* put a new study in the place of an existing one */
    /* (optional) Values of the job's keys, up to one without a name. A mistake in one has the place
     * "--NAME". */
    const hwnas_job_flag *flags;
} hwnas_search_options;
#define HWNAS_SEARCH_OPTIONS_INIT                                                                  \
    {                                                                                              \
        sizeof(hwnas_search_options), NULL, false, 0, NULL, NULL, NULL, false, NULL                \
    }

/* Runs a job (a YAML file; NULL: flags say it all), writes the winner to the files of its `export`,
 * and reports what the study found: text, JSON ("hwnas.study"), and the files. The report concludes
 * with HWNAS_E_INFEASIBLE, or HWNAS_E_DISTURBED, where no network is known to be within the limits
 * (its message names the closest), with HWNAS_E_INTERRUPTED after `cancel`, and with what kept an
 * export from being written. An export that cannot be written is told before anything is searched.
 * Takes what the job's budget says. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_search(hwnas_report **out, const char *job,
                                                  const hwnas_search_options *options);
/* What hwnas_search() would do, and how long it would take: opens all that the job needs, and
 * measures three networks. HWNAS_E_INFEASIBLE where no network can meet the limits. Writes nothing.
 * Text, JSON ("hwnas.dry_run"). Seconds. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_search_plan(hwnas_report **out, const char *job,
                                                       const hwnas_search_options *options);

#ifdef __cplusplus
}
#endif

#include <hwnas/study.h>
#endif
