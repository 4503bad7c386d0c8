/* layout.c: how tensors lie in the GPU's memory.
 *
 * Images lie N, H, W, C, which cuDNN's fast engines want; all else is row-major. A reshape, a
 * transposition or a slice is the same memory seen otherwise wherever strides can say it, and what
 * a concatenation joins is written into its place at once where its maker can do so. */
#include <string.h>

#include "device/cudnn/cudnn_int8.h"
#include "device/cudnn/cut.h"

hwnas_cudnn_type hwnas_cudnn_io_type(hwnas_precision precision)
{
    switch (precision) {
    case HWNAS_F16:
    case HWNAS_S8: /* what is not bytes */
        return HWNAS_CUDNN_F16;
    case HWNAS_BF16:
        return HWNAS_CUDNN_BF16;
    default:
        return HWNAS_CUDNN_F32;
    }
}

/* Row-major, but for the last two dimensions. */
static void turned_strides(int64_t *out, int rank, const int64_t *dims)
{
    hwnas_cudnn_plain_strides(out, rank, dims);
    out[rank - 1] = dims[rank - 2];
    out[rank - 2] = 1;
}

/* N, C, H, W with the channels next to each other. */
static void image_strides(int64_t *out, const int64_t *dims)
{
    out[1] = 1;
    out[3] = dims[1];
    out[2] = dims[1] * dims[3];
    out[0] = dims[1] * dims[3] * dims[2];
}

int hwnas_cudnn_new_tensor(hwnas_cudnn_net *net, const hwnas_cudnn_tensor *like)
{
    const hwnas_cudnn_tensor made = *like;
    HWNAS_ARENA_GROW(net->arena, net->tensors, net->n_tensors, net->tensor_capacity);
    net->tensors[net->n_tensors] = made;
    net->tensors[net->n_tensors].root = (int)net->n_tensors;
    net->tensors[net->n_tensors].first = 0;
    return (int)net->n_tensors++;
}

/* ---- Which tensors are images ---- */

/* Whether an image among its tensors makes the others images as well. */
static bool passes_on(const hwnas_graph *graph, const hwnas_node *node)
{
    switch (node->op->id) {
    case HWNAS_OP_CONCAT:
    case HWNAS_OP_DROPOUT:
    case HWNAS_OP_PAD:
    case HWNAS_OP_SLICE:
    case HWNAS_OP_ZERO:
        return true;
    default:
        return node->op->class == HWNAS_CLASS_QUANTIZATION || hwnas_cudnn_is_pointwise(graph, node);
    }
}

static bool mark(hwnas_cudnn_cut *cut, int tensor)
{
    const hwnas_tensor *t = &cut->graph->tensors[tensor];
    if (t->rank != 4 || t->kind == HWNAS_TENSOR_WEIGHT || cut->is_image[tensor])
        return false;
    return cut->is_image[tensor] = true;
}

static void find_images(hwnas_cudnn_cut *cut)
{
    const hwnas_graph *graph = cut->graph;
    bool changed = true;
    for (bool first = true; changed; first = false) {
        changed = false;
        for (size_t i = 0; i < graph->n_nodes; i++) {
            const hwnas_node *node = &graph->nodes[i];
            bool is_image = first && node->op->is_spatial;
            if (passes_on(graph, node)) {
                is_image |= cut->is_image[node->output];
                for (int k = 0; k < node->n_inputs; k++)
                    is_image |= cut->is_image[node->inputs[k]];
            }
            if (!is_image)
                continue;
            changed |= mark(cut, node->output);
            for (int k = 0; k < node->n_inputs; k++)
                changed |= mark(cut, node->inputs[k]);
        }
    }
}

/* ---- The graph's tensors ---- */

/* A plan of a product alone counts matrices by one dimension, and rows where the second factor is
 * one matrix of weights. */
static bool counts_by_two(const hwnas_cudnn_cut *cut, const hwnas_tensor *t)
{
    const hwnas_node *product = &cut->graph->nodes[t->producer];
    const bool has_weights = hwnas_node_input(cut->graph, product, 1)->kind == HWNAS_TENSOR_WEIGHT;
    return hwnas_cudnn_groups(cut)[cut->plan.group_of[t->producer]].role == HWNAS_CUDNN_BY_MATMUL &&
           (t->dims[0] > 1 || (has_weights && t->dims[1] > 1));
}

/* A product whose result is only transposed, as that of attention: it is written as it is wanted.
 */
static bool is_written_transposed(const hwnas_cudnn_cut *cut, int tensor)
{
    const hwnas_tensor *t = &cut->graph->tensors[tensor];
    const int lone = hwnas_lone_reader(&cut->plan.uses[tensor]);
    if (t->rank != 4 || t->producer < 0 || lone < 0 ||
        cut->graph->nodes[t->producer].op->id != HWNAS_OP_MATMUL)
        return false;
    const hwnas_node *reader = &cut->graph->nodes[lone];
    if (reader->op->id != HWNAS_OP_TRANSPOSE || counts_by_two(cut, t))
        return false;
    const int64_t *order = hwnas_node_attr(reader, "order")->ints;
    return order[0] == 0 && order[1] == 2 && order[2] == 1 && order[3] == 3;
}

