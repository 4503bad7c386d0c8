/* predict_onnx.c: the kind `onnx`: "onnx:FILE[#COLUMN]", a model of the user's, run by our own
 * engine. Its input is the vector of an architecture (vector.h; the layout is the one of that
 * length), its output a mean, or a mean and a standard deviation. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "device/device.h"
#include "onnx/onnx.h"
#include "predict/predict_priv.h"
#include "predict/vector.h"

#define MAX_BYTES ((size_t)256 << 20)

typedef struct onnx_predictor {
    hwnas_predictor base;
    char *path;
    hwnas_device *device;
    hwnas_exec *exec;
    hwnas_vector *vector;    /* how the input is laid out */
    size_t batch;            /* of the input */
    size_t n_outputs, width; /* of each output, for one row */
    float *input, *outputs[2];
} onnx_predictor;

static void free_onnx(hwnas_predictor *base)
{
    onnx_predictor *p = (onnx_predictor *)base;
    if (p->exec)
        p->device->ops->free_exec(p->exec);
    hwnas_device_close(p->device);
    hwnas_vector_free(p->vector);
    free(p->input);
    free(p->outputs[0]);
    free(p->outputs[1]);
    free(p->path);
    free(p);
}

static hwnas_status check_input(onnx_predictor *p, const hwnas_graph *graph)
{
    hwnas_place place = {.file = p->path};
    const hwnas_space *space = p->base.space;
    if (graph->n_inputs != 1)
        return hwnas_fail(HWNAS_E_INPUT, &place,
                          "the model has %zu inputs, a predictor has one: the architecture",
                          graph->n_inputs);
    const hwnas_tensor *input = &graph->tensors[graph->inputs[0]];
    hwnas_str lengths = {0};
    for (const hwnas_vector_layout *l = hwnas_vector_layouts; l->name; l++) {
        hwnas_vector *vector = hwnas_vector_new(l, space);
        hwnas_str_addf(&lengths, "%s%zu (%s)", lengths.n ? " or " : "", vector->n, l->name);
        if (input->rank == 2 && input->dims[1] == (int64_t)vector->n && !p->vector)
            p->vector = vector;
        else
            hwnas_vector_free(vector);
    }
    hwnas_status status = HWNAS_OK;
    if (!p->vector)
        status = hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, &place,
                       "the model's input is %s; for the space '%s' it must be batch x %s",
                       hwnas_tensor_shape(input).s, space->name, lengths.s),
            "'hwnas predictor encode %s DATA.csv' prints the vectors", space->name);
    hwnas_str_done(&lengths);
    p->batch = (size_t)input->dims[0];
    return status;
}

/* One output of one or two numbers a row, or two outputs of one. */
static hwnas_status check_outputs(onnx_predictor *p, const hwnas_graph *graph)
{
    hwnas_place place = {.file = p->path};
    const int64_t n = hwnas_tensor_count(&graph->tensors[graph->outputs[0]]);
    p->n_outputs = graph->n_outputs;
    p->width = (size_t)n / p->batch;
    bool good = p->n_outputs <= 2 && n == (int64_t)(p->width * p->batch) && p->width >= 1 &&
                p->width * p->n_outputs <= 2;
    if (good && p->n_outputs == 2)
        good = hwnas_tensor_count(&graph->tensors[graph->outputs[1]]) == n;
    if (good)
        return HWNAS_OK;
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place,
                                 "the model has %zu output%s, the first %s for a batch of %zu",
                                 p->n_outputs, p->n_outputs == 1 ? "" : "s",
                                 hwnas_tensor_shape(&graph->tensors[graph->outputs[0]]).s,
                                 p->batch),
                      "a predictor gives a mean for each row, or a mean and a standard deviation");
}

/* On oneDNN, or where that has not all of the model, by plain loops. */
static hwnas_status compile(onnx_predictor *p, const hwnas_graph *graph)
{
    hwnas_status status = HWNAS_E_UNSUPPORTED;
    const hwnas_device_options options = {.threads = 1};
    static const char *const devices[] = {"cpu", "ref"};
    for (size_t i = 0; i < 2 && status == HWNAS_E_UNSUPPORTED; i++) {
        hwnas_device_close(p->device);
        p->device = NULL;
        TRY(hwnas_device_open(&p->device, devices[i], &options));
        status = hwnas_device_compile(&p->exec, p->device, graph, NULL);
    }
    return status;
}

