/* test_onnx_read.c: what others write, as edits of a model of ours, is understood or refused with a
 * reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "onnx/onnx_priv.h"
#include "tests/unit/onnx_fixture.h"

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
    model->graph->input[0]->type->tensor_type->shape->dim[0]->dim_value = -2;
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
    {leave_out_transposition, HWNAS_E_INPUT,
     "node 'head': 'matmul' cannot multiply the shapes 2x8 and 5x8"},
    {train, HWNAS_E_UNSUPPORTED, "attribute 'training_mode'"},
    {swap_nodes, HWNAS_E_INPUT, "reads 'stem/conv' before it is made"},
    {read_what_nothing_makes, HWNAS_E_INPUT, "reads 'nobody', which nothing makes"},
    {make_two_of_one_name, HWNAS_E_INPUT, "the name 'image' stands for two things"},
    {compute_a_weight, HWNAS_E_UNSUPPORTED, "input 'stem/relu' is computed"},
    {use_the_mask, HWNAS_E_UNSUPPORTED, "reads 'mask', a second output"},
    {open_the_height, HWNAS_E_INPUT, "dimension 2 of input 'image' is open: 'N'"},
    {make_weights_half, HWNAS_E_INPUT, "'stem/conv.weight' has data of 432 values where 216"},
    {shorten_data, HWNAS_E_INPUT, "'stem/conv.weight' has data of 215 values where 216 values"},
    {claim_huge_dims, HWNAS_E_INPUT, "'stem/conv.weight' has data of 216 values where"},
    {claim_overflowing_dims, HWNAS_E_INPUT, "'stem/conv.weight' would have more than"},
    {store_elsewhere, HWNAS_E_UNSUPPORTED, "'stem/conv.weight' are in another file"},
    {use_unknown_operator, HWNAS_E_UNSUPPORTED, "the operator Det is unknown"},
    {use_foreign_domain, HWNAS_E_UNSUPPORTED, "the operator com.microsoft.Relu is unknown"},
    {use_an_old_opset, HWNAS_E_UNSUPPORTED, "opset 6"},
    {drop_the_graph, HWNAS_E_INPUT, "no graph"},
    {make_negative_batch, HWNAS_E_INPUT, "shape -2x3x12x14"},
    {leave_out_the_window, HWNAS_E_UNSUPPORTED, "'kernel_shape' is absent"},
    {leave_out_the_axis, HWNAS_E_INPUT, "node 'cell/concat' (Concat): attribute 'axis' is absent"},
    {compute_a_bound, HWNAS_E_UNSUPPORTED, "input 'stem/relu', its min, must be a constant"},
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

static void write_the_batch_as_minus_one(Onnx__ModelProto *model)
{
    model->graph->input[0]->type->tensor_type->shape->dim[0]->dim_value = -1;
}

static void minus_one_is_open_too(void **state)
{
    (void)state;
    hwnas_graph *graph = NULL;
    assert_int_equal(read_edited(&graph, write_the_batch_as_minus_one), HWNAS_OK);
    assert_string_equal(hwnas_tensor_shape(&graph->tensors[graph->inputs[0]]).s, "1x3x12x14");
    hwnas_graph_free(graph);
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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edits_that_change_nothing),
        cmocka_unit_test(what_cannot_be_read_is_named),
        cmocka_unit_test(an_open_batch_is_one),
        cmocka_unit_test(minus_one_is_open_too),
        cmocka_unit_test(absent_means_the_default_of_onnx),
        cmocka_unit_test(absent_bounds_bound_nothing),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
