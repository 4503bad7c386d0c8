/* onnx_read_names.c: what the names of a file stand for.
 *
 * Every name is looked up in one sorted list: what stands for a constant, an input, or the output
 * of a node. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnx/onnx_reader.h"

typedef hwnas_onnx_named named;
typedef hwnas_onnx_reader reader;

hwnas_onnx_text hwnas_onnx_describe(const Onnx__NodeProto *node)
{
    hwnas_onnx_text text;
    const char *output = node->n_output ? node->output[0] : "";
    const char *name = is_empty(node->name) ? output : node->name;
    snprintf(text.s, sizeof text.s, "node '%.100s' (%.40s)", name,
             is_empty(node->op_type) ? "no operator" : node->op_type);
    return text;
}

static int compare_values(const void *a, const void *b)
{
    const named *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    /* A constant before an input of its name, which only repeats it. */
    return order ? order : (y->constant != NULL) - (x->constant != NULL);
}

static hwnas_status add_value(reader *r, const char *name, named value)
{
    if (is_empty(name))
        return hwnas_fail(HWNAS_E_INPUT, NULL, "a constant or an input of the graph has no name");
    value.name = name;
    value.tensor = HWNAS_ONNX_NOT_MADE;
    r->values[r->n_values++] = value;
    return HWNAS_OK;
}

/* The graph of an attribute, as of an If; else NULL. */
static const Onnx__GraphProto *branch_of(const Onnx__NodeProto *node, size_t i)
{
    return node->op_type && !strcmp(node->op_type, "If") ? node->attribute[i]->g : NULL;
}

/* How many names a graph and its branches bring. */
static size_t count_values(const Onnx__GraphProto *from)
{
    size_t n = from->n_initializer + from->n_input;
    for (size_t i = 0; i < from->n_node; i++) {
        n += from->node[i]->n_output;
        for (size_t a = 0; a < from->node[i]->n_attribute; a++)
            if (branch_of(from->node[i], a))
                n += count_values(branch_of(from->node[i], a));
    }
    return n;
}

static hwnas_status add_values(reader *r, const Onnx__GraphProto *from)
{
    for (size_t i = 0; i < from->n_initializer; i++)
        TRY(add_value(r, from->initializer[i]->name, (named){.constant = from->initializer[i]}));
    for (size_t i = 0; i < from->n_input; i++)
        TRY(add_value(r, from->input[i]->name, (named){.input = from->input[i]}));
    for (size_t i = 0; i < from->n_node; i++) {
        const Onnx__NodeProto *node = from->node[i];
        for (size_t o = 0; o < node->n_output; o++)
            if (!is_empty(node->output[o])) /* an empty one is left out */
                TRY(add_value(r, node->output[o],
                              (named){.constant = hwnas_onnx_constant_node(node),
                                      .is_extra = o > 0}));
        for (size_t a = 0; a < node->n_attribute; a++)
            if (branch_of(node, a))
                TRY(add_values(r, branch_of(node, a)));
    }
    return HWNAS_OK;
}

static void note_reader(const reader *r, const char *name)
{
    named *value = is_empty(name) ? NULL : hwnas_onnx_find_value(r, name);
    if (value)
        value->is_read = true;
}

static void note_readers(const reader *r, const Onnx__GraphProto *from)
{
    for (size_t i = 0; i < from->n_output; i++)
        note_reader(r, from->output[i]->name);
    for (size_t i = 0; i < from->n_node; i++) {
        const Onnx__NodeProto *node = from->node[i];
        for (size_t k = 0; k < node->n_input; k++)
            note_reader(r, node->input[k]);
        for (size_t a = 0; a < node->n_attribute; a++)
            if (branch_of(node, a))
                note_readers(r, branch_of(node, a));
    }
}

bool hwnas_onnx_is_read(const reader *r, const Onnx__NodeProto *node, size_t i)
{
    return i < node->n_output && !is_empty(node->output[i]) &&
           hwnas_onnx_find_value(r, node->output[i])->is_read;
}

