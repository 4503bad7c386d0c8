/* pytorch_nodes.c: the graph's nodes beside the statements that they were made of. */
#include <string.h>

#include "graph/op.h"
#include "export/pytorch_priv.h"
#include "space/expr.h"

int64_t hwnas_shape_fact(const hwnas_shape *shape, int fact)
{
    int dimension = hwnas_tensor_dimension(fact, shape->n);
    return dimension < 0 ? -1 : shape->dims[dimension];
}

hwnas_shape hwnas_shape_of(const hwnas_tensor *tensor)
{
    hwnas_shape shape = {.n = tensor->rank - 1};
    memcpy(shape.dims, tensor->dims + 1, (size_t)shape.n * sizeof *shape.dims);
    return shape;
}

/* All nodes of a layer are called PATH or PATH.SUFFIX. */
hwnas_status hwnas_export_take(hwnas_export *export, const hwnas_node **out, hwnas_shape *shape,
                               const hwnas_stmt *stmt, const char *op)
{
    const hwnas_graph *graph = export->graph;
    const char *path =
        export->next_node < graph->n_nodes ? graph->nodes[export->next_node].name : "";
    size_t n = strcspn(path, "."), begin = n;
    while (begin && path[begin - 1] != '/')
        begin--;
    if (strncmp(path + begin, op, strlen(op)))
        return hwnas_fail(HWNAS_E_UNSUPPORTED, &stmt->place,
                          "the graph has no '%s' where the space has one", op);
    while (export->next_node < graph->n_nodes) {
        const hwnas_node *node = &graph->nodes[export->next_node];
        if (strcspn(node->name, ".") != n || memcmp(node->name, path, n))
            break;
        *out = node;
        *shape = hwnas_shape_of(hwnas_node_output(graph, node));
        export->next_node++;
    }
    return HWNAS_OK;
}

/* a + b + c are two nodes. */
hwnas_status hwnas_export_take_join(hwnas_export *export, const hwnas_node **out,
                                    hwnas_shape *shape, const hwnas_stmt *stmt)
{
    TRY(hwnas_export_take(export, out, shape, stmt, stmt->name));
    for (size_t n = (size_t)(*out)->n_data_inputs; n < stmt->n_bodies; n++)
        TRY(hwnas_export_take(export, out, shape, stmt, stmt->name));
    return HWNAS_OK;
}

const hwnas_tensor *hwnas_export_input(const hwnas_export *export, int input, int64_t index)
{
    const hwnas_space *space = export->arch->space;
    const hwnas_graph *graph = export->graph;
    const char *name = space->inputs[input].name;
    if (space->inputs[input].each)
        name = hwnas_arena_printf(export->arena, "%s_%lld", name, (long long)index);
    for (size_t i = 0; i < graph->n_inputs; i++)
        if (!strcmp(graph->tensors[graph->inputs[i]].name, name))
            return &graph->tensors[graph->inputs[i]];
    return &graph->tensors[graph->inputs[0]]; /* not in a graph that was built */
}

hwnas_change hwnas_change_between(const hwnas_shape *before, const hwnas_shape *after)
{
    const int n = before->n;
    int n_same = 0, n_last = 0;
    while (n_same < n && n_same < after->n && before->dims[n_same] == after->dims[n_same])
        n_same++;
    while (n_last < n - n_same && n_last < after->n - n_same &&
           before->dims[n - 1 - n_last] == after->dims[after->n - 1 - n_last])
        n_last++;
    if (after->n < n && n_same == after->n - 1)
        return (hwnas_change){.kind = HWNAS_CHANGE_FLATTEN, .at = n_same + 1};
    if (after->n > n && n_same + n_last >= n - 1)
        return (hwnas_change){
            .kind = HWNAS_CHANGE_UNFLATTEN, .at = n - n_last, .n = after->n - n + 1};
    return (hwnas_change){.kind = HWNAS_CHANGE_ANY};
}

bool hwnas_export_is_input(const hwnas_export *export, size_t input, int tensor)
{
    const hwnas_input *of = &export->arch->space->inputs[input];
    const char *name = export->graph->tensors[tensor].name;
    size_t n = strlen(of->name);
    if (!of->each)
        return !strcmp(name, of->name);
    return !strncmp(name, of->name, n) && name[n] == '_' &&
           name[n + 1 + strspn(name + n + 1, "0123456789")] == '\0';
}

bool hwnas_export_is_lopsided(const hwnas_node *node, bool is_window)
{
    for (int i = 0; node->op->attrs[i].name; i++) {
        const hwnas_attr *attr = &node->attrs[i];
        if (strcmp(node->op->attrs[i].name, "pad") || attr->n != 4)
            continue;
        const int64_t *pad = attr->ints;
        if (pad[0] != pad[2] || pad[1] != pad[3])
            return true;
        const int64_t *kernel = hwnas_node_attr(node, "kernel")->ints;
        return is_window && (2 * pad[0] > kernel[0] || 2 * pad[1] > kernel[1]);
    }
    return false;
}

hwnas_torch_observed *hwnas_export_seen(hwnas_export *export, const hwnas_stmt *stmt)
{
    for (size_t i = 0; i < export->n_seen; i++)
        if (export->seen[i].of == stmt)
            return &export->seen[i];
    return NULL;
}

const hwnas_sight *hwnas_export_saw(const hwnas_export *export, const void *of)
{
    static const hwnas_sight nothing;
    for (size_t i = 0; i < export->n_sights; i++)
        if (export->sights[i].of == of)
            return &export->sights[i];
    return &nothing;
}

hwnas_named *hwnas_named_find(hwnas_named *list, int slot, int64_t index)
{
    while (list && (list->slot != slot || list->index != index))
        list = list->next;
    return list;
}
