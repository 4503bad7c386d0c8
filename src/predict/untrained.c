#include "predict/untrained.h"

#include <math.h>
#include <stdlib.h>

#include "device/node.h"

double hwnas_rng_normal(hwnas_rng *rng)
{
    double radius = sqrt(-2 * log(1 - hwnas_rng_double(rng)));
    return radius * cos(2 * M_PI * hwnas_rng_double(rng));
}

/* Channels of a batch, normalised in place of the running statistics. */
static void normalise(const hwnas_graph *graph, const hwnas_node *node, const float *input,
                      float *output, const hwnas_untrained_visit *walk)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    const double epsilon = hwnas_node_attr(node, "epsilon")->number;
    const int64_t channels = in->dims[1], size = hwnas_tensor_count(in) / (in->dims[0] * channels);
    double *variances = hwnas_alloc((size_t)channels * sizeof *variances);
    for (int64_t c = 0; c < channels; c++) {
        const double n = (double)(in->dims[0] * size);
        double sum = 0, squares = 0;
        for (int64_t b = 0; b < in->dims[0]; b++)
            for (int64_t i = (b * channels + c) * size; i < (b * channels + c + 1) * size; i++) {
                sum += input[i];
                squares += (double)input[i] * input[i];
            }
        const double mean = sum / n, variance = fmax(0, squares / n - mean * mean);
        const float scale = (float)(1 / sqrt(variance + epsilon));
        for (int64_t b = 0; b < in->dims[0]; b++)
            for (int64_t i = (b * channels + c) * size; i < (b * channels + c + 1) * size; i++)
                output[i] = (input[i] - (float)mean) * scale;
        variances[c] = variance;
    }
    if (walk->see_variances)
        walk->see_variances(walk->context, variances, channels);
    free(variances);
}

/* Matrices and kernels are drawn; what has one dimension is a bias or a shift, or a scale. */
static void draw(const hwnas_graph *graph, int tensor, float *out, const hwnas_untrained_visit *walk)
{
    const hwnas_tensor *t = &graph->tensors[tensor];
    const int64_t n = hwnas_tensor_count(t);
    if (t->rank < 2) {
        const bool is_scale = t->init == HWNAS_INIT_NEAR_ONE || t->init == HWNAS_INIT_ONE;
        for (int64_t i = 0; i < n; i++)
            out[i] = is_scale;
        return;
    }
    if (t->init != HWNAS_INIT_FAN_IN) {
        hwnas_tensor_fill(t, out);
        return;
    }
    const double deviation = walk->deviation((double)n / (double)t->dims[0]);
    hwnas_rng rng = hwnas_rng_new(walk->seed, (uint64_t)tensor);
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)(deviation * hwnas_rng_normal(&rng));
}

static hwnas_status step(const hwnas_graph *graph, const hwnas_node *node, float **buffers,
                         const hwnas_untrained_visit *walk)
{
    hwnas_status status = HWNAS_OK;
    const float *operands[HWNAS_MAX_NODE_INPUTS];
    void *output = NULL;
    TRY_OUT(hwnas_try_alloc(&output, (size_t)hwnas_tensor_bytes(hwnas_node_output(graph, node)),
                            "the output of a layer"));
    buffers[node->output] = output;
    const bool is_norm = node->op->id == HWNAS_OP_BATCH_NORM;
    for (int i = 0; i < node->n_inputs; i++) {
        const int tensor = node->inputs[i];
        if (graph->tensors[tensor].kind == HWNAS_TENSOR_WEIGHT && !is_norm) {
            void *weight = NULL;
            TRY_OUT(hwnas_try_alloc(&weight, (size_t)hwnas_tensor_bytes(&graph->tensors[tensor]),
                                    "the weights of a layer"));
            buffers[tensor] = weight;
            draw(graph, tensor, weight, walk);
        }
        operands[i] = buffers[tensor];
    }
    if (is_norm)
        normalise(graph, node, operands[0], output, walk);
    else
        TRY_OUT(hwnas_node_run(graph, node, walk->device, operands, output));
    if (walk->see)
        TRY_OUT(walk->see(walk->context, graph, node, operands[0], output));
out:
    for (int i = 0; i < node->n_inputs; i++) {
        if (graph->tensors[node->inputs[i]].kind != HWNAS_TENSOR_WEIGHT)
            continue;
        free(buffers[node->inputs[i]]);
        buffers[node->inputs[i]] = NULL;
    }
    return status;
}

hwnas_status hwnas_untrained_walk(const hwnas_graph *graph, const float *input,
                                  const hwnas_untrained_visit *walk)
{
    hwnas_status status = HWNAS_OK;
    if (graph->n_inputs != 1)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                          "the proxy needs a network with one input, this one has %zu",
                          graph->n_inputs);
    float **buffers = hwnas_alloc(graph->n_tensors * sizeof *buffers);
    size_t *last = hwnas_alloc(graph->n_tensors * sizeof *last);
    for (size_t i = 0; i < graph->n_nodes; i++)
        for (int k = 0; k < graph->nodes[i].n_inputs; k++)
            last[graph->nodes[i].inputs[k]] = i;
    buffers[graph->inputs[0]] = (float *)input; /* no operator writes to its input */
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const hwnas_node *node = &graph->nodes[i];
        TRY_OUT(step(graph, node, buffers, walk));
        for (int k = 0; k < node->n_inputs; k++) {
            const int tensor = node->inputs[k];
            if (tensor == graph->inputs[0] || last[tensor] != i)
                continue;
            free(buffers[tensor]);
            buffers[tensor] = NULL;
        }
    }
out:
    buffers[graph->inputs[0]] = NULL;
    for (size_t i = 0; i < graph->n_tensors; i++)
        free(buffers[i]);
    free(buffers);
    free(last);
    return status;
}
