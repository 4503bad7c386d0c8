#include "measure/team.h"

#include <math.h>
#include <omp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

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
/* An EPYC: 28 to 35 ns in one core complex, 148 to 155 between two. */
static const double FAR = 1.6;
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
#pragma omp parallel num_threads(threads)
    {
        const int n = omp_get_num_threads(), me = omp_get_thread_num();
#pragma omp barrier
        const hwnas_pace pace = hwnas_pace_read();
#pragma omp critical
        out.pace.width = isnan(pace.width) ? NAN : fmin(out.pace.width, pace.width);
#pragma omp barrier
        const double hop = n > 1 ? pass_token(&token, me, n, n * (1 + HOPS / n)) : NAN;
        if (me == 0) {
            out.pace.hertz = pace.hertz;
            out.hop = hop;
        }
    }
    return out;
}

bool hwnas_team_is_disturbed(hwnas_team *team, hwnas_team_reading reading)
{
    const bool is_shared = hwnas_pace_is_shared(&team->width, reading.pace,
                                                team->threads == 1 ? hwnas_pace_assumed() : 0);
    if (isnan(reading.hop))
        return is_shared;
    /* What all of a run reach is believed: one lucky reading must not make every later one slow. */
    team->most = team->n == 0 ? reading.hop : fmax(team->most, reading.hop);
    if (++team->n == RUN_OF_READINGS) {
        team->hop = team->hop > 0 ? fmin(team->hop, team->most) : team->most;
        team->n = 0;
    }
    return is_shared || (team->hop > 0 && reading.hop > FAR * team->hop);
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
    double width, hop;
    if (hwnas_file_read(&text, &length, path, MAX_BYTES) == HWNAS_OK) {
        if (sscanf(text, "%lf %lf", &width, &hop) == 2 && width >= 0 && width < MOST_WIDTH &&
            hop >= 0 && hop < 1) {
            out->width.width = width;
            out->hop = hop;
        }
        free(text);
    }
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
    char text[MAX_BYTES];
    char *path = team->threads > 1 && team->hop > 0 ? path_of(team->threads) : NULL;
    hwnas_team known = {0};
    if (!path)
        return;
    read_best(&known, path);
    const bool is_nearer = known.hop == 0 || known.hop > BETTER * team->hop;
    if (is_nearer || team->width.width > BETTER * known.width.width) {
        const int n =
            snprintf(text, sizeof text, "%.3f %.3g\n", fmax(team->width.width, known.width.width),
                     is_nearer ? team->hop : known.hop);
        hwnas_make_folders(path);
        if (hwnas_file_write(path, text, (size_t)n) != HWNAS_OK)
            hwnas_error_clear();
    }
    free(path);
}
