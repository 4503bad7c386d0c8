/* partition.c: partitions. */
#include "device/onednn/partition.h"

#include <stdlib.h>

#include "device/onednn/constants.h"
#include "device/onednn/logical.h"
#include "device/onednn/onednn_lower.h"
#include "graph/op.h"

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

/* The strides of dimensions of 1, which oneDNN leaves as they were before a transpose, as plain ones:
 * oneDNN 3.7 takes such a tensor for one in another layout, and leaves out what makes of it a plain
 * result. */
static void settle_strides(dnnl_graph_logical_tensor_t *t)
{
    int64_t stride = 1;
    if (t->layout_type != dnnl_graph_layout_type_strided)
        return;
    for (int i = t->ndims - 1; i >= 0; stride *= t->dims[i--])
        if (t->dims[i] != 1 && t->layout.strides[i] != stride)
            return;
    stride = 1;
    for (int i = t->ndims - 1; i >= 0; stride *= t->dims[i--])
        t->layout.strides[i] = stride;
}

/* Scales that are attributes, and no weight whose address tells the partition from others. oneDNN 3.7
 * keeps them under a hash of the partition's number and of their shape, and that is the same for one
 * in some thousand pairs of neighbours: then the second one takes the scales of the first. */
static bool has_scales_alone(const hwnas_onednn_step *step, const hwnas_onednn_source *source,
                             const ports *in)
{
    for (size_t i = 0; i < in->n; i++)
        if (source->graph->tensors[in->tensors[i].id].kind == HWNAS_TENSOR_WEIGHT)
            return false;
    for (size_t i = 0; i < step->about.n_nodes; i++)
        if (source->graph->nodes[step->about.nodes[i]].op->class == HWNAS_CLASS_QUANTIZATION)
            return true;
    return false;
}

static dnnl_status_t compile(dnnl_graph_compiled_partition_t out, dnnl_graph_partition_t partition,
                             const ports *in, const ports *outputs, const onednn_device *device,
                             bool is_without_constants)
{
    if (is_without_constants)
        hwnas_onednn_begin_without_constants();
    else
        hwnas_onednn_hold_constants();
    const dnnl_status_t status = dnnl_graph_partition_compile(
        partition, out, in->n, in->pointers, outputs->n, outputs->pointers, device->engine);
    if (is_without_constants)
        hwnas_onednn_end_without_constants();
    else
        hwnas_onednn_release_constants();
    return status;
}

hwnas_status hwnas_onednn_partition_compile(hwnas_onednn_step *step, const onednn_device *device,
                                            dnnl_graph_partition_t partition,
                                            dnnl_graph_logical_tensor_t *described,
                                            const hwnas_onednn_layout *layouts,
                                            const hwnas_onednn_source *source, hwnas_arena *arena)
{
    hwnas_status status = HWNAS_OK;
    dnnl_graph_compiled_partition_t compiled = NULL;
    ports in = {0}, out = {0};
    TRY_DNNL_OUT("read the inputs of", step->name,
                 read_ports(&in, partition, dnnl_graph_partition_get_input_ports_num,
                            dnnl_graph_partition_get_input_ports));
    TRY_DNNL_OUT("read the outputs of", step->name,
                 read_ports(&out, partition, dnnl_graph_partition_get_output_ports_num,
                            dnnl_graph_partition_get_output_ports));
    for (size_t i = 0; i < in.n; i++)
        in.tensors[i] = described[in.tensors[i].id];
    for (size_t i = 0; i < out.n; i++) {
        const int id = (int)out.tensors[i].id;
        if (layouts[id] == HWNAS_ONEDNN_FREE)
            out.tensors[i].layout_type = dnnl_graph_layout_type_any;
        else if (layouts[id] == HWNAS_ONEDNN_IMAGE)
            TRY_OUT(hwnas_onednn_image(&out.tensors[i], source, id));
    }

    TRY_DNNL_OUT("begin", step->name, dnnl_graph_compiled_partition_create(&compiled, partition));
    step->state = compiled;
    TRY_DNNL_OUT("compile", step->name,
                 compile(compiled, partition, &in, &out, device,
                         has_scales_alone(step, source, &in)));
    for (size_t i = 0; i < out.n; i++) {
        const size_t id = out.tensors[i].id;
        TRY_DNNL_OUT(
            "describe the output of", step->name,
            dnnl_graph_compiled_partition_query_logical_tensor(compiled, id, &described[id]));
        settle_strides(&described[id]);
    }
    step->n_inputs = in.n;
    step->n_outputs = out.n;
    step->input_ids = ids_of(arena, &in);
    step->output_ids = ids_of(arena, &out);
out:
    ports_done(&in);
    ports_done(&out);
    return status;
}

static dnnl_status_t run(const hwnas_onednn_step *step, const onednn_device *device)
{
    return dnnl_graph_compiled_partition_execute(step->state, device->stream, step->n_inputs,
                                                 step->inputs, step->n_outputs, step->outputs);
}

static void free_partition(void *state)
{
    if (state)
        dnnl_graph_compiled_partition_destroy(state);
}

/* The sum at the end of a residual block is computed in place; elsewhere oneDNN first copies. */
static int in_place(const hwnas_onednn_step *step, int output, size_t k)
{
    size_t n = 0;
    const dnnl_graph_inplace_pair_t *pairs = NULL;
    if (dnnl_graph_compiled_partition_get_inplace_ports(step->state, &n, &pairs) != dnnl_success)
        return -1;
    for (size_t i = 0; i < n; i++)
        if ((int)pairs[i].output_id == output && k-- == 0)
            return (int)pairs[i].input_id;
    return -1;
}

const hwnas_onednn_kind hwnas_onednn_partition = {
    .name = "partition",
    .run = run,
    .free = free_partition,
    .in_place = in_place,
};
