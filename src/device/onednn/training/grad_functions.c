/* grad_functions.c: functions of one value, sums and products of two, dropout. */
#include "base/half.h"
#include "device/onednn/function_loops.h"
#include "device/onednn/group.h"
#include "device/onednn/primitive.h"
#include "device/onednn/simd.h"
#include "device/onednn/training/gradients.h"

/* ---- Functions ---- */

/* How the gradient of a function follows from its result, which saves its input. */
static const struct result_row {
    dnnl_alg_kind_t forward, backward;
} result_rows[] = {
    {dnnl_eltwise_relu, dnnl_eltwise_relu_use_dst_for_bwd},
    {dnnl_eltwise_clip_v2, dnnl_eltwise_clip_v2_use_dst_for_bwd},
    {dnnl_eltwise_elu, dnnl_eltwise_elu_use_dst_for_bwd},
    {dnnl_eltwise_exp, dnnl_eltwise_exp_use_dst_for_bwd},
    {dnnl_eltwise_logistic, dnnl_eltwise_logistic_use_dst_for_bwd},
    {dnnl_eltwise_sqrt, dnnl_eltwise_sqrt_use_dst_for_bwd},
    {dnnl_eltwise_tanh, dnnl_eltwise_tanh_use_dst_for_bwd},
};

typedef struct function {
    dnnl_alg_kind_t forward, backward;
    bool by_result;
    float alpha, beta;
} function;

/* Those that inference has loops of its own for. */
static bool find_other(hwnas_onednn_post *out, const hwnas_graph *graph, const hwnas_node *node)
{
    *out = (hwnas_onednn_post){.alg = dnnl_eltwise_pow, .alpha = 1, .beta = -1, .operand = -1};
    switch (node->op->id) {
    case HWNAS_OP_LOG:
        out->alg = dnnl_eltwise_log;
        return true;
    case HWNAS_OP_NEG:
        *out = (hwnas_onednn_post){.alg = dnnl_eltwise_linear, .alpha = -1, .operand = -1};
        return true;
    case HWNAS_OP_POW:
        if (!hwnas_onednn_has_one_exponent(graph, node))
            return false;
        hwnas_tensor_fill(hwnas_node_input(graph, node, 1), &out->beta);
        return !hwnas_node_input(graph, node, 1)->is_parameter;
    case HWNAS_OP_SOFTPLUS:
        out->alg = dnnl_eltwise_soft_relu;
        return true;
    default:
        return node->op->id == HWNAS_OP_RECIPROCAL;
    }
}

/* Only where the slope is not below 0 does the result tell on which side its input was. */
static hwnas_status find_function(function *out, const hwnas_graph *graph, const hwnas_node *node)
{
    hwnas_onednn_post post;
    if (!hwnas_onednn_function(&post, node) && !find_other(&post, graph, node))
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                          "'%s': the device 'cpu' has no gradient of this '%s'", node->name,
                          node->op->name);
    if (post.alg == dnnl_eltwise_clip)
        post.alg = dnnl_eltwise_clip_v2;
    *out = (function){post.alg, post.alg, false, post.alpha, post.beta};
    for (size_t i = 0; i < sizeof result_rows / sizeof *result_rows; i++)
        if (result_rows[i].forward == post.alg &&
            (post.alpha >= 0 || post.alg == dnnl_eltwise_clip_v2)) {
            out->backward = result_rows[i].backward;
            out->by_result = true;
        }
    return HWNAS_OK;
}

const hwnas_node *hwnas_gradient_only_reader(const hwnas_tape *t, int tensor)
{
    const hwnas_graph *g = t->graph;
    for (size_t n = 0; n < g->n_nodes && t->n_readers[tensor] == 1; n++)
        for (int i = 0; i < g->nodes[n].n_inputs; i++)
            if (g->nodes[n].inputs[i] == tensor)
                return &g->nodes[n];
    return NULL;
}

