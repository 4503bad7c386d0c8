/* random_recipe.c: a recipe as a graph, and as text. */
#include "tests/fuzz/random_recipe.h"

#include <stdlib.h>
#include <string.h>

#include "graph/op.h"
#include "tests/unit/attributes.h"

static hwnas_status add_leaf(int *out, hwnas_graph *graph, const step *s, const char *name)
{
    if (!s->is_constant)
        return hwnas_graph_add_input(out, graph, name, s->dtype, s->rank, s->dims);
    if (s->is_given)
        TRY(hwnas_graph_add_constant(out, graph, name, s->rank, s->dims, &s->value));
    else
        TRY(hwnas_graph_add_weight(out, graph, name, s->rank, s->dims, HWNAS_INIT_NEAR_ONE, false));
    graph->tensors[*out].dtype = s->dtype;
    return HWNAS_OK;
}

hwnas_status random_add_step(int *out, hwnas_graph *graph, const step *s, int index,
                             const int *tensors)
{
    char name[48];
    int inputs[RANDOM_MAX_INPUTS];
    snprintf(name, sizeof name, "v%d", index);
    if (!s->op)
        return add_leaf(out, graph, s, name);
    const hwnas_op *op = hwnas_op_by_name(s->op);
    const bool has_weights = s->n_inputs <= op->max_inputs;
    for (int i = 0; i < s->n_inputs; i++)
        inputs[i] = tensors[s->inputs[i]];
    hwnas_attr *attrs = attributes(op, s->attrs);
    hwnas_status status =
        hwnas_graph_add_node(out, graph, op, name, attrs, s->n_inputs, inputs, has_weights);
    free(attrs);
    return status;
}

void random_find_needed(bool *is_needed, const recipe *r)
{
    memset(is_needed, 0, RANDOM_MAX_STEPS * sizeof *is_needed);
    for (int i = 0; i < r->n_outputs; i++)
        is_needed[r->outputs[i]] = true;
    for (int i = r->n; i-- > 0;)
        for (int k = 0; k < r->steps[i].n_inputs && is_needed[i]; k++)
            is_needed[r->steps[i].inputs[k]] = true;
}

void random_recipe_print(FILE *to, const recipe *r)
{
    bool is_needed[RANDOM_MAX_STEPS];
    random_find_needed(is_needed, r);
    for (int i = 0; i < r->n; i++) {
        const step *s = &r->steps[i];
        hwnas_tensor shape = {.rank = s->rank};
        if (!is_needed[i])
            continue;
        memcpy(shape.dims, s->dims, sizeof s->dims);
        fprintf(to, "# v%d (%s) = %s", i, hwnas_tensor_shape(&shape).s,
                s->op            ? s->op
                : s->is_constant ? "constant"
                                 : "input");
        if (s->is_given)
            fprintf(to, " %g", (double)s->value);
        for (int k = 0; k < s->n_inputs; k++)
            fprintf(to, " v%d", s->inputs[k]);
        fprintf(to, " %s\n", s->op ? s->attrs : "");
    }
    for (int i = 0; i < r->n_outputs; i++)
        fprintf(to, "# output v%d\n", r->outputs[i]);
}
