#include "device/onednn/training/train_exec.h"

#include <stdlib.h>

#include "device/onednn/training/gradients.h"

typedef struct train_exec {
    hwnas_exec base;
    hwnas_tape tape;
    hwnas_graph *graph; /* ours, which the tape reads */
    hwnas_exec_step *about;
    int *nodes; /* of each step */
} train_exec;

static const train_exec *exec_of(const hwnas_exec *base)
{
    return (const train_exec *)base;
}

static hwnas_status run_steps(hwnas_exec *base, const float *const *inputs, float *const *outputs,
                              double *seconds)
{
    (void)outputs;
    return hwnas_tape_run(&((train_exec *)base)->tape, inputs, seconds);
}

static hwnas_status run(hwnas_exec *base, const float *const *inputs, float *const *outputs)
{
    return run_steps(base, inputs, outputs, NULL);
}

static void free_exec(hwnas_exec *base)
{
    train_exec *exec = (train_exec *)base;
    if (!exec)
        return;
    hwnas_tape_done(&exec->tape);
    hwnas_graph_free(exec->graph);
    free(exec->about);
    free(exec->nodes);
    free(exec);
}

/* With the batch that is trained, which whoever runs a step holds as well. */
static size_t memory(const hwnas_exec *base)
{
    const hwnas_graph *graph = exec_of(base)->graph;
    const hwnas_tape *t = &exec_of(base)->tape;
    size_t bytes = t->kept_bytes + t->passing_bytes + t->scratch.bytes;
    for (size_t i = 0; i < graph->n_inputs; i++)
        bytes += (size_t)hwnas_tensor_bytes(&graph->tensors[graph->inputs[i]]);
    return bytes;
}

static size_t steps(const hwnas_exec *base, const hwnas_exec_step **out)
{
    *out = exec_of(base)->about;
    return exec_of(base)->tape.n_steps;
}

static const hwnas_device_ops training_ops = {
    .abi = HWNAS_DEVICE_ABI,
    .name = "cpu",
    .run = run,
    .free_exec = free_exec,
    .memory = memory,
    .steps = steps,
    .run_steps = run_steps,
};

static void describe_steps(train_exec *exec)
{
    static const char *const phases[HWNAS_TAPE_N_PHASES] = {
        [HWNAS_TAPE_FORWARD] = "forward",
        [HWNAS_TAPE_LOSS] = "loss",
        [HWNAS_TAPE_BACKWARD] = "backward",
        [HWNAS_TAPE_UPDATE] = "update",
    };
    const hwnas_tape *t = &exec->tape;
    exec->about = hwnas_alloc((t->n_steps + 1) * sizeof *exec->about);
    exec->nodes = hwnas_alloc((t->n_steps + 1) * sizeof *exec->nodes);
    for (size_t i = 0; i < t->n_steps; i++) {
        exec->nodes[i] = t->steps[i].node;
        exec->about[i] =
            (hwnas_exec_step){t->steps[i].node >= 0, &exec->nodes[i], phases[t->steps[i].phase]};
    }
}

static hwnas_status find_type(dnnl_data_type_t *out, const onednn_device *device,
                              hwnas_precision precision)
{
    bool is_emulated;
    *out = precision == HWNAS_BF16 ? dnnl_bf16 : dnnl_f32;
    if (precision == HWNAS_F32)
        return HWNAS_OK;
    if (precision == HWNAS_BF16) {
        const hwnas_status status = hwnas_onednn_check_precision(&is_emulated, device, precision);
        return status ? hwnas_hint(status, "here it trains in f32") : HWNAS_OK;
    }
    return hwnas_hint(hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "the device 'cpu' does not train in %s",
                                 hwnas_precision_name(precision)),
                      "it trains in f32, and in bf16 where the processor has it");
}

hwnas_status hwnas_onednn_compile_training(hwnas_exec **out, hwnas_device *base,
                                           const hwnas_graph *graph,
                                           const hwnas_exec_options *options)
{
    hwnas_status status = HWNAS_OK;
    const onednn_device *device = (const onednn_device *)base;
    dnnl_data_type_t type;
    TRY(find_type(&type, device, options->precision));
    train_exec *exec = hwnas_alloc(sizeof *exec);
    exec->base.ops = &training_ops;
    hwnas_onednn_use_threads(device->threads);
    TRY_OUT(hwnas_graph_copy(&exec->graph, graph));
    TRY_OUT(hwnas_tape_open(&exec->tape, device, exec->graph, type));
    exec->tape.optimizer = options->training;
    TRY_OUT(hwnas_gradients_write(&exec->tape));
    hwnas_tape_measure(&exec->tape);
    TRY_OUT(hwnas_tape_bind(&exec->tape));
    describe_steps(exec);
    *out = &exec->base;
    exec = NULL;
out:
    free_exec((hwnas_exec *)exec);
    return status;
}

hwnas_status hwnas_onednn_training_loss(float *out, const hwnas_exec *exec)
{
    const hwnas_tape *t = &exec_of(exec)->tape;
    return hwnas_tape_read(out, t, t->loss);
}

hwnas_status hwnas_onednn_training_weight(float *out, const hwnas_exec *exec, int tensor)
{
    const hwnas_tape *t = &exec_of(exec)->tape;
    return hwnas_tape_read(out, t, t->master[tensor]);
}

hwnas_status hwnas_onednn_training_momentum(float *out, const hwnas_exec *exec, int tensor)
{
    const hwnas_tape *t = &exec_of(exec)->tape;
    return hwnas_tape_read(out, t, t->momentum[tensor]);
}