static hwnas_status load(onnx_predictor *p)
{
    hwnas_status status = HWNAS_OK;
    char *bytes = NULL;
    size_t length;
    hwnas_graph *graph = NULL, *folded = NULL;
    void *buffer = NULL;
    TRY_OUT(hwnas_file_read(&bytes, &length, p->path, MAX_BYTES));
    TRY_OUT(hwnas_onnx_read(&graph, p->path, bytes, length));
    TRY_OUT(check_input(p, graph));
    TRY_OUT(check_outputs(p, graph));
    TRY_OUT(hwnas_graph_fold(&folded, graph));
    TRY_OUT(compile(p, folded));
    TRY_OUT(
        hwnas_try_alloc(&buffer, p->batch * p->vector->n * sizeof *p->input, "a batch of vectors"));
    p->input = buffer;
    for (size_t i = 0; i < p->n_outputs; i++)
        p->outputs[i] = hwnas_alloc(p->batch * p->width * sizeof *p->outputs[i]);
out:
    if (status != HWNAS_OK) {
        hwnas_place place = {.file = p->path};
        hwnas_fail_at(status, &place);
    }
    hwnas_graph_free(folded);
    hwnas_graph_free(graph);
    free(bytes);
    return status;
}

static hwnas_status open_onnx(hwnas_predictor **out, const char *rest, const hwnas_space *space)
{
    const char *hash = strrchr(rest, '#');
    if (hash == rest || !*rest)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL, "'onnx:%s' names no file", rest),
                          "write onnx:FILE, or onnx:FILE#COLUMN to say what it predicts");
    onnx_predictor *p = hwnas_alloc(sizeof *p);
    p->path = hwnas_printf("%.*s", hash ? (int)(hash - rest) : (int)strlen(rest), rest);
    p->base =
        (hwnas_predictor){.ops = &hwnas_predictor_onnx,
                          .kind = "onnx",
                          .space = space,
                          .target = hwnas_strdup(hash && hash[1] ? hash + 1 : "accuracy_pct")};
    p->base.unit = hwnas_strdup(hwnas_column_unit(p->base.target));
    hwnas_status status = load(p);
    if (status == HWNAS_OK)
        *out = &p->base;
    else
        hwnas_predictor_free(&p->base);
    return status;
}

static hwnas_status read_row(hwnas_estimate *out, const onnx_predictor *p, size_t row,
                             const hwnas_arch *arch)
{
    const double mean = p->outputs[0][row * p->width];
    const double sd = p->n_outputs == 2 ? p->outputs[1][row]
                      : p->width == 2   ? p->outputs[0][row * 2 + 1]
                                        : NAN;
    const bool has_sd = p->n_outputs * p->width == 2;
    if (!isfinite(mean) || (has_sd && !(sd >= 0 && isfinite(sd)))) {
        hwnas_place place = {.file = p->path};
        char *code = hwnas_arch_code(arch);
        hwnas_status status =
            hwnas_fail(HWNAS_E_INPUT, &place, "for %s the model gives %s %g, which is none", code,
                       isfinite(mean) ? "the deviation" : "the mean", isfinite(mean) ? sd : mean);
        free(code);
        return status;
    }
    *out = (hwnas_estimate){.mean = mean, .sd = sd};
    return HWNAS_OK;
}

static hwnas_status score_onnx(hwnas_estimate *out, hwnas_predictor *base,
                               const hwnas_arch *const *archs, size_t n)
{
    hwnas_status status = HWNAS_OK;
    onnx_predictor *p = (onnx_predictor *)base;
    hwnas_estimate *estimates = hwnas_alloc(n * sizeof *estimates);
    for (size_t first = 0; first < n; first += p->batch) {
        const size_t n_rows = n - first < p->batch ? n - first : p->batch;
        for (size_t i = 0; i < n_rows; i++)
            hwnas_vector_fill(p->input + i * p->vector->n, p->vector, archs[first + i]);
        TRY_OUT(p->device->ops->run(p->exec, (const float *const *)&p->input, p->outputs));
        for (size_t i = 0; i < n_rows; i++)
            TRY_OUT(read_row(&estimates[first + i], p, i, archs[first + i]));
    }
    memcpy(out, estimates, n * sizeof *out);
out:
    free(estimates);
    return status;
}

const hwnas_predictor_ops hwnas_predictor_onnx = {
    .abi = HWNAS_PREDICTOR_ABI,
    .name = "onnx",
    .open = open_onnx,
    .score = score_onnx,
    .free = free_onnx,
};
