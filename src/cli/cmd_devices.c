/* devices: what there is, whether it works here, and how fast it can be at most. */
#include <hwnas/profile.h>

#include "cli/cli.h"

static const hwnas_usage usage = {
    .synopsis = "devices [DEVICE]",
    .summary = "Lists the devices that this version knows, whether they work here, and what\n"
               "they can do at most; or looks at one, such as ssh:HOST.",
    .max_arguments = 1,
    .notes = "Peak and bandwidth are measured once, which takes seconds, and kept under\n"
             "$XDG_CACHE_HOME/hwnas."};

hwnas_status hwnas_cmd_devices(int argc, char **argv)
{
    hwnas_survey_options survey = HWNAS_SURVEY_OPTIONS_INIT;
    hwnas_report *report;
    bool as_json = false, done;
    int n;
    const hwnas_option options[] = {
        {"refresh", 0, HWNAS_OPTION_FLAG, &survey.refresh, NULL, "measure again"},
        {"json", 0, HWNAS_OPTION_FLAG, &as_json, NULL, "one JSON object"},
        {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, &survey.device, &n, &done));
    if (done)
        return HWNAS_OK;
    survey.cancel = hwnas_stop_on_signals();
    survey.progress = hwnas_show_progress;
    const hwnas_status status = hwnas_devices_survey(&report, &survey);
    hwnas_show_progress(NULL, NULL);
    TRY(status);
    return hwnas_print_report(report, as_json ? HWNAS_JSON : HWNAS_TEXT);
}
