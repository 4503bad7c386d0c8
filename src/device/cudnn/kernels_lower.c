/* kernels_lower.c: operators that are not functions of elements, one function for each family, and
 * the table of them. */

#include "device/cudnn/kernels.h"
#include "graph/op.h"
#include "graph/ops/pool.h"
#include "graph/ops/recurrent.h"
#include "graph/ops/reduce.h"

#define LOWER(NAME)                                                                                \
    static void NAME(hwnas_launches *out, const hwnas_graph *graph, const hwnas_node *node,        \
                     const hwnas_view *views)

static int64_t first_int(const hwnas_node *node, const char *attr)
{
    return hwnas_node_attr(node, attr)->ints[0];
}

static void set_ints(hwnas_kernel_job *job, int at, const int64_t *values, int n)
{
    for (int i = 0; i < n; i++)
        job->ints[at + i] = (int)values[i];
}

/* ---- Copies ---- */

/* Views with their neighbouring dimensions made one; these two have dimensions of their own. */
static hwnas_view without_needless_dims(const hwnas_view *view)
{
    hwnas_view out = {.at = view->at, .type = view->type};
    for (int i = 0; i < view->rank; i++) {
        hwnas_view *o = &out;
        if (view->dims[i] == 1)
            continue;
        if (o->rank && o->steps[o->rank - 1] == view->steps[i] * view->dims[i]) {
            o->dims[o->rank - 1] *= view->dims[i];
            o->steps[o->rank - 1] = view->steps[i];
        } else {
            o->dims[o->rank] = view->dims[i];
            o->steps[o->rank++] = view->steps[i];
        }
    }
    return out;
}

LOWER(lower_reshape)
{
    hwnas_launch *l = hwnas_launch_new(out, "hwnas_reshape", graph, node, views, 1);
    for (int k = 0; k < 2; k++)
        l->job.views[k] = without_needless_dims(&l->job.views[k]);
}

LOWER(lower_copy)
{
    (void)graph;
    hwnas_kernels_copy(out, node->output, &views[node->output], node->inputs[0],
                       &views[node->inputs[0]]);
}

LOWER(lower_transpose)
{
    (void)graph;
    const hwnas_view *in = &views[node->inputs[0]];
    hwnas_view turned = *in;
    for (int i = 0; i < in->rank; i++) {
        turned.dims[i] = in->dims[node->attrs[0].ints[i]];
        turned.steps[i] = in->steps[node->attrs[0].ints[i]];
    }
    hwnas_kernels_copy(out, node->output, &views[node->output], node->inputs[0], &turned);
}

LOWER(lower_slice)
{
    (void)graph;
    const hwnas_view *in = &views[node->inputs[0]], *to = &views[node->output];
    const int axis = (int)first_int(node, "axis");
    hwnas_view cut = *in;
    cut.dims[axis] = to->dims[axis];
    cut.steps[axis] *= (int)first_int(node, "step");
    hwnas_kernels_copy(out, node->output, to, node->inputs[0], &cut);
    out->all[out->n - 1].offsets[1] =
        first_int(node, "begin") * in->steps[axis] * (int64_t)hwnas_stored_size(in->type);
}

LOWER(lower_concat)
{
    (void)graph;
    const hwnas_view *to = &views[node->output];
    const int axis = hwnas_view_axis(to, first_int(node, "axis"));
    int64_t at = 0;
    for (int k = 0; k < node->n_inputs; k++) {
        const hwnas_view *in = &views[node->inputs[k]];
        hwnas_view place = *to;
        place.dims[axis] = in->dims[axis];
        hwnas_kernels_copy(out, node->output, &place, node->inputs[k], in);
        out->all[out->n - 1].offsets[0] =
            at * to->steps[axis] * (int64_t)hwnas_stored_size(to->type);
        at += in->dims[axis];
    }
}

/* ---- Indices ---- */

enum { DATA, INDICES, UPDATES };

LOWER(lower_gather)
{
    hwnas_launch *l = hwnas_launch_new(out, "hwnas_gather", graph, node, views, 2);
    const hwnas_view *table = &views[node->inputs[DATA]];
    const int axis = hwnas_view_axis(table, first_int(node, "axis"));
    l->job.views[1] = hwnas_view_without(table, 1U << axis);
    l->job.ints[1] = axis;
    l->job.ints[2] = views[node->inputs[INDICES]].rank;
    l->job.ints[3] = table->dims[axis];
    l->job.ints[4] = table->steps[axis];
}

