#include "study/heartbeat.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "store/leases.h"

enum { PERIOD = HWNAS_LEASE_SECONDS / 6 };

struct hwnas_heartbeat {
    char *study, *worker;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    bool is_over;
    hwnas_store *store; /* NULL: the connection was lost */
    hwnas_leases *leases;
};

static void disconnect(hwnas_heartbeat *h)
{
    hwnas_leases_close(h->leases);
    hwnas_store_close(h->store);
    h->leases = NULL;
    h->store = NULL;
}

static hwnas_status beat(hwnas_heartbeat *h)
{
    if (!h->store)
        TRY(hwnas_store_open(&h->store, h->study, HWNAS_STORE_SHARE));
    if (!h->leases)
        TRY(hwnas_leases_open(&h->leases, h->store, h->worker));
    return hwnas_leases_renew(h->leases);
}

/* Until the next beat; false: it is over. */
static bool wait_for_next(hwnas_heartbeat *h)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PERIOD;
    pthread_mutex_lock(&h->mutex);
    int code = 0;
    while (!h->is_over && !code)
        code = pthread_cond_timedwait(&h->wake, &h->mutex, &until);
    const bool is_over = h->is_over;
    pthread_mutex_unlock(&h->mutex);
    return !is_over;
}

static void *run(void *context)
{
    hwnas_heartbeat *h = context;
    while (wait_for_next(h))
        if (beat(h) != HWNAS_OK) {
            hwnas_error_clear();
            disconnect(h);
        }
    disconnect(h);
    return NULL;
}

/* By the clock that is never set: one that is set back would make the next beat late. */
static void init_wake(hwnas_heartbeat *h)
{
    pthread_condattr_t by;
    pthread_condattr_init(&by);
    pthread_condattr_setclock(&by, CLOCK_MONOTONIC);
    pthread_cond_init(&h->wake, &by);
    pthread_condattr_destroy(&by);
}

hwnas_heartbeat *hwnas_heartbeat_start(const char *study, const char *worker)
{
    hwnas_heartbeat *h = hwnas_alloc(sizeof *h);
    h->study = hwnas_strdup(study);
    h->worker = hwnas_strdup(worker);
    pthread_mutex_init(&h->mutex, NULL);
    init_wake(h);
    if (pthread_create(&h->thread, NULL, run, h))
        hwnas_out_of_memory();
    return h;
}

void hwnas_heartbeat_stop(hwnas_heartbeat *h)
{
    pthread_mutex_lock(&h->mutex);
    h->is_over = true;
    pthread_cond_signal(&h->wake);
    pthread_mutex_unlock(&h->mutex);
    pthread_join(h->thread, NULL);
    pthread_cond_destroy(&h->wake);
    pthread_mutex_destroy(&h->mutex);
    free(h->study);
    free(h->worker);
    free(h);
}
