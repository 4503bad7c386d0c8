/* plans.h: plans that were made, by signature; most of a search's networks repeat them.
 *
 * In memory as long as the device is open; on disk (kept.h), where a plan costs milliseconds
 * instead of up to two seconds. A file names the signature, the GPU and cuDNN's version that it was
 * made for and carries a checksum: one that does not fit or is damaged is deleted and made again.
 *
 * Two threads may use them: one that runs networks, and one that makes plans ahead. */
#ifndef HWNAS_DEVICE_CUDNN_PLANS_H
#define HWNAS_DEVICE_CUDNN_PLANS_H

#include "device/cudnn/operation.h"

struct hwnas_cudnn_plan {
    char *signature;
    cudnnBackendDescriptor_t made; /* NULL: no engine takes it, or nothing will run */
    bool is_refused;
    char *why; /* refused: what cuDNN says; else NULL */
    size_t made_for; /* hwnas_cuda_device's `compiling` when it was made; 0: ahead, or from disk */
    int64_t engine;
    size_t workspace;
    unsigned numerical, behavior; /* sets of 1 << cudnnBackendNumericalNote_t, ...BehaviorNote_t */
};

typedef struct hwnas_cudnn_plans hwnas_cudnn_plans;

hwnas_cudnn_plans *hwnas_cudnn_plans_new(void);
void hwnas_cudnn_plans_free(hwnas_cudnn_plans *plans, const hwnas_cudnn_api *api);
/* NULL when there is none. */
const hwnas_cudnn_plan *hwnas_cudnn_plans_find(hwnas_cudnn_plans *plans, const char *signature);
/* Between the two a plan is made, or several by threads of one caller: whoever waited looks first
 * whether it is there by now. Others find and run plans meanwhile. */
void hwnas_cudnn_plans_begin(hwnas_cudnn_plans *plans);
void hwnas_cudnn_plans_end(hwnas_cudnn_plans *plans);
/* Takes the plan over, with all it points to. */
const hwnas_cudnn_plan *hwnas_cudnn_plans_add(hwnas_cudnn_plans *plans, hwnas_cudnn_plan plan);
size_t hwnas_cudnn_plans_count(const hwnas_cudnn_plans *plans);

/* It was made and failed when it was run: from now on it is one that cuDNN refuses. `why` is
 * copied. */
void hwnas_cudnn_plans_refuse(hwnas_cudnn_plans *plans, const hwnas_cudnn_plan *plan,
                              const char *why);
/* Also while the other thread may find out; then `why` says why. */
bool hwnas_cudnn_plan_is_refused(const hwnas_cudnn_plan *plan);
/* So often that has happened. */
size_t hwnas_cudnn_plans_refused(const hwnas_cudnn_plans *plans);

/* What is on disk for the signature; false where there is nothing that can be used. `json`, the
 * plan in cuDNN's words, is NULL for one that was refused; yours to free(), as is plan->why. */
bool hwnas_cudnn_plan_load(hwnas_cudnn_plan *plan, char **json, const hwnas_cuda_device *device,
                           const char *signature);
/* As well as it goes: that it could not be kept is not a failure. */
void hwnas_cudnn_plan_save(const hwnas_cudnn_plan *plan, const char *json,
                           const hwnas_cuda_device *device);
/* Deletes what is on disk for the signature. */
void hwnas_cudnn_plan_drop(const hwnas_cuda_device *device, const char *signature);

#endif
