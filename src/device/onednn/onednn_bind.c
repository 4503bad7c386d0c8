/* onednn_bind.c: where tensors lie: the weights that steps do not keep themselves in one piece, the
 * activations in another, where tensors that never live together share their place. */
#include <stdint.h>
#include <stdlib.h>

#include "device/onednn/onednn_lower.h"
#include "device/onednn/onednn_exec.h"
#include "device/place.h"

typedef hwnas_onednn_step step;
typedef onednn_compiler compiler;

void hwnas_onednn_sort_outputs(compiler *c)
{
    onednn_exec *exec = c->exec;
    exec->copies = hwnas_arena_alloc(exec->arena, exec->n_outputs * sizeof *exec->copies);
    for (size_t i = 0; i < exec->n_outputs; i++) {
        const int tensor = exec->outputs[i];
        if (c->graph->tensors[tensor].producer >= 0 && !c->is_output[tensor]) {
            c->is_output[tensor] = true;
            continue;
        }
        exec->copies[exec->n_copies++] =
            (onednn_copy){i, tensor, (size_t)hwnas_tensor_bytes(&c->graph->tensors[tensor])};
        exec->outputs[i] = -1;
        c->is_read[tensor] = true;
    }
}

/* Whether the tensor is in our activations: not the caller's, not a weight. */
static bool is_ours(const compiler *c, int tensor)
{
    return c->graph->tensors[tensor].kind == HWNAS_TENSOR_ACTIVATION && !c->is_output[tensor];
}

/* The input of step `at` whose place its output `tensor` takes over, or -1. */
static int predecessor(const compiler *c, const int *last_use, int at, int tensor)
{
    const step *s = &c->exec->steps[at];
    int input = -1;
    for (size_t k = 0; s->kind->in_place && (input = s->kind->in_place(s, tensor, k)) >= 0; k++)
        if (is_ours(c, input) && last_use[input] == at)
            return input;
    return -1;
}

/* Gives every activation of ours its offset. */
static hwnas_status place_activations(compiler *c)
{
    hwnas_status status = HWNAS_OK;
    const onednn_exec *exec = c->exec;
    const size_t n_tensors = c->graph->n_tensors;
    int *last_use = hwnas_alloc(n_tensors * sizeof *last_use);
    int *block_of = hwnas_alloc(n_tensors * sizeof *block_of);
    hwnas_block *blocks = hwnas_alloc(n_tensors * sizeof *blocks);
    size_t n_blocks = 0;
    for (size_t i = 0; i < exec->n_steps; i++)
        for (size_t k = 0; k < exec->steps[i].n_inputs; k++)
            last_use[exec->steps[i].input_ids[k]] = (int)i;

    for (size_t i = 0; i < exec->n_steps; i++)
        for (size_t k = 0; k < exec->steps[i].n_outputs; k++) {
            const int tensor = exec->steps[i].output_ids[k];
            size_t size = 0;
            if (!is_ours(c, tensor))
                continue;
            TRY_DNNL_OUT("measure", c->graph->tensors[tensor].name,
                         dnnl_graph_logical_tensor_get_mem_size(&c->described[tensor], &size));
            const int input = predecessor(c, last_use, (int)i, tensor);
            if (input < 0)
                blocks[n_blocks] = (hwnas_block){.first = (int)i};
            block_of[tensor] = input < 0 ? (int)n_blocks++ : block_of[input];
            hwnas_block *block = &blocks[block_of[tensor]];
            block->size = size > block->size ? size : block->size;
            block->last = last_use[tensor] > (int)i ? last_use[tensor] : (int)i;
        }
    c->exec->activation_bytes = hwnas_place_blocks(blocks, n_blocks);
    for (size_t i = 0; i < exec->n_steps; i++)
        for (size_t k = 0; k < exec->steps[i].n_outputs; k++) {
            const int tensor = exec->steps[i].output_ids[k];
            if (is_ours(c, tensor))
                c->offset[tensor] = blocks[block_of[tensor]].offset;
        }
out:
    free(last_use);
    free(block_of);
    free(blocks);
    return status;
}

static void place_weights(compiler *c)
{
    size_t *total = &c->exec->weight_bytes;
    for (size_t i = 0; i < c->graph->n_tensors; i++) {
        const hwnas_tensor *tensor = &c->graph->tensors[i];
        if (tensor->kind != HWNAS_TENSOR_WEIGHT || !c->is_read[i])
            continue;
        c->offset[i] = *total;
        *total += (hwnas_onednn_bytes(c->source, (int)i) + HWNAS_PLACE_ALIGN - 1) /
                  HWNAS_PLACE_ALIGN * HWNAS_PLACE_ALIGN;
    }
}

hwnas_status hwnas_onednn_bind(compiler *c)
{
    onednn_exec *exec = c->exec;
    place_weights(c);
    TRY(place_activations(c));
    TRY(hwnas_try_alloc(&exec->weights, exec->weight_bytes, "weights"));
    TRY(hwnas_try_alloc(&exec->activations, exec->activation_bytes, "activations"));
    if (exec->scratch.bytes)
        TRY(hwnas_try_alloc(&exec->scratch.memory, exec->scratch.bytes, "scratch"));
    for (size_t i = 0; i < c->graph->n_tensors; i++) {
        const hwnas_tensor *tensor = &c->graph->tensors[i];
        void *handle = NULL; /* of the caller: known in each run */
        if (!c->described[i].data_type || (tensor->kind == HWNAS_TENSOR_WEIGHT && !c->is_read[i]))
            continue; /* inside a step */
        if (tensor->kind == HWNAS_TENSOR_WEIGHT) {
            handle = (char *)exec->weights + c->offset[i];
            TRY(hwnas_onednn_fill(handle, c->source, (int)i));
        } else if (is_ours(c, (int)i)) {
            handle = (char *)exec->activations + c->offset[i];
        }
        TRY_DNNL("bind", tensor->name,
                 dnnl_graph_tensor_create(&exec->tensors[i], &c->described[i], exec->device->engine,
                                          handle));
    }
    for (size_t i = 0; i < exec->n_steps; i++) {
        step *s = &exec->steps[i];
        s->inputs = hwnas_arena_alloc(exec->arena, s->n_inputs * sizeof *s->inputs);
        s->outputs = hwnas_arena_alloc(exec->arena, s->n_outputs * sizeof *s->outputs);
        for (size_t k = 0; k < s->n_inputs; k++) {
            s->inputs[k] = exec->tensors[s->input_ids[k]];
            if (!s->inputs[k]) /* a fault of the rules that form groups */
                return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "no step makes what '%s' reads",
                                  s->name);
        }
        for (size_t k = 0; k < s->n_outputs; k++)
            s->outputs[k] = exec->tensors[s->output_ids[k]];
    }
    return HWNAS_OK;
}
