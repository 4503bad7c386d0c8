/* dynamic.c: a product of bytes with a scale and a zero point of the run, as one primitive. */
#include "device/onednn/dynamic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/onednn/primitive.h"
#include "device/onednn/simd.h"
#include "device/onednn/windows.h"
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

/* Constant, and all its values are signed bytes. */
static bool is_of_bytes(const hwnas_tensor *t)
{
    if (t->kind != HWNAS_TENSOR_WEIGHT || !t->data)
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

/* A product with a matrix, or a convolution of images, whose second input is of bytes. */
static bool multiplies_bytes(const hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_op_id op = node->op->id;
    const bool has_form =
        (op == HWNAS_OP_MATMUL && hwnas_node_input(graph, node, 1)->rank == 2) ||
        (op == HWNAS_OP_CONV && node->n_inputs == 2 && hwnas_node_output(graph, node)->rank == 4 &&
         !hwnas_onednn_has_blank_window(graph, node));
    return has_form && is_of_bytes(hwnas_node_input(graph, node, 1));
}

bool hwnas_onednn_take_dynamic(hwnas_fusion *f, void *into, int n)
{
    group *g = into;
    const hwnas_graph *graph = f->graph;
    const hwnas_node *product = &graph->nodes[n];
    const hwnas_onednn_finder *finder = hwnas_onednn_finder_of(f);
    /* Older instructions keep sums of two products of bytes in 16 bits. */
    if (!finder->is_refused || finder->is_refused[n] || finder->is_own[n] ||
        !hwnas_onednn_is_native(HWNAS_S8) || !multiplies_bytes(graph, product))
        return false;
    const hwnas_node *less = maker_of(graph, product->inputs[0], HWNAS_OP_SUB);
    const hwnas_node *bytes = less ? maker_of(graph, less->inputs[0], HWNAS_OP_CAST) : NULL;
    const hwnas_node *zero = less ? maker_of(graph, less->inputs[1], HWNAS_OP_CAST) : NULL;
    const hwnas_node *whole = reader_of(f, product, HWNAS_OP_CAST);
    const hwnas_node *floats = reader_of(f, whole, HWNAS_OP_CAST);
    if (!bytes || !zero || !floats || hwnas_node_output(graph, whole)->dtype != HWNAS_INT32 ||
        hwnas_node_output(graph, floats)->dtype != HWNAS_FLOAT32 ||
        hwnas_node_input(graph, bytes, 0)->dtype != HWNAS_UINT8 ||
        hwnas_tensor_count(hwnas_node_input(graph, zero, 0)) != 1)
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
                 .layout =
                     product->op->id == HWNAS_OP_CONV ? HWNAS_ONEDNN_IMAGE : HWNAS_ONEDNN_PLAIN,
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

/* What stands in the scratch memory while the step runs. */
typedef struct place {
    size_t at, bytes;
} place;

typedef struct dynamic {
    hwnas_onednn_primitive main;
    /* Of an image: from floats, as they lie, to bytes with channels last, and back where results
     * lie otherwise; not made: there is nothing to do. */
    hwnas_onednn_primitive before, after;
    int64_t n_bytes;
    place bytes, zero, results; /* results: where `after` is made */
} dynamic;

typedef struct maker {
    hwnas_onednn_step *step;
    const onednn_device *device;
    const hwnas_graph *graph;
    const group *group;
    const hwnas_node *product;
    bool in_is_image, out_is_image; /* how the step's tensors lie */
    int rank;                       /* of what the primitive reads and writes */
    dnnl_dims_t in_dims, kernel_dims, out_dims;
    int kernel_rank;
    dnnl_memory_desc_t in, weights, bias, out, one, zero, operands[HWNAS_ONEDNN_MAX_POSTS];
    dnnl_primitive_attr_t attr;
    dnnl_primitive_desc_t desc;
} maker;

static void copy_dims(dnnl_dims_t out, const hwnas_tensor *t)
{
    memcpy(out, t->dims, (size_t)t->rank * sizeof *out);
}

static void set_dims(maker *m)
{
    const hwnas_tensor *in = hwnas_node_input(m->graph, m->product, 0);
    const hwnas_tensor *kernel = hwnas_node_input(m->graph, m->product, 1);
    const hwnas_tensor *out = hwnas_node_output(m->graph, m->product);
    copy_dims(m->kernel_dims, kernel);
    m->rank = m->kernel_rank = kernel->rank;
    if (m->product->op->id == HWNAS_OP_MATMUL) {
        m->in_dims[0] = m->out_dims[0] = hwnas_tensor_count(in) / kernel->dims[0];
        m->in_dims[1] = kernel->dims[0];
        m->out_dims[1] = kernel->dims[1];
        return;
    }
    const int64_t groups = hwnas_node_attr(m->product, "groups")->ints[0];
    copy_dims(m->in_dims, in);
    copy_dims(m->out_dims, out);
    if (groups > 1) {
        m->kernel_rank = 5;
        memmove(m->kernel_dims + 1, m->kernel_dims, 4 * sizeof *m->kernel_dims);
        m->kernel_dims[0] = groups;
        m->kernel_dims[1] /= groups;
    }
}

/* Rows, or an image with channels last. */
static dnnl_status_t describe_values(dnnl_memory_desc_t *out, const maker *m,
                                     const dnnl_dims_t dims, dnnl_data_type_t type, bool is_image)
{
    return dnnl_memory_desc_create_with_tag(out, m->rank, dims, type,
                                            m->rank == 2 ? dnnl_ab
                                            : is_image   ? dnnl_acdb
                                                         : dnnl_abcd);
}

/* An operand has the shape of the results, or a value for each channel: each column of rows. */
static dnnl_status_t describe_operand(maker *m, int i, int tensor)
{
    const int64_t n = hwnas_tensor_count(&m->graph->tensors[tensor]);
    dnnl_dims_t dims = {1, m->out_dims[1], 1, 1};
    if (m->rank == 2)
        dims[0] = n / m->out_dims[1];
    else if (n == hwnas_tensor_count(hwnas_node_output(m->graph, m->product)))
        memcpy(dims, m->out_dims, sizeof dims);
    return describe_values(&m->operands[i], m, dims, dnnl_f32, true);
}

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
        status = describe_operand(m, i, p->operand);
        if (status == dnnl_success)
            status = dnnl_post_ops_append_binary(posts, p->alg, m->operands[i]);
    }
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_post_ops(m->attr, posts);
    dnnl_post_ops_destroy(posts);
    return status;
}

