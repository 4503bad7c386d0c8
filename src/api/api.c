/* api.c: the functions of hwnas.h that do something; each strings the rooms together for
 * one call. */
#define _GNU_SOURCE /* uselocale() */
#include <jansson.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <threads.h>

#include "base/str.h"
#include "export/exporter.h"
#include "graph/elaborate.h"
#include "measure/measure.h"
#include "predict/predict.h"
#include "profile/model_load.h"
#include "report/front.h"
#include "report/network.h"
#include "study/exports.h"
#include "study/study.h"

/* ---- Locale ---- */

/* strtod() and printf() follow the locale of the program that calls us, in which a number may have
 * a decimal comma; our files never have. Every public function that reads or writes numbers begins
 * with IN_C_LOCALE: it puts its thread into the locale "C" and leaves it in the one before. */
static locale_t c_locale; /* kept until the process ends */

static void make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

static locale_t enter_c_locale(void)
{
    static once_flag once = ONCE_FLAG_INIT;
    call_once(&once, make_c_locale);
    return uselocale(c_locale);
}

static void leave_c_locale(const locale_t *before)
{
    uselocale(*before);
}

#define IN_C_LOCALE                                                                                \
    __attribute__((cleanup(leave_c_locale), unused)) const locale_t before_ = enter_c_locale()

/* ---- What the functions share ---- */

/* A network by its names; NULL after a failure. */
typedef struct network {
    hwnas_space *space;
    hwnas_arch *arch;
} network;

static hwnas_status open_network(network *out, const char *space, const char *code)
{
    return hwnas_model_pick(&out->space, &out->arch, space, code);
}

static void close_network(network *n)
{
    hwnas_arch_free(n->arch);
    hwnas_space_free(n->space);
}

static hwnas_status check_batch(int batch)
{
    if (batch < 1 || batch > 1 << 20)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "a batch of %d; 1 to %d are possible", batch,
                          1 << 20);
    return HWNAS_OK;
}

/* The program that uses the library is not hwnas, so it cannot be the runner. */
static void use_installed_runner(void)
{
    hwnas_runner_use(HWNAS_BIN_DIR "/hwnas");
}

/* Gives a JSON object as text and frees it. NULL is an object that could not be made. */
static hwnas_status give_json(char **out, json_t *json)
{
    char *text = json ? json_dumps(json, JSON_INDENT(2)) : NULL;
    json_decref(json);
    if (!text) /* nothing else keeps it from being made */
        return hwnas_fail(HWNAS_E_INPUT, NULL, "a name in the answer is not UTF-8");
    *out = text;
    return HWNAS_OK;
}

/* ---- The functions ---- */

hwnas_status hwnas_search(char **out_json, const char *path, const hwnas_search_options *options)
{
    IN_C_LOCALE;
    hwnas_status status = HWNAS_OK;
    hwnas_job *job = NULL;
    hwnas_summary *summary = NULL;
    char trials[24];
    hwnas_job_flag flags[3] = {0}, *flag = flags;
    hwnas_study_options study = {.resume = options && options->resume,
                                 .stop = options ? options->stop : NULL};
    if (options && options->study)
        *flag++ = (hwnas_job_flag){"study", options->study};
    if (options && options->max_trials > 0) {
        snprintf(trials, sizeof trials, "%ld", options->max_trials);
        *flag++ = (hwnas_job_flag){"trials", trials};
    }
    use_installed_runner();
    TRY_OUT(hwnas_job_load(&job, path, flags));
    TRY_OUT(hwnas_text_check("the name of the study", job->study)); /* before the work is done */
    TRY_OUT(hwnas_job_check_exports(job));
    TRY_OUT(hwnas_study_run(&summary, job, &study));
    TRY_OUT(hwnas_job_write_exports(job, summary, NULL));
    status = give_json(out_json, hwnas_front_json(summary));
out:
    hwnas_summary_free(summary);
    hwnas_job_free(job);
    return status;
}

hwnas_status hwnas_describe(char **out_json, const char *space, const char *code, int batch)
{
    IN_C_LOCALE;
    hwnas_status status = HWNAS_OK;
    network n = {0};
    hwnas_graph *graph = NULL;
    TRY_OUT(check_batch(batch));
    TRY_OUT(open_network(&n, space, code));
    TRY_OUT(hwnas_graph_build(&graph, n.arch, batch));
    status = give_json(out_json, hwnas_network_json(graph));
out:
    hwnas_graph_free(graph);
    close_network(&n);
    return status;
}

hwnas_status hwnas_predict(double *out_mean, double *out_sd, const char *predictor,
                           const char *space, const char *code)
{
    IN_C_LOCALE;
    hwnas_status status = HWNAS_OK;
    network n = {0};
    hwnas_predictor *p = NULL;
    hwnas_estimate estimate;
    TRY_OUT(open_network(&n, space, code));
    TRY_OUT(hwnas_predictor_load(&p, predictor, n.space));
    TRY_OUT(hwnas_predictor_score(&estimate, p, (const hwnas_arch *const *)&n.arch, 1));
    *out_mean = estimate.mean;
    if (out_sd)
        *out_sd = estimate.sd;
out:
    hwnas_predictor_free(p);
    close_network(&n);
    return status;
}

hwnas_status hwnas_latency(double *out_p50, double *out_low, double *out_high, const char *device,
                           int threads, const char *space, const char *code, int batch)
{
    IN_C_LOCALE;
    hwnas_status status = HWNAS_OK;
    network n = {0};
    hwnas_graph *graph = NULL;
    hwnas_runner *runner = NULL;
    const hwnas_measure_options options = HWNAS_MEASURE_DEFAULTS;
    hwnas_measurement m;
    TRY_OUT(check_batch(batch));
    TRY_OUT(open_network(&n, space, code));
    TRY_OUT(hwnas_graph_build(&graph, n.arch, batch));
    use_installed_runner();
    TRY_OUT(hwnas_runner_open(&runner, device, threads));
    TRY_OUT(hwnas_runner_measure(&m, runner, graph, &options));
    if (out_p50)
        *out_p50 = m.p50;
    if (out_low)
        *out_low = m.p50_low;
    if (out_high)
        *out_high = m.p50_high;
out:
    hwnas_runner_close(runner);
    hwnas_graph_free(graph);
    close_network(&n);
    return status;
}

hwnas_status hwnas_write(const char *path, const char *format, const char *space, const char *code,
                         int batch)
{
    IN_C_LOCALE;
    hwnas_status status = HWNAS_OK;
    network n = {0};
    TRY_OUT(check_batch(batch));
    TRY_OUT(open_network(&n, space, code));
    TRY_OUT(hwnas_export(path, format, n.arch, batch));
out:
    close_network(&n);
    return status;
}
