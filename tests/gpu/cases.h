/* cases.h: a node of every operator, in the shapes and with the attributes that its kernel tells
 * apart. */
#ifndef TEST_GPU_CASES_H
#define TEST_GPU_CASES_H

#include "graph/op.h"
#include "tests/unit/attributes.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void ok(hwnas_status status)
{
    if (status != HWNAS_OK)
        fail_msg("%s: %s", hwnas_status_name(status), hwnas_last_error()->message);
}

enum { MAX_INPUTS = 5 };

/* `inputs`: "3x5x7 i:3x4" are floats and whole numbers from -3 to 2; "c:1" a constant of 0.05 or
 * so. `range`: of the floats; 0 is 1, and below 0 they are positive. */
typedef struct op_case {
    const char *op, *attrs, *inputs;
    double range;
} op_case;

static const op_case cases[] = {
    {"conv", "out=8 kernel=3 stride=2 pad=1 bias=0", "1x3x13x17", 0},
    {"conv", "out=9 kernel=5,3 stride=2,1 pad=2,1", "2x6x12x9", 0},
    {"conv", "out=12 kernel=3 pad=2 dilation=2", "1x8x7x7", 0},
    {"conv", "out=6 kernel=3 pad=1,0,0,1", "1x4x9x8", 0},
    {"conv", "out=24 kernel=3 stride=2 pad=1 groups=24", "3x24x9x9", 0},
    {"conv", "out=6 kernel=3 pad=1 groups=3", "1x9x8x8", 0},
    {"conv_transpose", "kernel=3 stride=2 pad=1 more=1", "2x6x5x7 6x4x3x3", 0},
    {"conv_transpose", "kernel=4,2 stride=2,3 pad=1,0,2,1 dilation=2,1 groups=2",
     "1x6x5x7 6x4x4x2 8", 0},
    {"conv_transpose", "kernel=3 stride=2 pad=1 more=1", "2x6x5x7 c:6x4x3x3 c:4", 0},
    {"conv_transpose", "kernel=4 stride=2 pad=1", "1x16x8x8 c:16x24x4x4", 0},
    {"batch_norm", "epsilon=0.01", "3x7x5x3", 0},
    {"max_pool", "kernel=3 stride=2 pad=1", "1x19x11x13", 0},
    {"max_pool", "kernel=5,3 stride=2,1 pad=4,2,0,1", "2x5x9x11", 0},
    {"avg_pool", "kernel=3 pad=1", "1x16x9x9", 0},
    {"avg_pool", "kernel=5,3 stride=2,1 pad=4,2,0,1 count_pad=1", "1x9x9x11", 0},
    {"global_avg_pool", "", "2x19x5x11", 0},
    {"global_avg_pool", "", "1x4x1x1", 0},
    {"relu", "", "3x5x7x9", 0},
    {"sigmoid", "", "1x33", 8},
    {"tanh", "", "3x5x7x9", 4},
    {"erf", "", "3x7x33", 3},
    {"gelu", "", "3x7x33", 4},
    {"gelu", "tanh=1", "3x7x33", 4},
    {"hard_swish", "", "3x5x7x9", 4},
    {"hard_sigmoid", "alpha=0.2 beta=0.4", "3x48x1x1", 4},
    {"clip", "low=-0.5 high=0.25", "3x5x7x9", 0},
    {"clip", "low=-inf high=inf", "1x33", 0},
    {"leaky_relu", "alpha=0.3", "1x33", 0},
    {"elu", "alpha=1.5", "3x33", 3},
    {"selu", "", "3x33", 3},
    {"celu", "alpha=0.7", "3x33", 3},
    {"shrink", "bias=0.1 lambda=0.4", "3x33", 0},
    {"thresholded_relu", "alpha=0.3", "3x33", 0},
    {"is_inf", "", "3x33", 0},
    {"dropout", "", "3x33", 0},
    {"zero", "", "3x5x4x4", 0},
    {"zero", "stride=2", "1x16x7x9", 0},
    {"scale", "by=-3", "1x33", 0},
    {"abs", "", "3x33", 0},
    {"acos", "", "3x33", 0},
    {"acosh", "", "3x33", 3},
    {"asin", "", "3x33", 0},
    {"asinh", "", "3x33", 3},
    {"atan", "", "3x33", 3},
    {"atanh", "", "3x33", 0.9},
    {"ceil", "", "3x33", 5},
    {"cos", "", "3x33", 5},
    {"cosh", "", "3x33", 2},
    {"exp", "", "3x33", 2},
    {"floor", "", "3x33", 5},
    {"is_nan", "", "3x33", 0},
    {"log", "", "3x33", -3},
    {"mish", "", "3x33", 4},
    {"neg", "", "3x33", 0},
    {"not", "", "i:3x33", 0},
    {"reciprocal", "", "3x33", -3},
    {"round", "", "3x33", 5},
    {"sign", "", "3x33", 0},
    {"sin", "", "3x33", 5},
    {"sinh", "", "3x33", 2},
    {"softplus", "", "3x33", 40},
    {"softsign", "", "3x33", 4},
    {"sqrt", "", "3x33", -3},
    {"tan", "", "3x33", 1.2},
    {"cast", "to=4", "3x33", 9},
    {"cast", "to=7", "3x33", 300},
    {"cast", "to=11", "3x33", 300},
    {"cast", "to=12", "i:3x33", 0},
    {"cast", "to=3", "2x3x7", 0},
    {"cast", "to=2", "2x3x7", 0},
    {"add", "", "1x24x7x7 1x24x7x7", 0},
    {"add", "", "3x5x7x7 3x5x1x1", 0},
    {"add", "", "16 3x7x16", 0},
    {"add", "", "3x1x16 3x7x1", 0},
    {"add", "", "i:4x5 i:5", 0},
    {"mul", "", "3x4x1x6 3x1x5x1", 0},
    {"mul", "", "1 3x4x5x6", 0},
    {"sub", "", "16 3x7x16", 0},
    {"div", "", "7x1 3x7x16", -2},
    {"div", "", "i:4x5 c:1", 0},
    {"pow", "", "3x33 1x33", -2},
    {"prelu", "", "3x5x7x9 5x1x1", 0},
    {"mod", "", "3x33 1x33", -5},
    {"mod", "fmod=1", "3x33 33", -5},
    {"max", "", "3x33 33", 0},
    {"min", "", "3x5x7x9 7x1", 0},
    {"and", "", "i:3x33 i:33", 0},
    {"or", "", "i:3x33 i:33", 0},
    {"xor", "", "i:3x33 i:33", 0},
    {"equal", "", "i:3x33 i:33", 0},
    {"greater", "", "3x33 33", 0},
    {"greater_or_equal", "", "i:3x33 i:33", 0},
    {"less", "", "3x33 33", 0},
    {"less_or_equal", "", "i:3x33 i:33", 0},
    {"where", "", "i:3x1x9 5x9 3x5x1", 0},
    {"quantize_linear", "axis=0", "3x33 c:1", 0},
    {"quantize_linear", "axis=1", "3x5x4x4 c:5 u:5", 0},
    {"dequantize_linear", "axis=1", "u:3x5x4x4 c:5 u:5", 0},
    {"concat", "", "2x16x3x5 2x9x3x5", 0},
    {"concat", "axis=-2", "3x4x7x9 3x4x2x9 3x4x1x9", 0},
    {"concat", "axis=0", "2x3 1x3", 0},
    {"flatten", "", "3x4x5x6", 0},
    {"flatten", "axis=2", "3x4x5x6", 0},
    {"reshape", "shape=4,-1", "3x8x5", 0},
    {"reshape", "shape=6,4,10", "2x24x10", 0},
    {"reshape", "shape=-1", "2x6x4x5", 0},
    {"transpose", "order=0,2,1,3", "2x16x4x8", 0},
    {"transpose", "order=3,2,1,0", "3x5x4x7", 0},
    {"transpose", "order=2,0,1", "3x16x7", 0},
    {"slice", "begin=1 end=4", "3x7x5", 0},
    {"slice", "begin=-3 axis=-1 step=2", "3x7x5", 0},
    {"slice", "begin=1 axis=0", "3x4x2x5", 0},
    {"slice", "step=3 axis=2", "1x4x11x5", 0},
    {"expand", "shape=3,4,5", "4x1", 0},
    {"pad", "before=0,0,1,2 after=0,0,3,0 value=0.5", "2x3x4x5", 0},
    {"pad", "before=1,2 after=3,0 mode=1", "4x5", 0},
    {"pad", "before=1,2 after=3,4 mode=2", "4x5", 0},
    {"pad", "before=1,2 after=3,4 mode=3", "4x5", 0},
    {"upsample", "by=2", "3x5x7x9", 0},
    {"upsample", "by=3,4 linear=1", "1x16x4x6", 0},
    {"upsample", "by=2 linear=1", "2x16x4x6", 0},
    {"softmax", "", "1x1000", 4},
    {"softmax", "", "6x130", 4},
    {"softmax", "", "3x513", 4},
    {"softmax", "axis=1", "3x5x7x9", 4},
    {"softmax", "axis=-2", "1x5x7x9", 4},
    {"layer_norm", "epsilon=0.01", "3x7x33", 0},
    {"layer_norm", "axis=1", "3x7x33", 0},
    {"layer_norm", "axis=2 bias=0", "3x7x3x5", 0},
    {"rms_norm", "", "3x7x33", 0},
    {"rms_norm", "axis=2 epsilon=0.01", "3x7x3x5", 0},
    {"mean", "axes=1", "3x17x32", 0},
    {"mean", "axes=1 keep=1", "3x17x32", 0},
    {"mean", "axes=0,2", "3x5x7x9", 0},
    {"mean", "axes=2,3 keep=1", "3x5x7x9", 0},
    {"mean", "axes=0,1,2,3", "3x5x7x9", 0},
    {"reduce_l1", "axes=1", "3x200x4", 0},
    {"reduce_l2", "axes=1,2", "3x20x4", 0},
    {"reduce_log_sum", "axes=0", "7x3", -2},
    {"reduce_log_sum_exp", "axes=1", "3x200", 100},
    {"reduce_max", "axes=0,2 keep=1", "3x200x4", 0},
    {"reduce_min", "axes=1", "3x130", 0},
    {"reduce_prod", "axes=1", "3x6x4", -2},
    {"reduce_sum", "axes=1", "3x200x4", 0},
    {"reduce_max", "axes=1", "3x200", 0},
    {"reduce_sum", "axes=1,2", "5x8x16", 0},
    {"reduce_sum", "axes=0", "20x24", 0},
    {"mean", "axes=1", "1x40x24", 0},
    {"mean", "axes=-1", "4x10x24", 0},
    {"reduce_sum_square", "axes=2", "3x2x200", 0},
    {"arg_max", "axis=1", "3x200x4", 0},
    {"arg_max", "axis=1 last=1 keep=1", "i:3x20x4", 0},
    {"arg_min", "axis=-1", "i:3x300", 0},
    {"top_k", "axis=1 count=5 largest=1", "3x140x2", 0},
    {"top_k", "axis=-1 count=7 places=1", "i:3x30", 0},
    {"cum_sum", "axis=1", "3x20x4", 0},
    {"cum_sum", "axis=0 exclusive=1 reverse=1", "9x4", 0},
    {"gather", "axis=0", "7x5 i:2x3", 0},
    {"gather", "axis=1", "2x7x5 i:3x2", 0},
    {"gather", "axis=-1", "2x7x5x3 i:4", 0},
    {"embedding", "entries=50 out=24", "i:3x9", 0},
    {"grid_sample", "", "2x3x5x7 2x4x3x2", 0},
    {"grid_sample", "mode=0 padding=1 align_corners=1", "2x3x5x7 2x4x3x2", 0},
    {"grid_sample", "mode=0 padding=2", "1x2x3x4 1x9x8x2", 0},
    {"grid_sample", "mode=1 padding=2 align_corners=1", "2x3x5x7 2x4x3x2", 0},
    {"grid_sample", "mode=1", "1x5x6x3 1x9x8x2", 0},
    {"grid_sample", "mode=2", "2x3x5x7 2x4x3x2", 0},
    {"grid_sample", "mode=2 padding=1", "1x2x4x4 1x9x8x2", 0},
    {"grid_sample", "mode=2 padding=2 align_corners=1", "1x2x4x1 1x9x8x2", 0},
    {"gather_elements", "axis=1", "3x7x5 i:3x4x5", 0},
    {"gather_nd", "", "4x5x6 i:3x2", 0},
    {"gather_nd", "batch_dims=1", "3x5x6 i:3x4x1", 0},
    {"scatter_elements", "axis=1", "3x7 i:3x4 3x4", 0},
    {"scatter_elements", "axis=0 reduction=1", "3x7x2 i:5x6x2 5x6x2", 0},
    {"scatter_elements", "axis=1 reduction=2", "3x7 i:3x9 3x9", 0},
    {"scatter_elements", "axis=1 reduction=3", "3x7 i:3x9 3x9", 0},
    {"scatter_elements", "axis=1 reduction=4", "3x7 i:3x9 3x9", 0},
    {"scatter_nd", "", "4x5x6 i:3x2 3x6", 0},
    {"scatter_nd", "reduction=1", "4x5x6 i:7x1 7x5x6", 0},
    {"matmul", "", "3x4x16x24 3x4x24x5", 0},
    {"matmul", "", "3x1x6x8 3x5x8x7", 0},
    {"matmul", "", "3x5x6x8 1x1x8x7", 0},
    {"matmul", "", "16x8 3x8x12", 0},
    {"linear", "out=10", "3x37", 0},
    {"linear", "out=10 bias=0", "1x64", 0},
    {"linear", "out=9", "2x5x11", 0},
    {"lstm", "out=16", "1x7x12", 0},
    {"lstm", "out=17 bidirectional=1", "3x7x12", 0},
    {"lstm", "out=130 biases=0 last=1", "2x4x3", 0},
    {"gru", "out=16", "1x7x12", 0},
    {"gru", "out=17 bidirectional=1 biases=1", "3x7x12", 0},
    {"gru", "out=5 biases=0", "3x4x3", 0},
};

