/* operation.c: makes operations and names them. */
#include "device/cudnn/operation.h"

#include <string.h>

#include "base/str.h"

static int add_port(hwnas_cudnn_operation *o, const hwnas_cudnn_port *port)
{
    if (o->n_ports == HWNAS_CUDNN_MAX_PORTS) {
        o->is_full = true;
        return 0;
    }
    o->ports[o->n_ports] = *port;
    return o->n_ports++;
}

int hwnas_cudnn_alignment(const hwnas_cudnn_tensor *tensor)
{
    const size_t begin = (size_t)tensor->first * hwnas_cudnn_type_size(tensor->type);
    int alignment = 16;
    while (begin % (size_t)alignment)
        alignment /= 2;
    return alignment;
}

int hwnas_cudnn_add_memory(hwnas_cudnn_operation *o, const hwnas_cudnn_net *net, int tensor,
                           int rank, const int64_t *dims, const int64_t *strides)
{
    hwnas_cudnn_port port = {.kind = HWNAS_CUDNN_PORT_MEMORY, .rank = rank, .tensor = tensor,
                             .type = net->tensors[tensor].type,
                             .alignment = hwnas_cudnn_alignment(&net->tensors[tensor])};
    memcpy(port.dims, dims, (size_t)rank * sizeof *dims);
    memcpy(port.strides, strides, (size_t)rank * sizeof *strides);
    for (int i = 0; i < o->n_ports; i++) /* one tensor is one port */
        if (o->ports[i].kind == port.kind && o->ports[i].tensor == tensor &&
            o->ports[i].rank == rank && !memcmp(o->ports[i].dims, port.dims, sizeof port.dims) &&
            !memcmp(o->ports[i].strides, port.strides, sizeof port.strides))
            return i;
    return add_port(o, &port);
}

int hwnas_cudnn_add_virtual(hwnas_cudnn_operation *o, hwnas_cudnn_type type, int like)
{
    hwnas_cudnn_port port = o->ports[like];
    port.kind = HWNAS_CUDNN_PORT_VIRTUAL;
    port.type = type;
    port.tensor = -1;
    return add_port(o, &port);
}

int hwnas_cudnn_add_scalar(hwnas_cudnn_operation *o, int rank, float value)
{
    hwnas_cudnn_port port = {.kind = HWNAS_CUDNN_PORT_SCALAR, .type = HWNAS_CUDNN_F32,
                             .rank = rank, .tensor = -1, .value = value};
    for (int i = 0; i < rank; i++)
        port.dims[i] = port.strides[i] = 1;
    return add_port(o, &port);
}

hwnas_cudnn_op *hwnas_cudnn_add_op(hwnas_cudnn_operation *o, hwnas_cudnn_op_kind kind)
{
    if (o->n_ops == HWNAS_CUDNN_MAX_OPS) {
        o->is_full = true;
        o->n_ops--;
    }
    hwnas_cudnn_op *op = &o->ops[o->n_ops++];
    *op = (hwnas_cudnn_op){.kind = kind, .stride = {1, 1}, .dilation = {1, 1}, .window = {1, 1}};
    return op;
}

static void add_ints(hwnas_str *out, char name, const int64_t *values, int n)
{
    for (int i = 0; i < n; i++)
        hwnas_str_addf(out, "%c%lld", i ? ',' : name, (long long)values[i]);
}

static const char *const names[HWNAS_CUDNN_N_OP_KINDS] = {
    "conv", "conv_back", "matmul", "pointwise", "pool", "norm", "reduce", "attention"};

static void add_op_text(hwnas_str *out, const hwnas_cudnn_op *op)
{
    hwnas_str_addf(out, " %s", names[op->kind]);
    if (op->kind == HWNAS_CUDNN_POINTWISE || op->kind == HWNAS_CUDNN_POOL ||
        op->kind == HWNAS_CUDNN_REDUCE)
        hwnas_str_addf(out, ":%d", op->mode);
    if (op->slope != 0)
        hwnas_str_addf(out, " a%.9g", op->slope);
    if (op->kind <= HWNAS_CUDNN_CONV_BACK || op->kind == HWNAS_CUDNN_POOL) {
        add_ints(out, 'w', op->window, 2);
        add_ints(out, 's', op->stride, 2);
        add_ints(out, 'd', op->dilation, 2);
        add_ints(out, 'p', op->pad, 4);
    }
    for (int i = 0; i < op->n_inputs; i++)
        hwnas_str_addf(out, "%c%d", i ? ',' : ' ', op->inputs[i]);
    hwnas_str_addf(out, ">%d;", op->output);
}

static const char kinds[] = "mvs"; /* of ports */

char *hwnas_cudnn_signature(const hwnas_cudnn_operation *o)
{
    hwnas_str text = {0};
    hwnas_str_add(&text, o->is_exact ? "exact" : "any");
    for (int i = 0; i < o->n_ports; i++) {
        const hwnas_cudnn_port *port = &o->ports[i];
        hwnas_str_addf(&text, " %c%s", kinds[port->kind], hwnas_cudnn_type_name(port->type));
        add_ints(&text, ':', port->dims, port->rank);
        add_ints(&text, '/', port->strides, port->rank);
        if (port->kind == HWNAS_CUDNN_PORT_MEMORY && port->alignment != 16)
            hwnas_str_addf(&text, "@%d", port->alignment);
    }
    for (int i = 0; i < o->n_ops; i++)
        add_op_text(&text, &o->ops[i]);
    return text.s;
}

/* Dimensions that are more than 1, the slowest first. */
static void add_order(hwnas_str *out, const hwnas_cudnn_port *port)
{
    int order[HWNAS_CUDNN_PORT_RANK], n = 0;
    for (int i = 0; i < port->rank; i++) {
        int at = n;
        if (port->dims[i] == 1)
            continue;
        for (; at > 0 && port->strides[order[at - 1]] < port->strides[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
        n++;
    }
    for (int i = 0; i < n; i++)
        hwnas_str_addf(out, "%d", order[i]);
}

static bool is_grouped(const hwnas_cudnn_operation *o, const hwnas_cudnn_op *op)
{
    const int64_t *image = o->ports[op->inputs[0]].dims, *weights = o->ports[op->inputs[1]].dims;
    return op->kind == HWNAS_CUDNN_CONV && image[1] != weights[1];
}

char *hwnas_cudnn_form_text(const hwnas_cudnn_operation *o)
{
    hwnas_str text = {0};
    hwnas_str_add(&text, o->is_exact ? "exact" : "any");
    for (int i = 0; i < o->n_ports; i++) {
        const hwnas_cudnn_port *port = &o->ports[i];
        hwnas_str_addf(&text, " %c%s:%d/", kinds[port->kind], hwnas_cudnn_type_name(port->type),
                       port->rank);
        add_order(&text, port);
        if (port->kind == HWNAS_CUDNN_PORT_MEMORY)
            hwnas_str_addf(&text, "@%d", port->alignment);
    }
    for (int i = 0; i < o->n_ops; i++) {
        hwnas_str_add(&text, is_grouped(o, &o->ops[i]) ? " grouped" : "");
        add_op_text(&text, &o->ops[i]);
    }
    return text.s;
}
