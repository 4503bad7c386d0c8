/* engine_worker.h: what the programs of `engine` that are written in C share. A worker opens one
 * model and says so in a line of JSON; then each line of its input is a number of seconds to run
 * for, answered by a line of JSON with the median of the runs, that of those with the core to
 * themselves (measure/pace.h; null: none), and the pace of the core before or after them, whichever
 * was slower. It ends with its input. */
#ifndef HWNAS_BENCHMARKS_ENGINE_WORKER_H
#define HWNAS_BENCHMARKS_ENGINE_WORKER_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "measure/pace.h"

enum { WORKER_MIN_RUNS = 3, WORKER_MAX_RUNS = 1 << 16 };

static inline double worker_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline int worker_by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Fills an input: images between -1 and 1, whole numbers 0 or 1, which every table has. */
static inline void worker_fill(float *values, size_t n, int is_whole)
{
    uint64_t state = 88172645463325252u;
    for (size_t i = 0; i < n; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        const double unit = (double)(state >> 11) / 9007199254740992.0;
        values[i] = (float)(is_whole ? (int)(2 * unit) : 2 * unit - 1);
    }
}

/* Seconds that a fixed piece of arithmetic takes, some milliseconds. Who shares the core with us,
 * or its clock, makes it slower. */
static inline double worker_pace(void)
{
    typedef float vector __attribute__((vector_size(64)));
    enum { CHAINS = 8, STEPS = 200000 };
    volatile float sink = 0;
    vector sums[CHAINS] = {{0}};
    const double start = worker_now();
    for (int i = 0; i < STEPS; i++)
        for (int k = 0; k < CHAINS; k++)
            sums[k] = sums[k] * 0.999f + 0.5f;
    for (int k = 0; k < CHAINS; k++)
        sink += sums[k][0];
    (void)sink;
    return worker_now() - start;
}

/* KiB of memory that the process holds now; 0 where the system does not tell. */
static inline long worker_resident(void)
{
    long all, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file)
        return 0;
    if (fscanf(file, "%ld %ld", &all, &resident) != 2)
        resident = 0;
    fclose(file);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static inline int worker_is_shared(void)
{
    static hwnas_pace_best best;
    return hwnas_pace_is_shared(&best, hwnas_pace_read(), hwnas_pace_assumed());
}

/* Median of n values, which are sorted after; "null" of none. */
static inline void worker_print_median(const char *name, double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, worker_by_size);
    if (n)
        printf("\"%s\": %.9f, ", name, values[n / 2]);
    else
        printf("\"%s\": null, ", name);
}

/* `create` is what it took to make the model ready, from its file; `more` is JSON to be said about
 * it, `"key": value` each, or "". */
static inline void worker_serve(void (*run)(void *), void *context, double create, const char *who,
                                const char *more)
{
    struct rusage used;
    double *seconds = malloc(WORKER_MAX_RUNS * sizeof *seconds), wanted;
    double *clean = malloc(WORKER_MAX_RUNS * sizeof *clean);
    double start = worker_now();
    run(context);
    const double first = worker_now() - start;
    for (int i = 0; i < 4; i++)
        run(context);
    getrusage(RUSAGE_SELF, &used);
    printf("{\"who\": \"%s\", \"create_s\": %.9f, \"first_s\": %.9f, \"rss_kib\": %ld, "
           "\"rss_now_kib\": %ld%s%s}\n",
           who, create, first, used.ru_maxrss, worker_resident(), *more ? ", " : "", more);
    fflush(stdout);
    while (scanf("%lf", &wanted) == 1) {
        int n = 0, n_clean = 0, was_shared = worker_is_shared();
        const double pace = worker_pace();
        for (double end = worker_now() + wanted;
             n < WORKER_MAX_RUNS && (n < WORKER_MIN_RUNS || worker_now() < end); n++) {
            start = worker_now();
            run(context);
            seconds[n] = worker_now() - start;
            const int is_shared = worker_is_shared();
            if (!was_shared && !is_shared)
                clean[n_clean++] = seconds[n];
            was_shared = is_shared;
        }
        const double after = worker_pace();
        putchar('{');
        worker_print_median("median_s", seconds, n);
        worker_print_median("clean_s", clean, n_clean);
        printf("\"clean_runs\": %d, \"min_s\": %.9f, \"runs\": %d, \"pace_s\": %.9f}\n", n_clean,
               seconds[0], n, pace > after ? pace : after);
        fflush(stdout);
    }
    free(seconds);
    free(clean);
}

#endif
