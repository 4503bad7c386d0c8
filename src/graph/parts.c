/* parts.c: the rule of the cut. A part begins with an operator that moves data (a convolution, a
 * product, pooling, ...) and goes on with what a device does to the result while it has it at hand:
 * bias, BatchNorm, activations, sums and products with other tensors. A pointwise convolution goes
 * on with the 3 x 3 depthwise one that follows it. What is read twice ends a part. */
#include "graph/parts.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "graph/op.h"
#include "graph/rewrite.h"

enum { NONE = -1 };

/* What is needed only while cutting. By tensor: */
typedef struct cutter {
    const hwnas_graph *graph;
    hwnas_parts *out;
    int *same;         /* the tensor that it is the same as */
    int *lone_reader;  /* the node that alone reads it */
    int *part;         /* that leaves it; NONE: an input, a weight */
    bool *is_constant; /* made of weights alone */
} cutter;

static uint64_t mix(uint64_t hash, const void *bytes, size_t n)
{
    return XXH3_64bits_withSeed(bytes, n, hash);
}

/* The operator and what its attributes say beside the shapes. `of_kind`: of groups, only whether
 * they are one or many. */
static uint64_t mix_operator(uint64_t hash, const hwnas_node *node, bool of_kind)
{
    int64_t words[64];
    size_t n = 0;
    for (int i = 0; node->op->attrs[i].name; i++) {
        const hwnas_attr_row *row = &node->op->attrs[i];
        const hwnas_attr *attr = &node->attrs[i];
        if (node->op->onnx && !row->onnx && !row->onnx_input)
            continue; /* the weights' shapes say it */
        if (n + HWNAS_MAX_RANK + 1 > sizeof words / sizeof *words) {
            hash = mix(hash, words, n * sizeof *words);
            n = 0;
        }
        const bool is_groups = of_kind && !strcmp(row->name, "groups");
        for (int k = 0; k < attr->n; k++)
            words[n++] = is_groups ? attr->ints[k] > 1 : attr->ints[k];
        if (row->kind == HWNAS_ATTR_NUMBER) {
            const float number = (float)attr->number; /* as ONNX keeps it */
            memcpy(&words[n], &number, sizeof number);
            words[n++] &= 0xffffffff;
        }
    }
    hash = mix(hash, node->op->name, strlen(node->op->name));
    return n ? mix(hash, words, n * sizeof *words) : hash;
}

static uint64_t mix_tensor(uint64_t hash, const hwnas_tensor *tensor)
{
    int64_t words[HWNAS_MAX_RANK + 1] = {tensor->rank | (int64_t)tensor->dtype << 8};
    memcpy(words + 1, tensor->dims, (size_t)tensor->rank * sizeof *tensor->dims);
    return mix(hash, words, (size_t)(tensor->rank + 1) * sizeof *words);
}

static double bytes_of(const hwnas_tensor *tensor)
{
    return (double)hwnas_tensor_count(tensor) * 4;
}

/* The operator that the part which leaves a tensor begins with. */
static const char *source_of(const cutter *c, int tensor)
{
    const int part = c->part[tensor];
    return part == NONE ? "input" : c->graph->nodes[c->out->parts[part].first].op->name;
}

/* Adds a node to the end of a part. `into`: the input that comes from the part, or NONE. */
static void extend(cutter *c, int index, int node_index, int into)
{
    hwnas_part *part = &c->out->parts[index];
    const hwnas_node *node = &c->graph->nodes[node_index];
    const hwnas_tensor *output = hwnas_node_output(c->graph, node);
    uint64_t hash = mix_operator(part->signature, node, false);
    part->kind = mix_operator(part->kind, node, true);
    for (int i = 0; i < node->n_inputs; i++) {
        const int id = c->same[node->inputs[i]];
        const hwnas_tensor *tensor = &c->graph->tensors[id];
        const bool is_weight = c->is_constant[id];
        if (i == into)
            continue;
        if (is_weight && tensor->rank == 1 && i >= node->n_data_inputs &&
            node->op->id == HWNAS_OP_CONV)
            continue; /* a bias, which BatchNorm brings as well */
        hash = mix_tensor(hash, tensor);
        if (is_weight) {
            part->weight_bytes += bytes_of(tensor);
            continue;
        }
        const char *source = source_of(c, id);
        hash = mix(hash, source, strlen(source));
        part->read_bytes += bytes_of(tensor);
    }
    part->signature = mix_tensor(hash, output);
    part->macs += (double)hwnas_node_macs(c->graph, node);
    part->written_bytes = bytes_of(output);
    part->last = node_index;
    c->out->of_node[node_index] = index;
    c->out->of_folded[c->out->n_folded++] = index;
    c->part[node->output] = index;
}

