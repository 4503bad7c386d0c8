/* fake_cudnn_rnn.c: recurrent networks of the stand-in for cuDNN: one layer, packed sequences, from
 * a state of zeros. Weights lie as it likes, with gaps, so that only who asks finds them. Gates are
 * in the order that NVIDIA's reference of cudnnGetRNNWeightParams() gives, and so are the formulas.
 */
#include "fake_cudnn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GAP = 24, TEMPORARY = 640 }; /* values; bytes */

struct cudnnRNNStruct {
    cudnnRNNMode_t mode;
    cudnnDataType_t type;
    int features, hidden, directions, n_gates;
    bool has_bias;
};

struct cudnnRNNDataStruct {
    cudnnDataType_t type;
    int steps, batch, width;
};

struct cudnnTensorStruct {
    int rank, dims[3];
};

struct cudnnDropoutStruct {
    float rate;
};

#define MAKE(TYPE, NAME)                                                                           \
    EXPORT cudnnStatus_t cudnnCreate##NAME##Descriptor(TYPE *out)                                  \
    {                                                                                              \
        *out = calloc(1, sizeof **out);                                                            \
        return CUDNN_STATUS_SUCCESS;                                                               \
    }                                                                                              \
    EXPORT cudnnStatus_t cudnnDestroy##NAME##Descriptor(TYPE descriptor)                           \
    {                                                                                              \
        free(descriptor);                                                                          \
        return CUDNN_STATUS_SUCCESS;                                                               \
    }
MAKE(cudnnRNNDescriptor_t, RNN)
MAKE(cudnnRNNDataDescriptor_t, RNNData)
MAKE(cudnnTensorDescriptor_t, Tensor)
MAKE(cudnnDropoutDescriptor_t, Dropout)

EXPORT cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t out, cudnnHandle_t handle,
                                               float rate, void *states, size_t bytes,
                                               unsigned long long seed)
{
    (void)handle;
    (void)states;
    (void)bytes;
    (void)seed;
    out->rate = rate;
    return rate == 0 ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

EXPORT cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t out, cudnnDataType_t type,
                                                int rank, const int dims[], const int strides[])
{
    (void)type;
    if (rank != 3 || strides[2] != 1 || strides[1] != dims[2] || strides[0] != dims[1] * dims[2])
        return CUDNN_STATUS_BAD_PARAM;
    out->rank = rank;
    memcpy(out->dims, dims, sizeof out->dims);
    return CUDNN_STATUS_SUCCESS;
}

EXPORT cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t out, cudnnDataType_t type,
                                               cudnnRNNDataLayout_t layout, int steps, int batch,
                                               int width, const int lengths[], void *fill)
{
    (void)fill;
    for (int i = 0; i < batch; i++)
        if (lengths[i] != steps)
            return CUDNN_STATUS_NOT_SUPPORTED;
    *out = (struct cudnnRNNDataStruct){type, steps, batch, width};
    return layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED ? CUDNN_STATUS_SUCCESS
                                                            : CUDNN_STATUS_NOT_SUPPORTED;
}

EXPORT cudnnStatus_t cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t out, cudnnRNNAlgo_t algorithm,
                                              cudnnRNNMode_t mode, cudnnRNNBiasMode_t bias,
                                              cudnnDirectionMode_t direction,
                                              cudnnRNNInputMode_t input, cudnnDataType_t type,
                                              cudnnDataType_t precision, cudnnMathType_t math,
                                              int32_t features, int32_t hidden, int32_t projected,
                                              int32_t layers, cudnnDropoutDescriptor_t dropout,
                                              uint32_t flags)
{
    (void)algorithm;
    (void)math;
    *out = (struct cudnnRNNStruct){.mode = mode,
                                   .type = type,
                                   .features = features,
                                   .hidden = hidden,
                                   .directions = direction == CUDNN_BIDIRECTIONAL ? 2 : 1,
                                   .n_gates = mode == CUDNN_LSTM ? 4 : 3,
                                   .has_bias = bias == CUDNN_RNN_DOUBLE_BIAS};
    return (mode == CUDNN_LSTM || mode == CUDNN_GRU) && input == CUDNN_LINEAR_INPUT &&
                   (bias == CUDNN_RNN_DOUBLE_BIAS || bias == CUDNN_RNN_NO_BIAS) &&
                   precision == CUDNN_DATA_FLOAT && projected == hidden && layers == 1 && dropout &&
                   flags == CUDNN_RNN_PADDED_IO_DISABLED && !fake_fault("rnn")
               ? CUDNN_STATUS_SUCCESS
               : CUDNN_STATUS_NOT_SUPPORTED;
}

