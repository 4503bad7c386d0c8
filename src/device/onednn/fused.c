/* fused.c: one primitive with post-operations, and reorders where a tensor lies otherwise than the
 * primitive wants it. */
#include "device/onednn/fused.h"

#include <stdlib.h>
#include <string.h>

#include "device/onednn/posts.h"
#include "device/onednn/primitive.h"
#include "graph/op.h"

enum { MAX_INPUTS = 4 + HWNAS_ONEDNN_MAX_POSTS };

/* A reorder at the border, into or out of a buffer of ours. */
typedef struct border {
    hwnas_onednn_primitive primitive;
    void *buffer;
} border;

typedef struct fused {
    hwnas_onednn_primitive main;
    border before[MAX_INPUTS], after; /* not made: the tensor lies as it should */
    int sum;                          /* the input that results are added to, or -1 */
    size_t out_bytes;
    int n_tail; /* post-operations behind the primitive, by loops of ours: none or one */
    hwnas_onednn_post tail;
} fused;

/* What is known while a group is compiled. */
typedef struct maker {
    hwnas_onednn_step *step;
    fused *made;
    const onednn_device *device;
    const hwnas_graph *graph;
    const hwnas_onednn_group *group;
    const hwnas_onednn_layout *layouts;
    const hwnas_node *root;
    int n_posts;  /* of the primitive */
    int n_inputs; /* that the root reads in each run */
    int args[2];
    dnnl_memory_desc_t in[2], weights, bias, out; /* weights: as the library likes */
    dnnl_memory_desc_t operands[HWNAS_ONEDNN_MAX_POSTS];
    dnnl_primitive_attr_t attr;
    dnnl_primitive_desc_t desc;
} maker;

/* ---- How tensors lie ---- */

/* The dimensions with ones before them, up to `rank`. */
static void dims_of(dnnl_dims_t out, const hwnas_tensor *t, int rank)
{
    for (int i = 0; i < rank; i++)
        out[i] = i < rank - t->rank ? 1 : t->dims[i - (rank - t->rank)];
}

static dnnl_status_t describe(dnnl_memory_desc_t *out, int rank, const dnnl_dims_t dims,
                              hwnas_onednn_layout layout)
{
    static const dnnl_format_tag_t tags[] = {dnnl_a,    dnnl_a,     dnnl_ab,    dnnl_abc,
                                             dnnl_abcd, dnnl_abcde, dnnl_abcdef};
    if (rank > 6)
        return dnnl_unimplemented;
    return dnnl_memory_desc_create_with_tag(out, rank, dims, dnnl_f32,
                                            layout == HWNAS_ONEDNN_IMAGE ? dnnl_acdb : tags[rank]);
}

static dnnl_status_t describe_tensor(dnnl_memory_desc_t *out, const hwnas_tensor *t, int rank,
                                     hwnas_onednn_layout layout)
{
    dnnl_dims_t dims;
    rank = rank > 0 ? rank : 1;
    dims_of(dims, t, rank);
    return describe(out, rank, dims, layout);
}

/* Rows of the last dimension. */
static dnnl_status_t describe_rows(dnnl_memory_desc_t *out, const hwnas_tensor *t)
{
    const int64_t columns = t->rank ? t->dims[t->rank - 1] : 1;
    const dnnl_dims_t dims = {hwnas_tensor_count(t) / columns, columns};
    return describe(out, 2, dims, HWNAS_ONEDNN_PLAIN);
}

static const hwnas_tensor *input(const maker *m, int i)
{
    return hwnas_node_input(m->graph, m->root, i);
}

static const hwnas_tensor *output(const maker *m)
{
    return hwnas_node_output(m->graph, m->root);
}

static const hwnas_attr *attr_of(const maker *m, const char *name)
{
    return hwnas_node_attr(m->root, name);
}

/* ---- Roots ---- */

#define TRY_STATUS(call)                                                                           \
    do {                                                                                           \
        const dnnl_status_t status_ = (call);                                                      \
        if (status_ != dnnl_success)                                                               \
            return status_;                                                                        \
    } while (0)

/* How a kernel goes over an image. */
typedef struct window {
    dnnl_dims_t stride, before, after;
} window;

