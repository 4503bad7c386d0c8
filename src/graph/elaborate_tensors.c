/* elaborate_tensors.c: tensors that have names: the network's inputs and outputs, and what `as`
 * names for `from`. */
#include <string.h>

#include "graph/elaborate_priv.h"

enum { MAX_INDEX = 4095 };

typedef hwnas_elaboration builder;
typedef hwnas_call call;
typedef hwnas_tensor_list tensor_list;

static hwnas_status tensor_index(int *out, builder *b, call *c, const hwnas_stmt *stmt, int tensor)
{
    int64_t index = 0;
    if (stmt->expr)
        TRY(hwnas_elaborate_int(b, c, tensor, stmt->expr, &index));
    if (index < 0 || index > MAX_INDEX)
        return hwnas_fail(HWNAS_E_INPUT, &stmt->expr->place, "'%s[%lld]': an index is 0 to %d",
                          stmt->name, (long long)index, MAX_INDEX);
    *out = (int)index;
    return HWNAS_OK;
}

hwnas_status hwnas_elaborate_as(builder *b, call *c, const hwnas_stmt *stmt, int *tensor)
{
    tensor_list *list = &c->tensors[stmt->slot];
    int index = 0;
    TRY(tensor_index(&index, b, c, stmt, *tensor));
    if (index >= list->n) {
        int n = 2 * index + 1;
        TRY(hwnas_elaborate_steps(b, n, &stmt->place));
        int *grown = hwnas_arena_alloc(b->scratch, (size_t)n * sizeof *grown);
        for (int i = 0; i < n; i++)
            grown[i] = i < list->n ? list->tensors[i] : -1;
        *list = (tensor_list){n, grown};
    }
    list->tensors[index] = *tensor;
    return HWNAS_OK;
}

hwnas_status hwnas_elaborate_from(builder *b, call *c, const hwnas_stmt *stmt, int *tensor)
{
    const tensor_list *list = stmt->is_input ? &b->inputs[stmt->slot] : &c->tensors[stmt->slot];
    int index = 0;
    TRY(tensor_index(&index, b, c, stmt, *tensor));
    if (stmt->is_input && index >= list->n)
        return hwnas_fail(HWNAS_E_INPUT, &stmt->place,
                          "there is no '%s[%d]': this network has %d of this input", stmt->name,
                          index, list->n);
    if (index >= list->n || list->tensors[index] < 0)
        return hwnas_hint(
            stmt->expr
                ? hwnas_fail(HWNAS_E_INPUT, &stmt->place, "'%s[%d]' names no tensor yet",
                             stmt->name, index)
                : hwnas_fail(HWNAS_E_INPUT, &stmt->place, "'%s' names no tensor yet", stmt->name),
            "a name is given by - as: %s before it is used; nothing is made of itself", stmt->name);
    *tensor = list->tensors[index];
    return HWNAS_OK;
}

/* The tensor gets the output's name, by which a file's user knows it. */
hwnas_status hwnas_elaborate_output(builder *b, call *c, const hwnas_stmt *stmt, int *tensor)
{
    hwnas_tensor *output = &b->graph->tensors[*tensor];
    int index = 0;
    TRY(tensor_index(&index, b, c, stmt, *tensor));
    if (output->producer < 0)
        return hwnas_fail(HWNAS_E_INPUT, &stmt->place,
                          "the output '%s' is not computed: it is '%s'", stmt->name, output->name);
    for (size_t i = 0; i < b->graph->n_outputs; i++)
        if (b->graph->outputs[i] == *tensor)
            return hwnas_fail(HWNAS_E_INPUT, &stmt->place,
                              "the output '%s' is the output '%s' already", stmt->name,
                              output->name);
    const char *name = stmt->expr ? hwnas_arena_printf(b->graph->arena, "%s_%d", stmt->name, index)
                                  : hwnas_arena_printf(b->graph->arena, "%s", stmt->name);
    for (size_t i = 0; i < b->graph->n_tensors; i++)
        if (!strcmp(b->graph->tensors[i].name, name))
            return hwnas_hint(
                hwnas_fail(HWNAS_E_INPUT, &stmt->place, "there is a tensor '%s' already", name),
                "give the output another name, or an index of its own: %s[i]", stmt->name);
    output->name = name;
    hwnas_graph_add_output(b->graph, *tensor);
    return HWNAS_OK;
}

