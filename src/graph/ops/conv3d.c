/* conv3d: convolution of a video or volume (batch x channels x depth x height x width). It is made
 * of 2-D convolutions of slices, which all devices have and int8 too, and on a CPU is as fast as
 * one in three dimensions (docs/engine.md):
 *
 * - each slice of the output has those of the input that the kernel reaches as its channels; they
 *   lie as the kernel's do, so the weights are those of one 3-D convolution;
 * - a depthwise one is a sum over the kernel's depth, since more than one channel in a group would
 *   make it a slow grouped one. */
#include "graph/ops/elementwise.h"

enum { OUT, KERNEL, STRIDE, PAD, DILATION, GROUPS, BIAS };
enum { MOST_TAPS = HWNAS_MAX_NODE_INPUTS };

static const hwnas_attr_row attrs[] = {
    [OUT] = {.name = "out", .kind = HWNAS_ATTR_INT, .is_required = true, .fallback = 1, .low = 1,
             .high = 1 << 24, .help = "output channels"},
    [KERNEL] = {.name = "kernel", .kind = HWNAS_ATTR_INTS, .count = 3, .fallback = 1, .low = 1,
                .high = 1 << 20, .help = "depth, height and width of the kernel"},
    [STRIDE] = {.name = "stride", .kind = HWNAS_ATTR_INTS, .count = 3, .fallback = 1, .low = 1,
                .high = 1 << 20, .help = "step along depth, down and to the right"},
    [PAD] = {.name = "pad", .kind = HWNAS_ATTR_INTS, .count = 3, .fallback = 0, .low = 0,
             .high = 1 << 20, .help = "zeros on both sides of depth, height and width"},
    [DILATION] = {.name = "dilation", .kind = HWNAS_ATTR_INTS, .count = 3, .fallback = 1, .low = 1,
                  .high = 1 << 20, .help = "distance of the kernel's points"},
    [GROUPS] = {.name = "groups", .kind = HWNAS_ATTR_INT, .fallback = 1, .low = 1, .high = 1 << 24,
                .help = "groups of channels; all of them: depthwise"},
    [BIAS] = {.name = "bias", .kind = HWNAS_ATTR_BOOL, .fallback = 1, .low = 0, .high = 1,
              .help = "add a learned bias"},
    {0},
};

typedef struct maker {
    hwnas_graph *graph;
    const hwnas_node *node;
    int n; /* nodes that were made */
} maker;

static hwnas_attr ints(int n, const int64_t *values)
{
    hwnas_attr a = {.is_set = true, .n = n};
    for (int i = 0; i < n; i++)
        a.ints[i] = values[i];
    return a;
}

/* `name`: of what is made in the layer. */
static hwnas_status make(int *out, maker *m, hwnas_op_id op, const char *name,
                         const hwnas_attr *with, int n_inputs, const int *inputs)
{
    return hwnas_graph_add_node(out, m->graph, hwnas_ops[op], name, with, n_inputs, inputs,
                                op == HWNAS_OP_CONV);
}

static const char *part_name(maker *m, const char *what)
{
    return hwnas_arena_printf(m->graph->arena, "%s.%s_%d", m->node->name, what, m->n++);
}

static hwnas_status reshape(int *tensor, maker *m, int rank, const int64_t *dims)
{
    const hwnas_attr shape = ints(rank, dims);
    return make(tensor, m, HWNAS_OP_RESHAPE, part_name(m, "reshape"), &shape, 1, tensor);
}

static hwnas_status transpose(int *tensor, maker *m, const char *name)
{
    static const int64_t swap[] = {0, 2, 1, 3, 4};
    const hwnas_attr order = ints(5, swap);
    return make(tensor, m, HWNAS_OP_TRANSPOSE, name, &order, 1, tensor);
}

/* Zeros before the first slice and behind the last. */
static hwnas_status pad_depth(int *tensor, maker *m, int64_t by)
{
    const int64_t sides[] = {0, by};
    const hwnas_attr with[] = {ints(2, sides), ints(2, sides), hwnas_attr_number(0),
                               hwnas_attr_int(0), {0}};
    return by ? make(tensor, m, HWNAS_OP_PAD, part_name(m, "pad"), with, 1, tensor) : HWNAS_OK;
}

/* Of slices (batch x depth x channels x height x width) those that point `k` of the kernel's depth
 * meets, for each of `n_places` along the depth. */
static hwnas_status cut_tap(int *tensor, maker *m, int64_t n_places, int64_t k)
{
    const hwnas_attr *a = m->node->attrs;
    const int64_t begin = k * a[DILATION].ints[0], step = a[STRIDE].ints[0], axis = 1;
    const int64_t end = begin + (n_places - 1) * step + 1;
    const hwnas_attr cut[] = {ints(1, &begin), ints(1, &end), ints(1, &axis), ints(1, &step), {0}};
    return make(tensor, m, HWNAS_OP_SLICE, part_name(m, "tap"), cut, 1, tensor);
}

