/* grad_norms.c: normalisations and softmax. */
#include "device/onednn/training/gradients.h"

/* ---- Batch norm: by the statistics of the batch, which move the running ones ---- */

enum { X, STATISTICS_MEAN, STATISTICS_VARIANCE, WORKSPACE, SCALE, SHIFT };

/* What PyTorch's running statistics take of each batch by default. */
static const float MOMENTUM = 0.1f;

typedef struct running {
    int64_t channels, n; /* values of each channel */
} running;

/* The running variance is that of a sample: of n values over n - 1. */
static void move_statistics(const hwnas_tape *t, const void *settings, void *const *values)
{
    const running *r = settings;
    const float *mean = values[0], *variance = values[1];
    float *running_mean = values[2], *running_variance = values[3];
    const float unbiased = r->n > 1 ? (float)r->n / (float)(r->n - 1) : 1;
    (void)t;
    for (int64_t i = 0; i < r->channels; i++) {
        running_mean[i] += MOMENTUM * (mean[i] - running_mean[i]);
        running_variance[i] += MOMENTUM * (unbiased * variance[i] - running_variance[i]);
    }
}

static hwnas_status batch_norm_flags(unsigned *out, const hwnas_node **follower,
                                     const hwnas_tape *t, const hwnas_node *node)
{
    const hwnas_node *next = hwnas_gradient_only_reader(t, node->output);
    *follower = hwnas_node_is(next, HWNAS_OP_RELU) ? next : NULL;
    *out = dnnl_use_scale | dnnl_use_shift | (*follower ? dnnl_fuse_norm_relu : 0u);
    return HWNAS_OK;
}

static hwnas_status batch_norm_forward(hwnas_tape *t, const hwnas_node *node)
{
    hwnas_tape_note *note = &t->notes[t->node];
    const hwnas_tensor *in = hwnas_node_input(t->graph, node, 0);
    const float epsilon = (float)hwnas_node_attr(node, "epsilon")->number;
    const hwnas_node *follower;
    const_dnnl_memory_desc_t layout, per_channel, workspace;
    dnnl_primitive_desc_t desc = NULL;
    int weights[4];
    unsigned flags;
    TRY(batch_norm_flags(&flags, &follower, t, node));
    TRY(hwnas_tape_image(&layout, t, node->inputs[0], t->type));
    TRY(hwnas_tape_plain(&per_channel, t, node->inputs[1], dnnl_f32));
    TRY(hwnas_gradient_input(&note->slots[X], t, node, 0, layout));
    for (int i = 0; i < 4; i++)
        TRY(hwnas_gradient_weight(&weights[i], t, node->inputs[1 + i], NULL, NULL));
    note->slots[SCALE] = weights[0];
    note->slots[STATISTICS_MEAN] = hwnas_tape_add_slot(t, per_channel);
    note->slots[STATISTICS_VARIANCE] = hwnas_tape_add_slot(t, per_channel);
    const dnnl_status_t made = dnnl_batch_normalization_forward_primitive_desc_create(
        &desc, t->device->engine, dnnl_forward_training, layout, layout, epsilon, flags, t->attr);
    TRY_DNNL("compile the training of", t->name, made);
    note->hint = desc;
    const int y = hwnas_tape_add_slot(t, layout);
    TRY(hwnas_tape_wanted(&workspace, t, desc, DNNL_ARG_WORKSPACE));
    if (follower) {
        note->slots[WORKSPACE] = hwnas_tape_add_slot(t, workspace);
        t->notes[follower - t->graph->nodes].number = 1;
    }
    const hwnas_tape_arg args[] = {{DNNL_ARG_SRC, note->slots[X]},
                                   {DNNL_ARG_SCALE, weights[0]},
                                   {DNNL_ARG_SHIFT, weights[1]},
                                   {DNNL_ARG_MEAN, note->slots[STATISTICS_MEAN]},
                                   {DNNL_ARG_VARIANCE, note->slots[STATISTICS_VARIANCE]},
                                   {DNNL_ARG_DST, y},
                                   {DNNL_ARG_WORKSPACE, note->slots[WORKSPACE]}};
    TRY(hwnas_tape_add_primitive(t, made, desc, follower ? 7 : 6, args));
    const running r = {in->dims[1], hwnas_tensor_count(in) / in->dims[1]};
    const int slots[] = {note->slots[STATISTICS_MEAN], note->slots[STATISTICS_VARIANCE], weights[2],
                         weights[3]};
    hwnas_tape_add_loop(t, move_statistics, &r, sizeof r, 4, slots);
    hwnas_gradient_set(t, node, follower, y);
    return HWNAS_OK;
}

