/* dynamic.c: a product of bytes with a scale and a zero point of the run, as one primitive. */
#include "device/onednn/dynamic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/onednn/primitive.h"
#include "device/onednn/simd.h"
#include "graph/op.h"

typedef hwnas_onednn_group group;

enum { ALIGN = 64 };

/* ---- Which nodes ---- */

/* The node that makes a tensor, if it is of this operator; else NULL. */
static const hwnas_node *maker_of(const hwnas_graph *graph, int tensor, hwnas_op_id op)
{
    const int node = graph->tensors[tensor].producer;
    return node >= 0 && graph->nodes[node].op->id == op ? &graph->nodes[node] : NULL;
}

/* The only node that reads what a node makes, if it is of this operator and in no group. */
static const hwnas_node *reader_of(const hwnas_fusion *f, const hwnas_node *node, hwnas_op_id op)
{
    const int reader = node ? hwnas_lone_reader(&f->uses[node->output]) : -1;
    return reader >= 0 && f->graph->nodes[reader].op->id == op &&
                   f->group_of[reader] == HWNAS_FUSION_NO_GROUP
               ? &f->graph->nodes[reader]
               : NULL;
}

/* A constant matrix whose values all are signed bytes. */
static bool is_matrix_of_bytes(const hwnas_tensor *t)
{
    if (t->kind != HWNAS_TENSOR_WEIGHT || t->rank != 2 || !t->data)
        return false;
    for (int64_t i = 0, n = hwnas_tensor_count(t); i < n; i++)
        if (t->data[i] != rintf(t->data[i]) || fabsf(t->data[i] + 0.5f) > 127.5f)
            return false;
    return true;
}

static void take(hwnas_fusion *f, group *g, const hwnas_node *node)
{
    hwnas_fusion_take(f, g, (int)(node - f->graph->nodes));
}

/* A node before the product, unless others read what it makes. */
static void take_before(hwnas_fusion *f, group *g, const hwnas_node *node)
{
    if (hwnas_lone_reader(&f->uses[node->output]) >= 0)
        take(f, g, node);
}

bool hwnas_onednn_take_dynamic(hwnas_fusion *f, void *into, int n)
{
    group *g = into;
    const hwnas_graph *graph = f->graph;
    const hwnas_node *product = &graph->nodes[n];
    const hwnas_onednn_finder *finder = hwnas_onednn_finder_of(f);
    /* Older instructions keep sums of two products of bytes in 16 bits. */
    if (product->op->id != HWNAS_OP_MATMUL || !finder->is_refused || finder->is_refused[n] ||
        !hwnas_onednn_is_native(HWNAS_S8))
        return false;
    const hwnas_node *less = maker_of(graph, product->inputs[0], HWNAS_OP_SUB);
    const hwnas_node *bytes = less ? maker_of(graph, less->inputs[0], HWNAS_OP_CAST) : NULL;
    const hwnas_node *zero = less ? maker_of(graph, less->inputs[1], HWNAS_OP_CAST) : NULL;
    const hwnas_node *whole = reader_of(f, product, HWNAS_OP_CAST);
    const hwnas_node *floats = reader_of(f, whole, HWNAS_OP_CAST);
    if (!bytes || !zero || !floats || hwnas_node_output(graph, whole)->dtype != HWNAS_INT32 ||
        hwnas_node_output(graph, floats)->dtype != HWNAS_FLOAT32 ||
        hwnas_node_input(graph, bytes, 0)->dtype != HWNAS_UINT8 ||
        hwnas_tensor_count(hwnas_node_input(graph, zero, 0)) != 1 ||
        !is_matrix_of_bytes(hwnas_node_input(graph, product, 1)))
        return false;
    take(f, g, product);
    if (hwnas_lone_reader(&f->uses[less->output]) >= 0) {
        take_before(f, g, bytes);
        take_before(f, g, zero);
        take(f, g, less);
    }
    take(f, g, whole);
    take(f, g, floats);
    *g = (group){.chain = g->chain,
                 .layout = HWNAS_ONEDNN_PLAIN,
                 .reads = {bytes->inputs[0], zero->inputs[0]},
                 .bias = -1,
                 .is_dynamic = true,
                 .scale = -1};
    g->chain.takes = HWNAS_FUSES_VALUES;
    const hwnas_node *scaled = reader_of(f, floats, HWNAS_OP_MUL);
    const int scale = scaled ? scaled->inputs[scaled->inputs[0] == floats->output] : -1;
    if (scale >= 0 && scale != floats->output && hwnas_tensor_count(&graph->tensors[scale]) == 1 &&
        hwnas_same_shape(hwnas_node_output(graph, scaled), hwnas_node_output(graph, floats))) {
        take(f, g, scaled);
        g->scale = scale;
    }
    return true;
}

