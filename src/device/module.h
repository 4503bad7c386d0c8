/* module.h: devices that a loadable module brings.
 *
 * A module is a shared object that exports `hwnas_module_entry`; it uses the functions of the
 * program that opens it. The rows of its devices stand in the program's table with what is
 * known without it and an `open`, which finds the module and hands over to the module's own row. */
#ifndef HWNAS_DEVICE_MODULE_H
#define HWNAS_DEVICE_MODULE_H

#include "device/device.h"

typedef struct hwnas_module {
    unsigned abi; /* HWNAS_DEVICE_ABI; first, whatever else changes */
    const char *name, *version;
    const hwnas_device_ops *const *devices; /* NULL-terminated */
} hwnas_module;

/* What is not proven of the devices of hwnas-cuda, in the words of `hwnas devices`. */
#define HWNAS_CUDA_CAVEAT                                                                          \
    "of real GPUs it has run on an H100 and an H200 (docs/gpu.md); others are tested on stand-ins"
#define HWNAS_CUDA_DRY_CAVEAT                                                                      \
    "a real GPU may take other plans: an H100 took another engine for 18 of 54 (docs/gpu.md)"

/* Behind the last colon: plans that are made sooner. */
#define HWNAS_CUDA_QUICK "quick"

/* What GPUs compute in: of the program's row and of the module's own. */
#define HWNAS_CUDA_PRECISIONS                                                                      \
    (1U << HWNAS_F32 | 1U << HWNAS_TF32 | 1U << HWNAS_BF16 | 1U << HWNAS_F16 | 1U << HWNAS_S8)

#define HWNAS_MODULE_SYMBOL "hwnas_module_entry"
extern const hwnas_module hwnas_module_entry; /* in a module */

/* Opens "NAME.so" from the first of these that has it: the directories of $HWNAS_MODULES
 * (colon-separated), beside the program, its build directory, where modules are installed. It stays
 * open. No such file: HWNAS_E_UNSUPPORTED with where was looked; one that cannot be loaded, or of
 * another ABI: HWNAS_E_LIBRARY. */
HWNAS_CHECKED hwnas_status hwnas_module_open(const hwnas_module **out, const char *name);

#endif
