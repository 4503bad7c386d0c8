/* test_onnx.c: src/onnx. What is written comes back as it was; what others write is understood or
 * refused with a reason; broken bytes are refused. tests/cli/onnx.bats asks other programs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "graph/elaborate.h"
#include "graph/rewrite.h"
#include "onnx/onnx_priv.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- a network with every operator ---- */

static hwnas_attr integers(int n, int64_t a, int64_t b, int64_t c, int64_t d)
{
    return (hwnas_attr){.is_set = true, .n = n, .ints = {a, b, c, d}};
}

static hwnas_attr number(double value)
{
    return (hwnas_attr){.is_set = true, .number = value};
}

/* Adds a layer of one input, or of two when `b` is not -1. */
static int add(hwnas_graph *graph, const char *op, const char *name, int a, int b,
               const hwnas_attr *attrs)
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
    edges[n++] = add(graph, "softmax", "cell/softmax", in, -1,
                     (hwnas_attr[]){integers(1, -3, 0, 0, 0)});
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

static hwnas_graph *make_network(void)
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

/* All values of all tensors, by the operators' own plain C. */
static float **compute(const hwnas_graph *graph)
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

static void free_values(float **values, const hwnas_graph *graph)
{
    for (size_t t = 0; t < graph->n_tensors; t++)
        free(values[t]);
    free(values);
}

static void assert_same_outputs(const hwnas_graph *a, const hwnas_graph *b)
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

static hwnas_graph *written_and_read(const hwnas_graph *graph, hwnas_onnx_weights weights,
                                     size_t *length)
{
    void *bytes = NULL;
    hwnas_graph *back = NULL;
    assert_int_equal(hwnas_onnx_write(&bytes, length, graph, weights), HWNAS_OK);
    if (hwnas_onnx_read(&back, "test.onnx", bytes, *length) != HWNAS_OK)
        fail_msg("%s", hwnas_last_error()->message);
    free(bytes);
    return back;
}

/* ---- what we write ---- */

static void assert_comes_back(const hwnas_graph *graph, hwnas_onnx_weights weights)
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

static void comes_back_with_values(void **state)
{
    (void)state;
    hwnas_graph *graph = make_network();
    assert_comes_back(graph, HWNAS_ONNX_VALUES);
    hwnas_graph_free(graph);
}

static void comes_back_with_seeds(void **state)
{
    (void)state;
    hwnas_graph *graph = make_network();
    assert_comes_back(graph, HWNAS_ONNX_SEEDS);
    hwnas_graph_free(graph);
}

static void given_data_survives_in_both_forms(void **state)
{
    (void)state;
    hwnas_graph *graph = make_network(), *folded = NULL;
    assert_int_equal(hwnas_graph_fold(&folded, graph), HWNAS_OK);
    assert_comes_back(folded, HWNAS_ONNX_VALUES);
    assert_comes_back(folded, HWNAS_ONNX_SEEDS);
    hwnas_graph_free(folded);
    hwnas_graph_free(graph);
}

/* Networks of tests/data/sequences.yaml: tokens, several inputs and outputs, layers of many nodes. */
static hwnas_graph *make_sequences(const char *settings, const char *code)
{
    hwnas_space *space = NULL;
    hwnas_arch *arch = NULL;
    hwnas_graph *graph = NULL;
    char *name = hwnas_printf("%s/sequences.yaml%s", HWNAS_TEST_DATA, settings);
    if (hwnas_graph_load_space(&space, name) || hwnas_arch_parse(&arch, space, code) ||
        hwnas_graph_build(&graph, arch, 2))
        fail_msg("%s", hwnas_last_error()->message);
    hwnas_arch_free(arch);
    hwnas_space_free(space);
    free(name);
    return graph;
}

