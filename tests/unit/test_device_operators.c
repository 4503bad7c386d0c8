/* test_device_operators.c: operators alone or a few together: `ref` against cases computed by hand,
 * `cpu` against `ref`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/op.h"
#include "tests/unit/attributes.h"
#include "tests/unit/device_fixture.h"

/* Tiny cases computed by hand. Weights are given in the order of the node's inputs. */
static void ref_by_hand(void **state)
{
    (void)state;
    static const struct {
        op_case c;
        float inputs[2][16], weights[4][16], wanted[16];
    } cases[] = {
        /* A 2x2 image under a kernel of ones with a rim of zeros: each value is the sum of all. */
        {{"conv", "out=1 kernel=3 pad=1 bias=1", {{1, 1, 2, 2}}},
         {{1, 2, 3, 4}},
         {{1, 1, 1, 1, 1, 1, 1, 1, 1}, {0.5f}},
         {10.5f, 10.5f, 10.5f, 10.5f}},
        /* Cross-correlation, not convolution: the kernel is not turned around. */
        {{"conv", "out=1 kernel=1,2 bias=0", {{1, 1, 1, 3}}}, {{1, 2, 4}}, {{10, 1}}, {12, 24}},
        /* Stride 2 on a 3x3 image takes its corners. */
        {{"conv", "out=1 kernel=1 stride=2 bias=0", {{1, 1, 3, 3}}},
         {{1, 2, 3, 4, 5, 6, 7, 8, 9}},
         {{2}},
         {2, 6, 14, 18}},
        /* Depthwise: each channel with its own kernel. */
        {{"conv", "out=2 kernel=1,2 groups=2 bias=0", {{1, 2, 1, 2}}},
         {{1, 2, 3, 4}},
         {{1, 1, 1, -1}},
         {3, -1}},
        /* Two groups of two channels, one output each. */
        {{"conv", "out=2 kernel=1 groups=2 bias=0", {{1, 4, 1, 1}}},
         {{1, 2, 3, 4}},
         {{1, 10, 100, 1000}},
         {21, 4300}},
        /* Dilation 2 leaves out the middle. */
        {{"conv", "out=1 kernel=1,2 dilation=2 bias=0", {{1, 1, 1, 3}}},
         {{1, 2, 4}},
         {{1, 1}},
         {5}},
        /* (x - mean) / sqrt(variance + epsilon) * scale + bias */
        {{"batch_norm", "epsilon=0", {{1, 2, 1, 1}}},
         {{5, 7}},
         {{2, 3}, {1, -1}, {1, 1}, {4, 9}},
         {5, 5}},
        /* Without scale and bias: 1 and 0, whatever the seed. */
        {{"batch_norm", "epsilon=0 affine=0", {{1, 2, 1, 1}}},
         {{5, 7}},
         {{1, 1}, {0, 0}, {1, 1}, {4, 9}},
         {2, 2}},
        {{"relu", "", {{1, 3}}}, {{-1, 0, 2}}, {{0}}, {0, 0, 2}},
        /* The padding is less than all, even -4; the windows are cut at the corners. */
        {{"max_pool", "kernel=2 stride=2 pad=1", {{1, 1, 3, 3}}},
         {{-1, -2, -3, -4, -5, -6, -7, -8, -9}},
         {{0}},
         {-1, -2, -4, -5}},
        {{"max_pool", "kernel=1,2 stride=1,2 pad=0,0,0,1", {{1, 1, 2, 3}}},
         {{1, 2, -3, 6, 5, 4}},
         {{0}},
         {2, -3, 6, 4}},
        {{"avg_pool", "kernel=2 stride=2 pad=1", {{1, 1, 3, 3}}},
         {{1, 2, 4, 3, 5, 7, 5, 6, 9}},
         {{0}},
         {1, 3, 4, 6.75f}},
        {{"avg_pool", "kernel=2 stride=2 pad=1 count_pad=1", {{1, 1, 3, 3}}},
         {{1, 2, 4, 3, 5, 7, 5, 6, 9}},
         {{0}},
         {0.25f, 1.5f, 2, 6.75f}},
        {{"sigmoid", "", {{1, 3}}}, {{0, 100, -1.3862943611f}}, {{0}}, {0.5f, 1, 0.2f}},
        {{"tanh", "", {{1, 3}}}, {{0, 100, 0.5493061443f}}, {{0}}, {0, 1, 0.5f}},
        {{"hard_swish", "", {{1, 5}}}, {{-4, -3, -1, 1.5f, 4}}, {{0}},
         {0, 0, -1.0f / 3, 1.125f, 4}},
        {{"clip", "", {{1, 3}}}, {{-1, 2, 7}}, {{0}}, {0, 2, 6}},
        {{"clip", "low=-1 high=1.5", {{1, 4}}}, {{-2, -1, 1, 7}}, {{0}}, {-1, -1, 1, 1.5f}},
        {{"leaky_relu", "", {{1, 3}}}, {{-100, 0, 2}}, {{0}}, {-1, 0, 2}},
        {{"leaky_relu", "alpha=0.25", {{1, 2}}}, {{-1, 1}}, {{0}}, {-0.25f, 1}},
        /* ln 1, ln 3, ln 4 are to each other as 1, 3 and 4. */
        {{"softmax", "", {{2, 3}}},
         {{0, 1.0986122887f, 1.3862943611f, 1000, 1000, -1000}},
         {{0}},
         {0.125f, 0.375f, 0.5f, 0.5f, 0.5f, 0}},
        {{"softmax", "axis=1", {{1, 2, 1, 2}}}, {{0, 5, 1.0986122887f, 5}}, {{0}},
         {0.25f, 0.5f, 0.75f, 0.5f}},
        {{"concat", "", {{2, 1, 1, 2}, {2, 2, 1, 2}}},
         {{1, 2, 3, 4}, {10, 20, 30, 40, 50, 60, 70, 80}},
         {{0}},
         {1, 2, 10, 20, 30, 40, 3, 4, 50, 60, 70, 80}},
        {{"concat", "axis=-1", {{2, 1}, {2, 2}}}, {{1, 2}, {10, 20, 30, 40}}, {{0}},
         {1, 10, 20, 2, 30, 40}},
        {{"zero", "", {{1, 3}}}, {{1, 2, 3}}, {{0}}, {0, 0, 0}},
        {{"zero", "stride=2", {{1, 1, 3, 3}}}, {{1, 2, 3, 4, 5, 6, 7, 8, 9}}, {{0}}, {0, 0, 0, 0}},
        {{"hard_sigmoid", "", {{1, 4}}}, {{-4, -3, 0, 4}}, {{0}}, {0, 0, 0.5f, 1}},
        {{"hard_sigmoid", "alpha=0.25 beta=0.25", {{1, 3}}}, {{-2, 1, 4}}, {{0}}, {0, 0.5f, 1}},
        {{"global_avg_pool", "", {{1, 2, 2, 2}}}, {{1, 2, 3, 4, 0, 0, 0, 8}}, {{0}}, {2.5f, 2}},
        {{"add", "", {{1, 2, 1, 1}, {1, 2, 1, 1}}}, {{1, 2}, {10, 20}}, {{0}}, {11, 22}},
        {{"mul", "", {{1, 2, 1, 2}, {1, 2, 1, 1}}},
         {{1, 2, 3, 4}, {10, -1}},
         {{0}},
         {10, 20, -3, -4}},
        {{"flatten", "", {{1, 2, 1, 2}}}, {{1, 2, 3, 4}}, {{0}}, {1, 2, 3, 4}},
        {{"dropout", "rate=0.9", {{1, 3}}}, {{1, 2, 3}}, {{0}}, {1, 2, 3}},
        {{"linear", "out=2 bias=1", {{2, 3}}},
         {{1, 2, 3, 0, 0, 1}},
         {{1, 10, 100, 1, 1, 1}, {0.5f, -6}},
         {321.5f, 0, 100.5f, -5}},
    };
    hwnas_device *ref = open_device("ref", 1);
    for (size_t i = 0; i < COUNT(cases); i++) {
        hwnas_graph *graph = graph_of_op(&cases[i].c);
        const hwnas_node *node = &graph->nodes[0];
        const float *inputs[] = {cases[i].inputs[0], cases[i].inputs[1]};
        float got[16] = {0}, *outputs[] = {got};
        hwnas_exec *exec = NULL;
        for (int k = node->n_data_inputs; k < node->n_inputs; k++)
            graph->tensors[node->inputs[k]].data = cases[i].weights[k - node->n_data_inputs];
        ok(hwnas_device_compile(&exec, ref, graph, NULL));
        ok(exec->ops->run(exec, inputs, outputs));
        const int64_t n = hwnas_tensor_count(hwnas_node_output(graph, node));
        for (int64_t k = 0; k < n; k++)
            if (!(fabs((double)got[k] - cases[i].wanted[k]) <= 1e-6 * fabs(cases[i].wanted[k])))
                fail_msg("case %zu, %s: value %d is %g, not %g", i, cases[i].c.op, (int)k, got[k],
                         cases[i].wanted[k]);
        exec->ops->free_exec(exec);
        hwnas_graph_free(graph);
    }
    hwnas_device_close(ref);
}

