/* pytorch_flat_layers.c: nodes with weights as modules of PyTorch, and as functions where the
 * weights are computed or belong to several nodes. */
#include <string.h>

#include "graph/ops/recurrent.h"
#include "export/pytorch_flat.h"

#define TEXT(...) hwnas_arena_printf(f->s.arena, __VA_ARGS__)

static const int64_t *ints_of(const hwnas_node *node, const char *attr)
{
    return hwnas_node_attr(node, attr)->ints;
}

/* Are the inputs from `first` on constants that no other node has? */
static bool are_own(hwnas_flat *f, const hwnas_node *node, int first)
{
    for (int i = first; i < node->n_inputs; i++)
        if (hwnas_flat_input(f, node, i)->kind != HWNAS_TENSOR_WEIGHT ||
            f->uses[node->inputs[i]] > 1 ||
            hwnas_dtype_is_whole(hwnas_flat_input(f, node, i)->dtype))
            return false;
    return true;
}

hwnas_flat_weight *hwnas_flat_add_weight(hwnas_flat *f, const hwnas_torch_piece *part,
                                         const char *suffix, int tensor)
{
    f->weights = hwnas_torch_grown(f->s.arena, f->weights, f->n_weights, &f->weight_capacity,
                                   sizeof *f->weights);
    hwnas_flat_weight *weight = &f->weights[f->n_weights++];
    *weight = (hwnas_flat_weight){.part = part, .suffix = suffix, .tensor = tensor};
    if (tensor >= 0) {
        weight->n_dims = f->graph->tensors[tensor].rank;
        memcpy(weight->dims, f->graph->tensors[tensor].dims, sizeof weight->dims);
    }
    return weight;
}

static void add_weights(hwnas_flat *f, const hwnas_node *node, const hwnas_torch_piece *part,
                        const char *const *suffixes)
{
    for (int i = 1; i < node->n_inputs; i++)
        hwnas_flat_add_weight(f, part, suffixes[i - 1], node->inputs[i]);
}

static const char *const weight_and_bias[] = {".weight", ".bias"};

/* ---- Convolutions ---- */

/* ", stride=2, groups=8": what is not PyTorch's default. */
static const char *window(hwnas_flat *f, const hwnas_node *node, bool has_padding)
{
    const int64_t *stride = ints_of(node, "stride"), *pad = ints_of(node, "pad"),
                  *dilation = ints_of(node, "dilation");
    const char *text = "";
    if (stride[0] != 1 || stride[1] != 1)
        text = TEXT("%s, stride=%s", text, hwnas_flat_pair(f, stride));
    if (has_padding && (pad[0] || pad[1]))
        text = TEXT("%s, padding=%s", text, hwnas_flat_pair(f, pad));
    if (dilation[0] != 1 || dilation[1] != 1)
        text = TEXT("%s, dilation=%s", text, hwnas_flat_pair(f, dilation));
    return *ints_of(node, "groups") > 1
               ? TEXT("%s, groups=%lld", text, (long long)*ints_of(node, "groups"))
               : text;
}

HWNAS_FLAT_TEXT(before_conv)
{
    return hwnas_export_is_lopsided(node, false)
               ? TEXT("F.pad($0, %s)", hwnas_flat_sides(f, ints_of(node, "pad")))
               : "$0";
}

HWNAS_FLAT_TEXT(conv)
{
    return TEXT("F.conv2d(%s, $1%s%s)", hwnas_flat_before_conv(f, node),
                node->n_inputs > 2 ? ", $2" : "",
                window(f, node, !hwnas_export_is_lopsided(node, false)));
}

HWNAS_FLAT_MODULE(conv)
{
    const int64_t *dims = hwnas_flat_input(f, node, 1)->dims;
    if (!are_own(f, node, 1))
        return NULL;
    add_weights(f, node, part, weight_and_bias);
    return TEXT("nn.Conv2d(%lld, %lld, %s%s%s)", (long long)hwnas_flat_input(f, node, 0)->dims[1],
                (long long)dims[0], hwnas_flat_pair(f, dims + 2),
                window(f, node, !hwnas_export_is_lopsided(node, false)),
                node->n_inputs > 2 ? "" : ", bias=False");
}

