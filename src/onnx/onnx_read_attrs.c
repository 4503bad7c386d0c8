/* onnx_read_attrs.c: a node's attributes, by its operator's table; ours, and those that must say
 * what we do anyway. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnx/onnx_reader.h"

typedef hwnas_onnx_reader reader;

/* The decimal number that was meant by a float: 1e-5, not 9.99999974738e-06. */
static double shortest(float number)
{
    char text[32];
    double found = number;
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)number);
        found = strtod(text, NULL);
        if ((float)found == number)
            break;
    }
    return found;
}

hwnas_status hwnas_onnx_unsupported(const Onnx__NodeProto *node, const char *attribute,
                                    const char *what)
{
    const hwnas_status status = hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "%s: attribute '%s' %s",
                                           hwnas_onnx_describe(node).s, attribute, what);
    return strcmp(attribute, "training_mode")
               ? status
               : hwnas_hint(status,
                            "call model.eval() before the export, and leave its training=... "
                            "out");
}

/* The ONNX type of an attribute's kind. */
static const Onnx__AttributeProto__AttributeType attr_types[] = {
    [HWNAS_ATTR_INT] = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT,
    [HWNAS_ATTR_INTS] = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS,
    [HWNAS_ATTR_BOOL] = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT,
    [HWNAS_ATTR_NUMBER] = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT,
};

static hwnas_status check_range(const hwnas_attr *attr, const hwnas_attr_row *row,
                                const Onnx__NodeProto *node)
{
    bool is_number = row->kind == HWNAS_ATTR_NUMBER;
    for (int i = 0; i < (is_number ? 1 : attr->n); i++) {
        double number = is_number ? attr->number : (double)attr->ints[i];
        if (!(number >= row->low && number <= row->high))
            return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                              "%s: attribute '%s' is %g; %g to %g is understood",
                              hwnas_onnx_describe(node).s, row->onnx, number, row->low, row->high);
    }
    return HWNAS_OK;
}

static hwnas_status read_word(hwnas_attr *out, const hwnas_attr_row *row,
                              const Onnx__AttributeProto *from, const Onnx__NodeProto *node)
{
    for (int i = 0; row->onnx_words[i]; i++)
        if (from->type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING &&
            from->s.len == strlen(row->onnx_words[i]) &&
            !memcmp(from->s.data, row->onnx_words[i], from->s.len)) {
            *out = (hwnas_attr){.is_set = true, .n = 1, .ints = {i}};
            return HWNAS_OK;
        }
    return hwnas_onnx_unsupported(node, row->onnx, "has a value that we cannot compute");
}

static hwnas_status read_attr(hwnas_attr *out, const hwnas_attr_row *row,
                              const Onnx__AttributeProto *from, const Onnx__NodeProto *node)
{
    hwnas_attr attr = {.is_set = true};
    if (row->onnx_words)
        return read_word(out, row, from, node);
    if (from->type != attr_types[row->kind])
        return hwnas_fail(HWNAS_E_INPUT, NULL, "%s: attribute '%s' is of the wrong type",
                          hwnas_onnx_describe(node).s, row->onnx);
    if (row->kind == HWNAS_ATTR_NUMBER) {
        attr.number = shortest(from->f);
    } else if (row->kind == HWNAS_ATTR_INTS) {
        if (row->count ? from->n_ints != (size_t)row->count : from->n_ints > HWNAS_MAX_RANK)
            return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                              "%s: attribute '%s' has %zu values; %d are understood",
                              hwnas_onnx_describe(node).s, row->onnx, from->n_ints,
                              row->count ? row->count : HWNAS_MAX_RANK);
        attr.n = (int)from->n_ints;
        memcpy(attr.ints, from->ints, from->n_ints * sizeof *from->ints);
    } else {
        attr.n = 1;
        attr.ints[0] = from->i;
    }
    TRY(check_range(&attr, row, node));
    *out = attr;
    return HWNAS_OK;
}

/* An attribute that is not ours must say what we do anyway. */
static hwnas_status check_foreign(const hwnas_onnx_row *row, const Onnx__AttributeProto *from,
                                  const Onnx__NodeProto *node)
{
    for (; row && row->name; row++)
        if (!strcmp(row->name, from->name))
            break;
    if (!row || !row->name)
        return hwnas_onnx_unsupported(node, from->name, "is unknown to us");
    bool fits;
    if (row->is_ignored)
        fits = true;
    else if (row->text)
        fits = from->s.len == strlen(row->text) && !memcmp(from->s.data, row->text, from->s.len);
    else
        fits = from->type == attr_types[row->kind] &&
               (row->kind == HWNAS_ATTR_INTS ||
                (row->kind == HWNAS_ATTR_NUMBER ? from->f : (double)from->i) == row->value);
    for (size_t i = 0; row->kind == HWNAS_ATTR_INTS && i < from->n_ints; i++)
        fits = fits && (double)from->ints[i] == row->value;
    return fits ? HWNAS_OK
                : hwnas_onnx_unsupported(node, from->name, "has a value that we cannot compute");
}