static bool is_pointwise(const hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor *weight = hwnas_node_input(graph, node, 1);
    return node->op->id == HWNAS_OP_CONV && weight->dims[2] == 1 && weight->dims[3] == 1 &&
           weight->dims[1] == hwnas_node_input(graph, node, 0)->dims[1];
}

static bool is_depthwise(const hwnas_graph *graph, const hwnas_node *node, int64_t kernel)
{
    const hwnas_tensor *weight = hwnas_node_input(graph, node, 1);
    return node->op->id == HWNAS_OP_CONV && weight->dims[1] == 1 && weight->dims[2] == kernel &&
           weight->dims[3] == kernel && weight->dims[0] > 1 &&
           weight->dims[0] == hwnas_node_input(graph, node, 0)->dims[1];
}

/* May a node go on with the part that ends with the tensor? */
static bool joins(const cutter *c, const hwnas_part *part, int node_index)
{
    const hwnas_graph *graph = c->graph;
    const hwnas_node *node = &graph->nodes[node_index], *first = &graph->nodes[part->first];
    if (first->op->fusion == HWNAS_FUSION_ALONE)
        return false;
    if (node->op->id == HWNAS_OP_BATCH_NORM)
        return graph->nodes[part->last].op->id == HWNAS_OP_CONV;
    if (is_depthwise(graph, node, 3))
        return is_pointwise(graph, first);
    return node->op->fusion == HWNAS_FUSION_JOINS &&
           (first->op->class != HWNAS_CLASS_POOL || node->op->max_inputs > 1);
}

static bool is_pool(const cutter *c, int part)
{
    return c->graph->nodes[c->out->parts[part].first].op->class == HWNAS_CLASS_POOL;
}

/* The part that a node goes on with, or NONE; `into`: by which input. If there are several it is
 * the first, but pooling goes before convolutions, as in oneDNN. */
static int find_host(const cutter *c, int node_index, int *into)
{
    const hwnas_node *node = &c->graph->nodes[node_index];
    int host = NONE;
    for (int i = 0; i < node->n_data_inputs; i++) {
        const int tensor = c->same[node->inputs[i]], part = c->part[tensor];
        if (part == NONE || c->lone_reader[tensor] != node_index ||
            (host != NONE && !(is_pool(c, part) && !is_pool(c, host))))
            continue;
        const hwnas_part *p = &c->out->parts[part];
        if (c->graph->nodes[p->last].output != tensor || !joins(c, p, node_index))
            continue;
        *into = i;
        host = part;
    }
    return host;
}

static void begin_part(cutter *c, int node_index)
{
    hwnas_parts *out = c->out;
    HWNAS_GROW(out->parts, out->n, out->capacity);
    out->parts[out->n] = (hwnas_part){.first = node_index, .last = node_index};
    extend(c, (int)out->n++, node_index, NONE);
}

/* Dropout does nothing: who reads its output reads its input. */
static void take_place(cutter *c, int output, int input)
{
    for (size_t t = 0; t < c->graph->n_tensors; t++)
        if (c->same[t] == output)
            c->same[t] = input;
    if (c->lone_reader[input] != NONE)
        c->lone_reader[input] = c->lone_reader[output];
}