static window window_of(const maker *m)
{
    const int64_t *pad = attr_of(m, "pad")->ints; /* top, left, bottom, right */
    const int64_t *stride = attr_of(m, "stride")->ints;
    return (window){{stride[0], stride[1]}, {pad[0], pad[1]}, {pad[2], pad[3]}};
}

static dnnl_status_t make_conv(maker *m)
{
    const window w = window_of(m);
    const int64_t *dilation = attr_of(m, "dilation")->ints, *k = input(m, 1)->dims;
    const int64_t groups = attr_of(m, "groups")->ints[0];
    const dnnl_dims_t less = {dilation[0] - 1, dilation[1] - 1};
    const dnnl_dims_t whole = {k[0], k[1], k[2], k[3]};
    const dnnl_dims_t grouped = {groups, k[0] / groups, k[1], k[2], k[3]};
    m->n_inputs = 1;
    TRY_STATUS(describe_tensor(&m->in[0], input(m, 0), 4, HWNAS_ONEDNN_IMAGE));
    TRY_STATUS(describe_tensor(&m->out, output(m), 4, HWNAS_ONEDNN_IMAGE));
    TRY_STATUS(dnnl_memory_desc_create_with_tag(&m->weights, groups > 1 ? 5 : 4,
                                                groups > 1 ? grouped : whole, dnnl_f32,
                                                dnnl_format_tag_any));
    if (m->root->n_inputs > 2)
        TRY_STATUS(describe_tensor(&m->bias, input(m, 2), 1, HWNAS_ONEDNN_PLAIN));
    return dnnl_convolution_forward_primitive_desc_create(
        &m->desc, m->device->engine, dnnl_forward_inference, dnnl_convolution_direct, m->in[0],
        m->weights, m->bias, m->out, w.stride, less, w.before, w.after, m->attr);
}

static dnnl_status_t make_product(maker *m)
{
    const hwnas_tensor *w = input(m, 1);
    const bool is_linear = !strcmp(m->root->op->name, "linear"); /* outputs x inputs */
    const dnnl_dims_t dims = {w->dims[is_linear], w->dims[!is_linear]};
    const dnnl_dims_t per_column = {1, dims[1]};
    m->n_inputs = 1;
    TRY_STATUS(describe_rows(&m->in[0], input(m, 0)));
    TRY_STATUS(describe_rows(&m->out, output(m)));
    TRY_STATUS(
        dnnl_memory_desc_create_with_tag(&m->weights, 2, dims, dnnl_f32, dnnl_format_tag_any));
    if (m->root->n_inputs > 2 || m->group->bias >= 0)
        TRY_STATUS(describe(&m->bias, 2, per_column, HWNAS_ONEDNN_PLAIN));
    return dnnl_matmul_primitive_desc_create(&m->desc, m->device->engine, m->in[0], m->weights,
                                             m->bias, m->out, m->attr);
}

static dnnl_status_t make_pool(maker *m)
{
    static const dnnl_dims_t none = {0};
    const char *op = m->root->op->name;
    const bool is_global = !strcmp(op, "global_avg_pool");
    const window w = is_global ? (window){.stride = {1, 1}} : window_of(m);
    const int64_t *k = is_global ? input(m, 0)->dims + 2 : attr_of(m, "kernel")->ints;
    const dnnl_dims_t kernel = {k[0], k[1]};
    dnnl_alg_kind_t alg = dnnl_pooling_avg_exclude_padding;
    if (!strcmp(op, "max_pool"))
        alg = dnnl_pooling_max;
    else if (!is_global && attr_of(m, "count_pad")->ints[0])
        alg = dnnl_pooling_avg_include_padding;
    m->n_inputs = 1;
    TRY_STATUS(describe_tensor(&m->in[0], input(m, 0), 4, HWNAS_ONEDNN_IMAGE));
    TRY_STATUS(describe_tensor(&m->out, output(m), 4, HWNAS_ONEDNN_IMAGE));
    return dnnl_pooling_forward_primitive_desc_create(
        &m->desc, m->device->engine, dnnl_forward_inference, alg, m->in[0], m->out, w.stride,
        kernel, none, w.before, w.after, m->attr);
}