static void every_operator_on_cpu(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"conv", "out=32 kernel=3 stride=2 pad=1 bias=0", {{1, 3, 33, 47}}},
        {"conv", "out=32 kernel=3 stride=1 pad=1", {{3, 3, 32, 32}}},
        {"conv", "out=17 kernel=1", {{1, 16, 14, 14}}},
        {"conv", "out=24 kernel=1 stride=2", {{3, 48, 15, 9}}},
        {"conv", "out=8 kernel=1", {{1, 32, 1, 1}}},
        {"conv", "out=1 kernel=1", {{3, 1, 1, 1}}},
        {"conv", "out=40 kernel=5 stride=2 pad=2", {{1, 24, 31, 31}}},
        {"conv", "out=9 kernel=5,3 stride=2,1 pad=2,1 dilation=1", {{1, 6, 12, 20}}},
        {"conv", "out=12 kernel=3 pad=2 dilation=2", {{1, 8, 11, 11}}},
        {"conv", "out=6 kernel=3 pad=1,0,0,1", {{1, 4, 9, 8}}},
        {"conv", "out=32 kernel=3 pad=1 groups=32", {{1, 32, 28, 28}}},
        {"conv", "out=96 kernel=3 stride=2 pad=1 groups=96 bias=0", {{3, 96, 15, 17}}},
        {"conv", "out=144 kernel=5 pad=2 groups=144", {{1, 144, 7, 7}}},
        {"conv", "out=21 kernel=5 stride=2 pad=2 groups=21", {{3, 21, 9, 9}}},
        {"conv", "out=24 kernel=3 pad=1 groups=4", {{3, 16, 13, 13}}},
        {"conv", "out=6 kernel=3 stride=2 pad=1 groups=3", {{1, 9, 8, 8}}},
        {"batch_norm", "", {{1, 32, 14, 14}}},
        {"batch_norm", "epsilon=0.01", {{3, 7, 5, 3}}},
        {"batch_norm", "", {{5, 37}}},
        {"batch_norm", "", {{2, 37, 11}}},
        {"batch_norm", "affine=0", {{3, 7, 5, 3}}},
        {"max_pool", "kernel=3 stride=2 pad=1", {{1, 64, 31, 33}}},
        {"max_pool", "kernel=3 pad=1", {{3, 5, 7, 9}}},
        {"max_pool", "kernel=2 stride=2", {{1, 16, 8, 8}}},
        {"max_pool", "kernel=1 stride=2", {{3, 3, 5, 7}}},
        {"max_pool", "kernel=5,3 stride=2,1 pad=4,2,0,1", {{1, 19, 9, 11}}},
        {"max_pool", "kernel=5 pad=2", {{1, 1, 1, 1}}},
        {"avg_pool", "kernel=3 pad=1", {{1, 16, 32, 32}}},
        {"avg_pool", "kernel=3 pad=1 count_pad=1", {{3, 16, 9, 7}}},
        {"avg_pool", "kernel=3 stride=2 pad=1", {{3, 5, 7, 9}}},
        {"avg_pool", "kernel=2 stride=2", {{1, 17, 15, 16}}},
        {"avg_pool", "kernel=5,3 stride=2,1 pad=4,2,0,1", {{1, 19, 9, 11}}},
        {"avg_pool", "kernel=5,3 stride=2,1 pad=4,2,0,1 count_pad=1", {{1, 19, 9, 11}}},
        {"avg_pool", "kernel=5 pad=2", {{1, 1, 1, 1}}},
        {"sigmoid", "", {{3, 5, 7, 9}}},
        {"sigmoid", "", {{1, 33}}},
        {"tanh", "", {{3, 5, 7, 9}}},
        {"tanh", "", {{1, 33}}},
        {"hard_swish", "", {{3, 5, 7, 9}}},
        {"hard_swish", "", {{1, 33}}},
        {"clip", "low=-0.5 high=0.25", {{3, 5, 7, 9}}},
        {"clip", "", {{1, 33}}},
        {"clip", "low=-3.4028235e38 high=0.5", {{1, 33}}},
        {"clip", "low=-inf high=inf", {{1, 33}}},
        {"leaky_relu", "", {{3, 5, 7, 9}}},
        {"leaky_relu", "alpha=0.3", {{1, 33}}},
        {"leaky_relu", "alpha=0", {{1, 33}}},
        {"softmax", "", {{1, 1000}}},
        {"softmax", "", {{3, 5, 7, 9}}},
        {"softmax", "axis=1", {{3, 5, 7, 9}}},
        {"softmax", "axis=-2", {{1, 5, 7, 9}}},
        {"concat", "", {{1, 16, 7, 9}, {1, 24, 7, 9}}},
        {"concat", "", {{3, 5, 7, 9}, {3, 1, 7, 9}}},
        {"concat", "", {{3, 7}, {3, 10}}},
        {"concat", "axis=-2", {{3, 4, 7, 9}, {3, 4, 2, 9}}},
        {"zero", "", {{1, 16, 32, 32}}},
        {"zero", "", {{3, 37}}},
        {"zero", "stride=2", {{1, 16, 7, 9}}},
        {"zero", "stride=3", {{3, 1, 8, 10}}},
        {"relu", "", {{3, 5, 7, 9}}},
        {"relu", "", {{1, 1000}}},
        {"hard_sigmoid", "alpha=2", {{3, 48, 1, 1}}},
        {"hard_sigmoid", "alpha=0.2 beta=0.4", {{1, 5, 3, 3}}},
        {"global_avg_pool", "", {{1, 1280, 7, 7}}},
        {"global_avg_pool", "", {{3, 19, 5, 11}}},
        {"global_avg_pool", "", {{1, 32, 112, 112}}},
        {"global_avg_pool", "", {{1, 4, 1, 1}}},
        {"add", "", {{1, 24, 14, 14}, {1, 24, 14, 14}}},
        {"add", "", {{3, 5, 7, 7}, {3, 5, 1, 1}}},
        {"mul", "", {{1, 96, 14, 14}, {1, 96, 1, 1}}},
        {"mul", "", {{3, 7, 1, 1}, {3, 7, 9, 5}}},
        {"mul", "", {{3, 10}, {3, 10}}},
        {"flatten", "", {{1, 1280, 1, 1}}},
        {"flatten", "", {{3, 4, 5, 6}}},
        {"flatten", "axis=2", {{3, 4, 5, 6}}},
        {"linear", "out=1000", {{1, 1280}}},
        {"linear", "out=10", {{3, 37}}},
        {"linear", "out=10 bias=0", {{1, 64}}},
        {"linear", "out=96", {{1, 17, 64}}},
        {"linear", "out=96 bias=0", {{3, 17, 64}}},
        {"matmul", "", {{1, 4, 16, 8}, {1, 4, 8, 16}}},
        {"matmul", "", {{3, 4, 16, 24}, {3, 4, 24, 5}}},
        {"matmul", "", {{3, 1, 6, 8}, {3, 5, 8, 7}}},
        {"matmul", "", {{1, 5, 6, 8}, {3, 5, 8, 7}}},
        {"matmul", "", {{3, 5, 6, 8}, {1, 1, 8, 7}}},
        {"matmul", "", {{1, 5, 6, 8}, {3, 1, 8, 7}}},
        {"matmul", "", {{3, 16, 8}, {8, 12}}},
        {"matmul", "", {{16, 8}, {3, 8, 12}}},
        {"matmul", "", {{3, 4, 16, 8}, {8, 12}}},
        {"matmul", "", {{3, 4, 16, 8}, {4, 8, 12}}},
        {"matmul", "", {{7, 5}, {5, 9}}},
        {"matmul", "", {{2, 1, 5}, {2, 5, 1}}},
        {"add", "", {{3, 7, 16}, {16}}},
        {"add", "", {{16}, {3, 7, 16}}},
        {"add", "", {{3, 7, 16}, {7, 1}}},
        {"add", "", {{3, 1, 16}, {3, 7, 1}}},
        {"add", "", {{3, 4, 5, 5}, {1, 1, 5, 5}}},
        {"add", "", {{5, 5}, {3, 4, 1, 5}}},
        {"mul", "", {{3, 7, 16}, {1}}},
        {"mul", "", {{1}, {3, 4, 5, 6}}},
        {"mul", "", {{3, 4, 1, 6}, {3, 1, 5, 1}}},
        {"sub", "", {{3, 7, 16}, {16}}},
        {"sub", "", {{16}, {3, 7, 16}}},
        {"sub", "", {{3, 1, 16}, {3, 7, 1}}},
        {"div", "", {{3, 7, 16}, {3, 7, 1}}},
        {"div", "", {{7, 1}, {3, 7, 16}}},
        {"scale", "by=0.125", {{3, 4, 5, 6}}},
        {"scale", "by=-3", {{1, 33}}},
        {"reshape", "shape=4,-1", {{3, 8, 5}}},
        {"reshape", "shape=6,4,10", {{1, 24, 10}}},
        {"transpose", "order=0,2,1", {{3, 8, 5}}},
        {"transpose", "order=0,2,1,3", {{1, 16, 4, 8}}},
        {"transpose", "order=0,2,3,1", {{3, 16, 4, 7}}},
        {"transpose", "order=2,0,1", {{3, 16, 7}}},
        {"transpose", "order=3,2,1,0", {{3, 5, 4, 7}}},
        {"slice", "begin=1 end=4", {{3, 7, 5}}},
        {"slice", "begin=-3 axis=-1 step=2", {{3, 7, 5}}},
        {"slice", "begin=1 axis=0", {{3, 4, 2, 5}}},
        {"slice", "step=3 axis=2", {{1, 4, 11, 5}}},
        {"layer_norm", "", {{1, 16, 64}}},
        {"layer_norm", "epsilon=0.01", {{3, 7, 33}}},
        {"layer_norm", "bias=0", {{3, 7, 33}}},
        {"layer_norm", "axis=1", {{3, 7, 33}}},
        {"layer_norm", "axis=2 bias=0", {{3, 7, 3, 5}}},
        {"layer_norm", "axis=0", {{2, 40}}},
        {"layer_norm", "", {{40}}},
        {"rms_norm", "", {{1, 16, 64}}},
        {"rms_norm", "epsilon=0.01", {{3, 7, 133}}},
        {"rms_norm", "axis=2", {{3, 7, 3, 5}}},
        {"rms_norm", "axis=0", {{2, 40}}},
        {"rms_norm", "", {{40}}},
        {"gelu", "", {{3, 7, 33}}},
        {"gelu", "tanh=1", {{3, 7, 33}}},
        {"gelu", "tanh=1", {{1, 3072}}},
        {"erf", "", {{3, 7, 33}}},
        {"mean", "axes=1", {{3, 17, 32}}},
        {"mean", "axes=1 keep=1", {{3, 17, 32}}},
        {"mean", "axes=-1", {{3, 17, 32}}},
        {"mean", "axes=2 keep=1", {{1, 17, 32}}},
        {"mean", "axes=2,3", {{3, 5, 7, 9}}},
        {"mean", "axes=2,3 keep=1", {{3, 5, 7, 9}}},
        {"mean", "axes=0,2", {{3, 5, 7, 9}}},
        {"mean", "axes=0,1,2,3", {{3, 5, 7, 9}}},
        {"expand", "shape=3,4,5", {{4, 1}}},
        {"expand", "shape=3,1,5", {{3, 7, 1}}},
        {"upsample", "by=2", {{3, 5, 7, 9}}},
        {"upsample", "by=2", {{2, 3, 1, 1}}},
        {"upsample", "by=4,3 linear=1", {{2, 3, 1, 1}}},
        {"upsample", "by=3,1", {{1, 16, 4, 6}}},
        {"upsample", "by=2 linear=1", {{3, 5, 7, 9}}},
        {"upsample", "by=3,4 linear=1", {{1, 16, 4, 6}}},
        {"embedding", "entries=50 out=24", {{3, 9}}},
        {"embedding", "entries=50 out=7", {{1, 1}}},
        {"weight", "shape=3,5 expand=1", {{4, 2}}},
        {"lstm", "out=16", {{1, 7, 12}}},
        {"lstm", "out=16 biases=1", {{3, 7, 12}}},
        {"lstm", "out=5 biases=0", {{3, 4, 3}}},
        {"lstm", "out=16 bidirectional=1", {{1, 7, 12}}},
        {"lstm", "out=17 bidirectional=1", {{3, 7, 12}}},
        {"lstm", "out=16 last=1", {{3, 7, 12}}},
        {"lstm", "out=16 bidirectional=1 last=1 biases=0", {{3, 7, 12}}},
        {"lstm", "out=64", {{1, 1, 64}}},
        {"gru", "out=16", {{1, 7, 12}}},
        {"gru", "out=16 biases=1", {{3, 7, 12}}},
        {"gru", "out=5 biases=0", {{3, 4, 3}}},
        {"gru", "out=16 bidirectional=1", {{1, 7, 12}}},
        {"gru", "out=17 bidirectional=1", {{3, 7, 12}}},
        {"gru", "out=16 last=1", {{3, 7, 12}}},
        {"gru", "out=16 bidirectional=1 last=1 biases=1", {{3, 7, 12}}},
        {"gru", "out=64", {{1, 1, 64}}},
        {"gru", "out=64 bidirectional=1 biases=1", {{2, 7, 12}}},
        {"gru", "out=32 bidirectional=1 last=1 biases=0", {{1, 7, 12}}},
        {"lstm", "out=32 bidirectional=1 biases=1", {{2, 7, 12}}},
    };
    hwnas_device *ref = open_device("ref", 1);
    for (int threads = 1; threads <= 2; threads++) {
        hwnas_device *cpu = open_device("cpu", threads);
        for (size_t i = 0; i < COUNT(cases); i++) {
            char what[160];
            hwnas_graph *graph = graph_of_op(&cases[i]);
            snprintf(what, sizeof what, "%s %s, case %zu, %d threads", cases[i].op, cases[i].attrs,
                     i, threads);
            compare(what, cpu, graph, ref, graph, i);
            hwnas_graph_free(graph);
        }
        hwnas_device_close(cpu);
    }
    hwnas_device_close(ref);
}