/* All of them as the channels of one image, which is convolved. */
static hwnas_status convolve_joined(int *tensor, maker *m, int64_t n_places, const hwnas_attr *conv)
{
    const hwnas_tensor slices = m->graph->tensors[*tensor];
    const int64_t n_taps = m->node->attrs[KERNEL].ints[0], n = slices.dims[0] * n_places;
    const int64_t row[] = {n, slices.dims[2], 1, slices.dims[3] * slices.dims[4]};
    const int64_t image[] = {n, slices.dims[2] * n_taps, slices.dims[3], slices.dims[4]};
    const hwnas_attr axis = hwnas_attr_int(2);
    int taps[MOST_TAPS];
    for (int64_t k = 0; k < n_taps; k++) {
        taps[k] = *tensor;
        TRY(cut_tap(&taps[k], m, n_places, k));
        if (n_taps > 1)
            TRY(reshape(&taps[k], m, 4, row));
    }
    *tensor = taps[0];
    if (n_taps > 1)
        TRY(make(tensor, m, HWNAS_OP_CONCAT, part_name(m, "taps"), &axis, (int)n_taps, taps));
    TRY(reshape(tensor, m, 4, image));
    return make(tensor, m, HWNAS_OP_CONV, part_name(m, "conv"), conv, 1, tensor);
}

/* The sum of a convolution of each. */
static hwnas_status convolve_each(int *tensor, maker *m, int64_t n_places, hwnas_attr *conv)
{
    const hwnas_tensor slices = m->graph->tensors[*tensor];
    const int64_t image[] = {slices.dims[0] * n_places, slices.dims[2], slices.dims[3],
                             slices.dims[4]};
    int sum[2] = {-1, -1};
    for (int64_t k = 0; k < m->node->attrs[KERNEL].ints[0]; k++) {
        int *tap = &sum[k > 0];
        *tap = *tensor;
        TRY(cut_tap(tap, m, n_places, k));
        TRY(reshape(tap, m, 4, image));
        TRY(make(tap, m, HWNAS_OP_CONV, part_name(m, "conv"), conv, 1, tap));
        if (k > 0)
            TRY(make(sum, m, HWNAS_OP_ADD, part_name(m, "sum"), NULL, 2, sum));
        conv[BIAS].ints[0] = 0; /* the first has it */
    }
    *tensor = sum[0];
    return HWNAS_OK;
}

static hwnas_status build(int *out, hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor in = *hwnas_node_input(graph, node, 0);
    const hwnas_attr *a = node->attrs;
    const int64_t *k = a[KERNEL].ints, *pad = a[PAD].ints, groups = a[GROUPS].ints[0];
    maker m = {graph, node, 0};
    int64_t n_places = 0; /* of the kernel along the depth */
    if (in.rank != 5)
        return hwnas_hint(
            hwnas_fail(
                HWNAS_E_INPUT, NULL,
                "'conv3d' needs a volume (batch x channels x depth x height x width), not %s",
                hwnas_tensor_shape(&in).s),
            "for images use 'conv', for sequences 'conv1d'; declare a volume as "
            "input: {clip: [channels, depth, height, width]}");
    if (in.dims[1] % groups || a[OUT].ints[0] % groups)
        return hwnas_fail(
            HWNAS_E_INPUT, NULL,
            "'conv3d': %lld groups do not divide both %lld input and %lld output channels",
            (long long)groups, (long long)in.dims[1], (long long)a[OUT].ints[0]);
    if (k[0] > MOST_TAPS)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL,
                                     "'conv3d' has kernels of a depth of %d at most, not %lld",
                                     MOST_TAPS, (long long)k[0]),
                          "'kernel' is [depth, height, width]; 'dilation' reaches farther");
    for (int i = 0; i < 3; i++) {
        static const char *const axes[] = {"depth", "height", "width"};
        const int64_t reach = (k[i] - 1) * a[DILATION].ints[i] + 1;
        const int64_t padded = in.dims[2 + i] + 2 * pad[i];
        if (reach > padded)
            return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL,
                                         "'conv3d': a kernel that reaches over a %s of %lld is "
                                         "larger than its padded input's of %lld",
                                         axes[i], (long long)reach, (long long)padded),
                              "'kernel' and 'pad' are [depth, height, width]");
        n_places = i == 0 ? (padded - reach) / a[STRIDE].ints[0] + 1 : n_places;
    }
    hwnas_attr conv[] = {a[OUT],
                         ints(2, k + 1),
                         ints(2, a[STRIDE].ints + 1),
                         ints(4, (int64_t[]){pad[1], pad[2], pad[1], pad[2]}),
                         ints(2, a[DILATION].ints + 1),
                         a[GROUPS],
                         a[BIAS],
                         {0}};
    *out = node->inputs[0];
    TRY(transpose(out, &m, part_name(&m, "slices")));
    TRY(pad_depth(out, &m, pad[0]));
    TRY(groups == in.dims[1] && groups > 1 ? convolve_each(out, &m, n_places, conv)
                                           : convolve_joined(out, &m, n_places, conv));
    const hwnas_tensor made = graph->tensors[*out];
    const int64_t slices[] = {in.dims[0], n_places, made.dims[1], made.dims[2], made.dims[3]};
    TRY(reshape(out, &m, 5, slices));
    return transpose(out, &m, node->name);
}

const hwnas_op hwnas_op_conv3d = {
    .id = HWNAS_OP_CONV3D,
    .name = "conv3d",
    .help = "convolution of a volume",
    .attrs = attrs,
    .min_inputs = 1,
    .max_inputs = 1,
    .build = build,
};
