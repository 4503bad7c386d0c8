#include "device/torch/torch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "device/devices.h"
#include "graph/loss.h"
#include "onnx/onnx.h"

typedef struct torch_device {
    hwnas_device base;
    hwnas_device_info info;
} torch_device;

typedef struct torch_exec {
    hwnas_exec base;
    int id;
    size_t n_inputs, n_outputs;
    const float **inputs; /* that it is bound to */
    float **outputs;
} torch_exec;

static const hwnas_torch_calls *torch; /* PyTorch's side; NULL: it is in another process */

static struct {
    void (*progress)(void *context, const char *phase);
    void *context;
} listener;

static hwnas_status open_by(hwnas_device **out, const char *name, const char *argument,
                            const hwnas_device_options *options)
{
    hwnas_device_info info = {.threads = options->threads ? options->threads : hwnas_device_cores(),
                              .native = 1 << HWNAS_F32,
                              .computes = true};
    hwnas_device_cpu_name(info.name, sizeof info.name);
    TRY(torch->open(name, argument, &info));
    torch_device *device = hwnas_alloc(sizeof *device);
    device->info = info;
    *out = &device->base;
    return HWNAS_OK;
}

static hwnas_status open_processor(hwnas_device **out, const char *argument,
                                   const hwnas_device_options *options)
{
    return open_by(out, hwnas_torch_device.name, argument, options);
}

static hwnas_status open_gpu(hwnas_device **out, const char *argument,
                             const hwnas_device_options *options)
{
    TRY(open_by(out, hwnas_torch_cuda_device.name, argument, options));
    hwnas_device_info *info = &((torch_device *)*out)->info;
    info->native |= 1 << HWNAS_F16;
    if (atoi(info->isa + strcspn(info->isa, "0123456789")) >= 80) /* Ampere */
        info->native |= 1 << HWNAS_TF32 | 1 << HWNAS_BF16;
    return HWNAS_OK;
}

static void torch_describe(const hwnas_device *base, hwnas_device_info *out)
{
    *out = ((const torch_device *)base)->info;
}

static void torch_listen(hwnas_device *device, void (*progress)(void *context, const char *phase),
                         void *context)
{
    (void)device;
    listener.progress = progress;
    listener.context = context;
}

void hwnas_torch_say(const char *phase)
{
    if (listener.progress)
        listener.progress(listener.context, phase);
}

static void torch_close(hwnas_device *device)
{
    free(device);
}

/* The graph as PyTorch trains it: its outputs are what the losses read, of which it gets the names.
 * `losses` is yours to free(). */
static hwnas_status cut_losses(hwnas_graph **out, char **losses, const hwnas_graph *graph)
{
    hwnas_str names = {0};
    TRY(hwnas_graph_copy(out, graph));
    for (size_t i = 0; i < graph->n_outputs; i++) {
        hwnas_str_addf(&names, "%s%s", i ? "," : "", hwnas_loss_name(hwnas_graph_loss(graph, i)));
        (*out)->outputs[i] = hwnas_graph_loss_input(graph, i);
    }
    *losses = names.s;
    return HWNAS_OK;
}

static hwnas_status compile(int id, const hwnas_graph *graph, const hwnas_exec_options *options)
{
    hwnas_status status = HWNAS_OK;
    hwnas_graph *trained = NULL;
    char *losses = NULL;
    void *onnx = NULL;
    size_t length;
    if (options->training)
        TRY_OUT(cut_losses(&trained, &losses, graph));
    TRY_OUT(hwnas_onnx_write(&onnx, &length, trained ? trained : graph, HWNAS_ONNX_VALUES));
    TRY_OUT(torch->compile(id, onnx, length, hwnas_optimizer_name(options->training),
                           hwnas_precision_name(options->precision), losses ? losses : ""));
out:
    hwnas_graph_free(trained);
    free(losses);
    free(onnx);
    return status;
}