/* What an operator cannot do is said with the attribute's name. */
static void wrong_attributes_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *op, *attrs;
        int64_t dims[4];
        const char *part;
    } cases[] = {
        {"max_pool", "kernel=3 pad=3", {1, 2, 9, 9}, "'pad' of 'max_pool' is 3"},
        {"avg_pool", "kernel=3 pad=1,1,4,1", {1, 2, 9, 9}, "'pad' of 'avg_pool' is 4"},
        {"avg_pool", "", {1, 2, 9, 9}, "'avg_pool' needs 'kernel'"},
        {"max_pool", "kernel=9", {1, 2, 7, 7}, "a kernel of 9 is larger"},
        {"max_pool", "kernel=2", {1, 2, 0, 0}, "'max_pool' needs an image"},
        {"clip", "low=2 high=1", {1, 2, 0, 0}, "'low' of 'clip' is 2, above 'high', which is 1"},
        {"softmax", "axis=2", {1, 2, 0, 0}, "'axis' of 'softmax' is 2"},
        {"softmax", "axis=-3", {1, 2, 0, 0}, "'axis' of 'softmax' is -3"},
        {"zero", "stride=2", {1, 2, 0, 0}, "'zero' with a 'stride' needs an image"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const hwnas_op *op = hwnas_op_by_name(cases[i].op);
        hwnas_graph *graph = hwnas_graph_new("wrong", 1);
        hwnas_attr *attrs = attributes(op, cases[i].attrs);
        int input = add_input(graph, cases[i].dims), out = -1;
        assert_int_equal(hwnas_graph_add_node(&out, graph, op, "x", attrs, 1, &input, true),
                         HWNAS_E_INPUT);
        if (!strstr(hwnas_last_error()->message, cases[i].part))
            fail_msg("case %zu: %s", i, hwnas_last_error()->message);
        free(attrs);
        hwnas_graph_free(graph);
    }
    hwnas_graph *graph = hwnas_graph_new("wrong", 1);
    const int64_t dims[2][4] = {{1, 2, 3, 3}, {1, 2, 3, 4}}, scales[] = {3, 0};
    const int to_bytes[] = {add_input(graph, dims[0]), add_input(graph, scales)};
    hwnas_attr *axis = attributes(hwnas_op_by_name("quantize_linear"), "axis=-8");
    assert_int_equal(hwnas_graph_add_node(&(int){0}, graph, hwnas_op_by_name("quantize_linear"),
                                          "x", axis, 2, to_bytes, false),
                     HWNAS_E_INPUT);
    assert_non_null(strstr(hwnas_last_error()->message, "scales of shape 3 do not fit 1x2x3x3"));
    free(axis);
    int inputs[] = {add_input(graph, dims[0]), add_input(graph, dims[1])}, out = -1;
    assert_int_equal(hwnas_graph_add_node(&out, graph, hwnas_op_by_name("concat"), "x", NULL, 2,
                                          inputs, true),
                     HWNAS_E_INPUT);
    assert_non_null(
        strstr(hwnas_last_error()->message, "cannot join the shapes 1x2x3x3 and 1x2x3x4"));
    hwnas_graph_free(graph);
}

