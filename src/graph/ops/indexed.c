/* indexed.c: values that are read from, or written to, places that another tensor names.
 *
 * With `elements` indices are along one axis and have the data's rank; with `nd` the last dimension
 * of the indices is a place in the first dimensions of the data. */
#include <string.h>

#include "graph/ops/elementwise.h"

enum { DATA, INDICES, UPDATES };

static const hwnas_attr_row axis_attrs[] = {
    {.name = "axis", .kind = HWNAS_ATTR_INT, .fallback = 0, .low = -HWNAS_MAX_RANK,
     .high = HWNAS_MAX_RANK - 1, .onnx = "axis", .help = "dimension that is numbered"},
    {0},
};

enum { SCATTER_AXIS, REDUCTION };
enum { REPLACE, ADD, MULTIPLY, GREATEST, LEAST };
static const char *const reductions[] = {"none", "add", "mul", "max", "min", NULL};

#define REDUCTION_ROW                                                                              \
    {.name = "reduction", .kind = HWNAS_ATTR_INT, .high = LEAST, .onnx = "reduction",              \
     .onnx_words = reductions, .help = "what becomes of the value that is there"}

static const hwnas_attr_row scatter_attrs[] = {
    [SCATTER_AXIS] = {.name = "axis", .kind = HWNAS_ATTR_INT, .fallback = 0, .low = -HWNAS_MAX_RANK,
                      .high = HWNAS_MAX_RANK - 1, .onnx = "axis",
                      .help = "dimension that is numbered"},
    [REDUCTION] = REDUCTION_ROW,
    {0},
};

static const hwnas_attr_row batch_attrs[] = {
    {.name = "batch_dims", .kind = HWNAS_ATTR_INT, .high = HWNAS_MAX_RANK - 1, .onnx = "batch_dims",
     .help = "how many dimensions both have"},
    {0},
};

static const hwnas_attr_row scatter_nd_attrs[] = {REDUCTION_ROW, {0}};

static void settle(const hwnas_graph *graph, hwnas_node *node)
{
    hwnas_settle_axis(node->attrs->ints, hwnas_node_input(graph, node, DATA)->rank);
}

static float reduced(int64_t reduction, float old, float update)
{
    switch (reduction) {
    case ADD:
        return old + update;
    case MULTIPLY:
        return old * update;
    case GREATEST:
        return old > update ? old : update;
    case LEAST:
        return old < update ? old : update;
    }
    return update;
}

static hwnas_status misfit(const hwnas_graph *graph, const hwnas_node *node)
{
    return hwnas_fail(HWNAS_E_INPUT, NULL, "'%s': indices of shape %s do not fit %s",
                      node->op->name, hwnas_tensor_shape(hwnas_node_input(graph, node, INDICES)).s,
                      hwnas_tensor_shape(hwnas_node_input(graph, node, DATA)).s);
}

/* ---- elements ---- */

/* Beside the axis, indices may have less than the data. */
static bool elements_fit(const hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor *data = hwnas_node_input(graph, node, DATA);
    const hwnas_tensor *indices = hwnas_node_input(graph, node, INDICES);
    bool fits = data->rank == indices->rank && hwnas_dtype_is_whole(indices->dtype);
    for (int i = 0; fits && i < data->rank; i++)
        fits = i == node->attrs->ints[0] || indices->dims[i] <= data->dims[i];
    return fits;
}

/* Where in the data the index at the walk's place points. */
static int64_t element_at(const hwnas_tensor *data, const hwnas_walk *walk, int64_t axis,
                          float index)
{
    int64_t at = 0;
    for (int i = 0; i < data->rank; i++)
        at = at * data->dims[i] +
             (i == axis ? hwnas_place_of(index, data->dims[i]) : walk->index[i]);
    return at;
}

