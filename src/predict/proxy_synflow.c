/* The proxy synflow, without a gradient.
 *
 * The sum over all weights of w dR/dw is the derivative of R(s w) by s at s = 1. So one walk
 * forward with a tangent t beside every value v is enough: where a weight W acts, v' = W v and t' =
 * W t + W v = W (t + v); everything else is linear in (v, t). All weights, and so all values, are
 * positive, hence w dR/dw = |w dR/dw| and the sum is the paper's.
 *
 * The network is linearised: on positive values ReLUs are the identity, and so are here the
 * activations that bend or saturate (clip, hard_swish, tanh, ...); a gate (sigmoid) is open: 1.
 * Then R is of degree one in every layer, however deep, and a power of two that each tensor carries
 * keeps it within float32. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/node.h"
#include "predict/proxy.h"
#include "predict/untrained.h"

/* Values and tangents, one behind the other as a batch of two; both times 2^exponent. */
typedef struct dual {
    float *data;
    int exponent;
} dual;

enum { NO_EXPONENT = -(1 << 20) }; /* of zeros: any other tensor's is greater */

typedef struct flow {
    const hwnas_graph *graph;
    hwnas_device *device;
    uint64_t seed;
    dual *duals; /* by tensor */
} flow;

typedef hwnas_status rule(flow *f, const hwnas_node *node, dual *out);

static int64_t count(const flow *f, int tensor)
{
    return hwnas_tensor_count(&f->graph->tensors[tensor]);
}

static const dual *input(const flow *f, const hwnas_node *node, int i)
{
    return &f->duals[node->inputs[i]];
}

void hwnas_synflow_weights(float *out, const hwnas_graph *graph, int tensor, uint64_t seed)
{
    const hwnas_tensor *t = &graph->tensors[tensor];
    const int64_t n = hwnas_tensor_count(t);
    const double bound = sqrt((double)t->dims[0] / (double)n);
    hwnas_rng rng = hwnas_rng_new(seed, (uint64_t)tensor);
    for (int64_t i = 0; i < n; i++)
        out[i] = t->rank < 2 ? 0 : (float)(bound * hwnas_rng_double(&rng));
}

static hwnas_status identity(flow *f, const hwnas_node *node, dual *out)
{
    memcpy(out->data, input(f, node, 0)->data, (size_t)count(f, node->output) * sizeof(float));
    out->exponent = input(f, node, 0)->exponent;
    return HWNAS_OK;
}

/* An open gate: one, whatever the weights are. */
static hwnas_status open_gate(flow *f, const hwnas_node *node, dual *out)
{
    const int64_t half = count(f, node->output) / 2;
    for (int64_t i = 0; i < half; i++)
        out->data[i] = 1;
    memset(out->data + half, 0, (size_t)half * sizeof(float));
    return HWNAS_OK;
}

/* Linear without weights, of one input or of several: as the operator does it, inputs on one scale.
 */
static hwnas_status linear(flow *f, const hwnas_node *node, dual *out)
{
    hwnas_status status = HWNAS_OK;
    const float *operands[HWNAS_MAX_NODE_INPUTS];
    float *scaled[HWNAS_MAX_NODE_INPUTS] = {NULL};
    out->exponent = input(f, node, 0)->exponent;
    for (int i = 1; i < node->n_data_inputs; i++)
        if (input(f, node, i)->exponent > out->exponent)
            out->exponent = input(f, node, i)->exponent;
    for (int i = 0; i < node->n_inputs; i++) {
        const int64_t n = count(f, node->inputs[i]);
        void *copy = NULL;
        TRY_OUT(hwnas_try_alloc(&copy, (size_t)n * sizeof(float), "a tensor of a proxy"));
        operands[i] = scaled[i] = copy;
        if (f->graph->tensors[node->inputs[i]].kind == HWNAS_TENSOR_WEIGHT)
            continue; /* the zeros of `zero`, or a bias */
        const dual *from = input(f, node, i);
        for (int64_t k = 0; k < n; k++)
            scaled[i][k] = ldexpf(from->data[k], from->exponent - out->exponent);
    }
    node->op->compute(f->graph, node, operands, out->data);
out:
    for (int i = 0; i < node->n_inputs; i++)
        free(scaled[i]);
    return status;
}