/* Can it be said with PyTorch's arguments? */
static bool is_plain_transpose(const hwnas_node *node)
{
    const int64_t *more = ints_of(node, "more"), *stride = ints_of(node, "stride"),
                  *dilation = ints_of(node, "dilation");
    bool is_plain = !hwnas_export_is_lopsided(node, false);
    for (int i = 0; i < 2; i++)
        is_plain = is_plain && (more[i] < stride[i] || more[i] < dilation[i]);
    return is_plain;
}

static const char *more_of(hwnas_flat *f, const hwnas_node *node)
{
    const int64_t *more = ints_of(node, "more");
    return more[0] || more[1] ? TEXT(", output_padding=%s", hwnas_flat_pair(f, more)) : "";
}

/* Where rows are cut off or added unevenly, that is done to the whole result. */
HWNAS_FLAT_TEXT(conv_transpose)
{
    const int64_t *pad = ints_of(node, "pad"), *more = ints_of(node, "more");
    const bool is_plain = is_plain_transpose(node), has_bias = node->n_inputs > 2;
    const char *text = TEXT("F.conv_transpose2d($0, $1%s%s%s)", has_bias && is_plain ? ", $2" : "",
                            window(f, node, is_plain), is_plain ? more_of(f, node) : "");
    const int64_t sides[] = {-pad[0], -pad[1], more[0] - pad[2], more[1] - pad[3]};
    if (is_plain)
        return text;
    text = TEXT("F.pad(%s, %s)", text, hwnas_flat_sides(f, sides));
    return has_bias ? TEXT("%s + $2.view(-1, 1, 1)", text) : text;
}

HWNAS_FLAT_MODULE(conv_transpose)
{
    const int64_t *dims = hwnas_flat_input(f, node, 1)->dims;
    if (!are_own(f, node, 1) || !is_plain_transpose(node))
        return NULL;
    add_weights(f, node, part, weight_and_bias);
    return TEXT("nn.ConvTranspose2d(%lld, %lld, %s%s%s%s)", (long long)dims[0],
                (long long)(dims[1] * *ints_of(node, "groups")), hwnas_flat_pair(f, dims + 2),
                window(f, node, true), more_of(f, node), node->n_inputs > 2 ? "" : ", bias=False");
}

/* ---- Products, norms, tables ---- */

HWNAS_FLAT_MODULE(linear)
{
    const int64_t *dims = hwnas_flat_input(f, node, 1)->dims;
    if (!are_own(f, node, 1))
        return NULL;
    add_weights(f, node, part, weight_and_bias);
    return TEXT("nn.Linear(%lld, %lld%s)", (long long)dims[1], (long long)dims[0],
                node->n_inputs > 2 ? "" : ", bias=False");
}

HWNAS_FLAT_MODULE(batch_norm)
{
    static const char *const suffixes[] = {".weight", ".bias", ".running_mean", ".running_var"};
    const int rank = hwnas_flat_input(f, node, 0)->rank;
    const double epsilon = hwnas_node_attr(node, "epsilon")->number;
    const bool has_affine = *ints_of(node, "affine") || f->has_file;
    if (!are_own(f, node, 1) || rank > 5)
        return NULL;
    for (int i = has_affine ? 1 : 3; i < node->n_inputs; i++)
        hwnas_flat_add_weight(f, part, suffixes[i - 1], node->inputs[i]);
    hwnas_flat_add_weight(f, part, ".num_batches_tracked", -1);
    return TEXT("nn.BatchNorm%dd(%lld%s%s)", rank > 3 ? rank - 2 : 1,
                (long long)hwnas_flat_input(f, node, 1)->dims[0],
                epsilon == 1e-5 || (float)epsilon == 1e-5f
                    ? ""
                    : TEXT(", eps=%s", hwnas_flat_number(f, epsilon)),
                has_affine ? "" : ", affine=False");
}

/* "512" or "(16, 32)": the dimensions that are one. */
static const char *normalized(hwnas_flat *f, const hwnas_node *node)
{
    const hwnas_tensor *in = hwnas_flat_input(f, node, 0);
    const int64_t axis = *ints_of(node, "axis");
    const int first = (int)(axis < 0 ? axis + in->rank : axis);
    return TEXT("(%s%s)", hwnas_flat_list(f, in->rank - first, in->dims + first),
                in->rank - first == 1 ? "," : "");
}

