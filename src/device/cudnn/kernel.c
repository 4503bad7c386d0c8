/* kernel.c: the kind of step that runs kernels of our own: one node, a chain of functions of
 * elements, or a conversion. */
#include <stdlib.h>
#include <string.h>

#include "device/cudnn/driver.h"
#include "device/cudnn/kernels.h"
#include "device/cudnn/live.h"
#include "device/cudnn/cudnn_steps.h"

_Static_assert((int)HWNAS_CUDNN_F32 == HWNAS_STORED_F32 &&
                   (int)HWNAS_CUDNN_F16 == HWNAS_STORED_F16 &&
                   (int)HWNAS_CUDNN_BF16 == HWNAS_STORED_BF16 &&
                   (int)HWNAS_CUDNN_S8 == HWNAS_STORED_S8 &&
                   (int)HWNAS_CUDNN_S32 == HWNAS_STORED_S32,
               "types are the same in both");

typedef struct kernel_state {
    hwnas_launches launches; /* their tensors are the net's */
    const hwnas_image **images; /* one for each launch */
    CUfunction *functions;
} kernel_state;

/* Strides and dimensions were checked when the net was cut: all of them are below 2^31. */
static hwnas_status view_of(hwnas_view *out, const hwnas_cudnn_tensor *t)
{
    hwnas_view view = {.type = (int)t->type, .rank = t->rank};
    int64_t extent = 0;
    for (int i = 0; i < t->rank; i++) {
        view.dims[i] = (int)t->dims[i];
        view.steps[i] = (int)t->strides[i];
        extent += (t->dims[i] - 1) * t->strides[i];
    }
    if (extent >= INT32_MAX || hwnas_cudnn_count(t) > HWNAS_KERNEL_MOST)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                          "'%s' has about 2^31 values or more, too many for the GPU's kernels",
                          t->name);
    *out = view;
    return HWNAS_OK;
}

static hwnas_status lower_conversion(kernel_state *s, const hwnas_cudnn_step *step,
                                     const hwnas_cudnn_net *net)
{
    hwnas_view to, from;
    TRY(view_of(&to, &net->tensors[step->outputs[0]]));
    TRY(view_of(&from, &net->tensors[step->inputs[0]]));
    hwnas_kernels_copy(&s->launches, step->outputs[0], &to, step->inputs[0], &from);
    return HWNAS_OK;
}

/* A node's operands are the graph's tensors; which of the net's are meant is in `meant`. */
typedef struct operands {
    hwnas_view *views; /* by tensor of the graph */
    int *meant;
} operands;

static hwnas_status mean(operands *o, const hwnas_cudnn_net *net, int of_graph, int of_net)
{
    o->meant[of_graph] = of_net;
    return view_of(&o->views[of_graph], &net->tensors[of_net]);
}

/* Inputs of a chain from outside come in the order of its nodes, each of their operands once. */
static hwnas_status find_operands(operands *o, const hwnas_cudnn_step *step,
                                  const hwnas_cudnn_net *net)
{
    const hwnas_exec_step *about = &step->about;
    const hwnas_node *last = &net->graph->nodes[about->nodes[about->n_nodes - 1]];
    int at = 0;
    TRY(mean(o, net, last->output, step->outputs[0]));
    for (size_t i = 0; i < about->n_nodes; i++) {
        const hwnas_node *node = &net->graph->nodes[about->nodes[i]];
        const int before = i ? net->graph->nodes[about->nodes[i - 1]].output : -1;
        for (int k = 0; k < node->n_inputs; k++)
            if (node->inputs[k] != before)
                TRY(mean(o, net, node->inputs[k], step->inputs[at++]));
        if (node != last) /* as the last one lies; nothing is written there */
            o->views[node->output] = o->views[last->output];
    }
    return HWNAS_OK;
}