LOWER(lower_gather_elements)
{
    hwnas_launch *l = hwnas_launch_new(out, "hwnas_gather_elements", graph, node, views, 2);
    l->job.ints[1] = (int)first_int(node, "axis");
}

LOWER(lower_gather_nd)
{
    hwnas_launch *l = hwnas_launch_new(out, "hwnas_gather_nd", graph, node, views, 2);
    const hwnas_view *indices = &views[node->inputs[INDICES]];
    l->job.ints[1] = (int)first_int(node, "batch_dims");
    l->job.ints[2] = indices->dims[indices->rank - 1];
}

static hwnas_launch *begin_scatter(hwnas_launches *out, const char *kernel,
                                   const hwnas_graph *graph, const hwnas_node *node,
                                   const hwnas_view *views)
{
    hwnas_kernels_copy(out, node->output, &views[node->output], node->inputs[DATA],
                       &views[node->inputs[DATA]]);
    hwnas_launch *l = hwnas_launch_new(out, kernel, graph, node, views, 0);
    hwnas_launch_add_view(l, node->inputs[INDICES], &views[node->inputs[INDICES]]);
    hwnas_launch_add_view(l, node->inputs[UPDATES], &views[node->inputs[UPDATES]]);
    l->job.ints[0] = (int)first_int(node, "reduction");
    return l;
}

LOWER(lower_scatter_elements)
{
    hwnas_launch *l = begin_scatter(out, "hwnas_scatter_elements", graph, node, views);
    const hwnas_view *indices = &views[node->inputs[INDICES]];
    const int axis = (int)first_int(node, "axis");
    l->job.ints[1] = axis;
    l->job.n = (int)hwnas_view_count(indices) / indices->dims[axis];
}

LOWER(lower_scatter_nd)
{
    hwnas_launch *l = begin_scatter(out, "hwnas_scatter_nd", graph, node, views);
    const hwnas_view *to = &views[node->output], *indices = &views[node->inputs[INDICES]];
    const int last = indices->rank - 1, named = indices->dims[last];
    l->job.views[1] = hwnas_view_without(indices, 1U << last);
    l->job.ints[1] = named;
    l->job.ints[2] = indices->steps[last];
    l->job.ints[3] = (int)hwnas_view_count(&l->job.views[1]);
    for (int i = 0; i < named; i++)
        l->job.n /= to->dims[i];
}

/* ---- Lines ---- */

LOWER(lower_reduce)
{
    static const hwnas_op_id kinds[] = {
        [HWNAS_REDUCE_MEAN] = HWNAS_OP_MEAN,
        [HWNAS_REDUCE_SUM] = HWNAS_OP_REDUCE_SUM,
        [HWNAS_REDUCE_L1] = HWNAS_OP_REDUCE_L1,
        [HWNAS_REDUCE_L2] = HWNAS_OP_REDUCE_L2,
        [HWNAS_REDUCE_LOG_SUM] = HWNAS_OP_REDUCE_LOG_SUM,
        [HWNAS_REDUCE_LOG_SUM_EXP] = HWNAS_OP_REDUCE_LOG_SUM_EXP,
        [HWNAS_REDUCE_MAX] = HWNAS_OP_REDUCE_MAX,
        [HWNAS_REDUCE_MIN] = HWNAS_OP_REDUCE_MIN,
        [HWNAS_REDUCE_PROD] = HWNAS_OP_REDUCE_PROD,
        [HWNAS_REDUCE_SUM_SQUARE] = HWNAS_OP_REDUCE_SUM_SQUARE,
    };
    hwnas_launch *l = hwnas_launch_new(out, "hwnas_reduce", graph, node, views, 1);
    const hwnas_view *in = &views[node->inputs[0]];
    const bool is_global = node->op->id == HWNAS_OP_GLOBAL_AVG_POOL;
    const hwnas_attr *axes = is_global ? NULL : &node->attrs[HWNAS_REDUCE_AXES];
    const bool keeps = is_global || node->attrs[HWNAS_REDUCE_KEEP].ints[0];
    unsigned set = is_global ? 0xc : 0;
    for (int i = 0; axes && i < axes->n; i++)
        set |= 1U << axes->ints[i];
    if (keeps)
        l->job.views[0] = hwnas_view_without(&l->job.views[0], set);
    l->job.views[1] = hwnas_view_without(in, set);
    const hwnas_view reduced = hwnas_view_only(in, set);
    hwnas_launch_add_view(l, -1, &reduced);
    while (!is_global && kinds[l->job.ints[0]] != node->op->id)
        l->job.ints[0]++;
    l->job.ints[1] = (int)hwnas_view_count(&reduced);
}

