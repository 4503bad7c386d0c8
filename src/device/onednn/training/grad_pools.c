/* grad_pools.c: pools, means, sums of rows. */
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "device/onednn/simd.h"
#include "device/onednn/training/gradients.h"
#include "device/onednn/windows.h"

/* ---- Windows of images ---- */

typedef struct pool {
    dnnl_alg_kind_t alg;
    dnnl_dims_t kernel, stride, dilation, before, after;
} pool;

static pool pool_of(const hwnas_tape *t, const hwnas_node *node)
{
    const hwnas_tensor *in = hwnas_node_input(t->graph, node, 0);
    pool p = {.alg = dnnl_pooling_avg_exclude_padding,
              .kernel = {in->dims[2], in->dims[3]},
              .stride = {1, 1}};
    if (node->op->id == HWNAS_OP_GLOBAL_AVG_POOL)
        return p;
    const hwnas_onednn_window w = hwnas_onednn_window_of(node);
    memcpy(p.stride, w.stride, sizeof p.stride);
    memcpy(p.before, w.before, sizeof p.before);
    memcpy(p.after, w.after, sizeof p.after);
    memcpy(p.kernel, hwnas_node_attr(node, "kernel")->ints, 2 * sizeof *p.kernel);
    if (node->op->id == HWNAS_OP_MAX_POOL)
        p.alg = dnnl_pooling_max;
    else if (hwnas_node_attr(node, "count_pad")->ints[0])
        p.alg = dnnl_pooling_avg_include_padding;
    return p;
}

static hwnas_status pool_forward(hwnas_tape *t, const hwnas_node *node)
{
    hwnas_tape_note *note = &t->notes[t->node];
    const pool p = pool_of(t, node);
    const bool has_workspace = p.alg == dnnl_pooling_max;
    const_dnnl_memory_desc_t in, out, workspace;
    dnnl_primitive_desc_t desc = NULL;
    int x, kept = HWNAS_NO_SLOT;
    TRY(hwnas_tape_image(&in, t, node->inputs[0], t->type));
    TRY(hwnas_tape_image(&out, t, node->output, t->type));
    TRY(hwnas_gradient_input(&x, t, node, 0, in));
    TRY_DNNL("compile the training of", t->name,
             dnnl_pooling_forward_primitive_desc_create(
                 &desc, t->device->engine, dnnl_forward_training, p.alg, in, out, p.stride,
                 p.kernel, p.dilation, p.before, p.after, t->attr));
    note->hint = desc;
    if (has_workspace) {
        TRY(hwnas_tape_wanted(&workspace, t, desc, DNNL_ARG_WORKSPACE));
        kept = note->slots[0] = hwnas_tape_add_slot(t, workspace);
    }
    const int y = hwnas_tape_add_slot(t, out);
    const hwnas_tape_arg args[] = {
        {DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}, {DNNL_ARG_WORKSPACE, kept}};
    TRY(hwnas_tape_add_primitive(t, dnnl_success, desc, has_workspace ? 3 : 2, args));
    hwnas_gradient_set(t, node, NULL, y);
    return HWNAS_OK;
}

static hwnas_status pool_backward(hwnas_tape *t, const hwnas_node *node, int dy)
{
    const hwnas_tape_note *note = &t->notes[t->node];
    const pool p = pool_of(t, node);
    const_dnnl_memory_desc_t in, out;
    dnnl_primitive_desc_t desc = NULL;
    TRY(hwnas_tape_image(&in, t, node->inputs[0], t->type));
    TRY(hwnas_tape_image(&out, t, node->output, t->type));
    TRY(hwnas_tape_convert(&dy, t, dy, out));
    const int dx = hwnas_tape_add_slot(t, in);
    const dnnl_status_t made = dnnl_pooling_backward_primitive_desc_create(
        &desc, t->device->engine, p.alg, in, out, p.stride, p.kernel, p.dilation, p.before, p.after,
        note->hint, t->attr);
    const hwnas_tape_arg args[] = {
        {DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_DIFF_SRC, dx}, {DNNL_ARG_WORKSPACE, note->slots[0]}};
    TRY(hwnas_tape_add_primitive(t, made, desc, p.alg == dnnl_pooling_max ? 3 : 2, args));
    return hwnas_tape_add_gradient(t, node->inputs[0], dx);
}

const hwnas_gradient_rule hwnas_gradient_pool = {pool_forward, pool_backward};

/* ---- Means and sums over axes that lie side by side: outer x n x inner ---- */

typedef struct means {
    int64_t outer, n, inner;
    dnnl_data_type_t type;
    float factor; /* 1 of sums */
} means;

static hwnas_status means_of(means *out, const hwnas_tape *t, const hwnas_node *node)
{
    const hwnas_attr *axes = hwnas_node_attr(node, "axes");
    const hwnas_tensor *in = hwnas_node_input(t->graph, node, 0);
    *out = (means){1, 1, 1, t->type, 1};
    for (int i = 0; i < axes->n; i++)
        if (axes->ints[i] != axes->ints[0] + i || axes->ints[i] < 0)
            return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                              "'%s': the device 'cpu' has no gradient of a '%s' over dimensions "
                              "that do not lie side by side",
                              node->name, node->op->name);
    for (int i = 0; i < in->rank; i++)
        *(axes->n && i < axes->ints[0]               ? &out->outer
          : !axes->n || i <= axes->ints[axes->n - 1] ? &out->n
                                                     : &out->inner) *= in->dims[i];
    if (node->op->id == HWNAS_OP_MEAN)
        out->factor = 1 / (float)out->n;
    return HWNAS_OK;
}

