/* test_cut.c: how graphs are cut for a GPU, as data: which nodes share a step, how tensors lie,
 * where slices begin, that places do not overlap; descriptions of GPUs, kept plans, and what is bad
 * about them. No GPU, no cuDNN: what an engine takes is decided here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/half.h"
#include "base/str.h"
#include "device/cudnn/cudnn_int8.h"
#include "device/cudnn/compile.h"
#include "device/cudnn/plans.h"
#include "device/module.h"
#include "graph/elaborate.h"
#include "graph/op.h"
#include "space/arch.h"

static void ok(hwnas_status status)
{
    if (status != HWNAS_OK)
        fail_msg("%s", hwnas_last_error()->message);
}

/* ---- Graphs ---- */

/* One network of a text in the space language, folded. */
static hwnas_graph *graph_of(const char *text, int batch)
{
    hwnas_space *space;
    hwnas_arch *arch;
    hwnas_graph *raw, *graph;
    char *whole = hwnas_printf("hwnas: 1\nname: test\n%s", text);
    ok(hwnas_space_parse(&space, "test.yaml", whole, strlen(whole), NULL));
    ok(hwnas_graph_check(space));
    ok(hwnas_arch_parse(&arch, space, ""));
    ok(hwnas_graph_build(&raw, arch, batch));
    ok(hwnas_graph_fold(&graph, raw));
    hwnas_graph_free(raw);
    hwnas_arch_free(arch);
    hwnas_space_free(space);
    free(whole);
    return graph;
}

/* ---- What cuDNN would say, decided here ---- */

static const char *refused; /* a step with this operator among others; NULL: none is refused */
static bool refuses_slices;

static hwnas_status pretend(hwnas_cudnn_step *step, hwnas_cudnn_net *net)
{
    bool is_bad = false;
    if (step->kind != &hwnas_cudnn_engine)
        return HWNAS_OK;
    for (size_t i = 0; refused && i < step->about.n_nodes; i++)
        is_bad |= !strcmp(net->graph->nodes[step->about.nodes[i]].op->name, refused);
    is_bad |= refuses_slices && net->tensors[step->outputs[0]].root != step->outputs[0];
    step->workspace = 1000;
    return is_bad ? hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "the test refuses it") : HWNAS_OK;
}

static hwnas_cudnn_net *net_of(const char *text, int batch, hwnas_precision precision)
{
    static hwnas_cuda_device device;
    hwnas_graph *graph = graph_of(text, batch);
    hwnas_cudnn_net *net;
    ok(hwnas_cudnn_net_new(&net, &device, graph, precision, pretend));
    hwnas_graph_free(graph);
    return net;
}

/* "cuDNN conv relu add|kernel softmax": all steps that do something. */
static void assert_steps(const hwnas_cudnn_net *net, const char *expected)
{
    hwnas_str text = {0};
    for (size_t i = 0; i < net->n_about; i++) {
        const hwnas_exec_step *about = &net->about[i];
        hwnas_str_addf(&text, "%s%s", i ? "|" : "", about->how);
        for (size_t k = 0; k < about->n_nodes; k++)
            hwnas_str_addf(&text, " %s", net->graph->nodes[about->nodes[k]].op->name);
    }
    assert_string_equal(text.s, expected);
    hwnas_str_done(&text);
}

static int tensor_of(const hwnas_cudnn_net *net, const char *op, int nth)
{
    for (size_t i = 0; i < net->graph->n_nodes; i++)
        if (!strcmp(net->graph->nodes[i].op->name, op) && !nth--)
            return net->graph->nodes[i].output;
    fail_msg("there is no such '%s'", op);
    return -1;
}

/* ---- What must hold of every net ---- */

/* Writes each step's number into a picture of the activations, where its output goes: what a step
 * reads must still be whose it was. */
static void assert_places_keep(const hwnas_cudnn_net *net)
{
    const size_t unit = 64, n = net->memory_bytes[HWNAS_CUDNN_ACTIVATIONS] / unit;
    int *owner = calloc(n + 1, sizeof *owner);
    for (size_t i = 0; i < net->n_steps; i++) {
        const hwnas_cudnn_step *step = &net->steps[i];
        const int written = net->tensors[step->outputs[0]].root;
        const hwnas_cudnn_tensor *out = &net->tensors[written];
        if (out->memory == HWNAS_CUDNN_ACTIVATIONS)
            for (size_t at = out->offset / unit; at * unit < out->offset + out->bytes; at++)
                owner[at] = written + 1;
        for (int k = 0; k < step->n_inputs; k++) {
            const int root = net->tensors[step->inputs[k]].root;
            const hwnas_cudnn_tensor *t = &net->tensors[root];
            assert_true(t->memory != HWNAS_CUDNN_NOWHERE);
            if (t->memory != HWNAS_CUDNN_ACTIVATIONS)
                continue;
            assert_true(t->offset + t->bytes <= n * unit);
            for (size_t at = t->offset / unit; at * unit < t->offset + t->bytes; at++)
                assert_int_equal(owner[at], root + 1);
        }
    }
    free(owner);
}

