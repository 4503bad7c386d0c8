/* pointwise.c: operators on each element by itself, in cuDNN's words. */
#include <cudnn.h>
#include <math.h>
#include <string.h>

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
    const int scaled = hwnas_cudnn_add_pointwise(m->o, CUDNN_POINTWISE_MUL, m->in[0],
                                                 number(m, attr(m, "alpha")));
    const int moved =
        hwnas_cudnn_add_pointwise(m->o, CUDNN_POINTWISE_ADD, scaled, number(m, attr(m, "beta")));
    return clamp(m, moved, 0, 1);
}

/* x max(0, min(6, x + 3)) / 6 */
static int hard_swish(made *m)
{
    const int moved =
        hwnas_cudnn_add_pointwise(m->o, CUDNN_POINTWISE_ADD, m->in[0], number(m, 3));
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
    const char *op;
    int (*lower)(made *m);
    int mode;
} rules[] = {
    {"abs", unary, CUDNN_POINTWISE_ABS},
    {"add", binary, CUDNN_POINTWISE_ADD},
    {"ceil", unary, CUDNN_POINTWISE_CEIL},
    {"clip", clip, 0},
    {"cos", unary, CUDNN_POINTWISE_COS},
    {"div", binary, CUDNN_POINTWISE_DIV},
    {"elu", elu, CUDNN_POINTWISE_ELU_FWD},
    {"erf", unary, CUDNN_POINTWISE_ERF},
    {"exp", unary, CUDNN_POINTWISE_EXP},
    {"floor", unary, CUDNN_POINTWISE_FLOOR},
    {"gelu", gelu, 0},
    {"hard_sigmoid", hard_sigmoid, 0},
    {"hard_swish", hard_swish, 0},
    {"leaky_relu", leaky_relu, CUDNN_POINTWISE_RELU_FWD},
    {"log", unary, CUDNN_POINTWISE_LOG},
    {"max", binary, CUDNN_POINTWISE_MAX},
    {"min", binary, CUDNN_POINTWISE_MIN},
    {"mul", binary, CUDNN_POINTWISE_MUL},
    {"neg", unary, CUDNN_POINTWISE_NEG},
    {"reciprocal", unary, CUDNN_POINTWISE_RECIPROCAL},
    {"relu", unary, CUDNN_POINTWISE_RELU_FWD},
    {"sigmoid", unary, CUDNN_POINTWISE_SIGMOID_FWD},
    {"sin", unary, CUDNN_POINTWISE_SIN},
    {"softplus", unary, CUDNN_POINTWISE_SOFTPLUS_FWD},
    {"sqrt", unary, CUDNN_POINTWISE_SQRT},
    {"sub", binary, CUDNN_POINTWISE_SUB},
    {"tan", unary, CUDNN_POINTWISE_TAN},
    {"tanh", unary, CUDNN_POINTWISE_TANH_FWD},
};

static const struct rule *rule_of(const hwnas_node *node)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (!strcmp(rules[i].op, node->op->name))
            return &rules[i];
    return NULL;
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