static hwnas_status batch_norm_backward(hwnas_tape *t, const hwnas_node *node, int dy)
{
    const hwnas_tape_note *note = &t->notes[t->node];
    const const_dnnl_memory_desc_t layout = t->slots[note->slots[X]].layout;
    const float epsilon = (float)hwnas_node_attr(node, "epsilon")->number;
    const const_dnnl_memory_desc_t per_channel = t->slots[note->slots[SCALE]].layout;
    const hwnas_node *follower;
    dnnl_primitive_desc_t desc = NULL;
    unsigned flags;
    TRY(batch_norm_flags(&flags, &follower, t, node));
    TRY(hwnas_tape_convert(&dy, t, dy, layout));
    const int dx = hwnas_tape_add_slot(t, layout);
    const int dscale = hwnas_tape_add_slot(t, per_channel);
    const int dshift = hwnas_tape_add_slot(t, per_channel);
    const dnnl_status_t made = dnnl_batch_normalization_backward_primitive_desc_create(
        &desc, t->device->engine, dnnl_backward, layout, layout, layout, epsilon, flags, note->hint,
        t->attr);
    const hwnas_tape_arg args[] = {{DNNL_ARG_SRC, note->slots[X]},
                                   {DNNL_ARG_MEAN, note->slots[STATISTICS_MEAN]},
                                   {DNNL_ARG_VARIANCE, note->slots[STATISTICS_VARIANCE]},
                                   {DNNL_ARG_SCALE, note->slots[SCALE]},
                                   {DNNL_ARG_DIFF_DST, dy},
                                   {DNNL_ARG_DIFF_SRC, dx},
                                   {DNNL_ARG_DIFF_SCALE, dscale},
                                   {DNNL_ARG_DIFF_SHIFT, dshift},
                                   {DNNL_ARG_WORKSPACE, note->slots[WORKSPACE]}};
    TRY(hwnas_tape_add_primitive(t, made, desc, follower ? 9 : 8, args));
    TRY(hwnas_tape_add_gradient(t, node->inputs[1], dscale));
    TRY(hwnas_tape_add_gradient(t, node->inputs[2], dshift));
    return hwnas_tape_add_gradient(t, node->inputs[0], dx);
}

const hwnas_gradient_rule hwnas_gradient_batch_norm = {batch_norm_forward, batch_norm_backward};

/* ---- Layer norm: each row by its own statistics ---- */

typedef struct rows {
    const_dnnl_memory_desc_t values, statistics, weights;
    unsigned flags;
    float epsilon;
} rows;

static hwnas_status describe_rows(rows *out, hwnas_tape *t, const hwnas_node *node)
{
    const int64_t n = hwnas_onednn_row_length(t->graph, node);
    const int64_t dims[] = {hwnas_tensor_count(hwnas_node_output(t->graph, node)) / n, n};
    if (hwnas_tensor_count(hwnas_node_input(t->graph, node, 1)) != n)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                          "'%s': the device 'cpu' has no gradient of a 'layer_norm' with one scale "
                          "for all values",
                          node->name);
    out->epsilon = (float)hwnas_node_attr(node, "epsilon")->number;
    out->flags = dnnl_use_scale | (node->n_inputs > 2 ? dnnl_use_shift : 0u);
    TRY(hwnas_tape_layout(&out->values, t, 2, dims, NULL, t->type));
    TRY(hwnas_tape_layout(&out->statistics, t, 1, dims, NULL, dnnl_f32));
    return hwnas_tape_layout(&out->weights, t, 1, &n, NULL, dnnl_f32);
}

static hwnas_status layer_norm_forward(hwnas_tape *t, const hwnas_node *node)
{
    hwnas_tape_note *note = &t->notes[t->node];
    const_dnnl_memory_desc_t plain;
    dnnl_primitive_desc_t desc = NULL;
    int x, shift = HWNAS_NO_SLOT;
    rows r;
    TRY(describe_rows(&r, t, node));
    TRY(hwnas_gradient_plain_input(&x, t, node, 0));
    note->slots[X] = hwnas_tape_add_view(t, x, r.values);
    TRY(hwnas_gradient_weight(&note->slots[SCALE], t, node->inputs[1], r.weights, r.weights));
    if (node->n_inputs > 2)
        TRY(hwnas_gradient_weight(&shift, t, node->inputs[2], r.weights, r.weights));
    note->slots[SHIFT] = shift;
    note->slots[STATISTICS_MEAN] = hwnas_tape_add_slot(t, r.statistics);
    note->slots[STATISTICS_VARIANCE] = hwnas_tape_add_slot(t, r.statistics);
    const dnnl_status_t made = dnnl_layer_normalization_forward_primitive_desc_create(
        &desc, t->device->engine, dnnl_forward_training, r.values, r.values, r.statistics,
        r.epsilon, r.flags, t->attr);
    note->hint = desc;
    const int y = hwnas_tape_add_slot(t, r.values);
    const hwnas_tape_arg args[] = {{DNNL_ARG_SRC, note->slots[X]},
                                   {DNNL_ARG_MEAN, note->slots[STATISTICS_MEAN]},
                                   {DNNL_ARG_VARIANCE, note->slots[STATISTICS_VARIANCE]},
                                   {DNNL_ARG_SCALE, note->slots[SCALE]},
                                   {DNNL_ARG_DST, y},
                                   {DNNL_ARG_SHIFT, shift}};
    TRY(hwnas_tape_add_primitive(t, made, desc, shift == HWNAS_NO_SLOT ? 5 : 6, args));
    TRY(hwnas_tape_plain(&plain, t, node->output, t->type));
    hwnas_gradient_set(t, node, NULL, hwnas_tape_add_view(t, y, plain));
    return HWNAS_OK;
}