static dnnl_status_t make_function(maker *m)
{
    const dnnl_dims_t flat = {hwnas_tensor_count(output(m))};
    hwnas_onednn_post p;
    hwnas_onednn_function(&p, m->graph, m->root);
    m->n_inputs = 1;
    TRY_STATUS(describe(&m->in[0], 1, flat, HWNAS_ONEDNN_PLAIN));
    TRY_STATUS(describe(&m->out, 1, flat, HWNAS_ONEDNN_PLAIN));
    return dnnl_eltwise_forward_primitive_desc_create(&m->desc, m->device->engine,
                                                      dnnl_forward_inference, p.alg, m->in[0],
                                                      m->out, p.alpha, p.beta, m->attr);
}

static dnnl_status_t make_binary(maker *m)
{
    static const struct {
        const char *op;
        dnnl_alg_kind_t alg;
    } rows[] = {{"add", dnnl_binary_add},
                {"div", dnnl_binary_div},
                {"mul", dnnl_binary_mul},
                {"sub", dnnl_binary_sub}};
    const int rank = output(m)->rank;
    size_t i = 0;
    while (strcmp(rows[i].op, m->root->op->name))
        i++;
    m->n_inputs = 2;
    m->args[1] = DNNL_ARG_SRC_1;
    for (int k = 0; k < 2; k++)
        TRY_STATUS(describe_tensor(&m->in[k], input(m, k), rank, m->group->layout));
    TRY_STATUS(describe_tensor(&m->out, output(m), rank, m->group->layout));
    return dnnl_binary_primitive_desc_create(&m->desc, m->device->engine, rows[i].alg, m->in[0],
                                             m->in[1], m->out, m->attr);
}

static dnnl_status_t make_softmax(maker *m)
{
    const int rank = output(m)->rank;
    const int64_t axis = attr_of(m, "axis")->ints[0];
    m->n_inputs = 1;
    TRY_STATUS(describe_tensor(&m->in[0], input(m, 0), rank, m->group->layout));
    TRY_STATUS(describe_tensor(&m->out, output(m), rank, m->group->layout));
    return dnnl_softmax_forward_primitive_desc_create(
        &m->desc, m->device->engine, dnnl_forward_inference, dnnl_softmax_accurate, m->in[0],
        m->out, (int)(axis + (axis < 0 ? rank : 0)), m->attr);
}

static const struct root {
    const char *op;
    dnnl_status_t (*make)(maker *m);
} roots[] = {
    {"add", make_binary},      {"avg_pool", make_pool},        {"conv", make_conv},
    {"div", make_binary},      {"global_avg_pool", make_pool}, {"linear", make_product},
    {"matmul", make_product},  {"max_pool", make_pool},        {"mul", make_binary},
    {"softmax", make_softmax}, {"sub", make_binary},
};

static dnnl_status_t make_root(maker *m)
{
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++)
        if (!strcmp(roots[i].op, m->root->op->name))
            return roots[i].make(m);
    return make_function(m);
}

/* ---- Post-operations ---- */

/* The operand as the results lie: rows, an image, or one value for each channel. */
static dnnl_status_t describe_operand(maker *m, int at, const hwnas_tensor *t)
{
    const hwnas_tensor *out = output(m);
    const bool is_product =
        !strcmp(m->root->op->name, "linear") || !strcmp(m->root->op->name, "matmul");
    if (!is_product)
        return describe_tensor(&m->operands[at], t, out->rank, m->group->layout);
    return describe_rows(&m->operands[at], t);
}

/* The last post-operation may be done behind the primitive. */
static void choose_tail(maker *m)
{
    const hwnas_onednn_group *g = m->group;
    m->n_posts = g->n_posts;
    if (!g->n_posts || !hwnas_onednn_is_slow_fused(&g->posts[g->n_posts - 1]))
        return;
    m->n_posts--;
    m->made->n_tail = 1;
    m->made->tail = g->posts[m->n_posts];
}

