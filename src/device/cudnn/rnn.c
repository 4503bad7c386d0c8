/* rnn.c: LSTM and GRU through cuDNN's functions for recurrent networks, which need a GPU for
 * everything; where there is none, nothing is made. What they lack is left to our kernel: a single
 * direction that is backward, and what they refuse.
 *
 * cuDNN's gates come in another order than ONNX's (the order is in `cell`), each with a matrix and
 * a bias of its own in a space that cuDNN lays out. Its output has both directions of one item side
 * by side, ours has the items of one direction together, so with several of both the output is
 * turned by a kernel. */
#include "graph/ops/recurrent.h"

#include <stdlib.h>

#include "device/cudnn/kernels.h"
#include "device/cudnn/live.h"
#include "device/cudnn/cudnn_steps.h"

enum { MAX_GATES = 4 };

typedef struct cell {
    hwnas_op_id op;
    cudnnRNNMode_t mode;
    int n_gates;
    int gate[MAX_GATES]; /* for each of cuDNN's, which of ONNX's */
} cell;

static const cell cells[] = {
    {HWNAS_OP_LSTM_CORE, CUDNN_LSTM, 4, {0, 2, 3, 1}}, /* in, forget, cell, out */
    {HWNAS_OP_GRU_CORE, CUDNN_GRU, 3, {1, 0, 2}},      /* reset, update, hidden */
};

typedef struct rnn_state {
    const cell *cell;
    int steps, batch, features, hidden, directions;
    bool has_bias;
    hwnas_live *live;
    cudnnRNNDescriptor_t rnn;
    cudnnDropoutDescriptor_t dropout;
    cudnnRNNDataDescriptor_t x, y;
    cudnnTensorDescriptor_t h;
    CUdeviceptr weights, temporary;
    size_t weight_bytes, temporary_bytes;
    size_t turned_bytes; /* of the output as cuDNN has it, in the workspace; 0: it is as ours */
    hwnas_launches turn;
    const hwnas_image *image;
    CUfunction function;
} rnn_state;

static const hwnas_node *node_of(const hwnas_cudnn_step *step, const hwnas_cudnn_net *net)
{
    return &net->graph->nodes[step->about.nodes[0]];
}

/* The kernel that turns the output: from steps, batch, directions, hidden. */
static hwnas_status compile_turn(rnn_state *s, const hwnas_cudnn_step *step,
                                 const hwnas_cudnn_net *net)
{
    const hwnas_cudnn_tensor *out = &net->tensors[step->outputs[0]];
    hwnas_view to = {.type = (int)out->type, .rank = 4}, from;
    for (int i = 0; i < 4; i++) {
        to.dims[i] = (int)out->dims[i];
        to.steps[i] = (int)out->strides[i];
    }
    from = to;
    from.steps[0] = s->batch * s->directions * s->hidden;
    from.steps[1] = s->hidden;
    from.steps[2] = s->directions * s->hidden;
    from.steps[3] = 1;
    hwnas_kernels_copy(&s->turn, 0, &to, 1, &from);
    const hwnas_kernel *kernel = s->turn.all[0].kernel;
    char *options = hwnas_launch_options(&s->turn.all[0]);
    hwnas_status status =
        hwnas_image_make(&s->image, kernel->name, kernel->file, options, net->device->gpu.sm);
    free(options);
    return status;
}

static cudnnDataType_t type_of(hwnas_cudnn_type type)
{
    return type == HWNAS_CUDNN_F16    ? CUDNN_DATA_HALF
           : type == HWNAS_CUDNN_BF16 ? CUDNN_DATA_BFLOAT16
                                      : CUDNN_DATA_FLOAT;
}

static cudnnMathType_t math_of(hwnas_precision precision)
{
    return precision == HWNAS_F32    ? CUDNN_FMA_MATH
           : precision == HWNAS_TF32 ? CUDNN_DEFAULT_MATH
                                     : CUDNN_TENSOR_OP_MATH;
}

