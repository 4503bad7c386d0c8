/* grad_products.c: convolutions and products of matrices. */
#include "device/onednn/primitive.h"
#include "device/onednn/training/gradients.h"
#include "device/onednn/windows.h"

/* ---- Convolutions ---- */

typedef struct window {
    dnnl_dims_t stride, dilation, before, after;
} window;

static window window_of(const hwnas_tape *t, const hwnas_node *node)
{
    const hwnas_onednn_window w = hwnas_onednn_conv_window(t->graph, node);
    const int64_t *dilation = hwnas_node_attr(node, "dilation")->ints;
    return (window){{w.stride[0], w.stride[1]},
                    {dilation[0] - 1, dilation[1] - 1},
                    {w.before[0], w.before[1]},
                    {w.after[0], w.after[1]}};
}

/* Dimensions of the weights as oneDNN has them: with the groups in front, where there are some. */
static int kernel_dims(int64_t out[5], const hwnas_tape *t, const hwnas_node *node)
{
    const int64_t *d = hwnas_node_input(t->graph, node, 1)->dims;
    const int64_t groups = hwnas_node_attr(node, "groups")->ints[0];
    const int64_t dims[] = {groups, d[0] / groups, d[1], d[2], d[3]};
    const int skipped = groups == 1;
    for (int i = skipped; i < 5; i++)
        out[i - skipped] = dims[i];
    return 5 - skipped;
}

/* What the three primitives of a convolution have in common. */
typedef struct conv {
    window w;
    int rank; /* of the weights */
    int64_t dims[5];
    const_dnnl_memory_desc_t x, y, weights, plain_weights, bias; /* bias NULL: none */
} conv;

static hwnas_status describe_conv(conv *out, hwnas_tape *t, const hwnas_node *node)
{
    if (hwnas_node_input(t->graph, node, 1)->kind != HWNAS_TENSOR_WEIGHT)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                          "'%s': the device 'cpu' has no gradient of a kernel that is computed",
                          node->name);
    *out = (conv){.w = window_of(t, node)};
    out->rank = kernel_dims(out->dims, t, node);
    TRY(hwnas_tape_image(&out->x, t, node->inputs[0], t->type));
    TRY(hwnas_tape_image(&out->y, t, node->output, t->type));
    TRY(hwnas_tape_any(&out->weights, t, out->rank, out->dims, t->type));
    TRY(hwnas_tape_layout(&out->plain_weights, t, out->rank, out->dims, NULL, dnnl_f32));
    if (node->n_inputs > 2)
        TRY(hwnas_tape_plain(&out->bias, t, node->inputs[2], dnnl_f32));
    return HWNAS_OK;
}

static hwnas_status conv_forward(hwnas_tape *t, const hwnas_node *node)
{
    hwnas_status status = HWNAS_OK;
    hwnas_tape_note *note = &t->notes[t->node];
    dnnl_primitive_attr_t attr = NULL;
    const hwnas_node *follower;
    const_dnnl_memory_desc_t wanted;
    int x, weights, bias = HWNAS_NO_SLOT;
    conv c;
    TRY_OUT(describe_conv(&c, t, node));
    TRY_OUT(hwnas_gradient_follower(&follower, &attr, t, node));
    TRY_DNNL_OUT("compile the training of", t->name,
                 dnnl_convolution_forward_primitive_desc_create(
                     &note->hint, t->device->engine, dnnl_forward_training, dnnl_convolution_direct,
                     c.x, c.weights, c.bias, c.y, c.w.stride, c.w.dilation, c.w.before, c.w.after,
                     attr));
    const dnnl_primitive_desc_t desc = note->hint;
    TRY_OUT(hwnas_tape_wanted(&wanted, t, desc, DNNL_ARG_WEIGHTS));
    TRY_OUT(hwnas_gradient_input(&x, t, node, 0, c.x));
    TRY_OUT(hwnas_gradient_weight(&weights, t, node->inputs[1], wanted, c.plain_weights));
    if (c.bias)
        TRY_OUT(hwnas_gradient_weight(&bias, t, node->inputs[2], NULL, NULL));
    const int y = hwnas_tape_add_slot(t, c.y);
    const hwnas_tape_arg args[] = {
        {DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, y}, {DNNL_ARG_BIAS, bias}};
    TRY_OUT(hwnas_tape_add_primitive(t, dnnl_success, desc, c.bias ? 4 : 3, args));
    note->slots[0] = x;
    note->slots[1] = weights;
    hwnas_gradient_set(t, node, follower, y);
out:
    dnnl_primitive_attr_destroy(attr);
    return status;
}