static dnnl_status_t describe_product(maker *m)
{
    const dnnl_dims_t per_column = {1, m->out_dims[1]};
    if (m->group->bias >= 0)
        TRY_STATUS(dnnl_memory_desc_create_with_tag(&m->bias, 2, per_column, dnnl_f32, dnnl_ab));
    return dnnl_matmul_primitive_desc_create(&m->desc, m->device->engine, m->in, m->weights,
                                             m->bias, m->out, m->attr);
}

static dnnl_status_t describe_conv(maker *m)
{
    const hwnas_onednn_window w = hwnas_onednn_conv_window(m->graph, m->product);
    const int64_t *dilation = hwnas_node_attr(m->product, "dilation")->ints;
    const dnnl_dims_t less = {dilation[0] - 1, dilation[1] - 1};
    return dnnl_convolution_forward_primitive_desc_create(
        &m->desc, m->device->engine, dnnl_forward_inference, dnnl_convolution_direct, m->in,
        m->weights, NULL, m->out, w.stride, less, w.before, w.after, m->attr);
}

static dnnl_status_t describe(maker *m)
{
    const dnnl_dims_t one = {1};
    TRY_STATUS(add_posts(m));
    TRY_STATUS(dnnl_primitive_attr_set_zero_points_mask(m->attr, DNNL_ARG_SRC, 0));
    if (m->group->scale >= 0)
        TRY_STATUS(dnnl_primitive_attr_set_scales_mask(m->attr, DNNL_ARG_SRC, 0));
    TRY_STATUS(describe_values(&m->in, m, m->in_dims, dnnl_u8, true));
    TRY_STATUS(dnnl_memory_desc_create_with_tag(&m->weights, m->kernel_rank, m->kernel_dims,
                                                dnnl_s8, dnnl_format_tag_any));
    TRY_STATUS(describe_values(&m->out, m, m->out_dims, dnnl_f32, true));
    TRY_STATUS(dnnl_memory_desc_create_with_tag(&m->one, 1, one, dnnl_f32, dnnl_a));
    TRY_STATUS(dnnl_memory_desc_create_with_tag(&m->zero, 1, one, dnnl_s32, dnnl_a));
    return m->product->op->id == HWNAS_OP_CONV ? describe_conv(m) : describe_product(m);
}

