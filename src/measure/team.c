#include "measure/team.h"

#include <math.h>
#include <omp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/home.h"
#include "base/host.h"
#include "base/mem.h"

enum {
    HOPS = 32, /* of the token, at least */
    RUN_OF_READINGS = 8,
    MAX_BYTES = 64,
};
/* An EPYC: 28 to 35 ns in one core complex, 148 to 155 between two. A Xeon (Emerald Rapids): 75 to
 * 110 ns between any two cores, 30 between hyperthreads of one. */
static const double FAR = 1.6;
static const double WHOLE = 0.85; /* of a width: no hyperthread of a shared core makes so much */
static const double FORGOTTEN = 3600; /* seconds */
static const double BETTER = 1.02;   /* what is worth another file */
static const double MOST_WIDTH = 16; /* no core adds more in a cycle */

/* Passes a token from thread to thread until it has made so many hops, a multiple of the threads;
 * the seconds of a hop, in thread 0. */
static double pass_token(atomic_int *token, int me, int threads, int hops)
{
    const double start = hwnas_now();
    for (int turn = me; turn < hops; turn += threads) {
        while (atomic_load_explicit(token, memory_order_acquire) != turn)
            continue;
        atomic_store_explicit(token, turn + 1, memory_order_release);
    }
    while (me == 0 && atomic_load_explicit(token, memory_order_acquire) != hops)
        continue;
    return (hwnas_now() - start) / hops;
}

hwnas_team_reading hwnas_team_read(int threads)
{
    hwnas_team_reading out = {.pace = {.hertz = NAN, .width = INFINITY}, .hop = NAN};
    static _Alignas(128) atomic_int token; /* on a cache line of its own */
    if (threads <= 1)
        return (hwnas_team_reading){.pace = hwnas_pace_read(), .hop = NAN};
    atomic_store(&token, 0);
    /* Threads that wait for the token spin: at real-time priority one without a core would never
     * get it. */
    const bool has_cores = threads <= omp_get_num_procs();
#pragma omp parallel num_threads(threads)
    {
        const int n = omp_get_num_threads(), me = omp_get_thread_num();
#pragma omp barrier
        const hwnas_pace pace = hwnas_pace_read();
#pragma omp critical
        out.pace.width = isnan(pace.width) ? NAN : fmin(out.pace.width, pace.width);
#pragma omp barrier
        const double hop = n > 1 && has_cores ? pass_token(&token, me, n, n * (1 + HOPS / n)) : NAN;
        if (me == 0) {
            out.pace.hertz = pace.hertz;
            out.hop = hop;
        }
    }
    return out;
}

void hwnas_team_dismiss(void)
{
    omp_pause_resource(omp_pause_soft, omp_get_initial_device());
}

/* 0 is not known. */
static double least(double a, double b)
{
    return a > 0 && b > 0 ? fmin(a, b) : fmax(a, b);
}

static bool is_far(double hop, double best)
{
    return best > 0 && hop > FAR * best;
}

bool hwnas_team_is_disturbed(hwnas_team *team, hwnas_team_reading reading)
{
    const bool is_shared = hwnas_pace_is_shared(&team->width, reading.pace,
                                                team->threads == 1 ? hwnas_pace_assumed() : 0);
    if (isnan(reading.hop))
        return is_shared;
    const double width = isnan(reading.pace.width) ? 0 : reading.pace.width;
    if (width < hwnas_pace_assumed() * WHOLE) {
        team->n = 0;
        return is_shared || is_far(reading.hop, team->hop);
    }
    /* What all of a run reach is believed: one lucky reading must not make every later one slow. */
    team->most = team->n == 0 ? reading.hop : fmax(team->most, reading.hop);
    team->narrowest = team->n == 0 ? width : fmin(team->narrowest, width);
    if (++team->n == RUN_OF_READINGS) {
        team->hop = least(team->hop, team->most);
        team->own = least(team->own, team->most);
        team->own_width = fmax(team->own_width, team->narrowest);
        team->n = 0;
    }
    return is_shared || is_far(reading.hop, team->hop);
}

/* ---- What earlier processes have seen ---- */

/* $XDG_CACHE_HOME/hwnas/team-HOST-THREADS: width and hop; NULL: there is no place for it. */
static char *path_of(int threads)
{
    char host[HWNAS_HOST_ID];
    hwnas_host_id(host);
    char *name = hwnas_printf("team-%s-%d", host, threads);
    char *path = hwnas_cache_path(name);
    free(name);
    return path;
}

/* All zero where nobody has seen any. */
static void read_best(hwnas_team *out, const char *path)
{
    char *text;
    size_t length;
    double width, hop, missed;
    if (hwnas_file_read(&text, &length, path, MAX_BYTES) == HWNAS_OK) {
        if (sscanf(text, "%lf %lf %lf", &width, &hop, &missed) == 3 && width >= 0 &&
            width < MOST_WIDTH && hop >= 0 && hop < 1 && missed >= 0) {
            out->width.width = width;
            out->hop = hop;
            out->missed = missed;
        }
        free(text);
    }
    hwnas_error_clear();
}

static void write_best(const hwnas_team *best, const char *path)
{
    char text[MAX_BYTES];
    const int n =
        snprintf(text, sizeof text, "%.3f %.3g %.0f\n", best->width.width, best->hop, best->missed);
    hwnas_make_folders(path);
    if (hwnas_file_write(path, text, (size_t)n) != HWNAS_OK)
        hwnas_error_clear();
}

hwnas_team hwnas_team_open(int threads)
{
    hwnas_team team = {.threads = threads};
    char *path = threads > 1 ? path_of(threads) : NULL;
    if (path)
        read_best(&team, path);
    free(path);
    return team;
}

void hwnas_team_keep(const hwnas_team *team)
{
    const double now = (double)time(NULL);
    char *path = team->threads > 1 && team->own > 0 ? path_of(team->threads) : NULL;
    hwnas_team known = {0};
    if (!path)
        return;
    read_best(&known, path);
    hwnas_team best = {.width.width = fmax(team->width.width, known.width.width),
                       .hop = least(known.hop, team->own)};
    if (is_far(team->own, known.hop) || team->own_width < WHOLE * known.width.width) {
        best.missed = known.missed > 0 && known.missed < now ? known.missed : now;
        if (now - best.missed > FORGOTTEN)
            best = (hwnas_team){.width.width = team->own_width, .hop = team->own};
    }
    if (best.hop > known.hop || known.hop > BETTER * best.hop || best.missed != known.missed ||
        best.width.width < known.width.width || best.width.width > BETTER * known.width.width)
        write_best(&best, path);
    free(path);
}
