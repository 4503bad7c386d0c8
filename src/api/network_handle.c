/* network_handle.c: networks in hwnas.h, and running them in this process. */
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/report_handle.h"
#include "base/c_locale.h"
#include "base/sized_options.h"
#include "base/str.h"
#include "data/batches.h"
#include "device/device.h"
#include "derive/derive.h"
#include "inherit/samples.h"
#include "onnx/onnx.h"
#include "predict/predict.h"
#include "profile/model_load.h"
#include "profile/shapes.h"
#include "report/dot.h"
#include "report/graph_table.h"
#include "study/evaluate.h"
#include "study/job_data.h"
#include "study/phases.h"
#include "study/settings.h"
#include "study/summary.h"
#include "study/write_network.h"

enum { MAX_BATCH = 1 << 20 };

static hwnas_status read_options(hwnas_network_options *out, const hwnas_network_options *given)
{
    TRY(TAKE_OPTIONS(out, given));
    if (!out->batch)
        out->batch = 1;
    if (out->batch < 1 || out->batch > MAX_BATCH)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "a batch of %d; 1 to %d are possible", out->batch,
                          MAX_BATCH);
    return HWNAS_OK;
}

/* Takes all but `name`. */
static hwnas_network *make(const char *name, hwnas_space *own_space, hwnas_arch *arch,
                           hwnas_graph *graph, int batch)
{
    hwnas_network *n = hwnas_alloc(sizeof *n);
    *n = (hwnas_network){.own_space = own_space,
                         .arch = arch,
                         .graph = graph,
                         .name = hwnas_strdup(name),
                         .source = hwnas_strdup(name),
                         .code = arch ? hwnas_arch_code(arch) : NULL,
                         .batch = batch,
                         .measured = HWNAS_F32,
                         .digest = hwnas_graph_digest(graph),
                         .inputs = hwnas_graph_arrays(graph, graph->n_inputs, graph->inputs),
                         .outputs = hwnas_graph_arrays(graph, graph->n_outputs, graph->outputs)};
    hwnas_graph_costs(&n->costs, graph);
    return n;
}

hwnas_network *hwnas_api_network_of(const char *name, hwnas_graph *graph, int batch)
{
    return make(name, NULL, NULL, graph, batch);
}

/* The batch of an ONNX file is that of its first input. */
static int own_batch(const hwnas_graph *graph)
{
    const hwnas_tensor *input = graph->n_inputs ? &graph->tensors[graph->inputs[0]] : NULL;
    return input && input->rank && input->dims[0] <= MAX_BATCH ? (int)input->dims[0] : 1;
}

/* `options` gets the batch that the network has. */
static hwnas_status load_onnx(hwnas_graph **out, hwnas_network_options *options, const char *name,
                              const char *code)
{
    hwnas_status status = HWNAS_OK;
    hwnas_shape_set sets[HWNAS_SHAPE_VARIANTS] = {{0}};
    hwnas_onnx_batch own;
    size_t n = 0;
    hwnas_arena *arena = hwnas_arena_new();
    size_t n_samples;
    const hwnas_onnx_sample *samples =
        hwnas_api_sample_shapes(&n_samples, arena, options->n_files, options->files);
    if (options->shape)
        TRY_OUT(hwnas_shapes_parse(sets, &n, arena, options->shape));
    if (n > 1) {
        status = hwnas_fail(HWNAS_E_USAGE, NULL, "a network has one shape: '%s' is several",
                            options->shape);
        goto out;
    }
    if (options->takes_own_batch && !code) {
        const hwnas_onnx_shapes shapes = {.batch = options->batch,
                                          .n = sets[0].n,
                                          .list = sets[0].list,
                                          .n_samples = n_samples,
                                          .samples = samples};
        TRY_OUT(hwnas_onnx_load_shaped(out, &own, name, &shapes, NULL));
        options->batch = own_batch(*out);
    } else {
        const hwnas_model_request request = {.name = name,
                                             .code = code,
                                             .batch = options->batch,
                                             .set = &sets[0],
                                             .n_samples = n_samples,
                                             .samples = samples};
        TRY_OUT(hwnas_model_load_shaped(out, &options->batch, &request, NULL));
    }
out:
    hwnas_arena_free(arena);
    return status;
}

hwnas_status hwnas_network_open(hwnas_network **out, const char *name, const char *code,
                                const hwnas_network_options *given)
{
    IN_C_LOCALE;
    hwnas_network_options options;
    hwnas_space *space = NULL;
    hwnas_arch *arch = NULL;
    hwnas_graph *graph = NULL;
    TRY(read_options(&options, given));
    if (hwnas_ends_with(name, ".onnx")) {
        TRY(load_onnx(&graph, &options, name, code));
        hwnas_onnx_tell_doubts(graph, name);
    } else if (options.shape) {
        return hwnas_fail(HWNAS_E_USAGE, NULL, "%s is no ONNX file: a shape has no meaning", name);
    } else {
        TRY(hwnas_model_pick(&space, &arch, name, code));
        const hwnas_status status = hwnas_graph_build_trained(&graph, arch, options.batch);
        if (status != HWNAS_OK) {
            hwnas_arch_free(arch);
            hwnas_space_free(space);
            return status;
        }
    }
    *out = make(name, space, arch, graph, options.batch);
    return HWNAS_OK;
}

