#include "report/graph_table.h"

#include "graph/op.h"
#include "report/grid.h"
#include "trial/metric.h"

/* 0 is no cell: most layers have neither. */
static void add_count(hwnas_grid *grid, int64_t count, int decimals, double unit)
{
    if (count)
        hwnas_grid_number(grid, decimals, (double)count / unit);
    else
        hwnas_grid_cell(grid, "%s", "");
}

static void add_layers(hwnas_str *out, const hwnas_graph *graph)
{
    hwnas_grid grid = {0};
    hwnas_grid_column(&grid, "layer", HWNAS_GRID_LEFT);
    hwnas_grid_column(&grid, "operator", HWNAS_GRID_LEFT);
    hwnas_grid_column(&grid, "output", HWNAS_GRID_LEFT);
    hwnas_grid_column(&grid, "params", HWNAS_GRID_RIGHT);
    hwnas_grid_column(&grid, "MMACs", HWNAS_GRID_RIGHT);
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const hwnas_node *node = &graph->nodes[i];
        hwnas_grid_cell(&grid, "%s", node->name);
        hwnas_grid_cell(&grid, "%s", node->op->name);
        hwnas_grid_cell(&grid, "%s", hwnas_tensor_shape(hwnas_node_output(graph, node)).s);
        add_count(&grid, hwnas_node_params(graph, node), 0, 1);
        add_count(&grid, hwnas_node_macs(graph, node), 3, 1e6);
    }
    hwnas_grid_text(out, &grid);
    hwnas_grid_done(&grid);
}

void hwnas_graph_text(hwnas_str *out, const hwnas_graph *graph)
{
    add_layers(out, graph);
    hwnas_costs costs;
    hwnas_graph_costs(&costs, graph);
    const hwnas_metric memory =
        hwnas_metric_shown(hwnas_metric_of(HWNAS_PEAK_BYTES), (double)costs.peak_bytes);
    hwnas_str_addf(out,
                   "\nparams       %lld (%.3f M)\nMACs         %lld (%.3f M)\n"
                   "peak memory  %.1f %s: weights %.1f, activations %.1f (fp32)\ndigest       %s\n",
                   (long long)costs.params, (double)costs.params / 1e6, (long long)costs.macs,
                   (double)costs.macs / 1e6, (double)costs.peak_bytes / memory.scale, memory.unit,
                   (double)costs.weight_bytes / memory.scale,
                   (double)costs.activation_bytes / memory.scale, hwnas_graph_digest(graph).hex);
}

static json_t *shape_json(const hwnas_tensor *tensor)
{
    json_t *shape = json_array();
    for (int i = 0; i < tensor->rank; i++)
        json_array_append_new(shape, json_integer(tensor->dims[i]));
    return shape;
}

/* Name, type and shape of each; for whole numbers also below what they must be. */
static json_t *tensors_json(const hwnas_graph *graph, size_t n, const int *tensors)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        const hwnas_tensor *tensor = &graph->tensors[tensors[i]];
        json_t *row = json_pack("{s:s, s:s, s:o}", "name", tensor->name, "type",
                                hwnas_dtype_name(tensor->dtype), "shape", shape_json(tensor));
        if (tensor->kind == HWNAS_TENSOR_INPUT && hwnas_dtype_is_whole(tensor->dtype))
            json_object_set_new(row, "below",
                                json_integer(hwnas_graph_input_below(graph, tensors[i])));
        json_array_append_new(list, row);
    }
    return list;
}

json_t *hwnas_graph_json(const hwnas_graph *graph)
{
    json_t *layers = json_array();
    json_t *input = graph->n_inputs ? shape_json(&graph->tensors[graph->inputs[0]]) : json_null();
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const hwnas_node *node = &graph->nodes[i];
        json_array_append_new(
            layers, json_pack("{s:s, s:s, s:o, s:I, s:I}", "name", node->name, "operator",
                              node->op->name, "output", shape_json(hwnas_node_output(graph, node)),
                              "params", (json_int_t)hwnas_node_params(graph, node), "macs",
                              (json_int_t)hwnas_node_macs(graph, node)));
    }
    hwnas_costs costs;
    hwnas_graph_costs(&costs, graph);
    return json_pack("{s:s, s:i, s:s, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:s, s:o}", "format",
                     "hwnas.network", "version", 1, "space", graph->name, "input", input, "inputs",
                     tensors_json(graph, graph->n_inputs, graph->inputs), "outputs",
                     tensors_json(graph, graph->n_outputs, graph->outputs), "params",
                     (json_int_t)costs.params, "macs", (json_int_t)costs.macs, "weight_bytes",
                     (json_int_t)costs.weight_bytes, "activation_bytes",
                     (json_int_t)costs.activation_bytes, "peak_bytes", (json_int_t)costs.peak_bytes,
                     "digest", hwnas_graph_digest(graph).hex, "layers", layers);
}
