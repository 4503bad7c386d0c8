#include "inherit/removal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>
#include <lapacke.h>

#include "base/mem.h"
#include "inherit/examples.h"
#include "inherit/importance.h"
#include "inherit/walk.h"

/* Larger layers take too long: their inputs count as if they were independent. */
enum { MAX_INPUTS = 1152 };
#define RIDGE 1e-3

/* ---- Layers that read channels ---- */

/* A layer, linear in its inputs: y = x' w. */
typedef struct reader {
    int n, n_outputs;
    int *set_of;     /* by input: its set, or HWNAS_SET_FIXED */
    double *weights; /* inputs x outputs */
    double *inverse; /* of the inputs' covariance, inputs x inputs; NULL: ... */
    double *squares; /* ... by input its variance */
    double spread;   /* of the outputs, all together */
} reader;

typedef struct readers {
    const hwnas_original *original;
    int64_t n_chunks;
    size_t n, capacity;
    reader *at;
} readers;

static void reader_done(reader *r)
{
    free(r->set_of);
    free(r->weights);
    free(r->inverse);
    free(r->squares);
}

/* Inputs x outputs, of a weight that lies the other way round but in a product. */
static double *take_weights(const hwnas_graph *graph, const hwnas_node *node, hwnas_layer_kind kind,
                            const float *values, int n)
{
    const int64_t count = hwnas_tensor_count(hwnas_node_input(graph, node, 1)), outputs = count / n;
    double *w = hwnas_alloc((size_t)count * sizeof *w);
    for (int64_t i = 0; i < n; i++)
        for (int64_t o = 0; o < outputs; o++)
            w[i * outputs + o] =
                kind == HWNAS_LAYER_MATMUL ? values[i * outputs + o] : values[o * n + i];
    return w;
}

/* The covariance of columns, n x n, all of it. */
static hwnas_status find_covariance(double **out, const hwnas_matrix *x)
{
    hwnas_status status = HWNAS_OK;
    const int n = (int)x->n_columns;
    double *mean = hwnas_alloc((size_t)n * sizeof *mean), *covariance = NULL;
    float *sums = NULL;
    TRY_OUT(hwnas_try_alloc((void **)&sums, (size_t)n * (size_t)n * sizeof *sums, "products"));
    TRY_OUT(hwnas_try_alloc((void **)&covariance, (size_t)n * (size_t)n * sizeof *covariance,
                            "products"));
    for (int64_t r = 0; r < x->n_rows; r++)
        for (int i = 0; i < n; i++)
            mean[i] += x->at[r * n + i] / (double)x->n_rows;
    for (int64_t r = 0; r < x->n_rows; r++)
        for (int i = 0; i < n; i++)
            x->at[r * n + i] -= (float)mean[i];
    cblas_ssyrk(CblasRowMajor, CblasLower, CblasTrans, n, (int)x->n_rows, 1, x->at, n, 0, sums, n);
    for (int i = 0; i < n; i++)
        for (int k = 0; k <= i; k++)
            covariance[i * n + k] = covariance[k * n + i] = sums[i * n + k] / (double)x->n_rows;
    *out = covariance;
out:
    free(mean);
    free(sums);
    return status;
}

/* Of outputs, by the weights and the inputs' covariance. */
static double find_spread(const reader *r, const double *covariance)
{
    const size_t count = (size_t)r->n * (size_t)r->n_outputs;
    double spread = 0, *products = hwnas_alloc(count * sizeof *products);
    cblas_dsymm(CblasRowMajor, CblasLeft, CblasLower, r->n, r->n_outputs, 1, covariance, r->n,
                r->weights, r->n_outputs, 0, products, r->n_outputs);
    for (size_t i = 0; i < count; i++)
        spread += products[i] * r->weights[i];
    free(products);
    return spread;
}

/* In place; false: not positive definite, to rounding. */
static bool invert(double *a, int n)
{
    double mean = 0;
    for (int i = 0; i < n; i++)
        mean += a[i * n + i] / n;
    for (int i = 0; i < n; i++)
        a[i * n + i] += RIDGE * mean;
    if (!(mean > 0) || LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'L', n, a, n) ||
        LAPACKE_dpotri_work(LAPACK_COL_MAJOR, 'L', n, a, n))
        return false;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++)
            a[i * n + k] = a[k * n + i];
    return true;
}

static hwnas_status settle(reader *r, const hwnas_matrix *x)
{
    double *covariance;
    TRY(find_covariance(&covariance, x));
    r->squares = hwnas_alloc((size_t)r->n * sizeof *r->squares);
    for (int i = 0; i < r->n; i++)
        r->squares[i] = covariance[i * r->n + i];
    r->spread = find_spread(r, covariance);
    if (r->n <= MAX_INPUTS && invert(covariance, r->n))
        r->inverse = covariance;
    else
        free(covariance);
    return HWNAS_OK;
}

