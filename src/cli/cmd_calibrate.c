/* calibrate: fills the table of latencies for a space, on purpose; or carries published latencies
 * over to a device. */
#include <hwnas/profile.h>

#include "cli/cli.h"

static const hwnas_usage usage = {
    .synopsis = "calibrate SPACE",
    .summary = "Measures networks of a space for some minutes, those that teach the table of\n"
               "latencies most, so that searches can estimate the others without running them.",
    .notes = "The table is kept in $XDG_CACHE_HOME/hwnas (~/.cache/hwnas); another run goes on "
             "with it. With\n"
             "--from, FILE has latencies of the space's networks on other devices; N of them are\n"
             "measured, and the others estimated from both.\n"
             "hwnas calibrate ofa_mobilenet_v3 --minutes 5\n"
             "hwnas calibrate nas_bench_201 --from published.csv -n 10 --out here.csv",
    .min_arguments = 1,
    .max_arguments = 1};

static hwnas_status carry_over(const char *name, const hwnas_calibration_options *c,
                               hwnas_transfer_options *transfer, hwnas_format format)
{
    hwnas_space *space;
    hwnas_report *report;
    transfer->device = c->device;
    transfer->threads = c->threads;
    transfer->batch = c->batch;
    transfer->precision = c->precision;
    transfer->seed = c->seed;
    transfer->progress = hwnas_show_progress;
    TRY(hwnas_space_open(&space, name));
    transfer->cancel = hwnas_stop_on_signals();
    hwnas_status status = hwnas_space_transfer(&report, space, transfer);
    hwnas_show_progress(NULL, NULL);
    if (status == HWNAS_OK)
        status = hwnas_print_report(report, format);
    hwnas_space_close(space);
    return status;
}

hwnas_status hwnas_cmd_calibrate(int argc, char **argv)
{
    hwnas_calibration_options calibration = HWNAS_CALIBRATION_OPTIONS_INIT;
    hwnas_space *space;
    hwnas_report *report;
    const char *name, *dtype = "f32";
    double minutes = 5;
    hwnas_transfer_options transfer = HWNAS_TRANSFER_OPTIONS_INIT;
    long threads = 1, batch = 1, seed = 0, networks = 10;
    bool as_json = false, done;
    int n;
    const hwnas_option options[] = {
        {"device", 'd', HWNAS_OPTION_TEXT, &calibration.device, "DEVICE", "that measures (cpu)"},
        {"minutes", 'm', HWNAS_OPTION_NUMBER, &minutes, "X", "to spend (5)"},
        {"threads", 't', HWNAS_OPTION_ALL, &threads, "N",
         "of the device, or all, as of the searches (1)"},
        {"batch", 'b', HWNAS_OPTION_INT, &batch, "N", "inputs of one inference (1)"},
        {"dtype", 0, HWNAS_OPTION_TEXT, &dtype, "TYPE", "f32, bf16, ... (f32)"},
        {"seed", 's', HWNAS_OPTION_INT, &seed, "N", "of the networks (0)"},
        {"from", 0, HWNAS_OPTION_TEXT, &transfer.from, "FILE",
         "carry over the latencies in it instead"},
        {"networks", 'n', HWNAS_OPTION_INT, &networks, "N", "with --from: to measure (10)"},
        {"out", 'o', HWNAS_OPTION_TEXT, &transfer.out, "FILE", "with --from: the estimates"},
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
    if (networks < 3 || networks > 100)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--networks must be 3 to 100");
    transfer.n = (int)networks;
    if (transfer.from)
        return carry_over(name, &calibration, &transfer, as_json ? HWNAS_JSON : HWNAS_TEXT);
    if (transfer.out)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--out needs --from FILE.csv");
    TRY(hwnas_space_open(&space, name));
    calibration.cancel = hwnas_stop_on_signals();
    hwnas_status status = hwnas_space_calibrate(&report, space, &calibration);
    hwnas_show_progress(NULL, NULL);
    if (status == HWNAS_OK)
        status = hwnas_print_report(report, as_json ? HWNAS_JSON : HWNAS_TEXT);
    hwnas_space_close(space);
    return status;
}