hwnas_status hwnas_network_open_in(hwnas_network **out, const hwnas_space *space, const char *code,
                                   const hwnas_network_options *given)
{
    IN_C_LOCALE;
    hwnas_network_options options;
    hwnas_arch *arch;
    hwnas_graph *graph = NULL;
    TRY(read_options(&options, given));
    if (!code && hwnas_space_count_up_to(space, 1) == 1)
        arch = hwnas_arch_first(space);
    else
        TRY(hwnas_arch_parse(&arch, space, code ? code : ""));
    const hwnas_status status = hwnas_graph_build_trained(&graph, arch, options.batch);
    if (status == HWNAS_OK)
        *out = make(space->path, NULL, arch, graph, options.batch);
    else
        hwnas_arch_free(arch);
    return status;
}

/* The trial of that number, or the winner. */
static hwnas_status find_trial(const hwnas_trial **out, const hwnas_summary *summary, int64_t trial)
{
    const hwnas_place place = {.file = summary->study};
    if (trial < 0)
        trial = hwnas_summary_winner(summary);
    if (trial < 0) {
        TRY(hwnas_evidence_check(&summary->evidence));
        return hwnas_fail(HWNAS_E_INFEASIBLE, &place,
                          "no trial of the study meets the constraints");
    }
    if ((uint64_t)trial >= summary->n_trials)
        return hwnas_fail(HWNAS_E_NOT_FOUND, &place, "the study has %zu trials, none is %lld",
                          summary->n_trials, (long long)trial);
    *out = &summary->trials[trial];
    return HWNAS_OK;
}

static bool has_mixes(const hwnas_trial *trial)
{
    json_t *mixes = hwnas_mixes_of(trial);
    const bool has_some = json_object_size(mixes) > 0;
    json_decref(mixes);
    return has_some;
}

/* Of the trial in the phase in which its network is this one, where the search had phases. */
static hwnas_status take_layers(hwnas_network *network, const hwnas_trial *trial,
                                const hwnas_job *job, const char *space)
{
    hwnas_status status = HWNAS_OK;
    hwnas_job with_space = *job;
    hwnas_job_phases phases = {0};
    const hwnas_job_phase *plain;
    network->data = hwnas_alloc(sizeof *network->data);
    TRY(hwnas_job_data_read(network->data, job));
    network->layers = hwnas_trial_layers(&network->measured, trial, job, -1, NULL);
    if (network->layers || !has_mixes(trial))
        return HWNAS_OK;
    with_space.space = space;
    TRY_OUT(hwnas_phases_open(&phases, &with_space, network->own_space));
    TRY_OUT(hwnas_phases_find_plain(&plain, &phases, network->arch));
    if (plain)
        network->layers = hwnas_trial_layers(&network->measured, trial, job, -1, plain->name);
out:
    hwnas_phases_close(&phases);
    return status;
}

hwnas_status hwnas_network_open_trial(hwnas_network **out, const char *study, int64_t number,
                                      const hwnas_network_options *given)
{
    IN_C_LOCALE;
    hwnas_status status = HWNAS_OK;
    hwnas_network_options options;
    hwnas_network *network = NULL;
    hwnas_store *store = NULL;
    hwnas_summary *summary = NULL;
    const hwnas_trial *trial = NULL;
    char *code = NULL;
    TRY(TAKE_OPTIONS(&options, given));
    TRY_OUT(hwnas_store_open(&store, study, HWNAS_STORE_READ));
    TRY_OUT(hwnas_summary_load(&summary, store, study));
    TRY_OUT(find_trial(&trial, summary, number));
    code = hwnas_strdup(trial->code);
    const hwnas_settings settings = hwnas_settings_cut(code, &summary->job);
    if (!options.batch)
        options.batch = settings.batch;
    const char *space = json_string_value(json_object_get(summary->identity, "space"));
    const char *judge = json_string_value(json_object_get(summary->identity, "accuracy"));
    TRY_OUT(hwnas_network_open(&network, space, code, &options));
    network->measured = hwnas_trial_precision(&summary->job, settings, -1);
    TRY_OUT(take_layers(network, trial, &summary->job, space));
    free(network->source);
    network->source = hwnas_strdup(study);
    if (judge && hwnas_starts_with(judge, "samples:"))
        network->judge = hwnas_strdup(judge);
    *out = network;
    network = NULL;
out:
    hwnas_network_close(network);
    free(code);
    hwnas_summary_free(summary);
    hwnas_store_close(store);
    return status;
}