/* ---- Compiling ---- */

typedef struct dynamic {
    hwnas_onednn_primitive main;
    int64_t n_bytes;
    size_t bytes_at, zero_at; /* in the scratch memory */
    bool is_scaled;
} dynamic;

typedef struct maker {
    hwnas_onednn_step *step;
    const onednn_device *device;
    const hwnas_graph *graph;
    const group *group;
    int64_t rows, n_in, n_out;
    dnnl_memory_desc_t in, weights, bias, out, one, zero, operands[HWNAS_ONEDNN_MAX_POSTS];
    dnnl_primitive_attr_t attr;
    dnnl_primitive_desc_t desc;
} maker;

static dnnl_status_t add_posts(maker *m)
{
    dnnl_post_ops_t posts = NULL;
    dnnl_status_t status = dnnl_post_ops_create(&posts);
    for (int i = 0; i < m->group->n_posts && status == dnnl_success; i++) {
        const hwnas_onednn_post *p = &m->group->posts[i];
        if (p->operand < 0) {
            status = dnnl_post_ops_append_eltwise(posts, p->alg, p->alpha, p->beta);
            continue;
        }
        const int64_t n = hwnas_tensor_count(&m->graph->tensors[p->operand]);
        const dnnl_dims_t dims = {n / m->n_out, m->n_out};
        status = dnnl_memory_desc_create_with_tag(&m->operands[i], 2, dims, dnnl_f32, dnnl_ab);
        if (status == dnnl_success)
            status = dnnl_post_ops_append_binary(posts, p->alg, m->operands[i]);
    }
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_post_ops(m->attr, posts);
    dnnl_post_ops_destroy(posts);
    return status;
}

static dnnl_status_t describe(maker *m)
{
    const dnnl_dims_t in = {m->rows, m->n_in}, w = {m->n_in, m->n_out}, out = {m->rows, m->n_out};
    const dnnl_dims_t per_column = {1, m->n_out}, one = {1};
    TRY_STATUS(add_posts(m));
    TRY_STATUS(dnnl_primitive_attr_set_zero_points_mask(m->attr, DNNL_ARG_SRC, 0));
    if (m->group->scale >= 0)
        TRY_STATUS(dnnl_primitive_attr_set_scales_mask(m->attr, DNNL_ARG_SRC, 0));
    TRY_STATUS(dnnl_memory_desc_create_with_tag(&m->in, 2, in, dnnl_u8, dnnl_ab));
    TRY_STATUS(dnnl_memory_desc_create_with_tag(&m->weights, 2, w, dnnl_s8, dnnl_format_tag_any));
    TRY_STATUS(dnnl_memory_desc_create_with_tag(&m->out, 2, out, dnnl_f32, dnnl_ab));
    TRY_STATUS(dnnl_memory_desc_create_with_tag(&m->one, 1, one, dnnl_f32, dnnl_a));
    TRY_STATUS(dnnl_memory_desc_create_with_tag(&m->zero, 1, one, dnnl_s32, dnnl_a));
    if (m->group->bias >= 0)
        TRY_STATUS(dnnl_memory_desc_create_with_tag(&m->bias, 2, per_column, dnnl_f32, dnnl_ab));
    return dnnl_matmul_primitive_desc_create(&m->desc, m->device->engine, m->in, m->weights,
                                             m->bias, m->out, m->attr);
}

