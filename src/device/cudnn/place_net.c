/* place_net.c: where in memory everything is: weights, inputs and outputs one after the other,
 * activations where those that never live together share their place. */
#include <stdlib.h>

#include "device/cudnn/compile.h"
#include "device/place.h"

static size_t aligned(size_t bytes)
{
    return (bytes + HWNAS_PLACE_ALIGN - 1) / HWNAS_PLACE_ALIGN * HWNAS_PLACE_ALIGN;
}

/* One after the other, for what lives as long as the net. */
static void place_lasting(hwnas_cudnn_net *net, size_t i)
{
    hwnas_cudnn_tensor *t = &net->tensors[i];
    t->offset = net->memory_bytes[t->memory];
    net->memory_bytes[t->memory] += aligned(t->bytes);
}

/* From the first step that writes any part of a tensor to the last that reads one. */
static void find_lives(const hwnas_cudnn_net *net, int *first, int *last)
{
    for (size_t i = 0; i < net->n_tensors; i++)
        first[i] = last[i] = -1;
    for (size_t i = 0; i < net->n_steps; i++) {
        const hwnas_cudnn_step *step = &net->steps[i];
        for (int k = 0; k < step->n_outputs; k++) {
            const int root = net->tensors[step->outputs[k]].root;
            first[root] = first[root] < 0 ? (int)i : first[root];
            last[root] = (int)i;
        }
        for (int k = 0; k < step->n_inputs; k++)
            last[net->tensors[step->inputs[k]].root] = (int)i;
    }
}

void hwnas_cudnn_place(hwnas_cudnn_net *net)
{
    int *first = hwnas_alloc(net->n_tensors * sizeof *first);
    int *last = hwnas_alloc(net->n_tensors * sizeof *last);
    hwnas_block *blocks = hwnas_alloc(net->n_tensors * sizeof *blocks);
    size_t n = 0;
    find_lives(net, first, last);
    for (size_t i = 0; i < net->n_tensors; i++) {
        hwnas_cudnn_tensor *t = &net->tensors[i];
        if (t->root != (int)i || t->memory == HWNAS_CUDNN_NOWHERE)
            continue;
        t->bytes = (size_t)hwnas_cudnn_count(t) * hwnas_cudnn_type_size(t->type);
        if (t->memory != HWNAS_CUDNN_ACTIVATIONS)
            place_lasting(net, i);
        else if (first[i] >= 0)
            blocks[n++] = (hwnas_block){.size = t->bytes, .first = first[i], .last = last[i]};
        else
            t->memory = HWNAS_CUDNN_NOWHERE; /* between two nodes of one plan */
    }
    net->memory_bytes[HWNAS_CUDNN_ACTIVATIONS] = hwnas_place_blocks(blocks, n);
    n = 0;
    for (size_t i = 0; i < net->n_tensors; i++)
        if (net->tensors[i].root == (int)i && net->tensors[i].memory == HWNAS_CUDNN_ACTIVATIONS)
            net->tensors[i].offset = blocks[n++].offset;
    free(first);
    free(last);
    free(blocks);
}
