/* fake_cudnn_ops.c: computes graphs for the stand-in for cuDNN. Every tensor is read into floats in
 * the order of its dimensions, whatever its strides; then loops as a textbook has them. */
#include "base/half.h"
#include "fake_cudnn.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef const fake_descriptor *descriptor;

/* ---- Values ---- */

size_t fake_type_size(cudnnDataType_t type)
{
    return type == CUDNN_DATA_INT8                                  ? 1
           : type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16 ? 2
                                                                    : 4;
}

float fake_read(const void *at, cudnnDataType_t type, int64_t i)
{
    uint16_t half;
    uint32_t bits;
    float value;
    switch (type) {
    case CUDNN_DATA_HALF:
        memcpy(&half, (const char *)at + 2 * i, sizeof half);
        return hwnas_half_value(half);
    case CUDNN_DATA_BFLOAT16:
        bits = (uint32_t)((const uint16_t *)at)[i] << 16;
        memcpy(&value, &bits, sizeof value);
        return value;
    case CUDNN_DATA_INT8:
        return ((const int8_t *)at)[i];
    case CUDNN_DATA_INT32:
        return (float)((const int32_t *)at)[i];
    default:
        return ((const float *)at)[i];
    }
}

void fake_write(void *at, cudnnDataType_t type, int64_t i, double value)
{
    const float single = (float)value;
    const uint16_t half = hwnas_half_of(single);
    uint32_t bits;
    switch (type) {
    case CUDNN_DATA_HALF:
        memcpy((char *)at + 2 * i, &half, sizeof half);
        break;
    case CUDNN_DATA_BFLOAT16:
        memcpy(&bits, &single, sizeof bits);
        ((uint16_t *)at)[i] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
        break;
    case CUDNN_DATA_INT8:
        ((int8_t *)at)[i] = (int8_t)fmax(-128, fmin(127, rint(value)));
        break;
    case CUDNN_DATA_INT32:
        ((int32_t *)at)[i] = (int32_t)rint(value);
        break;
    default:
        ((float *)at)[i] = single;
    }
}

/* A tensor of the graph, and its values once they were read or made. */
typedef struct tensor {
    int64_t id, rank, count;
    const int64_t *dims, *strides;
    cudnnDataType_t type;
    bool is_virtual, is_number, is_made;
    int64_t alignment;
    float *values; /* row-major */
} tensor;

typedef struct state {
    const fake_run *run;
    int n;
    tensor tensors[2 * FAKE_MAX_PACK];
    const char *wrong; /* what the real one would not have taken */
} state;

static void refuse(state *s, const char *why)
{
    s->wrong = s->wrong ? s->wrong : why;
}

static tensor *tensor_of(state *s, descriptor d)
{
    const int64_t id = fake_int(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, -1);
    for (int i = 0; i < s->n; i++)
        if (s->tensors[i].id == id)
            return &s->tensors[i];
    tensor *t = &s->tensors[s->n++];
    const fake_attr *dims = fake_find(d, CUDNN_ATTR_TENSOR_DIMENSIONS);
    *t = (tensor){.id = id,
                  .rank = dims->n,
                  .count = 1,
                  .dims = dims->values,
                  .strides = fake_find(d, CUDNN_ATTR_TENSOR_STRIDES)->values,
                  .type = (cudnnDataType_t)fake_int(d, CUDNN_ATTR_TENSOR_DATA_TYPE, 0),
                  .alignment = fake_int(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 1),
                  .is_virtual = fake_int(d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, 0) != 0,
                  .is_number = fake_int(d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, 0) != 0};
    for (int64_t i = 0; i < t->rank; i++)
        t->count *= t->dims[i];
    return t;
}

/* Where element i lies. */
static int64_t place_of(const tensor *t, int64_t i)
{
    int64_t at = 0;
    for (int64_t d = t->rank - 1; d >= 0; i /= t->dims[d--])
        at += i % t->dims[d] * t->strides[d];
    return at;
}

