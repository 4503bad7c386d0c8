/* onednn_exec.c: a graph compiled by oneDNN, ready to run.
 *
 * oneDNN cuts the graph into partitions, each of which it runs as one fused piece. Between
 * partitions it chooses the layouts. All memory that we hold is taken here: the weights in one
 * piece, the activations in another, where tensors that never live together share their place. */
#include "device/onednn/onednn.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "device/onednn/lower.h"
#include "device/place.h"

/* One partition. Its ports are borrowed from the executable. */
typedef struct step {
    dnnl_graph_compiled_partition_t compiled;
    size_t n_inputs, n_outputs;
    int *input_ids, *output_ids;
    const_dnnl_graph_tensor_t *inputs, *outputs;
} step;

typedef struct onednn_exec {
    hwnas_exec base;
    onednn_device *device;
    hwnas_arena *arena;
    size_t n_steps, n_tensors, n_inputs, n_outputs;
    step *steps;                  /* all of them from the start, empty until compiled */
    dnnl_graph_tensor_t *tensors; /* by index in the graph; NULL: inside a partition */
    int *inputs, *outputs;        /* of the graph */
    void *weights, *activations;
    size_t weight_bytes, activation_bytes;
} onednn_exec;

/* What is needed only while compiling. */
typedef struct compiler {
    onednn_exec *exec;
    const hwnas_graph *graph;
    dnnl_graph_graph_t lowered;
    size_t n_partitions;
    dnnl_graph_partition_t *partitions;
    dnnl_graph_logical_tensor_t *described; /* by tensor: as it is laid out; empty: not yet */
    bool *is_output;
    size_t *offset; /* by tensor: in the activations or in the weights */
} compiler;

void hwnas_onednn_free_exec(hwnas_exec *base)
{
    onednn_exec *exec = (onednn_exec *)base;
    if (!exec)
        return;
    for (size_t i = 0; i < exec->n_tensors; i++)
        if (exec->tensors[i])
            dnnl_graph_tensor_destroy(exec->tensors[i]);
    for (size_t i = 0; i < exec->n_steps; i++)
        if (exec->steps[i].compiled)
            dnnl_graph_compiled_partition_destroy(exec->steps[i].compiled);
    hwnas_onednn_forget_constants();
    free(exec->weights);
    free(exec->activations);
    hwnas_arena_free(exec->arena);
    free(exec);
}

/* What we hold. From the first run on oneDNN keeps the kernels a second time, in its own layout. */
size_t hwnas_onednn_memory(const hwnas_exec *base)
{
    const onednn_exec *exec = (const onednn_exec *)base;
    return exec->weight_bytes + exec->activation_bytes;
}

static void compiler_done(compiler *c)
{
    for (size_t i = 0; i < c->n_partitions; i++)
        if (c->partitions[i])
            dnnl_graph_partition_destroy(c->partitions[i]);
    if (c->lowered)
        dnnl_graph_graph_destroy(c->lowered);
    free(c->partitions);
    free(c->described);
    free(c->is_output);
    free(c->offset);
}

/* Each output is written by a partition, into a buffer of its own. */
static hwnas_status check_outputs(const compiler *c)
{
    for (size_t i = 0; i < c->graph->n_outputs; i++) {
        const int tensor = c->graph->outputs[i];
        const char *name = c->graph->tensors[tensor].name;
        if (c->graph->tensors[tensor].producer < 0)
            return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "output '%s' is not computed", name);
        for (size_t k = 0; k < i; k++)
            if (c->graph->outputs[k] == tensor)
                return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "'%s' is an output twice", name);
    }
    return HWNAS_OK;
}

/* Cuts the graph into partitions, which come in an order in which they can run. */
static hwnas_status cut(compiler *c)
{
    const char *name = c->graph->name;
    TRY(check_outputs(c));
    TRY_DNNL("begin", name, dnnl_graph_graph_create(&c->lowered, dnnl_cpu));
    TRY(hwnas_onednn_lower(c->lowered, c->graph));
    TRY_DNNL("finish", name, dnnl_graph_graph_finalize(c->lowered));
    TRY_DNNL("partition", name,
             dnnl_graph_graph_filter(c->lowered, dnnl_graph_partition_policy_fusion));
    size_t n = 0;
    TRY_DNNL("partition", name, dnnl_graph_graph_get_partition_num(c->lowered, &n));
    c->partitions = hwnas_alloc(n * sizeof *c->partitions);
    c->n_partitions = n;
    TRY_DNNL("partition", name, dnnl_graph_graph_get_partitions(c->lowered, n, c->partitions));
    return HWNAS_OK;
}

/* The partition's first node, for messages. */
static const char *name_of(const compiler *c, dnnl_graph_partition_t partition)
{
    enum { MANY = 256 };
    size_t n = 0, ids[MANY] = {0};
    if (dnnl_graph_partition_get_op_num(partition, &n) != dnnl_success || n > MANY ||
        dnnl_graph_partition_get_ops(partition, n, ids) != dnnl_success)
        return c->graph->name;
    return c->graph->nodes[ids[0]].name;
}

