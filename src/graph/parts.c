/* parts.c: a part is a group of fusion.h by rules that hold for the devices that there are:
 * products, norms, and sums, differences, ... of two tensors take functions and further such
 * operators, of operands that are read value by value or channel by channel. */
#include "graph/parts.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "graph/fusion.h"

/* ---- The rules ---- */

static const hwnas_fusion_row *row_of(const hwnas_fusion *f, const hwnas_node *node)
{
    static const hwnas_fusion_row product = {.takes = HWNAS_FUSES_VALUES},
                                  binary = {HWNAS_FUSES_VALUES, HWNAS_FUSES_BINARY, false},
                                  function = {.is = HWNAS_FUSES_FUNCTION},
                                  gate = {.is = HWNAS_FUSES_FUNCTION, .is_gate = true}, other;
    (void)f;
    if (node->op->id == HWNAS_OP_SIGMOID || node->op->id == HWNAS_OP_HARD_SIGMOID)
        return &gate;
    if (node->op->id == HWNAS_OP_BATCH_NORM)
        return &product; /* it stands alone: else it is folded */
    return node->op->class == HWNAS_CLASS_PRODUCT      ? &product
           : node->op->class == HWNAS_CLASS_ARITHMETIC ? &binary
           : node->op->is_epilogue                     ? &function
                                                       : &other;
}

static bool is_arithmetic(const hwnas_fusion *f, const hwnas_node *node)
{
    (void)f;
    return node->op->class == HWNAS_CLASS_ARITHMETIC;
}

/* An attention ends with the order and the shape that its result is used in. */
static bool begin_attention(hwnas_fusion *f, void *group, int node)
{
    static const hwnas_op_id ends[] = {HWNAS_OP_TRANSPOSE, HWNAS_OP_RESHAPE};
    const hwnas_fusion_group *g = group;
    if (!hwnas_fusion_take_attention(f, group, node, is_arithmetic))
        return false;
    for (int i = 0; i < 2; i++) {
        const int reader = hwnas_lone_reader(&f->uses[g->output]);
        if (reader < 0 || f->graph->nodes[reader].op->id != ends[i])
            break;
        hwnas_fusion_take(f, group, reader);
    }
    return true;
}

static bool begin(hwnas_fusion *f, void *group, int node)
{
    hwnas_fusion_take(f, group, node);
    return true;
}

/* One number, one value for each channel of an image or column of anything else, or one for each
 * value. */
static bool fits(const hwnas_tensor *operand, const hwnas_tensor *out)
{
    const int axis = out->rank == 4 ? 1 : out->rank - 1;
    const int at = axis - (out->rank - operand->rank);
    const int64_t n = hwnas_tensor_count(operand);
    return n == 1 || n == hwnas_tensor_count(out) ||
           (at >= 0 && n == out->dims[axis] && operand->dims[at] == n);
}

static bool follows(hwnas_fusion *f, void *group, const hwnas_node *node, const hwnas_node *gate)
{
    const hwnas_fusion_group *g = group;
    if (gate)
        return node->op->id == HWNAS_OP_MUL;
    if (node->n_inputs == 1)
        return true;
    const bool is_first = hwnas_fusion_input(f, node, 0) == g->output;
    const int operand = hwnas_fusion_input(f, node, is_first);
    return operand != g->output && (is_first || node->op->commutes) &&
           fits(&f->graph->tensors[operand], hwnas_node_output(f->graph, node));
}

static const hwnas_fusion_rules rules = {
    .group_size = sizeof(hwnas_fusion_group),
    .longest = HWNAS_FUSION_LONGEST - 2, /* an attention has two more at its end */
    .passes = (hwnas_fusion_begin *const[]){begin_attention, begin, NULL},
    .row = row_of,
    .follows = follows,
};

/* ---- Signatures ---- */

static uint64_t mix(uint64_t hash, const void *bytes, size_t n)
{
    return XXH3_64bits_withSeed(bytes, n, hash);
}

/* The operator's name; of a product that a BatchNorm makes a linear layer of (fold.c), that one's.
 */
static const char *name_of(const hwnas_graph *graph, const hwnas_node *node)
{
    return hwnas_matmul_is_linear(graph, node) ? hwnas_ops[HWNAS_OP_LINEAR]->name : node->op->name;
}

/* The operator and what its attributes say beside the shapes. `of_kind`: of groups, only whether
 * they are one or many. */
static uint64_t mix_operator(uint64_t hash, const hwnas_graph *graph, const hwnas_node *node,
                             bool of_kind)
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
    const char *name = name_of(graph, node);
    hash = mix(hash, name, strlen(name));
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

/* The operator that the part which makes a tensor begins with. */
static const char *source_of(const hwnas_fusion *f, int tensor)
{
    const hwnas_fusion_group *groups = f->groups;
    const int producer = f->graph->tensors[tensor].producer;
    return producer < 0
               ? "input"
               : name_of(f->graph, &f->graph->nodes[groups[f->group_of[producer]].nodes[0]]);
}

