#define _GNU_SOURCE 1 /* sched_setaffinity() */
#include "measure/place.h"

#include <sched.h>
#include <unistd.h>

#include "base/clock.h"
#include "measure/cores.h"
#include "measure/pace.h"

enum { N_LOOKS = 40 };
static const double LOOK_SECONDS = 25e-6; /* between two looks */
static const double BETTER = 0.2;         /* of the looks: for less nobody moves */

static struct {
    int cores[HWNAS_MAX_CORES], n;
    int now;  /* the core that the thread is on */
    int lock; /* on it, unless the parent holds it; or -1 */
    int home; /* the parent holds this one */
    int threads;
} place = {.lock = -1};

void hwnas_place_allow(const int *cores, int n, int threads)
{
    place.threads = threads;
    place.n = 0;
    for (int i = 0; i < n && i < HWNAS_MAX_CORES; i++)
        place.cores[place.n++] = cores[i];
    place.now = place.home = sched_getcpu();
}

bool hwnas_place_is_alone(void)
{
    return place.threads == 1;
}

static bool go_to(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)core, &set);
    return !sched_setaffinity(0, sizeof set, &set);
}

/* Share of the looks at the present core that saw somebody else on it. */
static double look_around(void)
{
    int n_shared = 0;
    for (int i = 0; i < N_LOOKS; i++) {
        n_shared += hwnas_pace_is_shared(hwnas_pace_read(), true);
        for (double start = hwnas_now(); hwnas_now() - start < LOOK_SECONDS;)
            continue;
    }
    return (double)n_shared / N_LOOKS;
}

bool hwnas_place_settle(void)
{
    const int before = place.now;
    if (place.threads != 1 || place.n < 2)
        return false;
    double least = look_around();
    for (int i = 0; i < place.n && least > BETTER; i++) {
        const int core = place.cores[i];
        if (core == before)
            continue;
        int lock = core == place.home ? -1 : hwnas_core_lock(core);
        if (lock == HWNAS_CORE_TAKEN)
            continue;
        const double share = go_to(core) ? look_around() : 1;
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
    return place.now != before;
}
