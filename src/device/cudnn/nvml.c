#include "device/cudnn/nvml.h"

#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "device/cudnn/libraries.h"
#include "device/device.h"

typedef struct nvml_device *nvml_handle;
enum { NVML_OK = 0, NVML_CLOCK_SM = 1 };

typedef struct nvml_api {
    int (*init)(void);
    int (*shutdown)(void);
    int (*by_bus)(const char *bus, nvml_handle *out);
    int (*energy)(nvml_handle device, unsigned long long *millijoules);
    int (*clock)(nvml_handle device, int type, unsigned *megahertz);
    int (*reasons)(nvml_handle device, unsigned long long *bits);
} nvml_api;

static const hwnas_symbol needed[] = {
    {"nvmlInit_v2", offsetof(nvml_api, init)},
    {"nvmlShutdown", offsetof(nvml_api, shutdown)},
    {"nvmlDeviceGetHandleByPciBusId_v2", offsetof(nvml_api, by_bus)},
    {NULL, 0},
};
/* Drivers have them or not; of two for the same the first that is there. */
static const hwnas_symbol optional[] = {
    {"nvmlDeviceGetTotalEnergyConsumption", offsetof(nvml_api, energy)},
    {"nvmlDeviceGetClockInfo", offsetof(nvml_api, clock)},
    {"nvmlDeviceGetCurrentClocksEventReasons", offsetof(nvml_api, reasons)},
    {"nvmlDeviceGetCurrentClocksThrottleReasons", offsetof(nvml_api, reasons)},
    {NULL, 0},
};

struct hwnas_nvml {
    nvml_api api;
    nvml_handle device;
};

static void find_optional(nvml_api *api, void *library)
{
    for (const hwnas_symbol *s = optional; s->name; s++) {
        void *known, *found = dlsym(library, s->name);
        memcpy(&known, (char *)api + s->at, sizeof known);
        if (!known && found)
            memcpy((char *)api + s->at, &found, sizeof found);
    }
}

hwnas_nvml *hwnas_nvml_open(const char *bus)
{
    hwnas_nvml *nvml = hwnas_alloc(sizeof *nvml);
    void *library;
    if (hwnas_library_open(&library, "libnvidia-ml.so.1", "which tells energy") == HWNAS_OK &&
        hwnas_library_symbols(&nvml->api, needed, library, "libnvidia-ml.so.1") == HWNAS_OK &&
        nvml->api.init() == NVML_OK) {
        find_optional(&nvml->api, library);
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
    if (!nvml || !nvml->api.energy || nvml->api.energy(nvml->device, &millijoules) != NVML_OK)
        return NAN;
    return (double)millijoules * 1e-3;
}

double hwnas_nvml_hertz(const hwnas_nvml *nvml)
{
    unsigned megahertz;
    if (!nvml || !nvml->api.clock ||
        nvml->api.clock(nvml->device, NVML_CLOCK_SM, &megahertz) != NVML_OK)
        return NAN;
    return 1e6 * megahertz;
}

unsigned hwnas_nvml_throttles(const hwnas_nvml *nvml)
{
    static const struct {
        unsigned long long bit;
        hwnas_throttle throttle;
    } rows[] = {
        {0x04, HWNAS_THROTTLE_POWER}, {0x08, HWNAS_THROTTLE_HARDWARE}, {0x20, HWNAS_THROTTLE_HEAT},
        {0x40, HWNAS_THROTTLE_HEAT},  {0x80, HWNAS_THROTTLE_BRAKE},
    };
    unsigned long long bits;
    unsigned set = 0;
    if (!nvml || !nvml->api.reasons || nvml->api.reasons(nvml->device, &bits) != NVML_OK)
        return 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (bits & rows[i].bit)
            set |= rows[i].throttle;
    /* The hardware's bit is set beside those that say why. */
    const bool is_told = set & (HWNAS_THROTTLE_HEAT | HWNAS_THROTTLE_BRAKE);
    return is_told ? set & ~(unsigned)HWNAS_THROTTLE_HARDWARE : set;
}