/* A weight acts: (v, t) becomes (W v, W (t + v)). */
static hwnas_status weighted(flow *f, const hwnas_node *node, dual *out)
{
    hwnas_status status = HWNAS_OK;
    const int64_t half = count(f, node->inputs[0]) / 2;
    void *operands[3] = {NULL};
    TRY_OUT(
        hwnas_try_alloc(&operands[0], (size_t)(2 * half) * sizeof(float), "a tensor of a proxy"));
    float *sums = operands[0];
    memcpy(sums, input(f, node, 0)->data, (size_t)half * sizeof(float));
    for (int64_t i = half; i < 2 * half; i++)
        sums[i] = input(f, node, 0)->data[i] + input(f, node, 0)->data[i - half];
    for (int i = 1; i < node->n_inputs; i++) {
        TRY_OUT(hwnas_try_alloc(&operands[i], (size_t)count(f, node->inputs[i]) * sizeof(float),
                                "the weights of a layer"));
        hwnas_synflow_weights(operands[i], f->graph, node->inputs[i], f->seed);
    }
    TRY_OUT(hwnas_node_run(f->graph, node, f->device, (const float *const *)operands, out->data));
    out->exponent = input(f, node, 0)->exponent;
out:
    for (int i = 0; i < node->n_inputs; i++)
        free(operands[i]);
    return status;
}

/* The product rule: (a b, a tb + ta b). */
static hwnas_status product(flow *f, const hwnas_node *node, dual *out)
{
    hwnas_status status = HWNAS_OK;
    const int64_t half = count(f, node->output) / 2;
    void *parts[3] = {NULL}; /* (a, a), (b, b), and a result */
    float *ab[3];
    if (node->n_data_inputs != 2)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "synflow: '%s' multiplies by a constant",
                          node->name);
    for (int i = 0; i < 3; i++) {
        const int64_t n = count(f, i < 2 ? node->inputs[i] : node->output);
        TRY_OUT(hwnas_try_alloc(&parts[i], (size_t)n * sizeof(float), "a tensor of a proxy"));
        ab[i] = parts[i];
        for (int64_t k = 0; i < 2 && k < n; k++)
            ab[i][k] = input(f, node, i)->data[k % (n / 2)];
    }
    node->op->compute(f->graph, node, (const float *[]){ab[0], input(f, node, 1)->data}, out->data);
    node->op->compute(f->graph, node, (const float *[]){input(f, node, 0)->data, ab[1]}, ab[2]);
    for (int64_t i = half; i < 2 * half; i++)
        out->data[i] += ab[2][i];
    out->exponent = input(f, node, 0)->exponent + input(f, node, 1)->exponent;
out:
    for (int i = 0; i < 3; i++)
        free(parts[i]);
    return status;
}

/* The tangent of the greatest value of each window (of the first, where several are). */
static hwnas_status greatest(flow *f, const hwnas_node *node, dual *out)
{
    const hwnas_tensor *in = hwnas_node_input(f->graph, node, 0);
    const hwnas_tensor *made = hwnas_node_output(f->graph, node);
    const int64_t *kernel = hwnas_node_attr(node, "kernel")->ints;
    const int64_t *stride = hwnas_node_attr(node, "stride")->ints;
    const int64_t *pad = hwnas_node_attr(node, "pad")->ints;
    const int64_t height = in->dims[2], width = in->dims[3], half = count(f, node->inputs[0]) / 2;
    const float *plane = input(f, node, 0)->data;
    float *values = out->data, *tangents = out->data + count(f, node->output) / 2;
    for (int64_t c = 0; c < in->dims[1]; c++, plane += height * width)
        for (int64_t i = 0; i < made->dims[2] * made->dims[3]; i++) {
            const int64_t top = i / made->dims[3] * stride[0] - pad[0];
            const int64_t left = i % made->dims[3] * stride[1] - pad[1];
            const float *found = NULL;
            for (int64_t y = top < 0 ? 0 : top; y < top + kernel[0] && y < height; y++)
                for (int64_t x = left < 0 ? 0 : left; x < left + kernel[1] && x < width; x++)
                    if (!found || plane[y * width + x] > *found)
                        found = &plane[y * width + x];
            *values++ = *found;
            *tangents++ = found[half];
        }
    out->exponent = input(f, node, 0)->exponent;
    return HWNAS_OK;
}