static hwnas_status infer_gather_elements(const hwnas_graph *graph, const hwnas_node *node,
                                          hwnas_tensor *out)
{
    const hwnas_tensor *indices = hwnas_node_input(graph, node, INDICES);
    int axis;
    TRY(hwnas_find_axis(&axis, node, hwnas_node_input(graph, node, DATA)->rank));
    if (!elements_fit(graph, node))
        return misfit(graph, node);
    out->rank = indices->rank;
    memcpy(out->dims, indices->dims, sizeof out->dims);
    return HWNAS_OK;
}

static void compute_gather_elements(const hwnas_graph *graph, const hwnas_node *node,
                                    const float *const *inputs, float *output)
{
    const hwnas_tensor *data = hwnas_node_input(graph, node, DATA);
    const hwnas_tensor *indices = hwnas_node_input(graph, node, INDICES);
    hwnas_walk walk = hwnas_walk_new(indices, indices);
    for (int64_t i = 0, n = hwnas_tensor_count(indices); i < n; i++, hwnas_walk_next(&walk))
        output[i] =
            inputs[DATA][element_at(data, &walk, node->attrs->ints[0], inputs[INDICES][i])];
}

static hwnas_status infer_scatter_elements(const hwnas_graph *graph, const hwnas_node *node,
                                           hwnas_tensor *out)
{
    const hwnas_tensor *indices = hwnas_node_input(graph, node, INDICES);
    const hwnas_tensor *updates = hwnas_node_input(graph, node, UPDATES);
    int axis;
    TRY(hwnas_find_axis(&axis, node, hwnas_node_input(graph, node, DATA)->rank));
    if (!elements_fit(graph, node) || updates->rank != indices->rank ||
        memcmp(updates->dims, indices->dims, (size_t)indices->rank * sizeof *indices->dims))
        return misfit(graph, node);
    return hwnas_infer_same(graph, node, out);
}

static void compute_scatter_elements(const hwnas_graph *graph, const hwnas_node *node,
                                     const float *const *inputs, float *output)
{
    const hwnas_tensor *data = hwnas_node_input(graph, node, DATA);
    const hwnas_tensor *indices = hwnas_node_input(graph, node, INDICES);
    hwnas_walk walk = hwnas_walk_new(indices, indices);
    memcpy(output, inputs[DATA], (size_t)hwnas_tensor_bytes(data));
    for (int64_t i = 0, n = hwnas_tensor_count(indices); i < n; i++, hwnas_walk_next(&walk)) {
        float *to = output + element_at(data, &walk, node->attrs[SCATTER_AXIS].ints[0],
                                        inputs[INDICES][i]);
        *to = reduced(node->attrs[REDUCTION].ints[0], *to, inputs[UPDATES][i]);
    }
}

/* ---- nd ---- */

/* Behind `n_common` dimensions that both have, how many the indices name; 0: they do not fit. */
static int64_t n_named(const hwnas_tensor *data, const hwnas_tensor *indices, int64_t n_common)
{
    const int64_t n = indices->rank ? indices->dims[indices->rank - 1] : 0;
    if (indices->rank <= n_common || n < 1 || n + n_common > data->rank ||
        !hwnas_dtype_is_whole(indices->dtype) ||
        memcmp(data->dims, indices->dims, (size_t)n_common * sizeof *data->dims))
        return 0;
    return n;
}

/* Values that one index names. */
static int64_t width_of(const hwnas_tensor *data, int64_t from)
{
    int64_t width = 1;
    for (int64_t i = from; i < data->rank; i++)
        width *= data->dims[i];
    return width;
}

static int64_t place_nd(const hwnas_tensor *data, int64_t from, int64_t n, const float *index)
{
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++)
        at = at * data->dims[from + i] + hwnas_place_of(index[i], data->dims[from + i]);
    return at;
}

static hwnas_status infer_gather_nd(const hwnas_graph *graph, const hwnas_node *node,
                                    hwnas_tensor *out)
{
    const hwnas_tensor *data = hwnas_node_input(graph, node, DATA);
    const hwnas_tensor *indices = hwnas_node_input(graph, node, INDICES);
    const int64_t n = n_named(data, indices, node->attrs->ints[0]);
    const int64_t from = node->attrs->ints[0] + n;
    if (!n || indices->rank - 1 + data->rank - from > HWNAS_MAX_RANK)
        return misfit(graph, node);
    for (int i = 0; i + 1 < indices->rank; i++)
        out->dims[out->rank++] = indices->dims[i];
    for (int64_t i = from; i < data->rank; i++)
        out->dims[out->rank++] = data->dims[i];
    return HWNAS_OK;
}