static dnnl_status_t add_posts(maker *m)
{
    const hwnas_onednn_group *g = m->group;
    dnnl_post_ops_t posts = NULL;
    dnnl_status_t status = dnnl_post_ops_create(&posts);
    for (int i = 0; i < m->n_posts && status == dnnl_success; i++) {
        const hwnas_onednn_post *p = &g->posts[i];
        if (p->operand < 0) {
            status = dnnl_post_ops_append_eltwise(posts, p->alg, p->alpha, p->beta);
            continue;
        }
        if (p->is_sum) {
            status = dnnl_post_ops_append_sum(posts, 1, 0, dnnl_f32);
            continue;
        }
        status = describe_operand(m, i, &m->graph->tensors[p->operand]);
        if (status == dnnl_success)
            status = dnnl_post_ops_append_binary(posts, p->alg, m->operands[i]);
    }
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_post_ops(m->attr, posts);
    dnnl_post_ops_destroy(posts);
    return status;
}

/* ---- Arguments ---- */

static bool lies_alike(const hwnas_tensor *t)
{
    return t->rank != 4 || t->dims[1] == 1 || (t->dims[2] == 1 && t->dims[3] == 1);
}

/* A reorder of a tensor between its layout and the group's, if they differ. */
static hwnas_status add_border(maker *m, border *b, int tensor, bool is_input)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_tensor *t = &m->graph->tensors[tensor];
    const hwnas_onednn_layout lies =
        m->layouts[tensor] == HWNAS_ONEDNN_IMAGE ? HWNAS_ONEDNN_IMAGE : HWNAS_ONEDNN_PLAIN;
    const char *name = m->step->name;
    dnnl_memory_desc_t outside = NULL, inside = NULL;
    dnnl_primitive_desc_t desc = NULL;
    dnnl_primitive_attr_t attr = NULL;
    if (lies == m->group->layout || lies_alike(t))
        return HWNAS_OK;
    b->primitive.name = name;
    b->primitive.device = m->device;
    TRY_OUT(hwnas_onednn_attr(&attr, name));
    TRY_DNNL_OUT("describe", name, describe_tensor(&outside, t, t->rank, lies));
    TRY_DNNL_OUT("describe", name, describe_tensor(&inside, t, t->rank, m->group->layout));
    const const_dnnl_memory_desc_t from = is_input ? outside : inside;
    const const_dnnl_memory_desc_t to = is_input ? inside : outside;
    TRY_DNNL_OUT("describe", name,
                 dnnl_reorder_primitive_desc_create(&desc, from, m->device->engine, to,
                                                    m->device->engine, attr));
    TRY_OUT(hwnas_onednn_primitive_init(&b->primitive, desc));
    TRY_OUT(hwnas_onednn_primitive_add(&b->primitive, DNNL_ARG_FROM, from));
    TRY_OUT(hwnas_onednn_primitive_add(&b->primitive, DNNL_ARG_TO, to));
    TRY_OUT(hwnas_try_alloc(&b->buffer, (size_t)hwnas_tensor_bytes(t), name));
    m->step->bytes += b->primitive.bytes + (size_t)hwnas_tensor_bytes(t);
out:
    dnnl_primitive_attr_destroy(attr);
    dnnl_primitive_desc_destroy(desc);
    dnnl_memory_desc_destroy(inside);
    dnnl_memory_desc_destroy(outside);
    return status;
}

/* An input of each run. */
static hwnas_status add_input(maker *m, int arg, const_dnnl_memory_desc_t desc, int tensor)
{
    hwnas_onednn_step *s = m->step;
    const hwnas_tensor *t = &m->graph->tensors[tensor];
    if (t->rank == 4 && hwnas_tensor_bytes(t) == (int64_t)dnnl_memory_desc_get_size(desc))
        TRY(add_border(m, &m->made->before[s->n_inputs], tensor, true));
    s->input_ids[s->n_inputs++] = tensor;
    return arg == DNNL_ARG_UNDEF ? HWNAS_OK : hwnas_onednn_primitive_add(&m->made->main, arg, desc);
}

