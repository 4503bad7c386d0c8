/* onnx_read_matrix.c: matrix products and recurrent layers that are written in other ways than
 * ours, and sums of many. */
#include <string.h>

#include "onnx/onnx_reader.h"

static hwnas_status add_scalar(int *out, hwnas_onnx_reader *r, const char *name, const char *suffix,
                               double value)
{
    const float narrowed = (float)value;
    return hwnas_graph_add_constant(out, r->graph,
                                    hwnas_arena_printf(r->graph->arena, "%s.%s", name, suffix), 0,
                                    NULL, &narrowed);
}

static hwnas_status scale(int *tensor, hwnas_onnx_reader *r, const char *name, const char *suffix,
                          double factor)
{
    int inputs[] = {*tensor, -1};
    if (factor == 1)
        return HWNAS_OK;
    TRY(add_scalar(&inputs[1], r, name, hwnas_arena_printf(r->graph->arena, "%s_by", suffix),
                   factor));
    return hwnas_onnx_add(tensor, r, HWNAS_OP_MUL, name, suffix, NULL, 2, inputs);
}

static hwnas_status transpose(int *tensor, hwnas_onnx_reader *r, const char *name,
                              const char *suffix)
{
    const hwnas_attr order = {.is_set = true, .n = 2, .ints = {1, 0}};
    const int input = *tensor;
    return hwnas_onnx_add(tensor, r, HWNAS_OP_TRANSPOSE, name, suffix, &order, 1, &input);
}

/* alpha A B + beta C, with A or B transposed; x W^T + b is `linear`. */
hwnas_status hwnas_onnx_read_gemm(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                  const char *name)
{
    const double alpha = hwnas_onnx_float(node, "alpha", 1),
                 beta = hwnas_onnx_float(node, "beta", 1);
    const bool has_c = hwnas_onnx_has_input(node, 2);
    int inputs[2], c = -1;
    TRY(hwnas_onnx_input(&inputs[0], r, node, 0));
    TRY(hwnas_onnx_input(&inputs[1], r, node, 1));
    if (has_c) {
        TRY(hwnas_onnx_input(&c, r, node, 2));
        TRY(hwnas_onnx_fold(r, c)); /* whole numbers of a scale */
    }
    const hwnas_tensor *w = &r->graph->tensors[inputs[1]],
                       *b = has_c ? &r->graph->tensors[c] : NULL;
    const bool has_kernel =
        w->kind == HWNAS_TENSOR_WEIGHT || hwnas_onnx_is_low_kernel(r, inputs[1]);
    const bool is_linear = has_kernel && alpha == 1 &&
                           hwnas_onnx_int(node, "transB", 0) && !hwnas_onnx_int(node, "transA", 0);
    if (is_linear && (!b || (beta == 1 && b->kind == HWNAS_TENSOR_WEIGHT && b->rank == 1 &&
                             b->dims[0] == w->dims[0])))
        return HWNAS_OK;
    if (hwnas_onnx_int(node, "transA", 0))
        TRY(transpose(&inputs[0], r, name, "a"));
    if (hwnas_onnx_int(node, "transB", 0))
        TRY(transpose(&inputs[1], r, name, "b"));
    TRY(hwnas_onnx_add(out, r, HWNAS_OP_MATMUL, name, has_c || alpha != 1 ? "product" : NULL, NULL,
                       2, inputs));
    TRY(scale(out, r, name, has_c ? "alpha" : NULL, alpha));
    if (!has_c)
        return HWNAS_OK;
    TRY(scale(&c, r, name, "beta", beta));
    const int terms[] = {*out, c};
    return hwnas_onnx_add(out, r, HWNAS_OP_ADD, name, NULL, NULL, 2, terms);
}