/* The weights as forward has them, if oneDNN has fast code for that. */
static hwnas_status choose_data_desc(dnnl_primitive_desc_t *out, hwnas_tape *t, const conv *c,
                                     const hwnas_tape_note *note)
{
    const const_dnnl_memory_desc_t choices[] = {t->slots[note->slots[1]].layout, c->weights};
    for (int i = 0; i < 2; i++) {
        dnnl_primitive_desc_t desc = NULL;
        const dnnl_status_t made = dnnl_convolution_backward_data_primitive_desc_create(
            &desc, t->device->engine, dnnl_convolution_direct, c->x, choices[i], c->y, c->w.stride,
            c->w.dilation, c->w.before, c->w.after, note->hint, t->attr);
        if (i == 0 && (made != dnnl_success || hwnas_onednn_is_reference(desc))) {
            dnnl_primitive_desc_destroy(desc);
            continue;
        }
        TRY_DNNL("compile the gradient of", t->name, made);
        *out = desc;
        return HWNAS_OK;
    }
    return HWNAS_OK;
}

static hwnas_status conv_backward_data(hwnas_tape *t, const hwnas_node *node, const conv *c, int dy)
{
    const hwnas_tape_note *note = &t->notes[t->node];
    const_dnnl_memory_desc_t wanted;
    dnnl_primitive_desc_t desc = NULL;
    int weights;
    TRY(choose_data_desc(&desc, t, c, note));
    const hwnas_status status = hwnas_tape_wanted(&wanted, t, desc, DNNL_ARG_WEIGHTS);
    if (status != HWNAS_OK) {
        dnnl_primitive_desc_destroy(desc);
        return status;
    }
    TRY(hwnas_tape_convert(&weights, t, note->slots[1], wanted));
    const int dx = hwnas_tape_add_slot(t, c->x);
    const hwnas_tape_arg args[] = {
        {DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DIFF_SRC, dx}};
    TRY(hwnas_tape_add_primitive(t, dnnl_success, desc, 3, args));
    return hwnas_tape_add_gradient(t, node->inputs[0], dx);
}

static dnnl_status_t describe_weights_gradient(dnnl_primitive_desc_t *out, const hwnas_tape *t,
                                               const conv *c, const_dnnl_memory_desc_t weights)
{
    return dnnl_convolution_backward_weights_primitive_desc_create(
        out, t->device->engine, dnnl_convolution_direct, c->x, weights, c->bias, c->y, c->w.stride,
        c->w.dilation, c->w.before, c->w.after, t->notes[t->node].hint, t->attr);
}

static hwnas_status conv_backward_weights(hwnas_tape *t, const hwnas_node *node, const conv *c,
                                          int dy)
{
    const hwnas_tape_note *note = &t->notes[t->node];
    const_dnnl_memory_desc_t any, made_as;
    dnnl_primitive_desc_t desc = NULL;
    /* As the optimizer keeps them, if oneDNN has fast code for that. */
    dnnl_status_t made =
        describe_weights_gradient(&desc, t, c, t->slots[t->master[node->inputs[1]]].layout);
    if (made != dnnl_success || hwnas_onednn_is_reference(desc)) {
        dnnl_primitive_desc_destroy(desc);
        desc = NULL;
        TRY(hwnas_tape_any(&any, t, c->rank, c->dims, dnnl_f32));
        made = describe_weights_gradient(&desc, t, c, any);
    }
    TRY_DNNL("compile the gradient of", t->name, made);
    const hwnas_status status = hwnas_tape_wanted(&made_as, t, desc, DNNL_ARG_DIFF_WEIGHTS);
    if (status != HWNAS_OK) {
        dnnl_primitive_desc_destroy(desc);
        return status;
    }
    const int dw = hwnas_tape_add_slot(t, made_as);
    const int db = c->bias ? hwnas_tape_add_slot(t, c->bias) : HWNAS_NO_SLOT;
    const hwnas_tape_arg args[] = {{DNNL_ARG_SRC, note->slots[0]},
                                   {DNNL_ARG_DIFF_DST, dy},
                                   {DNNL_ARG_DIFF_WEIGHTS, dw},
                                   {DNNL_ARG_DIFF_BIAS, db}};
    TRY(hwnas_tape_add_primitive(t, dnnl_success, desc, c->bias ? 4 : 3, args));
    TRY(hwnas_tape_add_gradient(t, node->inputs[1], dw));
    return c->bias ? hwnas_tape_add_gradient(t, node->inputs[2], db) : HWNAS_OK;
}

