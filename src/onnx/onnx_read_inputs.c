/* onnx_read_inputs.c: the inputs of a file, and what its open dimensions become.
 *
 * An open dimension has a name or none; those of one name are one. What the caller says of an input
 * or of a name settles names everywhere, and sums of them. Of the rest one is the batch: that which
 * is called so, else the first of an input, or the second of a sequence's three. */
#define _GNU_SOURCE 1 /* strcasestr() */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "onnx/onnx_reader.h"

typedef hwnas_onnx_reader reader;
typedef Onnx__TensorShapeProto__Dimension dimension;

/* How messages call a dimension that has no name. */
static const char *name_of(const dimension *dim)
{
    return dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM &&
                   !is_empty(dim->dim_param)
               ? dim->dim_param
               : "";
}

/* Some exporters write -1. 0 is an empty tensor, which ONNX has. */
static bool is_open(const dimension *dim)
{
    return dim->value_case != ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE ||
           dim->dim_value == -1;
}

/* NULL: a constant with an input's name, or no tensor of known rank. */
static const Onnx__TensorShapeProto *shape_of(const reader *r, const Onnx__ValueInfoProto *input)
{
    const hwnas_onnx_named *value =
        is_empty(input->name) ? NULL : hwnas_onnx_find_value(r, input->name);
    if (!value || value->constant || !input->type || !input->type->tensor_type ||
        input->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        return NULL;
    return input->type->tensor_type->shape;
}

/* ---- What the caller says ---- */

static const hwnas_onnx_shape *given_for(const reader *r, const char *input)
{
    for (size_t i = 0; r->shapes && i < r->shapes->n; i++)
        if (!strcmp(r->shapes->list[i].input, input))
            return &r->shapes->list[i];
    return NULL;
}

/* "1 x 128" with the open ones by their names, or as "?". */
static char *words_for(const Onnx__TensorShapeProto *shape)
{
    hwnas_str words = {0};
    hwnas_str_add(&words, "");
    for (size_t i = 0; i < shape->n_dim; i++) {
        const dimension *dim = shape->dim[i];
        hwnas_str_add(&words, i ? " x " : "");
        if (!is_open(dim))
            hwnas_str_addf(&words, "%" PRId64, dim->dim_value);
        else
            hwnas_str_add(&words, *name_of(dim) ? name_of(dim) : "?");
    }
    return words.s ? words.s : hwnas_strdup("");
}

static hwnas_status fail_shape(const hwnas_onnx_shape *given, const Onnx__TensorShapeProto *shape,
                               const char *why)
{
    char *words = words_for(shape);
    const hwnas_status status =
        hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL, "the shape that is given for input '%s' %s",
                              given->input, why),
                   "in the file it is %s", words);
    free(words);
    return status;
}

/* What an open name of `length` bytes becomes, or NULL. */
static const hwnas_onnx_bound *find_bound_in(const reader *r, const char *name, size_t length)
{
    for (size_t i = 0; length && i < r->n_bound; i++)
        if (strlen(r->bound[i].name) == length && !memcmp(r->bound[i].name, name, length))
            return &r->bound[i];
    return NULL;
}

static const hwnas_onnx_bound *find_bound(const reader *r, const char *name)
{
    return find_bound_in(r, name, strlen(name));
}

/* Exporters write names that are sums of others: "past + sequence". */
static bool is_sum(const char *name)
{
    return strchr(name, '+') != NULL;
}

/* One part of a sum: a number, or a name that is bound. */
static bool read_term(int64_t *out, const reader *r, const char *text, size_t length)
{
    for (; length && text[0] == ' '; length--)
        text++;
    while (length && text[length - 1] == ' ')
        length--;
    const hwnas_onnx_bound *bound = find_bound_in(r, text, length);
    *out = bound ? bound->value : 0;
    for (size_t i = 0; !bound && i < length; i++) {
        *out = 10 * *out + (text[i] - '0');
        if (text[i] < '0' || text[i] > '9' || *out > INT32_MAX)
            return false;
    }
    return length > 0;
}

/* A sum of which all terms are known. */
static bool read_sum(int64_t *out, const reader *r, const char *name)
{
    int64_t term;
    *out = 0;
    if (!is_sum(name))
        return false;
    for (const char *at = name;; at++) {
        const size_t length = strcspn(at, "+");
        if (!read_term(&term, r, at, length))
            return false;
        *out += term;
        at += length;
        if (!*at)
            return true;
    }
}

/* What a name settles: it is bound, or a sum of such. */
static bool is_settled(int64_t *out, const reader *r, const char *name)
{
    const hwnas_onnx_bound *bound = find_bound(r, name);
    if (bound)
        *out = bound->value;
    return bound || read_sum(out, r, name);
}

