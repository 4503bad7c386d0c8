/* no_ort.c: the row of `ort` in a program that was built without ONNX Runtime's header. */
#include "device/devices.h"

static hwnas_status open_none(hwnas_device **out, const char *argument,
                              const hwnas_device_options *options)
{
    (void)out, (void)argument, (void)options;
    return hwnas_hint(
        hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "this hwnas was built without ONNX Runtime's header"),
        "install libonnxruntime-dev, configure and build again");
}

const hwnas_device_ops hwnas_ort_device = {
    .abi = HWNAS_DEVICE_ABI,
    .name = "ort",
    .help = "this processor through ONNX Runtime (this program was built without)",
    .open = open_none,
    .precisions = 1U << HWNAS_F32 | 1U << HWNAS_S8 | 1U << HWNAS_W8 | 1U << HWNAS_W4,
};
