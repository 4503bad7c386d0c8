/* requantize.c: scales and zero points as attributes and arguments of primitives. */
#include "device/onednn/requantize.h"

#include <math.h>
#include <stdlib.h>

#include "graph/op.h"

typedef hwnas_onednn_requantize requantize;
typedef hwnas_onednn_post post;

/* Makes bytes of floats, or the reverse, and nothing else. */
static bool is_change(const requantize *q)
{
    return q->root->op->class == HWNAS_CLASS_QUANTIZATION;
}

/* Sums and products of two tensors, which know no scale of their result. */
static bool is_binary(const requantize *q)
{
    return q->root->op->class == HWNAS_CLASS_ARITHMETIC;
}

/* Whether f(a x) = a f(x), with limits that are divided by a. */
static bool is_homogeneous(const post *p)
{
    return p->is_sum ||
           (p->operand < 0 && (p->alg == dnnl_eltwise_relu || p->alg == dnnl_eltwise_clip));
}

/* Whether bytes are cut off where the function does so as well. */
static bool is_idle(const requantize *q, const post *p)
{
    const bool is_signed = q->source->kept[q->group->chain.output] == dnnl_s8;
    const float least = is_signed ? -128 : 0, greatest = is_signed ? 127 : 255;
    float low = 0, high = INFINITY;
    if (p->operand >= 0 ||
        (p->alg != dnnl_eltwise_clip && !(p->alg == dnnl_eltwise_relu && p->alpha == 0)))
        return false;
    if (p->alg == dnnl_eltwise_clip) {
        low = p->alpha;
        high = p->beta;
    }
    return rintf(low / q->out.scale) + (float)q->out.zero <= least &&
           rintf(high / q->out.scale) + (float)q->out.zero >= greatest;
}

static hwnas_onednn_scale scale_of(const requantize *q, int tensor)
{
    return hwnas_onednn_is_int8(q->source, tensor)
               ? hwnas_onednn_scale_of_int8(q->source->graph, tensor)
               : (hwnas_onednn_scale){1, 0};
}

/* The input's scale times the kernel's, in units. */
static void find_scales(requantize *q)
{
    const hwnas_graph *graph = q->source->graph;
    const hwnas_node *dequantize = &graph->nodes[hwnas_node_input(graph, q->root, 1)->producer];
    const hwnas_tensor *of = hwnas_node_input(graph, dequantize, 1);
    q->n_scales = hwnas_tensor_count(of);
    q->scales = hwnas_alloc((size_t)q->n_scales * sizeof *q->scales);
    hwnas_tensor_fill(of, q->scales);
    for (int64_t i = 0; i < q->n_scales; i++)
        q->scales[i] *= q->in[0].scale / q->unit;
}

/* By how much the zero points make a sum or a difference too large. */
static float excess_of(const requantize *q)
{
    const float first = q->in[0].scale * (float)q->in[0].zero;
    const float second = q->in[1].scale * (float)q->in[1].zero;
    if (!hwnas_onednn_sums_bytes(q->root))
        return 0;
    return q->root->op->id == HWNAS_OP_ADD ? first + second : first - second;
}

void hwnas_onednn_requantize_init(requantize *out, const hwnas_onednn_source *source,
                                  const hwnas_onednn_group *group)
{
    const bool ends_as_bytes = hwnas_onednn_is_int8(source, group->chain.output);
    *out = (requantize){.source = source, .group = group, .unit = 1, .n_posts = group->n_posts};
    out->root = &source->graph->nodes[group->chain.nodes[0]];
    for (int i = 0; i < 2; i++)
        out->in[i] =
            i < out->root->n_inputs ? scale_of(out, group->reads[i]) : (hwnas_onednn_scale){1, 0};
    out->out = scale_of(out, group->chain.output);
    out->excess = excess_of(out);
    if (ends_as_bytes && out->n_posts && is_idle(out, &group->posts[out->n_posts - 1]))
        out->n_posts--;
    bool is_plain = ends_as_bytes;
    for (int i = 0; i < out->n_posts; i++)
        is_plain &= is_homogeneous(&group->posts[i]);
    if (!group->is_product_of_bytes)
        return;
    out->unit = is_plain ? out->out.scale : 1;
    find_scales(out);
}

void hwnas_onednn_requantize_done(requantize *q)
{
    free(q->scales);
}

/* The result's scale is an argument of its own. */
static bool divides(const requantize *q)
{
    return q->out.scale != q->unit &&
           (q->group->is_product_of_bytes || q->root->op->id == HWNAS_OP_QUANTIZE_LINEAR);
}