static hwnas_status check_fast(const maker *m, dnnl_status_t status)
{
    if (status == dnnl_unimplemented ||
        (status == dnnl_success && hwnas_onednn_is_reference(m->desc)))
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "oneDNN has no fast primitive for '%s'",
                          m->step->name);
    return hwnas_onednn_status(status, "describe", m->step->name);
}

static hwnas_status add_matrix(maker *m, hwnas_onednn_primitive *p)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_node *product = &m->graph->nodes[m->group->chain.nodes[0]];
    const float *values = hwnas_node_input(m->graph, product, 1)->data;
    const dnnl_dims_t dims = {m->n_in, m->n_out};
    const size_t n = (size_t)(m->n_in * m->n_out);
    dnnl_memory_desc_t given = NULL;
    void *memory = NULL;
    TRY_OUT(hwnas_try_alloc(&memory, n, p->name));
    for (size_t i = 0; i < n; i++)
        ((int8_t *)memory)[i] = (int8_t)values[i];
    TRY_DNNL_OUT("describe", p->name,
                 dnnl_memory_desc_create_with_tag(&given, 2, dims, dnnl_s8, dnnl_ab));
    TRY_OUT(hwnas_onednn_primitive_add_weights(
        p, DNNL_ARG_WEIGHTS, dnnl_primitive_desc_query_md(m->desc, dnnl_query_weights_md, 0),
        memory, given));
out:
    dnnl_memory_desc_destroy(given);
    free(memory);
    return status;
}

static hwnas_status add_bias(maker *m, hwnas_onednn_primitive *p)
{
    void *values = NULL;
    TRY(hwnas_try_alloc(&values, (size_t)m->n_out * sizeof(float), p->name));
    hwnas_tensor_fill(&m->graph->tensors[m->group->bias], values);
    const hwnas_status status =
        hwnas_onednn_primitive_add_weights(p, DNNL_ARG_BIAS, m->bias, values, m->bias);
    free(values);
    return status;
}

static void add_input(maker *m, int tensor)
{
    m->step->input_ids[m->step->n_inputs++] = tensor;
}

/* In the order of run(): what each run gives, then what is constant. */
static hwnas_status add_args(maker *m, dynamic *d)
{
    const group *g = m->group;
    hwnas_onednn_primitive *p = &d->main;
    TRY(hwnas_onednn_primitive_add(p, DNNL_ARG_SRC, m->in));
    TRY(hwnas_onednn_primitive_add(p, DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_SRC, m->zero));
    TRY(hwnas_onednn_primitive_add(p, DNNL_ARG_DST, m->out));
    add_input(m, g->reads[0]);
    add_input(m, g->reads[1]);
    if (g->scale >= 0) {
        TRY(hwnas_onednn_primitive_add(p, DNNL_ARG_ATTR_SCALES | DNNL_ARG_SRC, m->one));
        add_input(m, g->scale);
    }
    for (int i = 0; i < g->n_posts; i++)
        if (g->posts[i].operand >= 0) {
            TRY(hwnas_onednn_primitive_add(p, DNNL_ARG_ATTR_MULTIPLE_POST_OP(i) | DNNL_ARG_SRC_1,
                                           m->operands[i]));
            add_input(m, g->posts[i].operand);
        }
    TRY(add_matrix(m, p));
    return m->bias ? add_bias(m, p) : HWNAS_OK;
}