static void place_node(cutter *c, int node_index)
{
    const hwnas_node *node = &c->graph->nodes[node_index];
    int into = NONE, host;
    bool is_constant = true;
    for (int i = 0; i < node->n_inputs; i++)
        is_constant &= c->is_constant[c->same[node->inputs[i]]];
    if (is_constant) {
        c->is_constant[node->output] = true;
    } else if (node->op->id == HWNAS_OP_DROPOUT) {
        take_place(c, node->output, c->same[node->inputs[0]]);
    } else if ((host = find_host(c, node_index, &into)) == NONE) {
        begin_part(c, node_index);
    } else if (node->op->id == HWNAS_OP_BATCH_NORM) { /* folded into the convolution's weights */
        c->out->of_node[node_index] = host;
        c->out->parts[host].last = node_index;
        c->part[node->output] = host;
    } else {
        extend(c, host, node_index, into);
    }
}

static int count_readers(const cutter *c, const bool *is_live, int tensor)
{
    int n = 0;
    for (size_t i = 0; i < c->graph->n_nodes; i++)
        for (int k = 0; k < c->graph->nodes[i].n_inputs && is_live[i]; k++)
            n += c->same[c->graph->nodes[i].inputs[k]] == tensor;
    return n;
}

/* x sigmoid(x) is one activation to a device: its x counts as read once, by the sigmoid. */
static void unite_swish(cutter *c, const bool *is_live, int node_index)
{
    const hwnas_graph *graph = c->graph;
    const hwnas_node *gate = &graph->nodes[node_index];
    const int x = c->same[gate->inputs[0]], reader = c->lone_reader[gate->output];
    const hwnas_node *product = reader == NONE ? NULL : &graph->nodes[reader];
    if (product && product->op->id == HWNAS_OP_MUL && c->lone_reader[x] == NONE &&
        (c->same[product->inputs[0]] == x || c->same[product->inputs[1]] == x) &&
        count_readers(c, is_live, x) == 2)
        c->lone_reader[x] = node_index;
}

void hwnas_graph_cut(hwnas_parts *out, const hwnas_graph *graph)
{
    cutter c = {.graph = graph, .out = out, .same = hwnas_graph_same(graph)};
    bool *is_live = hwnas_graph_live_nodes(graph, c.same);
    c.lone_reader = hwnas_graph_lone_readers(graph, c.same, is_live);
    c.part = hwnas_alloc((graph->n_tensors + 1) * sizeof *c.part);
    c.is_constant = hwnas_alloc(graph->n_tensors + 1);
    for (size_t t = 0; t < graph->n_tensors; t++) {
        c.part[t] = NONE;
        c.is_constant[t] = graph->tensors[t].kind == HWNAS_TENSOR_WEIGHT;
    }
    if (out->node_capacity < graph->n_nodes) {
        out->node_capacity = graph->n_nodes;
        out->of_node = hwnas_realloc(out->of_node, out->node_capacity * sizeof *out->of_node);
        out->of_folded = hwnas_realloc(out->of_folded, out->node_capacity * sizeof *out->of_folded);
    }
    for (size_t n = 0; n < graph->n_nodes; n++)
        if (is_live[n] && (graph->nodes[n].op->id == HWNAS_OP_SIGMOID ||
                           graph->nodes[n].op->id == HWNAS_OP_HARD_SIGMOID))
            unite_swish(&c, is_live, (int)n);
    out->n = out->n_folded = 0;
    out->n_nodes = graph->n_nodes;
    for (size_t n = 0; n < graph->n_nodes; n++) {
        out->of_node[n] = NONE;
        if (is_live[n] && c.same[graph->nodes[n].output] == graph->nodes[n].output)
            place_node(&c, (int)n);
    }
    free(is_live);
    free(c.same);
    free(c.lone_reader);
    free(c.part);
    free(c.is_constant);
}

void hwnas_parts_done(hwnas_parts *parts)
{
    free(parts->parts);
    free(parts->of_node);
    free(parts->of_folded);
    *parts = (hwnas_parts){0};
}