static hwnas_status layer_norm_backward(hwnas_tape *t, const hwnas_node *node, int dy)
{
    const hwnas_tape_note *note = &t->notes[t->node];
    const bool has_shift = node->n_inputs > 2;
    const_dnnl_memory_desc_t plain;
    dnnl_primitive_desc_t desc = NULL;
    rows r;
    TRY(describe_rows(&r, t, node));
    TRY(hwnas_tape_plain(&plain, t, node->output, t->type));
    TRY(hwnas_tape_convert(&dy, t, dy, plain));
    dy = hwnas_tape_add_view(t, dy, r.values);
    const int dx = hwnas_tape_add_slot(t, r.values);
    const int dscale = hwnas_tape_add_slot(t, r.weights);
    const int dshift = has_shift ? hwnas_tape_add_slot(t, r.weights) : HWNAS_NO_SLOT;
    const dnnl_status_t made = dnnl_layer_normalization_backward_primitive_desc_create(
        &desc, t->device->engine, dnnl_backward, r.values, r.values, r.values, r.statistics,
        r.epsilon, r.flags, note->hint, t->attr);
    const hwnas_tape_arg args[] = {{DNNL_ARG_SRC, note->slots[X]},
                                   {DNNL_ARG_MEAN, note->slots[STATISTICS_MEAN]},
                                   {DNNL_ARG_VARIANCE, note->slots[STATISTICS_VARIANCE]},
                                   {DNNL_ARG_SCALE, note->slots[SCALE]},
                                   {DNNL_ARG_DIFF_DST, dy},
                                   {DNNL_ARG_DIFF_SRC, dx},
                                   {DNNL_ARG_DIFF_SCALE, dscale},
                                   {DNNL_ARG_DIFF_SHIFT, dshift},
                                   {DNNL_ARG_SHIFT, note->slots[SHIFT]}};
    TRY(hwnas_tape_add_primitive(t, made, desc, has_shift ? 9 : 7, args));
    TRY(hwnas_tape_plain(&plain, t, node->inputs[1], dnnl_f32));
    TRY(hwnas_tape_add_gradient(t, node->inputs[1], hwnas_tape_add_view(t, dscale, plain)));
    if (has_shift)
        TRY(hwnas_tape_add_gradient(t, node->inputs[2], hwnas_tape_add_view(t, dshift, plain)));
    TRY(hwnas_tape_plain(&plain, t, node->inputs[0], t->type));
    return hwnas_tape_add_gradient(t, node->inputs[0], hwnas_tape_add_view(t, dx, plain));
}

const hwnas_gradient_rule hwnas_gradient_layer_norm = {layer_norm_forward, layer_norm_backward};

/* ---- Softmax ---- */

static int axis_of(const hwnas_tape *t, const hwnas_node *node)
{
    const int axis = (int)hwnas_node_attr(node, "axis")->ints[0];
    return axis < 0 ? axis + hwnas_node_output(t->graph, node)->rank : axis;
}

static hwnas_status softmax_forward(hwnas_tape *t, const hwnas_node *node)
{
    hwnas_tape_note *note = &t->notes[t->node];
    dnnl_primitive_desc_t desc = NULL;
    int x;
    TRY(hwnas_gradient_plain_input(&x, t, node, 0));
    const const_dnnl_memory_desc_t layout = t->slots[x].layout;
    const int y = hwnas_tape_add_slot(t, layout);
    const dnnl_status_t made = dnnl_softmax_forward_primitive_desc_create(
        &desc, t->device->engine, dnnl_forward_training, dnnl_softmax_accurate, layout, layout,
        axis_of(t, node), t->attr);
    const hwnas_tape_arg args[] = {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}};
    note->hint = desc;
    TRY(hwnas_tape_add_primitive(t, made, desc, 2, args));
    hwnas_gradient_set(t, node, NULL, y);
    return HWNAS_OK;
}

static hwnas_status softmax_backward(hwnas_tape *t, const hwnas_node *node, int dy)
{
    const int y = t->value[node->output];
    const const_dnnl_memory_desc_t layout = t->slots[y].layout;
    dnnl_primitive_desc_t desc = NULL;
    TRY(hwnas_tape_convert(&dy, t, dy, layout));
    const int dx = hwnas_tape_add_slot(t, layout);
    const dnnl_status_t made = dnnl_softmax_backward_primitive_desc_create(
        &desc, t->device->engine, dnnl_softmax_accurate, layout, layout, layout, axis_of(t, node),
        t->notes[t->node].hint, t->attr);
    const hwnas_tape_arg args[] = {
        {DNNL_ARG_DST, y}, {DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_DIFF_SRC, dx}};
    TRY(hwnas_tape_add_primitive(t, made, desc, 3, args));
    return hwnas_tape_add_gradient(t, node->inputs[0], dx);
}

const hwnas_gradient_rule hwnas_gradient_softmax = {softmax_forward, softmax_backward};
