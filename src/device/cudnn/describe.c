/* describe.c: an operation in the words of cuDNN's graph interface. */
#include "device/cudnn/describe.h"

#include "device/cudnn/cudnn_names.h"

typedef hwnas_cudnn_described described;
typedef cudnnBackendDescriptor_t descriptor;

static const cudnnDataType_t types[HWNAS_CUDNN_N_TYPES] = {
    [HWNAS_CUDNN_F32] = CUDNN_DATA_FLOAT,     [HWNAS_CUDNN_F16] = CUDNN_DATA_HALF,
    [HWNAS_CUDNN_BF16] = CUDNN_DATA_BFLOAT16, [HWNAS_CUDNN_S8] = CUDNN_DATA_INT8,
    [HWNAS_CUDNN_S32] = CUDNN_DATA_INT32,
};

static descriptor make(described *d, cudnnBackendDescriptorType_t type, const char *where)
{
    descriptor made = NULL;
    if (d->status)
        return NULL;
    d->where = where;
    d->status = d->api->create(type, &made);
    if (!d->status)
        d->made[d->n_made++] = made;
    return made;
}

static void set(described *d, descriptor of, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, int64_t n, const void *values)
{
    if (!d->status)
        d->status = d->api->set(of, name, type, n, values);
}

static void set_ints(described *d, descriptor of, cudnnBackendAttributeName_t name, int64_t n,
                     const int64_t *values)
{
    set(d, of, name, CUDNN_TYPE_INT64, n, values);
}

static void set_type(described *d, descriptor of, cudnnBackendAttributeName_t name,
                     cudnnDataType_t type)
{
    set(d, of, name, CUDNN_TYPE_DATA_TYPE, 1, &type);
}