/* A launch over lines along `axis`, its length and steps where the kernels look for them. */
static hwnas_launch *along_axis(hwnas_launches *out, const char *kernel, const hwnas_graph *graph,
                                const hwnas_node *node, const hwnas_view *views, int axis)
{
    hwnas_launch *l = hwnas_launch_new(out, kernel, graph, node, views, 1);
    const hwnas_view *in = &views[node->inputs[0]], *to = &views[node->output];
    const bool is_there = to->rank == in->rank;
    l->job.views[1] = hwnas_view_without(in, 1U << axis);
    if (is_there)
        l->job.views[0] = hwnas_view_without(to, 1U << axis);
    l->job.n = (int)hwnas_view_count(&l->job.views[1]);
    l->job.ints[1] = in->dims[axis];
    l->job.ints[2] = is_there ? to->steps[axis] : 0;
    l->job.ints[3] = in->steps[axis];
    return l;
}

LOWER(lower_softmax)
{
    enum { WARP = 32, LONG = 512 };
    const int axis = hwnas_view_axis(&views[node->inputs[0]], first_int(node, "axis"));
    hwnas_kernel_job *job = &along_axis(out, "hwnas_softmax", graph, node, views, axis)->job;
    /* A warp has a short line by itself, so that four run at a time. */
    const int lanes = job->ints[1] > LONG ? HWNAS_BLOCK_THREADS : WARP;
    const int together = HWNAS_BLOCK_THREADS / lanes;
    job->ints[4] = lanes;
    job->ints[5] = job->n;
    job->n = (job->n + together - 1) / together;
}

LOWER(lower_arg)
{
    hwnas_launch *l =
        along_axis(out, "hwnas_arg", graph, node, views, (int)first_int(node, "axis"));
    l->job.ints[4] = (int)first_int(node, "last");
    l->job.numbers[0] = node->op->id == HWNAS_OP_ARG_MAX ? 1 : -1;
}

LOWER(lower_top_k)
{
    const int axis = hwnas_view_axis(&views[node->inputs[0]], first_int(node, "axis"));
    hwnas_launch *l = along_axis(out, "hwnas_top_k", graph, node, views, axis);
    l->job.ints[4] = (int)first_int(node, "count");
    l->job.ints[5] = (int)first_int(node, "places");
    l->job.numbers[0] = first_int(node, "largest") ? 1 : -1;
}

LOWER(lower_cum_sum)
{
    hwnas_launch *l =
        along_axis(out, "hwnas_cum_sum", graph, node, views, (int)first_int(node, "axis"));
    l->job.ints[4] = (int)first_int(node, "exclusive");
    l->job.ints[5] = (int)first_int(node, "reverse");
}

LOWER(lower_layer_norm)
{
    const hwnas_view *in = &views[node->inputs[0]], *to = &views[node->output];
    const int axis = hwnas_view_axis(in, first_int(node, "axis"));
    const unsigned own = ~0U << axis;
    hwnas_launch *l = hwnas_launch_new(out, "hwnas_layer_norm", graph, node, views, 1);
    hwnas_kernel_job *job = &l->job;
    job->views[0] = hwnas_view_without(to, own);
    job->views[1] = hwnas_view_without(in, own);
    const hwnas_view parts[] = {hwnas_view_only(to, own), hwnas_view_only(in, own)};
    for (int i = 0; i < 2; i++)
        hwnas_launch_add_view(l, -1, &parts[i]);
    for (int i = 1; i < node->n_inputs; i++) {
        const hwnas_view v = hwnas_view_broadcast(&views[node->inputs[i]], &parts[0]);
        hwnas_launch_add_view(l, node->inputs[i], &v);
    }
    job->n = (int)hwnas_view_count(&job->views[1]);
    job->ints[1] = (int)hwnas_view_count(&parts[0]);
    job->ints[2] = node->n_inputs > 2;
    job->ints[3] = node->op->id == HWNAS_OP_RMS_NORM;
    job->numbers[0] = (float)hwnas_node_attr(node, "epsilon")->number;
}

