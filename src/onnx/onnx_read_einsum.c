/* onnx_read_einsum.c: sums of products over indices that are written as letters.
 *
 * Of two tensors, the letters are of four kinds: in both and kept (a batch), in both and summed, in
 * the first alone, in the second alone. So they are a matrix product of tensors whose dimensions
 * are put in that order; where none is summed, a product of elements. More tensors are taken from
 * the left, two at a time, as PyTorch and ONNX Runtime do. */
#include <string.h>

#include "onnx/onnx_build.h"

typedef hwnas_onnx_builder builder;

typedef struct term {
    int n;
    char letters[HWNAS_MAX_RANK + 1]; /* those of "..." are digits */
} term;

/* Reads letters from `at` to one of `ends`; `rank` of the tensor says how many dimensions "..."
 * stands for. */
static const char *read_term(term *out, const char *at, const char *ends, int rank, int *n_dots)
{
    int n_letters = 0;
    for (const char *c = at; *c && !strchr(ends, *c); c++)
        n_letters += *c != '.' && *c != ' ';
    *out = (term){0};
    while (*at && !strchr(ends, *at)) {
        if (*at == ' ') {
            at++;
            continue;
        }
        if (!strncmp(at, "...", 3)) {
            const int dots = rank < 0 ? *n_dots : rank - n_letters;
            if (dots < 0 || out->n + dots > HWNAS_MAX_RANK)
                return NULL;
            *n_dots = dots > *n_dots ? dots : *n_dots;
            for (int i = 0; i < dots; i++) /* aligned at the last */
                out->letters[out->n++] = (char)('0' + 9 - dots + i);
            at += 3;
            continue;
        }
        if (out->n == HWNAS_MAX_RANK || *at == '.')
            return NULL;
        out->letters[out->n++] = *at++;
    }
    return at;
}

static bool has(const term *t, char letter)
{
    return memchr(t->letters, letter, (size_t)t->n) != NULL;
}

static bool has_twice(const term *t)
{
    for (int i = 0; i < t->n; i++)
        if (memchr(t->letters + i + 1, t->letters[i], (size_t)(t->n - i - 1)))
            return true;
    return false;
}

/* Sums over the letters that nothing else has. */
static int sum_away(builder *b, int x, term *t, const term *other, const term *out)
{
    int64_t axes[HWNAS_MAX_RANK];
    int n = 0;
    term left = {0};
    for (int i = 0; i < t->n; i++)
        if (has(out, t->letters[i]) || has(other, t->letters[i]))
            left.letters[left.n++] = t->letters[i];
        else
            axes[n++] = i;
    *t = left;
    return n ? hwnas_onnx_reduce(b, HWNAS_OP_REDUCE_SUM, x, n, axes, false) : x;
}

/* Puts the dimensions in the order of the letters. */
static int order(builder *b, int x, const term *from, const term *to)
{
    int64_t places[HWNAS_MAX_RANK];
    for (int i = 0; i < to->n; i++) {
        const char *found = memchr(from->letters, to->letters[i], (size_t)from->n);
        places[i] = found ? found - from->letters : 0;
    }
    return hwnas_onnx_transpose(b, x, to->n, places);
}

static void append(term *to, const term *from, const term *with, bool is_with, const term *kept,
                   bool is_kept)
{
    for (int i = 0; i < from->n && to->n < HWNAS_MAX_RANK; i++)
        if (has(with, from->letters[i]) == is_with && has(kept, from->letters[i]) == is_kept)
            to->letters[to->n++] = from->letters[i];
}

static int64_t product(const hwnas_tensor *t, int from, int n)
{
    int64_t all = 1;
    for (int i = from; i < from + n; i++)
        all *= t->dims[i];
    return all;
}

static bool have_same_sizes(builder *b, int x, int y, const term *a, const term *c)
{
    const hwnas_tensor p = hwnas_onnx_tensor(b, x), q = hwnas_onnx_tensor(b, y);
    for (int i = 0; i < a->n; i++) {
        const char *found = memchr(c->letters, a->letters[i], (size_t)c->n);
        if (found && p.dims[i] != q.dims[found - c->letters]) {
            hwnas_onnx_refuse(b, "equation", "has a letter of two sizes");
            return false;
        }
    }
    return true;
}