#define TRY_RNN(verb, call) TRY(hwnas_cudnn_run_status(s->live, call, verb, step->name))

static hwnas_status describe_data(cudnnRNNDataDescriptor_t *out, const rnn_state *s,
                                  const hwnas_cudnn_step *step, cudnnDataType_t type, int width)
{
    const hwnas_cudnn_run_api *api = hwnas_live_cudnn(s->live);
    int *lengths = hwnas_alloc((size_t)s->batch * sizeof *lengths);
    for (int i = 0; i < s->batch; i++)
        lengths[i] = s->steps;
    cudnnStatus_t result = api->create_rnn_data(out);
    if (result == CUDNN_STATUS_SUCCESS)
        result = api->set_rnn_data(*out, type, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED, s->steps,
                                   s->batch, width, lengths, NULL);
    free(lengths);
    TRY_RNN("describe", result);
    return HWNAS_OK;
}

static hwnas_status describe(rnn_state *s, const hwnas_cudnn_step *step, const hwnas_cudnn_net *net)
{
    const hwnas_cudnn_run_api *api = hwnas_live_cudnn(s->live);
    const cudnnDataType_t type = type_of(net->tensors[step->inputs[HWNAS_RNN_X]].type);
    const int dims[] = {s->directions, s->batch, s->hidden};
    const int strides[] = {s->batch * s->hidden, s->hidden, 1};
    TRY_RNN("describe", api->create_dropout(&s->dropout));
    TRY_RNN("describe",
            api->set_dropout(s->dropout, hwnas_live_handle(s->live), 0, NULL, 0, 0));
    TRY_RNN("describe", api->create_rnn(&s->rnn));
    TRY_RNN("describe",
            api->set_rnn(s->rnn, CUDNN_RNN_ALGO_STANDARD, s->cell->mode,
                         s->has_bias ? CUDNN_RNN_DOUBLE_BIAS : CUDNN_RNN_NO_BIAS,
                         s->directions == 2 ? CUDNN_BIDIRECTIONAL : CUDNN_UNIDIRECTIONAL,
                         CUDNN_LINEAR_INPUT, type, CUDNN_DATA_FLOAT, math_of(net->precision),
                         s->features, s->hidden, s->hidden, 1, s->dropout,
                         CUDNN_RNN_PADDED_IO_DISABLED));
    TRY(describe_data(&s->x, s, step, type, s->features));
    TRY(describe_data(&s->y, s, step, type, s->directions * s->hidden));
    TRY_RNN("describe", api->create_tensor(&s->h));
    TRY_RNN("describe", api->set_tensor(s->h, type, 3, dims, strides));
    return HWNAS_OK;
}

static hwnas_status measure(rnn_state *s, const hwnas_cudnn_step *step)
{
    const hwnas_cudnn_run_api *api = hwnas_live_cudnn(s->live);
    const cudnnHandle_t handle = hwnas_live_handle(s->live);
    size_t unused = 0;
    TRY_RNN("measure", api->rnn_weight_size(handle, s->rnn, &s->weight_bytes));
    TRY_RNN("measure", api->rnn_temp_sizes(handle, s->rnn, CUDNN_FWD_MODE_INFERENCE, s->x,
                                           &s->temporary_bytes, &unused));
    return HWNAS_OK;
}

/* With a GPU, what cuDNN refuses is known at once, and the layer goes to our kernel. */
static hwnas_status make_rnn(rnn_state *s, const hwnas_cudnn_step *step, const hwnas_cudnn_net *net)
{
    hwnas_status status = describe(s, step, net);
    if (status == HWNAS_OK)
        status = measure(s, step);
    return status == HWNAS_E_LIBRARY
               ? hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "cuDNN does not run '%s'", step->name)
               : status;
}

