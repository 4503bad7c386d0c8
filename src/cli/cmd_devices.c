#include <string.h>

#include "cli/cli.h"
#include "device/device.h"

static const hwnas_usage usage = {
    .synopsis = "devices",
    .summary = "Lists the devices that this version knows and whether they work here."};

hwnas_status hwnas_cmd_devices(int argc, char **argv)
{
    bool as_json = false, done;
    int n;
    const hwnas_option options[] = {
        {"json", 0, HWNAS_OPTION_FLAG, &as_json, NULL, "one JSON object"}, {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, NULL, &n, &done));
    if (done)
        return HWNAS_OK;
    hwnas_str text = {0};
    json_t *devices = json_array();
    for (const hwnas_device_ops *const *row = hwnas_devices; *row; row++) {
        hwnas_device_info info = {0};
        hwnas_device_options device_options = {0};
        hwnas_device *device = NULL;
        /* A device that remembers needs a file; there is nothing to open here. */
        hwnas_status status =
            (*row)->recall ? HWNAS_OK : hwnas_device_open(&device, (*row)->name, &device_options);
        if (device)
            device->ops->describe(device, &info);
        hwnas_str_addf(&text, "%-8s %s\n", (*row)->name, (*row)->help);
        if (*info.name)
            hwnas_str_addf(&text, "         %s%s%s%s%s\n", info.name, *info.library ? ", " : "",
                           info.library, *info.isa ? ", " : "", info.isa);
        if (status != HWNAS_OK)
            hwnas_str_addf(&text, "         does not work here: %s\n", hwnas_last_error()->message);
        json_array_append_new(
            devices, json_pack("{s:s, s:s, s:b, s:s, s:s, s:s, s:i}", "name", (*row)->name, "help",
                               (*row)->help, "works", status == HWNAS_OK, "description", info.name,
                               "library", info.library, "isa", info.isa, "threads", info.threads));
        hwnas_device_close(device);
    }
    if (!as_json) {
        json_decref(devices);
        return hwnas_print_text(&text);
    }
    hwnas_str_done(&text);
    return hwnas_print_json(
        json_pack("{s:s, s:i, s:o}", "format", "hwnas.devices", "version", 1, "devices", devices));
}