hwnas_status hwnas_gradient_follower(const hwnas_node **out, dnnl_primitive_attr_t *attr,
                                     hwnas_tape *t, const hwnas_node *node)
{
    const hwnas_node *next = hwnas_gradient_only_reader(t, node->output);
    hwnas_onednn_post post;
    function f;
    dnnl_post_ops_t posts;
    *out = NULL;
    TRY(hwnas_onednn_attr(attr, t->name));
    if (!next || next->n_inputs != 1 || !hwnas_onednn_function(&post, next))
        return HWNAS_OK;
    TRY(find_function(&f, t->graph, next));
    if (!f.by_result)
        return HWNAS_OK;
    TRY_DNNL("describe", t->name, dnnl_post_ops_create(&posts));
    dnnl_status_t made = dnnl_post_ops_append_eltwise(posts, f.forward, f.alpha, f.beta);
    if (made == dnnl_success)
        made = dnnl_primitive_attr_set_post_ops(*attr, posts);
    dnnl_post_ops_destroy(posts);
    TRY_DNNL("describe", t->name, made);
    *out = next;
    return HWNAS_OK;
}

static hwnas_status function_forward(hwnas_tape *t, const hwnas_node *node)
{
    function f;
    int x;
    dnnl_primitive_desc_t desc = NULL;
    hwnas_tape_note *note = &t->notes[t->node];
    TRY(find_function(&f, t->graph, node));
    TRY(hwnas_gradient_dense_input(&x, t, node, 0));
    const const_dnnl_memory_desc_t layout = t->slots[x].layout;
    const int y = hwnas_tape_add_slot(t, layout);
    const dnnl_status_t made = dnnl_eltwise_forward_primitive_desc_create(
        &desc, t->device->engine, dnnl_forward_training, f.forward, layout, layout, f.alpha, f.beta,
        t->attr);
    const hwnas_tape_arg args[] = {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}};
    TRY(hwnas_tape_add_primitive(t, made, desc, 2, args));
    note->slots[0] = x;
    hwnas_gradient_set(t, node, NULL, y);
    return HWNAS_OK;
}

static hwnas_status function_backward(hwnas_tape *t, const hwnas_node *node, int dy)
{
    function f;
    dnnl_primitive_desc_t hint = NULL, desc = NULL;
    const hwnas_tape_note *note = &t->notes[t->node];
    TRY(find_function(&f, t->graph, node));
    if (note->number) /* what made the value takes care of it */
        return hwnas_tape_add_gradient(t, node->inputs[0], dy);
    const int data = f.by_result ? t->value[node->output] : note->slots[0];
    const const_dnnl_memory_desc_t layout = t->slots[data].layout;
    TRY(hwnas_tape_convert(&dy, t, dy, layout));
    const int dx = hwnas_tape_add_slot(t, layout);
    TRY_DNNL("describe", t->name,
             dnnl_eltwise_forward_primitive_desc_create(&hint, t->device->engine,
                                                        dnnl_forward_training, f.backward, layout,
                                                        layout, f.alpha, f.beta, NULL));
    const dnnl_status_t made =
        dnnl_eltwise_backward_primitive_desc_create(&desc, t->device->engine, f.backward, layout,
                                                    layout, layout, f.alpha, f.beta, hint, t->attr);
    dnnl_primitive_desc_destroy(hint);
    const hwnas_tape_arg args[] = {{f.by_result ? DNNL_ARG_DST : DNNL_ARG_SRC, data},
                                   {DNNL_ARG_DIFF_DST, dy},
                                   {DNNL_ARG_DIFF_SRC, dx}};
    TRY(hwnas_tape_add_primitive(t, made, desc, 3, args));
    return hwnas_tape_add_gradient(t, node->inputs[0], dx);
}

const hwnas_gradient_rule hwnas_gradient_function = {function_forward, function_backward};

/* ---- Sums, differences, products, quotients ---- */

static bool is_as_large(const hwnas_tape *t, const hwnas_node *node, int i)
{
    return hwnas_same_shape(hwnas_node_input(t->graph, node, i), hwnas_node_output(t->graph, node));
}

/* An operand with as many dimensions as the output, of which some may be 1; `like`, the layout of
 * one that is as large as the output, is what it lies like where it is. */
static hwnas_status take_operand(int *out, hwnas_tape *t, const hwnas_node *node, int i,
                                 const_dnnl_memory_desc_t like)
{
    const hwnas_tensor *in = hwnas_node_input(t->graph, node, i);
    const int rank = hwnas_node_output(t->graph, node)->rank;
    const_dnnl_memory_desc_t layout;
    int64_t dims[HWNAS_MAX_RANK];
    if (is_as_large(t, node, i))
        return hwnas_gradient_input(out, t, node, i, like);
    TRY(hwnas_gradient_plain_input(out, t, node, i));
    for (int k = 0; k < rank; k++)
        dims[k] = k < rank - in->rank ? 1 : in->dims[k - (rank - in->rank)];
    TRY(hwnas_tape_layout(&layout, t, rank, dims, NULL, t->type));
    *out = hwnas_tape_add_view(t, *out, layout);
    return HWNAS_OK;
}