/* A weight's values: its own, or drawn into a buffer that is yours to free(). */
static hwnas_status values_of(const float **out, void **buffer, const hwnas_tensor *t)
{
    *buffer = NULL;
    *out = t->data;
    if (t->data)
        return HWNAS_OK;
    TRY(hwnas_try_alloc(buffer, (size_t)hwnas_tensor_bytes(t), t->name));
    hwnas_tensor_fill(t, *buffer);
    *out = *buffer;
    return HWNAS_OK;
}

/* The weights as they come: rows of outputs, for `matmul` of inputs. */
static dnnl_status_t describe_given(dnnl_memory_desc_t *out, const maker *m)
{
    const const_dnnl_memory_desc_t wanted =
        dnnl_primitive_desc_query_md(m->desc, dnnl_query_weights_md, 0);
    const dnnl_dims_t *dims;
    int rank;
    TRY_STATUS(dnnl_memory_desc_query(wanted, dnnl_query_ndims_s32, &rank));
    TRY_STATUS(dnnl_memory_desc_query(wanted, dnnl_query_dims, &dims));
    if (strcmp(m->root->op->name, "linear"))
        return describe(out, rank, *dims, HWNAS_ONEDNN_PLAIN);
    return dnnl_memory_desc_create_with_tag(out, rank, *dims, dnnl_f32, dnnl_ba);
}

static hwnas_status add_weights(maker *m)
{
    hwnas_status status = HWNAS_OK;
    hwnas_onednn_primitive *p = &m->made->main;
    const float *values;
    void *buffer = NULL;
    dnnl_memory_desc_t given = NULL;
    TRY_DNNL_OUT("describe", p->name, describe_given(&given, m));
    TRY_OUT(values_of(&values, &buffer, input(m, 1)));
    TRY_OUT(hwnas_onednn_primitive_add_weights(
        p, DNNL_ARG_WEIGHTS, dnnl_primitive_desc_query_md(m->desc, dnnl_query_weights_md, 0),
        values, given));
    if (!m->bias)
        goto out;
    free(buffer);
    buffer = NULL;
    const int bias = m->group->bias >= 0 ? m->group->bias : m->root->inputs[2];
    TRY_OUT(values_of(&values, &buffer, &m->graph->tensors[bias]));
    TRY_OUT(hwnas_onednn_primitive_add_weights(p, DNNL_ARG_BIAS, m->bias, values, m->bias));
out:
    dnnl_memory_desc_destroy(given);
    free(buffer);
    return status;
}

/* The inputs of the root, the result, the operands, then what is constant. */
static hwnas_status add_args(maker *m)
{
    const hwnas_onednn_group *g = m->group;
    hwnas_onednn_primitive *p = &m->made->main;
    m->made->sum = -1;
    TRY(hwnas_onednn_primitive_add(p, DNNL_ARG_DST, m->out));
    TRY(add_border(m, &m->made->after, g->output, false));
    for (int i = 0; i < m->n_inputs; i++)
        TRY(add_input(m, m->args[i], m->in[i], m->root->inputs[i]));
    for (int i = 0; i < g->n_posts; i++) {
        const hwnas_onednn_post *post = &g->posts[i];
        if (post->operand < 0)
            continue;
        if (post->is_sum)
            m->made->sum = (int)m->step->n_inputs;
        TRY(add_input(
            m, post->is_sum ? DNNL_ARG_UNDEF : DNNL_ARG_ATTR_MULTIPLE_POST_OP(i) | DNNL_ARG_SRC_1,
            post->is_sum ? m->out : m->operands[i], post->operand));
    }
    m->made->out_bytes = dnnl_memory_desc_get_size(m->out);
    return m->weights ? add_weights(m) : HWNAS_OK;
}

/* ---- The step ---- */

/* oneDNN does everything somehow; its reference code is what nobody wants to wait for. */
static hwnas_status check_fast(const maker *m)
{
    const char *how = "";
    TRY_DNNL("ask about", m->step->name,
             dnnl_primitive_desc_query(m->desc, dnnl_query_impl_info_str, 0, &how));
    if (!strncmp(how, "ref", 3))
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "'%s' has only reference code", m->step->name);
    return HWNAS_OK;
}

