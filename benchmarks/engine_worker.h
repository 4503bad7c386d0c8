/* engine_worker.h: what the programs of `engine` that are written in C share. A worker opens one
 * model and says so in a line of JSON; then each line of its input is a number of seconds to run
 * for, answered by a line of JSON with the median of the runs. It ends with its input. */
#ifndef HWNAS_BENCHMARKS_ENGINE_WORKER_H
#define HWNAS_BENCHMARKS_ENGINE_WORKER_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

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

/* `create` is what it took to make the model ready, from its file; `more` is JSON to be said about
 * it, `"key": value` each, or "". */
static inline void worker_serve(void (*run)(void *), void *context, double create, const char *who,
                                const char *more)
{
    struct rusage used;
    double *seconds = malloc(WORKER_MAX_RUNS * sizeof *seconds), wanted;
    double start = worker_now();
    run(context);
    const double first = worker_now() - start;
    for (int i = 0; i < 4; i++)
        run(context);
    getrusage(RUSAGE_SELF, &used);
    printf("{\"who\": \"%s\", \"create_s\": %.9f, \"first_s\": %.9f, \"rss_kib\": %ld%s%s}\n",
           who, create, first, used.ru_maxrss, *more ? ", " : "", more);
    fflush(stdout);
    while (scanf("%lf", &wanted) == 1) {
        int n = 0;
        for (double end = worker_now() + wanted;
             n < WORKER_MAX_RUNS && (n < WORKER_MIN_RUNS || worker_now() < end); n++) {
            start = worker_now();
            run(context);
            seconds[n] = worker_now() - start;
        }
        qsort(seconds, (size_t)n, sizeof *seconds, worker_by_size);
        printf("{\"median_s\": %.9f, \"min_s\": %.9f, \"runs\": %d}\n", seconds[n / 2], seconds[0],
               n);
        fflush(stdout);
    }
    free(seconds);
}

#endif
