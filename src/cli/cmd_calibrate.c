/* calibrate: fills the table of latencies for a space, on purpose. */
#include <hwnas/profile.h>

#include "cli/cli.h"

static const hwnas_usage usage = {
    .synopsis = "calibrate SPACE",
    .summary = "Measures networks of a space for some minutes, those that teach the table of\n"
               "latencies most, so that searches can estimate the others without running them.",
    .notes = "The table is kept in $XDG_CACHE_HOME/hwnas (~/.cache/hwnas); another run goes on "
             "with it.\n"
             "hwnas calibrate ofa_mobilenet_v3 --minutes 5",
    .min_arguments = 1,
    .max_arguments = 1};

hwnas_status hwnas_cmd_calibrate(int argc, char **argv)
{
    hwnas_calibration_options calibration = HWNAS_CALIBRATION_OPTIONS_INIT;
    hwnas_space *space;
    hwnas_report *report;
    const char *name, *dtype = "f32";
    double minutes = 5;
    long threads = 1, batch = 1, seed = 0;
    bool as_json = false, done;
    int n;
    const hwnas_option options[] = {
        {"device", 'd', HWNAS_OPTION_TEXT, &calibration.device, "DEVICE", "that measures (cpu)"},
        {"minutes", 'm', HWNAS_OPTION_NUMBER, &minutes, "X", "to spend (5)"},
        {"threads", 't', HWNAS_OPTION_INT, &threads, "N", "of the device, as of the searches (1)"},
        {"batch", 'b', HWNAS_OPTION_INT, &batch, "N", "inputs of one inference (1)"},
        {"dtype", 0, HWNAS_OPTION_TEXT, &dtype, "TYPE", "f32, bf16, ... (f32)"},
        {"seed", 's', HWNAS_OPTION_INT, &seed, "N", "of the networks (0)"},
        {"json", 0, HWNAS_OPTION_FLAG, &as_json, NULL, "print a JSON object"},
        {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, &name, &n, &done));
    if (done)
        return HWNAS_OK;
    if (minutes <= 0 || batch < 1 || batch > 1 << 16 || threads > 1 << 12)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--minutes, --batch or --threads is out of range");
    TRY(hwnas_precision_find(&calibration.precision, dtype));
    calibration.threads = (int)threads;
    calibration.batch = (int)batch;
    calibration.seconds = 60 * minutes;
    calibration.seed = (uint64_t)seed;
    calibration.progress = hwnas_show_progress;
    TRY(hwnas_space_open(&space, name));
    calibration.cancel = hwnas_stop_on_signals();
    hwnas_status status = hwnas_space_calibrate(&report, space, &calibration);
    hwnas_show_progress(NULL, NULL);
    if (status == HWNAS_OK)
        status = hwnas_print_report(report, as_json ? HWNAS_JSON : HWNAS_TEXT);
    hwnas_space_close(space);
    return status;
}
