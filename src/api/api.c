/* api.c: what all of hwnas.h stands on, and the search in one call. */
#include "api/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/c_locale.h"
#include "base/sized_options.h"
#include "base/str.h"
#include "measure/measure.h"
#include "report/front.h"
#include "study/exports.h"
#include "study/study.h"

void hwnas_free(void *text)
{
    free(text);
}

hwnas_status hwnas_api_give_json(char **out, json_t *json)
{
    char *text = json ? json_dumps(json, JSON_INDENT(2)) : NULL;
    json_decref(json);
    if (!text) /* nothing else keeps it from being made */
        return hwnas_fail(HWNAS_E_INPUT, NULL, "a name in the answer is not UTF-8");
    *out = text;
    return HWNAS_OK;
}

/* The calling program began with hwnas_runner_main(). */
static bool is_own_runner;

bool hwnas_runner_main(int *exit_code, int argc, char *const *argv)
{
    if (argc != 2 || strcmp(argv[1], "runner") || !getenv("HWNAS_IS_RUNNER")) {
        is_own_runner = true;
        return false;
    }
    IN_C_LOCALE;
    const hwnas_status status = hwnas_runner_serve();
    if (status != HWNAS_OK) /* the parent reads it there */
        dprintf(STDERR_FILENO, "%s\n", hwnas_last_error()->message);
    *exit_code = hwnas_status_exit_code(status);
    return true;
}

void hwnas_api_use_runner(void)
{
    hwnas_runner_use(is_own_runner ? "/proc/self/exe" : HWNAS_BIN_DIR "/hwnas");
}

static void tell_progress(void *context, const hwnas_progress *p)
{
    const hwnas_search_options *options = context;
    const hwnas_search_progress progress = {.n_done = p->n_done,
                                            .n_failed = p->n_failed,
                                            .max_trials = p->max_trials,
                                            .n_front = p->n_front,
                                            .seconds = p->seconds,
                                            .seconds_left = p->seconds_left,
                                            .winner = p->winner ? p->winner->code : NULL,
                                            .phase = p->phase};
    options->progress(options->context, &progress);
}

hwnas_status hwnas_search(char **out_json, const char *path, const hwnas_search_options *given)
{
    IN_C_LOCALE;
    hwnas_status status = HWNAS_OK;
    hwnas_search_options options;
    hwnas_job *job = NULL;
    hwnas_summary *summary = NULL;
    char trials[24];
    hwnas_job_flag flags[3] = {0}, *flag = flags;
    TRY(TAKE_OPTIONS(&options, given));
    const hwnas_session_options study = {.resume = options.resume,
                                         .stop = options.cancel,
                                         .progress = options.progress ? tell_progress : NULL,
                                         .context = &options};
    if (options.study)
        *flag++ = (hwnas_job_flag){"study", options.study};
    if (options.max_trials > 0) {
        snprintf(trials, sizeof trials, "%lld", (long long)options.max_trials);
        *flag++ = (hwnas_job_flag){"trials", trials};
    }
    hwnas_api_use_runner();
    TRY_OUT(hwnas_job_load(&job, path, flags));
    TRY_OUT(hwnas_text_check("the name of the study", job->study)); /* before the work is done */
    TRY_OUT(hwnas_job_check_exports(job));
    TRY_OUT(hwnas_study_run(&summary, job, &study));
    TRY_OUT(hwnas_job_write_exports(job, summary, NULL));
    status = hwnas_api_give_json(out_json, hwnas_front_json(summary));
out:
    hwnas_summary_free(summary);
    hwnas_job_free(job);
    return status;
}