/* By input of a layer: sets of an image's channels stand for all points of the window. */
static int *sets_of_inputs(const readers *all, const hwnas_node *node, hwnas_layer_kind kind, int n)
{
    const hwnas_tensor *x = hwnas_node_input(all->original->graph, node, 0);
    const int dim = kind == HWNAS_LAYER_CONV ? 1 : x->rank - 1;
    const int *sets = hwnas_coupling_sets(all->original->coupling, node->inputs[0], dim);
    const int window = n / (int)x->dims[dim];
    int *out = hwnas_alloc((size_t)n * sizeof *out);
    for (int i = 0; i < n; i++)
        out[i] = sets[i / window];
    return out;
}

/* After a node ran: its inputs are still there. */
static hwnas_status add_reader(void *context, int at, float *const *values)
{
    enum { MOST_INPUTS = 2304 };
    readers *all = context;
    hwnas_status status = HWNAS_OK;
    const hwnas_graph *graph = all->original->graph;
    const hwnas_node *node = &graph->nodes[at];
    const hwnas_layer_kind kind = hwnas_layer_kind_of(graph, node);
    hwnas_matrix x = {0};
    if (kind != HWNAS_LAYER_CONV && kind != HWNAS_LAYER_LINEAR && kind != HWNAS_LAYER_MATMUL)
        return HWNAS_OK;
    reader r = {.n = (int)hwnas_layer_inputs(graph, node, kind)};
    if (r.n > MOST_INPUTS)
        return HWNAS_OK;
    const hwnas_layer_layout l = hwnas_layer_layout_of(graph, node, kind, all->n_chunks);
    const hwnas_row_plan plan = hwnas_layer_plan(&l, r.n);
    hwnas_row_list rows = hwnas_rows_of(&l, &plan);
    r.n_outputs = (int)l.n_channels;
    r.set_of = sets_of_inputs(all, node, kind, r.n);
    r.weights = take_weights(graph, node, kind, values[node->inputs[1]], r.n);
    if (kind == HWNAS_LAYER_CONV)
        TRY_OUT(hwnas_examples_windows(&x, graph, node, values[node->inputs[0]], &rows, 0,
                                       hwnas_node_input(graph, node, 0)->dims[1]));
    else
        TRY_OUT(hwnas_examples_features(&x, &rows, values[node->inputs[0]], &l, r.n));
    TRY_OUT(settle(&r, &x));
    HWNAS_GROW(all->at, all->n, all->capacity);
    all->at[all->n++] = r;
    r = (reader){0};
out:
    reader_done(&r);
    free(rows.at);
    free(x.at);
    return status;
}

/* ---- Taking out ---- */

/* A reader from which the channels of one group are taken, and its inputs by their place in the
 * group. */
typedef struct loss {
    reader r;            /* with weights and inverse of its own */
    int n_most;          /* inputs of a set */
    int **inputs, *n_of; /* by place: inputs of the set */
    double *spare;       /* 2 n_most x n, 2 n_most x outputs, n_most x n_most */
} loss;

static double *copy(const double *from, size_t n)
{
    double *to = from ? hwnas_alloc(n * sizeof *to) : NULL;
    if (to)
        memcpy(to, from, n * sizeof *to);
    return to;
}

/* False: the layer reads no channel of the group. */
static bool loss_begin(loss *out, const reader *from, const int *place_of, int n_places)
{
    const size_t n = (size_t)from->n, outputs = (size_t)from->n_outputs;
    *out = (loss){.inputs = hwnas_alloc((size_t)n_places * sizeof *out->inputs),
                  .n_of = hwnas_alloc((size_t)n_places * sizeof *out->n_of)};
    for (int i = 0; i < from->n; i++) {
        const int place = from->set_of[i] == HWNAS_SET_FIXED ? -1 : place_of[from->set_of[i]];
        if (place < 0)
            continue;
        if (!out->inputs[place])
            out->inputs[place] = hwnas_alloc(n * sizeof **out->inputs);
        out->inputs[place][out->n_of[place]++] = i;
        if (out->n_of[place] > out->n_most)
            out->n_most = out->n_of[place];
    }
    const size_t most = (size_t)out->n_most;
    out->r = (reader){.n = from->n, .n_outputs = from->n_outputs, .spread = from->spread};
    if (!most)
        return false;
    out->r.weights = copy(from->weights, n * outputs);
    out->r.inverse = copy(from->inverse, n * n);
    out->r.squares = copy(from->squares, n);
    out->spare = hwnas_alloc((2 * most * n + 2 * most * outputs + most * most) * sizeof(double));
    return true;
}

static void loss_end(loss *l, int n_places)
{
    for (int i = 0; i < n_places; i++)
        free(l->inputs[i]);
    free(l->inputs);
    free(l->n_of);
    free(l->spare);
    reader_done(&l->r);
}

/* The block of the inverse that belongs to a set, as a Cholesky factor; false: it has none. */
static bool factor(double *block, const loss *l, int place)
{
    const int b = l->n_of[place], *at = l->inputs[place];
    for (int i = 0; i < b; i++)
        for (int k = 0; k < b; k++)
            block[i * b + k] = l->r.inverse[at[i] * l->r.n + at[k]];
    return !LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'U', b, block, b);
}

