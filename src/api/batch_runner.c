#include "api/batch_runner.h"

#include <stdlib.h>
#include <string.h>

#include "data/batches.h"

int64_t hwnas_sample_count(const hwnas_array_info *array)
{
    int64_t n = 1;
    for (int i = 1; i < array->rank; i++)
        n *= array->dims[i];
    return n;
}

hwnas_status hwnas_arrays_alloc(float **out, size_t n_arrays, const hwnas_array_info *arrays,
                                int64_t n, const char *what)
{
    for (size_t i = 0; i < n_arrays; i++) {
        const double bytes =
            (double)n * (double)hwnas_sample_count(&arrays[i]) * (double)sizeof **out;
        if (bytes > (double)(INT64_MAX / 2))
            return hwnas_fail(HWNAS_E_MEMORY, NULL, "no memory for %s (%.0f MiB)", what,
                              bytes / (1 << 20));
        TRY(hwnas_try_alloc((void **)&out[i],
                            (size_t)(n * hwnas_sample_count(&arrays[i])) * sizeof **out, what));
    }
    return HWNAS_OK;
}

void hwnas_arrays_free(float **arrays, size_t n_arrays)
{
    for (size_t i = 0; arrays && i < n_arrays; i++)
        free(arrays[i]);
    free(arrays);
}

/* ---- Opening ---- */

static hwnas_status check_network(const hwnas_network *network, const hwnas_dataset *data)
{
    return hwnas_batches_check(network->graph, network->name, network->batch, data);
}

hwnas_status hwnas_calibration_take(float **out, size_t *n_batches, const hwnas_network *network,
                                    hwnas_dataset *data, int64_t calibrate)
{
    const int64_t asked = calibrate > 0 ? calibrate : HWNAS_DEFAULT_CALIBRATE;
    const int64_t there = hwnas_dataset_samples(data);
    hwnas_batches batches = {.graph = network->graph,
                             .batch = network->batch,
                             .data = data,
                             .left = asked < there ? asked : there,
                             .step = 1};
    TRY(check_network(network, data));
    return hwnas_batches_read(out, NULL, n_batches, &batches);
}

static hwnas_status compile(hwnas_batch_runner *r, hwnas_device *device, hwnas_dataset *data,
                            hwnas_precision precision, int64_t calibrate)
{
    float *samples = NULL;
    hwnas_exec_options options = HWNAS_EXEC_OPTIONS_INIT;
    options.precision = precision;
    if (precision == HWNAS_S8)
        TRY(hwnas_calibration_take(&samples, &options.n_samples, r->network, data, calibrate));
    options.samples = samples;
    const hwnas_status status = hwnas_network_compile(&r->exec, r->network, device, &options);
    free(samples);
    return status;
}

static hwnas_status open_runner(hwnas_batch_runner *r, hwnas_device *device, hwnas_dataset *data,
                                hwnas_precision precision, int64_t calibrate)
{
    const hwnas_graph *graph = r->network->graph;
    hwnas_device_info info = {0};
    hwnas_device_describe(&info, device);
    if (!info.computes)
        return hwnas_hint(hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "the device %s computes nothing",
                                     device->ops->name),
                          "cpu and ref do");
    TRY(check_network(r->network, data));
    TRY(hwnas_arrays_alloc(r->inputs, graph->n_inputs, r->network->inputs, r->batch, "a batch"));
    TRY(hwnas_arrays_alloc(r->outputs, graph->n_outputs, r->network->outputs, r->batch, "a batch"));
    return compile(r, device, data, precision, calibrate);
}

hwnas_status hwnas_batch_runner_open(hwnas_batch_runner *out, const hwnas_network *network,
                                     hwnas_device *device, hwnas_dataset *data,
                                     hwnas_precision precision, int64_t calibrate)
{
    hwnas_batch_runner r = {.network = network, .batch = network->batch};
    r.inputs = hwnas_alloc((network->graph->n_inputs + 1) * sizeof *r.inputs);
    r.outputs = hwnas_alloc((network->graph->n_outputs + 1) * sizeof *r.outputs);
    r.from = hwnas_alloc((network->graph->n_inputs + 1) * sizeof *r.from);
    r.to = hwnas_alloc((network->graph->n_outputs + 1) * sizeof *r.to);
    const hwnas_status status = open_runner(&r, device, data, precision, calibrate);
    if (status == HWNAS_OK)
        *out = r;
    else
        hwnas_batch_runner_close(&r);
    return status;
}

void hwnas_batch_runner_close(hwnas_batch_runner *runner)
{
    if (!runner->network)
        return;
    hwnas_exec_free(runner->exec);
    hwnas_arrays_free(runner->inputs, runner->network->graph->n_inputs);
    hwnas_arrays_free(runner->outputs, runner->network->graph->n_outputs);
    free(runner->from);
    free(runner->to);
}

/* ---- Running ---- */

static hwnas_status run_full(hwnas_batch_runner *r, const float *const *inputs,
                             float *const *outputs, int64_t first)
{
    const hwnas_network *n = r->network;
    for (size_t i = 0; i < n->graph->n_inputs; i++)
        r->from[i] = inputs[i] + first * hwnas_sample_count(&n->inputs[i]);
    for (size_t i = 0; i < n->graph->n_outputs; i++)
        r->to[i] = outputs[i] + first * hwnas_sample_count(&n->outputs[i]);
    return hwnas_exec_run(r->exec, r->from, r->to);
}

static hwnas_status run_rest(hwnas_batch_runner *r, const float *const *inputs,
                             float *const *outputs, int64_t first, int64_t n)
{
    const hwnas_network *network = r->network;
    for (size_t i = 0; i < network->graph->n_inputs; i++) {
        const int64_t count = hwnas_sample_count(&network->inputs[i]);
        memcpy(r->inputs[i], inputs[i] + first * count, (size_t)(n * count) * sizeof **inputs);
    }
    hwnas_batch_fill_up(r->inputs, network->graph, network->batch, n);
    TRY(hwnas_exec_run(r->exec, (const float *const *)r->inputs, r->outputs));
    for (size_t i = 0; i < network->graph->n_outputs; i++) {
        const int64_t count = hwnas_sample_count(&network->outputs[i]);
        memcpy(outputs[i] + first * count, r->outputs[i], (size_t)(n * count) * sizeof **outputs);
    }
    return HWNAS_OK;
}

hwnas_status hwnas_batch_runner_run(hwnas_batch_runner *runner, const float *const *inputs,
                                    float *const *outputs, int64_t n)
{
    int64_t first = 0;
    for (; n - first >= runner->batch; first += runner->batch)
        TRY(run_full(runner, inputs, outputs, first));
    return first < n ? run_rest(runner, inputs, outputs, first, n - first) : HWNAS_OK;
}