/* Puts the dimensions in the order of `to`, with 1 for each letter that `from` lacks. */
static int spread(builder *b, int x, const term *from, const term *to)
{
    term there = {0};
    append(&there, to, from, true, to, true);
    x = order(b, x, from, &there);
    const hwnas_tensor t = hwnas_onnx_tensor(b, x);
    int64_t dims[HWNAS_MAX_RANK];
    for (int i = 0, k = 0; i < to->n; i++)
        dims[i] = has(from, to->letters[i]) ? t.dims[k++] : 1;
    return hwnas_onnx_reshape(b, x, to->n, dims);
}

/* `n` says how many letters are in both and kept, summed, in the first alone, in the second. */
static int matrix_product(builder *b, int x, int y, const int n[4])
{
    const hwnas_tensor p = hwnas_onnx_tensor(b, x), q = hwnas_onnx_tensor(b, y);
    const int64_t batch = product(&p, 0, n[0]), summed = product(&q, n[0], n[1]);
    x = hwnas_onnx_reshape(b, x, 3, (int64_t[]){batch, product(&p, n[0], n[2]), summed});
    y = hwnas_onnx_reshape(b, y, 3, (int64_t[]){batch, summed, product(&q, n[0] + n[1], n[3])});
    x = hwnas_onnx_make(b, HWNAS_OP_MATMUL, NULL, x, y);
    int64_t dims[HWNAS_MAX_RANK];
    memcpy(dims, p.dims, (size_t)(n[0] + n[2]) * sizeof *dims);
    memcpy(dims + n[0] + n[2], q.dims + n[0] + n[1], (size_t)n[3] * sizeof *dims);
    return hwnas_onnx_reshape(b, x, n[0] + n[2] + n[3], dims);
}

static int multiply(builder *b, int x, int y, term a, term c, const term *out)
{
    x = sum_away(b, x, &a, &c, out);
    y = sum_away(b, y, &c, &a, out);
    term batch = {0}, summed = {0}, left = {0}, right = {0}, first, second, all;
    append(&batch, &a, &c, true, out, true);
    append(&summed, &a, &c, true, out, false);
    append(&left, &a, &c, false, out, true);
    append(&right, &c, &a, false, out, true);
    first = second = all = batch;
    append(&first, &left, &left, true, out, true);
    append(&first, &summed, &summed, true, &summed, true);
    append(&second, &summed, &summed, true, &summed, true);
    append(&second, &right, &right, true, out, true);
    append(&all, &left, &left, true, out, true);
    append(&all, &right, &right, true, out, true);
    if (first.n != a.n || second.n != c.n || all.n != out->n) {
        hwnas_onnx_refuse(b, "equation", "has more letters than we can compute with");
        return x;
    }
    if (!have_same_sizes(b, x, y, &a, &c))
        return x;
    if (!summed.n) {
        x = spread(b, x, &a, out);
        return hwnas_onnx_make(b, HWNAS_OP_MUL, NULL, x, spread(b, y, &c, out));
    }
    x = order(b, x, &a, &first);
    y = order(b, y, &c, &second);
    x = matrix_product(b, x, y, (int[]){batch.n, summed.n, left.n, right.n});
    return order(b, x, &all, out);
}

/* What is kept of the product of the first two of `n` terms: letters of the result, or of others.
 */
static bool kept_between(term *out, const term *terms, int n, const term *result)
{
    *out = (term){0};
    for (int t = 0; t < 2; t++)
        for (int i = 0; i < terms[t].n; i++) {
            const char letter = terms[t].letters[i];
            bool is_needed = has(result, letter);
            for (int other = 2; other < n; other++)
                is_needed = is_needed || has(&terms[other], letter);
            if (!is_needed || has(out, letter))
                continue;
            if (out->n == HWNAS_MAX_RANK)
                return false;
            out->letters[out->n++] = letter;
        }
    return true;
}

static int multiply_all(builder *b, int n, const int *inputs, term *terms, const term *result)
{
    int x = inputs[0];
    for (int i = 1; i < n; i++) {
        term kept = *result;
        if (i + 1 < n && !kept_between(&kept, terms + i - 1, n - i + 1, result)) {
            hwnas_onnx_refuse(b, "equation", "has more letters than we can compute with");
            return x;
        }
        x = multiply(b, x, inputs[i], terms[i - 1], terms[i], &kept);
        terms[i] = kept;
    }
    return x;
}

