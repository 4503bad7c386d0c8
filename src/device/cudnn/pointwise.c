/* pointwise.c: operators on each element by itself, in cuDNN's words. */
#include <cudnn.h>
#include <math.h>

#include "device/cudnn/cut.h"

typedef struct made {
    hwnas_cudnn_operation *o;
    const hwnas_node *node;
    const int *in;
    int mode;
} made;

/* `b` -1: one input. The result has the shape of `a`, or of `b` where `a` is a number. */
int hwnas_cudnn_add_pointwise(hwnas_cudnn_operation *o, int mode, int a, int b)
{
    int like = a;
    if (b >= 0)
        for (int i = 0; i < o->ports[a].rank; i++)
            if (o->ports[b].dims[i] > o->ports[a].dims[i])
                like = b;
    hwnas_cudnn_op *op = hwnas_cudnn_add_op(o, HWNAS_CUDNN_POINTWISE);
    op->mode = mode;
    op->n_inputs = b < 0 ? 1 : 2;
    op->inputs[0] = a;
    op->inputs[1] = b;
    return op->output = hwnas_cudnn_add_virtual(o, HWNAS_CUDNN_F32, like);
}

static int number(made *m, double value)
{
    return hwnas_cudnn_add_scalar(m->o, m->o->ports[m->in[0]].rank, (float)value);
}

static double attr(const made *m, const char *name)
{
    return hwnas_node_attr(m->node, name)->number;
}

static int unary(made *m)
{
    return hwnas_cudnn_add_pointwise(m->o, m->mode, m->in[0], -1);
}

static int binary(made *m)
{
    return hwnas_cudnn_add_pointwise(m->o, m->mode, m->in[0], m->in[1]);
}

static bool follows_depthwise(const hwnas_cudnn_operation *o)
{
    const hwnas_cudnn_op *first = &o->ops[0];
    return o->n_ops && first->kind == HWNAS_CUDNN_CONV && o->ports[first->inputs[0]].dims[1] > 1 &&
           o->ports[first->inputs[1]].dims[1] == 1;
}

/* Behind a depthwise convolution and its bias cuDNN 9.19 takes a ReLU for the pattern of its ready
 * engines, of which only the slowest runs it (14 times as long on an H100); as a maximum it
 * compiles a kernel. */
static int rectify(made *m, int in)
{
    return follows_depthwise(m->o)
               ? hwnas_cudnn_add_pointwise(m->o, CUDNN_POINTWISE_MAX, in, number(m, 0))
               : hwnas_cudnn_add_pointwise(m->o, CUDNN_POINTWISE_RELU_FWD, in, -1);
}

static int relu(made *m)
{
    return rectify(m, m->in[0]);
}

static int with_slope(made *m, const char *name)
{
    const int out = unary(m);
    m->o->ops[m->o->n_ops - 1].slope = attr(m, name);
    return out;
}

static int leaky_relu(made *m)
{
    return with_slope(m, "alpha");
}

static int elu(made *m)
{
    return with_slope(m, "alpha");
}

/* As two operators: cuDNN has more engines for these than for a ReLU with an upper limit. */
static int clamp(made *m, int in, double low, double high)
{
    if (low == 0 && !(high < INFINITY))
        return rectify(m, in);
    int out = low == 0 ? hwnas_cudnn_add_pointwise(m->o, CUDNN_POINTWISE_RELU_FWD, in, -1) : in;
    if (low != 0 && low > -INFINITY)
        out = hwnas_cudnn_add_pointwise(m->o, CUDNN_POINTWISE_MAX, out, number(m, low));
    if (high < INFINITY)
        out = hwnas_cudnn_add_pointwise(m->o, CUDNN_POINTWISE_MIN, out, number(m, high));
    return out;
}

static int clip(made *m)
{
    const double low = attr(m, "low"), high = attr(m, "high");
    if (!(low > -INFINITY) && !(high < INFINITY))
        return hwnas_cudnn_add_pointwise(m->o, CUDNN_POINTWISE_IDENTITY, m->in[0], -1);
    return clamp(m, m->in[0], low, high);
}

/* max(0, min(1, alpha x + beta)) */
static int hard_sigmoid(made *m)
{
    const int scaled =
        hwnas_cudnn_add_pointwise(m->o, CUDNN_POINTWISE_MUL, m->in[0], number(m, attr(m, "alpha")));
    const int moved =
        hwnas_cudnn_add_pointwise(m->o, CUDNN_POINTWISE_ADD, scaled, number(m, attr(m, "beta")));
    return clamp(m, moved, 0, 1);
}

