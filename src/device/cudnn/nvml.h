/* nvml.h: what NVIDIA's management library tells of a GPU: energy, clock rate, and what holds it
 * down.
 *
 * Its header is not part of all CUDA packages, so the few functions are declared in nvml.c, as the
 * public NVML API Reference Guide has them. Each is optional, and each may take milliseconds. */
#ifndef HWNAS_DEVICE_CUDNN_NVML_H
#define HWNAS_DEVICE_CUDNN_NVML_H

typedef struct hwnas_nvml hwnas_nvml;

/* The GPU at a PCI address, "0000:3b:00.0"; NULL when there is no library, or none that knows it.
 */
hwnas_nvml *hwnas_nvml_open(const char *bus);
void hwnas_nvml_close(hwnas_nvml *nvml); /* accepts NULL, as all of these do */

/* Joules since the driver was loaded, updated every 20 to 100 ms; NaN when the GPU does not count
 * them. */
double hwnas_nvml_joules(const hwnas_nvml *nvml);
/* The rate of the clock of its multiprocessors now; NaN when it is not told. */
double hwnas_nvml_hertz(const hwnas_nvml *nvml);
/* What holds that clock down now: a set of hwnas_throttle; 0 when nothing does, or it is not told.
 */
unsigned hwnas_nvml_throttles(const hwnas_nvml *nvml);

#endif
