#include "byte_graphs.h"

#include "graph/op.h"

const byte_form byte_forms[N_BYTE_FORMS] = {{HWNAS_INT8, 0.05137F, 0},
                                            {HWNAS_UINT8, 0.04173F, 100},
                                            {HWNAS_UINT8, 0.03119F, 0},
                                            {HWNAS_INT8, 0.02031F, -30}};

hwnas_device *cpu[2], *ref;

int open_devices(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        cpu[i] = open_device("cpu", i + 1);
    ref = open_device("ref", 1);
    return 0;
}

int close_devices(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        hwnas_device_close(cpu[i]);
    hwnas_device_close(ref);
    return 0;
}

int named_node(hwnas_graph *graph, const char *op, int n, const int *inputs)
{
    int out;
    hwnas_attr attrs[8] = {0};
    const char *name = hwnas_arena_printf(graph->arena, "%s_%zu", op, graph->n_nodes);
    ok(hwnas_graph_add_node(&out, graph, hwnas_op_by_name(op), name, attrs, n, inputs, false));
    return out;
}

int pair(hwnas_graph *graph, const char *op, int a, int b)
{
    const int inputs[] = {a, b};
    return named_node(graph, op, b < 0 ? 1 : 2, inputs);
}

int number(hwnas_graph *graph, float value, hwnas_dtype dtype)
{
    int out;
    const char *name = hwnas_arena_printf(graph->arena, "number_%zu", graph->n_tensors);
    ok(hwnas_graph_add_constant(&out, graph, name, 0, NULL, &value));
    graph->tensors[out].dtype = dtype;
    return out;
}

int to_bytes(hwnas_graph *graph, int x, const byte_form *as)
{
    const int inputs[] = {x, number(graph, as->scale, HWNAS_FLOAT32),
                          number(graph, as->zero, as->dtype)};
    return named_node(graph, "quantize_linear", 3, inputs);
}

int to_floats(hwnas_graph *graph, int x, const byte_form *as)
{
    const int inputs[] = {x, number(graph, as->scale, HWNAS_FLOAT32),
                          number(graph, as->zero, as->dtype)};
    return named_node(graph, "dequantize_linear", 3, inputs);
}

int in_bytes(hwnas_graph *graph, int x, const byte_form *as)
{
    return to_floats(graph, to_bytes(graph, x, as), as);
}
