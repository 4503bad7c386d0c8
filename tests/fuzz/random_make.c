/* random_make.c: a recipe from random choices, or from bytes. */
#include "tests/fuzz/random_recipe.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int random_below(maker *m, int n)
{
    random_source *s = m->source;
    if (!s->bytes)
        return (int)hwnas_rng_below(&s->rng, (uint32_t)n);
    if (!s->n_bytes)
        return 0;
    s->n_bytes--;
    return *s->bytes++ % n;
}

bool random_maybe(maker *m, int percent)
{
    return random_below(m, 100) < percent;
}

int random_rank(const maker *m, int v)
{
    return m->r->steps[v].rank;
}

const int64_t *random_dims(const maker *m, int v)
{
    return m->r->steps[v].dims;
}

int random_append(maker *m, const step *s)
{
    enum { MAX_VALUES = 1 << 13 };
    const int index = m->r->n;
    int tensor;
    if (index == RANDOM_MAX_STEPS)
        return -1;
    for (int i = 0; i < s->n_inputs; i++)
        if (s->inputs[i] < 0)
            return -1;
    if (random_add_step(&tensor, m->graph, s, index, m->tensors) != HWNAS_OK)
        return -1;
    const hwnas_tensor *t = &m->graph->tensors[tensor];
    if (hwnas_tensor_count(t) > MAX_VALUES)
        return -1;
    m->tensors[index] = tensor;
    m->r->steps[index] = *s;
    m->r->steps[index].rank = t->rank;
    m->r->steps[index].dtype = t->dtype;
    memcpy(m->r->steps[index].dims, t->dims, sizeof t->dims);
    return m->r->n++;
}

int random_node(maker *m, const char *op, int a, int b, const char *format, ...)
{
    step s = {.op = op, .n_inputs = b < 0 ? 1 : 2, .inputs = {a, b}};
    va_list args;
    va_start(args, format);
    vsnprintf(s.attrs, sizeof s.attrs, format, args);
    va_end(args);
    return a < 0 ? -1 : random_append(m, &s);
}

int random_join(maker *m, const char *op, int a, int b)
{
    return a < 0 || b < 0 ? -1 : random_node(m, op, a, b, "%s", "");
}

int random_function(maker *m, const char *op, int x)
{
    return random_node(m, op, x, -1, "%s", "");
}

int random_constant(maker *m, int rank, const int64_t *dims)
{
    step s = {.is_constant = true, .rank = rank};
    s.dtype = HWNAS_FLOAT32;
    memcpy(s.dims, dims, (size_t)rank * sizeof *dims);
    return random_append(m, &s);
}

int random_number(maker *m, float value, hwnas_dtype dtype)
{
    const step s = {.is_constant = true, .is_given = true, .value = value, .dtype = dtype};
    return random_append(m, &s);
}

int random_constant_for(maker *m, int v)
{
    const int rank = random_rank(m, v), n = random_below(m, rank + 1);
    int64_t dims[HWNAS_MAX_RANK];
    for (int i = 0; i < n; i++)
        dims[i] = random_maybe(m, 35) ? 1 : random_dims(m, v)[rank - n + i];
    return random_constant(m, n, dims);
}

int random_earlier(maker *m, int v, bool is_alike)
{
    int found[RANDOM_MAX_STEPS], n = 0;
    for (int i = 0; i < m->r->n; i++) {
        const step *s = &m->r->steps[i];
        const bool has_dims =
            s->rank == random_rank(m, v) &&
            !memcmp(s->dims, random_dims(m, v), (size_t)s->rank * sizeof *s->dims);
        if (i != v && !s->is_constant && s->dtype == HWNAS_FLOAT32 && (!is_alike || has_dims))
            found[n++] = i;
    }
    return n ? found[random_below(m, n)] : -1;
}

static int make_input(maker *m)
{
    static const int64_t channels[] = {1, 3, 4, 8, 16}, sides[] = {1, 5, 6, 7, 9};
    static const int64_t widths[] = {1, 6, 8, 16, 24};
    step s = {.rank = 2 + random_below(m, 3), .dtype = HWNAS_FLOAT32};
    s.dims[0] = 1 + random_below(m, 3);
    s.dims[1] = s.rank == 2   ? ONE_OF(m, widths)
                : s.rank == 3 ? ONE_OF(m, sides)
                              : ONE_OF(m, channels);
    s.dims[2] = s.rank == 3 ? ONE_OF(m, widths) : ONE_OF(m, sides);
    s.dims[3] = ONE_OF(m, sides);
    return random_append(m, &s);
}

/* What nobody reads, from the last on, and now and then something more. */
static void choose_outputs(maker *m)
{
    recipe *r = m->r;
    bool is_read[RANDOM_MAX_STEPS] = {false};
    for (int i = 0; i < r->n; i++)
        for (int k = 0; k < r->steps[i].n_inputs; k++)
            is_read[r->steps[i].inputs[k]] = true;
    for (int i = r->n; i-- > 0 && r->n_outputs < RANDOM_MAX_OUTPUTS;)
        if (r->steps[i].op && r->steps[i].dtype == HWNAS_FLOAT32 &&
            (!is_read[i] || random_maybe(m, 5)))
            r->outputs[r->n_outputs++] = i;
}

void random_recipe_make(recipe *out, random_source *source, uint64_t seed)
{
    maker *m = hwnas_alloc(sizeof *m);
    *out = (recipe){.seed = seed};
    *m = (maker){.r = out, .source = source, .graph = hwnas_graph_new("random", seed)};
    int x = make_input(m);
    for (int n = 4 + random_below(m, 9); n > 0; n--) {
        const int from = random_maybe(m, 75) ? x : random_earlier(m, x, false);
        const int made = random_make_any(m, from < 0 ? x : from);
        x = made < 0 ? x : made;
    }
    choose_outputs(m);
    hwnas_graph_free(m->graph);
    free(m);
}
