/* onnx_read_doubts.c: values of a file that would make results wrong in silence: weights that are
 * no numbers, and whole numbers that no float holds. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "onnx/onnx_reader.h"

typedef hwnas_onnx_reader reader;

/* By tensor: the last node that computes with it and on which an output depends; -1: none does. A
 * tensor whose values are known is not computed. */
static int *find_readers(const hwnas_graph *graph)
{
    int *readers = hwnas_alloc((graph->n_tensors + 1) * sizeof *readers);
    for (size_t i = 0; i < graph->n_tensors; i++)
        readers[i] = -1;
    for (size_t n = graph->n_nodes; n-- > 0;) {
        const hwnas_node *node = &graph->nodes[n];
        const bool is_live =
            hwnas_node_output(graph, node)->kind != HWNAS_TENSOR_WEIGHT &&
            (readers[node->output] >= 0 || hwnas_graph_is_output(graph, node->output));
        for (int i = 0; is_live && i < node->n_inputs; i++)
            if (readers[node->inputs[i]] < 0)
                readers[node->inputs[i]] = (int)n;
    }
    return readers;
}

/* ---- whole numbers ---- */

/* Number `k` of a constant as the file has it; false where we do not look. */
static bool whole_at(int64_t *out, const Onnx__TensorProto *from, int64_t k)
{
    const unsigned char *raw = from->has_raw_data ? from->raw_data.data : NULL;
    int32_t narrow;
    uint32_t unsigned_narrow;
    if (hwnas_onnx_is_external(from))
        return false;
    switch (from->data_type) {
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT64:
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT64:
        if (raw)
            memcpy(out, raw + (size_t)k * sizeof *out, sizeof *out);
        else if (from->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__INT64)
            *out = from->int64_data[k];
        else
            *out = (int64_t)from->uint64_data[k];
        return from->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__INT64 || *out >= 0;
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT32:
        if (raw)
            memcpy(&narrow, raw + (size_t)k * sizeof narrow, sizeof narrow);
        *out = raw ? narrow : from->int32_data[k];
        return true;
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT32:
        if (raw)
            memcpy(&unsigned_narrow, raw + (size_t)k * sizeof unsigned_narrow,
                   sizeof unsigned_narrow);
        *out = raw ? (int64_t)unsigned_narrow : (int64_t)from->uint64_data[k];
        return true;
    default:
        return false;
    }
}

/* The greatest of a type stand for infinity. */
static bool is_limit(int64_t value)
{
    return value == INT64_MAX || value == INT32_MAX || value == UINT32_MAX;
}

static void doubt_whole(hwnas_str *out, const reader *r, const hwnas_onnx_named *value,
                        const hwnas_node *node)
{
    const float most = 1 << 24;
    const hwnas_tensor *t = &r->graph->tensors[value->tensor];
    for (int64_t k = 0, n = t->data ? hwnas_tensor_count(t) : 0; k < n; k++) {
        int64_t whole;
        if ((t->data[k] < most && t->data[k] > -most) || !whole_at(&whole, value->constant, k) ||
            is_limit(whole) || whole == hwnas_onnx_whole((double)t->data[k]))
            continue;
        hwnas_str_addf(out,
                       "node '%s' (%s) computes with %" PRId64
                       " of '%s' as with %.0f: whole numbers "
                       "above 2^24 are floats here, which have no room for all of them\n",
                       node->name, node->op->name, whole, t->name, (double)t->data[k]);
        return;
    }
}

void hwnas_onnx_doubt_wholes(hwnas_str *out, const reader *r)
{
    int *readers = find_readers(r->graph);
    for (size_t i = 0; i < r->n_values; i++) {
        const hwnas_onnx_named *value = &r->values[i];
        if (value->constant && value->tensor >= 0 && readers[value->tensor] >= 0 &&
            hwnas_dtype_is_whole(r->graph->tensors[value->tensor].dtype))
            doubt_whole(out, r, value, &r->graph->nodes[readers[value->tensor]]);
    }
    free(readers);
}

/* ---- what differs from run to run elsewhere ---- */

void hwnas_onnx_doubt_random(hwnas_str *out, const reader *r)
{
    if (!r->n_random)
        return;
    hwnas_str_addf(out, "%s", r->first_random.s);
    if (r->n_random > 1)
        hwnas_str_addf(out, " and %zu more", r->n_random - 1);
    hwnas_str_add(out, r->n_random > 1 ? " draw" : " draws");
    hwnas_str_add(out,
                  " values at random: they are constants here, drawn once, and cost no time\n");
}

/* ---- what is no number ---- */

typedef struct odd {
    int64_t n_nan, n_infinite;
} odd;

static odd count_odd(const float *values, int64_t n)
{
    const uint32_t exponent = 0x7F800000, sign = 0x80000000;
    odd found = {0};
    uint32_t any = 0;
    for (int64_t i = 0; i < n; i++) { /* most have none, and this is fast */
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        any |= (uint32_t)((bits & exponent) == exponent);
    }
    for (int64_t i = 0; any && i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        found.n_nan += (bits & ~sign) > exponent;
        found.n_infinite += (bits & ~sign) == exponent;
    }
    return found;
}

/* Infinities are what masks and limits are made of; a product or norm makes NaN of them. */
void hwnas_onnx_doubt_weights(hwnas_str *out, const hwnas_graph *graph)
{
    int *readers = find_readers(graph);
    for (size_t i = 0; i < graph->n_tensors; i++) {
        const hwnas_tensor *t = &graph->tensors[i];
        if (readers[i] < 0 || t->kind != HWNAS_TENSOR_WEIGHT || !t->data)
            continue;
        const hwnas_node *node = &graph->nodes[readers[i]];
        const odd found = count_odd(t->data, hwnas_tensor_count(t));
        const bool is_weight = node->op->class == HWNAS_CLASS_PRODUCT || node->op->max_weights > 0;
        const int64_t n = found.n_nan + (is_weight ? found.n_infinite : 0);
        if (n)
            hwnas_str_addf(out,
                           "weight '%s' of node '%s' (%s) has %s in %" PRId64 " of its %" PRId64
                           " values: what follows from them is no number\n",
                           t->name, node->name, node->op->name,
                           !is_weight || !found.n_infinite ? "NaN"
                           : found.n_nan                   ? "NaN and infinity"
                                                           : "infinity",
                           n, hwnas_tensor_count(t));
    }
    free(readers);
}

void hwnas_onnx_tell_doubts(const hwnas_graph *graph, const char *name)
{
    for (const char *line = graph->doubts; line && *line;) {
        const int n = (int)strcspn(line, "\n");
        hwnas_log(HWNAS_LOG_NOTE, "%s: %.*s", name, n, line);
        line += n + (line[n] == '\n');
    }
}
