/* onednn_compile.c: a graph becomes steps.
 *
 * Groups (groups.h) and what oneDNN has no operator for are steps of ours. oneDNN cuts the rest
 * into partitions, each of which it runs as one fused piece, and chooses the layouts between them;
 * what our steps read and write is plain, or an image with its channels last. */
#include <stdint.h>
#include <stdlib.h>

#include "device/ranges.h"
#include "device/onednn/broadcasts.h"
#include "device/onednn/byte_convs.h"
#include "device/onednn/byte_tables.h"
#include "device/onednn/casts.h"
#include "device/onednn/depthwise.h"
#include "device/onednn/changes.h"
#include "device/onednn/dynamic.h"
#include "device/onednn/function_loops.h"
#include "device/onednn/fused.h"
#include "device/onednn/guard.h"
#include "device/onednn/logical.h"
#include "device/onednn/halves.h"
#include "device/onednn/onednn_lower.h"
#include "device/onednn/moves.h"
#include "device/onednn/onednn_exec.h"
#include "device/onednn/partition.h"
#include "device/onednn/pixels.h"
#include "device/onednn/rows.h"
#include "device/onednn/threads.h"
#include "graph/op.h"
#include "graph/pack_weights.h"
#include "graph/quantize_graph.h"

typedef hwnas_onednn_step step;
typedef onednn_compiler compiler;

static void compiler_done(compiler *c)
{
    for (size_t i = 0; i < c->n_partitions; i++)
        if (c->partitions[i])
            dnnl_graph_partition_destroy(c->partitions[i]);
    if (c->lowered)
        dnnl_graph_graph_destroy(c->lowered);
    free(c->partitions);
    free(c->described);
    hwnas_onednn_groups_done(&c->groups);
    free(c->is_own);
    free(c->is_output);
    free(c->is_read);
    free(c->offset);
}

/* The partition's nodes, in the arena; none for the end of a tensor. */
static hwnas_status nodes_of(hwnas_exec_step *out, const compiler *c,
                             dnnl_graph_partition_t partition)
{
    hwnas_status status = HWNAS_OK;
    size_t n = 0, *ids = NULL;
    TRY_DNNL("read", c->graph->name, dnnl_graph_partition_get_op_num(partition, &n));
    ids = hwnas_alloc(n * sizeof *ids);
    TRY_DNNL_OUT("read", c->graph->name, dnnl_graph_partition_get_ops(partition, n, ids));
    int *nodes = hwnas_arena_alloc(c->exec->arena, n * sizeof *nodes);
    *out = (hwnas_exec_step){.nodes = nodes};
    for (size_t i = 0; i < n; i++)
        if (ids[i] < c->graph->n_nodes)
            nodes[out->n_nodes++] = (int)ids[i];
out:
    free(ids);
    return status;
}

typedef struct ordering {
    const hwnas_graph *graph;
    dnnl_graph_partition_t *from, *to;
    hwnas_exec_step *about; /* the nodes of each of `from` */
    int *owner;             /* of each node; -1: no partition */
    bool *is_taken;         /* of `from` */
    size_t n;               /* in `to` */
} ordering;

/* Takes partition `p` behind those that it reads. */
static void take_partition(ordering *o, int p)
{
    o->is_taken[p] = true;
    for (size_t i = 0; i < o->about[p].n_nodes; i++) {
        const hwnas_node *node = &o->graph->nodes[o->about[p].nodes[i]];
        for (int k = 0; k < node->n_inputs; k++) {
            const int producer = hwnas_node_input(o->graph, node, k)->producer;
            const int before = producer < 0 ? -1 : o->owner[producer];
            if (before >= 0 && !o->is_taken[before])
                take_partition(o, before);
        }
    }
    o->to[o->n++] = o->from[p];
}

/* oneDNN 3.7 may give a partition behind one that reads it: that of an attention whose scores are
 * read by others as well. */
static hwnas_status order_partitions(compiler *c)
{
    hwnas_status status = HWNAS_OK;
    const size_t n = c->n_partitions, n_nodes = c->graph->n_nodes;
    ordering o = {.graph = c->graph, .from = c->partitions};
    o.to = hwnas_alloc((n + 1) * sizeof(dnnl_graph_partition_t));
    o.about = hwnas_alloc((n + 1) * sizeof *o.about);
    o.owner = hwnas_alloc((n_nodes + 1) * sizeof *o.owner);
    o.is_taken = hwnas_alloc(n + 1);
    for (size_t i = 0; i < n_nodes; i++)
        o.owner[i] = -1;
    for (size_t p = 0; p < n; p++) {
        TRY_OUT(nodes_of(&o.about[p], c, o.from[p]));
        for (size_t i = 0; i < o.about[p].n_nodes; i++)
            o.owner[o.about[p].nodes[i]] = (int)p;
    }
    for (size_t p = 0; p < n; p++)
        if (!o.is_taken[p])
            take_partition(&o, (int)p);
    c->partitions = o.to;
    o.to = o.from;
out:
    free(o.to);
    free(o.about);
    free(o.owner);
    free(o.is_taken);
    return status;
}