static bool is_bytes(const hwnas_cudnn_cut *cut, const hwnas_tensor *t)
{
    return cut->net->precision == HWNAS_S8 && t->producer >= 0 &&
           hwnas_cudnn_makes_int8(cut->graph, &cut->graph->nodes[t->producer]);
}

static hwnas_cudnn_tensor describe(const hwnas_cudnn_cut *cut, int tensor)
{
    const hwnas_tensor *t = &cut->graph->tensors[tensor];
    hwnas_cudnn_tensor made = {.name = t->name, .rank = t->rank, .root = tensor, .source = tensor};
    memcpy(made.dims, t->dims, sizeof made.dims);
    made.type = hwnas_dtype_is_whole(t->dtype) || t->kind == HWNAS_TENSOR_INPUT
                    ? HWNAS_CUDNN_F32
                    : hwnas_cudnn_io_type(cut->net->precision);
    if (is_bytes(cut, t))
        made.type = HWNAS_CUDNN_S8;
    hwnas_cudnn_plain_strides(made.strides, t->rank, t->dims);
    if (t->kind == HWNAS_TENSOR_ACTIVATION && cut->is_image[tensor])
        image_strides(made.strides, t->dims);
    if (is_written_transposed(cut, tensor)) {
        made.strides[1] = t->dims[3];
        made.strides[2] = t->dims[1] * t->dims[3];
    }
    made.memory = t->kind == HWNAS_TENSOR_INPUT    ? HWNAS_CUDNN_INPUTS
                  : t->kind == HWNAS_TENSOR_WEIGHT ? HWNAS_CUDNN_NOWHERE
                                                   : HWNAS_CUDNN_ACTIVATIONS;
    return made;
}

/* ---- Slices ---- */

/* Whether what makes the tensor can write it with gaps. */
static bool can_be_slice(const hwnas_cudnn_cut *cut, int tensor, const hwnas_cudnn_tensor *whole)
{
    const hwnas_tensor *t = &cut->graph->tensors[tensor];
    const hwnas_cudnn_tensor *made = &cut->net->tensors[tensor];
    if (t->producer < 0 || cut->bans->slice[tensor] || made->root != tensor ||
        made->type != whole->type || cut->is_image[tensor] != cut->is_image[whole->source])
        return false;
    const hwnas_cudnn_group *group = &hwnas_cudnn_groups(cut)[cut->plan.group_of[t->producer]];
    return group->role == HWNAS_CUDNN_BY_CONV || group->role == HWNAS_CUDNN_BY_KERNEL ||
           group->role == HWNAS_CUDNN_BY_CONCAT;
}

/* Moves the tensor, and the slices that it has already, into the whole. */
static void make_slice(hwnas_cudnn_net *net, int tensor, int whole, int64_t first)
{
    hwnas_cudnn_tensor *part = &net->tensors[tensor];
    const hwnas_cudnn_tensor *t = &net->tensors[whole];
    memcpy(part->strides, t->strides, sizeof part->strides);
    part->root = t->root;
    part->first = t->first + first;
    part->memory = HWNAS_CUDNN_NOWHERE;
}

/* The last concatenation first, so that one that is a part of another has its place. */
static void find_slices(hwnas_cudnn_cut *cut)
{
    for (size_t i = cut->graph->n_nodes; i-- > 0;) {
        const hwnas_node *node = &cut->graph->nodes[i];
        if (node->op->id != HWNAS_OP_CONCAT)
            continue;
        const hwnas_cudnn_tensor *whole = &cut->net->tensors[node->output];
        int64_t axis = hwnas_node_attr(node, "axis")->ints[0], at = 0;
        axis += axis < 0 ? whole->rank : 0;
        for (int k = 0; k < node->n_inputs; k++) {
            const int part = node->inputs[k];
            if (can_be_slice(cut, part, whole))
                make_slice(cut->net, part, node->output, at * whole->strides[axis]);
            at += cut->graph->tensors[part].dims[axis];
        }
    }
}

void hwnas_cudnn_lay_out(hwnas_cudnn_cut *cut)
{
    hwnas_cudnn_net *net = cut->net;
    find_images(cut);
    for (size_t i = 0; i < cut->graph->n_tensors; i++) {
        const hwnas_cudnn_tensor made = describe(cut, (int)i);
        hwnas_cudnn_new_tensor(net, &made);
    }
    find_slices(cut);
}

/* ---- Forms ---- */

