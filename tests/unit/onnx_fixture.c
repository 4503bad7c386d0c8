#include "tests/unit/onnx_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/rng.h"
#include "graph/op.h"

hwnas_attr integers(int n, int64_t a, int64_t b, int64_t c, int64_t d)
{
    return (hwnas_attr){.is_set = true, .n = n, .ints = {a, b, c, d}};
}

static hwnas_attr number(double value)
{
    return (hwnas_attr){.is_set = true, .number = value};
}

int add(hwnas_graph *graph, const char *op, const char *name, int a, int b, const hwnas_attr *attrs)
{
    int out, inputs[] = {a, b};
    assert_int_equal(hwnas_graph_add_node(&out, graph, hwnas_op_by_name(op), name, attrs,
                                          b < 0 ? 1 : 2, inputs, true),
                     HWNAS_OK);
    return out;
}

static int add_conv(hwnas_graph *graph, const char *name, int in, int64_t out, int64_t kernel,
                    int64_t stride, int64_t groups, bool bias)
{
    hwnas_attr attrs[] = {
        integers(1, out, 0, 0, 0),
        integers(2, kernel, kernel, 0, 0),
        integers(2, stride, 1, 0, 0),
        integers(4, kernel / 2, kernel / 2, kernel / 2, 0),
        integers(2, 1, kernel > 1 ? 2 : 1, 0, 0),
        integers(1, groups, 0, 0, 0),
        integers(1, bias, 0, 0, 0),
    };
    return add(graph, "conv", name, in, -1, attrs);
}

/* 8 channels in, 8 out. */
static int add_cell(hwnas_graph *graph, int in)
{
    const hwnas_attr pool[] = {integers(2, 3, 2, 0, 0), integers(2, 1, 1, 0, 0),
                               integers(4, 1, 1, 1, 0), integers(1, 1, 0, 0, 0)};
    const hwnas_attr not_affine[] = {number(1e-5), integers(1, 0, 0, 0, 0)};
    int edges[8], n = 0, out;
    edges[n++] = add(graph, "max_pool", "cell/max_pool", in, -1, pool);
    edges[n++] = add(graph, "avg_pool", "cell/avg_pool", in, -1, pool);
    edges[n++] = add(graph, "zero", "cell/zero", in, -1, NULL);
    edges[n++] = add(graph, "hard_swish", "cell/hard_swish", in, -1, NULL);
    edges[n++] = add(graph, "clip", "cell/clip", in, -1, (hwnas_attr[]){number(-0.1), number(0.2)});
    edges[n++] = add(graph, "tanh", "cell/tanh", in, -1, NULL);
    edges[n++] = add(graph, "leaky_relu", "cell/leaky_relu", in, -1, (hwnas_attr[]){number(0.2)});
    edges[n++] =
        add(graph, "softmax", "cell/softmax", in, -1, (hwnas_attr[]){integers(1, -3, 0, 0, 0)});
    assert_int_equal(hwnas_graph_add_node(&out, graph, hwnas_op_by_name("concat"), "cell/concat",
                                          NULL, n, edges, true),
                     HWNAS_OK);
    out = add(graph, "batch_norm", "cell/norm", out, -1, not_affine);
    out = add_conv(graph, "cell/conv", out, 8, 1, 1, 1, false);
    out = add(graph, "batch_norm", "cell/last_norm", out, -1, not_affine);
    out = add(graph, "sigmoid", "cell/sigmoid", out, -1, NULL);
    in = add(graph, "zero", "cell/zero_1", in, -1, (hwnas_attr[]){integers(1, 2, 0, 0, 0)});
    return add(graph, "add", "cell/add", out,
               add(graph, "global_avg_pool", "cell/pool", in, -1, NULL), NULL);
}

hwnas_graph *make_network(void)
{
    hwnas_graph *graph = hwnas_graph_new("every operator", 11);
    int x;
    int64_t dims[] = {2, 3, 12, 14};
    assert_int_equal(hwnas_graph_add_input(&x, graph, "image", HWNAS_FLOAT32, 4, dims), HWNAS_OK);
    x = add_conv(graph, "stem/conv", x, 8, 3, 2, 1, false);
    x = add(graph, "batch_norm", "stem/norm", x, -1,
            (hwnas_attr[]){number(1e-3), integers(1, 1, 0, 0, 0)});
    int block = x = add(graph, "relu", "stem/relu", x, -1, NULL);
    x = add_conv(graph, "depthwise", x, 8, 3, 1, 8, false);
    x = add(graph, "batch_norm", "norm", x, -1, NULL);
    int gate = add(graph, "global_avg_pool", "gate/pool", x, -1, NULL);
    gate = add_conv(graph, "gate/down", gate, 2, 1, 1, 1, true);
    gate = add(graph, "hard_sigmoid", "gate/hard_sigmoid", gate, -1, NULL);
    gate = add_conv(graph, "gate/up", gate, 8, 1, 1, 1, true);
    x = add(graph, "mul", "gate/mul", x, gate, NULL);
    x = add_conv(graph, "project", x, 8, 1, 1, 1, false);
    x = add_cell(graph, x);
    x = add(graph, "prelu", "prelu", x, -1, NULL);
    x = add(graph, "conv_transpose", "up", x, -1,
            (hwnas_attr[]){integers(2, 3, 2, 0, 0), integers(2, 2, 1, 0, 0),
                           integers(4, 1, 0, 1, 0), integers(2, 1, 1, 0, 0),
                           integers(1, 2, 0, 0, 0), integers(2, 1, 0, 0, 0),
                           integers(1, 8, 0, 0, 0), integers(1, 1, 0, 0, 0)});
    x = add(graph, "global_avg_pool", "pool", x, -1, NULL);
    int skip = add(graph, "global_avg_pool", "skip/pool", block, -1, NULL);
    x = add(graph, "add", "add", x, skip, NULL);
    x = add(graph, "flatten", "flatten", x, -1, NULL);
    x = add(graph, "dropout", "dropout", x, -1, (hwnas_attr[]){number(0.2)});
    hwnas_graph_add_output(graph, x);
    x = add(graph, "linear", "head", x, -1,
            (hwnas_attr[]){integers(1, 5, 0, 0, 0), integers(1, 1, 0, 0, 0)});
    hwnas_graph_add_output(graph, x);
    return graph;
}