/* Cuts the graph into partitions, in an order in which they can run. */
static hwnas_status cut(compiler *c)
{
    const char *name = c->graph->name;
    TRY_DNNL("begin", name, dnnl_graph_graph_create(&c->lowered, dnnl_cpu));
    bool *is_end = hwnas_onednn_guard(c->source, &c->groups.plan);
    const hwnas_status status = hwnas_onednn_lower(c->lowered, c->source, &c->groups.plan, is_end);
    free(is_end);
    TRY(status);
    TRY_DNNL("finish", name, dnnl_graph_graph_finalize(c->lowered));
    TRY_DNNL("partition", name,
             dnnl_graph_graph_filter(c->lowered, dnnl_graph_partition_policy_fusion));
    size_t n = 0;
    TRY_DNNL("partition", name, dnnl_graph_graph_get_partition_num(c->lowered, &n));
    c->partitions = hwnas_alloc(n * sizeof *c->partitions);
    c->n_partitions = n;
    TRY_DNNL("partition", name, dnnl_graph_graph_get_partitions(c->lowered, n, c->partitions));
    return order_partitions(c);
}

/* Compiles a node that oneDNN's graphs have no operator for. */
static hwnas_status compile_own(compiler *c, step *s, const hwnas_node *node)
{
    hwnas_arena *arena = c->exec->arena;
    s->kind = hwnas_onednn_own(c->source, node);
    if (!s->kind)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "oneDNN cannot run '%s'", node->name);
    s->n_inputs = (size_t)node->n_inputs;
    s->n_outputs = 1;
    s->output_bytes = hwnas_onednn_bytes(c->source, node->output);
    s->input_ids = hwnas_arena_copy(arena, node->inputs, s->n_inputs * sizeof *s->input_ids);
    s->output_ids = hwnas_arena_copy(arena, &node->output, sizeof *s->output_ids);
    TRY(hwnas_onednn_plain(&c->described[node->output], c->source, node->output));
    return s->kind->compile(s, s->device, c->graph, node);
}

/* Compiles the partition that a node outside of groups is in. */
static hwnas_status compile_partition(compiler *c, step *s, dnnl_graph_partition_t partition)
{
    const hwnas_node *node = &c->graph->nodes[s->about.nodes[0]];
    uint8_t is_supported = 0;
    TRY_DNNL("ask about", s->name, dnnl_graph_partition_is_supported(partition, &is_supported));
    if (!is_supported)
        return compile_own(c, s, node);
    s->kind = &hwnas_onednn_partition;
    return hwnas_onednn_partition_compile(s, s->device, partition, c->described, c->groups.layouts,
                                          c->source, c->exec->arena);
}

