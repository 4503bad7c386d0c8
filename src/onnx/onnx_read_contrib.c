/* onnx_read_contrib.c: operators of ONNX Runtime's own, as its optimiser writes them in the place
 * of several of ONNX's. */
#include <math.h>
#include <string.h>

#include "onnx/onnx_build.h"

typedef hwnas_onnx_builder builder;

/* ---- gates ---- */

/* Gelu, BiasGelu and FastGelu, which is that by tanh; a second input is added before. */
hwnas_status hwnas_onnx_read_contrib_gelu(int *out, hwnas_onnx_reader *r,
                                          const Onnx__NodeProto *node, const char *name)
{
    const hwnas_attr by_tanh = hwnas_attr_int(!strcmp(node->op_type, "FastGelu"));
    builder b;
    int x;
    TRY(hwnas_onnx_build(&b, &x, r, node, name));
    if (hwnas_onnx_has_input(node, 1))
        x = hwnas_onnx_make(&b, HWNAS_OP_ADD, NULL, x, hwnas_onnx_build_input(&b, 1));
    return hwnas_onnx_built(out, &b, hwnas_onnx_make(&b, HWNAS_OP_GELU, &by_tanh, x, -1));
}

/* QuickGelu and Swish: x times the sigmoid of alpha x. */
hwnas_status hwnas_onnx_read_swish(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                   const char *name)
{
    const bool is_quick = !strcmp(node->op_type, "QuickGelu");
    /* As a float, which ONNX Runtime computes with. */
    const double alpha = hwnas_onnx_float(node, "alpha", is_quick ? (double)1.702F : 1);
    builder b;
    int x, gate;
    TRY(hwnas_onnx_build(&b, &x, r, node, name));
    gate = x;
    if (alpha != 1)
        gate =
            hwnas_onnx_make(&b, HWNAS_OP_MUL, NULL, x, hwnas_onnx_number(&b, alpha, HWNAS_FLOAT32));
    gate = hwnas_onnx_make(&b, HWNAS_OP_SIGMOID, NULL, gate, -1);
    return hwnas_onnx_built(out, &b, hwnas_onnx_make(&b, HWNAS_OP_MUL, NULL, x, gate));
}

/* ---- norms ---- */

/* SkipLayerNormalization and SkipSimplifiedLayerNormalization: a norm of the sum of two tensors and
 * a bias, and that sum. SimplifiedLayerNormalization: by the mean square. */
hwnas_status hwnas_onnx_read_skip_norm(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                       const char *name)
{
    enum { SUM = 3 }; /* output */
    const bool is_simple = strstr(node->op_type, "Simplified") != NULL;
    const bool has_skip = !strncmp(node->op_type, "Skip", 4);
    const size_t scale = has_skip ? 2 : 1, shift = 3, bias = is_simple ? 3 : 4;
    const hwnas_attr attrs[] = {
        hwnas_attr_int(hwnas_onnx_int(node, "axis", -1)),
        hwnas_attr_number(hwnas_onnx_float(node, "epsilon", has_skip ? 1e-12 : 1e-5)),
        {0}};
    builder b;
    int inputs[3], n = 2;
    TRY(hwnas_onnx_build(&b, &inputs[0], r, node, name));
    if (has_skip) {
        inputs[0] =
            hwnas_onnx_make(&b, HWNAS_OP_ADD, NULL, inputs[0], hwnas_onnx_build_input(&b, 1));
        if (hwnas_onnx_has_input(node, bias))
            inputs[0] = hwnas_onnx_make(&b, HWNAS_OP_ADD, NULL, inputs[0],
                                        hwnas_onnx_build_input(&b, bias));
    }
    inputs[1] = hwnas_onnx_build_input(&b, scale);
    if (has_skip && !is_simple && hwnas_onnx_has_input(node, shift))
        inputs[n++] = hwnas_onnx_build_input(&b, shift);
    if (has_skip && hwnas_onnx_is_read(r, node, SUM) && b.status == HWNAS_OK)
        TRY(hwnas_onnx_give(r, node->output[SUM], inputs[0]));
    const int x = hwnas_onnx_make_n(&b, is_simple ? HWNAS_OP_RMS_NORM : HWNAS_OP_LAYER_NORM, attrs,
                                    n, inputs);
    return hwnas_onnx_built(out, &b, x);
}

/* ---- products ---- */

static int transpose_last(builder *b, int x)
{
    int64_t order[HWNAS_MAX_RANK];
    const int rank = hwnas_onnx_tensor(b, x).rank;
    for (int i = 0; i < rank; i++)
        order[i] = i;
    if (rank >= 2) { /* of a vector nothing changes */
        order[rank - 2] = rank - 1;
        order[rank - 1] = rank - 2;
    }
    return hwnas_onnx_transpose(b, x, rank, order);
}