static void sequences_come_back(void **state)
{
    static const char *const rows[][2] = {
        {"", "hidden=12,heads=2,directions=1"},
        {":positions=4", "hidden=16,heads=4,directions=2"},
        {":phase=step,positions=2", "hidden=12,heads=4,directions=1"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        hwnas_graph *graph = make_sequences(rows[i][0], rows[i][1]);
        assert_comes_back(graph, HWNAS_ONNX_VALUES);
        assert_comes_back(graph, HWNAS_ONNX_SEEDS);
        hwnas_graph_free(graph);
    }
}

/* A product that is no gelu, but for one number, is left as it is. */
static void only_gelu_is_fused(void **state)
{
    static const struct {
        double factor;
        size_t n_nodes;
    } rows[] = {{0.70710678, 1}, {0.7, 5}};
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        hwnas_graph *graph = hwnas_graph_new("gelu", 1), *fused = NULL;
        const int64_t dims[] = {2, 5};
        const float numbers[] = {0.5f, 1, (float)rows[i].factor};
        int x, constants[3];
        assert_int_equal(hwnas_graph_add_input(&x, graph, "x", HWNAS_FLOAT32, 2, dims), HWNAS_OK);
        for (int k = 0; k < 3; k++)
            assert_int_equal(hwnas_graph_add_constant(&constants[k], graph,
                                                      (const char *[]){"half", "one", "root"}[k], 0,
                                                      NULL, &numbers[k]),
                             HWNAS_OK);
        int y = add(graph, "mul", "scaled", constants[2], x, NULL);
        y = add(graph, "erf", "erf", y, -1, NULL);
        y = add(graph, "add", "sum", constants[1], y, NULL);
        y = add(graph, "mul", "gated", y, add(graph, "mul", "halved", x, constants[0], NULL), NULL);
        hwnas_graph_add_output(graph, y);
        assert_int_equal(hwnas_graph_fuse(&fused, graph), HWNAS_OK);
        if (rows[i].n_nodes == 1) {
            assert_int_equal(fused->n_nodes, 1);
            assert_string_equal(fused->nodes[0].op->name, "gelu");
            float **a = compute(graph), **b = compute(fused);
            for (int k = 0; k < 10; k++)
                assert_float_equal(a[y][k], b[fused->outputs[0]][k], 1e-6);
            free_values(a, graph);
            free_values(b, fused);
        } else {
            assert_null(fused);
        }
        hwnas_graph_free(fused);
        hwnas_graph_free(graph);
    }
}

static bool has_operator(const hwnas_graph *graph, const hwnas_op *op)
{
    for (size_t n = 0; n < graph->n_nodes; n++)
        if (graph->nodes[n].op == op)
            return true;
    return false;
}

static void every_operator_is_tried(void **state)
{
    (void)state;
    hwnas_graph *images = make_network();
    hwnas_graph *sequences = make_sequences("", "hidden=12,heads=2,directions=1");
    for (const hwnas_op *const *op = hwnas_ops; *op; op++)
        if ((*op)->onnx && !(*op)->is_internal && !has_operator(images, *op) && !has_operator(sequences, *op))
            fail_msg("'%s' is in no network of this test", (*op)->name);
    hwnas_graph_free(sequences);
    hwnas_graph_free(images);
}

static void writing_is_deterministic(void **state)
{
    (void)state;
    hwnas_graph *graph = make_network();
    void *a = NULL, *b = NULL;
    size_t n_a, n_b;
    assert_int_equal(hwnas_onnx_write(&a, &n_a, graph, HWNAS_ONNX_VALUES), HWNAS_OK);
    assert_int_equal(hwnas_onnx_write(&b, &n_b, graph, HWNAS_ONNX_VALUES), HWNAS_OK);
    assert_int_equal(n_a, n_b);
    assert_memory_equal(a, b, n_a);
    free(a);
    free(b);
    hwnas_graph_free(graph);
}

static void more_than_two_gib_are_refused(void **state)
{
    (void)state;
    hwnas_graph *graph = hwnas_graph_new("large", 1);
    int64_t dims[] = {1, 1 << 15};
    int x;
    assert_int_equal(hwnas_graph_add_input(&x, graph, "x", HWNAS_FLOAT32, 2, dims), HWNAS_OK);
    x = add(graph, "linear", "head", x, -1,
            (hwnas_attr[]){integers(1, 1 << 15, 0, 0, 0), integers(1, 0, 0, 0, 0)});
    hwnas_graph_add_output(graph, x);
    void *bytes = NULL;
    size_t length;
    assert_int_equal(hwnas_onnx_write(&bytes, &length, graph, HWNAS_ONNX_VALUES),
                     HWNAS_E_UNSUPPORTED);
    assert_null(bytes);
    hwnas_graph_free(written_and_read(graph, HWNAS_ONNX_SEEDS, &length));
    hwnas_graph_free(graph);
}

/* ---- what others write: our model, edited ---- */

static void set_text(char **at, const char *text)
{
    free(*at);
    *at = hwnas_strdup(text);
}

static Onnx__NodeProto *find_node(Onnx__ModelProto *model, const char *name)
{
    for (size_t i = 0; i < model->graph->n_node; i++)
        if (!strcmp(model->graph->node[i]->name, name))
            return model->graph->node[i];
    fail_msg("no node '%s'", name);
    return NULL;
}

