#define _GNU_SOURCE 1 /* pthread_attr_setaffinity_np(), CPU_SET() */
#include "device/helpers.h"

#include <pthread.h>
#include <sched.h>

#include "base/clock.h"

#define LOOK_SECONDS 0.01 /* asking whether a core is in use takes some microseconds */

enum { MOST_THREADS = 64 };

static int (*room_of)(int *cores, int most);
static _Thread_local bool is_helper;
static _Thread_local double looked_when; /* by a helper */

void hwnas_helpers_set_room(int (*room)(int *cores, int most))
{
    room_of = room;
}

/* The cores beside that of the caller, where it is bound to one. */
static void find_room(cpu_set_t *room)
{
    cpu_set_t own;
    const bool is_known = !sched_getaffinity(0, sizeof own, &own);
    CPU_ZERO(room);
    if (!room_of) {
        if (is_known)
            *room = own;
        return;
    }
    int cores[CPU_SETSIZE];
    const int n = room_of(cores, CPU_SETSIZE);
    for (int i = 0; i < n; i++)
        if (cores[i] >= 0 && cores[i] < CPU_SETSIZE)
            CPU_SET((size_t)cores[i], room);
    for (int i = 0; !is_helper && is_known && CPU_COUNT(&own) == 1 && i < CPU_SETSIZE; i++)
        if (CPU_ISSET((size_t)i, &own))
            CPU_CLR((size_t)i, room);
}

bool hwnas_helper_goes_on(void)
{
    cpu_set_t room;
    if (!is_helper || !room_of || hwnas_now() - looked_when < LOOK_SECONDS)
        return true;
    looked_when = hwnas_now();
    find_room(&room);
    return CPU_COUNT(&room) && !sched_setaffinity(0, sizeof room, &room);
}

typedef struct job {
    void (*work)(void *context);
    void *context;
} job;

static void *help(void *argument)
{
    const job *j = argument;
    is_helper = true;
    pthread_setname_np(pthread_self(), HWNAS_HELPER_THREAD);
    looked_when = hwnas_now();
    j->work(j->context);
    return NULL;
}

void hwnas_helpers_run(int most, void (*work)(void *context), void *context)
{
    cpu_set_t room;
    pthread_attr_t attr;
    pthread_t threads[MOST_THREADS];
    job j = {.work = work, .context = context};
    const struct sched_param ordinary = {0};
    int n = 0;
    find_room(&room);
    const int beside = room_of ? CPU_COUNT(&room) : CPU_COUNT(&room) - 1;
    pthread_attr_init(&attr);
    pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attr, SCHED_OTHER);
    pthread_attr_setschedparam(&attr, &ordinary);
    pthread_attr_setaffinity_np(&attr, sizeof room, &room);
    while (n < MOST_THREADS && n < most - 1 && n < beside &&
           !pthread_create(&threads[n], &attr, help, &j))
        n++;
    pthread_attr_destroy(&attr);
    work(context);
    while (n)
        pthread_join(threads[--n], NULL);
}