/* x max(0, min(6, x + 3)) / 6 */
static int hard_swish(made *m)
{
    const int moved = hwnas_cudnn_add_pointwise(m->o, CUDNN_POINTWISE_ADD, m->in[0], number(m, 3));
    const int gate = hwnas_cudnn_add_pointwise(m->o, CUDNN_POINTWISE_MUL, clamp(m, moved, 0, 6),
                                               number(m, 1.0 / 6));
    return hwnas_cudnn_add_pointwise(m->o, CUDNN_POINTWISE_MUL, gate, m->in[0]);
}

static int gelu(made *m)
{
    m->mode = hwnas_node_attr(m->node, "tanh")->ints[0] ? CUDNN_POINTWISE_GELU_APPROX_TANH_FWD
                                                        : CUDNN_POINTWISE_GELU_FWD;
    return unary(m);
}

/* Not pow: what becomes of negative numbers is not told, and (x - mean)^2 is full of them. */
static const struct rule {
    int (*lower)(made *m);
    int mode;
} rules[HWNAS_N_OPS] = {
    [HWNAS_OP_ABS] = {unary, CUDNN_POINTWISE_ABS},
    [HWNAS_OP_ADD] = {binary, CUDNN_POINTWISE_ADD},
    [HWNAS_OP_CEIL] = {unary, CUDNN_POINTWISE_CEIL},
    [HWNAS_OP_CLIP] = {clip, 0},
    [HWNAS_OP_COS] = {unary, CUDNN_POINTWISE_COS},
    [HWNAS_OP_DIV] = {binary, CUDNN_POINTWISE_DIV},
    [HWNAS_OP_ELU] = {elu, CUDNN_POINTWISE_ELU_FWD},
    [HWNAS_OP_ERF] = {unary, CUDNN_POINTWISE_ERF},
    [HWNAS_OP_EXP] = {unary, CUDNN_POINTWISE_EXP},
    [HWNAS_OP_FLOOR] = {unary, CUDNN_POINTWISE_FLOOR},
    [HWNAS_OP_GELU] = {gelu, 0},
    [HWNAS_OP_HARD_SIGMOID] = {hard_sigmoid, 0},
    [HWNAS_OP_HARD_SWISH] = {hard_swish, 0},
    [HWNAS_OP_LEAKY_RELU] = {leaky_relu, CUDNN_POINTWISE_RELU_FWD},
    [HWNAS_OP_LOG] = {unary, CUDNN_POINTWISE_LOG},
    [HWNAS_OP_MAX] = {binary, CUDNN_POINTWISE_MAX},
    [HWNAS_OP_MIN] = {binary, CUDNN_POINTWISE_MIN},
    [HWNAS_OP_MUL] = {binary, CUDNN_POINTWISE_MUL},
    [HWNAS_OP_NEG] = {unary, CUDNN_POINTWISE_NEG},
    [HWNAS_OP_RECIPROCAL] = {unary, CUDNN_POINTWISE_RECIPROCAL},
    [HWNAS_OP_RELU] = {relu, 0},
    [HWNAS_OP_SIGMOID] = {unary, CUDNN_POINTWISE_SIGMOID_FWD},
    [HWNAS_OP_SIN] = {unary, CUDNN_POINTWISE_SIN},
    [HWNAS_OP_SOFTPLUS] = {unary, CUDNN_POINTWISE_SOFTPLUS_FWD},
    [HWNAS_OP_SQRT] = {unary, CUDNN_POINTWISE_SQRT},
    [HWNAS_OP_SUB] = {binary, CUDNN_POINTWISE_SUB},
    [HWNAS_OP_TAN] = {unary, CUDNN_POINTWISE_TAN},
    [HWNAS_OP_TANH] = {unary, CUDNN_POINTWISE_TANH_FWD},
};

static const struct rule *rule_of(const hwnas_node *node)
{
    const struct rule *rule = &rules[node->op->id];
    return rule->lower ? rule : NULL;
}

bool hwnas_cudnn_is_pointwise(const hwnas_graph *graph, const hwnas_node *node)
{
    const struct rule *rule = rule_of(node);
    return rule && node->n_inputs == (rule->lower == binary ? 2 : 1) &&
           hwnas_node_output(graph, node)->rank > 0;
}

int hwnas_cudnn_lower_pointwise(hwnas_cudnn_operation *o, const hwnas_graph *graph,
                                const hwnas_node *node, const int *inputs)
{
    const struct rule *rule = rule_of(node);
    (void)graph;
    made m = {.o = o, .node = node, .in = inputs, .mode = rule->mode};
    return rule->lower(&m);
}
