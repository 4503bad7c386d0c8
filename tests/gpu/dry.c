#include "tests/gpu/dry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

hwnas_cuda_device *dry_open(const char *gpu)
{
    const hwnas_device_options options = {.threads = 1};
    hwnas_device *device = NULL;
    const hwnas_status status = hwnas_cuda_dry_ops.open(&device, gpu, &options);
    if (status == HWNAS_E_UNSUPPORTED) {
        print_message("skipped: %s\n", hwnas_last_error()->message);
        return NULL;
    }
    if (status != HWNAS_OK)
        fail_msg("%s: %s", gpu, hwnas_last_error()->message);
    device->ops = &hwnas_cuda_dry_ops;
    return (hwnas_cuda_device *)device;
}
