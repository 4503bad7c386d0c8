/* fused_roots.c: the primitives that groups begin with. */
#include "device/onednn/fused_maker.h"

#include "device/onednn/windows.h"
#include "graph/op.h"

typedef hwnas_onednn_maker maker;
typedef hwnas_onednn_window window;

/* ---- How tensors lie ---- */

/* The dimensions with ones before them, up to `rank`. */
static void dims_of(dnnl_dims_t out, const hwnas_tensor *t, int rank)
{
    for (int i = 0; i < rank; i++)
        out[i] = i < rank - t->rank ? 1 : t->dims[i - (rank - t->rank)];
}

dnnl_status_t hwnas_onednn_describe(dnnl_memory_desc_t *out, dnnl_data_type_t type, int rank,
                                    const dnnl_dims_t dims, hwnas_onednn_layout layout)
{
    static const dnnl_format_tag_t tags[] = {dnnl_a,    dnnl_a,     dnnl_ab,    dnnl_abc,
                                             dnnl_abcd, dnnl_abcde, dnnl_abcdef};
    if (rank > 6)
        return dnnl_unimplemented;
    return dnnl_memory_desc_create_with_tag(out, rank, dims, type,
                                            layout == HWNAS_ONEDNN_IMAGE ? dnnl_acdb : tags[rank]);
}

dnnl_status_t hwnas_onednn_describe_tensor(dnnl_memory_desc_t *out, const maker *m, int tensor,
                                           int rank, hwnas_onednn_layout layout)
{
    dnnl_dims_t dims;
    rank = rank > 0 ? rank : 1;
    dims_of(dims, &m->graph->tensors[tensor], rank);
    return hwnas_onednn_describe(out, m->source->kept[tensor], rank, dims, layout);
}

dnnl_status_t hwnas_onednn_describe_rows(dnnl_memory_desc_t *out, const maker *m, int tensor,
                                         dnnl_data_type_t type)
{
    const hwnas_tensor *t = &m->graph->tensors[tensor];
    const int64_t columns = t->rank ? t->dims[t->rank - 1] : 1;
    const int64_t rows = hwnas_tensor_count(t) / columns;
    const dnnl_dims_t dims = {rows, columns}, image = {1, columns, 1, rows};
    if (m->is_by_conv)
        return hwnas_onednn_describe(out, type, 4, image, HWNAS_ONEDNN_IMAGE);
    return hwnas_onednn_describe(out, type, 2, dims, HWNAS_ONEDNN_PLAIN);
}

hwnas_onednn_layout hwnas_onednn_lies(const maker *m, int tensor)
{
    return m->layouts[tensor] == HWNAS_ONEDNN_IMAGE ? HWNAS_ONEDNN_IMAGE : HWNAS_ONEDNN_PLAIN;
}

static const hwnas_tensor *input(const maker *m, int i)
{
    return hwnas_node_input(m->graph, m->root, i);
}

static const hwnas_tensor *output(const maker *m)
{
    return hwnas_node_output(m->graph, m->root);
}

static dnnl_status_t describe_in(maker *m, int i, int rank, hwnas_onednn_layout layout)
{
    return hwnas_onednn_describe_tensor(&m->in[i], m, m->group->reads[i], rank, layout);
}

static dnnl_status_t describe_out(maker *m, int rank, hwnas_onednn_layout layout)
{
    return hwnas_onednn_describe_tensor(&m->out, m, m->group->chain.output, rank, layout);
}

/* Of floats or of bytes, as the library likes. */
static dnnl_status_t describe_weights(maker *m, int rank, const dnnl_dims_t dims)
{
    const dnnl_data_type_t type = m->group->is_product_of_bytes ? dnnl_s8 : m->factors;
    return dnnl_memory_desc_create_with_tag(&m->weights, rank, dims, type, dnnl_format_tag_any);
}

/* Of what a product reads. */
static dnnl_data_type_t type_of_first(const maker *m)
{
    return m->is_shifted            ? dnnl_u8
           : m->factors != dnnl_f32 ? m->factors
                                    : m->source->kept[m->group->reads[0]];
}