/* What oneDNN has no operator for runs in the operator's own loops. */
static void other_operators_run_in_their_own_loops(void **state)
{
    enum { N = 75 };
    (void)state;
    hwnas_op strange = *hwnas_op_by_name("relu");
    strange.id = HWNAS_N_OPS;
    strange.name = "strange";
    hwnas_device *cpu = open_device("cpu", 1);
    hwnas_graph *graph = hwnas_graph_new("strange", 1);
    const int64_t dims[] = {1, 3, 5, 5};
    const int input = add_input(graph, dims);
    int output = -1;
    hwnas_exec *exec = NULL;
    float in[N], out[N];
    for (int i = 0; i < N; i++)
        in[i] = (float)(i - N / 2);
    ok(hwnas_graph_add_node(&output, graph, &strange, "stage1/odd", NULL, 1, &input, true));
    hwnas_graph_add_output(graph, output);
    ok(hwnas_device_compile(&exec, cpu, graph, NULL));
    ok(cpu->ops->run(exec, (const float *[]){in}, (float *[]){out}));
    for (int i = 0; i < N; i++)
        assert_true(out[i] == (in[i] > 0 ? in[i] : 0));
    cpu->ops->free_exec(exec);
    hwnas_graph_free(graph);
    hwnas_device_close(cpu);
}