bool hwnas_cudnn_has_form(const hwnas_cudnn_tensor *tensor, hwnas_cudnn_form form)
{
    int64_t wanted[HWNAS_MAX_RANK];
    if (form == HWNAS_CUDNN_AS_IS)
        return true;
    if (form == HWNAS_CUDNN_PLAIN)
        return hwnas_cudnn_is_plain(tensor);
    if (form == HWNAS_CUDNN_TURNED)
        return tensor->strides[tensor->rank - 2] == 1;
    if (tensor->rank != 4)
        return false;
    image_strides(wanted, tensor->dims);
    if (form == HWNAS_CUDNN_SLICED) { /* as if the image had the channels between two pixels */
        const int64_t *dims = tensor->dims, *strides = tensor->strides;
        const int64_t pixel = dims[3] > 1   ? strides[3]
                              : dims[2] > 1 ? strides[2]
                              : dims[0] > 1 ? strides[0]
                                            : dims[1];
        if (pixel < dims[1])
            return false;
        const int64_t apart[] = {pixel * dims[3] * dims[2], 1, pixel * dims[3], pixel};
        memcpy(wanted, apart, sizeof apart);
    }
    for (int i = 0; i < 4; i++)
        if (tensor->dims[i] != 1 && tensor->strides[i] != wanted[i])
            return false;
    return true;
}

int hwnas_cudnn_weight(hwnas_cudnn_net *net, int tensor, hwnas_cudnn_type type,
                       const int64_t *strides)
{
    const hwnas_cudnn_tensor *plain = &net->tensors[tensor];
    const size_t size = (size_t)plain->rank * sizeof *strides;
    for (size_t i = net->graph->n_tensors; i < net->n_tensors; i++)
        if (net->tensors[i].memory == HWNAS_CUDNN_WEIGHTS && net->tensors[i].source == tensor &&
            net->tensors[i].type == type && !memcmp(net->tensors[i].strides, strides, size))
            return (int)i;
    const int made = hwnas_cudnn_new_tensor(net, plain);
    net->tensors[made].memory = HWNAS_CUDNN_WEIGHTS;
    net->tensors[made].type = type;
    memcpy(net->tensors[made].strides, strides, size);
    return made;
}

/* The same values, converted already. */
static int find_converted(const hwnas_cudnn_net *net, int tensor, hwnas_cudnn_type type,
                          hwnas_cudnn_form form)
{
    for (size_t i = 0; i < net->n_steps; i++) {
        const hwnas_cudnn_step *step = &net->steps[i];
        if (step->about.n_nodes || step->inputs[0] != tensor)
            continue;
        const hwnas_cudnn_tensor *made = &net->tensors[step->outputs[0]];
        if (made->type == type && hwnas_cudnn_has_form(made, form))
            return step->outputs[0];
    }
    return -1;
}

int hwnas_cudnn_want(hwnas_cudnn_cut *cut, int tensor, hwnas_cudnn_type type, hwnas_cudnn_form form)
{
    hwnas_cudnn_net *net = cut->net;
    const hwnas_cudnn_tensor *t = &net->tensors[tensor];
    const bool is_image =
        t->rank == 4 && (form == HWNAS_CUDNN_PACKED || form == HWNAS_CUDNN_SLICED);
    int64_t strides[HWNAS_MAX_RANK];
    if (is_image)
        image_strides(strides, t->dims);
    else if (form == HWNAS_CUDNN_TURNED)
        turned_strides(strides, t->rank, t->dims);
    else
        hwnas_cudnn_plain_strides(strides, t->rank, t->dims);
    if (t->source == tensor && cut->graph->tensors[tensor].kind == HWNAS_TENSOR_WEIGHT)
        return hwnas_cudnn_weight(net, tensor, type, strides);
    if (t->type == type && hwnas_cudnn_has_form(t, form))
        return tensor;
    const int known = find_converted(net, tensor, type, form);
    if (known >= 0)
        return known;
    const int made = hwnas_cudnn_new_tensor(net, t);
    net->tensors[made].type = type;
    net->tensors[made].memory = HWNAS_CUDNN_ACTIVATIONS;
    memcpy(net->tensors[made].strides, strides, sizeof strides);
    hwnas_cudnn_add_step(net, &hwnas_cudnn_kernel, net->tensors[made].name, 0, NULL, 1, &tensor,
                         made);
    return made;
}

/* Both shapes are walked from their ends; dimensions that together hold as many values form a
 * piece, and each piece of the old shape must lie as one row of equal steps. */
bool hwnas_cudnn_reshape(int64_t *strides, const hwnas_cudnn_tensor *tensor, int rank,
                         const int64_t *dims)
{
    int old = tensor->rank - 1, at = rank - 1;
    while (at >= 0) {
        while (old >= 0 && tensor->dims[old] == 1)
            old--;
        int64_t step = old >= 0 ? tensor->strides[old] : 1;
        int64_t has = old >= 0 ? tensor->dims[old] : 1, wants = 1;
        while (at >= 0 && (wants < has || dims[at] == 1)) {
            strides[at] = step * wants;
            wants *= dims[at--];
            while (wants > has && old > 0) { /* the piece goes on in the old shape */
                old--;
                if (tensor->dims[old] == 1)
                    continue;
                if (tensor->strides[old] != step * has)
                    return false;
                has *= tensor->dims[old];
            }
        }
        if (wants != has)
            return false;
        old--;
    }
    return true;
}