static void add_bound(reader *r, const char *name, int64_t value)
{
    r->bound = hwnas_realloc(r->bound, (r->n_bound + 1) * sizeof *r->bound);
    r->bound[r->n_bound++] = (hwnas_onnx_bound){name, value};
}

static hwnas_status bind(reader *r, const hwnas_onnx_shape *given,
                         const Onnx__TensorShapeProto *shape)
{
    if (given->rank != (int)shape->n_dim)
        return fail_shape(given, shape, "has another number of dimensions");
    for (int i = 0; i < given->rank; i++) {
        const dimension *dim = shape->dim[i];
        const hwnas_onnx_bound *known = find_bound(r, name_of(dim));
        if (!is_open(dim) && dim->dim_value != given->dims[i])
            return fail_shape(given, shape, "differs where the file's is fixed");
        if (known && known->value != given->dims[i])
            return fail_shape(given, shape, "gives a dimension of one name two lengths");
        if (!known && is_open(dim) && *name_of(dim))
            add_bound(r, name_of(dim), given->dims[i]);
    }
    return HWNAS_OK;
}

/* Open dimensions are called so. */
static bool is_a_name(const reader *r, const char *name)
{
    for (size_t i = 0; i < r->from->n_input; i++) {
        const Onnx__TensorShapeProto *shape = shape_of(r, r->from->input[i]);
        for (size_t d = 0; shape && d < shape->n_dim; d++)
            if (is_open(shape->dim[d]) && !strcmp(name_of(shape->dim[d]), name))
                return true;
    }
    return false;
}

static hwnas_status fail_two_lengths(const char *name, int64_t a, int64_t b)
{
    return hwnas_fail(HWNAS_E_INPUT, NULL,
                      "the shapes give the dimension '%s' two lengths, %" PRId64 " and %" PRId64,
                      name, a, b);
}

/* A sum that is given itself is what its terms make. */
static hwnas_status check_sums(const reader *r)
{
    int64_t sum;
    for (size_t i = 0; i < r->n_bound; i++)
        if (read_sum(&sum, r, r->bound[i].name) && sum != r->bound[i].value)
            return fail_two_lengths(r->bound[i].name, r->bound[i].value, sum);
    return HWNAS_OK;
}

/* A length that is given for the name of open dimensions; false: none is called so. */
static hwnas_status bind_name(bool *out, reader *r, const hwnas_onnx_shape *given)
{
    *out = given->rank == 1 && is_a_name(r, given->input);
    const hwnas_onnx_bound *known = find_bound(r, given->input);
    if (*out && known && known->value != given->dims[0])
        return fail_two_lengths(given->input, known->value, given->dims[0]);
    if (*out && !known)
        add_bound(r, given->input, given->dims[0]);
    return HWNAS_OK;
}

static hwnas_status fail_unknown(const reader *r, const char *name)
{
    if (is_a_name(r, name))
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL,
                                     "a shape is given for '%s', which is one dimension", name),
                          "give it one length: --shape %s=128", name);
    hwnas_str list = {0};
    for (size_t i = 0; i < r->from->n_input; i++) {
        const Onnx__TensorShapeProto *shape = shape_of(r, r->from->input[i]);
        if (!shape)
            continue;
        char *words = words_for(shape);
        hwnas_str_addf(&list, "%s%s=%s", list.n ? ", " : "", r->from->input[i]->name, words);
        free(words);
    }
    const hwnas_status status = hwnas_hint(
        hwnas_fail(HWNAS_E_INPUT, NULL,
                   "a shape is given for '%s', which is no input and no open dimension", name),
        "its inputs are %s", list.n ? list.s : "constants alone");
    hwnas_str_done(&list);
    return status;
}

static hwnas_status take_given(reader *r)
{
    for (size_t g = 0; r->shapes && g < r->shapes->n; g++) {
        const Onnx__TensorShapeProto *shape = NULL;
        for (size_t i = 0; i < r->from->n_input && !shape; i++)
            if (!is_empty(r->from->input[i]->name) &&
                !strcmp(r->from->input[i]->name, r->shapes->list[g].input))
                shape = shape_of(r, r->from->input[i]);
        bool is_name = false;
        if (shape)
            TRY(bind(r, &r->shapes->list[g], shape));
        else
            TRY(bind_name(&is_name, r, &r->shapes->list[g]));
        if (!shape && !is_name)
            return fail_unknown(r, r->shapes->list[g].input);
    }
    return check_sums(r);
}

/* ---- The batch ---- */

