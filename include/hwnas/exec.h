/* exec.h: devices, and networks that run in this process. */
#ifndef HWNAS_PUBLIC_EXEC_H
#define HWNAS_PUBLIC_EXEC_H

#include <hwnas/network.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hwnas_device hwnas_device;
typedef struct hwnas_exec hwnas_exec;

typedef struct hwnas_device_options {
    size_t size;
    int threads; /* 0: all cores that this process may use */
} hwnas_device_options;
#define HWNAS_DEVICE_OPTIONS_INIT                                                                  \
    {                                                                                              \
        sizeof(hwnas_device_options), 0                                                            \
    }

typedef struct hwnas_device_info {
    char name[128];   /* "Intel(R) Xeon(R) Processor, 2 cores" */
    char library[64]; /* "oneDNN 3.7.2" */
    char isa[64];     /* instruction set that the library uses */
    int threads;
    unsigned native;   /* precisions that it has instructions for: a set of bits
                          1 << hwnas_precision */
    unsigned emulated; /* those that it computes by way of others, without gain in speed */
    bool has_energy;   /* the machine has an energy counter; known to a runner alone */
    bool computes;     /* a run gives the network's outputs, so that they can be verified */
    /* Of a device with memory of its own: bytes of that, and of its last cache. 0: it shares the
     * processor's. */
    double memory_bytes, cache_bytes;
} hwnas_device_info;

/* Device number i that this library knows, built in or registered: what stands before ':' in its
 * spelling; NULL behind the last. `help` (NULL: not wanted) is a line about it. Static. */
HWNAS_API const char *hwnas_device_list(size_t i, const char **help);

/* Opens "cpu", "ref", "null", "cuda:0", "replay:FILE#COLUMN", "cuda-dry:h200" in this process. The
 * first of a process loads libraries: up to a second. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_device_open(hwnas_device **out, const char *spelling,
                                                       const hwnas_device_options *options);
/* After everything that was compiled for it. */
HWNAS_API void hwnas_device_close(hwnas_device *device);
HWNAS_API void hwnas_device_describe(hwnas_device_info *out, const hwnas_device *device);

/* What changes the weights, where a run is a training step. */
typedef enum hwnas_optimizer {
    HWNAS_NO_TRAINING,
    HWNAS_SGD,   /* with momentum 0.9 */
    HWNAS_ADAMW, /* Loshchilov and Hutter 2019 */
    HWNAS_N_OPTIMIZERS
} hwnas_optimizer;

/* "none", "sgd", "adamw". Static. */
HWNAS_API const char *hwnas_optimizer_name(hwnas_optimizer optimizer);
/* HWNAS_E_INPUT with the known names for another one. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_optimizer_find(hwnas_optimizer *out, const char *name);

/* How a network is to be compiled. */
typedef struct hwnas_exec_options {
    size_t size;
    hwnas_precision precision;
    /* (optional) S8: what ranges are found with: the network's inputs one after the other, as often
     * as `n_samples`; borrowed during the call. None: random ones. */
    size_t n_samples;
    const float *samples;
    /* A run is a training step: forward in training mode, loss, backward, update of the weights
     * (docs/training.md). Targets are made up, outputs are left as they are. */
    hwnas_optimizer training;
} hwnas_exec_options;
#define HWNAS_EXEC_OPTIONS_INIT                                                                    \
    {                                                                                              \
        sizeof(hwnas_exec_options), HWNAS_F32, 0, NULL, HWNAS_NO_TRAINING                                             \
    }

/* Compiles for a device, as it would be deployed: batch norms folded, operators fused. The network
 * may be closed afterwards. HWNAS_E_UNSUPPORTED names what the device lacks. Milliseconds to
 * seconds. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_network_compile(hwnas_exec **out,
                                                           const hwnas_network *network,
                                                           hwnas_device *device,
                                                           const hwnas_exec_options *options);
/* One inference, complete on return: an array for each input and each output of the network, as
 * large as hwnas_array_info.count says. What a network does to the caller it may do here: to
 * measure one that nobody has run yet, use a measurer. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_exec_run(hwnas_exec *exec, const float *const *inputs,
                                                    float *const *outputs);
HWNAS_API void hwnas_exec_free(hwnas_exec *exec);

/* Compiles a network and runs it once, in this process. out[i] is of output i, and is freed by
 * hwnas_free(). */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_network_run(float **out, const hwnas_network *network,
                                                       hwnas_device *device,
                                                       const float *const *inputs,
                                                       const hwnas_exec_options *options);

#ifdef __cplusplus
}
#endif
#endif