static const hwnas_attr *attr_of(const maker *m, const char *name)
{
    return hwnas_node_attr(m->root, name);
}

/* ---- Roots ---- */

static dnnl_status_t make_conv(maker *m)
{
    const window w = hwnas_onednn_conv_window(m->graph, m->root);
    const int64_t *dilation = attr_of(m, "dilation")->ints, *k = input(m, 1)->dims;
    const int64_t groups = attr_of(m, "groups")->ints[0];
    const dnnl_dims_t less = {dilation[0] - 1, dilation[1] - 1};
    const dnnl_dims_t whole = {k[0], k[1], k[2], k[3]};
    dnnl_dims_t in;
    const dnnl_dims_t grouped = {groups, k[0] / groups, k[1], k[2], k[3]};
    m->n_inputs = 1;
    if (m->is_shifted || m->factors != dnnl_f32) {
        dims_of(in, input(m, 0), 4);
        TRY_STATUS(hwnas_onednn_describe(&m->in[0], type_of_first(m), 4, in, HWNAS_ONEDNN_IMAGE));
    } else {
        TRY_STATUS(describe_in(m, 0, 4, HWNAS_ONEDNN_IMAGE));
    }
    TRY_STATUS(describe_out(m, 4, HWNAS_ONEDNN_IMAGE));
    TRY_STATUS(describe_weights(m, groups > 1 ? 5 : 4, groups > 1 ? grouped : whole));
    if (m->group->bias >= 0)
        TRY_STATUS(hwnas_onednn_describe(&m->bias, dnnl_f32, 1, whole, HWNAS_ONEDNN_PLAIN));
    return dnnl_convolution_forward_primitive_desc_create(
        &m->desc, m->device->engine, dnnl_forward_inference, dnnl_convolution_direct, m->in[0],
        m->weights, m->bias, m->out, w.stride, less, w.before, w.after, m->attr);
}

/* x * factor + offset for each channel: a depthwise convolution of 1 x 1. The library's own
 * batch_normalization is two to twenty times as slow, and takes more threads than it was given
 * where the channels do not fill whole vectors (oneDNN 3.7, its code for SSE 4.1). */
static dnnl_status_t make_norm(maker *m)
{
    const int64_t channels = output(m)->dims[1];
    const dnnl_dims_t kernel = {channels, 1, 1, 1, 1}, one = {1, 1}, none = {0, 0};
    const int in = m->group->reads[0], out = m->group->chain.output;
    m->n_inputs = 1;
    if (m->is_by_conv) {
        TRY_STATUS(hwnas_onednn_describe_rows(&m->in[0], m, in, dnnl_f32));
        TRY_STATUS(hwnas_onednn_describe_rows(&m->out, m, out, dnnl_f32));
    } else {
        TRY_STATUS(describe_in(m, 0, 4, HWNAS_ONEDNN_IMAGE));
        TRY_STATUS(describe_out(m, 4, HWNAS_ONEDNN_IMAGE));
    }
    TRY_STATUS(describe_weights(m, 5, kernel));
    TRY_STATUS(hwnas_onednn_describe(&m->bias, dnnl_f32, 1, kernel, HWNAS_ONEDNN_PLAIN));
    return dnnl_convolution_forward_primitive_desc_create(
        &m->desc, m->device->engine, dnnl_forward_inference, dnnl_convolution_direct, m->in[0],
        m->weights, m->bias, m->out, one, none, none, none, m->attr);
}