/* One letter says it of the first two dimensions alone. */
static bool is_called_batch(const char *name, size_t at)
{
    static const char *const names[] = {"n", "b", "bs", "bsz", NULL};
    if (is_sum(name))
        return false;
    for (size_t i = 0; names[i] && at < 2; i++)
        if (!strcasecmp(name, names[i]))
            return true;
    return strcasestr(name, "batch") != NULL;
}

/* The first open dimension that is called the batch. */
static const char *find_name(const reader *r)
{
    for (size_t i = 0; i < r->from->n_input; i++) {
        const Onnx__TensorShapeProto *shape = shape_of(r, r->from->input[i]);
        for (size_t d = 0; shape && d < shape->n_dim; d++)
            if (is_open(shape->dim[d]) && is_called_batch(name_of(shape->dim[d]), d))
                return name_of(shape->dim[d]);
    }
    return NULL;
}

static bool is_called_length(const char *name)
{
    static const char *const words[] = {"seq", "len", "time", "tok", NULL};
    for (size_t i = 0; words[i]; i++)
        if (strcasestr(name, words[i]))
            return true;
    return false;
}

/* Recurrent networks take [steps, batch, features]. */
static bool is_second_of_sequence(const Onnx__TensorShapeProto *shape)
{
    return shape->n_dim == 3 && !is_open(shape->dim[0]) && shape->dim[0]->dim_value > 1 &&
           is_open(shape->dim[1]) && !is_open(shape->dim[2]) &&
           !is_called_length(name_of(shape->dim[1]));
}

/* Whether another dimension of the same input is called the batch. */
static bool has_batch(const reader *r, const Onnx__TensorShapeProto *shape)
{
    for (size_t i = 0; r->batch_name && i < shape->n_dim; i++)
        if (is_open(shape->dim[i]) && !strcmp(name_of(shape->dim[i]), r->batch_name))
            return true;
    return false;
}

static bool is_batch(const reader *r, const Onnx__TensorShapeProto *shape, size_t at)
{
    if (has_batch(r, shape))
        return !strcmp(name_of(shape->dim[at]), r->batch_name);
    return !is_sum(name_of(shape->dim[at])) && at == (is_second_of_sequence(shape) ? 1 : 0);
}

/* ---- What samples say ---- */

/* Of a constant's name, or of another rank: nothing. */
static const hwnas_onnx_sample *sample_of(const reader *r, const char *input, size_t rank)
{
    const hwnas_onnx_sample *found = NULL;
    bool is_first = false;
    for (size_t i = 0; i < r->from->n_input; i++)
        if (shape_of(r, r->from->input[i])) {
            is_first = !strcmp(r->from->input[i]->name, input);
            break;
        }
    for (size_t i = 0; r->shapes && i < r->shapes->n_samples; i++) {
        const hwnas_onnx_sample *sample = &r->shapes->samples[i];
        if (sample->rank == (int)rank &&
            (sample->input ? !strcmp(sample->input, input) : is_first && !found))
            found = sample;
    }
    return found;
}

/* The first dimension of what is given for the inputs differs: it counts no samples. */
static bool are_whole(const reader *r)
{
    int64_t first = 0;
    for (size_t i = 0; i < r->from->n_input; i++) {
        const Onnx__TensorShapeProto *shape = shape_of(r, r->from->input[i]);
        const hwnas_onnx_sample *sample =
            shape ? sample_of(r, r->from->input[i]->name, shape->n_dim) : NULL;
        if (sample && first && sample->dims[0] != first)
            return true;
        first = sample ? sample->dims[0] : first;
    }
    return false;
}

/* Open dimensions with names become what they are in the samples. */
static void take_samples(reader *r)
{
    r->samples_are_whole = are_whole(r);
    for (size_t i = 0; i < r->from->n_input; i++) {
        const Onnx__TensorShapeProto *shape = shape_of(r, r->from->input[i]);
        const hwnas_onnx_sample *sample =
            shape ? sample_of(r, r->from->input[i]->name, shape->n_dim) : NULL;
        for (size_t d = r->samples_are_whole ? 0 : 1; sample && d < shape->n_dim; d++) {
            const char *name = name_of(shape->dim[d]);
            const bool is_of_batch = r->batch_name && !strcmp(name, r->batch_name);
            if (is_open(shape->dim[d]) && *name && !is_sum(name) && !find_bound(r, name) &&
                (r->samples_are_whole || !is_of_batch))
                add_bound(r, name, sample->dims[d]);
        }
    }
}