static Onnx__TensorProto *find_constant(Onnx__ModelProto *model, const char *name)
{
    for (size_t i = 0; i < model->graph->n_initializer; i++)
        if (!strcmp(model->graph->initializer[i]->name, name))
            return model->graph->initializer[i];
    fail_msg("no constant '%s'", name);
    return NULL;
}

static Onnx__AttributeProto *find_attribute(Onnx__NodeProto *node, const char *name)
{
    for (size_t i = 0; i < node->n_attribute; i++)
        if (!strcmp(node->attribute[i]->name, name))
            return node->attribute[i];
    fail_msg("no attribute '%s'", name);
    return NULL;
}

static void remove_attribute(Onnx__NodeProto *node, const char *name)
{
    Onnx__AttributeProto *gone = find_attribute(node, name);
    for (size_t i = 0; i < node->n_attribute; i++)
        if (node->attribute[i] == gone)
            node->attribute[i] = node->attribute[node->n_attribute - 1];
    node->n_attribute--;
    onnx__attribute_proto__free_unpacked(gone, NULL);
}

static Onnx__AttributeProto *add_attribute(Onnx__NodeProto *node, const char *name,
                                           Onnx__AttributeProto__AttributeType type)
{
    Onnx__AttributeProto *made = hwnas_alloc(sizeof *made);
    onnx__attribute_proto__init(made);
    made->name = hwnas_strdup(name);
    made->has_type = true;
    made->type = type;
    node->attribute =
        hwnas_realloc(node->attribute, (node->n_attribute + 1) * sizeof *node->attribute);
    node->attribute[node->n_attribute++] = made;
    return made;
}