static hwnas_status take_memory(rnn_state *s, const hwnas_cudnn_step *step)
{
    const hwnas_cuda_api *cuda = hwnas_live_api(s->live);
    TRY_CUDA(cuda, "take memory for", step->name, cuda->alloc(&s->weights, s->weight_bytes));
    if (s->temporary_bytes)
        TRY_CUDA(cuda, "take memory for", step->name,
                 cuda->alloc(&s->temporary, s->temporary_bytes));
    return HWNAS_OK;
}

static hwnas_status compile_rnn(hwnas_cudnn_step *step, hwnas_cudnn_net *net)
{
    const hwnas_node *node = node_of(step, net);
    const hwnas_cudnn_tensor *x = &net->tensors[step->inputs[HWNAS_RNN_X]];
    const hwnas_cudnn_tensor *y = &net->tensors[step->outputs[0]];
    if (!net->device->cudnn ||
        node->attrs[HWNAS_RNN_DIRECTION].ints[0] == HWNAS_RNN_REVERSE)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "cuDNN does not run '%s'", step->name);
    rnn_state *s = step->state = hwnas_alloc(sizeof *s);
    *s = (rnn_state){
        .cell = &cells[node->op->id == cells[0].op ? 0 : 1],
        .steps = (int)x->dims[0],
        .batch = (int)x->dims[1],
        .features = (int)x->dims[2],
        .hidden = (int)y->dims[3],
        .directions = (int)y->dims[1],
        .has_bias = node->n_inputs > HWNAS_RNN_B,
        .live = net->device->live,
    };
    if (s->live)
        TRY(make_rnn(s, step, net));
    if (s->directions == 1 || s->batch == 1)
        return HWNAS_OK;
    /* Nothing has its place yet, nor its bytes. */
    s->turned_bytes = (size_t)hwnas_cudnn_count(y) * hwnas_cudnn_type_size(y->type);
    step->workspace = s->turned_bytes;
    return compile_turn(s, step, net);
}

/* Copies one gate's matrix and bias to where cuDNN wants them. `of`: 0 W, 1 R. */
static hwnas_status copy_gate(const rnn_state *s, const hwnas_cudnn_step *step,
                              const hwnas_cudnn_net *net, const hwnas_cudnn_launch *launch, int d,
                              int g, int of)
{
    const hwnas_cudnn_run_api *api = hwnas_live_cudnn(s->live);
    const hwnas_cuda_api *cuda = hwnas_live_api(s->live);
    const cell *c = s->cell;
    const size_t size =
        hwnas_cudnn_type_size(net->tensors[step->inputs[HWNAS_RNN_W]].type);
    const size_t columns = (size_t)(of ? s->hidden : s->features), hidden = (size_t)s->hidden;
    const size_t row = ((size_t)(d * c->n_gates) + (size_t)c->gate[g]) * hidden;
    const size_t bias = ((size_t)((2 * d + of) * c->n_gates) + (size_t)c->gate[g]) * hidden;
    cudnnTensorDescriptor_t matrix_desc = NULL, bias_desc = NULL;
    void *to_matrix = NULL, *to_bias = NULL;
    cudnnStatus_t result = api->create_tensor(&matrix_desc);
    if (result == CUDNN_STATUS_SUCCESS)
        result = api->create_tensor(&bias_desc);
    if (result == CUDNN_STATUS_SUCCESS)
        result = api->rnn_weight_params(hwnas_live_handle(s->live), s->rnn, d, s->weight_bytes,
                                        (void *)s->weights, of * c->n_gates + g, matrix_desc,
                                        &to_matrix, bias_desc, &to_bias);
    if (matrix_desc)
        api->destroy_tensor(matrix_desc);
    if (bias_desc)
        api->destroy_tensor(bias_desc);
    TRY_RNN("lay out", result);
    const char *matrices = hwnas_cudnn_address(net, launch, step->inputs[HWNAS_RNN_W + of]);
    TRY_CUDA(cuda, "copy the weights of", step->name,
             cuda->copy((CUdeviceptr)to_matrix, (CUdeviceptr)(matrices + row * columns * size),
                        hidden * columns * size, launch->stream));
    if (!s->has_bias || !to_bias)
        return HWNAS_OK;
    const char *biases = hwnas_cudnn_address(net, launch, step->inputs[HWNAS_RNN_B]);
    TRY_CUDA(cuda, "copy the weights of", step->name,
             cuda->copy((CUdeviceptr)to_bias, (CUdeviceptr)(biases + bias * size), hidden * size,
                        launch->stream));
    return HWNAS_OK;
}

