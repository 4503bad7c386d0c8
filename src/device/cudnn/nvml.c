#include "device/cudnn/nvml.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/mem.h"
#include "device/cudnn/libraries.h"

typedef struct nvml_device *nvml_handle;
enum { NVML_OK = 0 };

typedef struct nvml_api {
    int (*init)(void);
    int (*shutdown)(void);
    int (*by_bus)(const char *bus, nvml_handle *out);
    int (*energy)(nvml_handle device, unsigned long long *millijoules);
    int (*reasons)(nvml_handle device, unsigned long long *bits);
} nvml_api;

static const hwnas_symbol symbols[] = {
    {"nvmlInit_v2", offsetof(nvml_api, init)},
    {"nvmlShutdown", offsetof(nvml_api, shutdown)},
    {"nvmlDeviceGetHandleByPciBusId_v2", offsetof(nvml_api, by_bus)},
    {"nvmlDeviceGetTotalEnergyConsumption", offsetof(nvml_api, energy)},
    {"nvmlDeviceGetCurrentClocksThrottleReasons", offsetof(nvml_api, reasons)},
    {NULL, 0},
};

struct hwnas_nvml {
    nvml_api api;
    nvml_handle device;
};

hwnas_nvml *hwnas_nvml_open(const char *bus)
{
    hwnas_nvml *nvml = hwnas_alloc(sizeof *nvml);
    void *library;
    if (hwnas_library_open(&library, "libnvidia-ml.so.1", "which tells energy") == HWNAS_OK &&
        hwnas_library_symbols(&nvml->api, symbols, library, "libnvidia-ml.so.1") == HWNAS_OK &&
        nvml->api.init() == NVML_OK) {
        if (nvml->api.by_bus(bus, &nvml->device) == NVML_OK)
            return nvml;
        nvml->api.shutdown();
    }
    hwnas_error_clear(); /* a GPU measures as well without it */
    free(nvml);
    return NULL;
}

void hwnas_nvml_close(hwnas_nvml *nvml)
{
    if (!nvml)
        return;
    nvml->api.shutdown();
    free(nvml);
}

double hwnas_nvml_joules(const hwnas_nvml *nvml)
{
    unsigned long long millijoules;
    if (!nvml || nvml->api.energy(nvml->device, &millijoules) != NVML_OK)
        return NAN;
    return (double)millijoules * 1e-3;
}

const char *hwnas_nvml_slowed(const hwnas_nvml *nvml)
{
    static const struct {
        unsigned long long bit;
        const char *why;
    } rows[] = {
        {0x04, "the GPU's power limit holds its clocks down"},
        {0x08, "the GPU's hardware slows it down"},
        {0x20, "the GPU's driver slows it down: it is hot"},
        {0x40, "the GPU's hardware slows it down: it is hot"},
        {0x80, "an external power brake slows the GPU down"},
    };
    unsigned long long bits;
    if (!nvml || nvml->api.reasons(nvml->device, &bits) != NVML_OK)
        return NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (bits & rows[i].bit)
            return rows[i].why;
    return NULL;
}
