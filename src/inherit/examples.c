#include "inherit/examples.h"

#include <string.h>

#include "base/mem.h"
#include "graph/op.h"

hwnas_row_list hwnas_rows_of(const hwnas_layer_layout *l, const hwnas_row_plan *p)
{
    hwnas_row_list rows = {p->n, hwnas_alloc((size_t)(p->n + 1) * sizeof *rows.at)};
    for (int64_t r = 0; r < p->n; r++) {
        rows.at[r].target = r;
        hwnas_layer_row(&rows.at[r].sample, &rows.at[r].position, r, l, p);
    }
    return rows;
}

hwnas_status hwnas_examples_windows(hwnas_matrix *out, const hwnas_graph *graph,
                                    const hwnas_node *node, const float *values,
                                    const hwnas_row_list *rows, int64_t begin, int64_t end)
{
    const hwnas_tensor *x = hwnas_node_input(graph, node, 0);
    const hwnas_tensor *y = hwnas_node_output(graph, node);
    const int64_t *window = hwnas_node_attr(node, "kernel")->ints;
    const int64_t *stride = hwnas_node_attr(node, "stride")->ints;
    const int64_t *pad = hwnas_node_attr(node, "pad")->ints;
    const int64_t *dilation = hwnas_node_attr(node, "dilation")->ints;
    out->n_rows = rows->n;
    out->n_columns = (end - begin) * window[0] * window[1];
    TRY(hwnas_try_alloc((void **)&out->at, (size_t)(out->n_rows * out->n_columns) * sizeof *out->at,
                        "windows"));
    float *to = out->at;
    for (int64_t r = 0; r < rows->n; r++) {
        const int64_t sample = rows->at[r].sample, position = rows->at[r].position;
        const int64_t top = position / y->dims[3] * stride[0] - pad[0];
        const int64_t left = position % y->dims[3] * stride[1] - pad[1];
        for (int64_t c = begin; c < end; c++) {
            const float *plane = values + (sample * x->dims[1] + c) * x->dims[2] * x->dims[3];
            for (int64_t i = 0; i < window[0]; i++)
                for (int64_t k = 0; k < window[1]; k++) {
                    const int64_t yy = top + i * dilation[0], xx = left + k * dilation[1];
                    const bool is_inside = yy >= 0 && yy < x->dims[2] && xx >= 0 && xx < x->dims[3];
                    *to++ = is_inside ? plane[yy * x->dims[3] + xx] : 0;
                }
        }
    }
    return HWNAS_OK;
}

hwnas_status hwnas_examples_features(hwnas_matrix *out, const hwnas_row_list *rows,
                                     const float *values, const hwnas_layer_layout *l,
                                     int64_t n_features)
{
    out->n_rows = rows->n;
    out->n_columns = n_features;
    TRY(hwnas_try_alloc((void **)&out->at, (size_t)(rows->n * n_features) * sizeof *out->at,
                        "features"));
    for (int64_t r = 0; r < rows->n; r++)
        memcpy(out->at + r * n_features,
               values + (rows->at[r].sample * l->n_positions + rows->at[r].position) * n_features,
               (size_t)n_features * sizeof *values);
    return HWNAS_OK;
}