static dnnl_status_t make_deconv(maker *m)
{
    window w = hwnas_onednn_window_of(m->root);
    const int64_t *dilation = attr_of(m, "dilation")->ints, *more = attr_of(m, "more")->ints;
    const int64_t *k = input(m, 1)->dims, groups = attr_of(m, "groups")->ints[0];
    const dnnl_dims_t less = {dilation[0] - 1, dilation[1] - 1}, n_out = {k[1] * groups};
    const dnnl_dims_t whole = {k[1], k[0], k[2], k[3]};
    const dnnl_dims_t grouped = {groups, k[1], k[0] / groups, k[2], k[3]};
    m->n_inputs = 1;
    for (int i = 0; i < 2; i++)
        w.after[i] -= more[i];
    TRY_STATUS(describe_in(m, 0, 4, HWNAS_ONEDNN_IMAGE));
    TRY_STATUS(describe_out(m, 4, HWNAS_ONEDNN_IMAGE));
    TRY_STATUS(describe_weights(m, groups > 1 ? 5 : 4, groups > 1 ? grouped : whole));
    if (m->group->bias >= 0)
        TRY_STATUS(hwnas_onednn_describe(&m->bias, dnnl_f32, 1, n_out, HWNAS_ONEDNN_PLAIN));
    return dnnl_deconvolution_forward_primitive_desc_create(
        &m->desc, m->device->engine, dnnl_forward_inference, dnnl_deconvolution_direct, m->in[0],
        m->weights, m->bias, m->out, w.stride, less, w.before, w.after, m->attr);
}

static dnnl_status_t make_product(maker *m)
{
    const hwnas_tensor *w = input(m, 1);
    const bool is_linear = m->root->op->id == HWNAS_OP_LINEAR; /* outputs x inputs */
    const dnnl_dims_t dims = {w->dims[is_linear], w->dims[!is_linear]};
    const dnnl_dims_t per_column = {1, dims[1]}, kernel = {dims[1], dims[0], 1, 1};
    const dnnl_dims_t none = {0}, one = {1, 1};
    m->n_inputs = 1;
    const int in = m->group->reads[0], out = m->group->chain.output;
    TRY_STATUS(hwnas_onednn_describe_rows(&m->in[0], m, in, type_of_first(m)));
    TRY_STATUS(hwnas_onednn_describe_rows(&m->out, m, out, m->source->kept[out]));
    TRY_STATUS(describe_weights(m, m->is_by_conv ? 4 : 2, m->is_by_conv ? kernel : dims));
    if (m->group->bias >= 0)
        TRY_STATUS(hwnas_onednn_describe(&m->bias, dnnl_f32, m->is_by_conv ? 1 : 2,
                                         m->is_by_conv ? kernel : per_column, HWNAS_ONEDNN_PLAIN));
    if (m->is_by_conv)
        return dnnl_convolution_forward_primitive_desc_create(
            &m->desc, m->device->engine, dnnl_forward_inference, dnnl_convolution_direct, m->in[0],
            m->weights, m->bias, m->out, one, none, none, none, m->attr);
    return dnnl_matmul_primitive_desc_create(&m->desc, m->device->engine, m->in[0], m->weights,
                                             m->bias, m->out, m->attr);
}

static dnnl_status_t make_pool(maker *m)
{
    static const dnnl_dims_t none = {0};
    const hwnas_op_id op = m->root->op->id;
    const bool is_global = op == HWNAS_OP_GLOBAL_AVG_POOL;
    const window w = is_global ? (window){.stride = {1, 1}} : hwnas_onednn_window_of(m->root);
    const int64_t *k = is_global ? input(m, 0)->dims + 2 : attr_of(m, "kernel")->ints;
    const dnnl_dims_t kernel = {k[0], k[1]};
    dnnl_alg_kind_t alg = dnnl_pooling_avg_exclude_padding;
    if (op == HWNAS_OP_MAX_POOL)
        alg = dnnl_pooling_max;
    else if (!is_global && attr_of(m, "count_pad")->ints[0])
        alg = dnnl_pooling_avg_include_padding;
    m->n_inputs = 1;
    TRY_STATUS(describe_in(m, 0, 4, HWNAS_ONEDNN_IMAGE));
    TRY_STATUS(describe_out(m, 4, HWNAS_ONEDNN_IMAGE));
    return dnnl_pooling_forward_primitive_desc_create(
        &m->desc, m->device->engine, dnnl_forward_inference, alg, m->in[0], m->out, w.stride,
        kernel, none, w.before, w.after, m->attr);
}

