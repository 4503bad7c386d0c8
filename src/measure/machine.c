/* machine.c: the real machine, through Linux's accounting.
 *
 * On a 2-core KVM guest with Linux 6 the clock costs 18 ns, getrusage() 0.24 us, a read of
 * schedstat 0.29 us and one of /proc/stat 2.4 us; so the first two go around every sample, the
 * third follows a preemption, and the last is read once for each block of samples. */
#define _GNU_SOURCE 1 /* sched_getaffinity(), CPU_OR(), RUSAGE_THREAD */
#include "measure/machine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "measure/cores.h"
#include "measure/energy.h"
#include "measure/occupancy.h"
#include "measure/pace.h"
#include "measure/team.h"
#include "measure/core_choice.h"
#include "measure/priority.h"

enum {
    MAX_THREADS = 512,    /* more are not watched */
    STAT_BYTES = 1 << 16, /* of /proc/stat: 64 bytes a core, cores first */
    REFERENCE_STEPS = 60000,
    REFERENCE_BEST_OF = 8,
    REFERENCE_TRIES = 24, /* more than that is not a core of ours */
};

typedef struct real_machine {
    hwnas_machine base;
    int n_threads;
    int schedstat[MAX_THREADS]; /* open files, one for each thread */
    int stat;                   /* /proc/stat, or -1 */
    cpu_set_t cores;
    hwnas_energy *energy; /* NULL: no counter */
    hwnas_team team;      /* the threads that compute */
    hwnas_turn turn;      /* on their cores */
    char text[STAT_BYTES];
} real_machine;

static double real_now(hwnas_machine *machine)
{
    (void)machine;
    return hwnas_now();
}

/* Where a thread stands by, the device computes elsewhere, and of this process the calling thread
 * alone is part of what is measured. */
static unsigned long real_preemptions(hwnas_machine *machine)
{
    (void)machine;
    struct rusage usage;
    const int who = hwnas_priority_has_bystander() ? RUSAGE_THREAD : RUSAGE_SELF;
    return getrusage(who, &usage) ? 0 : (unsigned long)usage.ru_nivcsw;
}

/* The second number of schedstat is the time spent waiting on a run queue, in nanoseconds
 * (Documentation/scheduler/sched-stats.rst). A thread that has ended reads as nothing. */
static double real_waited(hwnas_machine *machine)
{
    real_machine *m = (real_machine *)machine;
    double sum = m->n_threads ? 0 : NAN;
    for (int i = 0; i < m->n_threads; i++) {
        char line[96];
        ssize_t n = pread(m->schedstat[i], line, sizeof line - 1, 0);
        line[n > 0 ? n : 0] = '\0';
        char *second;
        strtoull(line, &second, 10);
        sum += 1e-9 * (double)strtoull(second, NULL, 10);
    }
    return sum;
}

