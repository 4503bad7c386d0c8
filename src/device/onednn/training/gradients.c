#include "device/onednn/training/gradients.h"

#include <string.h>

/* The rules; an operator without one has no gradient here. */
static const hwnas_gradient_rule *const rules[HWNAS_N_OPS] = {
    [HWNAS_OP_ABS] = &hwnas_gradient_function,
    [HWNAS_OP_ADD] = &hwnas_gradient_binary,
    [HWNAS_OP_AND] = &hwnas_gradient_none,
    [HWNAS_OP_AVG_POOL] = &hwnas_gradient_pool,
    [HWNAS_OP_BATCH_NORM] = &hwnas_gradient_batch_norm,
    [HWNAS_OP_CAST] = &hwnas_gradient_cast,
    [HWNAS_OP_CLIP] = &hwnas_gradient_function,
    [HWNAS_OP_CONCAT] = &hwnas_gradient_concat,
    [HWNAS_OP_CONV] = &hwnas_gradient_conv,
    [HWNAS_OP_COS] = &hwnas_gradient_smooth,
    [HWNAS_OP_DIV] = &hwnas_gradient_binary,
    [HWNAS_OP_DROPOUT] = &hwnas_gradient_dropout,
    [HWNAS_OP_ELU] = &hwnas_gradient_function,
    [HWNAS_OP_EQUAL] = &hwnas_gradient_none,
    [HWNAS_OP_ERF] = &hwnas_gradient_smooth,
    [HWNAS_OP_EXP] = &hwnas_gradient_function,
    [HWNAS_OP_EXPAND] = &hwnas_gradient_expand,
    [HWNAS_OP_FLATTEN] = &hwnas_gradient_reshape,
    [HWNAS_OP_GATHER] = &hwnas_gradient_gather,
    [HWNAS_OP_GELU] = &hwnas_gradient_function,
    [HWNAS_OP_GLOBAL_AVG_POOL] = &hwnas_gradient_pool,
    [HWNAS_OP_GREATER] = &hwnas_gradient_none,
    [HWNAS_OP_GREATER_OR_EQUAL] = &hwnas_gradient_none,
    [HWNAS_OP_GRU_CORE] = &hwnas_gradient_recurrent,
    [HWNAS_OP_HARD_SIGMOID] = &hwnas_gradient_function,
    [HWNAS_OP_HARD_SWISH] = &hwnas_gradient_function,
    [HWNAS_OP_IS_INF] = &hwnas_gradient_none,
    [HWNAS_OP_IS_NAN] = &hwnas_gradient_none,
    [HWNAS_OP_LAYER_NORM] = &hwnas_gradient_layer_norm,
    [HWNAS_OP_LEAKY_RELU] = &hwnas_gradient_function,
    [HWNAS_OP_LESS] = &hwnas_gradient_none,
    [HWNAS_OP_LESS_OR_EQUAL] = &hwnas_gradient_none,
    [HWNAS_OP_LINEAR] = &hwnas_gradient_linear,
    [HWNAS_OP_LOG] = &hwnas_gradient_function,
    [HWNAS_OP_LSTM_CORE] = &hwnas_gradient_recurrent,
    [HWNAS_OP_MATMUL] = &hwnas_gradient_matmul,
    [HWNAS_OP_MAX_POOL] = &hwnas_gradient_pool,
    [HWNAS_OP_MEAN] = &hwnas_gradient_mean,
    [HWNAS_OP_MISH] = &hwnas_gradient_function,
    [HWNAS_OP_MUL] = &hwnas_gradient_binary,
    [HWNAS_OP_NEG] = &hwnas_gradient_function,
    [HWNAS_OP_NOT] = &hwnas_gradient_none,
    [HWNAS_OP_OR] = &hwnas_gradient_none,
    [HWNAS_OP_PAD] = &hwnas_gradient_pad,
    [HWNAS_OP_POW] = &hwnas_gradient_function,
    [HWNAS_OP_PRELU] = &hwnas_gradient_prelu,
    [HWNAS_OP_RECIPROCAL] = &hwnas_gradient_function,
    [HWNAS_OP_REDUCE_SUM] = &hwnas_gradient_mean,
    [HWNAS_OP_RELU] = &hwnas_gradient_function,
    [HWNAS_OP_RESHAPE] = &hwnas_gradient_reshape,
    [HWNAS_OP_SCATTER_ELEMENTS] = &hwnas_gradient_scatter,
    [HWNAS_OP_SCATTER_ND] = &hwnas_gradient_scatter,
    [HWNAS_OP_SIGMOID] = &hwnas_gradient_function,
    [HWNAS_OP_SIN] = &hwnas_gradient_smooth,
    [HWNAS_OP_SLICE] = &hwnas_gradient_slice,
    [HWNAS_OP_SOFTMAX] = &hwnas_gradient_softmax,
    [HWNAS_OP_SOFTPLUS] = &hwnas_gradient_function,
    [HWNAS_OP_SQRT] = &hwnas_gradient_function,
    [HWNAS_OP_SUB] = &hwnas_gradient_binary,
    [HWNAS_OP_TANH] = &hwnas_gradient_function,
    [HWNAS_OP_TRANSPOSE] = &hwnas_gradient_transpose,
    [HWNAS_OP_UPSAMPLE] = &hwnas_gradient_upsample,
    [HWNAS_OP_WHERE] = &hwnas_gradient_where,
    [HWNAS_OP_XOR] = &hwnas_gradient_none,
    [HWNAS_OP_ZERO] = &hwnas_gradient_zero,
};