/* All values of a slot in a row, in the order in which they lie; the slot itself where there are
 * gaps between them, or they are not `n`. */
static hwnas_status in_a_row(int *out, hwnas_tape *t, int slot, int64_t n)
{
    const const_dnnl_memory_desc_t given = t->slots[slot].layout;
    const int64_t dims[] = {1, n};
    const_dnnl_memory_desc_t layout;
    dnnl_data_type_t type = t->type;
    dnnl_memory_desc_query(given, dnnl_query_data_type, &type);
    TRY(hwnas_tape_layout(&layout, t, 2, dims, NULL, type));
    *out = dnnl_memory_desc_get_size(layout) == dnnl_memory_desc_get_size(given)
               ? hwnas_tape_add_view(t, slot, layout)
               : slot;
    return HWNAS_OK;
}

static int64_t count_of(const hwnas_tape *t, int slot)
{
    dnnl_dims_t *dims = NULL;
    int rank = 0;
    int64_t n = 1;
    dnnl_memory_desc_query(t->slots[slot].layout, dnnl_query_ndims_s32, &rank);
    dnnl_memory_desc_query(t->slots[slot].layout, dnnl_query_dims, &dims);
    for (int i = 0; i < rank; i++)
        n *= (*dims)[i];
    return n;
}

/* A single value meets all others in whatever order these lie; oneDNN has fast code for it only
 * where that is row-major. */
static hwnas_status combine(hwnas_tape *t, dnnl_alg_kind_t alg, int a, int b, int out,
                            const_dnnl_primitive_attr_t attr)
{
    dnnl_primitive_desc_t desc = NULL;
    const int64_t n = count_of(t, a);
    if (count_of(t, b) == 1 && n > 1 &&
        dnnl_memory_desc_equal(t->slots[a].layout, t->slots[out].layout)) {
        int row;
        TRY(in_a_row(&row, t, a, n));
        if (row != a) {
            a = row;
            TRY(in_a_row(&out, t, out, n));
            TRY(in_a_row(&b, t, b, 1));
        }
    }
    const dnnl_status_t made = dnnl_binary_primitive_desc_create(
        &desc, t->device->engine, alg, t->slots[a].layout, t->slots[b].layout, t->slots[out].layout,
        attr ? attr : t->attr);
    const hwnas_tape_arg args[] = {{DNNL_ARG_SRC_0, a}, {DNNL_ARG_SRC_1, b}, {DNNL_ARG_DST, out}};
    return hwnas_tape_add_primitive(t, made, desc, 3, args);
}

/* One operand is as large as the output, and may be the first. */
static bool has_first(const hwnas_tape *t, const hwnas_node *node)
{
    return is_as_large(t, node, 0) || (is_as_large(t, node, 1) && node->op->commutes);
}

static hwnas_status binary_forward(hwnas_tape *t, const hwnas_node *node)
{
    hwnas_status status = HWNAS_OK;
    dnnl_primitive_attr_t attr = NULL;
    const hwnas_node *follower = NULL;
    dnnl_alg_kind_t alg;
    int large = is_as_large(t, node, 0) ? 0 : 1, slots[2];
    if (!hwnas_onednn_binary(&alg, node) || !has_first(t, node))
        return hwnas_gradient_pair.forward(t, node);
    TRY(hwnas_gradient_dense_input(&slots[large], t, node, large));
    TRY(take_operand(&slots[!large], t, node, !large, t->slots[slots[large]].layout));
    const int y = hwnas_tape_add_slot(t, t->slots[slots[large]].layout);
    if (alg == dnnl_binary_div) /* backward wants the quotient itself */
        TRY(hwnas_onednn_attr(&attr, t->name));
    else
        TRY_OUT(hwnas_gradient_follower(&follower, &attr, t, node));
    TRY_OUT(combine(t, alg, slots[large], slots[!large], y, attr));
    t->notes[t->node].slots[large] = slots[large];
    t->notes[t->node].slots[!large] = slots[!large];
    hwnas_gradient_set(t, node, follower, y);
out:
    dnnl_primitive_attr_destroy(attr);
    return status;
}