static dnnl_status_t make_function(maker *m)
{
    const dnnl_dims_t flat = {hwnas_tensor_count(output(m))};
    hwnas_onednn_post p;
    hwnas_onednn_function(&p, m->root);
    m->n_inputs = 1;
    TRY_STATUS(hwnas_onednn_describe(&m->in[0], dnnl_f32, 1, flat, HWNAS_ONEDNN_PLAIN));
    TRY_STATUS(hwnas_onednn_describe(&m->out, dnnl_f32, 1, flat, HWNAS_ONEDNN_PLAIN));
    return dnnl_eltwise_forward_primitive_desc_create(&m->desc, m->device->engine,
                                                      dnnl_forward_inference, p.alg, m->in[0],
                                                      m->out, p.alpha, p.beta, m->attr);
}

static dnnl_status_t make_binary(maker *m, dnnl_alg_kind_t alg)
{
    const int rank = output(m)->rank;
    m->n_inputs = 2;
    m->args[1] = DNNL_ARG_SRC_1;
    for (int k = 0; k < 2; k++)
        TRY_STATUS(describe_in(m, k, rank, m->group->layout));
    TRY_STATUS(describe_out(m, rank, m->group->layout));
    return dnnl_binary_primitive_desc_create(&m->desc, m->device->engine, alg, m->in[0], m->in[1],
                                             m->out, m->attr);
}

static dnnl_status_t make_softmax(maker *m)
{
    const int rank = output(m)->rank;
    const int64_t axis = attr_of(m, "axis")->ints[0];
    m->n_inputs = 1;
    TRY_STATUS(describe_in(m, 0, rank, m->group->layout));
    TRY_STATUS(describe_out(m, rank, m->group->layout));
    return dnnl_softmax_forward_primitive_desc_create(
        &m->desc, m->device->engine, dnnl_forward_inference, dnnl_softmax_accurate, m->in[0],
        m->out, (int)(axis + (axis < 0 ? rank : 0)), m->attr);
}

/* From bytes into floats or back, and into another layout where they lie differently. */
static dnnl_status_t make_change(maker *m)
{
    const dnnl_engine_t engine = m->device->engine;
    m->n_inputs = 1;
    m->is_reorder = true;
    TRY_STATUS(describe_in(m, 0, output(m)->rank, hwnas_onednn_lies(m, m->group->reads[0])));
    TRY_STATUS(describe_out(m, output(m)->rank, hwnas_onednn_lies(m, m->group->chain.output)));
    return dnnl_reorder_primitive_desc_create(&m->desc, m->in[0], engine, m->out, engine, m->attr);
}

static const struct root {
    hwnas_op_id op;
    dnnl_status_t (*make)(maker *m);
} roots[] = {
    {HWNAS_OP_AVG_POOL, make_pool},
    {HWNAS_OP_BATCH_NORM, make_norm},
    {HWNAS_OP_CONV, make_conv},
    {HWNAS_OP_CONV_TRANSPOSE, make_deconv},
    {HWNAS_OP_DEQUANTIZE_LINEAR, make_change},
    {HWNAS_OP_GLOBAL_AVG_POOL, make_pool},
    {HWNAS_OP_LINEAR, make_product},
    {HWNAS_OP_MATMUL, make_product},
    {HWNAS_OP_MAX_POOL, make_pool},
    {HWNAS_OP_QUANTIZE_LINEAR, make_change},
    {HWNAS_OP_SOFTMAX, make_softmax},
};

dnnl_status_t hwnas_onednn_make_root(maker *m)
{
    dnnl_alg_kind_t alg;
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++)
        if (roots[i].op == m->root->op->id)
            return roots[i].make(m);
    return hwnas_onednn_binary(&alg, m->root) ? make_binary(m, alg) : make_function(m);
}