/* An output may be an input, a weight, or an output once more. */
static void outputs_are_copied_where_nothing_writes_them(void **state)
{
    (void)state;
    enum { N = 6 };
    hwnas_device *ref = open_device("ref", 1), *cpu = open_device("cpu", 1);
    hwnas_device *const devices[] = {ref, cpu};
    hwnas_graph *graph = hwnas_graph_new("copies", 1);
    const int64_t dims[] = {1, N, 0};
    int input = add_input(graph, dims), weight = -1;
    int relu = add(graph, "relu", "", input, -1);
    ok(hwnas_graph_add_weight(&weight, graph, "w", 2, dims, HWNAS_INIT_SMALL, true));
    const int outputs[] = {input, relu, weight, relu, add(graph, "mul", "", relu, weight)};
    float got[2][COUNT(outputs)][N], in[N], *const given[] = {in};
    for (size_t i = 0; i < COUNT(outputs); i++)
        hwnas_graph_add_output(graph, outputs[i]);
    for (int i = 0; i < N; i++)
        in[i] = (float)(i - 2);
    for (int d = 0; d < 2; d++) {
        hwnas_exec *exec = NULL;
        float *to[COUNT(outputs)];
        for (size_t i = 0; i < COUNT(outputs); i++)
            to[i] = got[d][i];
        ok(hwnas_device_compile(&exec, devices[d], graph, NULL));
        ok(exec->ops->run(exec, (const float *const *)given, to));
        exec->ops->free_exec(exec);
    }
    assert_memory_equal(got[1][0], in, sizeof in);
    assert_memory_equal(got[1][1], got[1][3], sizeof in);
    assert_memory_equal(got[0], got[1], sizeof got[0]);
    hwnas_graph_free(graph);
    hwnas_device_close(ref);
    hwnas_device_close(cpu);
}