/* Without "->" the result has the letters that stand once, in alphabetical order. */
static term implied(const term *terms, int n)
{
    term out = {0};
    for (int c = '0'; c <= 'z'; c++) {
        int count = 0;
        for (int t = 0; t < n; t++)
            for (int i = 0; i < terms[t].n; i++)
                count += terms[t].letters[i] == c;
        if ((count == 1 || (count && c <= '9')) && out.n < HWNAS_MAX_RANK)
            out.letters[out.n++] = (char)c;
    }
    return out;
}

/* A letter that stands twice in a term is a diagonal. */
static int take_diagonal(builder *b, int x, term *t)
{
    for (int i = 0; i < t->n; i++)
        for (int k = i + 1; k < t->n; k++) {
            if (t->letters[i] != t->letters[k])
                continue;
            const hwnas_tensor in = hwnas_onnx_tensor(b, x);
            if (k != t->n - 1 || i != t->n - 2 || in.dims[i] != in.dims[k]) {
                hwnas_onnx_refuse(b, "equation",
                                  "has a diagonal that is not of the last dimensions");
                return x;
            }
            int64_t dims[HWNAS_MAX_RANK];
            const int64_t n = in.dims[i];
            memcpy(dims, in.dims, sizeof dims);
            dims[i] = n * n;
            x = hwnas_onnx_reshape(b, x, in.rank - 1, dims);
            x = hwnas_onnx_cut(b, x, i, 0, n * n, n + 1);
            t->n--;
        }
    return x;
}

/* Reads "ij,jk->ik"; false where it does not fit the inputs. */
static bool read_equation(term *terms, term *result, builder *b, const char *at, int n,
                          const int *inputs)
{
    int n_dots = 0;
    for (int i = 0; i < n && at; i++) {
        const int rank = hwnas_onnx_tensor(b, inputs[i]).rank;
        at = read_term(&terms[i], at, ",-", rank, &n_dots);
        if (at && (terms[i].n != rank || (i + 1 < n && *at != ',')))
            at = NULL;
        if (at && *at == ',')
            at++;
    }
    if (at && !strncmp(at, "->", 2))
        at = read_term(result, at + 2, "", -1, &n_dots);
    else if (at)
        *result = implied(terms, n);
    return at && !has_twice(result);
}

static bool is_made_of(const term *result, const term *terms, int n)
{
    for (int i = 0; i < result->n; i++) {
        bool is_there = false;
        for (int t = 0; t < n; t++)
            is_there = is_there || has(&terms[t], result->letters[i]);
        if (!is_there)
            return false;
    }
    return true;
}

hwnas_status hwnas_onnx_read_einsum(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                    const char *name)
{
    hwnas_arena *arena = r->graph->arena;
    const Onnx__AttributeProto *given = hwnas_onnx_attribute(node, "equation");
    const int n = (int)node->n_input;
    term *terms = hwnas_arena_alloc(arena, (size_t)(n + 1) * sizeof *terms), result = {0};
    int *inputs = hwnas_arena_alloc(arena, (size_t)(n + 1) * sizeof *inputs);
    builder b;
    TRY(hwnas_onnx_build(&b, &inputs[0], r, node, name));
    for (int i = 1; i < n; i++)
        inputs[i] = hwnas_onnx_build_input(&b, (size_t)i);
    if (!given)
        hwnas_onnx_refuse(&b, "equation", "is absent");
    else if (!read_equation(terms, &result, &b,
                            hwnas_arena_string(arena, (const char *)given->s.data, given->s.len), n,
                            inputs))
        hwnas_onnx_refuse(&b, "equation", "does not fit the inputs");
    else if (!is_made_of(&result, terms, n))
        hwnas_onnx_refuse(&b, "equation", "makes a letter that no input has");
    for (int i = 0; i < n; i++)
        inputs[i] = take_diagonal(&b, inputs[i], &terms[i]);
    if (b.status != HWNAS_OK)
        return hwnas_onnx_built(out, &b, inputs[0]);
    if (n > 1)
        return hwnas_onnx_built(out, &b, multiply_all(&b, n, inputs, terms, &result));
    const term none = {0};
    int x = sum_away(&b, inputs[0], &terms[0], &none, &result);
    x = order(&b, x, &terms[0], &result);
    return hwnas_onnx_built(out, &b, x);
}
