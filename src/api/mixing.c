/* mixing.c: hwnas_network_mix(): the layers of a network that are worth it in 8-bit integers. */
#include <hwnas/data.h>

#include <math.h>

#include "api/api.h"
#include "api/report_handle.h"
#include "base/c_locale.h"
#include "base/sized_options.h"
#include "onnx/onnx.h"
#include "report/mix_report.h"

static hwnas_status check(const hwnas_mix_options *how, const char *path)
{
    if (!path)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "a file to write is missing");
    if (isnan(how->max_error))
        return hwnas_fail(HWNAS_E_USAGE, NULL, "the limit on the error is not a number");
    if (isnan(how->max_loss))
        return hwnas_fail(HWNAS_E_USAGE, NULL, "the limit on the loss is not a number");
    return HWNAS_OK;
}

static void write_text(hwnas_str *out, const void *found)
{
    hwnas_mix_text(out, found);
}

static json_t *to_json(const void *found)
{
    return hwnas_mix_json(found);
}

static void free_found(void *found)
{
    hwnas_mix_report_free(found);
}

hwnas_status hwnas_network_mix(hwnas_report **out, const hwnas_network *network,
                               hwnas_dataset *data, const char *path,
                               const hwnas_network_mix_options *given)
{
    IN_C_LOCALE;
    hwnas_status status = HWNAS_OK;
    static const hwnas_report_kind kind = {.text = write_text, .json = to_json, .free = free_found};
    static const hwnas_network_mix_options defaults = HWNAS_NETWORK_MIX_OPTIONS_INIT;
    hwnas_network_mix_options o;
    TRY(TAKE_OPTIONS(&o, given ? given : &defaults));
    hwnas_mix_samples samples = {0};
    hwnas_graph *recovered = NULL;
    hwnas_mix_report *found = hwnas_alloc(sizeof *found);
    hwnas_mix_options how = {.max_error = o.max_error < 0 ? HWNAS_MIX_MAX_ERROR : o.max_error,
                             .max_loss = o.max_loss < 0 ? HWNAS_MIX_MAX_LOSS : o.max_loss,
                             .takes_bf16 = o.mixing == HWNAS_MIXED_BF16,
                             .threads = o.threads,
                             .seconds = o.seconds,
                             .stop = o.cancel,
                             .progress = o.progress,
                             .context = o.context};
    hwnas_api_use_runner();
    TRY_OUT(check(&how, path));
    TRY_OUT(hwnas_api_recover(&recovered, network));
    if (data) {
        TRY_OUT(hwnas_mix_samples_check_loss(data, o.max_loss));
        TRY_OUT(hwnas_mix_samples_read(&samples, network->graph, network->name, network->batch,
                                       data, o.calibrate));
        how.samples = &samples;
        if (samples.n_labels && o.max_error < 0)
            how.max_error = INFINITY;
    }
    found->n_samples = samples.n;
    found->n_held_out = samples.n_held_out;
    found->metric = hwnas_mix_samples_metric(&samples);
    found->max_loss = samples.n_labels ? how.max_loss : NAN;
    found->model = hwnas_strdup(network->name);
    found->file = hwnas_strdup(path);
    found->batch = network->batch;
    found->threads = o.threads;
    found->max_error = how.max_error;
    TRY_OUT(hwnas_mix_choose(&found->mix, recovered ? recovered : network->graph, &how));
    TRY_OUT(hwnas_onnx_write_file(path, found->mix.graph));
    *out = hwnas_report_new(&kind, found);
    if (found->mix.is_unstable)
        hwnas_report_add_note(*out, "the machine was disturbed while they were measured");
    if (found->mix.ways[found->mix.chosen].floats != HWNAS_F32)
        hwnas_report_add_note(*out, "the file is in f32: --dtype bf16 of profile, run and evaluate "
                                    "computes it in bf16");
    if (!data)
        hwnas_report_add_note(*out,
                              "ranges and errors are of random inputs: --data FILE has yours");
    hwnas_report_add_file(*out, path, "");
    found = NULL;
out:
    hwnas_mix_samples_done(&samples);
    hwnas_graph_free(recovered);
    hwnas_mix_report_free(found);
    return status;
}