/* The tensor's memory, looked at: it must be the GPU's and lie as its descriptor says. */
static char *memory_of(state *s, const tensor *t)
{
    for (int k = 0; k < s->run->n; k++) {
        char *at = s->run->pointers[k];
        if (s->run->ids[k] != t->id)
            continue;
        if ((size_t)at % (size_t)t->alignment)
            refuse(s, "a pointer is not aligned as its tensor says");
        else if (fake_owns(at, ((size_t)place_of(t, t->count - 1) + 1) * fake_type_size(t->type)))
            return at;
        refuse(s, "a tensor goes beyond the GPU's memory");
        return NULL;
    }
    refuse(s, "a tensor has no pointer");
    return NULL;
}

/* What an operator reads. */
static const tensor *input(state *s, descriptor op, cudnnBackendAttributeName_t name)
{
    descriptor d = fake_child(op, name);
    if (!d)
        return NULL;
    tensor *t = tensor_of(s, d);
    if (t->values)
        return t;
    t->values = calloc((size_t)t->count, sizeof *t->values);
    if (t->is_virtual) {
        refuse(s, "a virtual tensor is read before it is made");
    } else if (t->is_number) {
        for (int k = 0; k < s->run->n; k++)
            if (s->run->ids[k] == t->id)
                t->values[0] = s->run->numbers[k];
    } else {
        const char *at = memory_of(s, t);
        for (int64_t i = 0; at && i < t->count; i++)
            t->values[i] = fake_read(at, t->type, place_of(t, i));
    }
    return t;
}

static tensor *output(state *s, descriptor op, cudnnBackendAttributeName_t name)
{
    tensor *t = tensor_of(s, fake_child(op, name));
    if (t->values)
        refuse(s, "a tensor is made twice");
    else
        t->values = calloc((size_t)t->count, sizeof *t->values);
    t->is_made = true;
    return t;
}

/* Puts the results where they belong, all at the end. */
static void write_results(state *s)
{
    for (int i = 0; i < s->n; i++) {
        tensor *t = &s->tensors[i];
        if (!t->is_made || t->is_virtual)
            continue;
        char *at = memory_of(s, t);
        for (int64_t k = 0; at && k < t->count; k++)
            fake_write(at, t->type, place_of(t, k), t->values[k]);
    }
}

/* ---- Convolutions ---- */

typedef struct window {
    int64_t stride[2], dilation[2], before[2], after[2];
} window;

static window window_of(descriptor op, cudnnBackendAttributeName_t name)
{
    descriptor c = fake_child(op, name);
    window w;
    memcpy(w.stride, fake_find(c, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES)->values, 16);
    memcpy(w.dilation, fake_find(c, CUDNN_ATTR_CONVOLUTION_DILATIONS)->values, 16);
    memcpy(w.before, fake_find(c, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS)->values, 16);
    memcpy(w.after, fake_find(c, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS)->values, 16);
    return w;
}

/* The image x is convolved to y; `back`: y is spread to x. Both ways the same places meet. */
static void convolve(state *s, const tensor *x, const tensor *k, const tensor *y, const window *w,
                     bool back)
{
    const int64_t *xd = x->dims, *kd = k->dims, *yd = y->dims;
    for (int i = 0; i < 2; i++)
        if (yd[2 + i] !=
            (xd[2 + i] + w->before[i] + w->after[i] - w->dilation[i] * (kd[2 + i] - 1) - 1) /
                    w->stride[i] +
                1)
            refuse(s, "a convolution's sizes do not fit");
    if (xd[1] % kd[1] || kd[0] != yd[1] || xd[0] != yd[0]) {
        refuse(s, "a convolution's channels do not fit");
        return;
    }
    const int64_t groups = xd[1] / kd[1], per_group = yd[1] / groups;
    for (int64_t i = 0; i < y->count; i++) {
        const int64_t q = i % yd[3], p = i / yd[3] % yd[2], o = i / yd[3] / yd[2] % yd[1];
        const int64_t n = i / yd[3] / yd[2] / yd[1], first = o / per_group * kd[1];
        double sum = 0;
        for (int64_t j = 0; j < kd[1] * kd[2] * kd[3]; j++) {
            const int64_t c = j / kd[3] / kd[2], ky = j / kd[3] % kd[2], kx = j % kd[3];
            const int64_t row = p * w->stride[0] - w->before[0] + ky * w->dilation[0];
            const int64_t column = q * w->stride[1] - w->before[1] + kx * w->dilation[1];
            if (row < 0 || row >= xd[2] || column < 0 || column >= xd[3])
                continue;
            float *pixel = &x->values[((n * xd[1] + first + c) * xd[2] + row) * xd[3] + column];
            const float by = k->values[o * kd[1] * kd[2] * kd[3] + j];
            if (back)
                *pixel += by * y->values[i];
            else
                sum += (double)by * *pixel;
        }
        if (!back)
            y->values[i] = (float)sum;
    }
}