hwnas_status hwnas_onnx_settle_shapes(reader *r)
{
    TRY(take_given(r));
    r->batch_name = find_name(r);
    take_samples(r);
    if (r->batch_name && !find_bound(r, r->batch_name))
        add_bound(r, r->batch_name, r->batch ? r->batch : 1);
    return HWNAS_OK;
}

/* ---- Inputs ---- */

/* "h=...,w=...": the names of all dimensions that nothing says the length of, so that they need not
 * be found one failure after the other. */
static void add_open_names(hwnas_str *out, const reader *r)
{
    for (size_t i = 0; i < r->from->n_input; i++) {
        const char *input = r->from->input[i]->name;
        const Onnx__TensorShapeProto *shape = shape_of(r, r->from->input[i]);
        for (size_t d = 0; shape && !given_for(r, input) && d < shape->n_dim; d++) {
            const char *name = name_of(shape->dim[d]);
            int64_t settled;
            if (!is_open(shape->dim[d]) || !*name || is_sum(name) || is_batch(r, shape, d) ||
                is_settled(&settled, r, name))
                continue;
            hwnas_str item = {0};
            hwnas_str_addf(&item, ",%s=...", name);
            if (!out->s || !strstr(out->s, item.s))
                hwnas_str_add(out, item.s);
            hwnas_str_done(&item);
        }
    }
}

static hwnas_status fail_open(const reader *r, const Onnx__TensorShapeProto *shape, size_t at,
                              const char *input)
{
    char *words = words_for(shape);
    const char *name = name_of(shape->dim[at]);
    hwnas_str names = {0};
    add_open_names(&names, r);
    const hwnas_status status =
        hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL, "dimension %zu of input '%s' is open%s%s%s", at,
                              input, *name ? ": '" : "", name, *name ? "'" : ""),
                   "in the file it is %s; --shape %s=... of profile, compare, run, evaluate and "
                   "export says how large it is%s%s%s",
                   words, input, names.s ? ", or by names --shape '" : "",
                   names.s ? names.s + 1 : "", names.s ? "'" : "");
    hwnas_str_done(&names);
    free(words);
    return status;
}

static hwnas_status read_dims(int64_t *dims, reader *r, const Onnx__TensorShapeProto *shape,
                              const char *name)
{
    const hwnas_onnx_shape *given = given_for(r, name);
    const hwnas_onnx_sample *sample = sample_of(r, name, shape->n_dim);
    for (size_t i = 0; i < shape->n_dim; i++) {
        const dimension *dim = shape->dim[i];
        int64_t settled;
        const bool is_of_batch = is_batch(r, shape, i);
        if (!is_open(dim))
            dims[i] = dim->dim_value;
        else if (given)
            dims[i] = given->dims[i];
        else if (is_settled(&settled, r, name_of(dim)))
            dims[i] = settled;
        else if (sample && (r->samples_are_whole || (i && !is_of_batch)))
            dims[i] = sample->dims[i];
        else if (is_of_batch)
            dims[i] = r->batch ? r->batch : 1;
        else
            return fail_open(r, shape, i, name);
        if (!r->own_batch && is_open(dim) && is_of_batch &&
            (!r->batch_name || !strcmp(name_of(dim), r->batch_name)))
            r->own_batch = dims[i];
    }
    if (!r->first_length && shape->n_dim)
        r->first_length = dims[0];
    return HWNAS_OK;
}

hwnas_status hwnas_onnx_read_input(reader *r, const Onnx__ValueInfoProto *from)
{
    hwnas_onnx_named *value = hwnas_onnx_find_value(r, from->name);
    if (value->constant)
        return HWNAS_OK;
    const Onnx__TensorShapeProto *shape = shape_of(r, from);
    if (!shape)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "input '%s' is not a tensor of known shape",
                          from->name);
    const Onnx__TypeProto__Tensor *type = from->type->tensor_type;
    hwnas_dtype dtype;
    TRY(hwnas_onnx_dtype(&dtype, type->has_elem_type ? type->elem_type : 0, "input", from->name));
    if (shape->n_dim > HWNAS_MAX_RANK)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "input '%s' has %zu dimensions; %d go",
                          from->name, shape->n_dim, HWNAS_MAX_RANK);
    int64_t dims[HWNAS_MAX_RANK] = {0};
    TRY(read_dims(dims, r, shape, from->name));
    /* Such as the cache before the first token. */
    if (hwnas_onnx_give_nothing(r, from->name, (int)shape->n_dim, dims)) {
        hwnas_graph_add_absent(r->graph, from->name);
        return HWNAS_OK;
    }
    return hwnas_graph_add_input(&value->tensor, r->graph, from->name, dtype, (int)shape->n_dim,
                                 dims);
}
