#include "profile/shapes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

typedef struct parser {
    const char *text, *at;
    hwnas_arena *arena;
    size_t n_inputs, n_variants; /* 0: no braces yet */
    hwnas_onnx_shape inputs[HWNAS_SHAPE_INPUTS];
    int64_t (*lengths)[HWNAS_MAX_RANK][HWNAS_SHAPE_VARIANTS]; /* by input and dimension */
} parser;

static const int64_t MAX_LENGTH = INT32_MAX;
static const int64_t OF_ALL = -1; /* behind a length: it is that of all variants */

static hwnas_status fail(const parser *p, const char *why)
{
    return hwnas_hint(
        hwnas_fail(HWNAS_E_USAGE, NULL, "--shape '%.80s': %s at '%.20s'", p->text, why, p->at),
        "write --shape ids=1x128,mask=1x128, or for a sweep --shape ids=1x{32,64}");
}

static hwnas_status read_length(int64_t *out, parser *p)
{
    char *end;
    errno = 0;
    const long long value = strtoll(p->at, &end, 10);
    if (*p->at < '0' || *p->at > '9' || errno || value > MAX_LENGTH)
        return fail(p, "a length of 0 to 2147483647 is missing");
    p->at = end;
    *out = value;
    return HWNAS_OK;
}

/* "{32,64}": as many as in the braces before. */
static hwnas_status read_braces(int64_t out[HWNAS_SHAPE_VARIANTS], parser *p)
{
    const char *start = p->at;
    size_t n = 0;
    do {
        p->at++;
        if (n == HWNAS_SHAPE_VARIANTS)
            return fail(p, "there are more than 16 lengths in braces");
        TRY(read_length(&out[n++], p));
    } while (*p->at == ',');
    if (*p->at != '}')
        return fail(p, "a brace is not closed");
    p->at++;
    if (p->n_variants && p->n_variants != n) {
        p->at = start;
        return fail(p, "braces have different numbers of lengths");
    }
    p->n_variants = n;
    return HWNAS_OK;
}

static hwnas_status read_dim(parser *p, hwnas_onnx_shape *input, int64_t *lengths)
{
    if (input->rank == HWNAS_MAX_RANK)
        return fail(p, "a shape has more dimensions than an array can have");
    if (*p->at == '{')
        return read_braces(lengths, p);
    TRY(read_length(&lengths[0], p));
    lengths[1] = OF_ALL;
    return HWNAS_OK;
}

/* "ids=1x{32,64}" */
static hwnas_status read_input(parser *p)
{
    const size_t length = strcspn(p->at, "=");
    if (!length || !p->at[length])
        return fail(p, "a name and '=' are missing");
    if (p->n_inputs == HWNAS_SHAPE_INPUTS)
        return fail(p, "there are more than 64 inputs");
    hwnas_onnx_shape *input = &p->inputs[p->n_inputs];
    input->input = hwnas_arena_string(p->arena, p->at, length);
    for (size_t i = 0; i < p->n_inputs; i++)
        if (!strcmp(p->inputs[i].input, input->input))
            return fail(p, "an input is named twice");
    p->at += length;
    do {
        p->at++; /* '=' or 'x' */
        TRY(read_dim(p, input, p->lengths[p->n_inputs][input->rank]));
        input->rank++;
    } while (*p->at == 'x');
    p->n_inputs++;
    return HWNAS_OK;
}

/* The k-th set. */
static void make_set(hwnas_shape_set *out, const parser *p, size_t k)
{
    hwnas_str text = {0};
    out->n = p->n_inputs;
    out->list = hwnas_arena_copy(p->arena, p->inputs, p->n_inputs * sizeof *p->inputs);
    for (size_t i = 0; i < p->n_inputs; i++) {
        hwnas_onnx_shape *input = &out->list[i];
        hwnas_str_addf(&text, "%s%s", i ? "," : "", input->input);
        for (int d = 0; d < input->rank; d++) {
            const int64_t *lengths = p->lengths[i][d];
            input->dims[d] = lengths[1] == OF_ALL ? lengths[0] : lengths[k];
            hwnas_str_addf(&text, "%s%" PRId64, d ? "x" : "=", input->dims[d]);
        }
    }
    out->text = hwnas_arena_string(p->arena, text.s, text.n);
    hwnas_str_done(&text);
}

hwnas_status hwnas_shapes_parse(hwnas_shape_set sets[HWNAS_SHAPE_VARIANTS], size_t *n,
                                hwnas_arena *arena, const char *text)
{
    hwnas_status status;
    parser p = {.text = text, .at = text, .arena = arena};
    p.lengths = hwnas_alloc(HWNAS_SHAPE_INPUTS * sizeof *p.lengths);
    TRY_OUT(read_input(&p));
    while (*p.at) {
        if (*p.at != ',') {
            status = fail(&p, "something stands behind a shape");
            goto out;
        }
        p.at++;
        TRY_OUT(read_input(&p));
    }
    *n = p.n_variants ? p.n_variants : 1;
    for (size_t k = 0; k < *n; k++)
        make_set(&sets[k], &p, k);
out:
    free(p.lengths);
    return status;
}
