/* grad_moves.c: padding, larger images, and values put at places. */
#include <string.h>

#include "device/onednn/training/gradients.h"
#include "graph/ops/pad.h"

/* ---- Padding ---- */

typedef struct pad {
    int rank;
    int64_t n_rows, mode; /* of the output; a row is the last dimension */
    int64_t in[HWNAS_MAX_RANK], out[HWNAS_MAX_RANK], before[HWNAS_MAX_RANK];
} pad;

/* The row of the input that this one of the output comes from, or -1. */
static int64_t source_row(const pad *p, int64_t row)
{
    int64_t at = 0, step = 1;
    for (int i = p->rank - 2; i >= 0; step *= p->in[i--], row /= p->out[i + 1]) {
        const int64_t from = hwnas_pad_source(row % p->out[i] - p->before[i], p->in[i], p->mode);
        if (from < 0)
            return -1;
        at += from * step;
    }
    return at;
}

/* Each value goes back to where it came from; that is one place for several, so by one thread. */
static void unpad(const hwnas_tape *t, const void *settings, void *const *values)
{
    const pad *p = settings;
    const int last = p->rank - 1;
    const int64_t n_in = p->in[last], n_out = p->out[last], before = p->before[last];
    (void)t;
    for (int64_t row = 0; row < p->n_rows; row++) {
        const int64_t from = source_row(p, row);
        const float *dy = (const float *)values[1] + row * n_out;
        float *dx = (float *)values[0] + from * n_in;
        if (from < 0)
            continue;
        for (int64_t i = 0; i < n_in; i++)
            dx[i] += dy[before + i];
        for (int64_t i = 0; i < n_out; i += i == before - 1 ? n_in + 1 : 1) {
            const int64_t at =
                i < before || i >= before + n_in ? hwnas_pad_source(i - before, n_in, p->mode) : -1;
            if (at >= 0)
                dx[at] += dy[i];
        }
    }
}

static hwnas_status pad_backward(hwnas_tape *t, const hwnas_node *node, int dy)
{
    const hwnas_tensor *in = hwnas_node_input(t->graph, node, 0),
                       *out = hwnas_node_output(t->graph, node);
    const_dnnl_memory_desc_t plain;
    int slots[2];
    pad p = {.rank = out->rank, .mode = hwnas_node_attr(node, "mode")->ints[0]};
    if (!out->rank)
        return hwnas_tape_add_gradient(t, node->inputs[0], dy);
    for (int i = 0; i < out->rank; i++) {
        p.in[i] = in->dims[i];
        p.out[i] = out->dims[i];
        p.before[i] = hwnas_node_attr(node, "before")->ints[i];
    }
    p.n_rows = hwnas_tensor_count(out) / p.out[p.rank - 1];
    TRY(hwnas_tape_plain(&plain, t, node->inputs[0], dnnl_f32));
    TRY(hwnas_gradient_zeros(&slots[0], t, plain));
    TRY(hwnas_gradient_floats_of(&slots[1], t, node, dy));
    hwnas_tape_add_loop(t, unpad, &p, sizeof p, 2, slots);
    return hwnas_tape_add_gradient(t, node->inputs[0], slots[0]);
}

const hwnas_gradient_rule hwnas_gradient_pad = {hwnas_gradient_compute, pad_backward};

/* ---- Larger images ---- */

static dnnl_alg_kind_t resampling_of(const hwnas_node *node)
{
    return hwnas_node_attr(node, "linear")->ints[0] ? dnnl_resampling_linear
                                                    : dnnl_resampling_nearest;
}

static hwnas_status upsample_forward(hwnas_tape *t, const hwnas_node *node)
{
    const_dnnl_memory_desc_t in, out;
    dnnl_primitive_desc_t desc = NULL;
    int x;
    TRY(hwnas_tape_image(&in, t, node->inputs[0], t->type));
    TRY(hwnas_tape_image(&out, t, node->output, t->type));
    TRY(hwnas_gradient_input(&x, t, node, 0, in));
    const int y = hwnas_tape_add_slot(t, out);
    const dnnl_status_t made = dnnl_resampling_forward_primitive_desc_create(
        &desc, t->device->engine, dnnl_forward_training, resampling_of(node), NULL, in, out,
        t->attr);
    const hwnas_tape_arg args[] = {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}};
    TRY(hwnas_tape_add_primitive(t, made, desc, 2, args));
    t->notes[t->node].hint = desc;
    hwnas_gradient_set(t, node, NULL, y);
    return HWNAS_OK;
}