/* Compiles a group by the kind of step that is best for it. */
static hwnas_status compile_kind(compiler *c, step *s, const hwnas_onednn_group *group)
{
    const onednn_exec *exec = c->exec;
    const hwnas_node *root = &c->graph->nodes[group->chain.nodes[0]];
    if (group->is_product_of_halves) {
        s->kind = &hwnas_onednn_fused;
        return hwnas_onednn_fused_compile(s, s->device, c->source, group, c->groups.layouts,
                                          exec->arena);
    }
    if (group->is_table) {
        s->kind = &hwnas_onednn_byte_tables;
        return hwnas_onednn_table_compile(s, c->source, group, exec->arena);
    }
    if (group->is_broadcast) {
        s->kind = &hwnas_onednn_broadcasts;
        return hwnas_onednn_broadcast_compile(s, c->graph, group, c->groups.layouts, exec->arena);
    }
    if (group->is_dynamic) {
        s->kind = &hwnas_onednn_dynamic;
        return hwnas_onednn_dynamic_compile(s, s->device, c->graph, group, c->groups.layouts,
                                            exec->arena);
    }
    if (hwnas_onednn_is_move(root)) {
        s->kind = &hwnas_onednn_moves;
        return hwnas_onednn_move_compile(s, c->graph, root, c->groups.layouts, exec->arena);
    }
    if (hwnas_onednn_depthwise_fits(c->source, group, c->groups.layouts)) {
        s->kind = &hwnas_onednn_depthwise;
        return hwnas_onednn_depthwise_compile(s, c->source, group, exec->arena);
    }
    if (hwnas_onednn_byte_conv_fits(c->source, group, c->groups.layouts)) {
        s->kind = &hwnas_onednn_byte_conv;
        return hwnas_onednn_byte_conv_compile(s, s->device, c->source, group, exec->arena);
    }
    if (hwnas_onednn_pixels_fit(c->source, group, c->groups.layouts)) {
        s->kind = &hwnas_onednn_pixels;
        return hwnas_onednn_pixels_compile(s, s->device, c->source, group, exec->arena);
    }
    if (hwnas_onednn_rows_fit(c->source, group)) {
        s->kind = &hwnas_onednn_rows;
        return hwnas_onednn_rows_compile(s, s->device, c->source, group, exec->arena);
    }
    if (hwnas_onednn_change_fits(c->graph, group, c->groups.layouts)) {
        s->kind = &hwnas_onednn_changes;
        return hwnas_onednn_change_compile(s, c->source, group, c->groups.layouts, exec->arena);
    }
    if (hwnas_onednn_function_fits(c->source, group, c->groups.layouts)) {
        s->kind = &hwnas_onednn_functions;
        return hwnas_onednn_function_compile(s, s->device, c->graph, group, exec->arena);
    }
    s->kind = &hwnas_onednn_fused;
    return hwnas_onednn_fused_compile(s, s->device, c->source, group, c->groups.layouts,
                                      exec->arena);
}

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static hwnas_status compile_group(compiler *c, step *s, const hwnas_onednn_group *group)
{
    const bool is_image = c->groups.layouts[group->chain.output] == HWNAS_ONEDNN_IMAGE;
    const size_t n = (size_t)group->chain.n_nodes;
    int *nodes = hwnas_arena_copy(c->exec->arena, group->chain.nodes, n * sizeof *nodes);
    qsort(nodes, n, sizeof *nodes, by_number);
    s->about.n_nodes = n;
    s->about.nodes = nodes;
    TRY((is_image ? hwnas_onednn_image : hwnas_onednn_plain)(&c->described[group->chain.output],
                                                             c->source, group->chain.output));
    const hwnas_status status = compile_kind(c, s, group);
    if (status == HWNAS_E_UNSUPPORTED)
        c->is_refused[group->chain.nodes[0]] = true;
    return status;
}

/* The node of the caller's graph that the kernel of this one came of packed, if nobody before it
 * reads that kernel; else -1. */
static int packed_before(const hwnas_onednn_source *source, int node)
{
    const hwnas_node *nodes = source->graph->nodes;
    if (!source->packed_node || source->made_packed_graph || nodes[node].n_inputs < 2)
        return -1;
    const int kernel = nodes[node].inputs[1];
    for (int n = 0; n < node; n++)
        for (int i = 0; i < nodes[n].n_inputs; i++)
            if (nodes[n].inputs[i] == kernel)
                return -1;
    return source->packed_node[kernel];
}

/* The nodes by their numbers in the caller's graph; those that only change types have
 * none there. */
static void find_origin(hwnas_exec_step *about, const hwnas_onednn_source *source,
                        hwnas_arena *arena)
{
    int *nodes = hwnas_arena_alloc(arena, (2 * about->n_nodes + 1) * sizeof *nodes);
    size_t n = 0;
    for (size_t i = 0; i < about->n_nodes; i++) {
        const int node = about->nodes[i], packed = packed_before(source, node);
        const int origin = source->origin ? source->origin[node] : node;
        if (packed >= 0)
            nodes[n++] = packed;
        if (origin >= 0)
            nodes[n++] = origin;
    }
    about->nodes = nodes;
    about->n_nodes = n;
}

/* With how many threads a step runs, and is compiled: primitives keep their number. */
static void choose_threads(compiler *c, step *s, const hwnas_onednn_group *group)
{
    const size_t n = group ? (size_t)group->chain.n_nodes : s->about.n_nodes;
    const int *nodes = group ? group->chain.nodes : s->about.nodes;
    s->device =
        hwnas_onednn_is_worth_threads(c->graph, nodes, n) ? &c->exec->with : &c->exec->alone;
    hwnas_onednn_use_threads(s->device->threads);
}