hwnas_status hwnas_api_open_judge(hwnas_predictor **out, const hwnas_network *network)
{
    *out = NULL;
    if (!network->judge)
        return HWNAS_OK;
    const hwnas_status status = hwnas_predictor_load(out, network->judge, network->own_space);
    if (status == HWNAS_OK)
        return HWNAS_OK;
    return hwnas_hint(hwnas_context(status, "the samples by which the weights of %s were recovered",
                                    network->source),
                      "put them where they were, or search again; --format yaml needs none");
}

hwnas_status hwnas_api_recover(hwnas_graph **out, const hwnas_network *network)
{
    hwnas_predictor *judge;
    hwnas_status status = HWNAS_OK;
    *out = NULL;
    TRY(hwnas_api_open_judge(&judge, network));
    if (judge)
        status = hwnas_samples_build(out, hwnas_predictor_samples_of(judge), network->arch,
                                     network->batch);
    hwnas_predictor_free(judge);
    return status;
}

void hwnas_network_close(hwnas_network *network)
{
    if (!network)
        return;
    free(network->inputs);
    free(network->outputs);
    free(network->code);
    free(network->name);
    free(network->source);
    free(network->judge);
    free(network->layers);
    if (network->data)
        hwnas_job_data_done(network->data);
    free(network->data);
    hwnas_graph_free(network->graph);
    hwnas_arch_free(network->arch);
    hwnas_space_free(network->own_space);
    free(network);
}

const char *hwnas_network_code(const hwnas_network *network)
{
    return network->code;
}

const char *hwnas_network_digest(const hwnas_network *network)
{
    return network->digest.hex;
}

const hwnas_costs *hwnas_network_costs(const hwnas_network *network)
{
    return &network->costs;
}

const hwnas_array_info *hwnas_network_input(const hwnas_network *network, size_t i)
{
    return i < network->graph->n_inputs ? &network->inputs[i] : NULL;
}

const hwnas_array_info *hwnas_network_output(const hwnas_network *network, size_t i)
{
    return i < network->graph->n_outputs ? &network->outputs[i] : NULL;
}

/* ---- Its report ---- */

static void network_text(hwnas_str *out, const void *found)
{
    hwnas_graph_text(out, ((const hwnas_network *)found)->graph);
}

static void network_dot(hwnas_str *out, const void *found)
{
    hwnas_graph_dot(out, ((const hwnas_network *)found)->graph);
}

static json_t *network_json(const void *found)
{
    const hwnas_network *network = found;
    json_t *json = hwnas_graph_json(network->graph);
    if (network->code)
        json_object_set_new(json, "arch", json_string(network->code));
    return json;
}

hwnas_status hwnas_network_report(hwnas_report **out, const hwnas_network *network)
{
    static const hwnas_report_kind kind = {
        .text = network_text, .json = network_json, .dot = network_dot};
    *out = hwnas_report_new(&kind, (void *)network);
    return HWNAS_OK;
}

/* ---- Running it ---- */

hwnas_status hwnas_network_compile(hwnas_exec **out, const hwnas_network *network,
                                   hwnas_device *device, const hwnas_exec_options *given)
{
    IN_C_LOCALE;
    hwnas_exec_options options;
    hwnas_graph *deployed;
    TRY(TAKE_OPTIONS(&options, given));
    TRY(hwnas_exec_form(&deployed, network->graph, &options));
    hwnas_device_info info = {0};
    hwnas_device_describe(&info, device);
    hwnas_device_note_overflow(&info, network->graph, network->name);
    const hwnas_status status = hwnas_device_compile(out, device, deployed, &options);
    hwnas_graph_free(deployed);
    return status;
}

hwnas_status hwnas_exec_run(hwnas_exec *exec, const float *const *inputs, float *const *outputs)
{
    return exec->ops->run(exec, inputs, outputs);
}

static hwnas_status run_once(float **out, hwnas_exec *exec, const hwnas_network *network,
                             const float *const *inputs)
{
    for (size_t i = 0; i < network->graph->n_outputs; i++)
        TRY(hwnas_try_alloc((void **)&out[i], (size_t)network->outputs[i].count * sizeof **out,
                            "an output"));
    return hwnas_exec_run(exec, inputs, out);
}

hwnas_status hwnas_network_run(float **out, const hwnas_network *network, hwnas_device *device,
                               const float *const *inputs, const hwnas_exec_options *options)
{
    hwnas_exec *exec;
    const size_t n = network->graph->n_outputs;
    TRY(hwnas_network_compile(&exec, network, device, options));
    float **outputs = hwnas_alloc((n + 1) * sizeof *outputs);
    const hwnas_status status = run_once(outputs, exec, network, inputs);
    for (size_t i = 0; i < n; i++)
        if (status == HWNAS_OK)
            out[i] = outputs[i];
        else
            free(outputs[i]);
    free(outputs);
    hwnas_exec_free(exec);
    return status;
}