/* ---- Images ---- */

LOWER(lower_pool)
{
    hwnas_launch *l = hwnas_launch_new(out, "hwnas_pool", graph, node, views, 1);
    const bool is_mean = node->op->id == HWNAS_OP_AVG_POOL;
    l->job.ints[0] = is_mean;
    set_ints(&l->job, 1, node->attrs[HWNAS_POOL_KERNEL].ints, 2);
    set_ints(&l->job, 3, node->attrs[HWNAS_POOL_STRIDE].ints, 2);
    set_ints(&l->job, 5, node->attrs[HWNAS_POOL_PAD].ints, 2);
    l->job.ints[7] = is_mean && first_int(node, "count_pad");
}

LOWER(lower_pad)
{
    hwnas_launch *l = hwnas_launch_new(out, "hwnas_pad", graph, node, views, 1);
    l->job.ints[0] = (int)first_int(node, "mode");
    set_ints(&l->job, 1, hwnas_node_attr(node, "before")->ints, views[node->output].rank);
    l->job.numbers[0] = (float)hwnas_node_attr(node, "value")->number;
}

LOWER(lower_upsample)
{
    hwnas_launch *l = hwnas_launch_new(out, "hwnas_upsample", graph, node, views, 1);
    l->job.ints[0] = (int)first_int(node, "linear");
    set_ints(&l->job, 1, hwnas_node_attr(node, "by")->ints, 2);
}

LOWER(lower_grid_sample)
{
    hwnas_launch *l = hwnas_launch_new(out, "hwnas_grid_sample", graph, node, views, 2);
    l->job.ints[0] = (int)first_int(node, "mode");
    l->job.ints[1] = (int)first_int(node, "padding");
    l->job.ints[2] = (int)first_int(node, "align_corners");
}

LOWER(lower_conv)
{
    const char *kernel = node->op->id == HWNAS_OP_CONV ? "hwnas_conv" : "hwnas_conv_transpose";
    hwnas_launch *l = hwnas_launch_new(out, kernel, graph, node, views, node->n_inputs);
    set_ints(&l->job, 1, hwnas_node_attr(node, "stride")->ints, 2);
    set_ints(&l->job, 3, hwnas_node_attr(node, "pad")->ints, 2);
    set_ints(&l->job, 5, hwnas_node_attr(node, "dilation")->ints, 2);
    l->job.ints[7] = (int)first_int(node, "groups");
    l->job.ints[8] = node->n_inputs > 2;
}

/* ---- Products ---- */

/* The factors over the output's dimensions; of `x` the last is summed, of `y` that `from_end` from
 * the end. */
static void add_product(hwnas_launch *l, const hwnas_node *node, const hwnas_view *views,
                        int from_end)
{
    const hwnas_view *to = &views[node->output];
    hwnas_view x = views[node->inputs[0]], y = views[node->inputs[1]];
    const int last = x.rank - 1, summed = y.rank - 1 - from_end;
    l->job.ints[1] = x.dims[last];
    l->job.ints[2] = x.steps[last];
    l->job.ints[3] = y.steps[summed];
    x.dims[last] = 1;
    /* What is not summed of the last two comes last, over the output's columns. */
    const int column = y.rank - 2 + from_end;
    y.dims[y.rank - 1] = y.dims[column];
    y.steps[y.rank - 1] = y.steps[column];
    if (y.rank > 1)
        y.dims[y.rank - 2] = 1;
    const hwnas_view factors[] = {hwnas_view_broadcast(&x, to), hwnas_view_broadcast(&y, to)};
    hwnas_launch_add_view(l, node->inputs[0], &factors[0]);
    hwnas_launch_add_view(l, node->inputs[1], &factors[1]);
}

LOWER(lower_matmul)
{
    hwnas_launch *l = hwnas_launch_new(out, "hwnas_matmul", graph, node, views, 0);
    add_product(l, node, views, 1);
}