/* Adds a node to the end of a part. `from`: what the part has made before, or -1. */
static void add_node(hwnas_part *part, const hwnas_fusion *f, const bool *is_constant,
                     const hwnas_node *node, int from)
{
    const hwnas_tensor *output = hwnas_node_output(f->graph, node);
    uint64_t hash = mix_operator(part->signature, f->graph, node, false);
    part->kind = mix_operator(part->kind, f->graph, node, true);
    const bool is_linear = hwnas_matmul_is_linear(f->graph, node);
    hwnas_tensor turned = *hwnas_node_input(f->graph, node, node->n_inputs > 1);
    if (is_linear) {
        const int64_t n_in = turned.dims[0];
        turned.dims[0] = turned.dims[1];
        turned.dims[1] = n_in;
    }
    for (int i = 0; i < node->n_inputs; i++) {
        const int id = hwnas_fusion_input(f, node, i);
        const hwnas_tensor *tensor = &f->graph->tensors[id];
        if (id == from)
            continue;
        if (is_constant[id] && tensor->rank == 1 && i >= node->n_data_inputs &&
            (node->op->id == HWNAS_OP_CONV || node->op->id == HWNAS_OP_LINEAR))
            continue; /* a bias, which BatchNorm brings as well */
        hash = mix_tensor(hash, is_linear && i == 1 ? &turned : tensor);
        if (is_constant[id]) {
            part->weight_bytes += bytes_of(tensor);
            continue;
        }
        const char *source = source_of(f, id);
        hash = mix(hash, source, strlen(source));
        part->read_bytes += bytes_of(tensor);
    }
    part->signature = mix_tensor(hash, output);
    part->macs += (double)hwnas_node_macs(f->graph, node);
    part->written_bytes = bytes_of(output);
}

static hwnas_part part_of(const hwnas_fusion *f, const bool *is_constant,
                          const hwnas_fusion_group *group)
{
    hwnas_part part = {0};
    for (int i = 0; i < group->n_nodes; i++)
        add_node(&part, f, is_constant, &f->graph->nodes[group->nodes[i]],
                 i ? f->graph->nodes[group->nodes[i - 1]].output : -1);
    return part;
}

/* ---- What is deployed ---- */

/* BatchNorm that the layer before it carries and dropout do nothing: who reads their output reads
 * their input. Neither they nor what weights alone make is live. */
static void leave_out(int *same, bool *is_live, bool *is_constant, const hwnas_graph *graph)
{
    hwnas_uses *uses = hwnas_graph_uses(graph, same, is_live);
    for (size_t t = 0; t < graph->n_tensors; t++)
        is_constant[t] = graph->tensors[t].kind == HWNAS_TENSOR_WEIGHT;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const hwnas_node *node = &graph->nodes[i];
        bool reads_weights = true;
        for (int k = 0; k < node->n_inputs; k++)
            reads_weights &= is_constant[same[node->inputs[k]]];
        is_constant[node->output] = reads_weights;
        if (same[node->output] != node->output)
            same[node->output] = same[same[node->output]];
        else if (!reads_weights && (node->op->id == HWNAS_OP_DROPOUT ||
                                    hwnas_graph_is_folded(graph, uses, same, (int)i)))
            same[node->output] = same[node->inputs[0]];
        is_live[i] &= !reads_weights && same[node->output] == node->output;
    }
    free(uses);
}

static void reserve(hwnas_parts *out, size_t n_nodes)
{
    if (out->node_capacity >= n_nodes)
        return;
    out->node_capacity = n_nodes;
    out->of_node = hwnas_realloc(out->of_node, n_nodes * sizeof *out->of_node);
    out->of_folded = hwnas_realloc(out->of_folded, n_nodes * sizeof *out->of_folded);
}

void hwnas_graph_cut(hwnas_parts *out, const hwnas_graph *graph)
{
    int *same = hwnas_graph_same(graph);
    bool *is_live = hwnas_graph_live_nodes(graph, same);
    bool *is_constant = hwnas_alloc(graph->n_tensors + 1);
    leave_out(same, is_live, is_constant, graph);
    hwnas_fusion f = {.rules = &rules, .graph = graph, .same = same, .is_live = is_live};
    hwnas_fusion_plan(&f);
    reserve(out, graph->n_nodes);
    out->n = out->n_folded = 0;
    out->n_nodes = graph->n_nodes;
    for (size_t n = 0; n < graph->n_nodes; n++) {
        out->of_node[n] = f.group_of[n];
        if (is_live[n])
            out->of_folded[out->n_folded++] = f.group_of[n];
    }
    for (size_t i = 0; i < f.n_groups; i++) {
        HWNAS_GROW(out->parts, out->n, out->capacity);
        out->parts[out->n++] = part_of(&f, is_constant, &((const hwnas_fusion_group *)f.groups)[i]);
    }
    hwnas_fusion_done(&f);
    free(is_constant);
    free(is_live);
    free(same);
}

void hwnas_parts_done(hwnas_parts *parts)
{
    free(parts->parts);
    free(parts->of_node);
    free(parts->of_folded);
    *parts = (hwnas_parts){0};
}