/* alpha A B, with the last two dimensions of A or B swapped. */
hwnas_status hwnas_onnx_read_fused_matmul(int *out, hwnas_onnx_reader *r,
                                          const Onnx__NodeProto *node, const char *name)
{
    static const char *const refused[] = {"transBatchA", "transBatchB"};
    const double alpha = hwnas_onnx_float(node, "alpha", 1);
    builder b;
    int x;
    TRY(hwnas_onnx_build(&b, &x, r, node, name));
    int y = hwnas_onnx_build_input(&b, 1);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (hwnas_onnx_int(node, refused[i], 0))
            hwnas_onnx_refuse(&b, refused[i], "has a value that we cannot compute");
    if (hwnas_onnx_tensor(&b, x).rank < 2 || hwnas_onnx_tensor(&b, y).rank < 2)
        hwnas_onnx_refuse(&b, "input", "is a vector, which we do not multiply here");
    if (hwnas_onnx_int(node, "transA", 0))
        x = transpose_last(&b, x);
    if (hwnas_onnx_int(node, "transB", 0))
        y = transpose_last(&b, y);
    x = hwnas_onnx_make(&b, HWNAS_OP_MATMUL, NULL, x, y);
    if (alpha != 1)
        x = hwnas_onnx_make(&b, HWNAS_OP_MUL, NULL, x, hwnas_onnx_number(&b, alpha, HWNAS_FLOAT32));
    return hwnas_onnx_built(out, &b, x);
}

/* ---- a convolution or product, and the activation behind it ---- */

enum { N_PARAMETERS = 2 };

/* Those of a FusedConv in a list, of a FusedGemm by name; `absent` where there are none. */
static void read_parameters(double *out, const Onnx__NodeProto *node, const double *absent)
{
    static const char *const names[N_PARAMETERS] = {"activation_alpha", "activation_beta"};
    const Onnx__AttributeProto *list = hwnas_onnx_attribute(node, "activation_params");
    for (size_t i = 0; i < N_PARAMETERS; i++)
        out[i] = list && i < list->n_floats ? (double)list->floats[i]
                                            : hwnas_onnx_float(node, names[i], absent[i]);
}

static int activate(builder *b, int x)
{
    static const struct {
        const char *name;
        hwnas_op_id op;
        int n; /* parameters */
        double absent[N_PARAMETERS];
    } known[] = {
        {"Relu", HWNAS_OP_RELU, 0, {0}},
        {"Sigmoid", HWNAS_OP_SIGMOID, 0, {0}},
        {"Tanh", HWNAS_OP_TANH, 0, {0}},
        {"LeakyRelu", HWNAS_OP_LEAKY_RELU, 1, {0.01}},
        {"Clip", HWNAS_OP_CLIP, 2, {-(double)HUGE_VALF, (double)HUGE_VALF}},
        {"HardSigmoid", HWNAS_OP_HARD_SIGMOID, 2, {0.2, 0.5}},
    };
    double parameters[N_PARAMETERS];
    if (!hwnas_onnx_attribute(b->node, "activation"))
        return x;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!hwnas_onnx_is_word(b->node, "activation", known[i].name, false))
            continue;
        read_parameters(parameters, b->node, known[i].absent);
        const hwnas_attr attrs[] = {hwnas_attr_number(parameters[0]),
                                    hwnas_attr_number(parameters[1])};
        return hwnas_onnx_make(b, known[i].op, known[i].n ? attrs : NULL, x, -1);
    }
    hwnas_onnx_refuse(b, "activation", "is one that we cannot compute");
    return x;
}

/* The node without what ONNX's own operator `type` does not have. The attributes go into `kept`. */
static Onnx__NodeProto without_activation(const Onnx__NodeProto *node, char *type,
                                          Onnx__AttributeProto **kept)
{
    enum { MOST_INPUTS = 3 };
    Onnx__NodeProto plain = *node;
    plain.op_type = type;
    plain.domain = NULL;
    plain.n_input = node->n_input < MOST_INPUTS ? node->n_input : MOST_INPUTS;
    plain.attribute = kept;
    plain.n_attribute = 0;
    for (size_t i = 0; i < node->n_attribute; i++)
        if (!node->attribute[i]->name || strncmp(node->attribute[i]->name, "activation", 10))
            kept[plain.n_attribute++] = node->attribute[i];
    return plain;
}

/* FusedConv, which may add a fourth input before the activation, and FusedGemm. */
hwnas_status hwnas_onnx_read_fused(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                   const char *name)
{
    enum { SUMMAND = 3 };
    const bool is_conv = !strcmp(node->op_type, "FusedConv");
    char type[8];
    builder b;
    int x = HWNAS_ONNX_NOT_MADE, first;
    strcpy(type, is_conv ? "Conv" : "Gemm");
    Onnx__AttributeProto **kept =
        hwnas_arena_alloc(r->graph->arena, (node->n_attribute + 1) * sizeof *kept);
    const Onnx__NodeProto plain = without_activation(node, type, kept);
    TRY(hwnas_onnx_read_as(&x, r, &plain, hwnas_arena_printf(r->graph->arena, "%s.product", name)));
    TRY(hwnas_onnx_build(&b, &first, r, node, name));
    if (is_conv && hwnas_onnx_has_input(node, SUMMAND))
        x = hwnas_onnx_make(&b, HWNAS_OP_ADD, NULL, x, hwnas_onnx_build_input(&b, SUMMAND));
    return hwnas_onnx_built(out, &b, activate(&b, x));
}