static hwnas_status conv_backward(hwnas_tape *t, const hwnas_node *node, int dy)
{
    conv c;
    TRY(describe_conv(&c, t, node));
    TRY(hwnas_tape_convert(&dy, t, dy, c.y));
    if (hwnas_gradient_is_wanted(t, node, 1) || hwnas_gradient_is_wanted(t, node, 2))
        TRY(conv_backward_weights(t, node, &c, dy));
    return hwnas_gradient_is_wanted(t, node, 0) ? conv_backward_data(t, node, &c, dy) : HWNAS_OK;
}

const hwnas_gradient_rule hwnas_gradient_conv = {conv_forward, conv_backward};

/* ---- Products ---- */

hwnas_status hwnas_gradient_product(hwnas_tape *t, int a, int b, int bias, int out,
                                    const_dnnl_primitive_attr_t attr)
{
    dnnl_primitive_desc_t desc = NULL;
    const dnnl_status_t made = dnnl_matmul_primitive_desc_create(
        &desc, t->device->engine, t->slots[a].layout, t->slots[b].layout,
        bias == HWNAS_NO_SLOT ? NULL : t->slots[bias].layout, t->slots[out].layout,
        attr ? attr : t->attr);
    const hwnas_tape_arg args[] = {
        {DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, out}, {DNNL_ARG_BIAS, bias}};
    return hwnas_tape_add_primitive(t, made, desc, bias == HWNAS_NO_SLOT ? 3 : 4, args);
}

/* A row-major matrix, or its transpose as it lies there. */
static hwnas_status matrix_view(int *out, hwnas_tape *t, int slot, int64_t rows, int64_t columns,
                                bool transposed)
{
    const int64_t dims[] = {transposed ? columns : rows, transposed ? rows : columns};
    const int64_t strides[] = {transposed ? 1 : columns, transposed ? columns : 1};
    const_dnnl_memory_desc_t layout;
    dnnl_data_type_t type = dnnl_f32;
    dnnl_memory_desc_query(t->slots[slot].layout, dnnl_query_data_type, &type);
    TRY(hwnas_tape_layout(&layout, t, 2, dims, strides, type));
    *out = hwnas_tape_add_view(t, slot, layout);
    return HWNAS_OK;
}

static hwnas_status add_matrix(int *out, hwnas_tape *t, int64_t rows, int64_t columns,
                               dnnl_data_type_t type)
{
    const int64_t dims[] = {rows, columns};
    const_dnnl_memory_desc_t layout;
    TRY(hwnas_tape_layout(&layout, t, 2, dims, NULL, type));
    *out = hwnas_tape_add_slot(t, layout);
    return HWNAS_OK;
}

/* Rows times a matrix of weights: y = x W, of m x k and k x n; the weights lie as n x k where
 * `transposed` says so. */
typedef struct rows {
    int64_t m, k, n;
    bool transposed;
} rows;