static int parse_dims(int64_t *dims, const char *text)
{
    int rank = 0;
    for (char *end; *text; text = *end ? end + 1 : end)
        dims[rank++] = strtol(text, &end, 10);
    return rank;
}

static int add_tensor(hwnas_graph *graph, const char *word, int i)
{
    const bool is_marked = word[1] == ':';
    const char kind = is_marked ? word[0] : 'f';
    int64_t dims[HWNAS_MAX_RANK];
    char name[16];
    int out = -1;
    const int rank = parse_dims(dims, word + (is_marked ? 2 : 0));
    snprintf(name, sizeof name, "x%d", i);
    if (kind == 'c')
        ok(hwnas_graph_add_weight(&out, graph, name, rank, dims, HWNAS_INIT_NEAR_ONE, false));
    else
        ok(hwnas_graph_add_input(&out, graph, name,
                                 kind == 'i'   ? HWNAS_INT64
                                 : kind == 'u' ? HWNAS_UINT8
                                               : HWNAS_FLOAT32,
                                 rank, dims));
    return out;
}

static inline hwnas_graph *graph_of(const op_case *c)
{
    const hwnas_op *op = hwnas_op_by_name(c->op);
    hwnas_graph *graph = hwnas_graph_new(c->op, 5);
    char *copy = hwnas_strdup(c->inputs), *rest = copy;
    int inputs[MAX_INPUTS], n = 0, out = -1;
    for (char *word; (word = strsep(&rest, " ")); n++)
        inputs[n] = add_tensor(graph, word, n);
    assert_non_null(op);
    hwnas_attr *attrs = attributes(op, c->attrs);
    /* Weights that are among the inputs are not made. */
    ok(hwnas_graph_add_node(&out, graph, op, "it", attrs, n, inputs,
                            (op->make_weights || op->build) && n <= op->max_inputs));
    hwnas_graph_add_output(graph, out);
    free(attrs);
    free(copy);
    return graph;
}

#endif
