/* main.c: a search on a device, with a strategy and by a predictor that hwnas does not have:
 *
 *     cc main.c device.c strategy.c predictor.c $(pkg-config --cflags --libs hwnas) -lm -o search
 *     ./search job.yaml */
#include <signal.h>
#include <stdio.h>

#include "parts.h"

static volatile sig_atomic_t cancel;

static void on_interrupt(int number)
{
    (void)number;
    cancel = 1;
}

static void tell_progress(void *context, const hwnas_search_progress *p)
{
    (void)context;
    fprintf(stderr, "\r%llu trials, %zu on the front ", (unsigned long long)p->n_done, p->n_front);
}

static int fail(void)
{
    const hwnas_error *error = hwnas_last_error();
    fprintf(stderr, "\n%s%s%s\n", error->file, *error->file ? ": " : "", error->message);
    if (*error->hint)
        fprintf(stderr, "  hint: %s\n", error->hint);
    return hwnas_status_exit_code(error->status);
}

int main(int argc, char **argv)
{
    int exit_code;
    char *front = NULL;
    hwnas_report *report;
    if (hwnas_register_device(&naive_device) != HWNAS_OK ||
        hwnas_register_strategy(&climb_strategy) != HWNAS_OK ||
        hwnas_register_predictor(&size_predictor) != HWNAS_OK)
        return fail();
    /* Measuring starts this program again, so that the child has the device, too. */
    if (hwnas_runner_main(&exit_code, argc, argv))
        return exit_code;
    if (argc != 2) {
        fprintf(stderr, "usage: %s JOB.yaml\n", argv[0]);
        return 2;
    }
    signal(SIGINT, on_interrupt);
    hwnas_search_options options = HWNAS_SEARCH_OPTIONS_INIT;
    options.cancel = &cancel;
    options.progress = tell_progress;
    if (hwnas_search(&report, argv[1], &options) != HWNAS_OK ||
        hwnas_report_write(&front, report, HWNAS_JSON) != HWNAS_OK)
        return fail();
    puts(front);
    hwnas_free(front);
    /* No network within the limits, or Ctrl-C: there is a report all the same. */
    const hwnas_status status = hwnas_report_conclude(report);
    hwnas_report_free(report);
    return status == HWNAS_OK ? 0 : fail();
}
