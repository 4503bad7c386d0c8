/* primitive.c: steps that are one primitive. */
#include "device/onednn/primitive.h"

#include <stdlib.h>
#include <string.h>

#include "graph/op.h"

hwnas_status hwnas_onednn_attr(dnnl_primitive_attr_t *out, const char *name)
{
    TRY_DNNL("describe", name, dnnl_primitive_attr_create(out));
    TRY_DNNL("describe", name,
             dnnl_primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user));
    return HWNAS_OK;
}

hwnas_status hwnas_onednn_describe_floats(dnnl_memory_desc_t *out, const char *name, int rank,
                                          const dnnl_dims_t dims, dnnl_format_tag_t tag)
{
    TRY_DNNL("describe", name, dnnl_memory_desc_create_with_tag(out, rank, dims, dnnl_f32, tag));
    return HWNAS_OK;
}

static hwnas_status add_memory(hwnas_onednn_primitive *p, int arg, const_dnnl_memory_desc_t desc,
                               void *values)
{
    dnnl_exec_arg_t *a = &p->args[p->n_args];
    a->arg = arg;
    TRY_DNNL("bind", p->name, dnnl_memory_create(&a->memory, desc, p->device->engine, values));
    p->n_args++;
    return HWNAS_OK;
}

hwnas_status hwnas_onednn_primitive_add(hwnas_onednn_primitive *p, int arg,
                                        const_dnnl_memory_desc_t desc)
{
    return add_memory(p, arg, desc, DNNL_MEMORY_NONE);
}

hwnas_status hwnas_onednn_primitive_add_own(hwnas_onednn_primitive *p, int arg,
                                            const_dnnl_memory_desc_t desc)
{
    const size_t size = dnnl_memory_desc_get_size(desc);
    void **buffer = &p->buffers[p->n_args];
    if (size)
        TRY(hwnas_try_alloc(buffer, size, p->name));
    p->bytes += size;
    return add_memory(p, arg, desc, size ? *buffer : DNNL_MEMORY_NONE);
}

hwnas_status hwnas_onednn_primitive_add_weights(hwnas_onednn_primitive *p, int arg,
                                                const_dnnl_memory_desc_t desc, const void *values,
                                                const_dnnl_memory_desc_t from)
{
    hwnas_status status = HWNAS_OK;
    dnnl_primitive_desc_t reorder_desc = NULL;
    dnnl_primitive_t reorder = NULL;
    dnnl_memory_t plain = NULL;
    const dnnl_engine_t engine = p->device->engine;
    TRY(hwnas_onednn_primitive_add_own(p, arg, desc));
    TRY_DNNL_OUT("reorder the weights of", p->name,
                 dnnl_reorder_primitive_desc_create(&reorder_desc, from, engine, desc, engine,
                                                    NULL));
    TRY_DNNL_OUT("reorder the weights of", p->name, dnnl_primitive_create(&reorder, reorder_desc));
    TRY_DNNL_OUT("reorder the weights of", p->name,
                 dnnl_memory_create(&plain, from, engine, (void *)values));
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, plain},
                                    {DNNL_ARG_TO, p->args[p->n_args - 1].memory}};
    TRY_DNNL_OUT("reorder the weights of", p->name,
                 dnnl_primitive_execute(reorder, p->device->stream, 2, args));
    TRY_DNNL_OUT("reorder the weights of", p->name, dnnl_stream_wait(p->device->stream));
out:
    dnnl_memory_destroy(plain);
    dnnl_primitive_destroy(reorder);
    dnnl_primitive_desc_destroy(reorder_desc);
    return status;
}

bool hwnas_onednn_is_reference(const_dnnl_primitive_desc_t desc)
{
    const char *how = "";
    dnnl_primitive_kind_t kind;
    if (dnnl_primitive_desc_query(desc, dnnl_query_primitive_kind, 0, &kind) != dnnl_success ||
        kind == dnnl_rnn ||
        dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, &how) != dnnl_success)
        return false;
    return !strncmp(how, "ref", 3) || strstr(how, "+ref");
}

