/* gather: rows of a table by their numbers. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "graph/ops/elementwise.h"

enum { TABLE, INDICES };

static const hwnas_attr_row attrs[] = {
    {.name = "axis", .kind = HWNAS_ATTR_INT, .fallback = 0, .low = -HWNAS_MAX_RANK,
     .high = HWNAS_MAX_RANK - 1, .onnx = "axis", .help = "dimension of the table that is numbered"},
    {0},
};

static hwnas_status infer(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out)
{
    const hwnas_tensor *table = hwnas_node_input(graph, node, TABLE);
    const hwnas_tensor *indices = hwnas_node_input(graph, node, INDICES);
    int axis;
    TRY(hwnas_find_axis(&axis, node, table->rank));
    if (!hwnas_dtype_is_whole(indices->dtype))
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL, "'%s' holds no whole numbers to look up",
                                     indices->name),
                          "write input: {%s: {shape: [...], type: int64}}",
                          indices->kind == HWNAS_TENSOR_INPUT ? indices->name : "tokens");
    out->rank = table->rank - 1 + indices->rank;
    if (out->rank > HWNAS_MAX_RANK)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "'gather' would give more than %d dimensions",
                          HWNAS_MAX_RANK);
    memcpy(out->dims, table->dims, (size_t)axis * sizeof *out->dims);
    memcpy(out->dims + axis, indices->dims, (size_t)indices->rank * sizeof *out->dims);
    memcpy(out->dims + axis + indices->rank, table->dims + axis + 1,
           (size_t)(table->rank - axis - 1) * sizeof *out->dims);
    return HWNAS_OK;
}

/* Single values: of each block the same places, which are found once. */
static void pick_values(float *output, const float *table, int64_t n_before, int64_t n_rows,
                        const float *indices, int64_t n_indices)
{
    int64_t *places = hwnas_alloc((size_t)(n_indices + 1) * sizeof *places);
    for (int64_t i = 0; i < n_indices; i++)
        places[i] = hwnas_place_of(indices[i], n_rows);
    for (int64_t b = 0; b < n_before; b++, table += n_rows, output += n_indices)
        for (int64_t i = 0; i < n_indices; i++)
            output[i] = table[places[i]];
    free(places);
}

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    const hwnas_tensor *table = hwnas_node_input(graph, node, TABLE);
    const int64_t n_indices = hwnas_tensor_count(hwnas_node_input(graph, node, INDICES));
    const int64_t axis = node->attrs->ints[0] + (node->attrs->ints[0] < 0 ? table->rank : 0);
    const int64_t n_rows = table->dims[axis];
    int64_t n_before = 1, width = 1;
    for (int i = 0; i < table->rank; i++)
        *(i < axis ? &n_before : i > axis ? &width : &(int64_t){0}) *= table->dims[i];
    if (width == 1) {
        pick_values(output, inputs[TABLE], n_before, n_rows, inputs[INDICES], n_indices);
        return;
    }
    for (int64_t b = 0; b < n_before; b++)
        for (int64_t i = 0; i < n_indices; i++, output += width)
            memcpy(output,
                   inputs[TABLE] + (b * n_rows + hwnas_place_of(inputs[INDICES][i], n_rows)) * width,
                   (size_t)width * sizeof *output);
}

const hwnas_op hwnas_op_gather = {
    .id = HWNAS_OP_GATHER,
    .name = "gather",
    .onnx = "Gather",
    .help = "rows of one tensor by the numbers in another",
    .attrs = attrs,
    .min_inputs = 2,
    .max_inputs = 2,
    .joins = true,
    .takes_integers = true,
    .infer = infer,
    .compute = compute,
};