static void set_descriptor(described *d, descriptor of, cudnnBackendAttributeName_t name,
                           descriptor value)
{
    set(d, of, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static void finish(described *d, descriptor made)
{
    if (!d->status)
        d->status = d->api->finalize(made);
}

/* Ports are the first descriptors, by their numbers. The number, from 1, is cuDNN's id as well. */
static void describe_port(described *d, const hwnas_cudnn_port *port, int64_t id)
{
    const bool yes = true;
    const int64_t alignment = port->kind == HWNAS_CUDNN_PORT_MEMORY    ? port->alignment
                              : port->kind == HWNAS_CUDNN_PORT_VIRTUAL ? 16
                                                                       : 4;
    const descriptor t = make(d, CUDNN_BACKEND_TENSOR_DESCRIPTOR, "tensor");
    set_type(d, t, CUDNN_ATTR_TENSOR_DATA_TYPE, types[port->type]);
    set_ints(d, t, CUDNN_ATTR_TENSOR_DIMENSIONS, port->rank, port->dims);
    set_ints(d, t, CUDNN_ATTR_TENSOR_STRIDES, port->rank, port->strides);
    set_ints(d, t, CUDNN_ATTR_TENSOR_UNIQUE_ID, 1, &id);
    set_ints(d, t, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 1, &alignment);
    if (port->kind == HWNAS_CUDNN_PORT_VIRTUAL)
        set(d, t, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &yes);
    if (port->kind == HWNAS_CUDNN_PORT_SCALAR)
        set(d, t, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &yes);
    finish(d, t);
}

static descriptor input(const described *d, const hwnas_cudnn_op *op, int i)
{
    return d->made[op->inputs[i]];
}

/* What products are summed in. */
static cudnnDataType_t sum_type(const hwnas_cudnn_op *op)
{
    return op->is_whole ? CUDNN_DATA_INT32 : CUDNN_DATA_FLOAT;
}

static descriptor convolution(described *d, const hwnas_cudnn_op *op)
{
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    const int64_t n = 2;
    const descriptor c = make(d, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, "convolution");
    set_type(d, c, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, sum_type(op));
    set(d, c, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    set_ints(d, c, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 1, &n);
    set_ints(d, c, CUDNN_ATTR_CONVOLUTION_DILATIONS, 2, op->dilation);
    set_ints(d, c, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 2, op->stride);
    set_ints(d, c, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 2, op->pad);
    set_ints(d, c, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, 2, op->pad + 2);
    finish(d, c);
    return c;
}

static descriptor describe_conv(described *d, const hwnas_cudnn_op *op)
{
    const float one = 1, zero = 0;
    const descriptor c = convolution(d, op);
    const descriptor o =
        make(d, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, "convolution");
    set_descriptor(d, o, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, c);
    set_descriptor(d, o, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, input(d, op, 0));
    set_descriptor(d, o, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, input(d, op, 1));
    set_descriptor(d, o, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, d->made[op->output]);
    set(d, o, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1, &one);
    set(d, o, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 1, &zero);
    return o;
}

static descriptor describe_conv_back(described *d, const hwnas_cudnn_op *op)
{
    const float one = 1, zero = 0;
    const descriptor c = convolution(d, op);
    const descriptor o = make(d, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                              "transposed convolution");
    set_descriptor(d, o, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, c);
    set_descriptor(d, o, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, input(d, op, 0));
    set_descriptor(d, o, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, input(d, op, 1));
    set_descriptor(d, o, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, d->made[op->output]);
    set(d, o, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_TYPE_FLOAT, 1, &one);
    set(d, o, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, CUDNN_TYPE_FLOAT, 1, &zero);
    return o;
}

static descriptor describe_matmul(described *d, const hwnas_cudnn_op *op)
{
    const descriptor m = make(d, CUDNN_BACKEND_MATMUL_DESCRIPTOR, "matrix product");
    set_type(d, m, CUDNN_ATTR_MATMUL_COMP_TYPE, sum_type(op));
    finish(d, m);
    const descriptor o = make(d, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, "matrix product");
    set_descriptor(d, o, CUDNN_ATTR_OPERATION_MATMUL_DESC, m);
    set_descriptor(d, o, CUDNN_ATTR_OPERATION_MATMUL_ADESC, input(d, op, 0));
    set_descriptor(d, o, CUDNN_ATTR_OPERATION_MATMUL_BDESC, input(d, op, 1));
    set_descriptor(d, o, CUDNN_ATTR_OPERATION_MATMUL_CDESC, d->made[op->output]);
    return o;
}

static descriptor describe_pointwise(described *d, const hwnas_cudnn_op *op)
{
    const cudnnPointwiseMode_t mode = (cudnnPointwiseMode_t)op->mode;
    const descriptor p = make(d, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, "pointwise operator");
    set(d, p, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    set_type(d, p, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
    if (op->slope != 0 && mode == CUDNN_POINTWISE_RELU_FWD)
        set(d, p, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, CUDNN_TYPE_DOUBLE, 1, &op->slope);
    if (mode == CUDNN_POINTWISE_ELU_FWD)
        set(d, p, CUDNN_ATTR_POINTWISE_ELU_ALPHA, CUDNN_TYPE_DOUBLE, 1, &op->slope);
    finish(d, p);
    const descriptor o =
        make(d, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "pointwise operator");
    set_descriptor(d, o, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, p);
    set_descriptor(d, o, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, input(d, op, 0));
    if (op->n_inputs > 1)
        set_descriptor(d, o, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, input(d, op, 1));
    set_descriptor(d, o, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, d->made[op->output]);
    return o;
}

static void set_whole(described *d, descriptor of, cudnnBackendAttributeName_t name,
                      const int64_t *values)
{
    const cudnnFraction_t fractions[2] = {{values[0], 1}, {values[1], 1}};
    set(d, of, name, CUDNN_TYPE_FRACTION, 2, fractions);
}

static descriptor describe_pool(described *d, const hwnas_cudnn_op *op)
{
    const cudnnResampleMode_t mode = (cudnnResampleMode_t)op->mode;
    const cudnnPaddingMode_t padding =
        mode == CUDNN_RESAMPLE_MAXPOOL ? CUDNN_NEG_INF_PAD : CUDNN_ZERO_PAD;
    const cudnnNanPropagation_t nan = CUDNN_NOT_PROPAGATE_NAN;
    const int64_t n = 2;
    const descriptor p = make(d, CUDNN_BACKEND_RESAMPLE_DESCRIPTOR, "pooling");
    set(d, p, CUDNN_ATTR_RESAMPLE_MODE, CUDNN_TYPE_RESAMPLE_MODE, 1, &mode);
    set_type(d, p, CUDNN_ATTR_RESAMPLE_COMP_TYPE, CUDNN_DATA_FLOAT);
    set(d, p, CUDNN_ATTR_RESAMPLE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, 1, &nan);
    set_ints(d, p, CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, 1, &n);
    set_whole(d, p, CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, op->window);
    set_whole(d, p, CUDNN_ATTR_RESAMPLE_STRIDES, op->stride);
    set_whole(d, p, CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, op->pad);
    set_whole(d, p, CUDNN_ATTR_RESAMPLE_POST_PADDINGS, op->pad + 2);
    set(d, p, CUDNN_ATTR_RESAMPLE_PADDING_MODE, CUDNN_TYPE_PADDING_MODE, 1, &padding);
    finish(d, p);
    const descriptor o = make(d, CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR, "pooling");
    set_descriptor(d, o, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC, p);
    set_descriptor(d, o, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, input(d, op, 0));
    set_descriptor(d, o, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, d->made[op->output]);
    return o;
}

static descriptor describe_norm(described *d, const hwnas_cudnn_op *op)
{
    const cudnnBackendNormMode_t mode = CUDNN_LAYER_NORM;
    const cudnnBackendNormFwdPhase_t phase = CUDNN_NORM_FWD_INFERENCE;
    const descriptor o = make(d, CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR, "layer norm");
    set(d, o, CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE, 1, &mode);
    set(d, o, CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE, 1, &phase);
    set_descriptor(d, o, CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, input(d, op, 0));
    set_descriptor(d, o, CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, input(d, op, 1));
    set_descriptor(d, o, CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, input(d, op, 2));
    set_descriptor(d, o, CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, input(d, op, 3));
    set_descriptor(d, o, CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, d->made[op->output]);
    return o;
}

static descriptor describe_reduce(described *d, const hwnas_cudnn_op *op)
{
    const cudnnReduceTensorOp_t mode = (cudnnReduceTensorOp_t)op->mode;
    const descriptor r = make(d, CUDNN_BACKEND_REDUCTION_DESCRIPTOR, "reduction");
    set(d, r, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &mode);
    set_type(d, r, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    finish(d, r);
    const descriptor o = make(d, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, "reduction");
    set_descriptor(d, o, CUDNN_ATTR_OPERATION_REDUCTION_DESC, r);
    set_descriptor(d, o, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, input(d, op, 0));
    set_descriptor(d, o, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, d->made[op->output]);
    return o;
}

static descriptor describe_attention(described *d, const hwnas_cudnn_op *op)
{
    const descriptor o = make(d, CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR, "attention");
    set_descriptor(d, o, CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, input(d, op, 0));
    set_descriptor(d, o, CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC, input(d, op, 1));
    set_descriptor(d, o, CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, input(d, op, 2));
    set_descriptor(d, o, CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC, input(d, op, 3));
    set_descriptor(d, o, CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC, d->made[op->output]);
    return o;
}

static descriptor (*const describers[HWNAS_CUDNN_N_OP_KINDS])(described *,
                                                              const hwnas_cudnn_op *) = {
    [HWNAS_CUDNN_CONV] = describe_conv,     [HWNAS_CUDNN_CONV_BACK] = describe_conv_back,
    [HWNAS_CUDNN_MATMUL] = describe_matmul, [HWNAS_CUDNN_POINTWISE] = describe_pointwise,
    [HWNAS_CUDNN_POOL] = describe_pool,     [HWNAS_CUDNN_NORM] = describe_norm,
    [HWNAS_CUDNN_REDUCE] = describe_reduce, [HWNAS_CUDNN_ATTENTION] = describe_attention,
};

void hwnas_cudnn_describe(hwnas_cudnn_described *out, const hwnas_cudnn_api *api,
                          const hwnas_cudnn_operation *o, bool is_dynamic)
{
    *out = (hwnas_cudnn_described){.api = api};
    descriptor ops[HWNAS_CUDNN_MAX_OPS];
    for (int i = 0; i < o->n_ports; i++)
        describe_port(out, &o->ports[i], i + 1);
    for (int i = 0; i < o->n_ops && !out->status; i++) {
        ops[i] = describers[o->ops[i].kind](out, &o->ops[i]);
        finish(out, ops[i]);
    }
    const descriptor graph = make(out, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "graph");
    set(out, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, o->n_ops, ops);
    if (is_dynamic)
        set(out, graph, CUDNN_ATTR_OPERATIONGRAPH_IS_DYNAMIC_SHAPE_ENABLED, CUDNN_TYPE_BOOLEAN, 1,
            &is_dynamic);
    finish(out, graph);
    out->graph = graph;
}

void hwnas_cudnn_described_done(hwnas_cudnn_described *d)
{
    while (d->n_made)
        d->api->destroy(d->made[--d->n_made]);
}
