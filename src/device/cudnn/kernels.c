#include "device/cudnn/kernels.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "graph/op.h"

const hwnas_kernel hwnas_kernels[] = {
    {"hwnas_elementwise", "elementwise", false},
    {"hwnas_reshape", "elementwise", false},
    {"hwnas_gather", "indexed", false},
    {"hwnas_gather_elements", "indexed", false},
    {"hwnas_gather_nd", "indexed", false},
    {"hwnas_scatter_elements", "indexed", false},
    {"hwnas_scatter_nd", "indexed", false},
    {"hwnas_reduce", "lines", true},
    {"hwnas_softmax", "lines", true},
    {"hwnas_layer_norm", "lines", true},
    {"hwnas_arg", "lines", true},
    {"hwnas_top_k", "lines", true},
    {"hwnas_cum_sum", "lines", false},
    {"hwnas_pool", "window", false},
    {"hwnas_pad", "window", false},
    {"hwnas_upsample", "window", false},
    {"hwnas_grid_sample", "window", false},
    {"hwnas_matmul", "product", false},
    {"hwnas_conv", "product", false},
    {"hwnas_conv_transpose", "product", false},
    {"hwnas_recurrent", "recurrent", true},
    {NULL, NULL, false},
};

void hwnas_launches_done(hwnas_launches *launches)
{
    free(launches->all);
    *launches = (hwnas_launches){0};
}

/* ---- Views ---- */

size_t hwnas_stored_size(int type)
{
    static const size_t sizes[HWNAS_N_STORED] = {[HWNAS_STORED_F32] = 4,
                                                 [HWNAS_STORED_F16] = 2,
                                                 [HWNAS_STORED_BF16] = 2,
                                                 [HWNAS_STORED_S8] = 1,
                                                 [HWNAS_STORED_S32] = 4};
    return sizes[type];
}

/* `order`: the dimensions from the slowest to the fastest. */
static hwnas_status make_view(hwnas_view *out, const hwnas_tensor *tensor, int type,
                              const int *order)
{
    hwnas_view view = {.type = type, .rank = tensor->rank};
    int64_t step = 1;
    if (hwnas_tensor_count(tensor) > HWNAS_KERNEL_MOST)
        return hwnas_fail(
            HWNAS_E_UNSUPPORTED, NULL,
            "'%s' of shape %s has more than %d values, too many for the GPU's kernels",
            tensor->name, hwnas_tensor_shape(tensor).s, HWNAS_KERNEL_MOST);
    for (int i = tensor->rank - 1; i >= 0; i--) {
        const int d = order ? order[i] : i;
        view.dims[d] = (int)tensor->dims[d];
        view.steps[d] = (int)step;
        step *= tensor->dims[d];
    }
    *out = view;
    return HWNAS_OK;
}

hwnas_status hwnas_view_plain(hwnas_view *out, const hwnas_tensor *tensor, int type)
{
    return make_view(out, tensor, type, NULL);
}

hwnas_status hwnas_view_nhwc(hwnas_view *out, const hwnas_tensor *tensor, int type)
{
    static const int order[] = {0, 2, 3, 1};
    return make_view(out, tensor, type, tensor->rank == 4 ? order : NULL);
}

static hwnas_view part(const hwnas_view *view, unsigned set)
{
    hwnas_view out = {.at = view->at, .type = view->type};
    for (int i = 0; i < view->rank; i++)
        if (set >> i & 1) {
            out.dims[out.rank] = view->dims[i];
            out.steps[out.rank++] = view->steps[i];
        }
    return out;
}

hwnas_view hwnas_view_without(const hwnas_view *view, unsigned set)
{
    return part(view, ~set);
}

hwnas_view hwnas_view_only(const hwnas_view *view, unsigned set)
{
    return part(view, set);
}

hwnas_view hwnas_view_broadcast(const hwnas_view *view, const hwnas_view *like)
{
    hwnas_view out = *like;
    out.at = view->at;
    out.type = view->type;
    for (int i = 0; i < out.rank; i++) {
        const int from = i - out.rank + view->rank;
        out.steps[i] = from < 0 || view->dims[from] == 1 ? 0 : view->steps[from];
    }
    return out;
}

