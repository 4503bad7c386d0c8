/* net.c: small facts about tensors in the GPU's memory, weights on their way there, and steps. */
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "device/cudnn/cudnn_steps.h"

static const struct {
    const char *name;
    size_t size;
} types[HWNAS_CUDNN_N_TYPES] = {
    [HWNAS_CUDNN_F32] = {"f32", 4}, [HWNAS_CUDNN_F16] = {"f16", 2}, [HWNAS_CUDNN_BF16] = {"bf16", 2},
    [HWNAS_CUDNN_S8] = {"s8", 1},   [HWNAS_CUDNN_S32] = {"s32", 4},
};

const char *hwnas_cudnn_type_name(hwnas_cudnn_type type)
{
    return types[type].name;
}

size_t hwnas_cudnn_type_size(hwnas_cudnn_type type)
{
    return types[type].size;
}

char *hwnas_cudnn_address(const hwnas_cudnn_net *net, const hwnas_cudnn_launch *launch, int tensor)
{
    const hwnas_cudnn_tensor *t = &net->tensors[tensor], *root = &net->tensors[t->root];
    return launch->memories[root->memory] + root->offset +
           (size_t)t->first * types[t->type].size;
}

void hwnas_cudnn_plain_strides(int64_t *out, int rank, const int64_t *dims)
{
    int64_t stride = 1;
    for (int i = rank - 1; i >= 0; stride *= dims[i--])
        out[i] = stride;
}

bool hwnas_cudnn_is_plain(const hwnas_cudnn_tensor *tensor)
{
    int64_t stride = 1;
    for (int i = tensor->rank - 1; i >= 0; stride *= tensor->dims[i--])
        if (tensor->dims[i] != 1 && tensor->strides[i] != stride)
            return false;
    return true;
}

int64_t hwnas_cudnn_count(const hwnas_cudnn_tensor *tensor)
{
    int64_t count = 1;
    for (int i = 0; i < tensor->rank; i++)
        count *= tensor->dims[i];
    return count;
}

static void store(void *out, int64_t at, hwnas_cudnn_type type, float value)
{
    switch (type) {
    case HWNAS_CUDNN_F32:
        ((float *)out)[at] = value;
        break;
    case HWNAS_CUDNN_F16:
        ((uint16_t *)out)[at] = hwnas_half_of(value);
        break;
    case HWNAS_CUDNN_BF16:
        ((uint16_t *)out)[at] = hwnas_bfloat16_of(value);
        break;
    case HWNAS_CUDNN_S8:
        ((int8_t *)out)[at] = (int8_t)value;
        break;
    default:
        ((int32_t *)out)[at] = (int32_t)value;
    }
}

void hwnas_cudnn_fill(void *out, const hwnas_cudnn_net *net, int tensor)
{
    const hwnas_cudnn_tensor *t = &net->tensors[tensor];
    const hwnas_tensor *source = &net->graph->tensors[t->source];
    const int64_t n = hwnas_tensor_count(source);
    float *values = hwnas_alloc((size_t)n * sizeof *values);
    int64_t index[HWNAS_MAX_RANK] = {0}, at = 0;
    hwnas_tensor_fill(source, values);
    for (int64_t i = 0; i < n; i++) {
        store(out, at, t->type, values[i]);
        for (int k = t->rank - 1; k >= 0; k--) { /* the next index, last dimension first */
            at += t->strides[k];
            if (++index[k] < t->dims[k])
                break;
            at -= t->dims[k] * t->strides[k];
            index[k] = 0;
        }
    }
    free(values);
}

hwnas_cudnn_step *hwnas_cudnn_add_step(hwnas_cudnn_net *net, const hwnas_cudnn_kind *kind,
                                       const char *name, int n_nodes, const int *nodes,
                                       int n_inputs, const int *inputs, int output)
{
    HWNAS_ARENA_GROW(net->arena, net->steps, net->n_steps, net->step_capacity);
    hwnas_cudnn_step *step = &net->steps[net->n_steps++];
    *step = (hwnas_cudnn_step){.kind = kind, .name = name, .n_inputs = n_inputs, .n_outputs = 1};
    step->about = (hwnas_exec_step){
        .n_nodes = (size_t)n_nodes,
        .nodes = hwnas_arena_copy(net->arena, nodes, (size_t)n_nodes * sizeof *nodes),
        .how = kind->name};
    step->inputs = hwnas_arena_copy(net->arena, inputs, (size_t)n_inputs * sizeof *inputs);
    step->outputs = hwnas_arena_copy(net->arena, &output, sizeof output);
    return step;
}
