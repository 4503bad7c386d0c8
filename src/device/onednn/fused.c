/* fused.c: one primitive with post-operations, and reorders where a tensor lies otherwise than the
 * primitive wants it. */
#include "device/onednn/fused_maker.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/onednn/onednn.h"
#include "device/onednn/posts.h"
#include "device/onednn/primitive.h"
#include "graph/op.h"

enum { MAX_INPUTS = 4 + HWNAS_ONEDNN_MAX_POSTS, IMAGE_RANK = 4 };

/* A reorder at the border, into or out of the scratch memory, behind what primitives want of it. */
typedef struct border {
    hwnas_onednn_primitive primitive;
    bool is_made;
    size_t at, bytes; /* in the scratch memory */
} border;

typedef struct hwnas_onednn_made {
    hwnas_onednn_primitive main;
    border before[MAX_INPUTS], after; /* not made: the tensor lies as it should */
    int sum;                          /* the input that results are added to, or -1 */
    size_t out_bytes;
    int n_tail; /* post-operations behind the primitive, by loops of ours: none or one */
    hwnas_onednn_post tail;
} fused;

typedef hwnas_onednn_maker maker;

/* The border of input `i`, or of the output. */
static border *border_of(fused *made, int i)
{
    return i < MAX_INPUTS ? &made->before[i] : &made->after;
}

/* ---- Post-operations ---- */

/* The operand as the results lie: rows, an image, or one value for each channel. */
static dnnl_status_t describe_operand(maker *m, int at, int tensor)
{
    const int rank = hwnas_node_output(m->graph, m->root)->rank;
    const bool is_product =
        m->root->op->id == HWNAS_OP_LINEAR || m->root->op->id == HWNAS_OP_MATMUL;
    return is_product || m->is_by_conv
               ? hwnas_onednn_describe_rows(&m->operands[at], m, tensor, m->source->kept[tensor])
               : hwnas_onednn_describe_tensor(&m->operands[at], m, tensor, rank, m->group->layout);
}

static dnnl_status_t add_post(maker *m, int i, dnnl_post_ops_t posts)
{
    const hwnas_onednn_post *p = &m->group->posts[i];
    if (p->operand < 0 || p->is_sum)
        return hwnas_onednn_requantize_post(&m->bytes, p, posts);
    TRY_STATUS(describe_operand(m, i, p->operand));
    return dnnl_post_ops_append_binary(posts, p->alg, m->operands[i]);
}

/* The last post-operation may be done behind the primitive. */
static void choose_tail(maker *m)
{
    const hwnas_onednn_group *g = m->group;
    if (g->has_bytes || !g->n_posts || !hwnas_onednn_is_slow_fused(&g->posts[g->n_posts - 1]))
        return;
    m->bytes.n_posts--;
    m->made->n_tail = 1;
    m->made->tail = g->posts[g->n_posts - 1];
}

static dnnl_status_t add_posts(maker *m)
{
    dnnl_post_ops_t posts = NULL;
    dnnl_status_t status = dnnl_post_ops_create(&posts);
    if (status == dnnl_success)
        status = hwnas_onednn_requantize_begin(&m->bytes, posts);
    for (int i = 0; i < m->bytes.n_posts && status == dnnl_success; i++)
        status = add_post(m, i, posts);
    if (status == dnnl_success)
        status = hwnas_onednn_requantize_end(&m->bytes, posts);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_post_ops(m->attr, posts);
    dnnl_post_ops_destroy(posts);
    return status == dnnl_success ? hwnas_onednn_requantize_attr(&m->bytes, m->attr) : status;
}

/* ---- Arguments ---- */

/* Whether channels last is plain too: one channel or one pixel, or a dimension that is absent. */
static bool lies_alike(const hwnas_tensor *t)
{
    const int channels = t->rank - 3;
    return channels < 0 || t->dims[channels] == 1 ||
           (t->dims[channels + 1] == 1 && t->dims[channels + 2] == 1);
}

/* A border that brings the bytes of `tensor` from one description into the other. */
static hwnas_status make_border(maker *m, border *b, int tensor, const_dnnl_memory_desc_t from,
                                const_dnnl_memory_desc_t to, const_dnnl_primitive_attr_t attr)
{
    hwnas_status status = HWNAS_OK;
    const char *name = m->step->name;
    dnnl_primitive_desc_t desc = NULL;
    b->primitive.name = name;
    b->primitive.device = m->device;
    TRY_DNNL_OUT("describe", name,
                 dnnl_reorder_primitive_desc_create(&desc, from, m->device->engine, to,
                                                    m->device->engine, attr));
    TRY_OUT(hwnas_onednn_primitive_init(&b->primitive, desc));
    TRY_OUT(hwnas_onednn_primitive_add(&b->primitive, DNNL_ARG_FROM, from));
    TRY_OUT(hwnas_onednn_primitive_add(&b->primitive, DNNL_ARG_TO, to));
    b->bytes = hwnas_onednn_bytes(m->source, tensor);
    b->is_made = true;
out:
    dnnl_primitive_desc_destroy(desc);
    return status;
}

