/* onnx_read_einsum.c: sums of products over indices that are written as letters, of one or two
 * tensors.
 *
 * Of two, the letters are of four kinds: in both and kept (a batch), in both and summed, in the
 * first alone, in the second alone. So they are a matrix product of tensors whose dimensions are
 * put in that order. */
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
    x = order(b, x, &a, &first);
    y = order(b, y, &c, &second);
    const hwnas_tensor p = hwnas_onnx_tensor(b, x), q = hwnas_onnx_tensor(b, y);
    int64_t dims[HWNAS_MAX_RANK];
    for (int i = 0; i < batch.n + summed.n; i++) {
        const int in_p = i < batch.n ? i : i + left.n;
        if (p.dims[in_p] != q.dims[i]) {
            hwnas_onnx_refuse(b, "equation", "has a letter of two sizes");
            return x;
        }
    }
    const int64_t n_batch = product(&p, 0, batch.n), n_summed = product(&q, batch.n, summed.n);
    x = hwnas_onnx_reshape(b, x, 3, (int64_t[]){n_batch, product(&p, batch.n, left.n), n_summed});
    y = hwnas_onnx_reshape(
        b, y, 3, (int64_t[]){n_batch, n_summed, product(&q, batch.n + summed.n, right.n)});
    x = hwnas_onnx_make(b, HWNAS_OP_MATMUL, NULL, x, y);
    memcpy(dims, p.dims, (size_t)(batch.n + left.n) * sizeof *dims);
    memcpy(dims + batch.n + left.n, q.dims + batch.n + summed.n, (size_t)right.n * sizeof *dims);
    return order(b, hwnas_onnx_reshape(b, x, all.n, dims), &all, out);
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

hwnas_status hwnas_onnx_read_einsum(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                    const char *name)
{
    const Onnx__AttributeProto *given = hwnas_onnx_attribute(node, "equation");
    term terms[2] = {{0}}, result = {0};
    int inputs[2], n_dots = 0;
    builder b;
    TRY(hwnas_onnx_build(&b, &inputs[0], r, node, name));
    if (!given || node->n_input > 2) {
        hwnas_onnx_refuse(&b, "equation", "is absent, or of more than two tensors");
        return hwnas_onnx_built(out, &b, inputs[0]);
    }
    const int n = (int)node->n_input;
    if (n > 1)
        inputs[1] = hwnas_onnx_build_input(&b, 1);
    const char *at = hwnas_arena_string(r->graph->arena, (const char *)given->s.data, given->s.len);
    for (int i = 0; i < n && at; i++) {
        const int rank = hwnas_onnx_tensor(&b, inputs[i]).rank;
        at = read_term(&terms[i], at, ",-", rank, &n_dots);
        if (at && (terms[i].n != rank || (i + 1 < n && *at != ',')))
            at = NULL;
        if (at && *at == ',')
            at++;
    }
    if (at && !strncmp(at, "->", 2))
        at = read_term(&result, at + 2, "", -1, &n_dots);
    else if (at)
        result = implied(terms, n);
    if (!at || has_twice(&result)) {
        hwnas_onnx_refuse(&b, "equation", "does not fit the inputs");
        return hwnas_onnx_built(out, &b, inputs[0]);
    }
    for (int i = 0; i < n; i++)
        inputs[i] = take_diagonal(&b, inputs[i], &terms[i]);
    if (b.status != HWNAS_OK)
        return hwnas_onnx_built(out, &b, inputs[0]);
    const term none = {0};
    int x;
    if (n == 2) {
        x = multiply(&b, inputs[0], inputs[1], terms[0], terms[1], &result);
    } else {
        x = sum_away(&b, inputs[0], &terms[0], &none, &result);
        if (terms[0].n != result.n)
            hwnas_onnx_refuse(&b, "equation", "makes a letter that no input has");
        x = order(&b, x, &terms[0], &result);
    }
    return hwnas_onnx_built(out, &b, x);
}
