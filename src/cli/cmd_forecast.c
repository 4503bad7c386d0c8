/* forecast: what a device makes of a model: its steps and its memory. */
#include <hwnas/profile.h>

#include "cli/cli.h"

static const hwnas_usage usage = {
    .synopsis = "forecast MODEL",
    .summary = "Compiles a model for a device and tells the steps and the memory; runs nothing.",
    .notes =
        "MODEL is an ONNX file, a YAML file, or the name of a space or of a network of the zoo.\n"
        "hwnas forecast resnet50 --device cuda-dry:h200 --batch 32 --dtype f16\n"
        "hwnas forecast vit_b16 --device cuda-dry:l4 --steps",
    .min_arguments = 1,
    .max_arguments = 1};

hwnas_status hwnas_cmd_forecast(int argc, char **argv)
{
    hwnas_forecast_options forecast = HWNAS_FORECAST_OPTIONS_INIT;
    hwnas_network_options network_options = HWNAS_NETWORK_OPTIONS_INIT;
    hwnas_network *network;
    hwnas_report *report;
    const char *model, *code = NULL, *precision = "f32";
    long batch = 1;
    bool as_json = false, done;
    int n;
    const hwnas_option options[] = {
        {"arch", 'a', HWNAS_OPTION_TEXT, &code, "CODE", "which network of a space"},
        {"device", 'd', HWNAS_OPTION_TEXT, &forecast.device, "DEVICE", "for what (cuda-dry:h200)"},
        {"batch", 'b', HWNAS_OPTION_INT, &batch, "N", "batch size (1)"},
        {"dtype", 0, HWNAS_OPTION_TEXT, &precision, "TYPE", "f32, tf32, bf16 or f16 (f32)"},
        {"steps", 's', HWNAS_OPTION_FLAG, &forecast.with_steps, NULL, "list the steps"},
        {"json", 0, HWNAS_OPTION_FLAG, &as_json, NULL, "one JSON object"},
        {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, &model, &n, &done));
    if (done)
        return HWNAS_OK;
    if (batch < 1 || batch > 1 << 20)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--batch is 1 to %d", 1 << 20);
    TRY(hwnas_precision_find(&forecast.precision, precision));
    network_options.batch = (int)batch;
    TRY(hwnas_network_open(&network, model, code, &network_options));
    hwnas_status status = hwnas_network_forecast(&report, network, &forecast);
    if (status == HWNAS_OK)
        status = hwnas_print_report(report, as_json ? HWNAS_JSON : HWNAS_TEXT);
    hwnas_network_close(network);
    return status;
}