static void compute_gather_nd(const hwnas_graph *graph, const hwnas_node *node,
                              const float *const *inputs, float *output)
{
    const hwnas_tensor *data = hwnas_node_input(graph, node, DATA);
    const hwnas_tensor *indices = hwnas_node_input(graph, node, INDICES);
    const int64_t common = node->attrs->ints[0], n = n_named(data, indices, common);
    const int64_t width = width_of(data, common + n), block = width_of(data, common);
    const int64_t n_indices = hwnas_tensor_count(indices) / n;
    const int64_t per_block = n_indices / (hwnas_tensor_count(data) / block);
    for (int64_t i = 0; i < n_indices; i++)
        memcpy(output + i * width,
               inputs[DATA] + i / per_block * block +
                   place_nd(data, common, n, inputs[INDICES] + i * n) * width,
               (size_t)width * sizeof *output);
}

static hwnas_status infer_scatter_nd(const hwnas_graph *graph, const hwnas_node *node,
                                     hwnas_tensor *out)
{
    const hwnas_tensor *data = hwnas_node_input(graph, node, DATA);
    const hwnas_tensor *indices = hwnas_node_input(graph, node, INDICES);
    const int64_t n = n_named(data, indices, 0);
    if (!n || hwnas_tensor_count(hwnas_node_input(graph, node, UPDATES)) !=
                  hwnas_tensor_count(indices) / n * width_of(data, n))
        return misfit(graph, node);
    return hwnas_infer_same(graph, node, out);
}

static void compute_scatter_nd(const hwnas_graph *graph, const hwnas_node *node,
                               const float *const *inputs, float *output)
{
    const hwnas_tensor *data = hwnas_node_input(graph, node, DATA);
    const hwnas_tensor *indices = hwnas_node_input(graph, node, INDICES);
    const int64_t n = n_named(data, indices, 0), width = width_of(data, n);
    memcpy(output, inputs[DATA], (size_t)hwnas_tensor_bytes(data));
    for (int64_t i = 0; i < hwnas_tensor_count(indices) / n; i++) {
        float *to = output + place_nd(data, 0, n, inputs[INDICES] + i * n) * width;
        for (int64_t k = 0; k < width; k++)
            to[k] = reduced(node->attrs->ints[0], to[k], inputs[UPDATES][i * width + k]);
    }
}

#define INDEXED(NAME, ID, ONNX, N_INPUTS, ATTRS, SETTLE, HELP)                                     \
    const hwnas_op hwnas_op_##NAME = {                                                             \
        .id = HWNAS_OP_##ID,                                                                       \
        .name = #NAME,                                                                             \
        .onnx = ONNX,                                                                              \
        .help = HELP,                                                                              \
        .attrs = ATTRS,                                                                            \
        .is_internal = true,                                                                       \
        .takes_integers = true,                                                                    \
        .min_inputs = N_INPUTS,                                                                    \
        .max_inputs = N_INPUTS,                                                                    \
        .settle = SETTLE,                                                                          \
        .infer = infer_##NAME,                                                                     \
        .compute = compute_##NAME,                                                                 \
    };

INDEXED(gather_elements, GATHER_ELEMENTS, "GatherElements", 2, axis_attrs, settle,
        "values by places along an axis")
INDEXED(gather_nd, GATHER_ND, "GatherND", 2, batch_attrs, NULL,
        "parts by places in the first dimensions")
INDEXED(scatter_elements, SCATTER_ELEMENTS, "ScatterElements", 3, scatter_attrs, settle,
        "values put at places along an axis")
INDEXED(scatter_nd, SCATTER_ND, "ScatterND", 3, scatter_nd_attrs, NULL,
        "parts put at places in the first dimensions")