static void place(dynamic *d, hwnas_onednn_scratch *scratch)
{
    d->bytes_at = (d->main.scratch_bytes + ALIGN - 1) / ALIGN * ALIGN;
    d->zero_at = (d->bytes_at + (size_t)d->n_bytes + ALIGN - 1) / ALIGN * ALIGN;
    if (d->zero_at + sizeof(int32_t) > scratch->bytes)
        scratch->bytes = d->zero_at + sizeof(int32_t);
}

static void maker_done(maker *m)
{
    dnnl_memory_desc_t of_tensors[] = {m->in, m->weights, m->bias, m->out, m->one, m->zero};
    for (size_t i = 0; i < sizeof of_tensors / sizeof *of_tensors; i++)
        dnnl_memory_desc_destroy(of_tensors[i]);
    for (int i = 0; i < HWNAS_ONEDNN_MAX_POSTS; i++)
        dnnl_memory_desc_destroy(m->operands[i]);
    dnnl_primitive_desc_destroy(m->desc);
    dnnl_primitive_attr_destroy(m->attr);
}

hwnas_status hwnas_onednn_dynamic_compile(hwnas_onednn_step *step, const onednn_device *device,
                                          const hwnas_graph *graph, const group *g,
                                          hwnas_arena *arena)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_node *product = &graph->nodes[g->chain.nodes[0]];
    const hwnas_tensor *matrix = hwnas_node_input(graph, product, 1);
    maker m = {.step = step, .device = device, .graph = graph, .group = g};
    dynamic *d = step->state = hwnas_alloc(sizeof *d);
    d->main.name = step->name;
    d->main.device = device;
    d->n_bytes = hwnas_tensor_count(hwnas_node_input(graph, product, 0));
    d->is_scaled = g->scale >= 0;
    m.n_in = matrix->dims[0];
    m.n_out = matrix->dims[1];
    m.rows = d->n_bytes / m.n_in;
    step->n_inputs = 0;
    step->n_outputs = 1;
    step->input_ids =
        hwnas_arena_alloc(arena, (3 + HWNAS_ONEDNN_MAX_POSTS) * sizeof *step->input_ids);
    step->output_ids = hwnas_arena_copy(arena, &g->chain.output, sizeof *step->output_ids);
    TRY_OUT(hwnas_onednn_attr(&m.attr, step->name));
    TRY_OUT(check_fast(&m, describe(&m)));
    TRY_OUT(hwnas_onednn_primitive_init(&d->main, m.desc));
    TRY_OUT(add_args(&m, d));
    place(d, device->scratch);
    step->bytes += d->main.bytes;
out:
    maker_done(&m);
    return status;
}

/* ---- Running ---- */

HWNAS_CLONES static void to_bytes(uint8_t *restrict out, const float *restrict in, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = (uint8_t)(int32_t)in[i];
}

static dnnl_status_t run(const hwnas_onednn_step *step, const onednn_device *device)
{
    const dynamic *d = step->state;
    char *scratch = device->scratch->memory;
    void *values[3 + HWNAS_ONEDNN_MAX_POSTS + 1];
    const float *zero = hwnas_onednn_values(step->inputs[1]);
    size_t n = 0;
    to_bytes((uint8_t *)scratch + d->bytes_at, hwnas_onednn_values(step->inputs[0]), d->n_bytes);
    *(int32_t *)(scratch + d->zero_at) = (int32_t)*zero;
    values[n++] = scratch + d->bytes_at;
    values[n++] = scratch + d->zero_at;
    values[n++] = hwnas_onednn_values(step->outputs[0]);
    for (size_t i = 2; i < step->n_inputs; i++)
        values[n++] = hwnas_onednn_values(step->inputs[i]);
    return hwnas_onednn_primitive_run(&d->main, n, values);
}

static void free_dynamic(void *state)
{
    if (state)
        hwnas_onednn_primitive_done(&((dynamic *)state)->main);
    free(state);
}

const hwnas_onednn_kind hwnas_onednn_dynamic = {
    .name = "primitive",
    .run = run,
    .free = free_dynamic,
};