static hwnas_status check_fast(const maker *m, dnnl_status_t status)
{
    if (status == dnnl_unimplemented ||
        (status == dnnl_success && hwnas_onednn_is_reference(m->desc)))
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "oneDNN has no fast primitive for '%s'",
                          m->step->name);
    return hwnas_onednn_status(status, "describe", m->step->name);
}

static hwnas_status add_kernel(maker *m, hwnas_onednn_primitive *p)
{
    static const dnnl_format_tag_t tags[] = {[2] = dnnl_ab, [4] = dnnl_abcd, [5] = dnnl_abcde};
    hwnas_status status = HWNAS_OK;
    const hwnas_tensor *kernel = hwnas_node_input(m->graph, m->product, 1);
    const float *values = kernel->data;
    const size_t n = (size_t)hwnas_tensor_count(kernel);
    dnnl_memory_desc_t given = NULL;
    void *memory = NULL;
    TRY_OUT(hwnas_try_alloc(&memory, n, p->name));
    for (size_t i = 0; i < n; i++)
        ((int8_t *)memory)[i] = (int8_t)values[i];
    TRY_DNNL_OUT("describe", p->name,
                 dnnl_memory_desc_create_with_tag(&given, m->kernel_rank, m->kernel_dims, dnnl_s8,
                                                  tags[m->kernel_rank]));
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
    TRY(hwnas_try_alloc(&values, (size_t)m->out_dims[1] * sizeof(float), p->name));
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
    TRY(add_kernel(m, p));
    return m->bias ? add_bias(m, p) : HWNAS_OK;
}

/* The reorders of an image. */
static hwnas_status add_reorder(maker *m, hwnas_onednn_primitive *p, const_dnnl_memory_desc_t from,
                                const_dnnl_memory_desc_t to)
{
    hwnas_status status = HWNAS_OK;
    dnnl_primitive_desc_t desc = NULL;
    dnnl_primitive_attr_t attr = NULL;
    p->name = m->step->name;
    p->device = m->device;
    TRY_OUT(hwnas_onednn_attr(&attr, p->name));
    TRY_DNNL_OUT("describe", p->name,
                 dnnl_reorder_primitive_desc_create(&desc, from, m->device->engine, to,
                                                    m->device->engine, attr));
    TRY_OUT(hwnas_onednn_primitive_init(p, desc));
    TRY_OUT(hwnas_onednn_primitive_add(p, DNNL_ARG_FROM, from));
    TRY_OUT(hwnas_onednn_primitive_add(p, DNNL_ARG_TO, to));
    m->step->bytes += p->bytes;
out:
    dnnl_primitive_attr_destroy(attr);
    dnnl_primitive_desc_destroy(desc);
    return status;
}

static hwnas_status add_reorders(maker *m, dynamic *d)
{
    hwnas_status status = HWNAS_OK;
    dnnl_memory_desc_t in = NULL, out = NULL;
    if (m->rank == 2)
        return HWNAS_OK;
    TRY_DNNL_OUT("describe", m->step->name,
                 describe_values(&in, m, m->in_dims, dnnl_f32, m->in_is_image));
    TRY_DNNL_OUT("describe", m->step->name,
                 describe_values(&out, m, m->out_dims, dnnl_f32, m->out_is_image));
    TRY_OUT(add_reorder(m, &d->before, in, m->in));
    if (!m->out_is_image) {
        TRY_OUT(add_reorder(m, &d->after, m->out, out));
        d->results.bytes = dnnl_memory_desc_get_size(m->out);
    }
out:
    dnnl_memory_desc_destroy(in);
    dnnl_memory_desc_destroy(out);
    return status;
}