int64_t hwnas_view_count(const hwnas_view *view)
{
    int64_t n = 1;
    for (int i = 0; i < view->rank; i++)
        n *= view->dims[i];
    return n;
}

int hwnas_view_axis(const hwnas_view *view, int64_t axis)
{
    return (int)(axis < 0 ? axis + view->rank : axis);
}

/* ---- Launches ---- */

static const hwnas_kernel *kernel_named(const char *name)
{
    const hwnas_kernel *k = hwnas_kernels;
    while (strcmp(k->name, name))
        k++;
    return k;
}

void hwnas_launch_add_view(hwnas_launch *launch, int tensor, const hwnas_view *view)
{
    const int k = launch->job.n_views++;
    launch->job.views[k] = *view;
    launch->tensors[k] = tensor;
}

static hwnas_launch *append(hwnas_launches *out, const char *kernel)
{
    HWNAS_GROW(out->all, out->n, out->capacity);
    hwnas_launch *launch = &out->all[out->n++];
    *launch = (hwnas_launch){.kernel = kernel_named(kernel)};
    return launch;
}

hwnas_launch *hwnas_launch_new(hwnas_launches *out, const char *kernel, const hwnas_graph *graph,
                               const hwnas_node *node, const hwnas_view *views, int n_inputs)
{
    (void)graph;
    hwnas_launch *launch = append(out, kernel);
    hwnas_launch_add_view(launch, node->output, &views[node->output]);
    for (int i = 0; i < n_inputs; i++)
        hwnas_launch_add_view(launch, node->inputs[i], &views[node->inputs[i]]);
    launch->job.n = (int)hwnas_view_count(&views[node->output]);
    return launch;
}

static void exchange(hwnas_kernel_job *job, int d, int e)
{
    for (int k = 0; k < job->n_views; k++) {
        hwnas_view *v = &job->views[k];
        const int dim = v->dims[d], step = v->steps[d];
        v->dims[d] = v->dims[e];
        v->steps[d] = v->steps[e];
        v->dims[e] = dim;
        v->steps[e] = step;
    }
}

/* Whether dimension d + 1 goes on where d's steps end, in all views; or one of them is no dimension
 * at all. */
static bool are_one(const hwnas_kernel_job *job, int d)
{
    if (job->views[0].dims[d] == 1 || job->views[0].dims[d + 1] == 1)
        return true;
    for (int k = 0; k < job->n_views; k++) {
        const hwnas_view *v = &job->views[k];
        if (v->steps[d] != v->steps[d + 1] * v->dims[d + 1])
            return false;
    }
    return true;
}

static void join_dims(hwnas_view *v, int d)
{
    if (v->dims[d + 1] == 1)
        v->steps[d + 1] = v->steps[d];
    v->dims[d + 1] *= v->dims[d];
    for (int i = d; i + 1 < v->rank; i++) {
        v->dims[i] = v->dims[i + 1];
        v->steps[i] = v->steps[i + 1];
    }
    v->rank--;
}

/* Elements may come in any order: that of the output's memory, with as few dimensions as there can
 * be. */
static void order_dims(hwnas_kernel_job *job)
{
    const hwnas_view *out = &job->views[0];
    for (int i = 1; i < out->rank; i++)
        for (int d = i; d > 0 && out->steps[d] > out->steps[d - 1]; d--)
            exchange(job, d, d - 1);
    for (int d = out->rank - 2; d >= 0; d--)
        if (are_one(job, d))
            for (int k = 0; k < job->n_views; k++)
                join_dims(&job->views[k], d);
}

/* ---- Functions of elements ---- */

/* The identities by the names that functions.h has. */
enum {
#define OP(name, NAME) ID_##name = HWNAS_OP_##NAME,
#include "graph/op_list.h"
#undef OP
};

#define FUNCTION(NAME, VALUE) (hwnas_op_id) ID_##NAME,
static const hwnas_op_id functions[] = {
#include "device/cudnn/kernels/functions.h"
};
#undef FUNCTION

/* HWNAS_N_FUNCTIONS: it is none. */
static int function_of(const hwnas_node *node)
{
    int f = 0;
    while (f < HWNAS_N_FUNCTIONS && functions[f] != node->op->id)
        f++;
    return f;
}