static hwnas_status load_rnn(hwnas_cudnn_step *step, hwnas_cudnn_net *net,
                             const hwnas_cudnn_launch *launch)
{
    rnn_state *s = step->state;
    TRY(take_memory(s, step));
    net->step_bytes += s->weight_bytes + s->temporary_bytes;
    for (int d = 0; d < s->directions; d++)
        for (int g = 0; g < s->cell->n_gates; g++)
            for (int of = 0; of < 2; of++)
                TRY(copy_gate(s, step, net, launch, d, g, of));
    return s->image ? hwnas_live_function(&s->function, s->live, s->image) : HWNAS_OK;
}

static hwnas_status run_rnn(const hwnas_cudnn_step *step, const hwnas_cudnn_net *net,
                            const hwnas_cudnn_launch *launch)
{
    const rnn_state *s = step->state;
    const hwnas_cuda_api *cuda = hwnas_live_api(s->live);
    char *out = hwnas_cudnn_address(net, launch, step->outputs[0]);
    char *y = s->turned_bytes ? launch->workspace : out;
    TRY_RNN("run", hwnas_live_cudnn(s->live)->rnn_forward(
                       launch->handle, s->rnn, CUDNN_FWD_MODE_INFERENCE, NULL, s->x,
                       hwnas_cudnn_address(net, launch, step->inputs[HWNAS_RNN_X]), s->y, y, s->h,
                       NULL, NULL, s->h, NULL, NULL, s->weight_bytes, (void *)s->weights,
                       s->temporary_bytes, (void *)s->temporary, 0, NULL));
    if (!s->turned_bytes)
        return HWNAS_OK;
    hwnas_kernel_job job = s->turn.all[0].job;
    void *arguments[] = {&job};
    int n_blocks, n_threads;
    job.views[0].at = out;
    job.views[1].at = y;
    hwnas_launch_shape(&n_blocks, &n_threads, &s->turn.all[0]);
    TRY_CUDA(cuda, "launch", step->name,
             cuda->launch(s->function, (unsigned)n_blocks, 1, 1, (unsigned)n_threads, 1, 1, 0,
                          launch->stream, arguments, NULL));
    return HWNAS_OK;
}

static void free_rnn(hwnas_cudnn_step *step)
{
    rnn_state *s = step->state;
    if (!s)
        return;
    if (s->dropout)
        hwnas_live_cudnn(s->live)->destroy_dropout(s->dropout);
    if (s->rnn)
        hwnas_live_cudnn(s->live)->destroy_rnn(s->rnn);
    if (s->x)
        hwnas_live_cudnn(s->live)->destroy_rnn_data(s->x);
    if (s->y)
        hwnas_live_cudnn(s->live)->destroy_rnn_data(s->y);
    if (s->h)
        hwnas_live_cudnn(s->live)->destroy_tensor(s->h);
    if (s->weights)
        hwnas_live_api(s->live)->free(s->weights);
    if (s->temporary)
        hwnas_live_api(s->live)->free(s->temporary);
    hwnas_launches_done(&s->turn);
    free(s);
    step->state = NULL;
}

const hwnas_cudnn_kind hwnas_cudnn_rnn = {
    .name = "cuDNN RNN",
    .compile = compile_rnn,
    .load = load_rnn,
    .run = run_rnn,
    .free = free_rnn,
};
