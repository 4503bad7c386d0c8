/* compile.c: from a graph to an executable: cut, made, placed. What an engine refuses is cut in
 * another way; plans that were made stay known, so cutting anew costs little. */
#include "device/cudnn/compile.h"

#include <stdio.h>
#include <stdlib.h>

#include "device/cudnn/cudnn_int8.h"
#include "device/cudnn/make_plans.h"
#include "device/cudnn/plans.h"
#include "graph/pack_weights.h"
#include "graph/quantize_graph.h"

enum { MAX_ATTEMPTS = 64 };

/* Bytes of the GPU that CUDA, cuDNN and the driver take for themselves (a context, kernels). */
#define RESERVED ((size_t)512 << 20)

static void free_steps(hwnas_cudnn_net *net)
{
    for (size_t i = 0; i < net->n_steps; i++)
        net->steps[i].kind->free(&net->steps[i]);
    net->n_steps = net->step_capacity = net->n_tensors = net->tensor_capacity = 0;
    net->steps = NULL;
    net->tensors = NULL;
}

void hwnas_cudnn_net_free(hwnas_cudnn_net *net)
{
    if (!net)
        return;
    free_steps(net);
    hwnas_graph_free(net->graph);
    hwnas_arena_free(net->arena);
    free(net);
}

static hwnas_status compile_step(hwnas_cudnn_step *step, hwnas_cudnn_net *net)
{
    char phase[64];
    snprintf(phase, sizeof phase, "compiling, step %td of %zu", step - net->steps + 1,
             net->n_steps);
    hwnas_cuda_tell(net->device, phase);
    const hwnas_status status = step->kind->compile(step, net);
    hwnas_cuda_told(net->device);
    return status;
}

/* Compiles every step, though one was refused already: what else is gets known at once. */
static hwnas_status compile_steps(hwnas_cudnn_net *net, hwnas_cudnn_bans *bans, bool *again,
                                  hwnas_status (*compile)(hwnas_cudnn_step *, hwnas_cudnn_net *))
{
    for (size_t i = 0; i < net->n_steps; i++) {
        hwnas_cudnn_step *step = &net->steps[i];
        const hwnas_status status = compile(step, net);
        if (status == HWNAS_OK)
            continue;
        const bool is_last = step->kind == &hwnas_cudnn_kernel && step->about.n_nodes <= 1;
        if (status != HWNAS_E_UNSUPPORTED || is_last)
            return status;
        hwnas_error_clear();
        hwnas_cudnn_ban(bans, net, step);
        *again = true;
    }
    return HWNAS_OK;
}

static void tell(hwnas_cudnn_net *net)
{
    net->about = hwnas_arena_alloc(net->arena, net->n_steps * sizeof *net->about);
    for (size_t i = 0; i < net->n_steps; i++) {
        if (net->steps[i].workspace > net->workspace_bytes)
            net->workspace_bytes = net->steps[i].workspace;
        if (net->steps[i].kind != &hwnas_cudnn_view)
            net->about[net->n_about++] = net->steps[i].about;
    }
}

hwnas_status hwnas_cudnn_net_new(hwnas_cudnn_net **out, hwnas_cuda_device *device,
                                 const hwnas_graph *graph, hwnas_precision precision,
                                 hwnas_status (*compile)(hwnas_cudnn_step *, hwnas_cudnn_net *))
{
    hwnas_status status = HWNAS_OK;
    hwnas_cudnn_net *net = hwnas_alloc(sizeof *net);
    net->device = device;
    net->precision = precision;
    net->arena = hwnas_arena_new();
    TRY_OUT(hwnas_graph_copy(&net->graph, graph));
    hwnas_cudnn_bans bans = hwnas_cudnn_bans_new(net->arena, net->graph);
    bool again = true;
    for (int i = 0; again; i++) {
        hwnas_cudnn_cut cut = {.net = net, .graph = net->graph, .bans = &bans};
        again = false;
        free_steps(net);
        hwnas_cudnn_form_groups(&cut);
        hwnas_cudnn_lay_out(&cut);
        hwnas_cudnn_emit(&cut, &bans, &again);
        hwnas_fusion_done(&cut.plan);
        if (!again && !compile)
            hwnas_cudnn_make_plans(net);
        if (!again)
            TRY_OUT(compile_steps(net, &bans, &again, compile ? compile : compile_step));
        if (again && i == MAX_ATTEMPTS)
            TRY_OUT(hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                               "'%s' was cut in %d ways, and cuDNN took none", graph->name, i));
    }
    tell(net);
    hwnas_cudnn_place(net);
    *out = net;
    net = NULL;