static hwnas_status lacks_rule(const hwnas_node *node)
{
    return hwnas_hint(hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                                 "'%s': the device 'cpu' has no gradient of the operator '%s'",
                                 node->name, node->op->name),
                      "--device torch trains it as PyTorch does");
}

/* What follows from a parameter has a gradient. */
static void find_learnt(hwnas_tape *t)
{
    const hwnas_graph *g = t->graph;
    for (size_t i = 0; i < g->n_tensors; i++)
        t->is_learnt[i] = g->tensors[i].kind == HWNAS_TENSOR_WEIGHT && g->tensors[i].is_parameter;
    for (size_t n = 0; n < g->n_nodes; n++) {
        const hwnas_node *node = &g->nodes[n];
        const hwnas_tensor *out = hwnas_node_output(g, node);
        for (int i = 0; i < node->n_inputs; i++) {
            const hwnas_gradient_rule *rule = rules[node->op->id];
            t->is_learnt[node->output] |= rule && rule->backward && t->is_learnt[node->inputs[i]] &&
                                          !hwnas_dtype_is_whole(out->dtype);
            t->n_readers[node->inputs[i]]++;
        }
    }
    for (size_t i = 0; i < g->n_outputs; i++)
        t->n_readers[g->outputs[i]]++;
}

static hwnas_status take_inputs(hwnas_tape *t)
{
    for (size_t i = 0; i < t->graph->n_inputs; i++) {
        const_dnnl_memory_desc_t plain;
        const int tensor = t->graph->inputs[i];
        TRY(hwnas_tape_plain(&plain, t, tensor, dnnl_f32));
        t->value[tensor] = hwnas_tape_add_slot(t, plain);
        t->slots[t->value[tensor]].input = (int)i;
    }
    return HWNAS_OK;
}

static void go_to(hwnas_tape *t, size_t n, hwnas_tape_phase phase)
{
    t->node = (int)n;
    t->name = t->graph->nodes[n].name;
    t->phase = phase;
}

static hwnas_status write_forward(hwnas_tape *t)
{
    const hwnas_graph *g = t->graph;
    for (size_t n = 0; n < g->n_nodes; n++)
        if (!rules[g->nodes[n].op->id])
            return lacks_rule(&g->nodes[n]);
    for (size_t n = 0; n < g->n_nodes; n++) {
        const hwnas_node *node = &g->nodes[n];
        go_to(t, n, HWNAS_TAPE_FORWARD);
        if (t->is_done[n])
            continue;
        if (hwnas_loss_has_softmax(t, node))
            t->value[node->output] = t->value[node->inputs[0]];
        else
            TRY(rules[node->op->id]->forward(t, node));
    }
    return HWNAS_OK;
}

/* The node is the first that reads the weight, so backward has all of its gradient behind it. */
static bool is_first_reader(const hwnas_tape *t, size_t n, int tensor)
{
    for (size_t k = 0; k < n; k++)
        for (int i = 0; i < t->graph->nodes[k].n_inputs; i++)
            if (t->graph->nodes[k].inputs[i] == tensor)
                return false;
    return true;
}

/* A weight is changed as soon as its gradient is known, which so need not be kept. */
static hwnas_status write_updates(hwnas_tape *t, size_t n)
{
    const hwnas_node *node = &t->graph->nodes[n];
    go_to(t, n, HWNAS_TAPE_UPDATE);
    for (int i = 0; i < node->n_inputs; i++) {
        const int tensor = node->inputs[i];
        bool is_repeated = false;
        for (int k = 0; k < i; k++)
            is_repeated |= node->inputs[k] == tensor;
        if (t->graph->tensors[tensor].kind == HWNAS_TENSOR_WEIGHT && t->is_learnt[tensor] &&
            t->gradient[tensor] != HWNAS_NO_SLOT && !is_repeated && is_first_reader(t, n, tensor))
            TRY(hwnas_optimizer_write(t, tensor));
    }
    return HWNAS_OK;
}