static void run_conv(state *s, descriptor op)
{
    const window w = window_of(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
    const tensor *x = input(s, op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X);
    const tensor *k = input(s, op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W);
    convolve(s, x, k, output(s, op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y), &w, false);
}

static void run_conv_back(state *s, descriptor op)
{
    const window w = window_of(op, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC);
    const tensor *y = input(s, op, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY);
    const tensor *k = input(s, op, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W);
    convolve(s, output(s, op, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX), k, y, &w, true);
}

/* ---- Products ---- */

/* Where in `t` the matrix lies that is number `batch` of `like`'s. */
static const float *matrix_of(state *s, const tensor *t, const tensor *like, int64_t batch)
{
    int64_t at = 0, step = 1;
    for (int64_t d = like->rank - 3; d >= 0; d--) {
        const int64_t index = batch % like->dims[d];
        batch /= like->dims[d];
        if (t->dims[d] != 1 && t->dims[d] != like->dims[d])
            refuse(s, "a product's batches do not fit");
        at += t->dims[d] == 1 ? 0 : index * step;
        step *= t->dims[d];
    }
    return t->values + at * t->dims[t->rank - 2] * t->dims[t->rank - 1];
}

static void run_matmul(state *s, descriptor op)
{
    const tensor *a = input(s, op, CUDNN_ATTR_OPERATION_MATMUL_ADESC);
    const tensor *b = input(s, op, CUDNN_ATTR_OPERATION_MATMUL_BDESC);
    const tensor *c = output(s, op, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
    const int64_t r = c->rank, m = c->dims[r - 2], n = c->dims[r - 1], k = a->dims[a->rank - 1];
    if (a->rank != r || b->rank != r || a->dims[r - 2] != m || b->dims[r - 1] != n ||
        b->dims[r - 2] != k) {
        refuse(s, "a product's matrices do not fit");
        return;
    }
    for (int64_t i = 0; i < c->count; i++) {
        const float *row = matrix_of(s, a, c, i / m / n) + i / n % m * k;
        const float *column = matrix_of(s, b, c, i / m / n) + i % n;
        double sum = 0;
        for (int64_t j = 0; j < k; j++)
            sum += (double)row[j] * column[j * n];
        c->values[i] = (float)sum;
    }
}

/* Rows of queries, keys and values, with a softmax between two products. */
static void run_attention(state *s, descriptor op)
{
    const tensor *q = input(s, op, CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC);
    const tensor *k = input(s, op, CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC);
    const tensor *v = input(s, op, CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC);
    const tensor *by = input(s, op, CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC);
    const tensor *o = output(s, op, CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC);
    const int64_t heads = q->dims[0] * q->dims[1], n = k->dims[2], size = q->dims[3];
    if (k->dims[3] != size || v->dims[2] != n || o->dims[2] != q->dims[2] ||
        o->dims[3] != v->dims[3]) {
        refuse(s, "an attention's sizes do not fit");
        return;
    }
    double *weight = calloc((size_t)n, sizeof *weight);
    for (int64_t i = 0; i < heads * q->dims[2]; i++) {
        const int64_t head = i / q->dims[2];
        double greatest = -INFINITY, sum = 0;
        for (int64_t j = 0; j < n; j++) {
            weight[j] = 0;
            for (int64_t d = 0; d < size; d++)
                weight[j] += (double)q->values[i * size + d] * k->values[(head * n + j) * size + d];
            weight[j] *= by ? by->values[0] : 1;
            greatest = fmax(greatest, weight[j]);
        }
        for (int64_t j = 0; j < n; j++)
            sum += weight[j] = exp(weight[j] - greatest);
        for (int64_t d = 0; d < v->dims[3]; d++) {
            double value = 0;
            for (int64_t j = 0; j < n; j++)
                value += weight[j] * v->values[(head * n + j) * v->dims[3] + d];
            o->values[i * v->dims[3] + d] = (float)(value / sum);
        }
    }
    free(weight);
}

/* ---- Elements ---- */

static double of_one(state *s, int mode, double x, double slope)
{
    switch (mode) {
    case CUDNN_POINTWISE_ABS:
        return fabs(x);
    case CUDNN_POINTWISE_CEIL:
        return ceil(x);
    case CUDNN_POINTWISE_COS:
        return cos(x);
    case CUDNN_POINTWISE_EXP:
        return exp(x);
    case CUDNN_POINTWISE_FLOOR:
        return floor(x);
    case CUDNN_POINTWISE_LOG:
        return log(x);
    case CUDNN_POINTWISE_NEG:
        return -x;
    case CUDNN_POINTWISE_SIN:
        return sin(x);
    case CUDNN_POINTWISE_SQRT:
        return sqrt(x);
    case CUDNN_POINTWISE_TAN:
        return tan(x);
    case CUDNN_POINTWISE_ERF:
        return erf(x);
    case CUDNN_POINTWISE_IDENTITY:
        return x;
    case CUDNN_POINTWISE_RECIPROCAL:
        return 1 / x;
    case CUDNN_POINTWISE_RELU_FWD:
        return x > 0 ? x : slope * x;
    case CUDNN_POINTWISE_TANH_FWD:
        return tanh(x);
    case CUDNN_POINTWISE_SIGMOID_FWD:
        return 1 / (1 + exp(-x));
    case CUDNN_POINTWISE_ELU_FWD:
        return x < 0 ? slope * expm1(x) : x;
    case CUDNN_POINTWISE_GELU_FWD:
        return 0.5 * x * (1 + erf(x / sqrt(2)));
    case CUDNN_POINTWISE_GELU_APPROX_TANH_FWD:
        return 0.5 * x * (1 + tanh(0.7978845608 * (x + 0.044715 * x * x * x)));
    case CUDNN_POINTWISE_SOFTPLUS_FWD:
        return x > 30 ? x : log1p(exp(x));
    }
    refuse(s, "there is no such function of one element");
    return 0;
}

static double of_two(state *s, int mode, double x, double y)
{
    switch (mode) {
    case CUDNN_POINTWISE_ADD:
        return x + y;
    case CUDNN_POINTWISE_SUB:
        return x - y;
    case CUDNN_POINTWISE_MUL:
        return x * y;
    case CUDNN_POINTWISE_DIV:
        return x / y;
    case CUDNN_POINTWISE_MAX:
        return fmax(x, y);
    case CUDNN_POINTWISE_MIN:
        return fmin(x, y);
    case CUDNN_POINTWISE_POW:
        return pow(x, y);
    }
    refuse(s, "there is no such function of two elements");
    return 0;
}

/* Element i of `like`, of a tensor whose dimensions of 1 are repeated. */
static float element_of(state *s, const tensor *t, const tensor *like, int64_t i)
{
    int64_t at = 0, step = 1;
    for (int64_t d = like->rank - 1; d >= 0; i /= like->dims[d--]) {
        if (t->rank != like->rank || (t->dims[d] != 1 && t->dims[d] != like->dims[d])) {
            refuse(s, "an operand does not fit its result");
            return 0;
        }
        at += t->dims[d] == 1 ? 0 : i % like->dims[d] * step;
        step *= t->dims[d];
    }
    return t->values[at];
}

static double slope_of(descriptor function)
{
    const fake_attr *relu = fake_find(function, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE);
    const fake_attr *elu = fake_find(function, CUDNN_ATTR_POINTWISE_ELU_ALPHA);
    return relu ? *(const double *)relu->values : elu ? *(const double *)elu->values : 0;
}

/* What cuDNN 9.19 computes wrongly, as an H100 and an H200 showed, is noise here too. */
static void make_noise(const tensor *y)
{
    for (int64_t i = 0; i < y->count; i++)
        y->values[i] = NAN;
}

/* An operand that is repeated along the last dimension, and along another or in the company of one.
 */
static bool is_misread(const tensor *t, const tensor *y)
{
    return t && !t->is_number && !t->is_virtual && y->rank == 3 && t->dims[2] == 1 &&
           y->dims[2] > 1 && (y->dims[0] > 1 || t->dims[1] != y->dims[1]);
}

/* Behind a product of four dimensions, which begins an attention: a mask that is repeated. */
static bool is_misread_mask(const state *s, const tensor *t, const tensor *y)
{
    const fake_attr *ops = fake_find(s->run->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
    const fake_descriptor *first = *(fake_descriptor **)ops->values;
    return t && !t->is_number && !t->is_virtual && y->rank == 4 &&
           first->type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR &&
           (t->dims[2] != y->dims[2] || t->dims[3] != y->dims[3]);
}

static void run_pointwise(state *s, descriptor op)
{
    descriptor function = fake_child(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    const int mode = (int)fake_int(function, CUDNN_ATTR_POINTWISE_MODE, -1);
    const double slope = slope_of(function);
    const tensor *x = input(s, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
    const tensor *b = input(s, op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
    const tensor *y = output(s, op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
    for (int64_t d = 0; d < y->rank; d++)
        if (x->dims[d] != y->dims[d] && (!b || b->dims[d] != y->dims[d]))
            refuse(s, "a result has another shape than its operands");
    for (int64_t i = 0; i < y->count && !s->wrong; i++) {
        const float value = element_of(s, x, y, i);
        y->values[i] = (float)(b ? of_two(s, mode, value, element_of(s, b, y, i))
                                 : of_one(s, mode, value, slope));
    }
    if (is_misread(x, y) || is_misread(b, y) || is_misread_mask(s, b, y))
        make_noise(y);
}

/* ---- Pools, norms, reductions ---- */

static int64_t whole(descriptor of, cudnnBackendAttributeName_t name, int i)
{
    const cudnnFraction_t *f = fake_find(of, name)->values;
    return f[i].numerator / f[i].denominator;
}

static void run_pool(state *s, descriptor op)
{
    descriptor r = fake_child(op, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC);
    const int mode = (int)fake_int(r, CUDNN_ATTR_RESAMPLE_MODE, -1);
    const tensor *x = input(s, op, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC);
    const tensor *y = output(s, op, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC);
    int64_t size[2], stride[2], before[2];
    for (int i = 0; i < 2; i++) {
        size[i] = whole(r, CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, i);
        stride[i] = whole(r, CUDNN_ATTR_RESAMPLE_STRIDES, i);
        before[i] = whole(r, CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, i);
        if (y->dims[2 + i] != (x->dims[2 + i] + before[i] - size[i] +
                               whole(r, CUDNN_ATTR_RESAMPLE_POST_PADDINGS, i)) /
                                      stride[i] +
                                  1)
            refuse(s, "a pool's sizes do not fit");
    }
    for (int64_t i = 0; i < y->count; i++) {
        const int64_t top = i / y->dims[3] % y->dims[2] * stride[0] - before[0];
        const int64_t left = i % y->dims[3] * stride[1] - before[1];
        const float *plane = x->values + i / y->dims[3] / y->dims[2] * x->dims[2] * x->dims[3];
        double sum = 0, greatest = -INFINITY;
        int64_t n = 0;
        for (int64_t j = 0; j < size[0] * size[1]; j++) {
            const int64_t row = top + j / size[1], column = left + j % size[1];
            if (row < 0 || row >= x->dims[2] || column < 0 || column >= x->dims[3])
                continue;
            sum += plane[row * x->dims[3] + column];
            greatest = fmax(greatest, plane[row * x->dims[3] + column]);
            n++;
        }
        n = mode == CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING ? size[0] * size[1] : n;
        y->values[i] = (float)(mode == CUDNN_RESAMPLE_MAXPOOL ? greatest : sum / (double)n);
    }
    if (y->type == CUDNN_DATA_BFLOAT16)
        make_noise(y);
}

static void run_norm(state *s, descriptor op)
{
    const tensor *x = input(s, op, CUDNN_ATTR_OPERATION_NORM_FWD_XDESC);
    const tensor *scale = input(s, op, CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC);
    const tensor *bias = input(s, op, CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC);
    const tensor *epsilon = input(s, op, CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC);
    const tensor *y = output(s, op, CUDNN_ATTR_OPERATION_NORM_FWD_YDESC);
    const int64_t n = x->count / x->dims[0];
    if (scale->count != n || bias->count != n || y->count != x->count)
        refuse(s, "a norm's sizes do not fit");
    for (int64_t row = 0; row < x->dims[0] && !s->wrong; row++) {
        const float *in = x->values + row * n;
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < n; i++)
            mean += in[i] / (double)n;
        for (int64_t i = 0; i < n; i++)
            variance += (in[i] - mean) * (in[i] - mean) / (double)n;
        for (int64_t i = 0; i < n; i++)
            y->values[row * n + i] =
                (float)((in[i] - mean) / sqrt(variance + epsilon->values[0]) * scale->values[i] +
                        bias->values[i]);
    }
}

static void run_reduce(state *s, descriptor op)
{
    descriptor r = fake_child(op, CUDNN_ATTR_OPERATION_REDUCTION_DESC);
    const int mode = (int)fake_int(r, CUDNN_ATTR_REDUCTION_OPERATOR, -1);
    const tensor *x = input(s, op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
    const tensor *y = output(s, op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
    const float start = mode == CUDNN_REDUCE_TENSOR_MAX   ? -INFINITY
                        : mode == CUDNN_REDUCE_TENSOR_MIN ? INFINITY
                                                          : 0;
    for (int64_t i = 0; i < y->count; i++)
        y->values[i] = start;
    for (int64_t i = 0; i < x->count; i++) {
        int64_t at = 0, step = 1, left = i;
        for (int64_t d = x->rank - 1; d >= 0; left /= x->dims[d--]) {
            at += y->dims[d] == 1 ? 0 : left % x->dims[d] * step;
            step *= y->dims[d];
        }
        float *out = &y->values[at];
        *out = mode == CUDNN_REDUCE_TENSOR_MAX   ? fmaxf(*out, x->values[i])
               : mode == CUDNN_REDUCE_TENSOR_MIN ? fminf(*out, x->values[i])
                                                 : *out + x->values[i];
    }
}

/* ---- All of it ---- */

static const struct {
    cudnnBackendDescriptorType_t type;
    void (*run)(state *s, descriptor op);
} rows[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, run_conv},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, run_conv_back},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, run_matmul},
    {CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR, run_attention},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, run_pointwise},
    {CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR, run_pool},
    {CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR, run_norm},
    {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, run_reduce},
};

CUresult fake_run_graph(const fake_run *run)
{
    state s = {.run = run};
    const fake_attr *ops = fake_find(run->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
    if (!run->workspace || !fake_owns(run->workspace, FAKE_WORKSPACE))
        refuse(&s, "there is no workspace");
    else
        memset(run->workspace, 0xFF, FAKE_WORKSPACE);
    for (int64_t i = 0; i < ops->n && !s.wrong; i++) {
        descriptor op = ((fake_descriptor **)ops->values)[i];
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
            if (rows[k].type == op->type)
                rows[k].run(&s, op);
    }
    if (!s.wrong)
        write_results(&s);
    for (int i = 0; i < s.n; i++)
        free(s.tensors[i].values);
    if (s.wrong)
        fprintf(stderr, "fake cuDNN: %s\n", s.wrong);
    return s.wrong ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
