/* fuse.c: operators that were written as several. Exporters for older ONNX write gelu as
 *
 *     x (1 + erf(x / sqrt(2))) / 2      or      x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2
 *
 * with the factors in any order. A device has one fast operator for it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/op.h"
#include "graph/rewrite.h"

typedef struct fuser {
    const hwnas_graph *graph;
    int *x; /* by node: the input of the gelu that it ends, or -1 */
    bool *is_tanh;
    int *n_readers; /* by tensor */
} fuser;

/* A product: a number times tensors. */
enum { MAX_FACTORS = 8, MAX_NODES = 32, NO_TENSOR = -1 };
typedef struct product {
    double number;
    int n;
    int factors[MAX_FACTORS];
    int n_nodes; /* looked at; bounded, whatever a file holds */
} product;

static const hwnas_node *producer(const fuser *f, int tensor)
{
    const int node = f->graph->tensors[tensor].producer;
    return node < 0 ? NULL : &f->graph->nodes[node];
}

static bool is_number(double *out, const fuser *f, int tensor)
{
    const hwnas_tensor *t = &f->graph->tensors[tensor];
    if (t->kind != HWNAS_TENSOR_WEIGHT || !t->data || hwnas_tensor_count(t) != 1)
        return false;
    *out = t->data[0];
    return true;
}

/* Multiplies `p` by what a tensor is the product of; `x` is a factor as it is. False: too many. */
static bool multiply(product *p, const fuser *f, int tensor, int x)
{
    const hwnas_node *node = producer(f, tensor);
    double number;
    if (++p->n_nodes > MAX_NODES)
        return false;
    if (is_number(&number, f, tensor)) {
        p->number *= number;
        return true;
    }
    if (tensor != x && hwnas_node_is(node, HWNAS_OP_MUL))
        return multiply(p, f, node->inputs[0], x) && multiply(p, f, node->inputs[1], x);
    if (tensor != x && hwnas_node_is(node, HWNAS_OP_DIV) &&
        is_number(&number, f, node->inputs[1])) {
        p->number /= number;
        return multiply(p, f, node->inputs[0], x);
    }
    const bool is_cube = tensor != x && hwnas_node_is(node, HWNAS_OP_POW) &&
                         is_number(&number, f, node->inputs[1]) && number == 3;
    const int factor = is_cube ? node->inputs[0] : tensor;
    for (int i = 0; i < (is_cube ? 3 : 1); i++) {
        if (p->n == MAX_FACTORS)
            return false;
        p->factors[p->n++] = factor;
    }
    return true;
}

/* Is the tensor `number` times x, n times? */
static bool is_power(const fuser *f, int tensor, double number, int x, int n)
{
    product p = {.number = 1};
    if (!multiply(&p, f, tensor, x) || p.n != n || fabs(p.number - number) > 1e-4 * number)
        return false;
    for (int i = 0; i < n; i++)
        if (p.factors[i] != x)
            return false;
    return true;
}

/* What the tensor adds to a number of this value; NULL: it does not. */
static const hwnas_node *beside(const fuser *f, int tensor, double value)
{
    const hwnas_node *sum = producer(f, tensor);
    double number;
    for (int i = 0; i < 2 && hwnas_node_is(sum, HWNAS_OP_ADD); i++)
        if (is_number(&number, f, sum->inputs[i]) && number == value)
            return producer(f, sum->inputs[1 - i]);
    return NULL;
}

/* x of 1 + erf(x / sqrt(2)), or NO_TENSOR. */
static int x_of_erf(const fuser *f, const hwnas_node *erf_node)
{
    const hwnas_node *scaled = producer(f, erf_node->inputs[0]);
    double number;
    if (!hwnas_node_is(scaled, HWNAS_OP_MUL) && !hwnas_node_is(scaled, HWNAS_OP_DIV))
        return NO_TENSOR;
    const int x = scaled->inputs[is_number(&number, f, scaled->inputs[0]) ? 1 : 0];
    return is_power(f, erf_node->inputs[0], sqrt(0.5), x, 1) ? x : NO_TENSOR;
}

/* x of 1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)), or NO_TENSOR. */
static int x_of_tanh(const fuser *f, const hwnas_node *tanh_node)
{
    const hwnas_node *scaled = producer(f, tanh_node->inputs[0]);
    double number;
    if (!hwnas_node_is(scaled, HWNAS_OP_MUL))
        return NO_TENSOR;
    const int z = scaled->inputs[is_number(&number, f, scaled->inputs[0]) ? 1 : 0];
    const hwnas_node *sum = producer(f, z);
    if (!hwnas_node_is(sum, HWNAS_OP_ADD) ||
        !is_power(f, tanh_node->inputs[0], sqrt(2 / M_PI), z, 1))
        return NO_TENSOR;
    for (int i = 0; i < 2; i++)
        if (is_power(f, sum->inputs[1 - i], 0.044715, sum->inputs[i], 3))
            return sum->inputs[i];
    return NO_TENSOR;
}

