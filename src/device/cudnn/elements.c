/* elements.c: operators on each element by itself, without a product before them. cuDNN has engines
 * for rank 3 and less, so dimensions are merged as far as all operands together allow. */
#include "device/cudnn/cudnn_lower.h"

typedef hwnas_cudnn_lowering lowering;

typedef struct elements {
    int n, tensors[2 * HWNAS_CUDNN_LONGEST_GROUP]; /* of the net; the result is the first */
    int64_t dims[2 * HWNAS_CUDNN_LONGEST_GROUP][HWNAS_MAX_RANK];
    int64_t strides[2 * HWNAS_CUDNN_LONGEST_GROUP][HWNAS_MAX_RANK];
    int rank;
} elements;

static int find_element(const elements *e, int tensor)
{
    for (int i = 0; i < e->n; i++)
        if (e->tensors[i] == tensor)
            return i;
    return -1;
}

/* A tensor with the result's rank, dimensions in the result's order in memory. */
static void add_element(elements *e, const hwnas_cudnn_net *net, int tensor, const int *order)
{
    const hwnas_cudnn_tensor *t = &net->tensors[tensor];
    e->tensors[e->n] = tensor;
    for (int i = 0; i < e->rank; i++) {
        const int at = order[i] - (e->rank - t->rank);
        e->dims[e->n][i] = at < 0 ? 1 : t->dims[at];
        e->strides[e->n][i] = at < 0 || t->dims[at] == 1 ? 0 : t->strides[at];
    }
    e->n++;
}