typedef struct ports {
    size_t n;
    dnnl_graph_logical_tensor_t *tensors;
    const dnnl_graph_logical_tensor_t **pointers;
} ports;

static void ports_done(ports *p)
{
    free(p->tensors);
    free(p->pointers);
}

typedef dnnl_status_t count_ports(const_dnnl_graph_partition_t, size_t *);
typedef dnnl_status_t get_ports(const_dnnl_graph_partition_t, size_t,
                                dnnl_graph_logical_tensor_t *);

static dnnl_status_t read_ports(ports *out, dnnl_graph_partition_t partition, count_ports *count,
                                get_ports *get)
{
    dnnl_status_t status = count(partition, &out->n);
    if (status != dnnl_success)
        return status;
    out->tensors = hwnas_alloc(out->n * sizeof *out->tensors);
    out->pointers = hwnas_alloc(out->n * sizeof *out->pointers);
    for (size_t i = 0; i < out->n; i++)
        out->pointers[i] = &out->tensors[i];
    return get(partition, out->n, out->tensors);
}

static int *ids_of(hwnas_arena *arena, const ports *p)
{
    int *ids = hwnas_arena_alloc(arena, p->n * sizeof *ids);
    for (size_t i = 0; i < p->n; i++)
        ids[i] = (int)p->tensors[i].id;
    return ids;
}

/* Compiles one partition. Its inputs are laid out as the partitions before it have chosen; what it
 * gives to later ones it may lay out as it likes, the graph's outputs are plain. */
static hwnas_status compile_partition(compiler *c, step *s, dnnl_graph_partition_t partition)
{
    hwnas_status status = HWNAS_OK;
    const char *name = name_of(c, partition);
    const dnnl_engine_t engine = c->exec->device->engine;
    ports in = {0}, out = {0};
    uint8_t is_supported = 0;
    TRY_DNNL_OUT("ask about", name, dnnl_graph_partition_is_supported(partition, &is_supported));
    if (!is_supported) {
        status = hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "oneDNN cannot run '%s'", name);
        goto out;
    }
    TRY_DNNL_OUT("read the inputs of", name,
                 read_ports(&in, partition, dnnl_graph_partition_get_input_ports_num,
                            dnnl_graph_partition_get_input_ports));
    TRY_DNNL_OUT("read the outputs of", name,
                 read_ports(&out, partition, dnnl_graph_partition_get_output_ports_num,
                            dnnl_graph_partition_get_output_ports));
    for (size_t i = 0; i < in.n; i++)
        in.tensors[i] = c->described[in.tensors[i].id];
    for (size_t i = 0; i < out.n; i++)
        if (!c->is_output[out.tensors[i].id])
            out.tensors[i].layout_type = dnnl_graph_layout_type_any;

    TRY_DNNL_OUT("begin", name, dnnl_graph_compiled_partition_create(&s->compiled, partition));
    TRY_DNNL_OUT("compile", name,
                 dnnl_graph_partition_compile(partition, s->compiled, in.n, in.pointers, out.n,
                                              out.pointers, engine));
    for (size_t i = 0; i < out.n; i++) {
        const size_t id = out.tensors[i].id;
        TRY_DNNL_OUT(
            "describe the output of", name,
            dnnl_graph_compiled_partition_query_logical_tensor(s->compiled, id, &c->described[id]));
    }
    s->n_inputs = in.n;
    s->n_outputs = out.n;
    s->input_ids = ids_of(c->exec->arena, &in);
    s->output_ids = ids_of(c->exec->arena, &out);
out:
    ports_done(&in);
    ports_done(&out);
    return status;
}

static hwnas_status compile_partitions(compiler *c)
{
    onednn_exec *exec = c->exec;
    for (size_t i = 0; i < c->graph->n_tensors; i++)
        if (c->graph->tensors[i].kind != HWNAS_TENSOR_ACTIVATION)
            TRY(hwnas_onednn_plain(&c->described[i], c->graph, (int)i));
    exec->steps = hwnas_arena_alloc(exec->arena, c->n_partitions * sizeof *exec->steps);
    exec->n_steps = c->n_partitions;
    for (size_t i = 0; i < exec->n_steps; i++)
        TRY(compile_partition(c, &exec->steps[i], c->partitions[i]));
    return HWNAS_OK;
}

/* Whether the tensor is in our activations: not the caller's, not a weight. */
static bool is_ours(const compiler *c, int tensor)
{
    return c->graph->tensors[tensor].kind == HWNAS_TENSOR_ACTIVATION && !c->is_output[tensor];
}

/* The input of step `at` whose place its output `tensor` may take over, or -1. The sum at the end
 * of a residual block is computed in place; elsewhere oneDNN would first copy. */