/* A vector is a matrix of one row or one column, whose dimension is taken away again. */
hwnas_status hwnas_onnx_read_matmul(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                    const char *name)
{
    int inputs[2];
    bool is_vector[2];
    for (int i = 0; i < 2; i++) {
        TRY(hwnas_onnx_input(&inputs[i], r, node, (size_t)i));
        is_vector[i] = r->graph->tensors[inputs[i]].rank == 1;
    }
    if (!is_vector[0] && !is_vector[1])
        return HWNAS_OK;
    for (int i = 0; i < 2; i++) {
        const int64_t n = r->graph->tensors[inputs[i]].dims[0];
        const hwnas_attr shape = {.is_set = true, .n = 2, .ints = {i ? n : 1, i ? 1 : n}};
        const int input = inputs[i];
        if (is_vector[i])
            TRY(hwnas_onnx_add(&inputs[i], r, HWNAS_OP_RESHAPE, name, i ? "column" : "row", &shape,
                               1, &input));
    }
    int product;
    TRY(hwnas_onnx_add(&product, r, HWNAS_OP_MATMUL, name, "product", NULL, 2, inputs));
    const hwnas_tensor *made = &r->graph->tensors[product];
    hwnas_attr shape = {.is_set = true};
    for (int i = 0; i < made->rank; i++)
        if (!(is_vector[0] && i == made->rank - 2) && !(is_vector[1] && i == made->rank - 1))
            shape.ints[shape.n++] = made->dims[i];
    return hwnas_onnx_add(out, r, HWNAS_OP_RESHAPE, name, NULL, &shape, 1, &product);
}

/* ---- recurrent layers ---- */

bool hwnas_onnx_may_lack_output(const Onnx__NodeProto *node)
{
    return !strcmp(node->op_type, "LSTM") || !strcmp(node->op_type, "GRU") ||
           !strcmp(node->op_type, "RNN") || !strcmp(node->op_type, "TopK");
}

/* Is the input absent, or all zeros, as an initial state is that nobody gave? */
static hwnas_status is_nothing(bool *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                               size_t i)
{
    const hwnas_tensor *from = NULL;
    *out = !hwnas_onnx_has_input(node, i);
    if (*out)
        return HWNAS_OK;
    TRY(hwnas_onnx_constant(&from, r, node->input[i], hwnas_onnx_describe(node).s));
    *out = from;
    for (int64_t k = 0, n = from ? hwnas_tensor_count(from) : 0; k < n; k++)
        *out &= from->data[k] == 0;
    return HWNAS_OK;
}

/* Has each sequence all of the steps? */
static hwnas_status is_of_all_steps(bool *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                    size_t x, size_t lengths)
{
    const hwnas_tensor *from = NULL;
    int input;
    *out = !hwnas_onnx_has_input(node, lengths);
    if (*out)
        return HWNAS_OK;
    TRY(hwnas_onnx_input(&input, r, node, x));
    TRY(hwnas_onnx_constant(&from, r, node->input[lengths], hwnas_onnx_describe(node).s));
    const hwnas_tensor in = r->graph->tensors[input];
    *out = from && in.rank == 3 && hwnas_tensor_count(from) == in.dims[1];
    for (int64_t k = 0, n = from ? hwnas_tensor_count(from) : 0; k < n; k++)
        *out &= from->data[k] >= (float)in.dims[0];
    return HWNAS_OK;
}

static hwnas_status add_slice(int *out, hwnas_onnx_reader *r, const char *name, const char *suffix,
                              int input, int64_t axis, int64_t at)
{
    const hwnas_attr attrs[] = {{.is_set = true, .n = 1, .ints = {at}},
                                {.is_set = true, .n = 1, .ints = {at + 1}},
                                {.is_set = true, .n = 1, .ints = {axis}},
                                {0}};
    return hwnas_onnx_add(out, r, HWNAS_OP_SLICE, name, suffix, attrs, 1, &input);
}

/* Y_h, directions x batch x hidden: of each direction the state after its last step. */
static hwnas_status add_last_state(int *out, hwnas_onnx_reader *r, const char *name, int all,
                                   bool is_reverse)
{
    const hwnas_tensor y = r->graph->tensors[all];
    const int64_t steps = y.dims[0], directions = y.dims[1];
    int ends[2] = {all, all}, last;
    if (directions == 1) {
        TRY(add_slice(&last, r, name, "last", all, 0, is_reverse ? 0 : steps - 1));
    } else {
        const hwnas_attr axis = {.is_set = true, .n = 1, .ints = {1}};
        TRY(add_slice(&ends[0], r, name, "end", all, 0, steps - 1));
        TRY(add_slice(&ends[0], r, name, "forward", ends[0], 1, 0));
        TRY(add_slice(&ends[1], r, name, "begin", all, 0, 0));
        TRY(add_slice(&ends[1], r, name, "backward", ends[1], 1, 1));
        TRY(hwnas_onnx_add(&last, r, HWNAS_OP_CONCAT, name, "last", &axis, 2, ends));
    }
    const hwnas_attr shape = {
        .is_set = true, .n = 3, .ints = {directions, y.dims[2], y.dims[3]}};
    return hwnas_onnx_add(out, r, HWNAS_OP_RESHAPE, name, "state", &shape, 1, &last);
}

