/* cuda_device.c: the beginning and the end of both devices. */
#include "device/cudnn/cuda_device.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "device/cudnn/live.h"
#include "device/cudnn/plans.h"
#include "device/cudnn/quick.h"

hwnas_status hwnas_cuda_device_open(hwnas_device **out, const hwnas_device_ops *ops,
                                    hwnas_status (*find)(hwnas_cuda_device *, const char *),
                                    const char *argument)
{
    hwnas_cuda_device *device = hwnas_alloc(sizeof *device);
    device->base.ops = ops;
    device->plans = hwnas_cudnn_plans_new();
    const hwnas_status status = find(device, argument);
    if (status == HWNAS_OK)
        *out = &device->base;
    else
        hwnas_cuda_device_close(&device->base);
    return status;
}

void hwnas_cuda_device_close(hwnas_device *base)
{
    hwnas_cuda_device *device = (hwnas_cuda_device *)base;
    hwnas_cudnn_plans_free(device->plans, device->cudnn);
    hwnas_cudnn_caches_free(device->caches, device->cudnn);
    if (device->properties)
        device->cudnn->destroy(device->properties);
    hwnas_live_close(device->live);
    hwnas_gpu_done(&device->gpu);
    free(device);
}

void hwnas_cuda_listen(hwnas_device *base, void (*progress)(void *context, const char *phase),
                       void *context)
{
    hwnas_cuda_device *device = (hwnas_cuda_device *)base;
    device->progress = progress;
    device->context = context;
}

/* A thread that speaks while another waits for a library. */
struct hwnas_pulse {
    hwnas_cuda_device *device;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t end;
    bool is_over;
};

enum { BEATS = 600, BEAT_MS = 500 }; /* what takes longer than all of them hangs */

static void *beat(void *context)
{
    struct hwnas_pulse *p = context;
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    pthread_mutex_lock(&p->lock);
    for (int i = 0; i < BEATS && !p->is_over; i++) {
        next.tv_nsec += BEAT_MS * 1000000;
        next.tv_sec += next.tv_nsec / 1000000000;
        next.tv_nsec %= 1000000000;
        while (!p->is_over && !pthread_cond_timedwait(&p->end, &p->lock, &next))
            continue;
        if (!p->is_over)
            p->device->progress(p->device->context, p->device->phase);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

void hwnas_cuda_tell(hwnas_cuda_device *device, const char *phase)
{
    pthread_condattr_t attributes;
    snprintf(device->phase, sizeof device->phase, "%s", phase);
    if (!device->progress || device->pulse)
        return;
    device->progress(device->context, device->phase);
    struct hwnas_pulse *p = hwnas_alloc(sizeof *p);
    p->device = device;
    pthread_mutex_init(&p->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&p->end, &attributes);
    pthread_condattr_destroy(&attributes);
    if (pthread_create(&p->thread, NULL, beat, p))
        free(p);
    else
        device->pulse = p;
}

void hwnas_cuda_told(hwnas_cuda_device *device)
{
    struct hwnas_pulse *p = device->pulse;
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->is_over = true;
    pthread_cond_signal(&p->end);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    pthread_cond_destroy(&p->end);
    pthread_mutex_destroy(&p->lock);
    free(p);
    device->pulse = NULL;
}

int hwnas_cudnn_tell_version(char *out, size_t size, const hwnas_cuda_device *device)
{
    const size_t version = device->cudnn->version();
    return snprintf(out, size, "cuDNN %zu.%zu.%zu%s", version / 10000, version / 100 % 100,
                    version % 100, device->is_quick ? ", quick plans" : "");
}

/* Tensor cores take f16 since sm_70, bytes since sm_75, tf32 and bf16 since sm_80 (CUDA C++
 * Programming Guide, "Compute Capabilities"). */
unsigned hwnas_cudnn_native(const hwnas_cuda_device *device)
{
    static const struct {
        int sm;
        hwnas_precision precision;
    } rows[] = {{70, HWNAS_F16}, {75, HWNAS_S8}, {80, HWNAS_TF32}, {80, HWNAS_BF16}};
    unsigned set = 1U << HWNAS_F32;
    for (size_t i = 0; device->cudnn && i < sizeof rows / sizeof *rows; i++)
        if (device->gpu.sm >= rows[i].sm)
            set |= 1U << rows[i].precision;
    return set;
}