/* A reorder of a tensor between its layout and the group's, if they differ. */
static hwnas_status add_border(maker *m, border *b, int tensor, bool is_input)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_onednn_layout lies = hwnas_onednn_lies(m, tensor);
    const char *name = m->step->name;
    dnnl_memory_desc_t outside = NULL, inside = NULL;
    dnnl_primitive_attr_t attr = NULL;
    if (lies == m->group->layout || lies_alike(&m->graph->tensors[tensor]) || m->is_reorder)
        return HWNAS_OK; /* else it is of an image */
    TRY_OUT(hwnas_onednn_attr(&attr, name));
    TRY_DNNL_OUT("describe", name,
                 hwnas_onednn_describe_tensor(&outside, m, tensor, IMAGE_RANK, lies));
    TRY_DNNL_OUT("describe", name,
                 hwnas_onednn_describe_tensor(&inside, m, tensor, IMAGE_RANK, m->group->layout));
    TRY_OUT(
        make_border(m, b, tensor, is_input ? outside : inside, is_input ? inside : outside, attr));
    m->step->bytes += b->primitive.bytes;
out:
    dnnl_primitive_attr_destroy(attr);
    dnnl_memory_desc_destroy(inside);
    dnnl_memory_desc_destroy(outside);
    return status;
}

/* What a pass over the first input, from one type into another, reads and writes: rows, or an image
 * that may lie otherwise than the group has it. */
static dnnl_status_t describe_pass(dnnl_memory_desc_t *from, dnnl_memory_desc_t *to, const maker *m,
                                   dnnl_data_type_t given, dnnl_data_type_t wanted)
{
    const int tensor = m->group->reads[0];
    const hwnas_tensor *t = &m->graph->tensors[tensor];
    const hwnas_onednn_layout lies = hwnas_onednn_lies(m, tensor);
    dnnl_dims_t dims = {0};
    if (m->is_by_conv && (lies == m->group->layout || lies_alike(t))) {
        TRY_STATUS(hwnas_onednn_describe_rows(from, m, tensor, given));
        return hwnas_onednn_describe_rows(to, m, tensor, wanted);
    }
    memcpy(dims, t->dims, (size_t)t->rank * sizeof *dims);
    TRY_STATUS(hwnas_onednn_describe(from, given, t->rank, dims, lies));
    return hwnas_onednn_describe(to, wanted, t->rank, dims, m->group->layout);
}

/* Floats of 16 bits from those of 32. */
static hwnas_status add_rounding(maker *m, border *b)
{
    hwnas_status status = HWNAS_OK;
    const char *name = m->step->name;
    dnnl_memory_desc_t from = NULL, to = NULL;
    dnnl_primitive_attr_t attr = NULL;
    TRY_OUT(hwnas_onednn_attr(&attr, name));
    TRY_DNNL_OUT("describe", name, describe_pass(&from, &to, m, dnnl_f32, m->factors));
    TRY_OUT(make_border(m, b, m->group->reads[0], from, to, attr));
    m->step->bytes += b->primitive.bytes;
out:
    dnnl_primitive_attr_destroy(attr);
    dnnl_memory_desc_destroy(to);
    dnnl_memory_desc_destroy(from);
    return status;
}

/* Of signed bytes a convolution with AVX2 halves the weights; of unsigned ones it does not. */
static hwnas_status add_shift(maker *m, border *b)
{
    static const int32_t shift = HWNAS_ONEDNN_SHIFT;
    static const dnnl_dims_t one = {1};
    hwnas_status status = HWNAS_OK;
    const char *name = m->step->name;
    dnnl_memory_desc_t from = NULL, to = NULL, single = NULL;
    dnnl_primitive_attr_t attr = NULL;
    TRY_OUT(hwnas_onednn_attr(&attr, name));
    TRY_DNNL_OUT("describe", name, dnnl_primitive_attr_set_zero_points_mask(attr, DNNL_ARG_TO, 0));
    TRY_DNNL_OUT("describe", name, describe_pass(&from, &to, m, dnnl_s8, dnnl_u8));
    TRY_DNNL_OUT("describe", name,
                 hwnas_onednn_describe(&single, dnnl_s32, 1, one, HWNAS_ONEDNN_PLAIN));
    TRY_OUT(make_border(m, b, m->group->reads[0], from, to, attr));
    TRY_OUT(hwnas_onednn_primitive_add_weights(
        &b->primitive, DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_TO, single, &shift, single));
    m->step->bytes += b->primitive.bytes;
out:
    dnnl_primitive_attr_destroy(attr);
    dnnl_memory_desc_destroy(single);
    dnnl_memory_desc_destroy(to);
    dnnl_memory_desc_destroy(from);
    return status;
}

