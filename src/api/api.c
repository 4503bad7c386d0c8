/* api.c: what all of hwnas.h stands on. */
#include "api/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/c_locale.h"
#include "base/file.h"
#include "base/home.h"
#include "base/log.h"
#include "base/mem.h"
#include "measure/crowd.h"
#include "measure/runner.h"

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
    const bool is_called = hwnas_runner_is_called(exit_code, argc, argv);
    is_own_runner |= !is_called;
    return is_called;
}

void hwnas_api_use_runner(void)
{
    hwnas_runner_use(is_own_runner ? "/proc/self/exe" : hwnas_program_file());
}

void hwnas_api_note_crowd(const char *device, int threads, hwnas_priority priority)
{
    if (strcmp(device, "cpu") != 0)
        return;
    char *warning = hwnas_crowd_warning(threads ? threads : hwnas_device_cores(), priority);
    if (warning)
        hwnas_log(HWNAS_LOG_NOTE, "%s", warning);
    free(warning);
}

static void note_threads(const char *device, int threads)
{
    const int n_cores = hwnas_device_cores();
    if (!strcmp(device, "cpu") && threads > n_cores)
        hwnas_log(HWNAS_LOG_NOTE,
                  "%d threads on %d core%s take turns: what is measured is their scheduling",
                  threads, n_cores, n_cores == 1 ? "" : "s");
}

void hwnas_api_note_sweep(const hwnas_sweep *sweep)
{
    const int threads = hwnas_sweep_threads(sweep);
    for (int i = 0; i < sweep->n_devices; i++) {
        hwnas_api_note_crowd(sweep->devices[i], threads, sweep->options.priority);
        note_threads(sweep->devices[i], threads);
    }
}

hwnas_status hwnas_api_check_interval(double interval)
{
    return interval < 1
               ? HWNAS_OK
               : hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL,
                                       "the interval must be a share below 1, not %g", interval),
                            "0.01 is 1 %% of the median");
}

bool hwnas_api_is_space(const char *name)
{
    char *path = NULL;
    bool is_one = !strchr(name, '/') && !hwnas_file_exists(name) &&
                  (hwnas_file_find(&path, name, "search_spaces", ".yaml") == HWNAS_OK ||
                   hwnas_file_find(&path, name, "search_spaces/zoo", ".yaml") == HWNAS_OK);
    free(path);
    if (!is_one)
        hwnas_error_clear();
    return is_one;
}

/* Somebody gives the name of a space where its job is wanted. */
static hwnas_status check_is_job(const char *path)
{
    if (!path || !hwnas_api_is_space(path))
        return HWNAS_OK;
    return hwnas_hint(
        hwnas_fail(HWNAS_E_USAGE, NULL, "'%s' is the name of a space, and no job", path),
        "hwnas search --space %s --device cpu --objectives latency.p50,params; with --accuracy "
        "where there is a predictor",
        path);
}

hwnas_status hwnas_api_load_job(hwnas_job **out, const char *path, const char *study,
                                int64_t max_trials, const hwnas_job_flag *given)
{
    char trials[24];
    size_t n = 0;
    TRY(check_is_job(path));
    while (given && given[n].name)
        n++;
    hwnas_job_flag *flags = hwnas_alloc((n + 3) * sizeof *flags), *flag = flags;
    if (study)
        *flag++ = (hwnas_job_flag){"study", study};
    if (max_trials > 0) {
        snprintf(trials, sizeof trials, "%lld", (long long)max_trials);
        *flag++ = (hwnas_job_flag){"trials", trials};
    }
    if (n)
        memcpy(flag, given, n * sizeof *flag);
    const hwnas_status status = hwnas_job_load(out, path, flags);
    free(flags);
    return status;
}
