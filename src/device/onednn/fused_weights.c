/* fused_weights.c: what is constant of a group: kernel and bias, factors and zero points. */
#include "device/onednn/fused_maker.h"

#include <stdlib.h>

#include "base/half.h"
#include "device/onednn/onednn.h"
#include "graph/op.h"

typedef hwnas_onednn_maker maker;

/* A weight's values as they are kept, in a buffer that is yours to free(). */
static hwnas_status values_of(void **out, const maker *m, int tensor)
{
    TRY(hwnas_try_alloc(out, hwnas_onednn_bytes(m->source, tensor), m->step->name));
    return hwnas_onednn_fill(*out, m->source, tensor);
}

/* The weights as they come: rows of outputs, for `matmul` of inputs. The library has them the other
 * way round, but for a convolution. */
static dnnl_status_t describe_given(dnnl_memory_desc_t *out, const maker *m, int kernel)
{
    const const_dnnl_memory_desc_t wanted =
        dnnl_primitive_desc_query_md(m->desc, dnnl_query_weights_md, 0);
    const dnnl_data_type_t type = m->source->kept[kernel];
    const dnnl_dims_t *dims;
    int rank;
    TRY_STATUS(dnnl_memory_desc_query(wanted, dnnl_query_ndims_s32, &rank));
    TRY_STATUS(dnnl_memory_desc_query(wanted, dnnl_query_dims, &dims));
    if (m->is_by_conv && m->root->op->id == HWNAS_OP_MATMUL)
        return dnnl_memory_desc_create_with_tag(out, rank, *dims, type, dnnl_bacd);
    if (!m->is_by_conv && m->root->op->id == HWNAS_OP_LINEAR)
        return dnnl_memory_desc_create_with_tag(out, rank, *dims, type, dnnl_ba);
    if (m->root->op->id == HWNAS_OP_CONV_TRANSPOSE) /* input channels come before output channels */
        return dnnl_memory_desc_create_with_tag(out, rank, *dims, type,
                                                rank == 5 ? dnnl_acbde : dnnl_bacd);
    return hwnas_onednn_describe(out, type, rank, *dims, HWNAS_ONEDNN_PLAIN);
}

/* As bf16 holds them. */
static void round_values(float *values, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        values[i] = hwnas_bfloat16_value(hwnas_bfloat16_of(values[i]));
}

static hwnas_status add_kernel(const maker *m, hwnas_onednn_primitive *p)
{
    hwnas_status status = HWNAS_OK;
    const int given_as = m->root->inputs[1];
    const bool is_behind = m->group->is_product_of_bytes || m->group->is_product_of_halves;
    const bool is_rounded = m->group->is_product_of_halves && m->factors == dnnl_f32;
    const int kernel =
        is_behind ? m->graph->nodes[m->graph->tensors[given_as].producer].inputs[0] : given_as;
    const bool is_borrowed =
        !m->group->is_product_of_bytes && !is_rounded && m->graph->tensors[kernel].data;
    void *values = NULL;
    dnnl_memory_desc_t given = NULL;
    TRY_DNNL_OUT("describe", p->name, describe_given(&given, m, kernel));
    if (!is_borrowed)
        TRY_OUT(values_of(&values, m, kernel));
    if (is_rounded)
        round_values(values, hwnas_tensor_count(&m->graph->tensors[kernel]));
    TRY_OUT(hwnas_onednn_primitive_add_weights(
        p, DNNL_ARG_WEIGHTS, dnnl_primitive_desc_query_md(m->desc, dnnl_query_weights_md, 0),
        is_borrowed ? m->graph->tensors[kernel].data : values, given));
out:
    dnnl_memory_desc_destroy(given);
    free(values);
    return status;
}

static hwnas_status add_bias(const maker *m, hwnas_onednn_primitive *p)
{
    hwnas_status status = HWNAS_OK;
    const int bias = m->group->bias;
    void *values = NULL;
    TRY_OUT(values_of(&values, m, bias));
    for (int64_t i = 0, n = hwnas_tensor_count(&m->graph->tensors[bias]); i < n; i++)
        ((float *)values)[i] /= m->bytes.unit;
    TRY_OUT(hwnas_onednn_primitive_add_weights(p, DNNL_ARG_BIAS, m->bias, values, m->bias));
out:
    free(values);
    return status;
}

/* One factor and one offset for each channel, as kernel and bias. */
static hwnas_status add_norm(const maker *m, hwnas_onednn_primitive *p)
{
    hwnas_status status = HWNAS_OK;
    const size_t channels = (size_t)hwnas_node_output(m->graph, m->root)->dims[1];
    double *exact = hwnas_alloc(2 * channels * sizeof *exact);
    float *factors = hwnas_alloc(2 * channels * sizeof *factors), *offsets = factors + channels;
    dnnl_memory_desc_t given = NULL;
    hwnas_batch_norm_values(exact, exact + channels, m->graph, m->root);
    for (size_t i = 0; i < 2 * channels; i++)
        factors[i] = (float)exact[i];
    TRY_DNNL_OUT("describe", p->name, describe_given(&given, m, m->root->inputs[1]));
    TRY_OUT(hwnas_onednn_primitive_add_weights(
        p, DNNL_ARG_WEIGHTS, dnnl_primitive_desc_query_md(m->desc, dnnl_query_weights_md, 0),
        factors, given));
    TRY_OUT(hwnas_onednn_primitive_add_weights(p, DNNL_ARG_BIAS, m->bias, offsets, m->bias));
out:
    dnnl_memory_desc_destroy(given);
    free(factors);
    free(exact);
    return status;
}

hwnas_status hwnas_onednn_add_constants(const maker *m, hwnas_onednn_primitive *p)
{
    if (m->root->op->id == HWNAS_OP_BATCH_NORM)
        return add_norm(m, p);
    if (m->weights)
        TRY(add_kernel(m, p));
    if (m->bias)
        TRY(add_bias(m, p));
    return hwnas_onednn_requantize_add(&m->bytes, p);
}