/* An input of each run. */
static hwnas_status add_input(maker *m, int arg, const_dnnl_memory_desc_t desc, int tensor)
{
    hwnas_onednn_step *s = m->step;
    if (m->is_shifted && arg == DNNL_ARG_SRC)
        TRY(add_shift(m, &m->made->before[s->n_inputs]));
    else if (m->factors != dnnl_f32 && arg == DNNL_ARG_SRC)
        TRY(add_rounding(m, &m->made->before[s->n_inputs]));
    else if (hwnas_onednn_bytes(m->source, tensor) == dnnl_memory_desc_get_size(desc))
        TRY(add_border(m, &m->made->before[s->n_inputs], tensor, true));
    s->input_ids[s->n_inputs++] = tensor;
    return arg == DNNL_ARG_UNDEF ? HWNAS_OK : hwnas_onednn_primitive_add(&m->made->main, arg, desc);
}

/* The inputs of the root, the result, the operands, then what is constant. */
static hwnas_status add_args(maker *m)
{
    const hwnas_onednn_group *g = m->group;
    hwnas_onednn_primitive *p = &m->made->main;
    m->made->sum = -1;
    TRY(hwnas_onednn_primitive_add(p, DNNL_ARG_DST, m->out));
    TRY(add_border(m, &m->made->after, g->chain.output, false));
    for (int i = 0; i < m->n_inputs; i++)
        TRY(add_input(m, m->args[i], m->in[i], g->reads[i]));
    for (int i = 0, at = m->bytes.excess != 0; i < m->bytes.n_posts; i++, at++) {
        const hwnas_onednn_post *post = &g->posts[i];
        if (post->operand < 0)
            continue;
        if (post->is_sum)
            m->made->sum = (int)m->step->n_inputs;
        TRY(add_input(
            m, post->is_sum ? DNNL_ARG_UNDEF : DNNL_ARG_ATTR_MULTIPLE_POST_OP(at) | DNNL_ARG_SRC_1,
            post->is_sum ? m->out : m->operands[i], post->operand));
    }
    m->made->out_bytes = dnnl_memory_desc_get_size(m->out);
    return hwnas_onednn_add_constants(m, &m->made->main);
}

/* ---- The step ---- */

/* Two products of unsigned bytes with the largest weight fit 16 bits, in which they are added up.
 */
static bool fits_unsigned(const maker *m)
{
    enum { MOST = 64 }; /* 2 x 255 x 64 < 2^15 */
    const int given_as = m->root->inputs[1];
    const int kernel = m->graph->nodes[m->graph->tensors[given_as].producer].inputs[0];
    const hwnas_tensor *t = &m->graph->tensors[kernel];
    const int64_t n = hwnas_tensor_count(t);
    float *values = hwnas_alloc((size_t)n * sizeof *values), most = 0;
    hwnas_tensor_fill(t, values);
    for (int64_t i = 0; i < n; i++)
        most = fmaxf(most, fabsf(values[i]));
    free(values);
    return most <= MOST;
}

/* Whether the library would halve the weights, and need not: a convolution of signed bytes. Of one
 * in groups it does, as the pass over the input of a depthwise one would take a quarter of its
 * time.
 */
static bool is_halved(const maker *m)
{
    if (!hwnas_onednn_ends_at_avx2() || hwnas_onednn_is_native(HWNAS_S8) ||
        !m->group->is_product_of_bytes || m->source->kept[m->group->reads[0]] != dnnl_s8)
        return false;
    return (m->is_by_conv || (m->root->op->id == HWNAS_OP_CONV &&
                              hwnas_node_attr(m->root, "groups")->ints[0] == 1)) &&
           fits_unsigned(m);
}

/* The borders' buffers live as long as the step runs: they have places of their own. */
static void place_borders(fused *made, hwnas_onednn_scratch *scratch)
{
    enum { ALIGN = 64 };
    size_t at = made->main.scratch_bytes;
    for (int i = 0; i <= MAX_INPUTS; i++)
        if (border_of(made, i)->primitive.scratch_bytes > at)
            at = border_of(made, i)->primitive.scratch_bytes;
    for (int i = 0; i <= MAX_INPUTS; i++) {
        border *b = border_of(made, i);
        b->at = (at + ALIGN - 1) / ALIGN * ALIGN;
        at = b->is_made ? b->at + b->bytes : at;
    }
    if (at > scratch->bytes)
        scratch->bytes = at;
}

