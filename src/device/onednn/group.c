/* group.c: operators as post-operations. */
#include "device/onednn/group.h"

#include "device/onednn/onednn.h"

/* `alpha` and `beta`: attributes of functions, or what is given. */
static const struct row {
    bool is_binary;
    dnnl_alg_kind_t alg;
    const char *alpha_name, *beta_name;
    float alpha, beta;
} rows[HWNAS_N_OPS + 1] = {
    /* the last one: operators of other programs */
    [HWNAS_OP_ABS] = {.alg = dnnl_eltwise_abs},
    [HWNAS_OP_ADD] = {true, dnnl_binary_add},
    [HWNAS_OP_CLIP] = {false, dnnl_eltwise_clip, "low", "high"},
    [HWNAS_OP_DIV] = {true, dnnl_binary_div},
    [HWNAS_OP_ELU] = {false, dnnl_eltwise_elu, "alpha"},
    [HWNAS_OP_EXP] = {.alg = dnnl_eltwise_exp},
    [HWNAS_OP_GELU] = {.alg = dnnl_eltwise_gelu_erf},
    [HWNAS_OP_HARD_SIGMOID] = {false, dnnl_eltwise_hardsigmoid, "alpha", "beta"},
    [HWNAS_OP_HARD_SWISH] = {.alg = dnnl_eltwise_hardswish, .alpha = 1.0f / 6, .beta = 0.5f},
    [HWNAS_OP_LEAKY_RELU] = {false, dnnl_eltwise_relu, "alpha"},
    [HWNAS_OP_MISH] = {.alg = dnnl_eltwise_mish},
    [HWNAS_OP_MUL] = {true, dnnl_binary_mul},
    [HWNAS_OP_RELU] = {.alg = dnnl_eltwise_relu},
    [HWNAS_OP_SIGMOID] = {.alg = dnnl_eltwise_logistic},
    [HWNAS_OP_SQRT] = {.alg = dnnl_eltwise_sqrt},
    [HWNAS_OP_SUB] = {true, dnnl_binary_sub},
    [HWNAS_OP_TANH] = {.alg = dnnl_eltwise_tanh},
};

static float attr_or(const hwnas_node *node, const char *name, float otherwise)
{
    return name ? (float)hwnas_node_attr(node, name)->number : otherwise;
}

bool hwnas_onednn_function(hwnas_onednn_post *out, const hwnas_node *node)
{
    const struct row *row = &rows[node->op->id];
    if (row->alg == dnnl_alg_kind_undef || row->is_binary)
        return false;
    *out = (hwnas_onednn_post){row->alg, attr_or(node, row->alpha_name, row->alpha),
                               attr_or(node, row->beta_name, row->beta), -1, false};
    if (node->op->id == HWNAS_OP_GELU && hwnas_node_attr(node, "tanh")->ints[0])
        out->alg = dnnl_eltwise_gelu_tanh;
    return true;
}

bool hwnas_onednn_binary(dnnl_alg_kind_t *out, const hwnas_node *node)
{
    const struct row *row = &rows[node->op->id];
    if (row->is_binary)
        *out = row->alg;
    return row->is_binary;
}

bool hwnas_onednn_is_elementwise(const hwnas_node *node)
{
    return rows[node->op->id].alg != dnnl_alg_kind_undef;
}

bool hwnas_onednn_ends_at_avx2(void)
{
#if defined __x86_64__
    const unsigned isa = dnnl_get_effective_cpu_isa();
    return (isa & dnnl_cpu_isa_avx2) == dnnl_cpu_isa_avx2 &&
           (isa & dnnl_cpu_isa_avx512_core) != dnnl_cpu_isa_avx512_core;
#else
    return false;
#endif
}

/* With AVX2 alone oneDNN 3.7 has no matmul for weights that are packed beforehand: that of floats
 * packs them in each run, and that of signed bytes takes up to 150 times as long as a convolution.
 * A norm of rows is a convolution everywhere. */
bool hwnas_onednn_is_by_conv(const hwnas_onednn_source *source, const hwnas_onednn_group *group)
{
    const hwnas_node *root = &source->graph->nodes[group->chain.nodes[0]];
    if (root->op->id == HWNAS_OP_BATCH_NORM)
        return hwnas_node_output(source->graph, root)->rank == 2;
    if ((root->op->id != HWNAS_OP_LINEAR && root->op->id != HWNAS_OP_MATMUL) ||
        !hwnas_onednn_ends_at_avx2())
        return false;
    const hwnas_tensor *in = hwnas_node_input(source->graph, root, 0);
    const bool has_rows = in->rank && in->dims[in->rank - 1] < hwnas_tensor_count(in);
    return (group->is_product_of_bytes && !hwnas_onednn_is_native(HWNAS_S8)) ||
           (has_rows && source->kept[group->reads[0]] == dnnl_f32);
}