hwnas_status hwnas_onednn_primitive_init(hwnas_onednn_primitive *p,
                                         const_dnnl_primitive_desc_t desc)
{
    const const_dnnl_memory_desc_t scratch =
        dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0);
    const size_t bytes = dnnl_memory_desc_get_size(scratch);
    hwnas_onednn_scratch *shared = p->device->scratch;
    TRY_DNNL("compile", p->name, dnnl_primitive_create(&p->made, desc));
    p->scratch_bytes = bytes;
    p->is_reference = hwnas_onednn_is_reference(desc);
    if (bytes > shared->bytes)
        shared->bytes = bytes;
    return hwnas_onednn_primitive_add(p, DNNL_ARG_SCRATCHPAD, scratch);
}

void hwnas_onednn_primitive_done(hwnas_onednn_primitive *p)
{
    for (int i = 0; i < HWNAS_ONEDNN_MAX_ARGS; i++) {
        dnnl_memory_destroy(p->args[i].memory);
        free(p->buffers[i]);
    }
    dnnl_primitive_destroy(p->made);
}

dnnl_status_t hwnas_onednn_primitive_run(const hwnas_onednn_primitive *p, size_t n,
                                         void *const *values)
{
    dnnl_status_t status =
        dnnl_memory_set_data_handle(p->args[0].memory, p->device->scratch->memory);
    for (size_t i = 0; i < n && status == dnnl_success; i++)
        status = dnnl_memory_set_data_handle(p->args[1 + i].memory, values[i]);
    return status != dnnl_success
               ? status
               : dnnl_primitive_execute(p->made, p->device->stream, p->n_args, p->args);
}

/* ---- Steps of a primitive that reads the node's inputs and writes its output ---- */

static void free_primitive(void *state)
{
    if (state)
        hwnas_onednn_primitive_done(state);
    free(state);
}

static dnnl_status_t run_primitive(const hwnas_onednn_step *step, const onednn_device *device)
{
    (void)device;
    void *values[HWNAS_ONEDNN_MAX_ARGS];
    size_t n = 0;
    for (; n < step->n_inputs; n++)
        values[n] = hwnas_onednn_values(step->inputs[n]);
    values[n++] = hwnas_onednn_values(step->outputs[0]);
    return hwnas_onednn_primitive_run(step->state, n, values);
}

static hwnas_onednn_primitive *new_primitive(hwnas_onednn_step *step, const onednn_device *device)
{
    hwnas_onednn_primitive *p = step->state = hwnas_alloc(sizeof *p);
    p->name = step->name;
    p->device = device;
    return p;
}

typedef struct function {
    dnnl_alg_kind_t kind;
    float alpha, beta;
} function;

/* Functions of one value that the primitives have and the graphs have not. */
static function function_of(const hwnas_graph *graph, const hwnas_node *node)
{
    function f = {dnnl_eltwise_gelu_tanh, 0, 0};
    if (node->op->id == HWNAS_OP_POW) {
        f = (function){dnnl_eltwise_pow, 1, 0};
        hwnas_tensor_fill(hwnas_node_input(graph, node, 1), &f.beta);
    } else if (node->op->id == HWNAS_OP_NEG) {
        f = (function){dnnl_eltwise_linear, -1, 0};
    } else if (node->op->id == HWNAS_OP_SQRT) {
        f = (function){dnnl_eltwise_sqrt, 0, 0};
    } else if (node->op->id == HWNAS_OP_ABS) {
        f = (function){dnnl_eltwise_abs, 0, 0};
    }
    return f;
}