/* ---- Weights ---- */

/* Where a matrix begins, in values; behind the last, the biases; behind those, the end. */
static size_t matrix_at(const struct cudnnRNNStruct *r, int direction, int matrix)
{
    const size_t hidden = (size_t)r->hidden, n = (size_t)r->n_gates;
    const size_t all = n * (hidden * (size_t)r->features + GAP + hidden * hidden + GAP);
    size_t at = (size_t)direction * all;
    for (int i = 0; i < matrix; i++)
        at += hidden * (size_t)(i < r->n_gates ? r->features : r->hidden) + GAP;
    return at;
}

static size_t bias_at(const struct cudnnRNNStruct *r, int direction, int matrix)
{
    return matrix_at(r, r->directions, 0) +
           (size_t)(direction * 2 * r->n_gates + matrix) * (size_t)(r->hidden + GAP);
}

EXPORT cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle, cudnnRNNDescriptor_t r,
                                                size_t *out)
{
    (void)handle;
    *out = bias_at(r, r->directions, 0) * fake_type_size(r->type);
    return CUDNN_STATUS_SUCCESS;
}

EXPORT cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t handle, cudnnRNNDescriptor_t r,
                                               cudnnForwardMode_t mode, cudnnRNNDataDescriptor_t x,
                                               size_t *work, size_t *reserve)
{
    (void)handle;
    *work = TEMPORARY;
    *reserve = 0;
    return mode == CUDNN_FWD_MODE_INFERENCE && x->type == r->type ? CUDNN_STATUS_SUCCESS
                                                                  : CUDNN_STATUS_BAD_PARAM;
}

EXPORT cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t handle, cudnnRNNDescriptor_t r,
                                             int32_t layer, size_t bytes, const void *space,
                                             int32_t matrix, cudnnTensorDescriptor_t matrix_desc,
                                             void **matrix_out, cudnnTensorDescriptor_t bias_desc,
                                             void **bias_out)
{
    const size_t size = fake_type_size(r->type);
    (void)handle;
    (void)bytes;
    if (layer >= r->directions || matrix >= 2 * r->n_gates || !matrix_desc || !bias_desc)
        return CUDNN_STATUS_BAD_PARAM;
    *matrix_out = (char *)(size_t)space + matrix_at(r, layer, matrix) * size;
    *bias_out = r->has_bias ? (char *)(size_t)space + bias_at(r, layer, matrix) * size : NULL;
    return CUDNN_STATUS_SUCCESS;
}

/* ---- Running ---- */

typedef struct rnn_run {
    fake_call call;
    struct cudnnRNNStruct r;
    struct cudnnRNNDataStruct x, y;
    const char *in, *weights;
    char *out, *temporary;
} rnn_run;

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* Row i of matrix `matrix` times a vector, and its bias. */
static double product(const rnn_run *run, int direction, int matrix, int i, const double *vector)
{
    const struct cudnnRNNStruct *r = &run->r;
    const int n = matrix < r->n_gates ? r->features : r->hidden;
    const size_t at = matrix_at(r, direction, matrix) + (size_t)(i * n);
    const size_t bias = bias_at(r, direction, matrix) + (size_t)i;
    double sum = r->has_bias ? fake_read(run->weights, r->type, (int64_t)bias) : 0;
    for (int k = 0; k < n; k++)
        sum += fake_read(run->weights, r->type, (int64_t)at + k) * vector[k];
    return sum;
}

