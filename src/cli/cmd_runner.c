/* runner: the part of hwnas that measures, on other machines. */
#include <hwnas/profile.h>

#include "cli/cli.h"

static hwnas_status install(int argc, char **argv)
{
    static const hwnas_usage usage = {
        .synopsis = "runner install DEVICE",
        .summary = "Puts a runner on another machine, such as a board, and asks it who it is.",
        .min_arguments = 1,
        .max_arguments = 1,
        .notes =
            "DEVICE is ssh:HOST. The runner for 64-bit Arm boards is made on this machine by\n"
            "'scripts/build-runner aarch64'. It goes into ~/.local/lib/hwnas-runner there, by ssh\n"
            "alone."};
    const char *device, *file = NULL;
    hwnas_report *report;
    bool as_json = false, done;
    int n;
    const hwnas_option options[] = {
        {"file", 0, HWNAS_OPTION_TEXT, &file, "FILE", "the packed runner (that for its machine)"},
        {"json", 0, HWNAS_OPTION_FLAG, &as_json, NULL, "one JSON object"},
        {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, &device, &n, &done));
    if (done)
        return HWNAS_OK;
    TRY(hwnas_runner_install(&report, device, file, hwnas_stop_on_signals()));
    return hwnas_print_report(report, as_json ? HWNAS_JSON : HWNAS_TEXT);
}

static const hwnas_command commands[] = {
    {"install", "put a runner on another machine", install},
    {0},
};

hwnas_status hwnas_cmd_runner(int argc, char **argv)
{
    return hwnas_dispatch("hwnas runner", "What measures, on other machines.", commands, argc,
                          argv);
}