/* Whether a node is a function of elements, whose output may go on in a chain. */
static bool is_elementwise(const hwnas_node *node)
{
    return function_of(node) < HWNAS_N_FUNCTIONS;
}

static float argument(const hwnas_node *node, int i)
{
    const hwnas_attr_row *rows = node->op->attrs;
    for (int k = 0; k <= i; k++)
        if (!rows[k].name)
            return 0;
    return (float)(rows[i].kind == HWNAS_ATTR_NUMBER ? node->attrs[i].number
                                                     : (double)node->attrs[i].ints[0]);
}

/* The range of a quantised type. */
static void range_of(float *low, float *high, hwnas_dtype dtype)
{
    *low = dtype == HWNAS_INT8    ? -128
           : dtype == HWNAS_INT16 ? -32768
           : dtype == HWNAS_INT32 ? -0x1p31F
                                  : 0;
    *high = dtype == HWNAS_INT8     ? 127
            : dtype == HWNAS_INT16  ? 32767
            : dtype == HWNAS_UINT16 ? 65535
            : dtype == HWNAS_INT32  ? 0x1p31F
                                    : 255;
}

/* A vector along an axis, or a single value, as an operand of something of more dimensions. */
static hwnas_view along(const hwnas_view *vector, int axis, const hwnas_view *like)
{
    hwnas_view out = *like;
    out.at = vector->at;
    out.type = vector->type;
    memset(out.steps, 0, sizeof out.steps);
    if (vector->rank && vector->dims[0] > 1)
        out.steps[axis] = vector->steps[0];
    return out;
}

static bool is_quantisation(const hwnas_node *node)
{
    return node->op->class == HWNAS_CLASS_QUANTIZATION;
}

/* How operand k of a node lies beside its output. */
static hwnas_view operand_view(const hwnas_node *node, int k, const hwnas_view *view,
                               const hwnas_view *out)
{
    if (k > 0 && is_quantisation(node))
        return along(view, (int)node->attrs[0].ints[0], out);
    if (k > 0 && node->op->id == HWNAS_OP_BATCH_NORM)
        return along(view, 1, out);
    return hwnas_view_broadcast(view, out);
}

/* Adds the node's function; `last`: the tensor that is the value so far, or -1. */
static bool add_function(hwnas_launch *launch, const hwnas_graph *graph, const hwnas_node *node,
                         const hwnas_view *views, int last)
{
    hwnas_kernel_job *job = &launch->job;
    hwnas_kernel_link link = {.function = function_of(node),
                              .operands = {-1, -1, -1, -1, -1},
                              .a = argument(node, 0),
                              .b = argument(node, 1)};
    const hwnas_dtype dtype = hwnas_node_output(graph, node)->dtype;
    const bool wraps = node->n_inputs == 2 && job->n_links + 1 < HWNAS_JOB_LINKS &&
                       hwnas_dtype_is_whole(dtype) &&
                       link.function != HWNAS_FUNCTION_quantize_linear;
    if (link.function == HWNAS_FUNCTION_zero)
        return job->links[job->n_links++] = link, true;
    if (link.function == HWNAS_FUNCTION_quantize_linear)
        range_of(&link.a, &link.b, dtype);
    for (int k = 0; k < node->n_inputs; k++) {
        const int tensor = node->inputs[k];
        if (tensor == last) {
            link.operands[k] = HWNAS_OPERAND_LAST;
            continue;
        }
        if (job->n_views == HWNAS_JOB_VIEWS || job->n_links == HWNAS_JOB_LINKS)
            return false;
        const hwnas_view view = operand_view(node, k, &views[tensor], &job->views[0]);
        link.operands[k] = job->n_views;
        hwnas_launch_add_view(launch, tensor, &view);
    }
    if (job->n_links == HWNAS_JOB_LINKS)
        return false;
    job->links[job->n_links++] = link;
    if (wraps)
        job->links[job->n_links++] =
            (hwnas_kernel_link){.function = HWNAS_FUNCTION_cast,
                                .operands = {HWNAS_OPERAND_LAST, -1, -1, -1, -1},
                                .a = (float)dtype};
    return true;
}