/* Attributes that are absent have ONNX's default; most of the time that is ours. */
static hwnas_status set_absent(hwnas_attr *attrs, const hwnas_op *op, const Onnx__NodeProto *node)
{
    for (int i = 0; op->attrs[i].name; i++) {
        if (!attrs[i].is_set && op->attrs[i].is_required_by_onnx)
            return hwnas_fail(HWNAS_E_INPUT, NULL, "%s: attribute '%s' is absent",
                              hwnas_onnx_describe(node).s, op->attrs[i].onnx);
        if (!attrs[i].is_set && op->attrs[i].onnx_fallback)
            attrs[i] = (hwnas_attr){.is_set = true,
                                    .n = op->attrs[i].kind != HWNAS_ATTR_NUMBER,
                                    .number = *op->attrs[i].onnx_fallback,
                                    .ints = {hwnas_onnx_whole(*op->attrs[i].onnx_fallback)}};
    }
    for (const hwnas_onnx_row *row = op->onnx_rows; row && row->name; row++) {
        bool is_given = row->is_ignored || row->text || row->value == row->fallback;
        for (size_t i = 0; i < node->n_attribute; i++)
            is_given = is_given || !strcmp(node->attribute[i]->name, row->name);
        if (!is_given)
            return hwnas_onnx_unsupported(node, row->name,
                                          "is absent, and its default we cannot compute");
    }
    return HWNAS_OK;
}

int64_t hwnas_onnx_whole(double value)
{
    return isnan(value)       ? 0
           : value >= 0x1p63  ? INT64_MAX
           : value <= -0x1p63 ? INT64_MIN
                              : (int64_t)value;
}

/* An attribute that ONNX takes as a constant input. */
static hwnas_status read_attr_input(hwnas_attr *out, reader *r, const hwnas_attr_row *row,
                                    const Onnx__NodeProto *node)
{
    const hwnas_tensor *from = NULL;
    /* No values in a row are the shape of a scalar, and no tensor of ours. */
    if (row->kind == HWNAS_ATTR_INTS && !row->count &&
        hwnas_onnx_is_nothing(r, node->input[row->onnx_input])) {
        *out = (hwnas_attr){.is_set = true};
        return HWNAS_OK;
    }
    TRY(hwnas_onnx_constant(&from, r, node->input[row->onnx_input], hwnas_onnx_describe(node).s));
    const bool is_number = row->kind == HWNAS_ATTR_NUMBER;
    if (!from)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "%s: input '%s', its %s, must be a constant",
                          hwnas_onnx_describe(node).s, node->input[row->onnx_input], row->onnx);
    if (!is_number && !hwnas_dtype_is_whole(from->dtype))
        return hwnas_onnx_unsupported(node, row->onnx, "is not a constant of its type");
    const int64_t n = hwnas_tensor_count(from);
    const bool is_list = row->kind == HWNAS_ATTR_INTS;
    if (n > HWNAS_MAX_RANK || (is_list && row->count && n != row->count) || (!is_list && n != 1))
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "%s: attribute '%s' has %" PRId64 " values",
                          hwnas_onnx_describe(node).s, row->onnx, n);
    hwnas_attr attr = {.is_set = true, .n = is_number ? 0 : (int)n};
    if (is_number)
        attr.number = shortest(from->data[0]);
    for (int i = 0; i < attr.n; i++)
        attr.ints[i] = hwnas_onnx_item(r, node->input[row->onnx_input], from, i);
    TRY(check_range(&attr, row, node));
    *out = attr;
    return HWNAS_OK;
}

hwnas_status hwnas_onnx_read_attrs(hwnas_attr **out, reader *r, const hwnas_op *op,
                               const Onnx__NodeProto *node)
{
    int n = 0;
    while (op->attrs[n].name)
        n++;
    hwnas_attr *attrs = hwnas_arena_alloc(r->graph->arena, ((size_t)n + 1) * sizeof *attrs);
    for (size_t a = 0; a < node->n_attribute; a++) {
        const Onnx__AttributeProto *from = node->attribute[a];
        if (is_empty(from->name) || from->ref_attr_name)
            return hwnas_fail(HWNAS_E_INPUT, NULL, "%s has an attribute without a name or value",
                              hwnas_onnx_describe(node).s);
        int i = 0;
        while (i < n && (!op->attrs[i].onnx || strcmp(op->attrs[i].onnx, from->name)))
            i++;
        if (i == n)
            TRY(check_foreign(op->onnx_rows, from, node));
        else
            TRY(read_attr(&attrs[i], &op->attrs[i], from, node));
    }
    for (int i = 0; i < n; i++) {
        int input = op->attrs[i].onnx_input;
        if (input && (size_t)input < node->n_input && !is_empty(node->input[input]))
            TRY(read_attr_input(&attrs[i], r, &op->attrs[i], node));
    }
    TRY(set_absent(attrs, op, node));
    *out = attrs;
    return HWNAS_OK;
}