static hwnas_status rows_forward(hwnas_tape *t, const hwnas_node *node, const rows *r)
{
    hwnas_status status = HWNAS_OK;
    const bool has_bias = node->n_inputs > 2;
    const int64_t per_column[] = {1, r->n};
    dnnl_primitive_attr_t attr = NULL;
    const_dnnl_memory_desc_t layout;
    const hwnas_node *follower;
    int x, w, bias = HWNAS_NO_SLOT, y;
    TRY_OUT(hwnas_gradient_follower(&follower, &attr, t, node));
    TRY_OUT(hwnas_gradient_plain_input(&x, t, node, 0));
    TRY_OUT(matrix_view(&x, t, x, r->m, r->k, false));
    TRY_OUT(hwnas_gradient_plain_input(&w, t, node, 1));
    t->notes[t->node].slots[0] = x;
    t->notes[t->node].slots[1] = w;
    TRY_OUT(matrix_view(&w, t, w, r->transposed ? r->n : r->k, r->transposed ? r->k : r->n,
                        r->transposed));
    if (has_bias) {
        TRY_OUT(hwnas_gradient_weight(&bias, t, node->inputs[2], NULL, NULL));
        TRY_OUT(hwnas_tape_layout(&layout, t, 2, per_column, NULL, dnnl_f32));
        bias = hwnas_tape_add_view(t, bias, layout);
    }
    TRY_OUT(add_matrix(&y, t, r->m, r->n, t->type));
    TRY_OUT(hwnas_gradient_product(t, x, w, bias, y, attr));
    TRY_OUT(hwnas_tape_plain(&layout, t, node->output, t->type));
    hwnas_gradient_set(t, node, follower, hwnas_tape_add_view(t, y, layout));
out:
    dnnl_primitive_attr_destroy(attr);
    return status;
}

/* dW = x' dy, or its transpose dy' x. */
static hwnas_status rows_backward_weights(hwnas_tape *t, const hwnas_node *node, const rows *r,
                                          int dy)
{
    const_dnnl_memory_desc_t layout;
    int dw, left, right = dy, x = t->notes[t->node].slots[0];
    const bool is_weight = t->graph->tensors[node->inputs[1]].kind == HWNAS_TENSOR_WEIGHT;
    TRY(add_matrix(&dw, t, r->transposed ? r->n : r->k, r->transposed ? r->k : r->n,
                   is_weight ? dnnl_f32 : t->type));
    if (r->transposed) {
        TRY(matrix_view(&left, t, dy, r->m, r->n, true));
        right = x;
    } else {
        TRY(matrix_view(&left, t, x, r->m, r->k, true));
    }
    TRY(hwnas_gradient_product(t, left, right, HWNAS_NO_SLOT, dw, NULL));
    TRY(hwnas_tape_plain(&layout, t, node->inputs[1], is_weight ? dnnl_f32 : t->type));
    return hwnas_tape_add_gradient(t, node->inputs[1], hwnas_tape_add_view(t, dw, layout));
}

static hwnas_status rows_backward(hwnas_tape *t, const hwnas_node *node, const rows *r, int dy)
{
    const_dnnl_memory_desc_t layout;
    int w = t->notes[t->node].slots[1], dx, db;
    TRY(hwnas_tape_plain(&layout, t, node->output, t->type));
    TRY(hwnas_tape_convert(&dy, t, dy, layout));
    TRY(matrix_view(&dy, t, dy, r->m, r->n, false));
    if (hwnas_gradient_is_wanted(t, node, 2)) {
        TRY(hwnas_gradient_sum_rows(&db, t, dy, r->m, r->n));
        TRY(hwnas_tape_add_gradient(t, node->inputs[2], db));
    }
    if (hwnas_gradient_is_wanted(t, node, 1))
        TRY(rows_backward_weights(t, node, r, dy));
    if (!hwnas_gradient_is_wanted(t, node, 0))
        return HWNAS_OK;
    TRY(add_matrix(&dx, t, r->m, r->k, t->type));
    TRY(matrix_view(&w, t, w, r->transposed ? r->n : r->k, r->transposed ? r->k : r->n,
                    !r->transposed));
    TRY(hwnas_gradient_product(t, dy, w, HWNAS_NO_SLOT, dx, NULL));
    TRY(hwnas_tape_plain(&layout, t, node->inputs[0], t->type));
    return hwnas_tape_add_gradient(t, node->inputs[0], hwnas_tape_add_view(t, dx, layout));
}

static rows linear_rows(const hwnas_tape *t, const hwnas_node *node)
{
    const hwnas_tensor *weight = hwnas_node_input(t->graph, node, 1);
    const int64_t m = hwnas_node_output(t->graph, node)->dims[0];
    return (rows){m, weight->dims[1], weight->dims[0], true};
}

