/* network_export.c: networks of hwnas.h as files for others. */
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/c_locale.h"
#include "base/file.h"
#include "base/sized_options.h"
#include "base/str.h"
#include "export/exporter.h"
#include "onnx/onnx.h"
#include "predict/predict.h"
#include "study/job_data.h"
#include "study/write_network.h"

/* A module, and its weights beside it. */
static hwnas_status write_module(char **note, const hwnas_graph *graph, const char *path)
{
    char *weights = NULL;
    TRY(hwnas_export_graph(path, &weights, graph));
    *note = hwnas_printf("the weights are in %s", weights);
    free(weights);
    return HWNAS_OK;
}

/* The graph of a file is all that there is of it. */
static hwnas_status write_graph(char **note, const hwnas_graph *graph, const char *path,
                                const char *format, const hwnas_export_options *options)
{
    const hwnas_exec_options how = {.precision = options->precision};
    if (options->precision != HWNAS_F32)
        return hwnas_graph_write_folded(path, graph, &how);
    if (!strcmp(format, "onnx"))
        return hwnas_onnx_write_file(path, graph);
    if (!strcmp(format, "pytorch"))
        return write_module(note, graph, path);
    return hwnas_hint(hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                                 "a network of an ONNX file is not written as '%s'", format),
                      "only as 'onnx' or 'pytorch'");
}

static hwnas_status write_network(char **note, const hwnas_network *network, const char *path,
                                  const char *format, const hwnas_export_options *options)
{
    hwnas_network_file file = {.path = path,
                               .format = format,
                               .precision =
                                   options->as_measured ? network->measured : options->precision,
                               .batch = network->batch,
                               .layers = options->as_measured ? network->layers : NULL,
                               .data = network->data ? &network->data->mix : NULL,
                               .is_folded = options->is_folded};
    hwnas_predictor *judge = NULL;
    if (strcmp(format, "yaml"))
        TRY(hwnas_api_open_judge(&judge, network));
    if (judge)
        file.samples = hwnas_predictor_samples_of(judge);
    const hwnas_status status = hwnas_network_write(&file, network->arch);
    char *what = status == HWNAS_OK ? hwnas_network_file_note(&file) : NULL;
    if (what && *what)
        *note = hwnas_printf("%s %s", path, what);
    free(what);
    hwnas_predictor_free(judge);
    return status;
}

hwnas_status hwnas_network_export(const hwnas_network *network, const char *path,
                                  const char *format, const hwnas_export_options *given)
{
    IN_C_LOCALE;
    hwnas_export_options options;
    char *note = NULL;
    TRY(TAKE_OPTIONS(&options, given));
    const bool is_plain = options.precision == HWNAS_F32 && !options.is_folded;
    const bool packs = hwnas_precision_weight_bits(options.precision) > 0;
    if ((!is_plain && strcmp(format, "onnx")) || (!is_plain && !packs && !network->arch) ||
        (options.is_folded && !network->arch))
        return hwnas_fail(HWNAS_E_USAGE, NULL,
                          "is_folded and a precision go with the format 'onnx' of a space's "
                          "network; HWNAS_W8 and HWNAS_W4 with that of any");
    if (options.precision != HWNAS_F32 && options.precision != HWNAS_S8 && !packs)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "a file is in f32, s8, w8 or w4, not in %s",
                          hwnas_precision_name(options.precision));
    TRY(hwnas_file_check_output(path, network->source));
    TRY(network->arch ? write_network(&note, network, path, format, &options)
                      : write_graph(&note, network->graph, path, format, &options));
    if (options.note)
        *options.note = note;
    else
        free(note);
    return HWNAS_OK;
}
