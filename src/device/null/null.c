/* null.c: a device that does nothing. What is measured on it is the harness. */
#include "device/devices.h"

#include <stdlib.h>

static hwnas_status null_open(hwnas_device **out, const char *argument,
                              const hwnas_device_options *options)
{
    (void)options;
    TRY(hwnas_device_takes_no_argument("null", argument));
    *out = hwnas_alloc(sizeof **out);
    return HWNAS_OK;
}

static void null_describe(const hwnas_device *device, hwnas_device_info *out)
{
    (void)device;
    *out = (hwnas_device_info){.name = "no device: the harness itself",
                                .library = "none",
                                .isa = "none",
                                .threads = 1,
                                .native = ~0U};
}

static void null_close(hwnas_device *device)
{
    free(device);
}

static hwnas_status null_compile(hwnas_exec **out, hwnas_device *device, const hwnas_graph *graph,
                                 const hwnas_exec_options *options)
{
    (void)graph;
    (void)options;
    *out = hwnas_alloc(sizeof **out);
    (*out)->ops = device->ops;
    return HWNAS_OK;
}

static hwnas_status null_run(hwnas_exec *exec, const float *const *inputs, float *const *outputs)
{
    (void)exec;
    (void)inputs;
    (void)outputs;
    return HWNAS_OK;
}

static void null_free_exec(hwnas_exec *exec)
{
    free(exec);
}

static size_t null_memory(const hwnas_exec *exec)
{
    (void)exec;
    return 0;
}

const hwnas_device_ops hwnas_null_device = {
    .abi = HWNAS_DEVICE_ABI,
    .name = "null",
    .help = "does nothing; measures the harness",
    .open = null_open,
    .describe = null_describe,
    .close = null_close,
    .precisions = ~0U,
    .compile = null_compile,
    .run = null_run,
    .free_exec = null_free_exec,
    .memory = null_memory,
};