static void maker_done(maker *m)
{
    for (int i = 0; i < 2; i++)
        dnnl_memory_desc_destroy(m->in[i]);
    for (int i = 0; i < HWNAS_ONEDNN_MAX_POSTS; i++)
        dnnl_memory_desc_destroy(m->operands[i]);
    dnnl_memory_desc_destroy(m->weights);
    dnnl_memory_desc_destroy(m->bias);
    dnnl_memory_desc_destroy(m->out);
    dnnl_primitive_desc_destroy(m->desc);
    dnnl_primitive_attr_destroy(m->attr);
}

hwnas_status hwnas_onednn_fused_compile(hwnas_onednn_step *step, const onednn_device *device,
                                        const hwnas_graph *graph, const hwnas_onednn_group *group,
                                        const hwnas_onednn_layout *layouts, hwnas_arena *arena)
{
    hwnas_status status = HWNAS_OK;
    maker m = {.step = step,
               .device = device,
               .graph = graph,
               .group = group,
               .layouts = layouts,
               .root = &graph->nodes[group->nodes[0]],
               .args = {DNNL_ARG_SRC, DNNL_ARG_SRC_1}};
    m.made = step->state = hwnas_alloc(sizeof *m.made);
    m.made->main.name = step->name;
    m.made->main.device = device;
    step->n_inputs = 0;
    step->n_outputs = 1;
    step->input_ids = hwnas_arena_alloc(arena, MAX_INPUTS * sizeof *step->input_ids);
    step->output_ids = hwnas_arena_copy(arena, &group->output, sizeof *step->output_ids);
    TRY_OUT(hwnas_onednn_attr(&m.attr, step->name));
    choose_tail(&m);
    TRY_DNNL_OUT("describe", step->name, add_posts(&m));
    TRY_DNNL_OUT("describe", step->name, make_root(&m));
    TRY_OUT(check_fast(&m));
    TRY_OUT(hwnas_onednn_primitive_init(&m.made->main, m.desc));
    TRY_OUT(add_args(&m));
    step->bytes += m.made->main.bytes;
out:
    maker_done(&m);
    return status;
}

static dnnl_status_t reorder(const border *b, void *from, void *to)
{
    void *const values[] = {from, to};
    return hwnas_onednn_primitive_run(&b->primitive, 2, values);
}

static dnnl_status_t run(const hwnas_onednn_step *step, const onednn_device *device)
{
    const fused *made = step->state;
    void *values[1 + MAX_INPUTS], *out = hwnas_onednn_values(step->outputs[0]);
    size_t n = 0;
    values[n++] = made->after.buffer ? made->after.buffer : out;
    for (size_t i = 0; i < step->n_inputs; i++) {
        void *in = hwnas_onednn_values(step->inputs[i]);
        const border *b = &made->before[i];
        if (b->buffer) {
            TRY_STATUS(reorder(b, in, b->buffer));
            in = b->buffer;
        }
        if ((int)i != made->sum)
            values[n++] = in;
        else if (in != values[0])
            memcpy(values[0], in, made->out_bytes);
    }
    TRY_STATUS(hwnas_onednn_primitive_run(&made->main, n, values));
    if (made->n_tail)
        hwnas_onednn_apply_posts_by(device->threads, values[0],
                                    (int64_t)(made->out_bytes / sizeof(float)), 1, &made->tail);
    return made->after.buffer ? reorder(&made->after, made->after.buffer, out) : dnnl_success;
}

static void free_fused(void *state)
{
    fused *made = state;
    if (!made)
        return;
    for (int i = 0; i < MAX_INPUTS; i++) {
        hwnas_onednn_primitive_done(&made->before[i].primitive);
        free(made->before[i].buffer);
    }
    hwnas_onednn_primitive_done(&made->after.primitive);
    free(made->after.buffer);
    hwnas_onednn_primitive_done(&made->main);
    free(made);
}

/* A sum is computed where its operand lies. */
static int in_place(const hwnas_onednn_step *step, int output, size_t k)
{
    const fused *made = step->state;
    (void)output;
    return k == 0 && made->sum >= 0 && !made->after.buffer ? step->input_ids[made->sum] : -1;
}

const hwnas_onednn_kind hwnas_onednn_fused = {
    .name = "primitive",
    .run = run,
    .free = free_fused,
    .in_place = in_place,
};