/* Those within a chain must have the last one's shape: what is repeated would be computed again. */
static bool has_shape(const hwnas_view *view, const hwnas_view *like)
{
    return view->rank == like->rank &&
           !memcmp(view->dims, like->dims, (size_t)like->rank * sizeof *like->dims);
}

bool hwnas_kernels_chain(hwnas_launches *out, const hwnas_graph *graph, size_t n_nodes,
                         const int *nodes, const hwnas_view *views)
{
    const int result = graph->nodes[nodes[n_nodes - 1]].output;
    hwnas_launch *launch = append(out, "hwnas_elementwise");
    hwnas_launch_add_view(launch, result, &views[result]);
    for (size_t i = 0; i < n_nodes; i++) {
        const hwnas_node *node = &graph->nodes[nodes[i]];
        const int last = i ? graph->nodes[nodes[i - 1]].output : -1;
        if (!has_shape(&views[node->output], &views[result]) ||
            !add_function(launch, graph, node, views, last)) {
            out->n--;
            return false;
        }
    }
    launch->job.n = (int)hwnas_view_count(&views[result]);
    order_dims(&launch->job);
    return true;
}

void hwnas_kernels_copy(hwnas_launches *out, int to, const hwnas_view *to_view, int from,
                        const hwnas_view *from_view)
{
    hwnas_launch *launch = append(out, "hwnas_elementwise");
    const hwnas_view repeated = hwnas_view_broadcast(from_view, to_view);
    hwnas_launch_add_view(launch, to, to_view);
    hwnas_launch_add_view(launch, from, &repeated);
    launch->job.n = (int)hwnas_view_count(to_view);
    order_dims(&launch->job);
}

hwnas_status hwnas_kernels_lower(hwnas_launches *out, const hwnas_graph *graph,
                                 const hwnas_node *node, const hwnas_view *views)
{
    const int number = (int)(node - graph->nodes);
    hwnas_lower *lower = hwnas_kernels_lowering(node);
    const int hidden = lower == hwnas_lower_recurrent ? views[node->output].dims[3] : 0;
    if (hidden > HWNAS_RNN_MOST_HIDDEN)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                          "'%s' has a state of %d values; the GPU's kernel takes %d", node->name,
                          hidden, HWNAS_RNN_MOST_HIDDEN);
    if (lower) {
        lower(out, graph, node, views);
        return HWNAS_OK;
    }
    if (is_elementwise(node) && hwnas_kernels_chain(out, graph, 1, &number, views))
        return HWNAS_OK;
    return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "the GPU has no kernel for '%s' ('%s')",
                      node->name, node->op->name);
}

/* ---- Compiling and launching ---- */

char *hwnas_launch_options(const hwnas_launch *launch)
{
    const hwnas_kernel_job *job = &launch->job;
    hwnas_str text = {0};
    for (int k = 0; k < HWNAS_JOB_VIEWS; k++)
        hwnas_str_addf(&text, "-DJOB_TYPE_%d=%d\n-DJOB_RANK_%d=%d\n", k, job->views[k].type, k,
                       job->views[k].rank);
    for (int k = 0; k < HWNAS_JOB_LINKS; k++)
        hwnas_str_addf(&text, "-DJOB_FUNCTION_%d=%d\n", k,
                       k < job->n_links ? job->links[k].function : 0);
    hwnas_str_addf(&text, "-DWANT_%s=,\n", launch->kernel->name);
    hwnas_str_addf(&text, "-DJOB_CODE=%d\n-DJOB_N_VIEWS=%d\n-DJOB_N_LINKS=%d\n", job->ints[0],
                   job->n_views, job->n_links);
    return text.s;
}

void hwnas_launch_shape(int *n_blocks, int *n_threads, const hwnas_launch *launch)
{
    enum { ALONE = 256, MOST_BLOCKS = HWNAS_KERNEL_THREADS / ALONE };
    const int n = launch->job.n;
    *n_threads = launch->kernel->shares_lines ? HWNAS_BLOCK_THREADS : ALONE;
    *n_blocks = launch->kernel->shares_lines ? n : (n + ALONE - 1) / ALONE;
    if (*n_blocks > MOST_BLOCKS)
        *n_blocks = MOST_BLOCKS;
}
