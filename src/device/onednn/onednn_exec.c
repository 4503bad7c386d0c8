/* onednn_exec.c: a compiled graph runs its steps in order. */
#include "device/onednn/onednn_exec.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "device/onednn/constants.h"
#include "device/onednn/onednn_lower.h"

typedef hwnas_onednn_step step;

void hwnas_onednn_free_exec(hwnas_exec *base)
{
    onednn_exec *exec = (onednn_exec *)base;
    if (!exec)
        return;
    for (size_t i = 0; i < exec->n_tensors; i++)
        if (exec->tensors[i])
            dnnl_graph_tensor_destroy(exec->tensors[i]);
    for (size_t i = 0; i < exec->n_steps; i++)
        if (exec->steps[i].kind)
            exec->steps[i].kind->free(exec->steps[i].state);
    hwnas_onednn_forget_constants();
    free(exec->weights);
    free(exec->activations);
    free(exec->scratch.memory);
    hwnas_arena_free(exec->arena);
    free(exec);
}

/* What we hold. From the first run on oneDNN keeps the kernels a second time, in its own layout. */
size_t hwnas_onednn_memory(const hwnas_exec *base)
{
    const onednn_exec *exec = (const onednn_exec *)base;
    size_t bytes = exec->weight_bytes + exec->activation_bytes + exec->scratch.bytes;
    for (size_t i = 0; i < exec->n_steps; i++)
        bytes += exec->steps[i].bytes;
    return bytes;
}

/* Binds the caller's buffers. */
static hwnas_status take_buffers(const onednn_exec *exec, const float *const *inputs,
                                 float *const *outputs)
{
    for (size_t i = 0; i < exec->n_inputs; i++)
        TRY_DNNL(
            "take", "input",
            dnnl_graph_tensor_set_data_handle(exec->tensors[exec->inputs[i]], (void *)inputs[i]));
    for (size_t i = 0; i < exec->n_outputs; i++)
        if (exec->outputs[i] >= 0)
            TRY_DNNL(
                "take", "output",
                dnnl_graph_tensor_set_data_handle(exec->tensors[exec->outputs[i]], outputs[i]));
    return HWNAS_OK;
}

static void copy_outputs(const onednn_exec *exec, float *const *outputs)
{
    for (size_t i = 0; i < exec->n_copies; i++) {
        const onednn_copy *to_do = &exec->copies[i];
        memcpy(outputs[to_do->output], hwnas_onednn_values(exec->tensors[to_do->from]),
               to_do->bytes);
    }
}

static dnnl_status_t run_step(const step *s)
{
    hwnas_onednn_use_threads(s->device->threads);
    return s->kind->run(s, s->device);
}

static hwnas_status run_all(const onednn_exec *exec)
{
    for (size_t i = 0; i < exec->n_steps; i++)
        TRY_DNNL("run", exec->steps[i].name, run_step(&exec->steps[i]));
    TRY_DNNL("finish", "a run", dnnl_stream_wait(exec->device->stream));
    return HWNAS_OK;
}

/* seconds: by step. */
static hwnas_status run_each(const onednn_exec *exec, double *seconds)
{
    for (size_t i = 0; i < exec->n_steps; i++) {
        const step *s = &exec->steps[i];
        const double start = hwnas_now();
        TRY_DNNL("run", s->name, run_step(s));
        TRY_DNNL("finish", s->name, dnnl_stream_wait(exec->device->stream));
        seconds[i] = hwnas_now() - start;
    }
    return HWNAS_OK;
}

hwnas_status hwnas_onednn_run(hwnas_exec *base, const float *const *inputs, float *const *outputs)
{
    return hwnas_onednn_run_steps(base, inputs, outputs, NULL);
}

size_t hwnas_onednn_steps(const hwnas_exec *base, const hwnas_exec_step **out)
{
    const onednn_exec *exec = (const onednn_exec *)base;
    *out = exec->about;
    return exec->n_steps;
}

hwnas_status hwnas_onednn_run_steps(hwnas_exec *base, const float *const *inputs,
                                    float *const *outputs, double *seconds)
{
    const onednn_exec *exec = (const onednn_exec *)base;
    TRY(take_buffers(exec, inputs, outputs));
    hwnas_onednn_hold_constants();
    const hwnas_status status = seconds ? run_each(exec, seconds) : run_all(exec);
    hwnas_onednn_release_constants();
    if (status == HWNAS_OK)
        copy_outputs(exec, outputs);
    return status;
}