static double real_stolen(hwnas_machine *machine)
{
    real_machine *m = (real_machine *)machine;
    ssize_t n = m->stat < 0 ? 0 : pread(m->stat, m->text, sizeof m->text - 1, 0);
    m->text[n > 0 ? n : 0] = '\0';
    unsigned long long ticks = 0;
    hwnas_core_ticks t;
    for (const char *at = m->text; (at = hwnas_core_ticks_next(&t, at));)
        if (t.core < CPU_SETSIZE && CPU_ISSET((size_t)t.core, &m->cores))
            ticks += t.stolen;
    return (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

static double real_cpu_time(hwnas_machine *machine)
{
    struct timespec t;
    if (((real_machine *)machine)->team.threads != 1 || clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t))
        return NAN;
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double real_joules(hwnas_machine *machine)
{
    real_machine *m = (real_machine *)machine;
    return m->energy ? hwnas_energy_joules(m->energy) : NAN;
}

/* Four chains of multiply-add that stay in registers, 0.1 ms of them: they see the clock rate of
 * the core and nothing of caches or memory. */
static double time_reference(void)
{
    volatile double scale = 0.999, shift = 1e-3; /* not to be computed in advance */
    double a = scale, b = shift, w = 1, x = 2, y = 3, z = 4;
    double start = hwnas_now();
    for (int i = 0; i < REFERENCE_STEPS; i++) {
        w = w * a + b;
        x = x * a + b;
        y = y * a + b;
        z = z * a + b;
    }
    scale = w + x + y + z;
    return hwnas_now() - start;
}

static bool real_is_shared(hwnas_machine *machine, double *hertz)
{
    real_machine *m = (real_machine *)machine;
    /* At ordinary priority a look would wait for threads that others have taken the core from; then
     * preemptions tell of it. */
    const hwnas_team_reading reading =
        hwnas_team_read(hwnas_priority_is_raised() ? m->team.threads : 1);
    *hertz = reading.pace.hertz;
    return hwnas_team_is_disturbed(&m->team, reading);
}

/* The best of some tries, so that a time slice lost to another process does not count as a slower
 * machine; of tries on a core of our own only, as a neighbour is another interference monitor's
 * word. */
static double real_reference(hwnas_machine *machine)
{
    double best = INFINITY, hertz;
    bool was_shared = real_is_shared(machine, &hertz);
    for (int try = 0, n = 0; try < REFERENCE_TRIES && n < REFERENCE_BEST_OF; try++) {
        const double seconds = time_reference();
        const bool is_shared = real_is_shared(machine, &hertz);
        if (!is_shared && !was_shared) {
            best = fmin(best, seconds);
            n++;
        }
        was_shared = is_shared;
    }
    return isinf(best) ? NAN : best;
}

static hwnas_conditions real_conditions(hwnas_machine *machine)
{
    (void)machine;
    return hwnas_conditions_read(hwnas_conditions_root());
}

static bool real_settle(hwnas_machine *machine)
{
    (void)machine;
    return hwnas_place_settle();
}

/* Whoever has the turn and has not computed for so long, beside the budgets of our own, was
 * stopped. */
static const double TURN_SECONDS = 10;

/* Computing without a pause that no measurement needs, unless the network itself is so slow. */
static double seconds_to_compute(const hwnas_measure_options *options)
{
    return 10 + 4 * options->max_seconds;
}

static void real_pause(hwnas_machine *machine, double seconds)
{
    (void)machine;
    struct timespec left = {.tv_sec = (time_t)seconds,
                            .tv_nsec = (long)(1e9 * (seconds - floor(seconds)))};
    while (nanosleep(&left, &left) && errno == EINTR)
        continue;
}

/* Until no other runner measures on our cores. One that still computes there is waited for: beside
 * it a thread of the same priority would not get the core, and would seem to hang. */
static hwnas_status wait_for_turn(real_machine *m, const hwnas_measure_options *options)
{
    const double patience = TURN_SECONDS + 4 * options->max_seconds;
    double seen = hwnas_now();
    while (!m->turn.n_locks && !hwnas_place_take_turn(&m->turn) && hwnas_now() < seen + patience) {
        if (options->progress)
            options->progress(options->context, "waiting for the cores");
        if (options->stop && *options->stop)
            return hwnas_fail(HWNAS_E_INTERRUPTED, NULL, "interrupted while waiting for the cores");
        if (hwnas_place_nap())
            seen = hwnas_now();
    }
    return HWNAS_OK;
}

static hwnas_status real_take_priority(hwnas_machine *machine, const hwnas_measure_options *options)
{
    if (options->priority == HWNAS_PRIORITY_NORMAL)
        return HWNAS_OK;
    TRY(wait_for_turn((real_machine *)machine, options));
    hwnas_status status = hwnas_priority_raise(seconds_to_compute(options));
    if (status == HWNAS_OK || options->priority == HWNAS_PRIORITY_REALTIME)
        return status;
    hwnas_error_clear();
    return HWNAS_OK;
}

static bool real_is_realtime(hwnas_machine *machine)
{
    (void)machine;
    return hwnas_priority_is_raised();
}

static void unwatch(real_machine *m)
{
    for (int i = 0; i < m->n_threads; i++)
        close(m->schedstat[i]);
    if (m->stat >= 0)
        close(m->stat);
    m->n_threads = 0;
    m->stat = -1;
    CPU_ZERO(&m->cores);
}

/* Opens the scheduler's accounting of each thread, and notes the cores that any of them may use: a
 * device may have bound each to one of its own. Several executables of one process are watched one
 * after the other; each thread is counted once. */
static void real_watch(hwnas_machine *machine)
{
    real_machine *m = (real_machine *)machine;
    unwatch(m);
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *e; tasks && (e = readdir(tasks)) && m->n_threads < MAX_THREADS;) {
        char path[300];
        cpu_set_t set;
        if (e->d_name[0] == '.' || hwnas_priority_stands_by(atoi(e->d_name)))
            continue;
        if (!sched_getaffinity(atoi(e->d_name), sizeof set, &set))
            CPU_OR(&m->cores, &m->cores, &set);
        snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", e->d_name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0)
            m->schedstat[m->n_threads++] = fd;
    }
    if (tasks)
        closedir(tasks);
    m->stat = open("/proc/stat", O_RDONLY | O_CLOEXEC);
}

hwnas_machine *hwnas_machine_open(void)
{
    real_machine *m = hwnas_alloc(sizeof *m);
    m->base = (hwnas_machine){.watch = real_watch,
                              .now = real_now,
                              .preemptions = real_preemptions,
                              .waited = real_waited,
                              .stolen = real_stolen,
                              .cpu_time = real_cpu_time,
                              .joules = real_joules,
                              .reference = real_reference,
                              .is_shared = real_is_shared,
                              .conditions = real_conditions,
                              .pause = real_pause,
                              .take_priority = real_take_priority,
                              .is_realtime = real_is_realtime,
                              .settle = real_settle};
    m->stat = -1;
    m->team = hwnas_team_open(hwnas_place_threads());
    m->energy = hwnas_energy_open(hwnas_energy_root());
    return &m->base;
}

void hwnas_machine_close(hwnas_machine *machine)
{
    real_machine *m = (real_machine *)machine;
    if (!m)
        return;
    hwnas_priority_lower();
    hwnas_turn_end(&m->turn);
    hwnas_team_keep(&m->team);
    unwatch(m);
    hwnas_energy_close(m->energy);
    free(m);
}
