/* gpu.c: reads descriptions of GPUs, and checks what cuDNN does not. */
#include "device/cudnn/gpu.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"

enum { LARGEST_FILE = 1 << 16 };

/* What cuDNN 9.19 asks for, each of it: a number, a text, or three numbers. */
static const struct key {
    const char *name;
    json_type type;
} keys[] = {
    {"cudaDeviceId", JSON_INTEGER},
    {"deviceName", JSON_STRING},
    {"deviceVer", JSON_INTEGER},
    {"driverVer", JSON_INTEGER},
    {"multiProcessorCount", JSON_INTEGER},
    {"warpSize", JSON_INTEGER},
    {"maxGridSize", JSON_ARRAY},
    {"maxBlockSize", JSON_ARRAY},
    {"maxThreadsPerBlock", JSON_INTEGER},
    {"maxThreadsPerSM", JSON_INTEGER},
    {"maxCtasPerSM", JSON_INTEGER},
    {"regsPerBlock", JSON_INTEGER},
    {"maxRegistersPerSM", JSON_INTEGER},
    {"maxSharedMemoryPerBlock", JSON_INTEGER},
    {"maxSharedMemoryPerBlockOptin", JSON_INTEGER},
    {"reservedSharedMemoryPerBlock", JSON_INTEGER},
    {"totalGlobalMem", JSON_INTEGER},
    {"l2CacheSize", JSON_INTEGER},
    {"smClockRateKHz", JSON_INTEGER},
    {"memClockRateKHz", JSON_INTEGER},
    {"supportCoopLaunch", JSON_INTEGER},
    {"isTccDriver", JSON_INTEGER},
    {"pciDeviceId", JSON_INTEGER},
};

static hwnas_status check(const json_t *properties, const hwnas_place *place)
{
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *value = json_object_get(properties, keys[i].name);
        if (!value)
            return hwnas_fail(HWNAS_E_INPUT, place, "the description of the GPU lacks '%s'",
                              keys[i].name);
        if (json_typeof(value) != keys[i].type ||
            (json_is_array(value) && json_array_size(value) != 3) ||
            (json_is_integer(value) && json_integer_value(value) < 0))
            return hwnas_fail(HWNAS_E_INPUT, place, "'%s' is not what it should be",
                              keys[i].name);
    }
    return HWNAS_OK;
}

static json_int_t number(const json_t *properties, const char *key)
{
    return json_integer_value(json_object_get(properties, key));
}

static hwnas_status parse(hwnas_gpu *out, const char *text, const char *file)
{
    json_error_t error;
    json_t *root = json_loads(text, 0, &error);
    hwnas_place place = {.file = file};
    if (!root) {
        place.line = error.line;
        place.column = error.column;
        return hwnas_fail(HWNAS_E_INPUT, &place, "this is no JSON: %s", error.text);
    }
    const char *format = json_string_value(json_object_get(root, "format"));
    const json_t *properties = json_object_get(root, "cudnn");
    hwnas_status status =
        format && !strcmp(format, "hwnas.gpu")
            ? check(properties, &place)
            : hwnas_fail(HWNAS_E_INPUT, &place, "this is not a description of a GPU (hwnas.gpu)");
    if (status == HWNAS_OK) {
        hwnas_gpu gpu = {.sm = (int)number(properties, "deviceVer") / 10,
                         .multiprocessors = (int)number(properties, "multiProcessorCount"),
                         .memory_bytes = (size_t)number(properties, "totalGlobalMem"),
                         .cudnn = json_dumps(properties, JSON_COMPACT)};
        snprintf(gpu.name, sizeof gpu.name, "%s",
                 json_string_value(json_object_get(properties, "deviceName")));
        *out = gpu;
    }
    json_decref(root);
    return status;
}

hwnas_status hwnas_gpu_read(hwnas_gpu *out, const char *name)
{
    char *file = NULL, *text = NULL;
    hwnas_status status = hwnas_file_find(&file, name, "gpus", ".json");
    if (status == HWNAS_OK)
        status = hwnas_file_read_text(&text, NULL, file, LARGEST_FILE);
    if (status == HWNAS_OK)
        status = parse(out, text, file);
    free(text);
    free(file);
    return status;
}

void hwnas_gpu_done(hwnas_gpu *gpu)
{
    free(gpu->cudnn);
}