static void add_string_attribute(Onnx__NodeProto *node, const char *name, const char *text)
{
    Onnx__AttributeProto *made =
        add_attribute(node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
    made->has_s = true;
    made->s.data = (uint8_t *)hwnas_strdup(text);
    made->s.len = strlen(text);
}

static void add_integer_attribute(Onnx__NodeProto *node, const char *name, int64_t value)
{
    Onnx__AttributeProto *made =
        add_attribute(node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    made->has_i = true;
    made->i = value;
}

static void add_two_dilations(Onnx__NodeProto *node, int64_t value)
{
    Onnx__AttributeProto *made =
        add_attribute(node, "dilations", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    made->ints = hwnas_alloc(2 * sizeof *made->ints);
    made->n_ints = 2;
    made->ints[0] = 1;
    made->ints[1] = value;
}

static void set_dim_param(Onnx__ModelProto *model, int dim)
{
    Onnx__TensorShapeProto__Dimension *to =
        model->graph->input[0]->type->tensor_type->shape->dim[dim];
    to->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
    to->dim_param = hwnas_strdup("N");
}

static hwnas_status read_edited(hwnas_graph **out, void (*edit)(Onnx__ModelProto *model))
{
    hwnas_graph *graph = make_network();
    void *bytes = NULL;
    size_t length;
    Onnx__ModelProto *model = NULL;
    assert_int_equal(hwnas_onnx_write(&bytes, &length, graph, HWNAS_ONNX_VALUES), HWNAS_OK);
    assert_int_equal(hwnas_onnx_unpack(&model, bytes, length), HWNAS_OK);
    free(bytes);
    edit(model);
    length = onnx__model_proto__get_packed_size(model);
    bytes = hwnas_alloc(length);
    onnx__model_proto__pack(model, bytes);
    hwnas_status status = hwnas_onnx_read(out, "test.onnx", bytes, length);
    onnx__model_proto__free_unpacked(model, NULL);
    free(bytes);
    hwnas_graph_free(graph);
    return status;
}

/* Edits that change nothing of what is computed. */

static void leave(Onnx__ModelProto *model)
{
    (void)model;
}

static void use_float_data(Onnx__ModelProto *model)
{
    for (size_t i = 0; i < model->graph->n_initializer; i++) {
        Onnx__TensorProto *tensor = model->graph->initializer[i];
        tensor->float_data = (float *)(void *)tensor->raw_data.data;
        tensor->n_float_data = tensor->raw_data.len / sizeof(float);
        tensor->has_raw_data = false;
        tensor->raw_data = (ProtobufCBinaryData){0, NULL};
    }
}

static void list_constants_as_inputs(Onnx__ModelProto *model)
{
    Onnx__GraphProto *graph = model->graph;
    size_t n = graph->n_input + graph->n_initializer;
    graph->input = hwnas_realloc(graph->input, n * sizeof *graph->input);
    for (size_t i = 0; i < graph->n_initializer; i++) {
        Onnx__ValueInfoProto *made = hwnas_alloc(sizeof *made);
        onnx__value_info_proto__init(made);
        made->name = hwnas_strdup(graph->initializer[i]->name);
        graph->input[graph->n_input++] = made;
    }
}

static void leave_out_what_weights_tell(Onnx__ModelProto *model)
{
    remove_attribute(find_node(model, "stem/conv"), "kernel_shape");
    remove_attribute(find_node(model, "project"), "kernel_shape");
}

static void leave_out_defaults(Onnx__ModelProto *model)
{
    Onnx__NodeProto *project = find_node(model, "project");
    remove_attribute(project, "pads");
    remove_attribute(project, "strides");
    remove_attribute(project, "dilations");
    remove_attribute(project, "group");
    remove_attribute(find_node(model, "norm"), "epsilon");
    remove_attribute(find_node(model, "flatten"), "axis");
    remove_attribute(find_node(model, "gate/hard_sigmoid"), "beta");
}

static void add_harmless_attributes(Onnx__ModelProto *model)
{
    add_string_attribute(find_node(model, "project"), "auto_pad", "NOTSET");
    add_attribute(find_node(model, "norm"), "momentum",
                  ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT)
        ->f = 0.9f;
    add_attribute(find_node(model, "head"), "alpha", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT)
        ->f = 1;
    find_node(model, "norm")->attribute[1]->has_f = true;
    find_node(model, "head")->attribute[1]->has_f = true;
}

static void add_harmless_pool_attributes(Onnx__ModelProto *model)
{
    Onnx__NodeProto *pool = find_node(model, "cell/max_pool");
    add_string_attribute(pool, "auto_pad", "NOTSET");
    add_integer_attribute(pool, "ceil_mode", 0);
    add_integer_attribute(pool, "storage_order", 1);
    add_two_dilations(pool, 1);
}

/* 0 x instead of x 0, and a true scalar. */
static void turn_the_zero_around(Onnx__ModelProto *model)
{
    Onnx__NodeProto *zero = find_node(model, "cell/zero");
    char *first = zero->input[0];
    zero->input[0] = zero->input[1];
    zero->input[1] = first;
    find_constant(model, "cell/zero.zeros")->n_dims = 0;
}

static void put_identities(Onnx__ModelProto *model)
{
    Onnx__GraphProto *graph = model->graph;
    graph->node = hwnas_realloc(graph->node, (graph->n_node + 2) * sizeof *graph->node);
    memmove(graph->node + 2, graph->node, graph->n_node * sizeof *graph->node);
    graph->n_node += 2;
    static const char *const ends[2][2] = {{"image", "a"}, {"stem/conv.weight", "b"}};
    for (int i = 0; i < 2; i++) {
        Onnx__NodeProto *made = hwnas_alloc(sizeof *made);
        onnx__node_proto__init(made);
        made->op_type = hwnas_strdup("Identity");
        made->name = hwnas_strdup("");
        made->input = hwnas_alloc(sizeof *made->input);
        made->output = hwnas_alloc(sizeof *made->output);
        made->input[made->n_input++] = hwnas_strdup(ends[i][0]);
        made->output[made->n_output++] = hwnas_strdup(ends[i][1]);
        graph->node[i] = made;
    }
    set_text(&graph->node[2]->input[0], "a");
    set_text(&graph->node[2]->input[1], "b");
}

static void share_node_names(Onnx__ModelProto *model)
{
    for (size_t i = 0; i < model->graph->n_node; i++)
        set_text(&model->graph->node[i]->name, i % 3 ? i % 3 == 1 ? "" : "same" : "image");
}

static void add_mask(Onnx__ModelProto *model)
{
    Onnx__NodeProto *dropout = find_node(model, "dropout");
    dropout->output = hwnas_realloc(dropout->output, 2 * sizeof *dropout->output);
    dropout->output[dropout->n_output++] = hwnas_strdup("mask");
}

static void spell_domain(Onnx__ModelProto *model)
{
    set_text(&model->opset_import[0]->domain, "ai.onnx");
    set_text(&model->graph->node[0]->domain, "ai.onnx");
}

static void count_axis_from_the_end(Onnx__ModelProto *model)
{
    find_attribute(find_node(model, "flatten"), "axis")->i = -3;
}

static void edits_that_change_nothing(void **state)
{
    (void)state;
    static void (*const edits[])(Onnx__ModelProto *) = {
        leave,
        use_float_data,
        list_constants_as_inputs,
        leave_out_what_weights_tell,
        leave_out_defaults,
        add_harmless_attributes,
        add_harmless_pool_attributes,
        turn_the_zero_around,
        put_identities,
        share_node_names,
        add_mask,
        spell_domain,
        count_axis_from_the_end,
    };
    hwnas_graph *graph = make_network();
    for (size_t i = 0; i < COUNT(edits); i++) {
        hwnas_graph *back = NULL;
        if (read_edited(&back, edits[i]) != HWNAS_OK)
            fail_msg("edit %zu: %s", i, hwnas_last_error()->message);
        assert_string_equal(hwnas_graph_digest(back).hex, hwnas_graph_digest(graph).hex);
        assert_same_outputs(graph, back);
        for (size_t n = 1; n < back->n_nodes; n++)
            for (size_t m = 0; m < n; m++)
                assert_string_not_equal(back->nodes[n].name, back->nodes[m].name);
        hwnas_graph_free(back);
    }
    hwnas_graph_free(graph);
}

/* Edits that are to be refused. */

static void add_unknown_attribute(Onnx__ModelProto *model)
{
    add_attribute(find_node(model, "stem/relu"), "slope",
                  ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
}

static void make_group_a_float(Onnx__ModelProto *model)
{
    find_attribute(find_node(model, "project"), "group")->type =
        ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
}

static void make_kernel_one_dimensional(Onnx__ModelProto *model)
{
    find_attribute(find_node(model, "project"), "kernel_shape")->n_ints = 1;
}

static void contradict_the_kernel(Onnx__ModelProto *model)
{
    find_attribute(find_node(model, "project"), "kernel_shape")->ints[0] = 3;
}

static void make_stride_zero(Onnx__ModelProto *model)
{
    find_attribute(find_node(model, "project"), "strides")->ints[0] = 0;
}

static void leave_out_transposition(Onnx__ModelProto *model)
{
    remove_attribute(find_node(model, "head"), "transB");
}

static void train(Onnx__ModelProto *model)
{
    Onnx__AttributeProto *made = add_attribute(find_node(model, "norm"), "training_mode",
                                               ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    made->has_i = true;
    made->i = 1;
}

static void swap_nodes(Onnx__ModelProto *model)
{
    Onnx__NodeProto **nodes = model->graph->node, *first = nodes[0];
    nodes[0] = nodes[1];
    nodes[1] = first;
}

static void read_what_nothing_makes(Onnx__ModelProto *model)
{
    set_text(&find_node(model, "project")->input[0], "nobody");
}

static void make_two_of_one_name(Onnx__ModelProto *model)
{
    set_text(&find_node(model, "project")->output[0], "image");
}

static void compute_a_weight(Onnx__ModelProto *model)
{
    set_text(&find_node(model, "cell/norm")->input[1], "stem/relu");
}

static void use_the_mask(Onnx__ModelProto *model)
{
    add_mask(model);
    set_text(&find_node(model, "head")->input[0], "mask");
}

static void open_the_height(Onnx__ModelProto *model)
{
    set_dim_param(model, 2);
}

static void make_weights_half(Onnx__ModelProto *model)
{
    find_constant(model, "stem/conv.weight")->data_type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16;
}

static void shorten_data(Onnx__ModelProto *model)
{
    find_constant(model, "stem/conv.weight")->raw_data.len -= 4;
}

static void claim_huge_dims(Onnx__ModelProto *model)
{
    find_constant(model, "stem/conv.weight")->dims[0] = (int64_t)1 << 30;
}

static void claim_overflowing_dims(Onnx__ModelProto *model)
{
    for (int i = 0; i < 4; i++)
        find_constant(model, "stem/conv.weight")->dims[i] = INT64_MAX;
}

static void store_elsewhere(Onnx__ModelProto *model)
{
    Onnx__TensorProto *tensor = find_constant(model, "stem/conv.weight");
    tensor->has_data_location = true;
    tensor->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
}

static void use_unknown_operator(Onnx__ModelProto *model)
{
    set_text(&find_node(model, "stem/relu")->op_type, "Det");
}

static void use_foreign_domain(Onnx__ModelProto *model)
{
    set_text(&find_node(model, "stem/relu")->domain, "com.microsoft");
}

static void use_an_old_opset(Onnx__ModelProto *model)
{
    model->opset_import[0]->version = 6;
}

static void drop_the_graph(Onnx__ModelProto *model)
{
    onnx__graph_proto__free_unpacked(model->graph, NULL);
    model->graph = NULL;
}

static void make_negative_batch(Onnx__ModelProto *model)
{
    model->graph->input[0]->type->tensor_type->shape->dim[0]->dim_value = -1;
}

static void leave_out_the_window(Onnx__ModelProto *model)
{
    remove_attribute(find_node(model, "cell/avg_pool"), "kernel_shape");
}

static void leave_out_the_axis(Onnx__ModelProto *model)
{
    remove_attribute(find_node(model, "cell/concat"), "axis");
}

static void compute_a_bound(Onnx__ModelProto *model)
{
    set_text(&find_node(model, "cell/clip")->input[1], "stem/relu");
}

static void swap_the_bounds(Onnx__ModelProto *model)
{
    set_text(&find_node(model, "cell/clip")->input[2], "cell/clip.low");
    set_text(&find_node(model, "cell/clip")->input[1], "cell/clip.high");
}

static const struct {
    void (*edit)(Onnx__ModelProto *model);
    hwnas_status status;
    const char *message; /* a part of it */
} refusals[] = {
    {add_unknown_attribute, HWNAS_E_UNSUPPORTED, "node 'stem/relu' (Relu): attribute 'slope'"},
    {make_group_a_float, HWNAS_E_INPUT, "attribute 'group' is of the wrong type"},
    {make_kernel_one_dimensional, HWNAS_E_UNSUPPORTED, "'kernel_shape' has 1 values"},
    {contradict_the_kernel, HWNAS_E_INPUT, "'kernel_shape' contradicts the weights"},
    {make_stride_zero, HWNAS_E_UNSUPPORTED, "attribute 'strides' is 0"},
    {leave_out_transposition, HWNAS_E_INPUT, "node 'head': 'matmul' cannot multiply the shapes 2x8 and 5x8"},
    {train, HWNAS_E_UNSUPPORTED, "attribute 'training_mode'"},
    {swap_nodes, HWNAS_E_INPUT, "reads 'stem/conv' before it is made"},
    {read_what_nothing_makes, HWNAS_E_INPUT, "reads 'nobody', which nothing makes"},
    {make_two_of_one_name, HWNAS_E_INPUT, "the name 'image' stands for two things"},
    {compute_a_weight, HWNAS_E_UNSUPPORTED, "input 'stem/relu' is computed"},
    {use_the_mask, HWNAS_E_UNSUPPORTED, "reads 'mask', a second output"},
    {open_the_height, HWNAS_E_INPUT, "dimension 2 of input 'image' is not a number but 'N'"},
    {make_weights_half, HWNAS_E_INPUT, "'stem/conv.weight' has data of 432 values where 216"},
    {shorten_data, HWNAS_E_INPUT, "'stem/conv.weight' has data of 215 values where 216 values"},
    {claim_huge_dims, HWNAS_E_INPUT, "'stem/conv.weight' has data of 216 values where"},
    {claim_overflowing_dims, HWNAS_E_INPUT, "'stem/conv.weight' would have more than"},
    {store_elsewhere, HWNAS_E_UNSUPPORTED, "'stem/conv.weight' are in another file"},
    {use_unknown_operator, HWNAS_E_UNSUPPORTED, "the operator Det is unknown"},
    {use_foreign_domain, HWNAS_E_UNSUPPORTED, "the operator com.microsoft.Relu is unknown"},
    {use_an_old_opset, HWNAS_E_UNSUPPORTED, "opset 6"},
    {drop_the_graph, HWNAS_E_INPUT, "no graph"},
    {make_negative_batch, HWNAS_E_INPUT, "shape -1x3x12x14"},
    {leave_out_the_window, HWNAS_E_UNSUPPORTED, "'kernel_shape' is absent"},
    {leave_out_the_axis, HWNAS_E_INPUT, "node 'cell/concat' (Concat): attribute 'axis' is absent"},
    {compute_a_bound, HWNAS_E_UNSUPPORTED, "attribute 'min' is not a constant"},
    {swap_the_bounds, HWNAS_E_INPUT, "node 'cell/clip' (Clip): 'low' of 'clip' is 0.2, above"},
};

static void what_cannot_be_read_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(refusals); i++) {
        hwnas_graph *graph = NULL;
        hwnas_status status = read_edited(&graph, refusals[i].edit);
        const char *message = hwnas_last_error()->message;
        if (status != refusals[i].status || !strstr(message, refusals[i].message) ||
            strncmp(message, "test.onnx: ", 11))
            fail_msg("expected %s with \"%s\", got %s: %s", hwnas_status_name(refusals[i].status),
                     refusals[i].message, hwnas_status_name(status), message);
        assert_null(graph);
    }
}

static void open_the_batch(Onnx__ModelProto *model)
{
    set_dim_param(model, 0);
}

static void an_open_batch_is_one(void **state)
{
    (void)state;
    hwnas_graph *graph = NULL;
    assert_int_equal(read_edited(&graph, open_the_batch), HWNAS_OK);
    assert_string_equal(hwnas_tensor_shape(&graph->tensors[graph->inputs[0]]).s, "1x3x12x14");
    hwnas_graph_free(graph);
}

static void leave_out_alpha(Onnx__ModelProto *model)
{
    remove_attribute(find_node(model, "gate/hard_sigmoid"), "alpha");
}

static void leave_out_the_bounds(Onnx__ModelProto *model)
{
    Onnx__NodeProto *clip = find_node(model, "cell/clip");
    set_text(&clip->input[1], "");
    set_text(&clip->input[2], "");
}

/* As they were written before opset 11. */
static void make_the_bounds_attributes(Onnx__ModelProto *model)
{
    Onnx__NodeProto *clip = find_node(model, "cell/clip");
    Onnx__AttributeProto *made =
        add_attribute(clip, "max", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    made->has_f = true;
    made->f = 2;
    leave_out_the_bounds(model);
}

/* Clip has no bounds unless it is given some; ours are 0 and 6. */
static void absent_bounds_bound_nothing(void **state)
{
    (void)state;
    static void (*const edits[])(Onnx__ModelProto *) = {leave_out_the_bounds,
                                                        make_the_bounds_attributes};
    for (size_t i = 0; i < COUNT(edits); i++) {
        hwnas_graph *graph = NULL;
        assert_int_equal(read_edited(&graph, edits[i]), HWNAS_OK);
        for (size_t n = 0; n < graph->n_nodes; n++)
            if (!strcmp(graph->nodes[n].op->name, "clip")) {
                const double high = hwnas_node_attr(&graph->nodes[n], "high")->number;
                assert_true(hwnas_node_attr(&graph->nodes[n], "low")->number == -FLT_MAX);
                assert_true(high == (i ? 2 : FLT_MAX));
            }
        assert_comes_back(graph, HWNAS_ONNX_VALUES);
        hwnas_graph_free(graph);
    }
}

static void absent_means_the_default_of_onnx(void **state)
{
    (void)state;
    hwnas_graph *graph = NULL;
    assert_int_equal(read_edited(&graph, leave_out_alpha), HWNAS_OK);
    for (size_t n = 0; n < graph->n_nodes; n++)
        if (!strcmp(graph->nodes[n].op->name, "hard_sigmoid"))
            assert_float_equal(hwnas_node_attr(&graph->nodes[n], "alpha")->number, 0.2, 0);
    hwnas_graph_free(graph);
}

/* ---- broken bytes ---- */

/* Whatever comes out is asked all that a command would ask before it runs anything. */
static bool survives(const void *bytes, size_t length)
{
    /* In a block of its own size, so that a sanitizer sees a read past its end. */
    void *copy = malloc(length ? length : 1);
    memcpy(copy, bytes, length);
    hwnas_graph *graph = NULL;
    hwnas_status status = hwnas_onnx_read(&graph, "garbage", copy, length);
    free(copy);
    if (status != HWNAS_OK) {
        assert_null(graph);
        assert_true(status == HWNAS_E_INPUT || status == HWNAS_E_UNSUPPORTED);
        assert_true(hwnas_last_error()->message[0]);
        return false;
    }
    hwnas_costs costs;
    hwnas_graph_costs(&costs, graph);
    hwnas_graph_digest(graph);
    void *again = NULL;
    assert_int_equal(hwnas_onnx_write(&again, &length, graph, HWNAS_ONNX_SEEDS), HWNAS_OK);
    free(again);
    hwnas_graph_free(graph);
    return true;
}

static void a_file_cut_short_is_refused(void **state)
{
    (void)state;
    hwnas_graph *graph = make_network();
    char *bytes = NULL;
    size_t length;
    assert_int_equal(hwnas_onnx_write((void **)&bytes, &length, graph, HWNAS_ONNX_SEEDS), HWNAS_OK);
    /* Without its last field, the metadata, it still is a model. */
    size_t n_models = 0;
    for (size_t n = 0; n < length; n++)
        n_models += survives(bytes, n);
    assert_int_equal(n_models, 1);
    assert_true(survives(bytes, length));
    free(bytes);
    hwnas_graph_free(graph);
}

static void mutations_do_not_crash(void **state)
{
    (void)state;
    const char *asked = getenv("HWNAS_TEST_MUTATIONS"); /* more, for a long run */
    long n_mutations = asked ? atol(asked) : 4000;
    hwnas_graph *graph = make_network();
    hwnas_rng rng = hwnas_rng_new(20260801, 0);
    for (int form = 0; form < 2; form++) {
        uint8_t *bytes = NULL;
        size_t length;
        assert_int_equal(
            hwnas_onnx_write((void **)&bytes, &length, graph, (hwnas_onnx_weights)form), HWNAS_OK);
        for (long i = 0; i < n_mutations; i++) {
            size_t n = length;
            uint8_t *changed = malloc(2 * length);
            memcpy(changed, bytes, length);
            for (uint32_t k = 1 + hwnas_rng_below(&rng, 4); k; k--) {
                size_t at = hwnas_rng_below(&rng, (uint32_t)n);
                size_t run = hwnas_rng_below(&rng, 16) + 1;
                if (run > n - at)
                    run = n - at;
                switch (hwnas_rng_below(&rng, 5)) {
                case 0:
                    changed[at] ^= (uint8_t)(1u << hwnas_rng_below(&rng, 8));
                    break;
                case 1:
                    changed[at] = (uint8_t)hwnas_rng_u32(&rng);
                    break;
                case 2: /* something that counts, made large */
                    changed[at] = 0xff;
                    break;
                case 3: /* a run left out */
                    memmove(changed + at, changed + at + run, n - at - run);
                    n -= n > run ? run : 0;
                    break;
                case 4: /* a run doubled */
                    if (n + run <= 2 * length) {
                        memmove(changed + at + run, changed + at, n - at);
                        n += run;
                    }
                    break;
                }
            }
            survives(changed, n);
            free(changed);
        }
        free(bytes);
    }
    hwnas_graph_free(graph);
}

/* Puts a length-delimited field before what `buffer` ends with. */
static uint8_t *prepend_field(uint8_t *start, const uint8_t *end, unsigned tag)
{
    size_t length = (size_t)(end - start);
    uint8_t varint[10];
    int n = 0;
    do {
        varint[n] = (uint8_t)((length & 0x7f) | (length > 0x7f ? 0x80 : 0));
        n++;
    } while (length >>= 7);
    start -= n;
    memcpy(start, varint, (size_t)n);
    *--start = (uint8_t)(tag << 3 | 2);
    return start;
}

static void deep_nesting_is_refused(void **state)
{
    (void)state;
    /* graph { node { attribute { g { node { attribute { g ... */
    enum { SIZE = 1 << 21, MODEL_GRAPH = 7, GRAPH_NODE = 1, NODE_ATTRIBUTE = 5, ATTRIBUTE_G = 6 };
    uint8_t *buffer = hwnas_alloc(SIZE), *end = buffer + SIZE, *start = end;
    while (start - buffer > 64) {
        start = prepend_field(start, end, ATTRIBUTE_G);
        start = prepend_field(start, end, NODE_ATTRIBUTE);
        start = prepend_field(start, end, GRAPH_NODE);
    }
    start = prepend_field(start, end, MODEL_GRAPH);
    assert_false(survives(start, (size_t)(end - start)));
    assert_non_null(strstr(hwnas_last_error()->message, "broken at byte"));
    free(buffer);
}

static void many_empty_messages_are_refused(void **state)
{
    (void)state;
    /* graph { initializer {} initializer {} ... }: two bytes each, some 250 once unpacked. */
    enum { SIZE = 1 << 22, MODEL_GRAPH = 7, GRAPH_INITIALIZER = 5 };
    uint8_t *buffer = hwnas_alloc(SIZE), *end = buffer + SIZE, *start = end;
    while (start - buffer > 64) {
        *--start = 0;
        *--start = GRAPH_INITIALIZER << 3 | 2;
    }
    start = prepend_field(start, end, MODEL_GRAPH);
    assert_false(survives(start, (size_t)(end - start)));
    free(buffer);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_back_with_values),
        cmocka_unit_test(comes_back_with_seeds),
        cmocka_unit_test(given_data_survives_in_both_forms),
        cmocka_unit_test(every_operator_is_tried),
        cmocka_unit_test(sequences_come_back),
        cmocka_unit_test(only_gelu_is_fused),
        cmocka_unit_test(writing_is_deterministic),
        cmocka_unit_test(more_than_two_gib_are_refused),
        cmocka_unit_test(edits_that_change_nothing),
        cmocka_unit_test(what_cannot_be_read_is_named),
        cmocka_unit_test(an_open_batch_is_one),
        cmocka_unit_test(absent_means_the_default_of_onnx),
        cmocka_unit_test(absent_bounds_bound_nothing),
        cmocka_unit_test(a_file_cut_short_is_refused),
        cmocka_unit_test(mutations_do_not_crash),
        cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(many_empty_messages_are_refused),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("onnx", tests, NULL, NULL);
}