/* One after the other, behind what the primitives want. */
static void place_all(dynamic *d, hwnas_onednn_scratch *scratch)
{
    const hwnas_onednn_primitive *const primitives[] = {&d->main, &d->before, &d->after};
    place *const places[] = {&d->bytes, &d->zero, &d->results};
    size_t at = 0;
    for (int i = 0; i < 3; i++)
        at = primitives[i]->scratch_bytes > at ? primitives[i]->scratch_bytes : at;
    for (int i = 0; i < 3; i++) {
        places[i]->at = (at + ALIGN - 1) / ALIGN * ALIGN;
        at = places[i]->at + places[i]->bytes;
    }
    if (at > scratch->bytes)
        scratch->bytes = at;
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
                                          const hwnas_onednn_layout *layouts, hwnas_arena *arena)
{
    hwnas_status status = HWNAS_OK;
    maker m = {.step = step,
               .device = device,
               .graph = graph,
               .group = g,
               .product = &graph->nodes[g->chain.nodes[0]],
               .in_is_image = layouts[g->reads[0]] == HWNAS_ONEDNN_IMAGE,
               .out_is_image = layouts[g->chain.output] == HWNAS_ONEDNN_IMAGE};
    dynamic *d = step->state = hwnas_alloc(sizeof *d);
    d->main.name = step->name;
    d->main.device = device;
    d->n_bytes = hwnas_tensor_count(hwnas_node_input(graph, m.product, 0));
    d->bytes.bytes = (size_t)d->n_bytes;
    d->zero.bytes = sizeof(int32_t);
    set_dims(&m);
    step->n_inputs = 0;
    step->n_outputs = 1;
    step->input_ids =
        hwnas_arena_alloc(arena, (3 + HWNAS_ONEDNN_MAX_POSTS) * sizeof *step->input_ids);
    step->output_ids = hwnas_arena_copy(arena, &g->chain.output, sizeof *step->output_ids);
    TRY_OUT(hwnas_onednn_attr(&m.attr, step->name));
    TRY_OUT(check_fast(&m, describe(&m)));
    TRY_OUT(hwnas_onednn_primitive_init(&d->main, m.desc));
    TRY_OUT(add_args(&m, d));
    TRY_OUT(add_reorders(&m, d));
    place_all(d, device->scratch);
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

static dnnl_status_t reorder(const hwnas_onednn_primitive *p, void *from, void *to)
{
    void *const values[] = {from, to};
    return hwnas_onednn_primitive_run(p, 2, values);
}

static dnnl_status_t run(const hwnas_onednn_step *step, const onednn_device *device)
{
    const dynamic *d = step->state;
    char *scratch = device->scratch->memory;
    void *values[3 + HWNAS_ONEDNN_MAX_POSTS + 1], *bytes = scratch + d->bytes.at;
    void *in = hwnas_onednn_values(step->inputs[0]), *out = hwnas_onednn_values(step->outputs[0]);
    const float *zero = hwnas_onednn_values(step->inputs[1]);
    size_t n = 0;
    if (d->before.made)
        TRY_STATUS(reorder(&d->before, in, bytes));
    else
        to_bytes(bytes, in, d->n_bytes);
    *(int32_t *)(scratch + d->zero.at) = (int32_t)*zero;
    values[n++] = bytes;
    values[n++] = scratch + d->zero.at;
    values[n++] = d->after.made ? scratch + d->results.at : out;
    for (size_t i = 2; i < step->n_inputs; i++)
        values[n++] = hwnas_onednn_values(step->inputs[i]);
    TRY_STATUS(hwnas_onednn_primitive_run(&d->main, n, values));
    return d->after.made ? reorder(&d->after, values[2], out) : dnnl_success;
}

static void free_dynamic(void *state)
{
    dynamic *d = state;
    if (!d)
        return;
    hwnas_onednn_primitive_done(&d->before);
    hwnas_onednn_primitive_done(&d->after);
    hwnas_onednn_primitive_done(&d->main);
    free(d);
}

const hwnas_onednn_kind hwnas_onednn_dynamic = {
    .name = "primitive",
    .run = run,
    .free = free_dynamic,
};
