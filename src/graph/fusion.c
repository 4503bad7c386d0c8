/* fusion.c: the walk: from each root as far as its result can be worked on before it is written. */
#include "graph/fusion.h"

#include <stdlib.h>
#include <string.h>

typedef hwnas_fusion_group group;

void hwnas_fusion_take(hwnas_fusion *f, void *into, int node)
{
    group *g = into;
    g->nodes[g->n_nodes++] = node;
    g->output = f->graph->nodes[node].output;
    f->group_of[node] = (int)f->n_groups;
}

void hwnas_fusion_empty(hwnas_fusion *f, void *from)
{
    group *g = from;
    for (int i = 0; i < g->n_nodes; i++)
        f->group_of[g->nodes[i]] = HWNAS_FUSION_NO_GROUP;
    memset(g, 0, f->rules->group_size);
}

static bool reads(const hwnas_fusion *f, const hwnas_node *node, int tensor)
{
    for (int i = 0; i < node->n_inputs; i++)
        if (hwnas_fusion_input(f, node, i) == tensor)
            return true;
    return false;
}

/* The two nodes that read the tensor, as gate and product of x f(x); false: they are not that. */
static bool find_gate(const hwnas_fusion *f, int tensor, const hwnas_node **gate,
                      const hwnas_node **product)
{
    const hwnas_uses *uses = &f->uses[tensor];
    if (uses->n_readers != 2 || uses->is_output)
        return false;
    *gate = &f->graph->nodes[uses->readers[0]];
    *product = &f->graph->nodes[uses->readers[1]];
    return (*gate)->n_inputs == 1 && (*product)->n_inputs == 2 &&
           hwnas_lone_reader(&f->uses[(*gate)->output]) == uses->readers[1] &&
           reads(f, *product, (*gate)->output) && f->rules->row(f, *gate)->is_gate;
}

/* Whether a node may follow, as far as that can be said of all devices. */
static bool may_follow(const hwnas_fusion *f, const group *g, const hwnas_node *node)
{
    return f->group_of[node - f->graph->nodes] == HWNAS_FUSION_NO_GROUP &&
           (f->rules->row(f, node)->is & g->takes) &&
           hwnas_same_shape(hwnas_node_output(f->graph, node), &f->graph->tensors[g->output]);
}

/* Takes what follows; false: nothing does. */
static bool extend(hwnas_fusion *f, group *g)
{
    const int lone = hwnas_lone_reader(&f->uses[g->output]);
    const hwnas_node *nodes = f->graph->nodes, *gate = NULL, *node = lone < 0 ? NULL : &nodes[lone];
    if (g->n_nodes + 2 > f->rules->longest ||
        (!node && (!find_gate(f, g->output, &gate, &node) || !may_follow(f, g, gate))) ||
        !may_follow(f, g, node) || !f->rules->follows(f, g, node, gate))
        return false;
    if (gate)
        hwnas_fusion_take(f, g, (int)(gate - nodes));
    hwnas_fusion_take(f, g, (int)(node - nodes));
    return true;
}

/* The free product that makes a tensor or reads it, or -1. */
static int free_product(const hwnas_fusion *f, int node)
{
    return node >= 0 && f->graph->nodes[node].op->id == HWNAS_OP_MATMUL &&
                   f->group_of[node] == HWNAS_FUSION_NO_GROUP && (!f->is_live || f->is_live[node])
               ? node
               : -1;
}

/* The node that makes a tensor which one node alone reads, or -1. */
static int lone_maker(const hwnas_fusion *f, int tensor)
{
    return hwnas_lone_reader(&f->uses[tensor]) < 0 ? -1 : f->graph->tensors[tensor].producer;
}

bool hwnas_fusion_take_attention(hwnas_fusion *f, void *into, int softmax,
                                 bool (*may_stand_between)(const hwnas_fusion *f,
                                                           const hwnas_node *node))
{
    const hwnas_node *nodes = f->graph->nodes, *node = &nodes[softmax];
    int between[HWNAS_FUSION_LONGEST], n = 0;
    if (node->op->id != HWNAS_OP_SOFTMAX)
        return false;
    const int64_t axis = hwnas_node_attr(node, "axis")->ints[0];
    const int second = free_product(f, hwnas_lone_reader(&f->uses[node->output]));
    int first = lone_maker(f, hwnas_fusion_input(f, node, 0));
    while (first >= 0 && n + 3 < f->rules->longest && may_stand_between(f, &nodes[first])) {
        between[n++] = first;
        first = lone_maker(f, hwnas_fusion_input(f, &nodes[first], 0));
    }
    first = free_product(f, first);
    if ((axis != -1 && axis != hwnas_node_output(f->graph, node)->rank - 1) || first < 0 ||
        second < 0 || hwnas_fusion_input(f, &nodes[second], 0) != node->output)
        return false;
    hwnas_fusion_take(f, into, first);
    while (n > 0)
        hwnas_fusion_take(f, into, between[--n]);
    hwnas_fusion_take(f, into, softmax);
    hwnas_fusion_take(f, into, second);
    return true;
}

static void form_group(hwnas_fusion *f, hwnas_fusion_begin *begin, int node)
{
    group *g = (group *)((char *)f->groups + f->n_groups * f->rules->group_size);
    g->takes = f->rules->row(f, &f->graph->nodes[node])->takes;
    if (!begin(f, g, node)) {
        memset(g, 0, f->rules->group_size);
        return;
    }
    do {
        while (extend(f, g))
            ;
    } while (f->rules->begins_anew && f->rules->begins_anew(f, g));
    f->n_groups++;
}

void hwnas_fusion_plan(hwnas_fusion *f)
{
    const size_t n = f->graph->n_nodes;
    f->uses = hwnas_graph_uses(f->graph, f->same, f->is_live);
    f->group_of = hwnas_alloc((n + 1) * sizeof *f->group_of);
    f->groups = hwnas_alloc((n + 1) * f->rules->group_size);
    f->n_groups = 0;
    for (size_t i = 0; i < n; i++)
        f->group_of[i] = HWNAS_FUSION_NO_GROUP;
    for (hwnas_fusion_begin *const *begin = f->rules->passes; *begin; begin++)
        for (size_t i = 0; i < n; i++)
            if (f->group_of[i] == HWNAS_FUSION_NO_GROUP && (!f->is_live || f->is_live[i]))
                form_group(f, *begin, (int)i);
}

void hwnas_fusion_done(hwnas_fusion *f)
{
    free(f->uses);
    free(f->group_of);
    free(f->groups);
}
