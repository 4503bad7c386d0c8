/* cuda_device.h: what the files of these devices share. */
#ifndef HWNAS_DEVICE_CUDNN_CUDA_DEVICE_H
#define HWNAS_DEVICE_CUDNN_CUDA_DEVICE_H

#include "device/cudnn/gpu.h"
#include "device/cudnn/libraries.h"
#include "device/device.h"

struct hwnas_cudnn_operation;
struct hwnas_cudnn_plans;
struct hwnas_cudnn_caches;

typedef struct hwnas_cuda_device hwnas_cuda_device;
struct hwnas_cuda_device {
    hwnas_device base;
    bool is_dry; /* there is no GPU: compiles, runs nothing */
    bool tunes;  /* times the first engines of each plan, keeps the fastest */
    bool is_quick; /* what was compiled for one size serves others; quick.h */
    hwnas_gpu gpu;
    const hwnas_cudnn_api *cudnn;        /* NULL: without it, all by kernels of ours */
    cudnnBackendDescriptor_t properties; /* of the GPU, as cuDNN has them */
    struct hwnas_cudnn_plans *plans;     /* made so far; see plans.h */
    struct hwnas_cudnn_caches *caches;   /* of a quick device: kernels by form */
    /* With `tunes`: seconds that the plan of an operation takes on the GPU; tune.c. */
    double (*time_plan)(hwnas_cuda_device *device, const struct hwnas_cudnn_operation *o,
                        cudnnBackendDescriptor_t plan, size_t workspace);
    /* Hears how far compiling has come, while it goes on; hwnas_cuda_tell(). */
    void (*progress)(void *context, const char *phase);
    void *context;
    char phase[64];
    size_t compiling; /* the number of the network whose turn it is, from 1 on; those made ahead
                         have none */
    struct hwnas_pulse *pulse; /* NULL: nobody hears, or nothing is compiled */
    /* While plans are made ahead, of that thread alone; hwnas_cudnn_prepare(). */
    bool (*goes_on)(void *context);
    void *going;
    void *driver;              /* the open libcuda.so.1 */
    void *live;                /* of a GPU that is here: context, stream, handle; see cuda.c */
};

/* Rows of the module's table. */
extern const hwnas_device_ops hwnas_cuda_ops;     /* cuda.c */
extern const hwnas_device_ops hwnas_cuda_dry_ops; /* dry.c */

/* What the two rows have in common; cuda_device.c. `find` fills in what is the device's own: the
 * GPU, the libraries, what cuDNN knows of it; when it fails, all is closed again. */
HWNAS_CHECKED hwnas_status hwnas_cuda_device_open(hwnas_device **out, const hwnas_device_ops *ops,
                                                  hwnas_status (*find)(hwnas_cuda_device *device,
                                                                       const char *argument),
                                                  const char *argument);
void hwnas_cuda_device_close(hwnas_device *device);
void hwnas_cuda_listen(hwnas_device *device, void (*progress)(void *context, const char *phase),
                       void *context);
/* Says what is compiled now, and until hwnas_cuda_told() again and again that it goes on, for some
 * minutes at most: one call of cuDNN's may take longer than the silence that is a hang. */
void hwnas_cuda_tell(hwnas_cuda_device *device, const char *phase);
void hwnas_cuda_told(hwnas_cuda_device *device);
/* The precisions that the GPU has units for products in, beside f32, as far as cuDNN uses them:
 * what hwnas_device_info calls native. */
unsigned hwnas_cudnn_native(const hwnas_cuda_device *device);
/* "cuDNN 9.19.0, quick plans"; returns what snprintf() does. */
int hwnas_cudnn_tell_version(char *out, size_t size, const hwnas_cuda_device *device);

/* Networks; compile.c. An executable is a hwnas_cudnn_net, see cudnn_steps.h. */
hwnas_status hwnas_cudnn_compile(hwnas_exec **out, hwnas_device *device, const hwnas_graph *graph,
                                 const hwnas_exec_options *options);
/* As hwnas_device_ops.prepare: plans and kernels, but for recurrent layers, and nothing of a
 * network whose bytes are yet to be found. Failures are found again in compile(). */
void hwnas_cudnn_prepare(hwnas_cuda_device *device, const hwnas_graph *graph,
                         const hwnas_exec_options *options, bool (*goes_on)(void *context),
                         void *context);
void hwnas_cudnn_free_exec(hwnas_exec *exec);
size_t hwnas_cudnn_held(const hwnas_exec *exec);
void hwnas_cudnn_footprint(const hwnas_exec *exec, hwnas_footprint *out);
size_t hwnas_cudnn_steps(const hwnas_exec *exec, const hwnas_exec_step **out);

#endif