LOWER(lower_linear)
{
    hwnas_launch *l = hwnas_launch_new(out, "hwnas_matmul", graph, node, views, 0);
    add_product(l, node, views, 0);
    if (node->n_inputs <= 2)
        return;
    const hwnas_view bias = hwnas_view_broadcast(&views[node->inputs[2]], &views[node->output]);
    hwnas_launch_add_view(l, node->inputs[2], &bias);
    l->job.ints[4] = 1;
}

/* ---- Sequences ---- */

void hwnas_lower_recurrent(hwnas_launches *out, const hwnas_graph *graph, const hwnas_node *node,
                           const hwnas_view *views)
{
    hwnas_launch *l = hwnas_launch_new(out, "hwnas_recurrent", graph, node, views, node->n_inputs);
    const hwnas_view *to = &views[node->output];
    l->job.n = to->dims[1] * to->dims[2];
    l->job.ints[0] = node->op->id == HWNAS_OP_LSTM_CORE ? HWNAS_RNN_LSTM : HWNAS_RNN_GRU;
    l->job.ints[1] = node->n_inputs > HWNAS_RNN_B;
    l->job.ints[2] = node->attrs[HWNAS_RNN_DIRECTION].ints[0] == HWNAS_RNN_REVERSE;
}

static hwnas_lower *const rows[HWNAS_N_OPS] = {
    [HWNAS_OP_ARG_MAX] = lower_arg,
    [HWNAS_OP_ARG_MIN] = lower_arg,
    [HWNAS_OP_AVG_POOL] = lower_pool,
    [HWNAS_OP_CONCAT] = lower_concat,
    [HWNAS_OP_CONV] = lower_conv,
    [HWNAS_OP_CONV_TRANSPOSE] = lower_conv,
    [HWNAS_OP_CUM_SUM] = lower_cum_sum,
    [HWNAS_OP_DROPOUT] = lower_copy,
    [HWNAS_OP_EXPAND] = lower_copy,
    [HWNAS_OP_FLATTEN] = lower_reshape,
    [HWNAS_OP_GATHER] = lower_gather,
    [HWNAS_OP_GATHER_ELEMENTS] = lower_gather_elements,
    [HWNAS_OP_GATHER_ND] = lower_gather_nd,
    [HWNAS_OP_GLOBAL_AVG_POOL] = lower_reduce,
    [HWNAS_OP_GRID_SAMPLE] = lower_grid_sample,
    [HWNAS_OP_GRU_CORE] = hwnas_lower_recurrent,
    [HWNAS_OP_LAYER_NORM] = lower_layer_norm,
    [HWNAS_OP_LINEAR] = lower_linear,
    [HWNAS_OP_LSTM_CORE] = hwnas_lower_recurrent,
    [HWNAS_OP_MATMUL] = lower_matmul,
    [HWNAS_OP_MAX_POOL] = lower_pool,
    [HWNAS_OP_MEAN] = lower_reduce,
    [HWNAS_OP_PAD] = lower_pad,
    [HWNAS_OP_REDUCE_L1] = lower_reduce,
    [HWNAS_OP_REDUCE_L2] = lower_reduce,
    [HWNAS_OP_REDUCE_LOG_SUM] = lower_reduce,
    [HWNAS_OP_REDUCE_LOG_SUM_EXP] = lower_reduce,
    [HWNAS_OP_REDUCE_MAX] = lower_reduce,
    [HWNAS_OP_REDUCE_MIN] = lower_reduce,
    [HWNAS_OP_REDUCE_PROD] = lower_reduce,
    [HWNAS_OP_REDUCE_SUM] = lower_reduce,
    [HWNAS_OP_REDUCE_SUM_SQUARE] = lower_reduce,
    [HWNAS_OP_RESHAPE] = lower_reshape,
    [HWNAS_OP_RMS_NORM] = lower_layer_norm,
    [HWNAS_OP_SCATTER_ELEMENTS] = lower_scatter_elements,
    [HWNAS_OP_SCATTER_ND] = lower_scatter_nd,
    [HWNAS_OP_SLICE] = lower_slice,
    [HWNAS_OP_SOFTMAX] = lower_softmax,
    [HWNAS_OP_TOP_K] = lower_top_k,
    [HWNAS_OP_TRANSPOSE] = lower_transpose,
    [HWNAS_OP_UPSAMPLE] = lower_upsample,
};

hwnas_lower *hwnas_kernels_lowering(const hwnas_node *node)
{
    return rows[node->op->id];
}