float **compute(const hwnas_graph *graph)
{
    float **values = hwnas_alloc(graph->n_tensors * sizeof *values);
    hwnas_rng rng = hwnas_rng_new(1, 2);
    for (size_t t = 0; t < graph->n_tensors; t++) {
        const hwnas_tensor *tensor = &graph->tensors[t];
        values[t] = hwnas_alloc((size_t)hwnas_tensor_bytes(tensor));
        if (tensor->kind == HWNAS_TENSOR_WEIGHT)
            hwnas_tensor_fill(tensor, values[t]);
        for (int64_t i = 0; tensor->kind == HWNAS_TENSOR_INPUT && i < hwnas_tensor_count(tensor);
             i++)
            values[t][i] = (float)hwnas_rng_double(&rng) - 0.5f;
    }
    for (size_t n = 0; n < graph->n_nodes; n++) {
        const hwnas_node *node = &graph->nodes[n];
        const float *inputs[HWNAS_MAX_NODE_INPUTS];
        for (int i = 0; i < node->n_inputs; i++)
            inputs[i] = values[node->inputs[i]];
        node->op->compute(graph, node, inputs, values[node->output]);
    }
    return values;
}

void free_values(float **values, const hwnas_graph *graph)
{
    for (size_t t = 0; t < graph->n_tensors; t++)
        free(values[t]);
    free(values);
}

void assert_same_outputs(const hwnas_graph *a, const hwnas_graph *b)
{
    float **x = compute(a), **y = compute(b);
    assert_int_equal(a->n_outputs, b->n_outputs);
    for (size_t i = 0; i < a->n_outputs; i++) {
        const hwnas_tensor *tensor = &a->tensors[a->outputs[i]];
        assert_memory_equal(x[a->outputs[i]], y[b->outputs[i]], (size_t)hwnas_tensor_bytes(tensor));
    }
    free_values(x, a);
    free_values(y, b);
}

hwnas_graph *written_and_read(const hwnas_graph *graph, hwnas_onnx_weights weights, size_t *length)
{
    void *bytes = NULL;
    hwnas_graph *back = NULL;
    assert_int_equal(hwnas_onnx_write(&bytes, length, graph, weights), HWNAS_OK);
    if (hwnas_onnx_read(&back, "test.onnx", bytes, *length) != HWNAS_OK)
        fail_msg("%s", hwnas_last_error()->message);
    free(bytes);
    return back;
}

void assert_comes_back(const hwnas_graph *graph, hwnas_onnx_weights weights)
{
    size_t length;
    hwnas_graph *back = written_and_read(graph, weights, &length);
    assert_string_equal(hwnas_graph_digest(back).hex, hwnas_graph_digest(graph).hex);
    hwnas_costs before, after;
    hwnas_graph_costs(&before, graph);
    hwnas_graph_costs(&after, back);
    assert_memory_equal(&before, &after, sizeof before);
    assert_string_equal(back->name, graph->name);
    assert_true(back->seed == graph->seed);
    assert_int_equal(back->n_tensors, graph->n_tensors);
    for (size_t t = 0; t < graph->n_tensors; t++) {
        const hwnas_tensor *a = &graph->tensors[t], *b = &back->tensors[t];
        assert_string_equal(a->name, b->name);
        assert_int_equal(a->kind, b->kind);
        assert_int_equal(a->is_parameter, b->is_parameter);
        if (a->kind == HWNAS_TENSOR_WEIGHT && weights == HWNAS_ONNX_SEEDS && !a->data) {
            assert_null(b->data);
            assert_true(a->seed == b->seed && a->init == b->init);
        }
    }
    assert_int_equal(back->n_nodes, graph->n_nodes);
    for (size_t n = 0; n < graph->n_nodes; n++)
        assert_string_equal(back->nodes[n].name, graph->nodes[n].name);
    assert_same_outputs(graph, back);
    hwnas_graph_free(back);
}