/* oneDNN has code for everything; where that is its reference code, it is far too slow. */
static hwnas_status check_fast(const maker *m)
{
    if (hwnas_onednn_is_reference(m->desc))
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "'%s' has only reference code", m->step->name);
    return HWNAS_OK;
}

/* A combination that oneDNN has no primitive for may still run outside of a group. */
static hwnas_status try_root(maker *m)
{
    const dnnl_status_t status = hwnas_onednn_make_root(m);
    if (status == dnnl_unimplemented)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "oneDNN has no primitive for '%s'",
                          m->step->name);
    return hwnas_onednn_status(status, "describe", m->step->name);
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
    hwnas_onednn_requantize_done(&m->bytes);
}

hwnas_status hwnas_onednn_fused_compile(hwnas_onednn_step *step, const onednn_device *device,
                                        const hwnas_onednn_source *source,
                                        const hwnas_onednn_group *group,
                                        const hwnas_onednn_layout *layouts, hwnas_arena *arena)
{
    hwnas_status status = HWNAS_OK;
    maker m = {.step = step,
               .device = device,
               .source = source,
               .graph = source->graph,
               .group = group,
               .layouts = layouts,
               .root = &source->graph->nodes[group->chain.nodes[0]],
               .is_by_conv = hwnas_onednn_is_by_conv(source, group),
               .factors = group->is_product_of_halves && hwnas_onednn_is_native(HWNAS_BF16)
                              ? dnnl_bf16
                              : dnnl_f32,
               .args = {DNNL_ARG_SRC, DNNL_ARG_SRC_1}};
    m.made = step->state = hwnas_alloc(sizeof *m.made);
    m.made->main.name = step->name;
    m.made->main.device = device;
    hwnas_onednn_requantize_init(&m.bytes, source, group);
    m.is_shifted = is_halved(&m);
    m.bytes.in[0].zero += m.is_shifted ? HWNAS_ONEDNN_SHIFT : 0;
    step->n_inputs = 0;
    step->n_outputs = 1;
    step->input_ids = hwnas_arena_alloc(arena, MAX_INPUTS * sizeof *step->input_ids);
    step->output_ids = hwnas_arena_copy(arena, &group->chain.output, sizeof *step->output_ids);
    TRY_OUT(hwnas_onednn_attr(&m.attr, step->name));
    choose_tail(&m);
    TRY_DNNL_OUT("describe", step->name, add_posts(&m));
    TRY_OUT(try_root(&m));
    TRY_OUT(check_fast(&m));
    TRY_OUT(hwnas_onednn_primitive_init(&m.made->main, m.desc));
    TRY_OUT(add_args(&m));
    place_borders(m.made, device->scratch);
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
    char *scratch = device->scratch->memory;
    void *values[1 + MAX_INPUTS], *out = hwnas_onednn_values(step->outputs[0]);
    size_t n = 0;
    values[n++] = made->after.is_made ? scratch + made->after.at : out;
    for (size_t i = 0; i < step->n_inputs; i++) {
        void *in = hwnas_onednn_values(step->inputs[i]);
        const border *b = &made->before[i];
        if (b->is_made) {
            TRY_STATUS(reorder(b, in, scratch + b->at));
            in = scratch + b->at;
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
    return made->after.is_made ? reorder(&made->after, values[0], out) : dnnl_success;
}

static void free_fused(void *state)
{
    fused *made = state;
    if (!made)
        return;
    for (int i = 0; i <= MAX_INPUTS; i++)
        hwnas_onednn_primitive_done(&border_of(made, i)->primitive);
    hwnas_onednn_primitive_done(&made->main);
    free(made);
}

/* A sum is computed where its operand lies, unless the primitive reads that in another way too. */
static int in_place(const hwnas_onednn_step *step, int output, size_t k)
{
    const fused *made = step->state;
    (void)output;
    if (k > 0 || made->sum < 0 || made->after.is_made)
        return -1;
    const int operand = step->input_ids[made->sum];
    for (size_t i = 0; i < step->n_inputs; i++)
        if ((int)i != made->sum && step->input_ids[i] == operand)
            return -1;
    return operand;
}

const hwnas_onednn_kind hwnas_onednn_fused = {
    .name = "primitive",
    .run = run,
    .free = free_fused,
    .in_place = in_place,
};