static int predecessor(const compiler *c, const int *last_use, int at, int tensor)
{
    size_t n = 0;
    const dnnl_graph_inplace_pair_t *pairs = NULL;
    if (dnnl_graph_compiled_partition_get_inplace_ports(c->exec->steps[at].compiled, &n, &pairs) !=
        dnnl_success)
        return -1;
    for (size_t i = 0; i < n; i++) {
        const int input = (int)pairs[i].input_id;
        if ((int)pairs[i].output_id == tensor && is_ours(c, input) && last_use[input] == at)
            return input;
    }
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
        if (tensor->kind != HWNAS_TENSOR_WEIGHT)
            continue;
        c->offset[i] = *total;
        *total += ((size_t)hwnas_tensor_bytes(tensor) + HWNAS_PLACE_ALIGN - 1) / HWNAS_PLACE_ALIGN *
                  HWNAS_PLACE_ALIGN;
    }
}

/* Takes the memory and binds every tensor that a step reads or writes to its place in it. */
static hwnas_status bind_tensors(compiler *c)
{
    onednn_exec *exec = c->exec;
    place_weights(c);
    TRY(place_activations(c));
    TRY(hwnas_try_alloc(&exec->weights, exec->weight_bytes, "weights"));
    TRY(hwnas_try_alloc(&exec->activations, exec->activation_bytes, "activations"));
    for (size_t i = 0; i < c->graph->n_tensors; i++) {
        const hwnas_tensor *tensor = &c->graph->tensors[i];
        void *handle = NULL; /* of the caller: known in each run */
        if (!c->described[i].data_type)
            continue; /* inside a partition */
        if (tensor->kind == HWNAS_TENSOR_WEIGHT) {
            handle = (char *)exec->weights + c->offset[i];
            hwnas_tensor_fill(tensor, handle);
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
        for (size_t k = 0; k < s->n_inputs; k++)
            s->inputs[k] = exec->tensors[s->input_ids[k]];
        for (size_t k = 0; k < s->n_outputs; k++)
            s->outputs[k] = exec->tensors[s->output_ids[k]];
    }
    return HWNAS_OK;
}

hwnas_status hwnas_onednn_compile(hwnas_exec **out, hwnas_device *base, const hwnas_graph *graph)
{
    hwnas_status status = HWNAS_OK;
    const size_t n = graph->n_tensors;
    onednn_exec *exec = hwnas_alloc(sizeof *exec);
    compiler c = {.exec = exec, .graph = graph};
    exec->base.ops = base->ops;
    exec->device = (onednn_device *)base;
    exec->arena = hwnas_arena_new();
    exec->n_tensors = n;
    exec->n_inputs = graph->n_inputs;
    exec->n_outputs = graph->n_outputs;
    exec->tensors = hwnas_arena_alloc(exec->arena, n * sizeof *exec->tensors);
    exec->inputs = hwnas_arena_copy(exec->arena, graph->inputs, graph->n_inputs * sizeof(int));
    exec->outputs = hwnas_arena_copy(exec->arena, graph->outputs, graph->n_outputs * sizeof(int));
    c.described = hwnas_alloc(n * sizeof *c.described);
    c.is_output = hwnas_alloc(n * sizeof *c.is_output);
    c.offset = hwnas_alloc(n * sizeof *c.offset);
    for (size_t i = 0; i < graph->n_outputs; i++)
        c.is_output[graph->outputs[i]] = true;

    hwnas_onednn_use_threads(exec->device->threads);
    TRY_OUT(cut(&c));
    TRY_OUT(compile_partitions(&c));
    TRY_OUT(bind_tensors(&c));
    *out = &exec->base;
    exec = NULL;
out:
    compiler_done(&c);
    hwnas_onednn_free_exec((hwnas_exec *)exec);
    return status;
}

hwnas_status hwnas_onednn_run(hwnas_exec *base, const float *const *inputs, float *const *outputs)
{
    onednn_exec *exec = (onednn_exec *)base;
    hwnas_onednn_use_threads(exec->device->threads);
    for (size_t i = 0; i < exec->n_inputs; i++)
        TRY_DNNL(
            "take", "input",
            dnnl_graph_tensor_set_data_handle(exec->tensors[exec->inputs[i]], (void *)inputs[i]));
    for (size_t i = 0; i < exec->n_outputs; i++)
        TRY_DNNL("take", "output",
                 dnnl_graph_tensor_set_data_handle(exec->tensors[exec->outputs[i]], outputs[i]));
    for (size_t i = 0; i < exec->n_steps; i++) {
        const step *s = &exec->steps[i];
        TRY_DNNL("run", "a partition",
                 dnnl_graph_compiled_partition_execute(s->compiled, exec->device->stream,
                                                       s->n_inputs, s->inputs, s->n_outputs,
                                                       s->outputs));
    }
    TRY_DNNL("finish", "a run", dnnl_stream_wait(exec->device->stream));
    return HWNAS_OK;
}