/* Does the node end a gelu? It is half of x times a gate of x. */
static void find_gelu(fuser *f, int n)
{
    const hwnas_node *node = &f->graph->nodes[n];
    product all = {.number = 1};
    if (!hwnas_node_is(node, HWNAS_OP_MUL) || !multiply(&all, f, node->output, NO_TENSOR))
        return;
    for (int i = 0; i < all.n; i++) {
        const int gate = all.factors[i];
        const hwnas_node *activated = beside(f, gate, 1);
        const int x = hwnas_node_is(activated, HWNAS_OP_ERF)    ? x_of_erf(f, activated)
                      : hwnas_node_is(activated, HWNAS_OP_TANH) ? x_of_tanh(f, activated)
                                                           : NO_TENSOR;
        product p = {.number = 1};
        if (x == NO_TENSOR || !multiply(&p, f, node->output, x) || p.n != 2 ||
            fabs(p.number - 0.5) > 1e-4 || (p.factors[0] != x && p.factors[1] != x) ||
            (p.factors[0] != gate && p.factors[1] != gate))
            continue;
        f->x[n] = x;
        f->is_tanh[n] = hwnas_node_is(activated, HWNAS_OP_TANH);
    }
}

/* Nodes that are still needed: a gelu reads its x alone. */
static bool *find_needed(const fuser *f)
{
    const hwnas_graph *graph = f->graph;
    bool *is_needed = hwnas_alloc((graph->n_tensors + 1) * sizeof *is_needed);
    for (size_t i = 0; i < graph->n_outputs; i++)
        is_needed[graph->outputs[i]] = true;
    for (size_t n = 0; n < graph->n_nodes; n++) /* what nobody read before stays */
        is_needed[graph->nodes[n].output] |= f->n_readers[graph->nodes[n].output] == 0;
    for (size_t n = graph->n_nodes; n-- > 0;) {
        const hwnas_node *node = &graph->nodes[n];
        if (!is_needed[node->output])
            continue;
        if (f->x[n] >= 0)
            is_needed[f->x[n]] = true;
        for (int i = 0; i < node->n_inputs && f->x[n] < 0; i++)
            is_needed[node->inputs[i]] = true;
    }
    return is_needed;
}

static hwnas_status fuse_nodes(hwnas_rewrite *r)
{
    hwnas_status status = HWNAS_OK;
    const fuser *f = r->context;
    bool *is_needed = find_needed(f);
    for (size_t n = 0; n < r->from->n_nodes; n++) {
        const hwnas_node *node = &r->from->nodes[n];
        if (!is_needed[node->output])
            continue;
        if (f->x[n] < 0) {
            TRY_OUT(hwnas_rewrite_copy_node(r, node));
            continue;
        }
        const hwnas_attr attr = {.is_set = true, .n = 1, .ints = {f->is_tanh[n]}};
        TRY_OUT(hwnas_graph_add_node(&r->place[node->output], r->to, hwnas_ops[HWNAS_OP_GELU],
                                     node->name, &attr, 1, &r->place[f->x[n]], false));
        hwnas_rewrite_keep_name(r, node->output);
    }
out:
    free(is_needed);
    return status;
}

hwnas_status hwnas_graph_fuse(hwnas_graph **out, const hwnas_graph *graph)
{
    fuser f = {.graph = graph};
    f.x = hwnas_alloc((graph->n_nodes + 1) * sizeof *f.x);
    f.is_tanh = hwnas_alloc((graph->n_nodes + 1) * sizeof *f.is_tanh);
    f.n_readers = hwnas_alloc((graph->n_tensors + 1) * sizeof *f.n_readers);
    bool found = false;
    for (size_t n = 0; n < graph->n_nodes; n++) {
        for (int i = 0; i < graph->nodes[n].n_inputs; i++)
            f.n_readers[graph->nodes[n].inputs[i]]++;
        f.x[n] = NO_TENSOR;
        find_gelu(&f, (int)n);
        found |= f.x[n] >= 0;
    }
    hwnas_status status = found ? hwnas_graph_remake(out, graph, fuse_nodes, &f) : HWNAS_OK;
    free(f.n_readers);
    free(f.is_tanh);
    free(f.x);
    return status;
}