static hwnas_status compile_eltwise(hwnas_onednn_step *step, const onednn_device *device,
                                 const hwnas_graph *graph, const hwnas_node *node)
{
    hwnas_status status = HWNAS_OK;
    hwnas_onednn_primitive *p = new_primitive(step, device);
    const function f = function_of(graph, node);
    const dnnl_dims_t n = {hwnas_tensor_count(hwnas_node_output(graph, node))};
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t desc = NULL;
    dnnl_memory_desc_t flat = NULL;
    TRY_OUT(hwnas_onednn_attr(&attr, p->name));
    TRY_OUT(hwnas_onednn_describe_floats(&flat, p->name, 1, n, dnnl_a));
    TRY_DNNL_OUT("describe", p->name,
                 dnnl_eltwise_forward_primitive_desc_create(&desc, device->engine,
                                                            dnnl_forward_inference, f.kind, flat,
                                                            flat, f.alpha, f.beta, attr));
    TRY_OUT(hwnas_onednn_primitive_init(p, desc));
    TRY_OUT(hwnas_onednn_primitive_add(p, DNNL_ARG_SRC, flat));
    TRY_OUT(hwnas_onednn_primitive_add(p, DNNL_ARG_DST, flat));
    step->n_inputs = 1;
    step->bytes = p->bytes;
    step->is_reference = p->is_reference;
out:
    dnnl_memory_desc_destroy(flat);
    dnnl_primitive_desc_destroy(desc);
    dnnl_primitive_attr_destroy(attr);
    return status;
}

const hwnas_onednn_kind hwnas_onednn_eltwise = {
    .name = "primitive",
    .compile = compile_eltwise,
    .run = run_primitive,
    .free = free_primitive,
    .in_place = hwnas_onednn_over_first,
};

/* The graphs' LayerNorm has both scale and shift or neither, and knows the last dimension alone. */
static hwnas_status compile_layer_norm(hwnas_onednn_step *step, const onednn_device *device,
                                       const hwnas_graph *graph, const hwnas_node *node)
{
    static const int args[] = {DNNL_ARG_SRC, DNNL_ARG_SCALE, DNNL_ARG_SHIFT};
    hwnas_status status = HWNAS_OK;
    hwnas_onednn_primitive *p = new_primitive(step, device);
    const int64_t n = hwnas_onednn_row_length(graph, node);
    const int64_t count = hwnas_tensor_count(hwnas_node_output(graph, node));
    const dnnl_dims_t per_row = {n}, dims = {count / n, n};
    const float epsilon = (float)hwnas_node_attr(node, "epsilon")->number;
    const bool has_scale = hwnas_tensor_count(hwnas_node_input(graph, node, 1)) == n;
    const unsigned flags =
        (has_scale ? dnnl_use_scale : 0u) | (step->n_inputs > 2 ? dnnl_use_shift : 0u);
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t desc = NULL;
    dnnl_memory_desc_t rows = NULL, weights = NULL;
    TRY_OUT(hwnas_onednn_attr(&attr, p->name));
    TRY_OUT(hwnas_onednn_describe_floats(&rows, p->name, 2, dims, dnnl_ab));
    TRY_OUT(hwnas_onednn_describe_floats(&weights, p->name, 1, per_row, dnnl_a));
    TRY_DNNL_OUT("describe", p->name,
                 dnnl_layer_normalization_forward_primitive_desc_create(
                     &desc, device->engine, dnnl_forward_inference, rows, rows, NULL, epsilon,
                     flags, attr));
    TRY_OUT(hwnas_onednn_primitive_init(p, desc));
    step->n_inputs = has_scale ? step->n_inputs : 1; /* the one of all ones is left out */
    for (size_t i = 0; i < step->n_inputs; i++)
        TRY_OUT(hwnas_onednn_primitive_add(p, args[i], i ? weights : rows));
    TRY_OUT(hwnas_onednn_primitive_add(p, DNNL_ARG_DST, rows));
    step->bytes = p->bytes;
    step->is_reference = p->is_reference;
out:
    dnnl_memory_desc_destroy(weights);
    dnnl_memory_desc_destroy(rows);
    dnnl_primitive_desc_destroy(desc);
    dnnl_primitive_attr_destroy(attr);
    return status;
}

const hwnas_onednn_kind hwnas_onednn_layer_norm = {
    .name = "primitive",
    .compile = compile_layer_norm,
    .run = run_primitive,
    .free = free_primitive,
};