static int mask_of(const requantize *q)
{
    if (q->n_scales == 1)
        return 0;
    if (hwnas_onednn_is_by_conv(q->source, q->group))
        return 1 << 0;
    if (q->root->op->id != HWNAS_OP_CONV)
        return 1 << 1;
    return hwnas_node_attr(q->root, "groups")->ints[0] > 1 ? 1 << 0 | 1 << 1 : 1 << 0;
}

/* Which inputs have a scale of their own as an argument. */
static bool scales_input(const requantize *q, int i)
{
    return q->in[i].scale != 1 &&
           (is_binary(q) || (i == 0 && q->root->op->id == HWNAS_OP_DEQUANTIZE_LINEAR));
}

static bool shifts(const requantize *q, int zero)
{
    return zero && (q->group->is_product_of_bytes || is_change(q));
}

dnnl_status_t hwnas_onednn_requantize_attr(const requantize *q, dnnl_primitive_attr_t attr)
{
    static const int args[] = {DNNL_ARG_SRC_0, DNNL_ARG_SRC_1};
    if (q->scales)
        TRY_STATUS(dnnl_primitive_attr_set_scales_mask(attr, DNNL_ARG_WEIGHTS, mask_of(q)));
    for (int i = 0; i < 2; i++)
        if (scales_input(q, i))
            TRY_STATUS(dnnl_primitive_attr_set_scales_mask(attr, args[i], 0));
    if (divides(q))
        TRY_STATUS(dnnl_primitive_attr_set_scales_mask(attr, DNNL_ARG_DST, 0));
    if (shifts(q, q->in[0].zero))
        TRY_STATUS(dnnl_primitive_attr_set_zero_points_mask(attr, DNNL_ARG_SRC, 0));
    if (shifts(q, q->out.zero))
        TRY_STATUS(dnnl_primitive_attr_set_zero_points_mask(attr, DNNL_ARG_DST, 0));
    return dnnl_success;
}

dnnl_status_t hwnas_onednn_requantize_begin(const requantize *q, dnnl_post_ops_t posts)
{
    return q->excess != 0 ? dnnl_post_ops_append_eltwise(posts, dnnl_eltwise_linear, 1, -q->excess)
                          : dnnl_success;
}

dnnl_status_t hwnas_onednn_requantize_post(const requantize *q, const post *p,
                                           dnnl_post_ops_t posts)
{
    const bool is_limit = p->alg == dnnl_eltwise_clip;
    if (!p->is_sum)
        return dnnl_post_ops_append_eltwise(posts, p->alg, is_limit ? p->alpha / q->unit : p->alpha,
                                            is_limit ? p->beta / q->unit : p->beta);
    const hwnas_onednn_scale other = scale_of(q, p->operand);
    return dnnl_post_ops_append_sum(posts, other.scale / q->unit, other.zero,
                                    q->source->kept[p->operand]);
}

dnnl_status_t hwnas_onednn_requantize_end(const requantize *q, dnnl_post_ops_t posts)
{
    if (!is_binary(q) || !hwnas_onednn_is_int8(q->source, q->group->chain.output))
        return dnnl_success;
    return dnnl_post_ops_append_eltwise(posts, dnnl_eltwise_linear, 1 / q->out.scale,
                                        (float)q->out.zero);
}

/* ---- Arguments ---- */

static hwnas_status add_values(hwnas_onednn_primitive *p, int arg, int64_t n, dnnl_data_type_t type,
                               const void *values)
{
    hwnas_status status = HWNAS_OK;
    const dnnl_dims_t dims = {n};
    dnnl_memory_desc_t desc = NULL;
    TRY_DNNL_OUT("describe", p->name,
                 dnnl_memory_desc_create_with_tag(&desc, 1, dims, type, dnnl_a));
    TRY_OUT(hwnas_onednn_primitive_add_weights(p, arg, desc, values, desc));
out:
    dnnl_memory_desc_destroy(desc);
    return status;
}

hwnas_status hwnas_onednn_requantize_add(const requantize *q, hwnas_onednn_primitive *p)
{
    static const int args[] = {DNNL_ARG_SRC_0, DNNL_ARG_SRC_1};
    if (q->scales)
        TRY(add_values(p, DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS, q->n_scales, dnnl_f32,
                       q->scales));
    for (int i = 0; i < 2; i++)
        if (scales_input(q, i))
            TRY(add_values(p, DNNL_ARG_ATTR_SCALES | args[i], 1, dnnl_f32, &q->in[i].scale));
    if (divides(q))
        TRY(add_values(p, DNNL_ARG_ATTR_SCALES | DNNL_ARG_DST, 1, dnnl_f32, &q->out.scale));
    if (shifts(q, q->in[0].zero))
        TRY(add_values(p, DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_SRC, 1, dnnl_s32, &q->in[0].zero));
    if (shifts(q, q->out.zero))
        TRY(add_values(p, DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_DST, 1, dnnl_s32, &q->out.zero));
    return HWNAS_OK;
}
