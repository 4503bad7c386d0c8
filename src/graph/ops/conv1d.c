/* conv1d: convolution along a sequence (batch x length x features). It is a 2-D convolution of an
 * image of one row, whose channels are the features. */
#include "graph/ops/elementwise.h"

enum { OUT, KERNEL, STRIDE, PAD, DILATION, GROUPS, BIAS };

static const hwnas_attr_row attrs[] = {
    [OUT] = {.name = "out",
             .kind = HWNAS_ATTR_INT,
             .is_required = true,
             .fallback = 1,
             .low = 1,
             .high = 1 << 30,
             .help = "output features"},
    [KERNEL] = {.name = "kernel",
                .kind = HWNAS_ATTR_INT,
                .fallback = 1,
                .low = 1,
                .high = 1 << 20,
                .help = "length of the kernel"},
    [STRIDE] = {.name = "stride",
                .kind = HWNAS_ATTR_INT,
                .fallback = 1,
                .low = 1,
                .high = 1 << 20,
                .help = "step along the sequence"},
    [PAD] = {.name = "pad",
             .kind = HWNAS_ATTR_INT,
             .fallback = 0,
             .low = 0,
             .high = 1 << 20,
             .help = "zeros before and behind"},
    [DILATION] = {.name = "dilation",
                  .kind = HWNAS_ATTR_INT,
                  .fallback = 1,
                  .low = 1,
                  .high = 1 << 20,
                  .help = "distance of the kernel's points"},
    [GROUPS] = {.name = "groups",
                .kind = HWNAS_ATTR_INT,
                .fallback = 1,
                .low = 1,
                .high = 1 << 30,
                .help = "groups of features; all of them: depthwise"},
    [BIAS] = {.name = "bias",
              .kind = HWNAS_ATTR_BOOL,
              .fallback = 1,
              .low = 0,
              .high = 1,
              .help = "add a learned bias"},
    {0},
};

static hwnas_attr ints(int n, int64_t a, int64_t b, int64_t c, int64_t d)
{
    return (hwnas_attr){.is_set = true, .n = n, .ints = {a, b, c, d}};
}

/* Appends a node of one input behind `tensor`. */
static hwnas_status append(int *tensor, hwnas_graph *graph, hwnas_op_id op, const char *name,
                           const hwnas_attr *with)
{
    return hwnas_graph_add_node(tensor, graph, hwnas_ops[op], name, with, 1, tensor,
                                op == HWNAS_OP_CONV);
}

static hwnas_status build(int *out, hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor in = *hwnas_node_input(graph, node, 0);
    const hwnas_attr *a = node->attrs;
    const hwnas_attr swap = ints(3, 0, 2, 1, 0);
    const int64_t pad = a[PAD].ints[0];
    const char *names[4];
    static const char *const suffixes[] = {"features_first", "image", "conv", "sequence"};
    if (in.rank != 3)
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, NULL,
                       "'conv1d' needs a sequence (batch x length x features), not %s",
                       hwnas_tensor_shape(&in).s),
            "of images 'conv' is the convolution");
    for (int i = 0; i < 4; i++)
        names[i] = hwnas_arena_printf(graph->arena, "%s.%s", node->name, suffixes[i]);
    const hwnas_attr image = ints(4, in.dims[0], in.dims[2], 1, in.dims[1]);
    const hwnas_attr conv[] = {a[OUT],
                               ints(2, 1, a[KERNEL].ints[0], 0, 0),
                               ints(2, 1, a[STRIDE].ints[0], 0, 0),
                               ints(4, 0, pad, 0, pad),
                               ints(2, 1, a[DILATION].ints[0], 0, 0),
                               a[GROUPS],
                               a[BIAS],
                               {0}};
    *out = node->inputs[0];
    TRY(append(out, graph, HWNAS_OP_TRANSPOSE, names[0], &swap));
    TRY(append(out, graph, HWNAS_OP_RESHAPE, names[1], &image));
    TRY(append(out, graph, HWNAS_OP_CONV, names[2], conv));
    const hwnas_attr row = ints(3, in.dims[0], a[OUT].ints[0], graph->tensors[*out].dims[3], 0);
    TRY(append(out, graph, HWNAS_OP_RESHAPE, names[3], &row));
    return append(out, graph, HWNAS_OP_TRANSPOSE, node->name, &swap);
}

const hwnas_op hwnas_op_conv1d = {
    .id = HWNAS_OP_CONV1D,
    .name = "conv1d",
    .help = "convolution along a sequence",
    .attrs = attrs,
    .min_inputs = 1,
    .max_inputs = 1,
    .build = build,
};
