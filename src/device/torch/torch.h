/* torch.h: the devices `torch` and `torch-cuda`, of which PyTorch does what matters.
 * runners/torch_runner.py loads this library into Python, hands these functions in and then is a
 * runner of ours: networks are measured there by the same code as on all other devices. */
#ifndef HWNAS_DEVICE_TORCH_TORCH_H
#define HWNAS_DEVICE_TORCH_TORCH_H

#include "device/device.h"

/* Called in the thread that measures. One that fails has told why with hwnas_fail(). The runner has
 * the same table: what changes here changes there. */
typedef struct hwnas_torch_calls {
    /* Loads PyTorch, which takes seconds. `device`: "torch" or "torch-cuda"; `argument`: what
     * stands behind its colon. *info has the processor's name and the threads, and gets the library
     * that computes and, of a GPU, its name and instruction set. */
    hwnas_status (*open)(const char *device, const char *argument, hwnas_device_info *info);
    /* Makes network number `id` of an ONNX file, which is borrowed. `training` is "none" or names
     * the optimizer, and `losses` then has a name for each output, with commas between. */
    hwnas_status (*compile)(int id, const void *onnx, size_t length, const char *training,
                            const char *precision, const char *losses);
    /* It runs on these arrays from now on: floats, one array for each input and output. */
    hwnas_status (*bind)(int id, const float *const *inputs, float *const *outputs);
    hwnas_status (*run)(int id);
    /* As `time` of a device, of networks on a GPU. */
    hwnas_status (*time)(int id, int runs, double *seconds);
    /* Bytes that it holds; 0: not known. */
    size_t (*memory)(int id);
    void (*free)(int id);
} hwnas_torch_calls;

/* Opens both devices in this process from now on; the table is borrowed and stays. To be called
 * before the library is used otherwise, in the only thread. */
void hwnas_torch_use(const hwnas_torch_calls *calls);

/* In a call: what goes on, so that a network that takes long is not taken for one that hangs. */
void hwnas_torch_say(const char *phase);

#endif