/* Compiles what is to be run when it is the turn of `node`: `partition` or, in a graph without
 * partitions, the node. A group's turn is that of its last node. */
static hwnas_status compile_step(compiler *c, int node, dnnl_graph_partition_t partition)
{
    onednn_exec *exec = c->exec;
    const hwnas_onednn_group *group = hwnas_onednn_group_of(&c->groups, node);
    if (group && c->graph->tensors[group->chain.output].producer != node)
        return HWNAS_OK;
    step *s = &exec->steps[exec->n_steps++];
    s->name = hwnas_arena_printf(exec->arena, "%s", c->graph->nodes[node].name);
    s->about = (hwnas_exec_step){1, hwnas_arena_copy(exec->arena, &node, sizeof node), NULL};
    if (partition && !group)
        TRY(nodes_of(&s->about, c, partition));
    choose_threads(c, s, group);
    TRY(group       ? compile_group(c, s, group)
        : partition ? compile_partition(c, s, partition)
                    : compile_own(c, s, &c->graph->nodes[node]));
    s->about.how = s->is_reference ? HWNAS_HOW_REFERENCE : s->kind->name;
    find_origin(&s->about, c->source, exec->arena);
    for (size_t i = 0; i < s->n_inputs; i++)
        c->is_read[s->input_ids[i]] = true;
    return HWNAS_OK;
}

/* The steps in the order of oneDNN's partitions, or of the nodes where it has nothing to do. */
static hwnas_status compile_steps(compiler *c)
{
    onednn_exec *exec = c->exec;
    const size_t n = c->partitions ? c->n_partitions : c->graph->n_nodes;
    for (size_t i = 0; i < c->graph->n_tensors; i++)
        if (c->graph->tensors[i].kind != HWNAS_TENSOR_ACTIVATION)
            TRY(hwnas_onednn_plain(&c->described[i], c->source, (int)i));
    exec->steps = hwnas_arena_alloc(exec->arena, n * sizeof *exec->steps);
    for (size_t i = 0; i < n; i++) {
        hwnas_exec_step about = {1, NULL, NULL};
        if (c->partitions)
            TRY(nodes_of(&about, c, c->partitions[i]));
        if (about.n_nodes)
            TRY(compile_step(c, about.nodes ? about.nodes[0] : (int)i,
                             c->partitions ? c->partitions[i] : NULL));
    }
    exec->about = hwnas_arena_alloc(exec->arena, exec->n_steps * sizeof *exec->about);
    for (size_t i = 0; i < exec->n_steps; i++)
        exec->about[i] = exec->steps[i].about;
    return HWNAS_OK;
}

/* Nodes that have steps of their own only where no group takes them: slices of images, zeros, and
 * what oneDNN's graphs lack and its primitives have. */
static bool may_be_in_group(const compiler *c, size_t n)
{
    const hwnas_node *node = &c->graph->nodes[n];
    return node->op->id == HWNAS_OP_SLICE || node->op->id == HWNAS_OP_ZERO ||
           hwnas_onednn_rounds_for_groups(c->source, node, c->is_refused) ||
           (node->op->id == HWNAS_OP_CONV_TRANSPOSE && c->is_refused && !c->is_refused[n] &&
            hwnas_onednn_has_constant_kernel(c->graph, node));
}

/* Which nodes go where. */
static hwnas_status sort_nodes(compiler *c)
{
    bool is_all_ours = true;
    for (size_t i = 0; i < c->graph->n_nodes; i++)
        c->is_own[i] = hwnas_onednn_own(c->source, &c->graph->nodes[i]) && !may_be_in_group(c, i);
    hwnas_onednn_groups_find(&c->groups, c->source, c->is_own, c->is_refused);
    for (size_t i = 0; i < c->graph->n_nodes; i++)
        is_all_ours &=
            c->groups.plan.group_of[i] >= 0 || hwnas_onednn_own(c->source, &c->graph->nodes[i]);
    return is_all_ours ? HWNAS_OK : cut(c);
}