static hwnas_status lower_nodes(kernel_state *s, const hwnas_cudnn_step *step,
                                const hwnas_cudnn_net *net)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_graph *graph = net->graph;
    const hwnas_exec_step *about = &step->about;
    operands o = {hwnas_alloc(graph->n_tensors * sizeof *o.views),
                  hwnas_alloc(graph->n_tensors * sizeof *o.meant)};
    TRY_OUT(find_operands(&o, step, net));
    if (about->n_nodes == 1)
        TRY_OUT(hwnas_kernels_lower(&s->launches, graph, &graph->nodes[about->nodes[0]], o.views));
    else if (!hwnas_kernels_chain(&s->launches, graph, about->n_nodes, about->nodes, o.views))
        TRY_OUT(hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "no kernel takes '%s' and what follows it",
                           step->name));
    for (size_t i = 0; i < s->launches.n; i++) {
        hwnas_launch *launch = &s->launches.all[i];
        for (int k = 0; k < launch->job.n_views; k++)
            if (launch->tensors[k] >= 0)
                launch->tensors[k] = o.meant[launch->tensors[k]];
    }
out:
    free(o.views);
    free(o.meant);
    return status;
}

static hwnas_status compile_kernel(hwnas_cudnn_step *step, hwnas_cudnn_net *net)
{
    kernel_state *s = step->state = hwnas_alloc(sizeof *s);
    TRY(step->about.n_nodes ? lower_nodes(s, step, net) : lower_conversion(s, step, net));
    s->images = hwnas_alloc(s->launches.n * sizeof *s->images);
    s->functions = hwnas_alloc(s->launches.n * sizeof *s->functions);
    for (size_t i = 0; i < s->launches.n; i++) {
        const hwnas_launch *launch = &s->launches.all[i];
        char *options = hwnas_launch_options(launch);
        hwnas_status status = hwnas_image_make(&s->images[i], launch->kernel->name,
                                               launch->kernel->file, options, net->device->gpu.sm);
        free(options);
        TRY(status);
    }
    return HWNAS_OK;
}

static hwnas_status load_kernel(hwnas_cudnn_step *step, hwnas_cudnn_net *net,
                                const hwnas_cudnn_launch *launch)
{
    kernel_state *s = step->state;
    (void)launch;
    for (size_t i = 0; i < s->launches.n; i++)
        TRY(hwnas_live_function(&s->functions[i], net->device->live, s->images[i]));
    return HWNAS_OK;
}

static hwnas_status run_kernel(const hwnas_cudnn_step *step, const hwnas_cudnn_net *net,
                               const hwnas_cudnn_launch *launch)
{
    const kernel_state *s = step->state;
    const hwnas_cuda_api *api = hwnas_live_api(net->device->live);
    for (size_t i = 0; i < s->launches.n; i++) {
        const hwnas_launch *l = &s->launches.all[i];
        hwnas_kernel_job job = l->job;
        void *arguments[] = {&job};
        int n_blocks, n_threads;
        for (int k = 0; k < job.n_views; k++)
            if (l->tensors[k] >= 0)
                job.views[k].at = hwnas_cudnn_address(net, launch, l->tensors[k]) + l->offsets[k];
        hwnas_launch_shape(&n_blocks, &n_threads, l);
        TRY_CUDA(api, "launch", step->name,
                 api->launch(s->functions[i], (unsigned)n_blocks, 1, 1, (unsigned)n_threads, 1, 1,
                             0, launch->stream, arguments, NULL));
    }
    return HWNAS_OK;
}

static void free_kernel(hwnas_cudnn_step *step)
{
    kernel_state *s = step->state;
    if (!s)
        return;
    hwnas_launches_done(&s->launches);
    free(s->images);
    free(s->functions);
    free(s);
    step->state = NULL;
}

const hwnas_cudnn_kind hwnas_cudnn_kernel = {
    .name = "kernel",
    .compile = compile_kernel,
    .load = load_kernel,
    .run = run_kernel,
    .free = free_kernel,
};
