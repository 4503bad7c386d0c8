/* nvml.h: what NVIDIA's management library tells of a GPU: energy, and whether it slows
 * itself down.
 *
 * Its header is not part of all CUDA packages, so the few functions are declared in nvml.c, as the
 * public NVML API Reference Guide has them. */
#ifndef HWNAS_DEVICE_CUDNN_NVML_H
#define HWNAS_DEVICE_CUDNN_NVML_H

#include <stdbool.h>

typedef struct hwnas_nvml hwnas_nvml;

/* The GPU at a PCI address, "0000:3b:00.0"; NULL when there is no library, or none that knows it.
 */
hwnas_nvml *hwnas_nvml_open(const char *bus);
void hwnas_nvml_close(hwnas_nvml *nvml); /* accepts NULL, as all of these do */

/* Joules since the driver was loaded; NaN when the GPU does not count them. */
double hwnas_nvml_joules(const hwnas_nvml *nvml);
/* Whether the clocks are held down now by heat, power or a brake; why, in words: static. NULL: they
 * are not. */
const char *hwnas_nvml_slowed(const hwnas_nvml *nvml);

#endif