/* Powers of one constant and of many numbers; bases are positive. */
static void powers(void **state)
{
    (void)state;
    static const float exponents[] = {2, 3, 0.5f, -1, 0, 1};
    const int64_t dims[] = {3, 7, 6, 0};
    hwnas_device *ref = open_device("ref", 1), *cpu = open_device("cpu", 1);
    for (size_t i = 0; i <= COUNT(exponents); i++) {
        const bool is_one = i < COUNT(exponents);
        hwnas_graph *graph = hwnas_graph_new("pow", i);
        int exponent = -1;
        const int base = add(graph, "sigmoid", "", add_input(graph, dims), -1);
        ok(hwnas_graph_add_constant(&exponent, graph, "exponent", is_one ? 0 : 1, dims + 2,
                                    is_one ? &exponents[i] : exponents));
        hwnas_graph_add_output(graph, add(graph, "pow", "", base, exponent));
        compare("pow", cpu, graph, ref, graph, i);
        hwnas_graph_free(graph);
    }
    hwnas_device_close(ref);
    hwnas_device_close(cpu);
}

/* Functions behind convolutions and products, of small values and of such that their exponentials
 * leave the range of floats, in numbers that are no multiples of a vector or of a
 * thread's piece. */
static void functions_behind_products(void **state)
{
    (void)state;
    static const float factors[] = {1, 30, 1000};
    static const int64_t shapes[][4] = {{1, 3, 1, 1}, {2, 5, 9, 11}, {1, 7, 40, 41}};
    hwnas_device *ref = open_device("ref", 1);
    for (size_t i = 0; i < COUNT(factors) * COUNT(shapes) * 2 * 2; i++) {
        const bool is_swish = i % 2, is_image = i / 2 % 2;
        const int64_t *shape = shapes[i / 4 % COUNT(shapes)];
        const int64_t one[] = {1}, rows[] = {shape[0] * shape[2], shape[1] * shape[3], 0};
        hwnas_device *cpu = open_device("cpu", 1 + (int)(i % 3 > 0));
        hwnas_graph *graph = hwnas_graph_new("functions", i);
        int factor = -1;
        ok(hwnas_graph_add_constant(&factor, graph, "factor", 1, one,
                                    &factors[i / 4 / COUNT(shapes)]));
        int x = add_input(graph, is_image ? shape : rows);
        x = is_image ? add(graph, "conv", "out=19", x, -1) : add(graph, "linear", "out=19", x, -1);
        x = add(graph, "mul", "", x, factor);
        const int gate = add(graph, "sigmoid", "", x, -1);
        hwnas_graph_add_output(graph, is_swish ? add(graph, "mul", "", x, gate) : gate);
        compare("functions behind products", cpu, graph, ref, graph, i);
        hwnas_graph_free(graph);
        hwnas_device_close(cpu);
    }
    hwnas_device_close(ref);
}