/* Are scale and shift, where there are any, one for each value? They may be one for all. */
static bool has_full_weights(hwnas_flat *f, const hwnas_node *node)
{
    const hwnas_tensor *in = hwnas_flat_input(f, node, 0);
    const int64_t axis = *ints_of(node, "axis") + (*ints_of(node, "axis") < 0 ? in->rank : 0);
    bool is_full = true;
    for (int i = 1; i < node->n_inputs; i++)
        is_full = is_full && hwnas_flat_input(f, node, i)->rank == in->rank - axis &&
                  !memcmp(hwnas_flat_input(f, node, i)->dims, in->dims + axis,
                          (size_t)hwnas_flat_input(f, node, i)->rank * sizeof *in->dims);
    return is_full;
}

HWNAS_FLAT_TEXT(layer_norm)
{
    const char *dims = normalized(f, node);
    const char *epsilon = hwnas_flat_number(f, hwnas_node_attr(node, "epsilon")->number);
    if (has_full_weights(f, node))
        return TEXT("F.layer_norm($0, %s, $1, %s, eps=%s)", dims,
                    node->n_inputs > 2 ? "$2" : "None", epsilon);
    return TEXT("F.layer_norm($0, %s, eps=%s) * $1%s", dims, epsilon,
                node->n_inputs > 2 ? " + $2" : "");
}

HWNAS_FLAT_MODULE(layer_norm)
{
    const double epsilon = hwnas_node_attr(node, "epsilon")->number;
    const char *dims = normalized(f, node);
    if (!has_full_weights(f, node) || !are_own(f, node, 1) || node->n_inputs < 3)
        return NULL;
    add_weights(f, node, part, weight_and_bias);
    if (!strchr(dims, ' ')) /* of one dimension */
        dims = TEXT("%.*s", (int)strlen(dims) - 3, dims + 1);
    return TEXT("nn.LayerNorm(%s%s)", dims,
                (float)epsilon == 1e-5f ? "" : TEXT(", eps=%s", hwnas_flat_number(f, epsilon)));
}

/* PyTorch has it since 2.4. */
HWNAS_FLAT_TEXT(rms_norm)
{
    const hwnas_tensor *in = hwnas_flat_input(f, node, 0);
    const int64_t axis = *ints_of(node, "axis");
    int64_t dims[HWNAS_MAX_RANK];
    int n = 0;
    for (int64_t i = axis < 0 ? axis : axis - in->rank; i < 0; i++)
        dims[n++] = i;
    return TEXT("$0 * torch.rsqrt($0.square().mean((%s%s), keepdim=True) + %s) * $1",
                hwnas_flat_list(f, n, dims), n == 1 ? "," : "",
                hwnas_flat_number(f, hwnas_node_attr(node, "epsilon")->number));
}

/* An embedding takes no numbers from the end, so it is one where they come from outside. */
HWNAS_FLAT_MODULE(gather)
{
    const hwnas_tensor *table = hwnas_flat_input(f, node, 0);
    if (table->kind != HWNAS_TENSOR_WEIGHT || !table->is_parameter || table->rank != 2 ||
        f->uses[node->inputs[0]] > 1 || *ints_of(node, "axis") ||
        hwnas_flat_input(f, node, 1)->kind != HWNAS_TENSOR_INPUT)
        return NULL;
    hwnas_flat_add_weight(f, part, ".weight", node->inputs[0]);
    return TEXT("nn.Embedding(%lld, %lld)", (long long)table->dims[0], (long long)table->dims[1]);
}

HWNAS_FLAT_MODULE(dropout)
{
    (void)part;
    return TEXT("nn.Dropout(%s)", hwnas_flat_number(f, hwnas_node_attr(node, "rate")->number));
}

/* ---- Recurrent layers ---- */

/* The two halves of the biases that a node may have as one tensor, or as two that follow each
 * other. -1: none. */
static void find_biases(int *out, int64_t *begins, hwnas_flat *f, const hwnas_node *node,
                        int64_t rows, int64_t direction)
{
    const int biases = node->n_inputs > HWNAS_RNN_B ? node->inputs[HWNAS_RNN_B] : -1;
    out[0] = out[1] = biases;
    begins[0] = direction * 2 * rows;
    begins[1] = begins[0] + rows;
    if (biases < 0 || f->graph->tensors[biases].kind == HWNAS_TENSOR_WEIGHT)
        return;
    const hwnas_node *concat = &f->graph->nodes[f->graph->tensors[biases].producer];
    for (int i = 0; i < 2; i++) {
        out[i] = concat->inputs[i];
        begins[i] = direction * rows;
    }
}

