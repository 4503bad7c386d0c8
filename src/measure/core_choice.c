#define _GNU_SOURCE 1 /* sched_setaffinity() */
#include "measure/core_choice.h"

#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "measure/cores.h"
#include "measure/occupancy.h"
#include "measure/pace.h"

enum { N_LOOKS = 40 };
enum { STAT_BYTES = 1 << 16 };            /* of /proc/stat: 64 bytes a core, cores first */
static const double LOOK_SECONDS = 25e-6; /* between two looks */
static const double BETTER = 0.2;         /* of the looks: for less nobody moves */
static const double TALLY_SECONDS = 0.1;  /* the scheduler counts in hundredths of a second */
/* A slice of time that another process gets spoils the sample around it, too. */
static const double SPOILS = 4;
static const double NAP_SECONDS = 1e-3;
/* Nobody of ordinary priority is kept from a core for so long by others who are. Of a second that
 * real-time threads compute the kernel leaves others 0.05 s (sched(7)). */
static const double KEPT_SECONDS = 0.3;

static struct {
    int cores[HWNAS_MAX_CORES], n;
    int bound[HWNAS_MAX_CORES], n_bound;
    int now;  /* the core that the thread is on */
    int lock; /* on it, unless the parent holds it; or -1 */
    int home; /* the parent holds this one */
    int threads;
    hwnas_pace_best best; /* of a core alone */
    hwnas_occupancy occupancy;
} place = {.lock = -1};

/* Seconds that a process has computed; 0 where the system does not tell. */
static double computed(pid_t process)
{
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(process, &clock) || clock_gettime(clock, &t))
        return 0;
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Reads the scheduler's accounting of who was on the cores, if the last look is long enough ago or
 * `is_anew`. The parent waits while this process measures, and may do what it likes when it does
 * not. */
static void read_accounting(bool is_anew)
{
    static char text[STAT_BYTES];
    const double now = hwnas_now();
    if (!is_anew && now - place.occupancy.last.now < TALLY_SECONDS)
        return;
    const int file = open("/proc/stat", O_RDONLY | O_CLOEXEC);
    const ssize_t n = file < 0 ? 0 : read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    text[n > 0 ? n : 0] = '\0';
    if (is_anew)
        place.occupancy.last.now = 0;
    hwnas_occupancy_look(&place.occupancy, text, (double)sysconf(_SC_CLK_TCK),
                         &(hwnas_look){.now = now,
                                       .own = computed(getpid()),
                                       .core = place.now,
                                       .other = computed(getppid())});
}

void hwnas_place_bind(const int *cores, int n)
{
    place.n_bound = n < HWNAS_MAX_CORES ? n : HWNAS_MAX_CORES;
    memcpy(place.bound, cores, (size_t)place.n_bound * sizeof *cores);
}

int hwnas_place_cores(const int **out)
{
    const bool may_move = place.threads == 1 && place.n > 1;
    *out = may_move ? &place.now : place.bound;
    return may_move ? 1 : place.n_bound;
}

void hwnas_place_allow(const int *cores, int n, int threads)
{
    place.threads = threads;
    place.n = 0;
    for (int i = 0; i < n && i < HWNAS_MAX_CORES; i++)
        place.cores[place.n++] = cores[i];
    place.now = place.home = sched_getcpu();
    read_accounting(true);
}

int hwnas_place_free(int *cores, int most)
{
    int n = 0;
    for (int i = 0; i < place.n && n < most; i++)
        if (!hwnas_core_is_in_use(place.cores[i]))
            cores[n++] = place.cores[i];
    return n;
}

int hwnas_place_threads(void)
{
    return place.threads;
}

static bool go_to(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)core, &set);
    return !sched_setaffinity(0, sizeof set, &set);
}

/* Share of the samples that others would spoil on a core: neighbours on its other hyperthread, of
 * whom the looks from there tell, and processes on this one. */
static double trouble(int core)
{
    int n_shared = 0;
    for (int i = 0; i < N_LOOKS; i++) {
        n_shared += hwnas_pace_is_shared(&place.best, hwnas_pace_read(), hwnas_pace_assumed());
        for (double start = hwnas_now(); hwnas_now() - start < LOOK_SECONDS;)
            continue;
    }
    const double others =
        core < HWNAS_MAX_CORES ? fmin(1, SPOILS * place.occupancy.others[core]) : 0;
    return 1 - (1 - (double)n_shared / N_LOOKS) * (1 - others);
}

bool hwnas_place_settle(void)
{
    const int before = place.now;
    if (place.threads != 1 || place.n < 2)
        return false;
    read_accounting(false);
    double least = trouble(before);
    for (int i = 0; i < place.n && least > BETTER; i++) {
        const int core = place.cores[i];
        if (core == before)
            continue;
        int lock = core == place.home ? -1 : hwnas_core_lock(core);
        if (lock == HWNAS_CORE_TAKEN)
            continue;
        const double share = go_to(core) ? trouble(core) : 1;
        if (share < least - BETTER) {
            least = share;
            place.now = core;
            const int other = place.lock;
            place.lock = lock;
            lock = other;
        }
        if (lock >= 0)
            close(lock);
    }
    go_to(place.now);
    if (place.now != before)
        read_accounting(true);
    return place.now != before;
}

/* The thread is on another core, which it does not hold; nor the last one any more. */
static void leave_for(int core)
{
    if (place.lock >= 0)
        close(place.lock);
    place.lock = -1;
    place.now = core;
    read_accounting(true);
}

bool hwnas_place_take_turn(hwnas_turn *out)
{
    const int *cores;
    const int n = hwnas_place_cores(&cores);
    if (hwnas_turn_take(out, cores, n))
        return true;
    for (int i = 0; i < place.n && place.threads == 1; i++) {
        if (place.cores[i] == place.now || !hwnas_turn_take(out, &place.cores[i], 1))
            continue;
        if (go_to(place.cores[i])) {
            leave_for(place.cores[i]);
            return true;
        }
        hwnas_turn_end(out);
    }
    return false;
}

bool hwnas_place_nap(void)
{
    static int next;
    const int *cores;
    const int n = hwnas_place_cores(&cores);
    const struct timespec nap = {.tv_nsec = (long)(1e9 * NAP_SECONDS)};
    cpu_set_t before;
    const bool may_go = n && !sched_getaffinity(0, sizeof before, &before);
    const double start = hwnas_now();
    if (may_go)
        go_to(cores[next++ % n]);
    nanosleep(&nap, NULL);
    if (may_go)
        sched_setaffinity(0, sizeof before, &before);
    return hwnas_now() - start > KEPT_SECONDS;
}
