/* hwnas.h: the public face of libhwnas.
 *
 * Networks are named by a space (a YAML file, or the name of one that ships) and a code
 * ("e=1666666, k=...", "22212220"; NULL where the space leaves nothing to choose). Results are JSON
 * text, the same objects that the program prints with --json; docs/json.md describes them.
 *
 * Every function that can fail returns a hwnas_status; a status other than HWNAS_OK comes with a
 * message that hwnas_last_error() gives until the next call in the same thread. Outputs come first,
 * are called `out`, are yours to free(), and are untouched on failure. Measuring starts the program
 * `hwnas runner` as a child: the installed one, or what $HWNAS_RUNNER names. */
#ifndef HWNAS_H
#define HWNAS_H

#include <signal.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum hwnas_status {
    HWNAS_OK = 0,
    HWNAS_E_USAGE,        /* the command line is wrong */
    HWNAS_E_INPUT,        /* a file or value given by the user is wrong */
    HWNAS_E_NOT_FOUND,    /* a named thing does not exist */
    HWNAS_E_INFEASIBLE,   /* no network meets the constraints */
    HWNAS_E_EXHAUSTED,    /* no network of the space is left, or none is found */
    HWNAS_E_INTERRUPTED,  /* stopped by a signal; what is finished is saved */
    HWNAS_E_IO,           /* the system refused to read or write */
    HWNAS_E_MEMORY,       /* out of memory */
    HWNAS_E_UNSUPPORTED,  /* the device cannot do this */
    HWNAS_E_TIMEOUT,      /* the runner did not answer in time */
    HWNAS_E_CRASHED,      /* the runner died */
    HWNAS_E_LIBRARY,      /* a library that we use reported an error */
    HWNAS_E_SLOWER,       /* a network got slower than it was recorded */
    HWNAS_E_WRONG_RESULT, /* the device computes a network wrong */
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

/* The last failure of this thread. Never NULL; borrowed. */
const hwnas_error *hwnas_last_error(void);

/* "ok", "input", "out_of_memory", ...: the spelling used in stores and JSON. */
const char *hwnas_status_name(hwnas_status status);

/* The exit code that the program ends with: 0, 1, 2, 3 or 130. */
int hwnas_status_exit_code(hwnas_status status);

/* "0.1.0" */
const char *hwnas_version(void);

/* Runs a job (a YAML file), writes the winner to the files of its `export`, and gives the object
 * "hwnas.study". A search that ends without a network within the limits is HWNAS_OK with a null
 * winner, and writes none. An export that cannot be written is told before anything is searched. */
typedef struct hwnas_search_options {
    const char *study; /* SQLite file; NULL: the job's */
    int resume;        /* go on with an existing study */
    long max_trials;   /* 0: the job's */
    /* (optional) Becomes nonzero, in a signal handler or another thread: the search ends and what
     * is finished is kept. */
    const volatile sig_atomic_t *stop;
} hwnas_search_options;
hwnas_status hwnas_search(char **out_json, const char *job, const hwnas_search_options *options);

/* Layers, parameters, MACs and memory of a network: the object "hwnas.network". */
hwnas_status hwnas_describe(char **out_json, const char *space, const char *code, int batch);

/* Estimated accuracy: mean and standard deviation in the predictor's unit. `predictor` is a file,
 * the name of one that ships, or "table:FILE#COLUMN". */
hwnas_status hwnas_predict(double *out_mean, double *out_sd, const char *predictor,
                           const char *space, const char *code);

/* Median latency in seconds on a device ("cpu") and its 95 % interval, any of which may be NULL.
 * `threads` 0: all cores. */
hwnas_status hwnas_latency(double *out_p50, double *out_low, double *out_high, const char *device,
                           int threads, const char *space, const char *code, int batch);

/* Writes a network to a file, whole or not at all. `format`: "onnx", "pytorch", "yaml". */
hwnas_status hwnas_write(const char *path, const char *format, const char *space, const char *code,
                         int batch);

#ifdef __cplusplus
}
#endif
#endif
