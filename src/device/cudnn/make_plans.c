#include "device/cudnn/make_plans.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cudnn/engine.h"
#include "device/cudnn/live.h"
#include "device/helpers.h"

enum { MOST_THREADS = 32 }; /* each has memory of the compiler's */

typedef struct wanted {
    const hwnas_cudnn_operation *operation;
    char *signature;
} wanted;

typedef struct making {
    hwnas_cuda_device *device;
    pthread_t caller;
    size_t n, next;
    wanted *all;
} making;

static int by_signature(const void *a, const void *b)
{
    return strcmp(((const wanted *)a)->signature, ((const wanted *)b)->signature);
}

/* Each operation once. */
static void collect(making *m, const hwnas_cudnn_net *net)
{
    m->all = hwnas_alloc(net->n_steps * sizeof *m->all);
    for (size_t i = 0; i < net->n_steps; i++) {
        const hwnas_cudnn_operation *o = net->steps[i].state;
        if (net->steps[i].kind != &hwnas_cudnn_engine || o->is_full)
            continue;
        char *signature = hwnas_cudnn_signature(o);
        if (hwnas_cudnn_plans_find(m->device->plans, signature))
            free(signature);
        else
            m->all[m->n++] = (wanted){o, signature};
    }
    qsort(m->all, m->n, sizeof *m->all, by_signature);
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++)
        if (n && !strcmp(m->all[n - 1].signature, m->all[i].signature))
            free(m->all[i].signature);
        else
            m->all[n++] = m->all[i];
    m->n = n;
}

/* The caller tells of each of its plans that it is being made, and then that it waits for those of
 * others. */
static void tell(const making *m, size_t i)
{
    char phase[64];
    if (!pthread_equal(pthread_self(), m->caller))
        return;
    hwnas_cuda_told(m->device);
    snprintf(phase, sizeof phase, "compiling, plan %zu of %zu", i < m->n ? i + 1 : m->n, m->n);
    hwnas_cuda_tell(m->device, phase);
}

static void make_some(void *context)
{
    making *m = context;
    if (m->device->live && hwnas_live_use(m->device->live) != HWNAS_OK) {
        hwnas_error_clear();
        return;
    }
    while (hwnas_helper_goes_on()) {
        const size_t i = __atomic_fetch_add(&m->next, 1, __ATOMIC_RELAXED);
        tell(m, i);
        if (i >= m->n)
            return;
        hwnas_cudnn_plan_make(m->device, m->all[i].operation, m->all[i].signature);
        m->all[i].signature = NULL;
    }
}

void hwnas_cudnn_make_plans(const hwnas_cudnn_net *net)
{
    making m = {.device = net->device, .caller = pthread_self()};
    if (!m.device->cudnn || m.device->is_quick || m.device->tunes)
        return;
    hwnas_cudnn_plans_begin(m.device->plans);
    collect(&m, net);
    if (m.n > 1) {
        hwnas_helpers_run(m.n < MOST_THREADS ? (int)m.n : MOST_THREADS, make_some, &m);
        hwnas_cuda_told(m.device);
    }
    hwnas_cudnn_plans_end(m.device->plans);
    for (size_t i = 0; i < m.n; i++)
        free(m.all[i].signature);
    free(m.all);
}