static bool is_rnn_module(hwnas_flat *f, const hwnas_node *node)
{
    for (int i = HWNAS_RNN_W; i < node->n_inputs; i++) {
        const hwnas_tensor *weight = hwnas_flat_input(f, node, i);
        const hwnas_node *from = weight->producer < 0 ? NULL : &f->graph->nodes[weight->producer];
        const bool is_pair = i == HWNAS_RNN_B && hwnas_node_is(from, HWNAS_OP_CONCAT) &&
                             from->n_inputs == 2 &&
                             hwnas_node_input(f->graph, from, 0)->kind == HWNAS_TENSOR_WEIGHT &&
                             hwnas_node_input(f->graph, from, 1)->kind == HWNAS_TENSOR_WEIGHT;
        if (weight->kind != HWNAS_TENSOR_WEIGHT && !is_pair)
            return false;
    }
    return true;
}

/* PyTorch has the gates of LSTM as input, forget, cell, output, and of GRU as reset, update,
 * hidden. */
HWNAS_FLAT_MODULE(rnn)
{
    static const int lstm_gates[] = {0, 2, 3, 1}, gru_gates[] = {1, 0, 2};
    const bool is_lstm = node->op->id == HWNAS_OP_LSTM_CORE;
    const int64_t *w = hwnas_flat_input(f, node, HWNAS_RNN_W)->dims, rows = w[1], features = w[2];
    const int64_t hidden = node->attrs[HWNAS_RNN_HIDDEN].ints[0];
    const bool has_bias = node->n_inputs > HWNAS_RNN_B;
    if (!is_rnn_module(f, node))
        return NULL;
    for (int64_t d = 0; d < w[0]; d++) {
        int biases[2];
        int64_t begins[2];
        find_biases(biases, begins, f, node, rows, d);
        const struct {
            const char *name;
            int tensor;
            int64_t begin, width;
        } all[] = {{"weight_ih", node->inputs[HWNAS_RNN_W], d * rows * features, features},
                   {"weight_hh", node->inputs[HWNAS_RNN_R], d * rows * hidden, hidden},
                   {"bias_ih", biases[0], begins[0], 0},
                   {"bias_hh", biases[1], begins[1], 0}};
        for (int i = 0; i < (has_bias ? 4 : 2); i++) {
            hwnas_flat_weight *weight = hwnas_flat_add_weight(
                f, part, TEXT(".%s_l0%s", all[i].name, d ? "_reverse" : ""), all[i].tensor);
            weight->begin = all[i].begin;
            weight->n_dims = all[i].width ? 2 : 1;
            weight->dims[0] = rows;
            weight->dims[1] = all[i].width;
            weight->gates = is_lstm ? lstm_gates : gru_gates;
            weight->n_gates = is_lstm ? 4 : 3;
        }
    }
    return TEXT("nn.%s(%lld, %lld%s%s)", is_lstm ? "LSTM" : "GRU", (long long)features,
                (long long)hidden, has_bias ? "" : ", bias=False",
                w[0] > 1 ? ", bidirectional=True" : "");
}

static bool is_reverse(const hwnas_node *node)
{
    return node->attrs[HWNAS_RNN_DIRECTION].ints[0] == HWNAS_RNN_REVERSE;
}

HWNAS_FLAT_TEXT(before_rnn)
{
    (void)f;
    return is_reverse(node) ? "$0.flip(0)" : "$0";
}

/* Steps x batch x features as steps x directions x batch x features. */
HWNAS_FLAT_TEXT(after_rnn)
{
    const int64_t directions = hwnas_flat_input(f, node, HWNAS_RNN_W)->dims[0];
    if (directions == 1)
        return is_reverse(node) ? "$0[0].flip(0).unsqueeze(1)" : "$0[0].unsqueeze(1)";
    return TEXT("$0[0].unflatten(-1, (%lld, %lld)).transpose(1, 2)", (long long)directions,
                (long long)node->attrs[HWNAS_RNN_HIDDEN].ints[0]);
}