/* How many of an input there are. */
static hwnas_status count_input(int *out, builder *b, const hwnas_input *input)
{
    const hwnas_scope_frame frame = {.scope = b->arch->space->network, .choices = b->choices};
    int64_t n = 1;
    if (input->each)
        TRY(hwnas_expr_eval_int(&n, input->each, &frame, b->scratch));
    if (n < 0 || n > MAX_INDEX)
        return hwnas_fail(HWNAS_E_INPUT, &input->each->place,
                          "an input comes 0 to %d times, not %lld", MAX_INDEX, (long long)n);
    *out = (int)n;
    return HWNAS_OK;
}

/* One input, number `i` of those of its name; its shape may depend on choices. */
static hwnas_status add_input(int *out, builder *b, const hwnas_input *input, int i, int batch)
{
    hwnas_value index = {.kind = HWNAS_VALUE_INT, .i = i};
    const hwnas_scope_frame frame = {
        .scope = b->arch->space->network, .slots = &index, .choices = b->choices};
    int64_t dims[HWNAS_MAX_RANK] = {batch};
    for (int d = 0; d < input->n_dims; d++) {
        TRY(hwnas_expr_eval_int(&dims[d + 1], input->dims[d], &frame, b->scratch));
        if (dims[d + 1] < 1 || dims[d + 1] > 1 << 30)
            return hwnas_fail(HWNAS_E_INPUT, &input->dims[d]->place,
                              "a dimension of the input must be between 1 and %d, not %lld",
                              1 << 30, (long long)dims[d + 1]);
    }
    const char *name =
        input->each ? hwnas_arena_printf(b->scratch, "%s_%d", input->name, i) : input->name;
    hwnas_status status =
        hwnas_graph_add_input(out, b->graph, name, input->is_integer ? HWNAS_INT64 : HWNAS_FLOAT32,
                              input->n_dims + 1, dims);
    return status == HWNAS_OK ? status : hwnas_fail_at(status, &input->place);
}

hwnas_status hwnas_elaborate_inputs(int *first, builder *b, const hwnas_space *space, int batch)
{
    b->inputs = hwnas_arena_alloc(b->scratch, space->n_inputs * sizeof *b->inputs);
    for (size_t n = 0; n < space->n_inputs; n++) {
        tensor_list *list = &b->inputs[n];
        TRY(count_input(&list->n, b, &space->inputs[n]));
        list->tensors = hwnas_arena_alloc(b->scratch, (size_t)list->n * sizeof *list->tensors);
        for (int i = 0; i < list->n; i++)
            TRY(add_input(&list->tensors[i], b, &space->inputs[n], i, batch));
    }
    if (b->inputs[0].n == 0)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &space->inputs[0].place,
                                     "the network has none of its first input"),
                          "put an input first that is always there");
    *first = b->inputs[0].tensors[0];
    return HWNAS_OK;
}

hwnas_status hwnas_elaborate_finish(builder *b, const hwnas_space *space, int last)
{
    hwnas_graph *graph = b->graph;
    if (graph->n_nodes == 0)
        return hwnas_fail(HWNAS_E_INPUT, &space->network->place, "the network has no layer");
    if (graph->n_outputs == 0 && graph->tensors[last].producer < 0)
        return hwnas_fail(HWNAS_E_INPUT, &space->network->place,
                          "the network ends with '%s', which is not computed",
                          graph->tensors[last].name);
    if (graph->n_outputs == 0)
        hwnas_graph_add_output(graph, last);
    bool *is_read = hwnas_arena_alloc(b->scratch, graph->n_tensors * sizeof *is_read);
    for (size_t n = 0; n < graph->n_nodes; n++)
        for (int i = 0; i < graph->nodes[n].n_inputs; i++)
            is_read[graph->nodes[n].inputs[i]] = true;
    for (size_t i = 0; i < space->n_inputs; i++)
        for (int k = 0; k < b->inputs[i].n; k++)
            if (!is_read[b->inputs[i].tensors[k]])
                return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &space->inputs[i].place,
                                             "nothing reads the input '%s'",
                                             graph->tensors[b->inputs[i].tensors[k]].name),
                                  "write - from: %s where the network goes on with it",
                                  space->inputs[i].name);
    return HWNAS_OK;
}