static void take_rows(double *out, const double *from, int width, const int *at, int n)
{
    for (int i = 0; i < n; i++)
        memcpy(out + (size_t)i * (size_t)width, from + (size_t)at[i] * (size_t)width,
               (size_t)width * sizeof *out);
}

/* What the outputs lose with a set. */
static double loss_of(const loss *l, int place)
{
    const int b = l->n_of[place], outputs = l->r.n_outputs, *at = l->inputs[place];
    double *block = l->spare, *w = block + (size_t)l->n_most * (size_t)l->n_most, sum = 0;
    if (!b || !(l->r.spread > 0))
        return 0;
    take_rows(w, l->r.weights, outputs, at, b);
    if (!l->r.inverse)
        for (int i = 0; i < b; i++)
            sum +=
                l->r.squares[at[i]] * cblas_ddot(outputs, w + i * outputs, 1, w + i * outputs, 1);
    else if (factor(block, l, place)) {
        cblas_dtrsm(CblasRowMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, b, outputs, 1,
                    block, b, w, outputs);
        sum = cblas_ddot(b * outputs, w, 1, w, 1);
    }
    return sum / l->r.spread;
}

/* The other weights make up for a set that goes. */
static void take_out(loss *l, int place)
{
    const int b = l->n_of[place], n = l->r.n, outputs = l->r.n_outputs, *at = l->inputs[place];
    double *block = l->spare, *w = block + (size_t)l->n_most * (size_t)l->n_most;
    double *rows = w + 2 * (size_t)l->n_most * (size_t)outputs;
    double *solved = rows + (size_t)b * (size_t)n;
    if (!b || !l->r.inverse || !factor(block, l, place))
        return;
    take_rows(w, l->r.weights, outputs, at, b);
    take_rows(rows, l->r.inverse, n, at, b);
    memcpy(solved, rows, (size_t)b * (size_t)n * sizeof *rows);
    for (int transposed = 0; transposed < 2; transposed++)
        cblas_dtrsm(CblasRowMajor, CblasLeft, CblasLower, transposed ? CblasTrans : CblasNoTrans,
                    CblasNonUnit, b, n, 1, block, b, solved, n);
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, n, outputs, b, -1, solved, n, w, outputs,
                1, l->r.weights, outputs);
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, n, n, b, -1, solved, n, rows, n, 1,
                l->r.inverse, n);
}

static double loss_of_all(const loss *losses, size_t n, int place)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += loss_of(&losses[i], place);
    return sum;
}

/* `importance` has that of activations before. */
static void rank_group(double *importance, const readers *all, const hwnas_channel_group *group,
                       int *place_of)
{
    loss *losses = hwnas_alloc((all->n + 1) * sizeof *losses);
    bool *is_out = hwnas_alloc((size_t)group->n_sets);
    size_t n = 0;
    for (int i = 0; i < group->n_sets; i++)
        place_of[group->sets[i]] = i;
    for (size_t i = 0; i < all->n; i++)
        if (loss_begin(&losses[n], &all->at[i], place_of, group->n_sets))
            n++;
        else
            loss_end(&losses[n], group->n_sets);
    for (int step = 0; step < group->n_sets && n; step++) {
        int best = -1;
        double least = INFINITY;
        for (int i = 0; i < group->n_sets; i++) {
            const double lost = is_out[i] ? INFINITY : loss_of_all(losses, n, i);
            if (is_out[i] || (best >= 0 && !(lost < least)))
                continue;
            best = i;
            least = lost;
        }
        for (size_t i = 0; i < n; i++)
            take_out(&losses[i], best);
        is_out[best] = true;
        importance[group->sets[best]] = step;
    }
    for (int i = 0; i < group->n_sets; i++)
        place_of[group->sets[i]] = -1;
    for (size_t i = 0; i < n; i++)
        loss_end(&losses[i], group->n_sets);
    free(losses);
    free(is_out);
}

hwnas_status hwnas_importance_by_removal(double **out, const hwnas_original *original,
                                         hwnas_device *device, const float *const *inputs,
                                         int64_t n_chunks)
{
    hwnas_status status = HWNAS_OK;
    readers all = {.original = original, .n_chunks = n_chunks};
    const hwnas_coupling *c = original->coupling;
    const hwnas_walker walker = {.graph = original->graph,
                                 .device = device,
                                 .n_chunks = n_chunks,
                                 .inputs = inputs,
                                 .context = &all,
                                 .after = add_reader};
    double *importance = NULL;
    int *place_of = hwnas_alloc(((size_t)c->n_sets + 1) * sizeof *place_of);
    for (int i = 0; i < c->n_sets; i++)
        place_of[i] = -1;
    TRY_OUT(hwnas_importance_of_activations(&importance, original, device, inputs, n_chunks));
    TRY_OUT(hwnas_inherit_walk(&walker));
    for (size_t g = 0; g < c->n_groups; g++)
        rank_group(importance, &all, &c->groups[g], place_of);
    *out = importance;
    importance = NULL;
out:
    for (size_t i = 0; i < all.n; i++)
        reader_done(&all.at[i]);
    free(all.at);
    free(place_of);
    free(importance);
    return status;
}