/* The result's dimensions from the one that lies widest to the closest. */
static void order_of(int *order, const hwnas_cudnn_tensor *t)
{
    for (int i = 0; i < t->rank; i++) {
        int at = i;
        for (; at > 0 && t->strides[order[at - 1]] < t->strides[i] && t->dims[i] > 1; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

/* Whether dimensions i and i + 1 are one in every tensor. */
static bool can_merge(const elements *e, int i)
{
    for (int k = 0; k < e->n; k++) {
        const int64_t *d = e->dims[k], *s = e->strides[k];
        const bool a = d[i] == e->dims[0][i], b = d[i + 1] == e->dims[0][i + 1];
        const bool is_full = a && b && (s[i] == s[i + 1] * d[i + 1] || d[i] == 1 || d[i + 1] == 1);
        const bool is_one = d[i] == 1 && d[i + 1] == 1;
        if (!is_full && !is_one)
            return false;
    }
    return true;
}

static void merge(elements *e, int i)
{
    for (int k = 0; k < e->n; k++) {
        int64_t *d = e->dims[k], *s = e->strides[k];
        s[i] = d[i + 1] > 1 ? s[i + 1] : s[i];
        d[i] *= d[i + 1];
        memmove(d + i + 1, d + i + 2, (size_t)(e->rank - i - 2) * sizeof *d);
        memmove(s + i + 1, s + i + 2, (size_t)(e->rank - i - 2) * sizeof *s);
    }
    e->rank--;
}

/* What is 1 in the result is 1 in all. */
static void drop_ones(elements *e)
{
    for (int i = e->rank - 1; i >= 0; i--) {
        if (e->dims[0][i] != 1 || e->rank == 1)
            continue;
        for (int k = 0; k < e->n; k++) {
            const size_t behind = (size_t)(e->rank - i - 1) * sizeof **e->dims;
            memmove(e->dims[k] + i, e->dims[k] + i + 1, behind);
            memmove(e->strides[k] + i, e->strides[k] + i + 1, behind);
        }
        e->rank--;
    }
}

/* Whether what is repeated along the last dimension is repeated in no other, of which there is one.
 * cuDNN 9.19 reads elsewhere where a [1, 3, 1] meets a [2, 3, 20] (H200, in f32 and f16); [1,
 * 3, 1] with [1, 3, 20] is right, and so is all that has the last dimension. */
static bool are_lines_whole(const elements *e)
{
    const int last = e->rank - 1;
    for (int k = 1; k < e->n; k++)
        if (e->dims[k][last] != e->dims[0][last] && (last != 1 || e->dims[k][0] != e->dims[0][0]))
            return false;
    return true;
}

/* Merges what can be; the last dimension, the channels, stays by itself where three will do. */
static bool simplify(elements *e)
{
    drop_ones(e);
    for (int keep = 1; keep >= 0; keep--)
        for (int i = 0; i + 1 + keep < e->rank && (keep || e->rank > 3);)
            if (can_merge(e, i))
                merge(e, i);
            else
                i++;
    return e->rank <= 3 && are_lines_whole(e);
}

/* Rank 3, with strides as if nothing were repeated. */
static int add_element_port(lowering *l, const elements *e, int at)
{
    int64_t dims[3] = {1, 1, 1}, strides[3], step = 1;
    for (int i = 0; i < e->rank; i++)
        dims[3 - e->rank + i] = e->dims[at][i];
    for (int i = 2; i >= 0; step *= dims[i--]) {
        const int from = i - (3 - e->rank);
        strides[i] = from >= 0 && e->dims[at][from] > 1 ? e->strides[at][from] : step;
    }
    return hwnas_cudnn_add_memory(l->o, l->cut->net, e->tensors[at], 3, dims, strides);
}

/* The result of what is not an image lies as the first operand of its shape does, whatever the order
 * of its dimensions, so that transposed values need not be put in order for a sum. */
static void adopt_order(lowering *l, int result)
{
    const hwnas_node *node = hwnas_lower_node(l, 0);
    hwnas_cudnn_tensor *out = &l->cut->net->tensors[result];
    if (l->cut->is_image[result] || out->root != result || out->memory != HWNAS_CUDNN_ACTIVATIONS)
        return;
    for (int k = 0; k < node->n_inputs; k++) {
        const hwnas_cudnn_tensor *in = &l->cut->net->tensors[node->inputs[k]];
        if (!hwnas_same_shape(hwnas_lower_tensor(l, node->inputs[k]),
                              hwnas_lower_tensor(l, result)) ||
            hwnas_lower_tensor(l, node->inputs[k])->kind == HWNAS_TENSOR_WEIGHT ||
            in->type != l->type ||
            hwnas_cudnn_count(&l->cut->net->tensors[in->root]) != hwnas_cudnn_count(in))
            continue;
        memcpy(out->strides, in->strides, sizeof out->strides);
        return;
    }
}

static bool lies_alike(const hwnas_cudnn_tensor *a, const hwnas_cudnn_tensor *b)
{
    return a->rank == b->rank && !memcmp(a->dims, b->dims, sizeof a->dims) &&
           !memcmp(a->strides, b->strides, (size_t)a->rank * sizeof *a->strides);
}

/* Collects the tensors of all nodes; numbers of one value are left out. */
static void collect(lowering *l, elements *e, int inputs[][2])
{
    hwnas_cudnn_cut *cut = l->cut;
    const int last = l->group->chain.output;
    int order[HWNAS_MAX_RANK];
    order_of(order, &cut->net->tensors[last]);
    e->rank = cut->net->tensors[last].rank;
    add_element(e, cut->net, last, order);
    for (int i = 0; i < l->group->chain.n_nodes; i++) {
        const hwnas_node *node = hwnas_lower_node(l, i);
        for (int k = 0; k < node->n_inputs; k++) {
            const hwnas_tensor *t = hwnas_lower_tensor(l, node->inputs[k]);
            bool is_inside = false;
            for (int j = 0; j < i; j++)
                is_inside |= hwnas_lower_node(l, j)->output == node->inputs[k];
            inputs[i][k] = -1;
            if (is_inside || (t->kind == HWNAS_TENSOR_WEIGHT && hwnas_tensor_count(t) == 1))
                continue;
            const bool is_image = cut->is_image[last] && t->rank == 4;
            const bool is_alike =
                lies_alike(&cut->net->tensors[node->inputs[k]], &cut->net->tensors[last]);
            const int tensor = hwnas_cudnn_want(cut, node->inputs[k], l->type,
                                                is_alike   ? HWNAS_CUDNN_AS_IS
                                                : is_image ? HWNAS_CUDNN_PACKED
                                                           : HWNAS_CUDNN_PLAIN);
            if (find_element(e, tensor) < 0)
                add_element(e, cut->net, tensor, order);
            inputs[i][k] = tensor;
        }
    }
}

bool hwnas_lower_elements(lowering *l)
{
    elements e = {0};
    int wanted[HWNAS_CUDNN_LONGEST_GROUP][2], ports[2 * HWNAS_CUDNN_LONGEST_GROUP];
    const int result = l->group->chain.output;
    hwnas_lower_made m = {0};
    adopt_order(l, result);
    collect(l, &e, wanted);
    if (l->cut->net->tensors[result].root != result || !simplify(&e))
        return false; /* what only goes through elements wants no gaps */
    l->rank = 3;
    for (int i = 1; i < e.n; i++)
        ports[i] = add_element_port(l, &e, i);
    for (int i = 0; i < l->group->chain.n_nodes; i++) {
        const hwnas_node *node = hwnas_lower_node(l, i);
        int inputs[2];
        for (int k = 0; k < node->n_inputs; k++) {
            const int inside = hwnas_lower_find(&m, node->inputs[k]);
            if (wanted[i][k] >= 0)
                inputs[k] = ports[find_element(&e, wanted[i][k])];
            else if (inside >= 0)
                inputs[k] = inside;
            else
                inputs[k] = hwnas_cudnn_add_scalar(l->o, 3,
                                                   hwnas_lower_number(hwnas_lower_tensor(l, node->inputs[k])));
        }
        l->result = hwnas_cudnn_lower_pointwise(l->o, l->cut->graph, node, inputs);
        m.tensors[m.n] = node->output;
        m.ports[m.n++] = l->result;
    }
    hwnas_cudnn_port *port = &l->o->ports[l->result];
    const int made_port = add_element_port(l, &e, 0);
    *port = l->o->ports[made_port]; /* the last result is the tensor itself */
    l->o->n_ports = made_port;
    return true;
}