static int64_t last_of(int rank, const int64_t *dims, const int64_t *strides)
{
    int64_t last = 0;
    for (int i = 0; i < rank; i++)
        last += (dims[i] - 1) * strides[i];
    return last;
}

/* However cuDNN sees a tensor, as rows of one matrix or as an image: it reaches all of it, and no
 * more. */
static void assert_ports_reach_all(const hwnas_cudnn_net *net)
{
    for (size_t i = 0; i < net->n_steps; i++) {
        if (net->steps[i].kind != &hwnas_cudnn_engine)
            continue;
        const hwnas_cudnn_operation *o = net->steps[i].state;
        for (int p = 0; p < o->n_ports; p++) {
            const hwnas_cudnn_port *port = &o->ports[p];
            if (port->kind != HWNAS_CUDNN_PORT_MEMORY)
                continue;
            const hwnas_cudnn_tensor *t = &net->tensors[port->tensor];
            assert_int_equal(last_of(port->rank, port->dims, port->strides),
                             last_of(t->rank, t->dims, t->strides));
        }
    }
}

static void assert_sound(const hwnas_cudnn_net *net)
{
    assert_places_keep(net);
    assert_ports_reach_all(net);
    bool *computed = calloc(net->graph->n_nodes, sizeof *computed);
    for (size_t i = 0; i < net->n_steps; i++)
        for (size_t k = 0; k < net->steps[i].about.n_nodes; k++) {
            assert_false(computed[net->steps[i].about.nodes[k]]);
            computed[net->steps[i].about.nodes[k]] = true;
        }
    for (size_t i = 0; i < net->graph->n_nodes; i++)
        assert_true(computed[i]);
    for (size_t i = 0; i < net->graph->n_outputs; i++) {
        const hwnas_cudnn_tensor *t = &net->tensors[net->outputs[i]];
        assert_int_equal(t->memory, HWNAS_CUDNN_OUTPUTS);
        assert_int_equal(t->type, HWNAS_CUDNN_F32);
        assert_true(hwnas_cudnn_is_plain(t));
    }
    free(computed);
}

/* ---- Cases ---- */

#define IMAGE "input: {image: [3, 32, 32]}\n"
#define WORDS "input: {image: [4, 64, 16]}\n"