/* What was transposed, reshaped or cut, read by each kind of step and read twice, so that no place
 * is taken over too early. */
static void moved_values_reach_every_reader(void **state)
{
    (void)state;
    static const op_case readers[] = {
        {"relu", "", {{0}}},        {"gelu", "", {{0}}},
        {"gelu", "tanh=1", {{0}}},  {"softmax", "", {{0}}},
        {"softmax", "axis=1", {{0}}}, {"layer_norm", "", {{0}}}, {"rms_norm", "", {{0}}},
        {"layer_norm", "bias=0", {{0}}}, {"mean", "axes=1", {{0}}},
        {"mean", "axes=-1", {{0}}}, {"linear", "out=6", {{0}}},
        {"scale", "by=3", {{0}}},   {"reshape", "shape=2,-1", {{0}}},
        {"transpose", "order=2,1,0", {{0}}}, {"slice", "end=3 axis=2", {{0}}},
        {"lstm", "out=5", {{0}}},   {"gru", "out=5 bidirectional=1", {{0}}},
        {"erf", "", {{0}}},
    };
    static const char *const movers[][2] = {
        {"transpose", "order=0,2,1"},
        {"transpose", "order=1,0,2"},
        {"reshape", "shape=10,12"},
        {"slice", "begin=1 axis=1"},
    };
    hwnas_device *ref = open_device("ref", 1), *cpu = open_device("cpu", 1);
    for (size_t m = 0; m < COUNT(movers); m++)
        for (size_t r = 0; r < COUNT(readers); r++)
            for (int has_second = 0; has_second < 2; has_second++) {
                char what[96];
                const int64_t dims[] = {3, 6, 20, 0};
                hwnas_graph *graph = hwnas_graph_new("moved", r);
                const int input = add_input(graph, dims);
                const int x = add(graph, movers[m][0], movers[m][1],
                                  add(graph, "tanh", "", input, -1), -1);
                hwnas_graph_add_output(graph, add(graph, readers[r].op, readers[r].attrs, x, -1));
                if (has_second)
                    hwnas_graph_add_output(
                        graph, add(graph, "reshape", "shape=-1", add(graph, "mul", "", x, x), -1));
                snprintf(what, sizeof what, "%s of a %s (%s), second %d", readers[r].op,
                         movers[m][0], movers[m][1], has_second);
                compare(what, cpu, graph, ref, graph, r);
                hwnas_graph_free(graph);
            }
    hwnas_device_close(ref);
    hwnas_device_close(cpu);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ref_by_hand),
        cmocka_unit_test(every_operator_on_cpu),
        cmocka_unit_test(wrong_attributes_are_named),
        cmocka_unit_test(other_operators_run_in_their_own_loops),
        cmocka_unit_test(outputs_are_copied_where_nothing_writes_them),
        cmocka_unit_test(powers),
        cmocka_unit_test(functions_behind_products),
        cmocka_unit_test(moved_values_reach_every_reader),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