static hwnas_status torch_compile(hwnas_exec **out, hwnas_device *base, const hwnas_graph *graph,
                                  const hwnas_exec_options *options)
{
    static int n_compiled;
    const int id = n_compiled++;
    TRY(compile(id, graph, options));
    torch_exec *exec = hwnas_alloc(sizeof *exec);
    *exec = (torch_exec){.base = {.ops = base->ops},
                         .id = id,
                         .n_inputs = graph->n_inputs,
                         .n_outputs = graph->n_outputs,
                         .inputs = hwnas_alloc(graph->n_inputs * sizeof *exec->inputs),
                         .outputs = hwnas_alloc(graph->n_outputs * sizeof *exec->outputs)};
    *out = &exec->base;
    return HWNAS_OK;
}

static hwnas_status torch_run(hwnas_exec *base, const float *const *inputs, float *const *outputs)
{
    torch_exec *exec = (torch_exec *)base;
    const size_t in_bytes = exec->n_inputs * sizeof *inputs;
    const size_t out_bytes = exec->n_outputs * sizeof *outputs;
    if (memcmp(exec->inputs, inputs, in_bytes) || memcmp(exec->outputs, outputs, out_bytes)) {
        TRY(torch->bind(exec->id, inputs, outputs));
        memcpy(exec->inputs, inputs, in_bytes);
        memcpy(exec->outputs, outputs, out_bytes);
    }
    return torch->run(exec->id);
}

static hwnas_status torch_time(hwnas_exec *exec, int runs, double *seconds)
{
    return torch->time(((const torch_exec *)exec)->id, runs, seconds);
}

/* PyTorch has no counter, and the processor's is not the GPU's. */
static double no_joules(hwnas_exec *exec)
{
    (void)exec;
    return NAN;
}

static size_t torch_memory(const hwnas_exec *exec)
{
    return torch->memory(((const torch_exec *)exec)->id);
}

static void torch_free_exec(hwnas_exec *base)
{
    torch_exec *exec = (torch_exec *)base;
    torch->free(exec->id);
    free(exec->inputs);
    free(exec->outputs);
    free(exec);
}

const hwnas_device_ops hwnas_torch_device = {
    .abi = HWNAS_DEVICE_ABI,
    .name = "torch",
    .help = "this processor, through PyTorch: torch, torch:compiled",
    .open = hwnas_device_open_elsewhere,
    .describe = torch_describe,
    .close = torch_close,
    .listen = torch_listen,
    .precisions = 1 << HWNAS_F32,
    .trains = 1 << HWNAS_F32 | 1 << HWNAS_BF16,
    .compile = torch_compile,
    .run = torch_run,
    .free_exec = torch_free_exec,
    .memory = torch_memory,
};

const hwnas_device_ops hwnas_torch_cuda_device = {
    .abi = HWNAS_DEVICE_ABI,
    .name = "torch-cuda",
    .help = "an NVIDIA GPU, through PyTorch: torch-cuda:0, ...; torch-cuda:0:compiled, :graph",
    .open = hwnas_device_open_elsewhere,
    .describe = torch_describe,
    .close = torch_close,
    .listen = torch_listen,
    .precisions = 1 << HWNAS_F32 | 1 << HWNAS_TF32 | 1 << HWNAS_BF16 | 1 << HWNAS_F16,
    .trains = 1 << HWNAS_F32 | 1 << HWNAS_TF32 | 1 << HWNAS_BF16,
    .has_own_threads = true,
    .compile = torch_compile,
    .run = torch_run,
    .time = torch_time,
    .joules = no_joules,
    .free_exec = torch_free_exec,
    .memory = torch_memory,
};

void hwnas_torch_use(const hwnas_torch_calls *calls)
{
    static hwnas_device_ops processor, gpu;
    torch = calls;
    processor = hwnas_torch_device;
    processor.open = open_processor;
    gpu = hwnas_torch_cuda_device;
    gpu.open = open_gpu;
    for (size_t i = 0; hwnas_devices[i]; i++)
        if (hwnas_devices[i] == &hwnas_torch_device)
            hwnas_devices[i] = &processor;
        else if (hwnas_devices[i] == &hwnas_torch_cuda_device)
            hwnas_devices[i] = &gpu;
}