hwnas_status hwnas_onnx_collect_values(reader *r)
{
    r->values = hwnas_alloc((count_values(r->from) + 1) * sizeof *r->values);
    TRY(add_values(r, r->from));
    qsort(r->values, r->n_values, sizeof *r->values, compare_values);
    size_t n = 0;
    for (size_t i = 0; i < r->n_values; i++) {
        const named *last = n ? &r->values[n - 1] : NULL;
        if (last && !strcmp(last->name, r->values[i].name)) {
            if (last->constant && r->values[i].input)
                continue; /* files before IR 4 list constants as inputs */
            return hwnas_fail(HWNAS_E_INPUT, NULL, "the name '%s' stands for two things",
                              last->name);
        }
        r->values[n++] = r->values[i];
    }
    r->n_values = n;
    note_readers(r, r->from);
    return HWNAS_OK;
}

static int compare_name(const void *name, const void *value)
{
    return strcmp(name, ((const named *)value)->name);
}

named *hwnas_onnx_find_value(const reader *r, const char *name)
{
    return bsearch(name, r->values, r->n_values, sizeof *r->values, compare_name);
}

named *hwnas_onnx_find_origin(const reader *r, const char *name)
{
    named *value = is_empty(name) ? NULL : hwnas_onnx_find_value(r, name);
    return value && value->same_as ? value->same_as : value;
}

static int compare_strings(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void hwnas_onnx_collect_node_names(reader *r)
{
    r->node_names = hwnas_alloc(r->from->n_node * sizeof *r->node_names);
    for (size_t i = 0; i < r->from->n_node; i++)
        if (!is_empty(r->from->node[i]->name))
            r->node_names[r->n_node_names++] = r->from->node[i]->name;
    qsort(r->node_names, r->n_node_names, sizeof *r->node_names, compare_strings);
}

/* ONNX lets nodes share names, with each other and with values, or have none; a graph does not.
 * Such a node goes by the name of its output. */
const char *hwnas_onnx_node_name(const reader *r, const Onnx__NodeProto *node)
{
    const char *output = node->output[0], *name = node->name;
    bool is_own = false; /* the name of one of its outputs */
    for (size_t i = 0; i < node->n_output; i++) {
        if (is_empty(output))
            output = node->output[i];
        is_own = is_own || (name && node->output[i] && !strcmp(name, node->output[i]));
    }
    if (is_empty(name) || (!is_own && hwnas_onnx_find_value(r, name)))
        return output;
    const char **end = r->node_names + r->n_node_names;
    const char **at = bsearch(&name, r->node_names, r->n_node_names, sizeof name, compare_strings);
    if (!at)
        return output; /* of a branch */
    bool is_shared =
        (at > r->node_names && !strcmp(at[-1], name)) || (at + 1 < end && !strcmp(at[1], name));
    return is_shared ? output : name;
}

hwnas_status hwnas_onnx_resolve(named **out, const reader *r, const char *name, const char *who)
{
    named *found = hwnas_onnx_find_value(r, name);
    if (!found)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "%s reads '%s', which nothing makes", who, name);
    if (found->is_extra)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                          "%s reads '%s', a second output, and we make only the first", who, name);
    if (found->same_as)
        found = found->same_as;
    if (found->is_missing)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "%s reads '%s', which is left out", who, name);
    if (found->is_empty)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "%s reads '%s', which has no values", who,
                          name);
    if (!found->constant && found->tensor == HWNAS_ONNX_NOT_MADE)
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, NULL, "%s reads '%s' before it is made", who, name),
            "ONNX wants its nodes in the order in which they can be computed");
    *out = found;
    return HWNAS_OK;
}

hwnas_status hwnas_onnx_rename(reader *r, const char *name, const char *from, const char *who)
{
    named *origin = hwnas_onnx_find_origin(r, from), *to = hwnas_onnx_find_value(r, name);
    if (!hwnas_onnx_is_nothing(r, from))
        TRY(hwnas_onnx_resolve(&origin, r, from, who));
    to->same_as = origin;
    to->is_extra = false;
    return HWNAS_OK;
}
