/* group_norm: mean 0 and variance 1 of each group of an image's channels, then a scale and a shift
 * for each channel (Wu and He 2018). With a group for each channel it is instance normalisation. */
#include "graph/ops/elementwise.h"

enum { GROUPS, EPSILON, AFFINE };

static const hwnas_attr_row attrs[] = {
    [GROUPS] = {.name = "groups",
                .kind = HWNAS_ATTR_INT,
                .is_required = true,
                .fallback = 1,
                .low = 1,
                .high = 1 << 30,
                .help = "groups of channels; `in`: each by itself"},
    [EPSILON] = {.name = "epsilon",
                 .kind = HWNAS_ATTR_NUMBER,
                 .fallback = 1e-5,
                 .low = 0,
                 .high = 1,
                 .help = "added to the variance"},
    [AFFINE] = {.name = "affine",
                .kind = HWNAS_ATTR_BOOL,
                .fallback = 1,
                .low = 0,
                .high = 1,
                .help = "scale and shift are learned"},
    {0},
};

static const char *part(const hwnas_graph *graph, const hwnas_node *node, const char *suffix)
{
    return hwnas_arena_printf(graph->arena, "%s.%s", node->name, suffix);
}

static hwnas_status reshape(int *tensor, hwnas_graph *graph, const char *name, int rank,
                            const int64_t *dims)
{
    hwnas_attr shape = {.is_set = true, .n = rank};
    for (int i = 0; i < rank; i++)
        shape.ints[i] = dims[i];
    return hwnas_graph_add_node(tensor, graph, hwnas_ops[HWNAS_OP_RESHAPE], name, &shape, 1, tensor,
                                false);
}

/* Joins the tensor with a weight for each channel. */
static hwnas_status each_channel(int *tensor, hwnas_graph *graph, hwnas_op_id op, const char *name,
                                 const char *weight, int64_t channels, hwnas_init init)
{
    const int64_t dims[] = {channels, 1, 1};
    int inputs[] = {*tensor, -1};
    TRY(hwnas_graph_add_weight(&inputs[1], graph, weight, 3, dims, init, true));
    return hwnas_graph_add_node(tensor, graph, hwnas_ops[op], name, NULL, 2, inputs, false);
}

static hwnas_status build(int *out, hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor in = *hwnas_node_input(graph, node, 0);
    const int64_t groups = node->attrs[GROUPS].ints[0], one = 1;
    const bool is_affine = node->attrs[AFFINE].ints[0];
    const hwnas_attr norm[] = {hwnas_attr_int(-1), node->attrs[EPSILON], hwnas_attr_int(0), {0}};
    const float value = 1;
    int inputs[] = {node->inputs[0], -1};
    if (in.rank != 4)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL, "'group_norm' needs an image, not %s",
                                     hwnas_tensor_shape(&in).s),
                          "'layer_norm' and 'rms_norm' work on sequences");
    if (in.dims[1] % groups)
        return hwnas_fail(HWNAS_E_INPUT, NULL,
                          "'group_norm': %lld groups do not divide %lld channels",
                          (long long)groups, (long long)in.dims[1]);
    const int64_t flat[] = {in.dims[0], groups, in.dims[1] / groups * in.dims[2] * in.dims[3]};
    TRY(reshape(&inputs[0], graph, part(graph, node, "groups"), 3, flat));
    TRY(hwnas_graph_add_constant(&inputs[1], graph, part(graph, node, "one"), 1, &one, &value));
    TRY(hwnas_graph_add_node(out, graph, hwnas_ops[HWNAS_OP_LAYER_NORM],
                             part(graph, node, "normalised"), norm, 2, inputs, false));
    TRY(reshape(out, graph, is_affine ? part(graph, node, "image") : node->name, 4, in.dims));
    if (!is_affine)
        return HWNAS_OK;
    TRY(each_channel(out, graph, HWNAS_OP_MUL, part(graph, node, "scaled"),
                     part(graph, node, "weight"), in.dims[1], HWNAS_INIT_NEAR_ONE));
    return each_channel(out, graph, HWNAS_OP_ADD, node->name, part(graph, node, "bias"), in.dims[1],
                        HWNAS_INIT_SMALL);
}

const hwnas_op hwnas_op_group_norm = {
    .id = HWNAS_OP_GROUP_NORM,
    .name = "group_norm",
    .help = "mean 0 and variance 1 of groups of channels, then scale and shift",
    .attrs = attrs,
    .min_inputs = 1,
    .max_inputs = 1,
    .build = build,
};