static hwnas_status linear_forward(hwnas_tape *t, const hwnas_node *node)
{
    const rows r = linear_rows(t, node);
    return rows_forward(t, node, &r);
}

static hwnas_status linear_backward(hwnas_tape *t, const hwnas_node *node, int dy)
{
    const rows r = linear_rows(t, node);
    return rows_backward(t, node, &r, dy);
}

const hwnas_gradient_rule hwnas_gradient_linear = {linear_forward, linear_backward};

/* The second operand is one matrix for all rows of the first. */
static bool is_of_rows(const hwnas_tape *t, const hwnas_node *node)
{
    return hwnas_node_input(t->graph, node, 1)->rank == 2 &&
           hwnas_node_input(t->graph, node, 0)->rank >= 2;
}

static rows matmul_rows(const hwnas_tape *t, const hwnas_node *node)
{
    const int64_t *b = hwnas_node_input(t->graph, node, 1)->dims;
    return (rows){hwnas_tensor_count(hwnas_node_output(t->graph, node)) / b[1], b[0], b[1], false};
}

/* The two last dimensions in the other order, as they lie there. */
static hwnas_status transposed_view(int *out, hwnas_tape *t, int slot)
{
    dnnl_memory_desc_t layout;
    int rank = 0, order[DNNL_MAX_NDIMS];
    dnnl_memory_desc_query(t->slots[slot].layout, dnnl_query_ndims_s32, &rank);
    for (int i = 0; i < rank; i++)
        order[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
    TRY_DNNL("describe", t->name,
             dnnl_memory_desc_permute_axes(&layout, t->slots[slot].layout, order));
    *out = hwnas_tape_add_view(t, slot, hwnas_tape_own(t, layout));
    return HWNAS_OK;
}

static hwnas_status matmul_forward(hwnas_tape *t, const hwnas_node *node)
{
    const hwnas_tensor *a = hwnas_node_input(t->graph, node, 0);
    const hwnas_tensor *b = hwnas_node_input(t->graph, node, 1);
    const_dnnl_memory_desc_t layout;
    int *slots = t->notes[t->node].slots;
    if (is_of_rows(t, node)) {
        const rows r = matmul_rows(t, node);
        return rows_forward(t, node, &r);
    }
    bool is_alike = a->rank == b->rank && a->rank > 1;
    for (int i = 0; is_alike && i < a->rank - 2; i++)
        is_alike = a->dims[i] == b->dims[i];
    if (!is_alike)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                          "'%s': the device 'cpu' has no gradient of a product of %s and %s",
                          node->name, hwnas_tensor_shape(a).s, hwnas_tensor_shape(b).s);
    for (int i = 0; i < 2; i++)
        TRY(hwnas_gradient_input(&slots[i], t, node, i, NULL));
    TRY(hwnas_tape_plain(&layout, t, node->output, t->type));
    const int y = hwnas_tape_add_slot(t, layout);
    TRY(hwnas_gradient_product(t, slots[0], slots[1], HWNAS_NO_SLOT, y, NULL));
    hwnas_gradient_set(t, node, NULL, y);
    return HWNAS_OK;
}

/* da = dy b', db = a' dy. */
static hwnas_status matmul_backward(hwnas_tape *t, const hwnas_node *node, int dy)
{
    const int *slots = t->notes[t->node].slots;
    const_dnnl_memory_desc_t layout;
    if (is_of_rows(t, node)) {
        const rows r = matmul_rows(t, node);
        return rows_backward(t, node, &r, dy);
    }
    for (int i = 0; i < 2; i++) {
        int other;
        if (!hwnas_gradient_is_wanted(t, node, i))
            continue;
        TRY(hwnas_tape_plain(&layout, t, node->inputs[i], t->type));
        const int dx = hwnas_tape_add_slot(t, layout);
        TRY(transposed_view(&other, t, slots[!i]));
        TRY(hwnas_gradient_product(t, i ? other : dy, i ? dy : other, HWNAS_NO_SLOT, dx, NULL));
        TRY(hwnas_tape_add_gradient(t, node->inputs[i], dx));
    }
    return HWNAS_OK;
}

const hwnas_gradient_rule hwnas_gradient_matmul = {matmul_forward, matmul_backward};