/* The operand is repeated along the first dimensions and whole along those behind them, as a bias
 * is: its gradient is a sum of rows, of which oneDNN has a reference alone. */
static bool is_of_last(const hwnas_tape *t, const hwnas_node *node, int i)
{
    const hwnas_tensor *in = hwnas_node_input(t->graph, node, i);
    const hwnas_tensor *out = hwnas_node_output(t->graph, node);
    int k = 1;
    while (k <= in->rank && in->dims[in->rank - k] == out->dims[out->rank - k])
        k++;
    for (; k <= in->rank; k++)
        if (in->dims[in->rank - k] != 1)
            return false;
    return true;
}

/* Adds a gradient as large as the output to that of an operand, which may have been repeated. */
static hwnas_status give(hwnas_tape *t, const hwnas_node *node, int i, int from)
{
    const_dnnl_memory_desc_t plain;
    dnnl_primitive_desc_t desc = NULL;
    if (is_as_large(t, node, i))
        return hwnas_tape_add_gradient(t, node->inputs[i], from);
    const hwnas_tensor *output = hwnas_node_output(t->graph, node);
    const int64_t n = hwnas_tensor_count(hwnas_node_input(t->graph, node, i));
    TRY(hwnas_tape_plain(&plain, t, node->output, t->type));
    if (is_of_last(t, node, i) && dnnl_memory_desc_equal(t->slots[from].layout, plain)) {
        int sums;
        TRY(hwnas_gradient_sum_rows(&sums, t, from, hwnas_tensor_count(output) / n, n));
        TRY(hwnas_tape_plain(&plain, t, node->inputs[i], dnnl_f32));
        return hwnas_tape_add_gradient(t, node->inputs[i], hwnas_tape_add_view(t, sums, plain));
    }
    const int operand = t->notes[t->node].slots[i];
    const int sum = hwnas_tape_add_slot(t, t->slots[operand].layout);
    const dnnl_status_t made = dnnl_reduction_primitive_desc_create(
        &desc, t->device->engine, dnnl_reduction_sum, t->slots[from].layout, t->slots[sum].layout,
        0, 0, t->attr);
    const hwnas_tape_arg args[] = {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, sum}};
    TRY(hwnas_tape_add_primitive(t, made, desc, 2, args));
    TRY(hwnas_tape_plain(&plain, t, node->inputs[i], t->type));
    return hwnas_tape_add_gradient(t, node->inputs[i], hwnas_tape_add_view(t, sum, plain));
}

/* dy times or by an operand. */
static hwnas_status scaled(int *out, hwnas_tape *t, dnnl_alg_kind_t alg, int dy, int operand)
{
    *out = hwnas_tape_add_slot(t, t->slots[dy].layout);
    return combine(t, alg, dy, operand, *out, NULL);
}

static hwnas_status negative(int *out, hwnas_tape *t, int dy)
{
    const const_dnnl_memory_desc_t layout = t->slots[dy].layout;
    dnnl_primitive_desc_t desc = NULL;
    const dnnl_status_t made = dnnl_eltwise_forward_primitive_desc_create(
        &desc, t->device->engine, dnnl_forward_training, dnnl_eltwise_linear, layout, layout, -1, 0,
        t->attr);
    *out = hwnas_tape_add_slot(t, layout);
    const hwnas_tape_arg args[] = {{DNNL_ARG_SRC, dy}, {DNNL_ARG_DST, *out}};
    return hwnas_tape_add_primitive(t, made, desc, 2, args);
}

/* What the gradient of operand `i` is, as large as the output. */
static hwnas_status differentiate(int *out, hwnas_tape *t, const hwnas_node *node, int i, int dy)
{
    const int *operands = t->notes[t->node].slots;
    switch (node->op->id) {
    case HWNAS_OP_MUL:
        return scaled(out, t, dnnl_binary_mul, dy, operands[!i]);
    case HWNAS_OP_SUB:
        *out = dy;
        return i ? negative(out, t, dy) : HWNAS_OK;
    case HWNAS_OP_DIV: /* (a / b)' = a' / b - b' (a / b) / b */
        TRY(scaled(out, t, dnnl_binary_div, dy, operands[1]));
        if (!i)
            return HWNAS_OK;
        TRY(scaled(out, t, dnnl_binary_mul, *out, t->value[node->output]));
        return negative(out, t, *out);
    default:
        *out = dy;
        return HWNAS_OK;
    }
}