/* The core computes all states, from zeros on; the last one is a part of them. Other forms are
 * computed step by step. */
hwnas_status hwnas_onnx_read_recurrent(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                       const char *name)
{
    enum { HIDDEN, DIRECTION };                                  /* attributes of the core */
    enum { Y, Y_H, Y_C };                                        /* outputs */
    enum { X, B = 3, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLES }; /* inputs */
    static const char *const known[] = {"hidden_size", "direction", "layout", "input_forget",
                                        "linear_before_reset"};
    const bool is_gru = !strcmp(node->op_type, "GRU"),
               is_reverse = hwnas_onnx_is_word(node, "direction", "reverse", false),
               is_both = hwnas_onnx_is_word(node, "direction", "bidirectional", false);
    bool is_core = strcmp(node->op_type, "RNN") && !hwnas_onnx_int(node, "layout", 0) &&
                   !hwnas_onnx_int(node, "input_forget", 0) &&
                   (!is_gru || hwnas_onnx_int(node, "linear_before_reset", 0)) &&
                   !hwnas_onnx_is_read(r, node, Y_C); /* PyTorch names it, read or not */
    for (size_t i = 0; i < node->n_attribute; i++) {
        bool is_known = false;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            is_known |= node->attribute[i]->name && !strcmp(node->attribute[i]->name, known[k]);
        is_core &= is_known;
    }
    bool none;
    TRY(is_of_all_steps(&none, r, node, X, LENGTHS));
    is_core &= none;
    for (size_t i = INITIAL_H; i <= PEEPHOLES; i++) {
        TRY(is_nothing(&none, r, node, i));
        is_core &= none;
    }
    if (!is_core)
        return hwnas_onnx_read_steps(out, r, node, name);
    int inputs[4], n_inputs = hwnas_onnx_has_input(node, B) ? 4 : 3, all;
    for (int i = 0; i < n_inputs; i++)
        TRY(hwnas_onnx_input(&inputs[i], r, node, (size_t)i));
    const hwnas_attr attrs[] = {
        [HIDDEN] = {.is_set = true, .n = 1, .ints = {hwnas_onnx_int(node, "hidden_size", 0)}},
        [DIRECTION] = {.is_set = true,
                       .n = 1,
                       .ints = {is_reverse ? 1 : is_both ? 2 : 0}},
    };
    const bool wants_all = !is_empty(node->output[Y]);
    const bool wants_last = hwnas_onnx_is_read(r, node, Y_H);
    TRY(hwnas_onnx_add(&all, r, is_gru ? HWNAS_OP_GRU_CORE : HWNAS_OP_LSTM_CORE, name,
                       wants_all ? NULL : "states", attrs, n_inputs, inputs));
    *out = all;
    if (wants_last) {
        int last;
        TRY(add_last_state(&last, r, name, all, is_reverse));
        TRY(hwnas_onnx_give(r, node->output[Y_H], last));
    }
    return HWNAS_OK;
}

/* ---- sums of many ---- */

/* Sum, Mean, Max and Min take any number of tensors; ours take two. */
hwnas_status hwnas_onnx_read_variadic(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                      const char *name)
{
    const bool is_mean = !strcmp(node->op_type, "Mean");
    const hwnas_op_id op = !strcmp(node->op_type, "Max")   ? HWNAS_OP_MAX
                           : !strcmp(node->op_type, "Min") ? HWNAS_OP_MIN
                                                           : HWNAS_OP_ADD;
    int inputs[2];
    TRY(hwnas_onnx_input(&inputs[0], r, node, 0));
    for (size_t i = 1; i < node->n_input; i++) {
        const bool is_last = i + 1 == node->n_input && !is_mean;
        TRY(hwnas_onnx_input(&inputs[1], r, node, i));
        TRY(hwnas_onnx_add(&inputs[0], r, op, name,
                           is_last ? NULL : hwnas_arena_printf(r->graph->arena, "part%zu", i), NULL,
                           2, inputs));
    }
    *out = inputs[0];
    return is_mean ? scale(out, r, name, NULL, 1 / (double)node->n_input) : HWNAS_OK;
}