out:
    hwnas_cudnn_net_free(net);
    return status;
}

/* Bytes of the GPU's memory that the net takes, all together. */
static size_t net_bytes(const hwnas_cudnn_net *net)
{
    size_t bytes = net->workspace_bytes + net->step_bytes;
    for (int i = 0; i < HWNAS_CUDNN_N_MEMORIES; i++)
        bytes += net->memory_bytes[i];
    return bytes;
}

/* Said before anything is taken. */
static hwnas_status check_room(const hwnas_cudnn_net *net)
{
    const double mebi = 1 << 20;
    const hwnas_gpu *gpu = &net->device->gpu;
    const size_t *bytes = net->memory_bytes, all = net_bytes(net);
    if (!gpu->memory_bytes || all + RESERVED <= gpu->memory_bytes)
        return HWNAS_OK;
    return hwnas_hint(
        hwnas_fail(HWNAS_E_MEMORY, NULL,
                   "'%s' needs %.0f MiB of the GPU's memory (weights %.0f, activations %.0f, "
                   "workspace %.0f, inputs and outputs %.0f) and CUDA about %.0f; %s has %.0f",
                   net->graph->name, (double)all / mebi, (double)bytes[HWNAS_CUDNN_WEIGHTS] / mebi,
                   (double)bytes[HWNAS_CUDNN_ACTIVATIONS] / mebi,
                   (double)net->workspace_bytes / mebi,
                   (double)(bytes[HWNAS_CUDNN_INPUTS] + bytes[HWNAS_CUDNN_OUTPUTS]) / mebi,
                   (double)RESERVED / mebi, gpu->name, (double)gpu->memory_bytes / mebi),
        "a smaller batch, fewer pixels or --dtype f16 takes less");
}

/* Steps count the nodes of the graph that was asked for, which quantisations are not among. */
static void tell_origins(hwnas_cudnn_net *net, const int *origin)
{
    for (size_t i = 0; i < net->n_about; i++) {
        hwnas_exec_step *about = &net->about[i];
        int *nodes = hwnas_arena_copy(net->arena, about->nodes, about->n_nodes * sizeof *nodes);
        size_t n = 0;
        for (size_t k = 0; k < about->n_nodes; k++)
            if (origin[nodes[k]] >= 0)
                nodes[n++] = origin[nodes[k]];
        about->nodes = nodes;
        about->n_nodes = n;
    }
}

/* Scales of blocks are known to no engine and no kernel of ours. */
static hwnas_status check_blocks(const hwnas_graph *graph)
{
    for (size_t n = 0; n < graph->n_nodes; n++) {
        const hwnas_node *node = &graph->nodes[n];
        const bool has_scales =
            node->op->id == HWNAS_OP_QUANTIZE_LINEAR || node->op->id == HWNAS_OP_DEQUANTIZE_LINEAR;
        if (has_scales && hwnas_node_attr(node, "block_size")->ints[0])
            return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                              "'%s' has a scale for each block of values, which is not made for "
                              "GPUs",
                              node->name);
    }
    return HWNAS_OK;
}

static bool has_plan_before(const hwnas_cudnn_net *net, size_t step)
{
    const hwnas_cudnn_operation *o = net->steps[step].state;
    for (size_t i = 0; i < step; i++)
        if (net->steps[i].kind == &hwnas_cudnn_engine &&
            ((const hwnas_cudnn_operation *)net->steps[i].state)->plan == o->plan)
            return true;
    return false;
}

/* Every step of the library asks for a plan; one that was made for this network was missing once.
 */
static void count_lookups(hwnas_cudnn_net *net)
{
    for (size_t i = 0; i < net->n_steps; i++) {
        const hwnas_cudnn_operation *o = net->steps[i].state;
        if (net->steps[i].kind != &hwnas_cudnn_engine)
            continue;
        net->n_lookups++;
        net->n_hits += o->plan->made_for != net->device->compiling || has_plan_before(net, i);
    }
}