static hwnas_status upsample_backward(hwnas_tape *t, const hwnas_node *node, int dy)
{
    const_dnnl_memory_desc_t in, out;
    dnnl_primitive_desc_t desc = NULL;
    TRY(hwnas_tape_image(&in, t, node->inputs[0], t->type));
    TRY(hwnas_tape_image(&out, t, node->output, t->type));
    TRY(hwnas_tape_convert(&dy, t, dy, out));
    const int dx = hwnas_tape_add_slot(t, in);
    const dnnl_status_t made = dnnl_resampling_backward_primitive_desc_create(
        &desc, t->device->engine, resampling_of(node), NULL, in, out, t->notes[t->node].hint,
        t->attr);
    const hwnas_tape_arg args[] = {{DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_DIFF_SRC, dx}};
    TRY(hwnas_tape_add_primitive(t, made, desc, 2, args));
    return hwnas_tape_add_gradient(t, node->inputs[0], dx);
}

const hwnas_gradient_rule hwnas_gradient_upsample = {upsample_forward, upsample_backward};

/* ---- Values put at places ---- */

enum { DATA, INDICES, UPDATES };
enum { REPLACE, ADD };

/* Values: dy, the places, zeros in the place of the updates, and where the rest goes. */
static void clear_places(const hwnas_tape *t, const void *settings, void *const *values)
{
    const hwnas_node *node = &t->graph->nodes[*(const int *)settings];
    const float *inputs[] = {values[0], values[1], values[2]};
    node->op->compute(t->graph, node, inputs, values[3]);
}

/* A gather of dy by the same places. Its node is made for the run alone, from the scatter's. */
static void take_places(const hwnas_tape *t, const void *settings, void *const *values)
{
    const hwnas_node *node = &t->graph->nodes[*(const int *)settings];
    const bool is_nd = node->op->id == HWNAS_OP_SCATTER_ND;
    const hwnas_op *op = hwnas_ops[is_nd ? HWNAS_OP_GATHER_ND : HWNAS_OP_GATHER_ELEMENTS];
    hwnas_attr axis = is_nd ? hwnas_attr_int(0) : *hwnas_node_attr(node, "axis");
    hwnas_node gather = *node;
    const float *inputs[] = {values[0], values[1]};
    gather.op = op;
    gather.attrs = &axis;
    op->compute(t->graph, &gather, inputs, values[2]);
}

static hwnas_status scatter_backward(hwnas_tape *t, const hwnas_node *node, int dy)
{
    const int64_t reduction = hwnas_node_attr(node, "reduction")->ints[0];
    const int index = (int)(node - t->graph->nodes);
    const_dnnl_memory_desc_t data, updates;
    int places, floats;
    if (reduction > ADD)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                          "'%s': the device 'cpu' has no gradient of a '%s' that multiplies or "
                          "compares",
                          node->name, node->op->name);
    TRY(hwnas_tape_plain(&data, t, node->inputs[DATA], dnnl_f32));
    TRY(hwnas_tape_plain(&updates, t, node->inputs[UPDATES], dnnl_f32));
    TRY(hwnas_gradient_float_input(&places, t, node, INDICES));
    TRY(hwnas_gradient_floats_of(&floats, t, node, dy));
    if (hwnas_gradient_is_wanted(t, node, DATA) && reduction == ADD) {
        TRY(hwnas_tape_add_gradient(t, node->inputs[DATA], floats));
    } else if (hwnas_gradient_is_wanted(t, node, DATA)) {
        int zeros;
        TRY(hwnas_gradient_zeros(&zeros, t, updates));
        const int slots[] = {floats, places, zeros, hwnas_tape_add_slot(t, data)};
        hwnas_tape_add_loop(t, clear_places, &index, sizeof index, 4, slots);
        TRY(hwnas_tape_add_gradient(t, node->inputs[DATA], slots[3]));
    }
    if (!hwnas_gradient_is_wanted(t, node, UPDATES))
        return HWNAS_OK;
    const int slots[] = {floats, places, hwnas_tape_add_slot(t, updates)};
    hwnas_tape_add_loop(t, take_places, &index, sizeof index, 3, slots);
    return hwnas_tape_add_gradient(t, node->inputs[UPDATES], slots[2]);
}

const hwnas_gradient_rule hwnas_gradient_scatter = {hwnas_gradient_compute, scatter_backward};
