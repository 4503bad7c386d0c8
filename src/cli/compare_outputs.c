#include "cli/compare_outputs.h"

#include <float.h>

/* A list whose entries are for the two sides: one for both, or one for each. */
static hwnas_status check_sides(const char *option, size_t n, size_t most)
{
    if (n <= most)
        return HWNAS_OK;
    return hwnas_hint(
        hwnas_fail(HWNAS_E_USAGE, NULL, "--outputs takes %zu %s at most, not %zu", most, option, n),
        "--device ref,cpu --dtype f32,bf16: of the first model and of the second");
}

static hwnas_status check(const hwnas_profile_options *models)
{
    if (models->n_models < 1 || models->n_models > 2)
        return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL,
                                     "--outputs compares one model or two, not %zu",
                                     models->n_models),
                          "hwnas compare --outputs a.onnx b.onnx");
    if (models->mixings)
        return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "--outputs knows no mixed precision"),
                          "hwnas export MODEL --dtype mixed writes a file, which it compares");
    TRY(check_sides("devices", models->n_devices, 2));
    TRY(check_sides("dtypes", models->n_precisions, 2));
    TRY(check_sides("batch size", models->n_batches, 1));
    return check_sides("number of threads", models->n_threads, 1);
}

static void take_options(hwnas_outputs_options *out, const hwnas_profile_options *models,
                         double tolerance)
{
    for (size_t s = 0; s < 2; s++) {
        if (models->n_devices)
            out->devices[s] = models->devices[s < models->n_devices ? s : 0];
        if (models->n_precisions)
            out->precisions[s] = models->precisions[s < models->n_precisions ? s : 0];
    }
    /* In another precision than the one that is compared with, where one alone is said of one
     * model. */
    if (models->n_models == 1 && models->n_precisions == 1)
        out->precisions[0] = HWNAS_F32;
    if (models->n_models == 1 && models->n_devices == 1)
        out->devices[0] = NULL;
    if (models->n_threads && models->threads[0] != HWNAS_THREADS_ALL)
        out->threads = models->threads[0];
    if (tolerance >= 0)
        out->tolerance =
            tolerance > 0 ? tolerance : DBL_MIN; /* the library takes 0 for its default */
    out->cancel = hwnas_stop_on_signals();
}

hwnas_status hwnas_compare_outputs_run(hwnas_profile_options *models, hwnas_sweep_lists *lists,
                                       const hwnas_data_arguments *data, double tolerance,
                                       hwnas_format format)
{
    hwnas_status status = HWNAS_OK;
    hwnas_network *networks[2] = {NULL};
    hwnas_dataset *samples = NULL;
    hwnas_report *report;
    hwnas_network_options network = HWNAS_NETWORK_OPTIONS_INIT;
    hwnas_outputs_options options = HWNAS_OUTPUTS_OPTIONS_INIT;
    TRY_OUT(hwnas_sweep_read(models, lists));
    TRY_OUT(check(models));
    network.batch = models->n_batches ? models->batches[0] : 1;
    network.takes_own_batch = !models->n_batches;
    network.shape = models->shape;
    for (size_t i = 0; i < models->n_models; i++)
        TRY_OUT(hwnas_network_open(&networks[i], models->models[i], models->code, &network));
    if (data->files.n)
        TRY_OUT(hwnas_data_arguments_open(&samples, networks[0], data, true));
    take_options(&options, models, tolerance);
    TRY_OUT(hwnas_compare_outputs(&report, networks[0], networks[1], samples, &options));
    status = hwnas_print_report(report, format);
out:
    hwnas_dataset_close(samples);
    for (size_t i = 0; i < 2; i++)
        hwnas_network_close(networks[i]);
    return status;
}