/* One value of the next state; `cell` is an LSTM's. */
static double next_of(const rnn_run *run, int d, int i, const double *x, const double *h,
                      double *cell)
{
    const int n = run->r.n_gates;
    double in[4] = {0}, back[4] = {0};
    for (int g = 0; g < n; g++) {
        in[g] = product(run, d, g, i, x);
        back[g] = product(run, d, n + g, i, h);
    }
    if (run->r.mode == CUDNN_LSTM) { /* in, forget, new, out */
        *cell = sigmoid(in[1] + back[1]) * *cell + sigmoid(in[0] + back[0]) * tanh(in[2] + back[2]);
        return sigmoid(in[3] + back[3]) * tanh(*cell);
    }
    const double reset = sigmoid(in[0] + back[0]), update = sigmoid(in[1] + back[1]);
    return (1 - update) * tanh(in[2] + reset * back[2]) + update * h[i];
}

static void run_sequence(const rnn_run *run, int d, int sample)
{
    const int hidden = run->r.hidden, features = run->r.features;
    double *state = calloc((size_t)(3 * hidden + features), sizeof *state);
    double *h = state, *next = state + hidden, *cell = next + hidden, *x = cell + hidden;
    for (int step = 0; step < run->x.steps; step++) {
        const int64_t row = (int64_t)(d ? run->x.steps - 1 - step : step) * run->x.batch + sample;
        for (int k = 0; k < features; k++)
            x[k] = fake_read(run->in, run->x.type, row * features + k);
        for (int i = 0; i < hidden; i++)
            next[i] = next_of(run, d, i, x, h, &cell[i]);
        memcpy(h, next, (size_t)hidden * sizeof *h);
        for (int i = 0; i < hidden; i++)
            fake_write(run->out, run->y.type, (row * run->r.directions + d) * hidden + i, h[i]);
    }
    free(state);
}

static CUresult run_rnn(fake_call *call)
{
    const rnn_run *run = (const rnn_run *)call;
    const size_t rows = (size_t)(run->x.steps * run->x.batch);
    if (!fake_owns(run->in, rows * (size_t)run->x.width * fake_type_size(run->x.type)) ||
        !fake_owns(run->out, rows * (size_t)run->y.width * fake_type_size(run->y.type)) ||
        !fake_owns(run->temporary, TEMPORARY))
        return CUDA_ERROR_INVALID_VALUE;
    memset(run->temporary, 0xFF, TEMPORARY);
    for (int i = 0; i < run->r.directions * run->x.batch; i++)
        run_sequence(run, i % run->r.directions, i / run->r.directions);
    return CUDA_SUCCESS;
}

static void free_call(fake_call *call)
{
    free(call);
}

EXPORT cudnnStatus_t cudnnRNNForward(cudnnHandle_t handle, cudnnRNNDescriptor_t r,
                                     cudnnForwardMode_t mode, const int32_t lengths[],
                                     cudnnRNNDataDescriptor_t x, const void *in,
                                     cudnnRNNDataDescriptor_t y, void *out,
                                     cudnnTensorDescriptor_t h, const void *hx, void *hy,
                                     cudnnTensorDescriptor_t c, const void *cx, void *cy,
                                     size_t weight_bytes, const void *weights, size_t bytes,
                                     void *temporary, size_t reserved, void *reserve)
{
    (void)lengths;
    (void)c;
    (void)weight_bytes;
    (void)reserved;
    (void)reserve;
    if (!handle || mode != CUDNN_FWD_MODE_INFERENCE || hx || hy || cx || cy || bytes < TEMPORARY ||
        x->width != r->features || y->width != r->directions * r->hidden || x->type != r->type ||
        y->type != r->type || h->dims[0] != r->directions || h->dims[1] != x->batch ||
        h->dims[2] != r->hidden)
        return CUDNN_STATUS_BAD_PARAM;
    rnn_run *run = calloc(1, sizeof *run);
    *run = (rnn_run){.call = {.run = run_rnn, .free = free_call},
                     .r = *r,
                     .x = *x,
                     .y = *y,
                     .in = in,
                     .weights = weights,
                     .out = out,
                     .temporary = temporary};
    return fake_enqueue(&run->call) ? CUDNN_STATUS_EXECUTION_FAILED : CUDNN_STATUS_SUCCESS;
}