static void nodes_share_steps(void **state)
{
    static const struct {
        const char *text, *steps; /* a conversion has no operators */
    } rows[] = {
        {IMAGE "network:\n- conv: {out: 8, kernel: 3, pad: 1}\n- batch_norm\n- relu\n",
         "kernel|cuDNN conv relu|kernel"},
        /* a residual sum goes into the convolution before it */
        {IMAGE "network:\n- conv: {out: 8, kernel: 1}\n"
               "- residual: [conv: {out: 8, kernel: 3, pad: 1}]\n- relu\n",
         "kernel|cuDNN conv|cuDNN conv add relu|kernel"},
        /* x sigmoid(x) */
        {IMAGE "network:\n- conv: {out: 8, kernel: 3}\n- mul: [[], [sigmoid]]\n"
               "- max_pool: {kernel: 2, stride: 2}\n",
         "kernel|cuDNN conv sigmoid mul|cuDNN max_pool|kernel"},
        /* two read the convolution: what follows it cannot hide it */
        {IMAGE "network:\n- conv: {out: 8, kernel: 3}\n- as: x\n- relu\n- add: [[], [from: x]]\n"
               "- tanh\n",
         "kernel|cuDNN conv relu add tanh|kernel"},
        {IMAGE "network:\n- global_avg_pool\n- flatten\n- linear: {out: 10}\n- relu\n",
         "kernel|cuDNN global_avg_pool|cuDNN linear relu"},
        {IMAGE "network:\n- flatten\n- linear: {out: 10}\n- softmax\n",
         "cuDNN linear|kernel softmax"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hwnas_cudnn_net *net = net_of(rows[i].text, 1, HWNAS_TF32);
        assert_steps(net, rows[i].steps);
        assert_sound(net);
        hwnas_cudnn_net_free(net);
    }
}

static void refused_steps_are_cut_otherwise(void **state)
{
    static const char text[] =
        IMAGE "network:\n- conv: {out: 8, kernel: 3}\n- relu\n- tanh\n- sigmoid\n";
    static const struct {
        const char *refused, *steps;
    } rows[] = {
        {NULL, "kernel|cuDNN conv relu tanh sigmoid|kernel"},
        {"sigmoid", "kernel|cuDNN conv relu tanh|kernel sigmoid|kernel"},
        {"tanh", "kernel|cuDNN conv relu|kernel tanh|cuDNN sigmoid|kernel"},
        {"conv", "kernel conv|cuDNN relu tanh sigmoid|kernel"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        refused = rows[i].refused;
        hwnas_cudnn_net *net = net_of(text, 2, HWNAS_TF32);
        refused = NULL;
        assert_steps(net, rows[i].steps);
        assert_sound(net);
        hwnas_cudnn_net_free(net);
    }
}

/* ---- Bytes ---- */

static hwnas_cudnn_net *net_of_bytes(const char *text)
{
    static hwnas_cuda_device device = {.is_dry = true};
    hwnas_graph *graph = graph_of(text, 1), *bytes;
    hwnas_cudnn_net *net;
    int *origin;
    ok(hwnas_cudnn_quantize(&bytes, &origin, &device, graph, NULL));
    ok(hwnas_cudnn_net_new(&net, &device, bytes, HWNAS_S8, pretend));
    hwnas_graph_free(bytes);
    hwnas_graph_free(graph);
    free(origin);
    return net;
}

/* "s8 s8 [s32] ...": the types of a step's ports, those inside of it in brackets, numbers
 * left out. */
static void assert_types(const hwnas_cudnn_net *net, const char *op, int nth, const char *expected)
{
    const int output = tensor_of(net, op, nth);
    const int node = net->graph->tensors[output].producer;
    hwnas_str text = {0};
    for (size_t i = 0; i < net->n_about; i++)
        for (size_t k = 0; k < net->steps[i].about.n_nodes; k++) {
            const hwnas_cudnn_operation *o = net->steps[i].state;
            if (net->steps[i].about.nodes[k] != node || net->steps[i].kind != &hwnas_cudnn_engine)
                continue;
            for (int p = 0; p < o->n_ports; p++)
                if (o->ports[p].kind != HWNAS_CUDNN_PORT_SCALAR)
                    hwnas_str_addf(&text,
                                   o->ports[p].kind == HWNAS_CUDNN_PORT_VIRTUAL ? " [%s]" : " %s",
                                   hwnas_cudnn_type_name(o->ports[p].type));
        }
    assert_string_equal(text.s ? text.s : "", expected);
    hwnas_str_done(&text);
}

static void bytes_are_multiplied(void **state)
{
    static const char text[] =
        IMAGE "network:\n- conv: {out: 16, kernel: 3, pad: 1}\n- relu\n"
              "- residual: [conv: {out: 16, kernel: 3, pad: 1}]\n- relu\n"
              "- conv: {out: 8, kernel: 1}\n- global_avg_pool\n- flatten\n- linear: {out: 10}\n";
    (void)state;
    hwnas_cudnn_net *net = net_of_bytes(text);
    assert_sound(net);
    /* image, weights, their product, a scale for each channel and one of the image, bias, relu,
     * bytes */
    assert_types(net, "conv", 0, " s8 s8 [s32] f32 [f32] [f32] f32 [f32] [f32] s8");
    /* the sum reads the same bytes as the convolution, made floats before they are added */
    assert_types(net, "add", 0, " s8 s8 [s32] f32 [f32] [f32] [f32] [f32] f32 [f32] [f32] s8");
    assert_steps(net,
                 "kernel quantize_linear|cuDNN dequantize_linear dequantize_linear conv relu "
                 "quantize_linear|cuDNN dequantize_linear dequantize_linear dequantize_linear "
                 "conv add relu quantize_linear|cuDNN dequantize_linear dequantize_linear conv|"
                 "cuDNN global_avg_pool|kernel quantize_linear|"
                 "cuDNN dequantize_linear dequantize_linear linear|kernel");
    hwnas_cudnn_net_free(net);
}

/* First what follows is left out, then the bytes, and then the engine. */
static void refused_bytes_are_multiplied_as_floats(void **state)
{
    (void)state;
    refused = "conv";
    hwnas_cudnn_net *net = net_of_bytes(IMAGE "network:\n- conv: {out: 16, kernel: 3}\n- relu\n");
    refused = NULL;
    assert_sound(net);
    assert_steps(net, "kernel quantize_linear|kernel dequantize_linear|kernel dequantize_linear|"
                      "kernel conv|cuDNN relu|kernel");
    hwnas_cudnn_net_free(net);
}

static void bytes_of_depthwise_convolutions_are_not(void **state)
{
    (void)state;
    hwnas_cudnn_net *net = net_of_bytes(
        IMAGE "network:\n- conv: {out: 16, kernel: 1}\n- conv: {out: 16, kernel: 3, groups: 16}\n");
    assert_sound(net);
    assert_steps(net, "kernel quantize_linear|cuDNN dequantize_linear dequantize_linear conv "
                      "quantize_linear|kernel dequantize_linear|kernel dequantize_linear|"
                      "cuDNN conv|kernel");
    hwnas_cudnn_net_free(net);
}

/* A product of bytes with weights of 1 x 6 x 6, whose scales are of this dimension. */
static bool is_product_of_bytes(int axis)
{
    static const float ones[36] = {1, 1, 1, 1, 1, 1}, zero;
    const int64_t dims[] = {1, 6, 6};
    const hwnas_op *make = hwnas_op_by_name("quantize_linear");
    const hwnas_op *reverse = hwnas_op_by_name("dequantize_linear");
    const hwnas_attr attrs[] = {hwnas_attr_int(axis), {0}};
    hwnas_graph *graph = hwnas_graph_new("test", 1);
    int x, one, none, weights, scales, zeros, bytes, values, kernel, product;
    ok(hwnas_graph_add_input(&x, graph, "x", HWNAS_FLOAT32, 3, dims));
    ok(hwnas_graph_add_constant(&one, graph, "one", 0, dims, ones));
    ok(hwnas_graph_add_constant(&none, graph, "none", 0, dims, &zero));
    ok(hwnas_graph_add_constant(&weights, graph, "weights", 3, dims, ones));
    ok(hwnas_graph_add_constant(&scales, graph, "scales", 1, dims + 1, ones));
    ok(hwnas_graph_add_constant(&zeros, graph, "zeros", 1, dims + 1, ones + 6));
    graph->tensors[none].dtype = graph->tensors[zeros].dtype = HWNAS_INT8;
    graph->tensors[weights].dtype = HWNAS_INT8;
    ok(hwnas_graph_add_node(&bytes, graph, make, "bytes", NULL, 3, (int[]){x, one, none}, false));
    ok(hwnas_graph_add_node(&values, graph, reverse, "values", NULL, 3, (int[]){bytes, one, none},
                            false));
    ok(hwnas_graph_add_node(&kernel, graph, reverse, "kernel", attrs, 3,
                            (int[]){weights, scales, zeros}, false));
    ok(hwnas_graph_add_node(&product, graph, hwnas_op_by_name("matmul"), "product", NULL, 2,
                            (int[]){values, kernel}, false));
    const bool is_one =
        hwnas_cudnn_multiplies_int8(graph, &graph->nodes[graph->tensors[product].producer]);
    hwnas_graph_free(graph);
    return is_one;
}

static void scales_of_bytes_are_of_outputs(void **state)
{
    (void)state;
    assert_true(is_product_of_bytes(2));
    assert_false(is_product_of_bytes(1)); /* behind the product they could not be told apart */
}

/* Engines for elements say that they use tensor cores; only of products that is a reason
 * to refuse. */
static void products_alone_must_be_exact(void **state)
{
    (void)state;
    hwnas_cudnn_net *net = net_of(
        IMAGE "network:\n- conv: {out: 8, kernel: 3}\n- max_pool: {kernel: 2}\n- sigmoid\n", 1,
        HWNAS_F32);
    int n_products = 0, n_others = 0;
    for (size_t i = 0; i < net->n_steps; i++) {
        if (net->steps[i].kind != &hwnas_cudnn_engine)
            continue;
        const hwnas_cudnn_operation *o = net->steps[i].state;
        const bool is_product = o->ops[0].kind == HWNAS_CUDNN_CONV;
        assert_int_equal(o->is_exact, is_product);
        n_products += is_product;
        n_others += !is_product;
    }
    assert_int_equal(n_products, 1);
    assert_int_equal(n_others, 2);
    hwnas_cudnn_net_free(net);
}

/* Rows of four dimensions are those of one matrix, whose results lie as the four dimensions do. */
static void four_dimensions_are_seen_as_a_matrix(void **state)
{
    static const struct {
        const char *text, *steps;
    } rows[] = {
        {"input: {image: [5, 6, 16]}\nnetwork:\n- mean: {axes: [3], keep: true}\n", "cuDNN mean"},
        {"input: {image: [5, 6, 16]}\nnetwork:\n- mean: {axes: [0], keep: true}\n", "cuDNN mean"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hwnas_cudnn_net *net = net_of(rows[i].text, 2, HWNAS_F32);
        assert_sound(net);
        assert_steps(net, rows[i].steps);
        hwnas_cudnn_net_free(net);
    }
}

static void images_lie_with_channels_together(void **state)
{
    (void)state;
    hwnas_cudnn_net *net =
        net_of(IMAGE "network:\n- conv: {out: 8, kernel: 3, stride: 2, pad: 1}\n- flatten\n"
                     "- linear: {out: 4}\n",
               2, HWNAS_F16);
    const hwnas_cudnn_tensor *conv = &net->tensors[tensor_of(net, "conv", 0)];
    const hwnas_cudnn_tensor *flat = &net->tensors[tensor_of(net, "flatten", 0)];
    const int64_t image[] = {8 * 16 * 16, 1, 16 * 8, 8};
    assert_memory_equal(conv->strides, image, sizeof image);
    assert_int_equal(conv->type, HWNAS_CUDNN_F16);
    assert_true(hwnas_cudnn_is_plain(flat)); /* in the graph's order, so it was converted */
    assert_true(flat->root != tensor_of(net, "conv", 0));
    assert_int_equal(net->tensors[net->inputs[0]].type, HWNAS_CUDNN_F32);
    assert_steps(net, "kernel|cuDNN conv|kernel|cuDNN linear|kernel");
    assert_int_equal(net->workspace_bytes, 1000);
    assert_sound(net);
    hwnas_cudnn_net_free(net);
}

#define BRANCHES                                                                                   \
    IMAGE "network:\n- conv: {out: 6, kernel: 1}\n- concat:\n"                                     \
          "  - [conv: {out: 8, kernel: 1}, relu]\n  - [max_pool: {kernel: 3, pad: 1}]\n"           \
          "  - [conv: {out: 4, kernel: 3, pad: 1}]\n- conv: {out: 2, kernel: 1}\n"

static void convolutions_write_slices(void **state)
{
    (void)state;
    hwnas_cudnn_net *net = net_of(BRANCHES, 1, HWNAS_F16);
    const int whole = tensor_of(net, "concat", 0), relu = tensor_of(net, "relu", 0);
    const int last = tensor_of(net, "conv", 2), pool = tensor_of(net, "max_pool", 0);
    assert_int_equal(net->tensors[relu].root, whole);
    assert_int_equal(net->tensors[relu].first, 0);
    assert_int_equal(net->tensors[last].root, whole);
    assert_int_equal(net->tensors[last].first, 8 + 6); /* behind 8 channels and the pool's 6 */
    assert_int_equal(net->tensors[last].strides[3], 18);
    assert_int_equal(net->tensors[pool].root, pool); /* pools want no gaps: copied */
    assert_steps(net,
                 "kernel|cuDNN conv|cuDNN conv relu|cuDNN max_pool|cuDNN conv|kernel|cuDNN conv|"
                 "kernel");
    assert_sound(net);
    hwnas_cudnn_net_free(net);

    refuses_slices = true;
    net = net_of(BRANCHES, 1, HWNAS_F16);
    refuses_slices = false;
    assert_int_equal(net->tensors[relu].root, relu);
    assert_steps(net, "kernel|cuDNN conv|cuDNN conv relu|cuDNN max_pool|cuDNN conv|kernel|kernel|"
                      "kernel|cuDNN conv|kernel");
    assert_sound(net);
    hwnas_cudnn_net_free(net);
}

/* A slice that begins at an odd channel is aligned to its element alone, and the signature
 * says so. */
static void slices_tell_their_alignment(void **state)
{
    const hwnas_cudnn_tensor at_8 = {.type = HWNAS_CUDNN_F16, .first = 8};
    const hwnas_cudnn_tensor at_3 = {.type = HWNAS_CUDNN_F16, .first = 3};
    const hwnas_cudnn_tensor at_6 = {.type = HWNAS_CUDNN_F32, .first = 6};
    (void)state;
    assert_int_equal(hwnas_cudnn_alignment(&at_8), 16);
    assert_int_equal(hwnas_cudnn_alignment(&at_3), 2);
    assert_int_equal(hwnas_cudnn_alignment(&at_6), 8);
}

static void reshapes_are_views_where_strides_allow(void **state)
{
    static const struct {
        int rank;
        int64_t dims[4], strides[4];
        int new_rank;
        int64_t new_dims[4], expected[4];
        bool can;
    } rows[] = {
        /* rows and columns of an image lie in equal steps, */
        {4, {2, 8, 4, 5}, {160, 1, 40, 8}, 3, {2, 8, 20}, {160, 1, 8}, true},
        /* but not behind its channels */
        {4, {2, 8, 4, 5}, {160, 1, 40, 8}, 2, {2, 160}, {0}, false},
        {4, {2, 8, 1, 1}, {8, 1, 8, 8}, 2, {2, 8}, {8, 1}, true},
        {3, {2, 3, 4}, {12, 4, 1}, 4, {2, 3, 2, 2}, {12, 4, 2, 1}, true},
        {3, {2, 3, 4}, {4, 8, 1}, 2, {6, 4}, {0}, false}, /* transposed */
        {2, {6, 4}, {10, 1}, 3, {2, 3, 4}, {30, 10, 1}, true}, /* a slice */
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hwnas_cudnn_tensor t = {.rank = rows[i].rank};
        int64_t strides[HWNAS_MAX_RANK];
        memcpy(t.dims, rows[i].dims, sizeof rows[i].dims);
        memcpy(t.strides, rows[i].strides, sizeof rows[i].strides);
        assert_int_equal(hwnas_cudnn_reshape(strides, &t, rows[i].new_rank, rows[i].new_dims),
                         rows[i].can);
        if (rows[i].can)
            assert_memory_equal(strides, rows[i].expected,
                                (size_t)rows[i].new_rank * sizeof *strides);
    }
}

#define ATTENTION                                                                                  \
    "input: {words: [16, 32]}\ntemplates:\n  split:\n  - linear: {out: 32}\n"                      \
    "  - reshape: {shape: [-1, 4, 8]}\n  - transpose: {order: [0, 2, 1, 3]}\nnetwork:\n- as: x\n"  \
    "- split\n- matmul: [[], [from: x, split, transpose: {order: [0, 1, 3, 2]}]]\n"                \
    "- scale: {by: 0.35}\n- softmax\n- matmul: [[], [from: x, split]]\n"                           \
    "- transpose: {order: [0, 2, 1, 3]}\n- reshape: {shape: [-1, 32]}\n- linear: {out: 32}\n"

static void attention_is_one_plan(void **state)
{
    static const char *const whole =
        "kernel|cuDNN matmul add|cuDNN matmul add|cuDNN matmul add|cuDNN matmul mul softmax matmul|"
        "cuDNN matmul add|kernel";
    (void)state;
    hwnas_cudnn_net *net = net_of(ATTENTION, 2, HWNAS_F16);
    assert_steps(net, whole);
    assert_sound(net);
    hwnas_cudnn_net_free(net);
    refused = "softmax";
    net = net_of(ATTENTION, 2, HWNAS_F16);
    refused = NULL;
    assert_steps(net, "kernel|cuDNN matmul add|cuDNN matmul add|kernel|kernel|cuDNN matmul mul|"
                      "kernel softmax|cuDNN matmul add|kernel|cuDNN matmul|kernel|cuDNN matmul add|"
                      "kernel");
    assert_sound(net);
    hwnas_cudnn_net_free(net);
}

/* Seen on an H100: cuDNN 9.19 makes a plan of attention in fp32 that reads where nothing is. */
static void attention_in_fp32_is_two_products(void **state)
{
    (void)state;
    hwnas_cudnn_net *net = net_of(ATTENTION, 1, HWNAS_TF32);
    assert_sound(net);
    assert_steps(net, "cuDNN matmul add|cuDNN matmul add|cuDNN matmul mul|kernel softmax|"
                      "cuDNN matmul add|cuDNN matmul|cuDNN matmul add");
    hwnas_cudnn_net_free(net);
}

/* cuDNN's products count matrices by one dimension, and refuse two (9.19, for each GPU that is
 * described). */
static void batches_of_products_have_one_dimension(void **state)
{
    (void)state;
    refused = "softmax";
    hwnas_cudnn_net *net = net_of(ATTENTION, 2, HWNAS_F16);
    refused = NULL;
    int n_products = 0;
    for (size_t i = 0; i < net->n_steps; i++) {
        const hwnas_cudnn_operation *o = net->steps[i].state;
        if (net->steps[i].kind != &hwnas_cudnn_engine || o->ops[0].kind != HWNAS_CUDNN_MATMUL)
            continue;
        for (int k = 0; k < o->n_ports; k++)
            assert_int_equal(o->ports[k].rank, 3);
        n_products++;
    }
    assert_int_equal(n_products, 6);
    hwnas_cudnn_net_free(net);
}

/* Seen on an H100: what cuDNN 9.19 writes for them is noise. */
static void pools_in_bf16_are_kernels_of_ours(void **state)
{
    static const struct {
        hwnas_precision precision;
        const char *steps;
    } rows[] = {
        {HWNAS_F16, "kernel|cuDNN max_pool|cuDNN avg_pool|cuDNN global_avg_pool|kernel"},
        {HWNAS_BF16, "kernel max_pool|kernel avg_pool|kernel global_avg_pool|kernel"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hwnas_cudnn_net *net = net_of(IMAGE "network:\n- max_pool: {kernel: 3, stride: 1, pad: "
                                            "1}\n- avg_pool: {kernel: 3, stride: 1}\n"
                                            "- global_avg_pool\n",
                                      1, rows[i].precision);
        assert_sound(net);
        assert_steps(net, rows[i].steps);
        hwnas_cudnn_net_free(net);
    }
}

/* Seen on an H200: cuDNN 9.19 reads elsewhere where a [6, 1, 1] meets a [6, 4, 5]. */
static void what_is_repeated_in_lines_and_planes_is_a_kernel_of_ours(void **state)
{
    static const struct {
        const char *other, *steps;
    } rows[] = {
        {"[3, 1, 1]", "kernel mul relu"}, {"[1, 4, 1]", "kernel mul relu"},
        {"[3, 4, 1]", "cuDNN mul relu"}, /* as [24, 1] with [24, 5] */
        {"[1, 1, 5]", "cuDNN mul relu"},  {"[3, 1, 5]", "cuDNN mul relu"},
        {"[1, 4, 5]", "cuDNN mul relu"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[256];
        snprintf(text, sizeof text,
                 "input: {x: [3, 4, 5], y: %s}\nnetwork:\n- mul: [[from: x], [from: y]]\n- relu\n",
                 rows[i].other);
        hwnas_cudnn_net *net = net_of(text, 2, HWNAS_TF32);
        assert_sound(net);
        assert_steps(net, rows[i].steps);
        hwnas_cudnn_net_free(net);
    }
}

/* Behind a depthwise convolution a ReLU would be left to cuDNN's slowest engine. */
static void relu_behind_depthwise_is_a_maximum(void **state)
{
    static const struct {
        const char *groups;
        int mode;
    } rows[] = {{"16", CUDNN_POINTWISE_MAX},
                {"4", CUDNN_POINTWISE_RELU_FWD},
                {"1", CUDNN_POINTWISE_RELU_FWD}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[256];
        snprintf(text, sizeof text,
                 "input: {image: [16, 8, 8]}\nnetwork:\n- conv: {out: 16, kernel: 3, groups: "
                 "%s}\n- relu\n",
                 rows[i].groups);
        hwnas_cudnn_net *net = net_of(text, 1, HWNAS_F16);
        const hwnas_cudnn_operation *o = NULL;
        for (size_t k = 0; k < net->n_steps; k++)
            if (net->steps[k].kind == &hwnas_cudnn_engine)
                o = net->steps[k].state;
        assert_non_null(o);
        assert_int_equal(o->ops[o->n_ops - 1].mode, rows[i].mode);
        hwnas_cudnn_net_free(net);
    }
}

/* cuDNN's own products round to tf32, cuBLAS's do not. */
static void exact_products_are_by_cublas(void **state)
{
    static const char text[] =
        "input: {image: [3, 4, 4]}\nnetwork:\n- flatten\n- linear: {out: 10}\n";
    (void)state;
    for (int i = 0; i < 2; i++) {
        hwnas_cudnn_net *net = net_of(text, 1, i ? HWNAS_F32 : HWNAS_TF32);
        const hwnas_cudnn_operation *o = NULL;
        for (size_t k = 0; k < net->n_steps; k++)
            if (net->steps[k].kind == (i ? &hwnas_cublas : &hwnas_cudnn_engine))
                o = net->steps[k].state;
        assert_non_null(o);
        assert_int_equal(o->ops[0].kind, HWNAS_CUDNN_MATMUL);
        assert_int_equal(o->is_exact, i);
        hwnas_cudnn_net_free(net);
    }
}

/* ---- Weights ---- */

static void weights_lie_as_their_readers_want(void **state)
{
    (void)state;
    hwnas_cudnn_net *net = net_of(
        IMAGE "network:\n- conv: {out: 4, kernel: 3, bias: false}\n", 1, HWNAS_F16);
    int found = -1;
    for (size_t i = 0; i < net->n_tensors; i++)
        if (net->tensors[i].memory == HWNAS_CUDNN_WEIGHTS)
            found = (int)i;
    assert_true(found >= 0);
    const hwnas_cudnn_tensor *t = &net->tensors[found];
    const int64_t strides[] = {27, 1, 9, 3}; /* outputs, rows, columns, inputs */
    assert_memory_equal(t->strides, strides, sizeof strides);
    assert_int_equal(t->bytes, 4 * 27 * 2);
    float plain[4 * 27];
    uint16_t *laid_out = calloc(4 * 27, sizeof *laid_out);
    hwnas_tensor_fill(&net->graph->tensors[t->source], plain);
    hwnas_cudnn_fill(laid_out, net, found);
    for (int o = 0; o < 4; o++)
        for (int c = 0; c < 3; c++)
            for (int at = 0; at < 9; at++)
                assert_int_equal(laid_out[o * 27 + at * 3 + c],
                                 hwnas_half_of(plain[o * 27 + c * 9 + at]));
    free(laid_out);
    hwnas_cudnn_net_free(net);
}

/* ---- Descriptions of GPUs ---- */

static char *temporary(const char *text)
{
    char *path = hwnas_strdup("/tmp/hwnas-gpu-XXXXXX.json");
    const int fd = mkstemps(path, 5);
    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    return path;
}

static void descriptions_are_read(void **state)
{
    static const struct {
        const char *name;
        int sm, multiprocessors, gib; /* as their data sheets say */
    } rows[] = {{"h200", 90, 132, 140}, {"a100", 80, 108, 79}, {"l4", 89, 58, 21}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hwnas_gpu gpu;
        ok(hwnas_gpu_read(&gpu, rows[i].name));
        assert_int_equal(gpu.sm, rows[i].sm);
        assert_int_equal(gpu.multiprocessors, rows[i].multiprocessors);
        assert_int_equal(gpu.memory_bytes >> 30, rows[i].gib);
        hwnas_gpu_done(&gpu);
    }
}

static void bad_descriptions_are_told(void **state)
{
    char *whole;
    size_t length;
    hwnas_gpu gpu;
    (void)state;
    ok(hwnas_file_read(&whole, &length, HWNAS_SOURCE_DIR "/gpus/h200.json", 1 << 20));
    assert_int_equal(hwnas_gpu_read(&gpu, "h300"), HWNAS_E_NOT_FOUND);
    for (size_t n = 0; n + 2 < length; n += 37) { /* cut short anywhere */
        char *cut = hwnas_strdup(whole);
        cut[n] = '\0';
        char *path = temporary(cut);
        assert_int_equal(hwnas_gpu_read(&gpu, path), HWNAS_E_INPUT);
        unlink(path);
        free(path);
        free(cut);
    }
    static const struct {
        const char *from, *to, *said;
    } rows[] = {{"hwnas.gpu", "hwnas.cpu", "not a description"},
                {"warpSize", "warpsize", "'warpSize'"},
                {"\"l2CacheSize\": 6", "\"l2CacheSize\": -6", "'l2CacheSize'"},
                {"\"maxGridSize\": [2147483647, ", "\"maxGridSize\": [", "'maxGridSize'"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *at = strstr(whole, rows[i].from);
        assert_non_null(at);
        char *changed = hwnas_printf("%.*s%s%s", (int)(at - whole), whole, rows[i].to,
                                     at + strlen(rows[i].from));
        char *path = temporary(changed);
        assert_int_equal(hwnas_gpu_read(&gpu, path), HWNAS_E_INPUT);
        assert_non_null(strstr(hwnas_last_error()->message, rows[i].said));
        unlink(path);
        free(path);
        free(changed);
    }
    free(whole);
}

/* ---- Kept plans ---- */

static size_t version = 91900;
static size_t get_version(void)
{
    return version;
}

static char *only_file(const char *directory)
{
    char *list = hwnas_printf("ls %s", directory);
    FILE *names = popen(list, "r");
    char name[256] = "";
    if (!fgets(name, sizeof name, names))
        *name = '\0';
    pclose(names);
    free(list);
    name[strcspn(name, "\n")] = '\0';
    return *name ? hwnas_printf("%s/%s", directory, name) : NULL;
}

static void kept_plans_are_believed_only_if_they_fit(void **state)
{
    char directory[] = "/tmp/hwnas-plans-XXXXXX", *json = NULL;
    const hwnas_cudnn_api api = {.version = get_version, .cudart_version = get_version};
    hwnas_cuda_device device = {.cudnn = &api, .gpu = {.cudnn = (char *)"{\"deviceVer\":900}"}};
    hwnas_cudnn_plan plan = {.signature = (char *)"any conv", .engine = 7, .workspace = 4096}, read;
    (void)state;
    assert_non_null(mkdtemp(directory));
    setenv("HWNAS_PLANS", directory, 1);
    hwnas_cudnn_plan_save(&plan, "{\"kernel\":\"...\"}", &device);
    assert_true(hwnas_cudnn_plan_load(&read, &json, &device, "any conv"));
    assert_int_equal(read.engine, 7);
    assert_int_equal(read.workspace, 4096);
    assert_string_equal(json, "{\"kernel\":\"...\"}");
    free(json);
    assert_false(hwnas_cudnn_plan_load(&read, &json, &device, "any pool"));

    /* Of another GPU, another cuDNN: not found; brought into their place, noticed and deleted. */
    char *path = only_file(directory), *text;
    size_t length;
    ok(hwnas_file_read(&text, &length, path, 1 << 20));
    hwnas_cuda_device other = device;
    other.gpu.cudnn = (char *)"{\"deviceVer\":800}";
    assert_false(hwnas_cudnn_plan_load(&read, &json, &other, "any conv"));
    unlink(path);
    hwnas_cudnn_plan_save(&plan, "{}", &other);
    char *theirs = only_file(directory);
    ok(hwnas_file_write(theirs, text, length));
    assert_false(hwnas_cudnn_plan_load(&read, &json, &other, "any conv"));
    assert_false(hwnas_file_exists(theirs));
    version = 92000;
    ok(hwnas_file_write(path, text, length));
    assert_false(hwnas_cudnn_plan_load(&read, &json, &device, "any conv"));
    version = 91900;

    /* GPUs that are here are known by what they are, not by a description. */
    hwnas_cuda_device first = {.cudnn = &api, .gpu = {.name = "NVIDIA A100", .sm = 80}},
                      second = first;
    second.gpu = (hwnas_gpu){.name = "NVIDIA H100", .sm = 90};
    unlink(path);
    hwnas_cudnn_plan_save(&plan, "{}", &first);
    assert_true(hwnas_cudnn_plan_load(&read, &json, &first, "any conv"));
    free(json);
    assert_false(hwnas_cudnn_plan_load(&read, &json, &second, "any conv"));
    hwnas_cudnn_plan_drop(&first, "any conv");

    /* Cut short anywhere, or with one byte changed. */
    for (size_t n = 0; n < length; n += 11) {
        ok(hwnas_file_write(path, text, n));
        assert_false(hwnas_cudnn_plan_load(&read, &json, &device, "any conv"));
        assert_false(hwnas_file_exists(path));
    }
    for (size_t n = length - 8; n < length; n++) {
        text[n] ^= 1;
        ok(hwnas_file_write(path, text, length));
        assert_false(hwnas_cudnn_plan_load(&read, &json, &device, "any conv"));
        text[n] ^= 1;
    }
    ok(hwnas_file_write(path, text, length));
    assert_true(hwnas_cudnn_plan_load(&read, &json, &device, "any conv"));
    free(json);
    hwnas_cudnn_plan_drop(&device, "any conv");
    assert_false(hwnas_file_exists(path));
    assert_int_equal(rmdir(directory), 0);
    unsetenv("HWNAS_PLANS");
    free(theirs);
    free(path);
    free(text);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_share_steps),
        cmocka_unit_test(refused_steps_are_cut_otherwise),
        cmocka_unit_test(bytes_are_multiplied),
        cmocka_unit_test(refused_bytes_are_multiplied_as_floats),
        cmocka_unit_test(bytes_of_depthwise_convolutions_are_not),
        cmocka_unit_test(scales_of_bytes_are_of_outputs),
        cmocka_unit_test(products_alone_must_be_exact),
        cmocka_unit_test(four_dimensions_are_seen_as_a_matrix),
        cmocka_unit_test(images_lie_with_channels_together),
        cmocka_unit_test(convolutions_write_slices),
        cmocka_unit_test(slices_tell_their_alignment),
        cmocka_unit_test(reshapes_are_views_where_strides_allow),
        cmocka_unit_test(attention_is_one_plan),
        cmocka_unit_test(attention_in_fp32_is_two_products),
        cmocka_unit_test(batches_of_products_have_one_dimension),
        cmocka_unit_test(pools_in_bf16_are_kernels_of_ours),
        cmocka_unit_test(what_is_repeated_in_lines_and_planes_is_a_kernel_of_ours),
        cmocka_unit_test(relu_behind_depthwise_is_a_maximum),
        cmocka_unit_test(exact_products_are_by_cublas),
        cmocka_unit_test(weights_lie_as_their_readers_want),
        cmocka_unit_test(descriptions_are_read),
        cmocka_unit_test(bad_descriptions_are_told),
        cmocka_unit_test(kept_plans_are_believed_only_if_they_fit),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