HWNAS_INLINE float load(const void *values, int64_t i, bool is_float)
{
    return is_float ? ((const float *)values)[i]
                    : hwnas_bfloat16_value(((const uint16_t *)values)[i]);
}

HWNAS_INLINE void store(void *values, int64_t i, bool is_float, float x)
{
    if (is_float)
        ((float *)values)[i] = x;
    else
        ((uint16_t *)values)[i] = hwnas_bfloat16_of(x);
}

enum { AT_ONCE = 512 }; /* values of a row that are summed side by side */

HWNAS_CLONES static void mean_rows(void *to, const void *from, const means *m, int64_t o)
{
    const bool is_float = m->type == dnnl_f32;
    float sums[AT_ONCE];
    for (int64_t first = 0; first < m->inner; first += AT_ONCE) {
        const int64_t width = m->inner - first < AT_ONCE ? m->inner - first : AT_ONCE;
        for (int64_t i = 0; i < width; i++)
            sums[i] = 0;
        for (int64_t k = 0; k < m->n; k++)
            for (int64_t i = 0; i < width; i++)
                sums[i] += load(from, (o * m->n + k) * m->inner + first + i, is_float);
        for (int64_t i = 0; i < width; i++)
            store(to, o * m->inner + first + i, is_float, sums[i] * m->factor);
    }
}

HWNAS_CLONES static void spread_rows(void *to, const void *from, const means *m, int64_t o)
{
    const bool is_float = m->type == dnnl_f32;
    const float factor = m->factor;
    for (int64_t k = 0; k < m->n; k++)
        for (int64_t i = 0; i < m->inner; i++)
            store(to, (o * m->n + k) * m->inner + i, is_float,
                  factor * load(from, o * m->inner + i, is_float));
}

static void take_means(const hwnas_tape *t, const void *settings, void *const *values)
{
    const means *m = settings;
    (void)t; /* without OpenMP */
#pragma omp parallel for num_threads(t->device->threads) if (m->outer * m->n * m->inner > 32768)
    for (int64_t o = 0; o < m->outer; o++)
        mean_rows(values[1], values[0], m, o);
}

static void spread_means(const hwnas_tape *t, const void *settings, void *const *values)
{
    const means *m = settings;
    (void)t; /* without OpenMP */
#pragma omp parallel for num_threads(t->device->threads) if (m->outer * m->n * m->inner > 32768)
    for (int64_t o = 0; o < m->outer; o++)
        spread_rows(values[1], values[0], m, o);
}

static hwnas_status mean_forward(hwnas_tape *t, const hwnas_node *node)
{
    const_dnnl_memory_desc_t plain;
    means m;
    int slots[2];
    TRY(means_of(&m, t, node));
    TRY(hwnas_gradient_plain_input(&slots[0], t, node, 0));
    TRY(hwnas_tape_plain(&plain, t, node->output, t->type));
    slots[1] = hwnas_tape_add_slot(t, plain);
    hwnas_tape_add_loop(t, take_means, &m, sizeof m, 2, slots);
    hwnas_gradient_set(t, node, NULL, slots[1]);
    return HWNAS_OK;
}

static hwnas_status mean_backward(hwnas_tape *t, const hwnas_node *node, int dy)
{
    const_dnnl_memory_desc_t plain;
    means m;
    int slots[2];
    TRY(means_of(&m, t, node));
    TRY(hwnas_tape_plain(&plain, t, node->output, t->type));
    TRY(hwnas_tape_convert(&slots[0], t, dy, plain));
    TRY(hwnas_tape_plain(&plain, t, node->inputs[0], t->type));
    slots[1] = hwnas_tape_add_slot(t, plain);
    hwnas_tape_add_loop(t, spread_means, &m, sizeof m, 2, slots);
    return hwnas_tape_add_gradient(t, node->inputs[0], slots[1]);
}

const hwnas_gradient_rule hwnas_gradient_mean = {mean_forward, mean_backward};

/* ---- Sums of rows: the gradient of a bias ---- */

HWNAS_CLONES static void sum_columns(float *to, const void *from, const means *m, int64_t first,
                                     int64_t width)
{
    const bool is_float = m->type == dnnl_f32;
    float sums[AT_ONCE] = {0};
    for (int64_t k = 0; k < m->n; k++)
        for (int64_t i = 0; i < width; i++)
            sums[i] += load(from, k * m->inner + first + i, is_float);
    memcpy(to + first, sums, (size_t)width * sizeof *sums);
}

static void sum_rows(const hwnas_tape *t, const void *settings, void *const *values)
{
    const means *m = settings;
    const int64_t width = m->inner < 64 * t->device->threads ? 64 : AT_ONCE;
#pragma omp parallel for num_threads(t->device->threads) if (m->n * m->inner > 32768)
    for (int64_t first = 0; first < m->inner; first += width)
        sum_columns(values[1], values[0], m, first,
                    m->inner - first < width ? m->inner - first : width);
}

hwnas_status hwnas_gradient_sum_rows(int *out, hwnas_tape *t, int matrix, int64_t rows,
                                     int64_t columns)
{
    const_dnnl_memory_desc_t layout;
    const means m = {1, rows, columns, t->type, 1};
    TRY(hwnas_tape_layout(&layout, t, 1, &columns, NULL, dnnl_f32));
    *out = hwnas_tape_add_slot(t, layout);
    const int slots[] = {matrix, *out};
    hwnas_tape_add_loop(t, sum_rows, &m, sizeof m, 2, slots);
    return HWNAS_OK;
}