hwnas_status hwnas_cudnn_compile(hwnas_exec **out, hwnas_device *base, const hwnas_graph *graph,
                                 const hwnas_exec_options *options)
{
    hwnas_cuda_device *device = (hwnas_cuda_device *)base;
    hwnas_cudnn_net *net = NULL;
    if (!*device->gpu.name)
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, NULL, "cuda-dry compiles for a GPU; for which?"),
            "write cuda-dry:h200, or the path of a description");
    hwnas_status status = HWNAS_OK;
    hwnas_graph *made = NULL;
    int *origin = NULL;
    if (hwnas_graph_has_packed(graph)) /* weights of few bits are floats here */
        TRY(hwnas_graph_unpack_weights(&made, &origin, NULL, graph));
    else if (options->precision == HWNAS_S8 && !hwnas_graph_is_quantized(graph))
        TRY(hwnas_cudnn_quantize(&made, &origin, device, graph, options));
    TRY_OUT(check_blocks(made ? made : graph));
    TRY_OUT(hwnas_cudnn_net_new(&net, device, made ? made : graph, options->precision, NULL));
    net->base.ops = base->ops;
    if (origin)
        tell_origins(net, origin);
    TRY_OUT(check_room(net));
    count_lookups(net);
    *out = &net->base;
    net = NULL;
out:
    hwnas_cudnn_net_free(net);
    hwnas_graph_free(made);
    free(origin);
    return status;
}

/* A recurrent layer asks the handle with which networks run, so it waits for its turn. */
static hwnas_status prepare_step(hwnas_cudnn_step *step, hwnas_cudnn_net *net)
{
    const hwnas_cuda_device *device = net->device;
    if (!device->goes_on(device->going))
        return hwnas_fail(HWNAS_E_INTERRUPTED, NULL, "'%s' is compiled in its turn",
                          net->graph->name);
    net->is_ahead = true;
    return step->kind == &hwnas_cudnn_rnn ? HWNAS_OK : step->kind->compile(step, net);
}

/* What fails here fails again in its turn, where somebody hears of it. */
void hwnas_cudnn_prepare(hwnas_cuda_device *device, const hwnas_graph *graph,
                         const hwnas_exec_options *options, bool (*goes_on)(void *context),
                         void *context)
{
    hwnas_status status = HWNAS_OK;
    hwnas_graph *made = NULL;
    int *origin = NULL;
    hwnas_cudnn_net *net = NULL;
    if (options->precision == HWNAS_S8 && !hwnas_graph_is_quantized(graph))
        return; /* ranges come from runs */
    device->goes_on = goes_on;
    device->going = context;
    if (hwnas_graph_has_packed(graph))
        TRY_OUT(hwnas_graph_unpack_weights(&made, &origin, NULL, graph));
    TRY_OUT(
        hwnas_cudnn_net_new(&net, device, made ? made : graph, options->precision, prepare_step));
out:
    if (status != HWNAS_OK)
        hwnas_error_clear();
    hwnas_cudnn_net_free(net);
    hwnas_graph_free(made);
    free(origin);
}

void hwnas_cudnn_free_exec(hwnas_exec *exec)
{
    hwnas_cudnn_net_free((hwnas_cudnn_net *)exec);
}

size_t hwnas_cudnn_held(const hwnas_exec *exec)
{
    return net_bytes((const hwnas_cudnn_net *)exec);
}

void hwnas_cudnn_footprint(const hwnas_exec *exec, hwnas_footprint *out)
{
    const hwnas_cudnn_net *net = (const hwnas_cudnn_net *)exec;
    const size_t *bytes = net->memory_bytes;
    *out = (hwnas_footprint){
        .n_steps = net->n_about,
        .weight_bytes = bytes[HWNAS_CUDNN_WEIGHTS],
        .activation_bytes = bytes[HWNAS_CUDNN_ACTIVATIONS],
        .workspace_bytes = net->workspace_bytes,
        .buffer_bytes = bytes[HWNAS_CUDNN_INPUTS] + bytes[HWNAS_CUDNN_OUTPUTS],
        .device_bytes = net->device->gpu.memory_bytes,
        .n_lookups = net->n_lookups,
        .n_hits = net->n_hits,
    };
    for (size_t i = 0; i < net->n_steps; i++) {
        out->n_own += net->steps[i].kind == &hwnas_cudnn_kernel;
        out->n_library += net->steps[i].kind == &hwnas_cudnn_engine ||
                          net->steps[i].kind == &hwnas_cudnn_rnn ||
                          net->steps[i].kind == &hwnas_cublas;
    }
}

size_t hwnas_cudnn_steps(const hwnas_exec *exec, const hwnas_exec_step **out)
{
    const hwnas_cudnn_net *net = (const hwnas_cudnn_net *)exec;
    *out = net->about;
    return net->n_about;
}
