/* common.h: what the other headers share: statuses and errors, memory, values, reports. */
#ifndef HWNAS_PUBLIC_COMMON_H
#define HWNAS_PUBLIC_COMMON_H

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

/* ---- Values ---- */

/* One value of a network: "latency.p50" = 0.0081 s, measured, [0.0080, 0.0082]. */
typedef struct hwnas_metric_value {
    const char *metric;      /* docs/searching.md lists them */
    double value, low, high; /* low, high: 95 % interval; NaN: none */
    const char *unit;        /* "s", "1/s", "J", "bytes": SI */
    const char *source;      /* "measured", "predicted", "computed", ... */
} hwnas_metric_value;

/* ---- Reports: what was found, for people and for programs ---- */

/* What the larger functions find, such as the rows of a profile. Its text is what the program
 * prints, its JSON what --json prints. What a report was made of must stay open. */
typedef struct hwnas_report hwnas_report;

typedef enum hwnas_format {
    HWNAS_TEXT, /* tables and sentences, harmless to a terminal */
    HWNAS_JSON, /* one object (docs/json.md) */
    HWNAS_CSV,
    HWNAS_DOT,      /* a picture, in the language of Graphviz */
    HWNAS_JSONL,    /* one object in each line, for what has many rows (docs/json.md) */
    HWNAS_MARKDOWN, /* tables of GitHub's, in which no name is markup */
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

/* ---- For programs with a command line ---- */

/* Makes a text harmless to a terminal, in place: control characters that are not in `kept` become
 * spaces, and bytes that are no UTF-8 question marks. Names and messages may come from anybody. */
HWNAS_API void hwnas_clean(char *text, const char *kept);

/* The name in the NULL-terminated list nearest to `wrong` by edit distance, for "did you mean";
 * NULL when none is near. */
HWNAS_API const char *hwnas_nearest(const char *wrong, const char *const *names);

/* Refuses, before work is lost, an output that is the input (HWNAS_E_INPUT) or cannot be written.
 */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_file_check_output(const char *output, const char *input);

#ifdef __cplusplus
}
#endif
#endif