static hwnas_status write_backward(hwnas_tape *t)
{
    for (size_t n = t->graph->n_nodes; n-- > 0;) {
        const hwnas_node *node = &t->graph->nodes[n];
        const int dy = t->gradient[node->output];
        go_to(t, n, HWNAS_TAPE_BACKWARD);
        if (dy == HWNAS_NO_SLOT)
            continue;
        if (hwnas_loss_has_softmax(t, node))
            TRY(hwnas_tape_add_gradient(t, node->inputs[0], dy));
        else
            TRY(rules[node->op->id]->backward(t, node, dy));
        TRY(write_updates(t, n));
    }
    return HWNAS_OK;
}

hwnas_status hwnas_gradients_write(hwnas_tape *t)
{
    find_learnt(t);
    TRY(take_inputs(t));
    TRY(write_forward(t));
    t->node = -1;
    t->name = "the loss";
    t->phase = HWNAS_TAPE_LOSS;
    TRY(hwnas_loss_write(t));
    return write_backward(t);
}

/* ---- For rules ---- */

hwnas_status hwnas_gradient_weight(int *out, hwnas_tape *t, int tensor,
                                   const_dnnl_memory_desc_t layout, const_dnnl_memory_desc_t plain)
{
    const hwnas_tensor *weight = &t->graph->tensors[tensor];
    dnnl_data_type_t type = dnnl_f32;
    if (!plain)
        TRY(hwnas_tape_plain(&plain, t, tensor, dnnl_f32));
    layout = layout ? layout : plain;
    dnnl_memory_desc_query(layout, dnnl_query_data_type, &type);
    if (t->master[tensor] == HWNAS_NO_SLOT) {
        t->master[tensor] = hwnas_tape_add_kept(t, type == dnnl_f32 ? layout : plain, plain, NULL);
        t->contents[t->n_contents - 1].weight = weight;
    }
    return hwnas_tape_convert(out, t, t->master[tensor], layout);
}

hwnas_status hwnas_gradient_input(int *out, hwnas_tape *t, const hwnas_node *node, int i,
                                  const_dnnl_memory_desc_t layout)
{
    const int tensor = node->inputs[i];
    if (t->graph->tensors[tensor].kind == HWNAS_TENSOR_WEIGHT &&
        t->value[tensor] == HWNAS_NO_SLOT) {
        const_dnnl_memory_desc_t plain;
        TRY(hwnas_tape_plain(&plain, t, tensor, t->type));
        TRY(hwnas_gradient_weight(&t->value[tensor], t, tensor, plain, NULL));
    }
    *out = t->value[tensor];
    return layout ? hwnas_tape_convert(out, t, *out, layout) : HWNAS_OK;
}

hwnas_status hwnas_gradient_dense_input(int *out, hwnas_tape *t, const hwnas_node *node, int i)
{
    TRY(hwnas_gradient_input(out, t, node, i, NULL));
    if (t->graph->tensors[node->inputs[i]].kind != HWNAS_TENSOR_INPUT || t->type == dnnl_f32)
        if (hwnas_tape_is_dense(t->slots[*out].layout))
            return HWNAS_OK;
    return hwnas_gradient_plain_input(out, t, node, i);
}

hwnas_status hwnas_gradient_plain_input(int *out, hwnas_tape *t, const hwnas_node *node, int i)
{
    const_dnnl_memory_desc_t plain;
    TRY(hwnas_tape_plain(&plain, t, node->inputs[i], t->type));
    return hwnas_gradient_input(out, t, node, i, plain);
}

void hwnas_gradient_set(hwnas_tape *t, const hwnas_node *node, const hwnas_node *follower, int slot)
{
    t->value[node->output] = slot;
    if (follower) {
        t->value[follower->output] = slot;
        t->is_done[follower - t->graph->nodes] = true;
    }
}

void hwnas_gradient_clear(const hwnas_tape *t, const void *settings, void *const *values)
{
    const size_t bytes = *(const size_t *)settings;
    const size_t piece = (bytes / (size_t)t->device->threads + 64) / 64 * 64;
#pragma omp parallel for num_threads(t->device->threads) if (bytes > 1 << 18)
    for (int i = 0; i < t->device->threads; i++) {
        const size_t begin = (size_t)i * piece;
        if (begin < bytes)
            memset((char *)values[0] + begin, 0, bytes - begin < piece ? bytes - begin : piece);
    }
}

hwnas_status hwnas_gradient_zeros(int *out, hwnas_tape *t, const_dnnl_memory_desc_t layout)
{
    const size_t bytes = dnnl_memory_desc_get_size(layout);
    *out = hwnas_tape_add_slot(t, layout);
    hwnas_tape_add_loop(t, hwnas_gradient_clear, &bytes, sizeof bytes, 1, out);
    return HWNAS_OK;
}