/* The graph as it is lowered. One that is quantised already is what s8 asks for. */
static hwnas_status take_source(hwnas_onednn_source *out, hwnas_device *device,
                                const hwnas_graph *graph, const hwnas_exec_options *options,
                                bool is_emulated)
{
    hwnas_graph *quantized = NULL;
    int *origin = NULL;
    const int bits = hwnas_precision_weight_bits(options->precision);
    if (hwnas_graph_has_packed(graph))
        return hwnas_onednn_source_packed(out, graph, 0);
    if (bits && !hwnas_graph_is_quantized(graph))
        return hwnas_onednn_source_packed(out, graph, bits);
    if (options->precision == HWNAS_BF16 || options->precision == HWNAS_F16) {
        hwnas_onednn_source floats;
        hwnas_onednn_source_init(&floats, graph);
        hwnas_status status = hwnas_onednn_cast(out, &floats, options->precision, is_emulated);
        hwnas_onednn_source_done(&floats);
        return status;
    }
    if (options->precision != HWNAS_S8 || hwnas_graph_is_quantized(graph)) {
        hwnas_onednn_source_init(out, graph);
        return HWNAS_OK;
    }
    TRY(hwnas_device_quantize(&quantized, &origin, device, graph, options, HWNAS_QUANTIZE_LOOKUP));
    hwnas_onednn_source_init(out, quantized);
    out->made = quantized;
    out->origin = origin;
    return HWNAS_OK;
}

static onednn_exec *new_exec(hwnas_device *base, const hwnas_graph *graph)
{
    onednn_exec *exec = hwnas_alloc(sizeof *exec);
    exec->base.ops = base->ops;
    exec->with = *(onednn_device *)base;
    exec->with.scratch = &exec->scratch;
    exec->alone = exec->with;
    exec->alone.threads = 1;
    exec->device = &exec->with;
    exec->arena = hwnas_arena_new();
    exec->n_tensors = graph->n_tensors;
    exec->n_inputs = graph->n_inputs;
    exec->n_outputs = graph->n_outputs;
    exec->tensors = hwnas_arena_alloc(exec->arena, graph->n_tensors * sizeof *exec->tensors);
    exec->inputs = hwnas_arena_copy(exec->arena, graph->inputs, graph->n_inputs * sizeof(int));
    exec->outputs = hwnas_arena_copy(exec->arena, graph->outputs, graph->n_outputs * sizeof(int));
    return exec;
}

/* `is_refused`, by node, becomes true for a root that oneDNN has only slow code for; the status is
 * then HWNAS_E_UNSUPPORTED, and without it as a root all may go well. NULL: no groups. */
static hwnas_status try_compile(hwnas_exec **out, hwnas_device *base,
                                const hwnas_onednn_source *source, bool *is_refused)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_graph *graph = source->graph;
    const size_t n = graph->n_tensors;
    onednn_exec *exec = new_exec(base, graph);
    compiler c = {.exec = exec, .source = source, .graph = graph, .is_refused = is_refused};
    c.described = hwnas_alloc(n * sizeof *c.described);
    c.is_own = hwnas_alloc((graph->n_nodes + 1) * sizeof *c.is_own);
    c.is_output = hwnas_alloc(n * sizeof *c.is_output);
    c.is_read = hwnas_alloc(n * sizeof *c.is_read);
    c.offset = hwnas_alloc(n * sizeof *c.offset);
    hwnas_onednn_sort_outputs(&c);

    hwnas_onednn_use_threads(exec->device->threads);
    TRY_OUT(sort_nodes(&c));
    TRY_OUT(compile_steps(&c));
    TRY_OUT(hwnas_onednn_bind(&c));
    *out = &exec->base;
    exec = NULL;
out:
    compiler_done(&c);
    hwnas_onednn_free_exec((hwnas_exec *)exec);
    return status;
}

static size_t count_true(const bool *values, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += values[i];
    return count;
}

hwnas_status hwnas_onednn_compile(hwnas_exec **out, hwnas_device *base, const hwnas_graph *graph,
                                  const hwnas_exec_options *options)
{
    hwnas_status status = HWNAS_OK;
    hwnas_onednn_source source = {0};
    bool *is_refused = NULL;
    size_t n = 0, n_refused;
    bool is_emulated;
    TRY(hwnas_onednn_check_precision(&is_emulated, (const onednn_device *)base,
                                     options->precision));
    TRY_OUT(take_source(&source, base, graph, options, is_emulated));
    n = source.graph->n_nodes;
    if (!hwnas_onednn_has_low(&source)) /* groups are of floats and bytes */
        is_refused = hwnas_alloc((n + 1) * sizeof *is_refused);
    do {
        n_refused = is_refused ? count_true(is_refused, n) : 0;
        status = try_compile(out, base, &source, is_refused);
    } while (status == HWNAS_E_UNSUPPORTED && is_refused && count_true(is_refused, n) > n_refused);
out:
    free(is_refused);
    hwnas_onednn_source_done(&source);
    return status;
}