static rule *const rules[HWNAS_N_OPS] = {
    [HWNAS_OP_ADD] = linear,
    [HWNAS_OP_AVG_POOL] = linear,
    [HWNAS_OP_BATCH_NORM] = identity, /* left out, as Abdelfattah et al. do */
    [HWNAS_OP_CLIP] = identity,
    [HWNAS_OP_CONCAT] = linear,
    [HWNAS_OP_CONV] = weighted,
    [HWNAS_OP_DROPOUT] = identity,
    [HWNAS_OP_FLATTEN] = linear,
    [HWNAS_OP_GLOBAL_AVG_POOL] = linear,
    [HWNAS_OP_HARD_SIGMOID] = open_gate,
    [HWNAS_OP_HARD_SWISH] = identity,
    [HWNAS_OP_LEAKY_RELU] = identity,
    [HWNAS_OP_LINEAR] = weighted,
    [HWNAS_OP_MAX_POOL] = greatest,
    [HWNAS_OP_MUL] = product,
    [HWNAS_OP_RELU] = identity,
    [HWNAS_OP_SIGMOID] = open_gate,
    [HWNAS_OP_TANH] = identity,
    [HWNAS_OP_ZERO] = linear,
};

/* Brings the greatest number near 1. */
static void rescale(dual *d, int64_t n)
{
    float top = 0;
    int exponent;
    for (int64_t i = 0; i < n; i++)
        top = fmaxf(top, d->data[i]);
    frexpf(top, &exponent);
    if (top == 0)
        d->exponent = NO_EXPONENT;
    if (top == 0 || abs(exponent) < 16)
        return;
    for (int64_t i = 0; i < n; i++)
        d->data[i] = ldexpf(d->data[i], -exponent);
    d->exponent += exponent;
}

static hwnas_status step(flow *f, const hwnas_node *node)
{
    rule *apply = rules[node->op->id];
    if (!apply)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                          "synflow has no rule for the operator '%s' ('%s')", node->op->name,
                          node->name);
    void *data = NULL;
    TRY(hwnas_try_alloc(&data, (size_t)count(f, node->output) * sizeof(float),
                        "the output of a layer"));
    dual *out = &f->duals[node->output];
    out->data = data;
    TRY(apply(f, node, out));
    rescale(out, count(f, node->output));
    return HWNAS_OK;
}

/* log of the sum of the outputs' tangents. */
static hwnas_status collect(double *out, const flow *f)
{
    double sum = 0;
    int exponent = f->duals[f->graph->outputs[0]].exponent;
    for (size_t i = 0; i < f->graph->n_outputs; i++) {
        const dual *d = &f->duals[f->graph->outputs[i]];
        const int64_t n = count(f, f->graph->outputs[i]);
        for (int64_t k = n / 2; k < n; k++)
            sum += ldexp(d->data[k], d->exponent - exponent);
    }
    /* Nothing flows from the input to the output: below every network in which something does. */
    *out = sum > 0 ? log(sum) + exponent * M_LN2 : -1e6;
    return HWNAS_OK;
}

hwnas_status hwnas_proxy_synflow(double *out, const hwnas_graph *graph, hwnas_device *device,
                                 uint64_t seed)
{
    hwnas_status status = HWNAS_OK;
    flow f = {.graph = graph, .device = device, .seed = seed};
    f.duals = hwnas_alloc(graph->n_tensors * sizeof *f.duals);
    for (size_t i = 0; i < graph->n_inputs; i++) {
        void *data = NULL;
        const int64_t n = count(&f, graph->inputs[i]);
        TRY_OUT(hwnas_try_alloc(&data, (size_t)n * sizeof(float), "the input of a proxy"));
        f.duals[graph->inputs[i]].data = data;
        for (int64_t k = 0; k < n / 2; k++)
            ((float *)data)[k] = 1;
    }
    for (size_t i = 0; i < graph->n_nodes; i++)
        TRY_OUT(step(&f, &graph->nodes[i]));
    TRY_OUT(collect(out, &f));
out:
    for (size_t i = 0; i < graph->n_tensors; i++)
        free(f.duals[i].data);
    free(f.duals);
    return status;
}