static hwnas_status binary_backward(hwnas_tape *t, const hwnas_node *node, int dy)
{
    if (!has_first(t, node))
        return hwnas_gradient_pair.backward(t, node, dy);
    TRY(hwnas_tape_convert(&dy, t, dy, t->slots[t->value[node->output]].layout));
    for (int i = 0; i < 2; i++) {
        int from;
        if (!hwnas_gradient_is_wanted(t, node, i))
            continue;
        TRY(differentiate(&from, t, node, i, dy));
        TRY(give(t, node, i, from));
    }
    return HWNAS_OK;
}

const hwnas_gradient_rule hwnas_gradient_binary = {binary_forward, binary_backward};

/* ---- Dropout ---- */

typedef struct dropout {
    int64_t n;
    uint32_t seed, below; /* a value is kept whose random number is below */
    float factor;         /* of those that are kept */
    dnnl_data_type_t type;
} dropout;

/* A random number of the position: the finalizer of MurmurHash3, which vectors have instructions
 * for. Backward draws the same ones again, so no mask is kept. */
HWNAS_INLINE float keep(const dropout *d, uint32_t seed, int64_t i)
{
    uint32_t h = (uint32_t)i * 0x9e3779b9u ^ seed;
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    return (h ^ h >> 16) < d->below ? d->factor : 0;
}

HWNAS_CLONES static void drop_floats(float *restrict out, const float *restrict in,
                                     const dropout *d, uint32_t seed, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        out[i] = in[i] * keep(d, seed, i);
}

HWNAS_CLONES static void drop_low(uint16_t *restrict out, const uint16_t *restrict in,
                                  const dropout *d, uint32_t seed, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        out[i] = hwnas_bfloat16_of(hwnas_bfloat16_value(in[i]) * keep(d, seed, i));
}

static void drop(const hwnas_tape *t, const void *settings, void *const *values)
{
    const dropout *d = settings;
    const uint32_t seed = d->seed + t->n_runs * 0x27d4eb2fu;
    const int64_t piece = 1 << 14;
#pragma omp parallel for num_threads(t->device->threads) if (d->n > 2 * piece)
    for (int64_t begin = 0; begin < d->n; begin += piece) {
        const int64_t end = begin + piece < d->n ? begin + piece : d->n;
        if (d->type == dnnl_f32)
            drop_floats(values[1], values[0], d, seed, begin, end);
        else
            drop_low(values[1], values[0], d, seed, begin, end);
    }
}

static int add_drop(hwnas_tape *t, const hwnas_node *node, int from)
{
    const double rate = hwnas_node_attr(node, "rate")->number;
    const int slots[] = {from, hwnas_tape_add_slot(t, t->slots[from].layout)};
    const dropout d = {.n = hwnas_tensor_count(hwnas_node_output(t->graph, node)),
                       .seed = (uint32_t)t->node * 0x85ebca6bu,
                       .below = (uint32_t)((1 - rate) * UINT32_MAX),
                       .factor = rate < 1 ? (float)(1 / (1 - rate)) : 0,
                       .type = t->type};
    hwnas_tape_add_loop(t, drop, &d, sizeof d, 2, slots);
    return slots[1];
}

static hwnas_status dropout_forward(hwnas_tape *t, const hwnas_node *node)
{
    int x;
    TRY(hwnas_gradient_dense_input(&x, t, node, 0));
    const bool drops = hwnas_node_attr(node, "rate")->number > 0;
    hwnas_gradient_set(t, node, NULL, drops ? add_drop(t, node, x) : x);
    return HWNAS_OK;
}

static hwnas_status dropout_backward(hwnas_tape *t, const hwnas_node *node, int dy)
{
    const bool drops = hwnas_node_attr(node, "rate")->number > 0;
    TRY(hwnas_tape_convert(&dy, t, dy, t->slots[t->value[node->output]].layout));
    return hwnas_tape_add_gradient(t, node->inputs[0], drops ? add_drop(t, node, dy) : dy);
}

const hwnas_gradient_rule hwnas_gradient_dropout = {dropout_forward, dropout_backward};
