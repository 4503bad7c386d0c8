/* hwnas.h: the public face of libhwnas.
 *
 * Every function that can fail returns a hwnas_status; a status other than HWNAS_OK comes with a
 * message that hwnas_last_error() gives until the next call in the same thread. Outputs come first,
 * are called `out`, are yours to free, and are untouched on failure. */
#ifndef HWNAS_H
#define HWNAS_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum hwnas_status {
    HWNAS_OK = 0,
    HWNAS_E_USAGE,       /* the command line is wrong */
    HWNAS_E_INPUT,       /* a file or value given by the user is wrong */
    HWNAS_E_NOT_FOUND,   /* a named thing does not exist */
    HWNAS_E_INFEASIBLE,  /* no network meets the constraints */
    HWNAS_E_EXHAUSTED,   /* every network of the space has been proposed */
    HWNAS_E_INTERRUPTED, /* stopped by a signal; what is finished is saved */
    HWNAS_E_IO,          /* the system refused to read or write */
    HWNAS_E_MEMORY,      /* out of memory */
    HWNAS_E_UNSUPPORTED, /* the device cannot do this */
    HWNAS_E_TIMEOUT,     /* the runner did not answer in time */
    HWNAS_E_CRASHED,     /* the runner died */
    HWNAS_E_LIBRARY,     /* a library that we use reported an error */
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

#ifdef __cplusplus
}
#endif
#endif
