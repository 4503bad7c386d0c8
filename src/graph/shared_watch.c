/* shared_watch.c: which weights a network has of those that a space's networks share, found while
 * it is built: a weight is named after the statements around it. */
#include <stdlib.h>
#include <string.h>

#include "graph/shared_priv.h"

enum { MAX_LEVELS = 1024 };

typedef struct level {
    const hwnas_stmt *stmt;
    const char *base; /* what names of its own layer begin with ... */
    const char *at;   /* ... and those of the statements in it */
    int turn;         /* of a loop */
} level;

typedef struct watch {
    hwnas_shared *shared;
    hwnas_shared_sizes *sizes;
    hwnas_arena *scratch;
    bool learns;
    hwnas_status status; /* the first that was wrong */
    level levels[MAX_LEVELS];
    int n_levels;
    size_t n_nodes; /* that were seen */
    int *weights;   /* by tensor */
    size_t n_tensors;
} watch;

/* ---- Names ---- */

static int by_statement(const void *a, const void *b)
{
    const uintptr_t p = (uintptr_t)((const hwnas_shared_label_row *)a)->stmt;
    const uintptr_t q = (uintptr_t)((const hwnas_shared_label_row *)b)->stmt;
    return (p > q) - (p < q);
}

static bool is_named(const hwnas_stmt *stmt)
{
    return stmt->kind == HWNAS_STMT_LAYER || stmt->kind == HWNAS_STMT_JOIN;
}

static size_t count_statements(const hwnas_body *body)
{
    size_t n = 0;
    for (size_t i = 0; i < body->n; i++) {
        n += is_named(body->stmts[i]);
        for (size_t b = 0; b < body->stmts[i]->n_bodies; b++)
            n += count_statements(&body->stmts[i]->bodies[b]);
    }
    return n;
}

/* Rows from `first` on are of this template. */
static void label_body(hwnas_shared *shared, size_t first, const hwnas_body *body)
{
    for (size_t i = 0; i < body->n; i++) {
        const hwnas_stmt *stmt = body->stmts[i];
        if (is_named(stmt)) {
            int n = 1;
            for (size_t k = first; k < shared->n_labels; k++)
                n += !strcmp(shared->labels[k].stmt->name, stmt->name);
            shared->labels[shared->n_labels++] = (hwnas_shared_label_row){
                stmt, n > 1 ? hwnas_arena_printf(shared->arena, "%s_%d", stmt->name, n)
                            : stmt->name};
        }
        for (size_t b = 0; b < stmt->n_bodies; b++)
            label_body(shared, first, &stmt->bodies[b]);
    }
}

void hwnas_shared_set_labels(hwnas_shared *shared)
{
    const hwnas_space *space = shared->space;
    size_t n = count_statements(&space->network->body);
    for (size_t i = 0; i < space->n_templates; i++)
        n += count_statements(&space->templates[i]->body);
    shared->labels = hwnas_arena_alloc(shared->arena, (n + 1) * sizeof *shared->labels);
    label_body(shared, 0, &space->network->body);
    for (size_t i = 0; i < space->n_templates; i++)
        if (space->templates[i] != space->network)
            label_body(shared, shared->n_labels, &space->templates[i]->body);
    qsort(shared->labels, shared->n_labels, sizeof *shared->labels, by_statement);
}

const char *hwnas_shared_label(const hwnas_shared *shared, const hwnas_stmt *stmt)
{
    const hwnas_shared_label_row key = {.stmt = stmt};
    const hwnas_shared_label_row *row = bsearch(&key, shared->labels, shared->n_labels,
                                                sizeof *shared->labels, by_statement);
    return row ? row->text : "add"; /* a residual's sum */
}

/* FNV-1a. */
static uint64_t hash_of(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash;
}

/* ---- What must be the same ---- */

/* `fact`: the first that is not the same. */
static const char *fact_word(const hwnas_op *op, size_t fact)
{
    return op->id == HWNAS_OP_FLATTEN  ? "the size of the image that becomes features"
           : op->id == HWNAS_OP_CONCAT ? "the channels of a branch before the last"
           : fact == 1 || fact == 2    ? "whether its kernel is odd"
                                       : "in which groups its channels are";
}

/* The same in all networks that have the layer, else their weights would not be slices. */
static hwnas_status keep_facts(watch *w, const char *name, const hwnas_stmt *stmt,
                               const hwnas_op *op, size_t n, const int64_t *values)
{
    hwnas_shared *s = w->shared;
    const uint64_t hash = hash_of(name);
    n = n < HWNAS_SHARED_FACTS ? n : HWNAS_SHARED_FACTS;
    for (size_t i = 0; i < s->n_facts; i++) {
        const hwnas_shared_fact *fact = &s->facts[i];
        if (fact->hash != hash || strcmp(fact->name, name))
            continue;
        if (fact->n == n && !memcmp(fact->values, values, n * sizeof *values))
            return HWNAS_OK;
        size_t differs = 0;
        while (differs < n && differs < fact->n && fact->values[differs] == values[differs])
            differs++;
        return hwnas_hint(hwnas_fail(HWNAS_E_UNSUPPORTED, &stmt->place,
                                     "the weights of '%s' cannot be shared: %s is not the same in "
                                     "all networks (%s)",
                                     op->name, fact_word(op, differs), name),
                          "networks are slices of one another where widths, odd kernels and depths "
                          "are chosen; train the others with train:RECIPE");
    }
    if (!w->learns)
        return HWNAS_OK;
    HWNAS_ARENA_GROW(s->arena, s->facts, s->n_facts, s->fact_capacity);
    hwnas_shared_fact *fact = &s->facts[s->n_facts++];
    *fact = (hwnas_shared_fact){
        .name = hwnas_arena_printf(s->arena, "%s", name), .hash = hash, .n = n};
    memcpy(fact->values, values, n * sizeof *values);
    return HWNAS_OK;
}

enum { DENSE, DEPTHWISE, GROUPED };

static hwnas_status check_node(watch *w, const char *name, const hwnas_stmt *stmt,
                               const hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0), *out = hwnas_node_output(graph, node);
    int64_t facts[HWNAS_MAX_NODE_INPUTS] = {0};
    size_t n = 0;
    if (!hwnas_shared_takes(node->op))
        return hwnas_hint(hwnas_fail(HWNAS_E_UNSUPPORTED, &stmt->place,
                                     "networks with '%s' cannot share weights yet", stmt->name),
                          "what can: conv, linear, batch_norm, pools, activations, sums, products "
                          "and concat; train the others with train:RECIPE");
    if (node->op->id == HWNAS_OP_CONV) {
        const int64_t groups = hwnas_node_attr(node, "groups")->ints[0];
        const int64_t *kernel = hwnas_node_input(graph, node, 1)->dims + 2;
        const bool is_depthwise = groups == in->dims[1] && groups == out->dims[1];
        facts[n++] = groups == 1 ? DENSE : is_depthwise ? DEPTHWISE : GROUPED;
        facts[n++] = kernel[0] % 2;
        facts[n++] = kernel[1] % 2;
        if (facts[0] == GROUPED) {
            facts[n++] = in->dims[1];
            facts[n++] = out->dims[1];
            facts[n++] = groups;
        }
    } else if (node->op->id == HWNAS_OP_FLATTEN) {
        for (int i = 2; i < in->rank; i++)
            facts[n++] = in->dims[i];
    } else if (node->op->id == HWNAS_OP_CONCAT) {
        const int64_t axis = hwnas_node_attr(node, "axis")->ints[0];
        for (int i = 0; i + 1 < node->n_data_inputs; i++)
            facts[n++] = hwnas_node_input(graph, node, i)->dims[axis < 0 ? axis + in->rank : axis];
    }
    return n ? keep_facts(w, name, stmt, node->op, n, facts) : HWNAS_OK;
}

bool hwnas_shared_takes(const hwnas_op *op)
{
    static const bool takes[HWNAS_N_OPS] = {
        [HWNAS_OP_CONV] = true,         [HWNAS_OP_LINEAR] = true,
        [HWNAS_OP_BATCH_NORM] = true,   [HWNAS_OP_MAX_POOL] = true,
        [HWNAS_OP_AVG_POOL] = true,     [HWNAS_OP_GLOBAL_AVG_POOL] = true,
        [HWNAS_OP_FLATTEN] = true,      [HWNAS_OP_DROPOUT] = true,
        [HWNAS_OP_ADD] = true,          [HWNAS_OP_MUL] = true,
        [HWNAS_OP_CONCAT] = true,       [HWNAS_OP_ZERO] = true,
        [HWNAS_OP_RELU] = true,         [HWNAS_OP_RELU6] = true,
        [HWNAS_OP_HARD_SWISH] = true,   [HWNAS_OP_HARD_SIGMOID] = true,
        [HWNAS_OP_LEAKY_RELU] = true,   [HWNAS_OP_SILU] = true,
        [HWNAS_OP_GELU] = true,         [HWNAS_OP_SIGMOID] = true,
        [HWNAS_OP_TANH] = true,         [HWNAS_OP_CLIP] = true,
        [HWNAS_OP_SCALE] = true,        [HWNAS_OP_SOFTMAX] = true,
    };
    return takes[op->id];
}

/* ---- Weights ---- */

static void see_size(watch *w, size_t index, const hwnas_tensor *t)
{
    hwnas_shared_sizes *sizes = w->sizes;
    if (!sizes)
        return;
    if (index >= sizes->capacity) {
        const size_t capacity = 2 * index + 64;
        sizes->dims = hwnas_realloc(sizes->dims, capacity * sizeof *sizes->dims);
        memset(sizes->dims + sizes->capacity, 0,
               (capacity - sizes->capacity) * sizeof *sizes->dims);
        sizes->capacity = capacity;
    }
    sizes->n = index >= sizes->n ? index + 1 : sizes->n;
    memcpy(sizes->dims[index], t->dims, (size_t)t->rank * sizeof *t->dims);
}

static hwnas_status too_large(const hwnas_stmt *stmt, const char *name)
{
    return hwnas_fail(HWNAS_E_UNSUPPORTED, &stmt->place,
                      "the shared weights have nothing for this network, or less than it needs: %s",
                      name);
}

static hwnas_status see_weight(watch *w, int tensor, const char *name, const hwnas_stmt *stmt,
                               const hwnas_tensor *t)
{
    hwnas_shared *s = w->shared;
    const uint64_t hash = hash_of(name);
    size_t i = 0;
    while (i < s->n_weights && (s->weights[i].hash != hash || strcmp(s->weights[i].name, name)))
        i++;
    if (t->rank > 4 || (i == s->n_weights && !w->learns))
        return too_large(stmt, name);
    if (i == s->n_weights) {
        HWNAS_ARENA_GROW(s->arena, s->weights, s->n_weights, s->capacity);
        s->weights[s->n_weights++] =
            (hwnas_shared_weight){.name = hwnas_arena_printf(s->arena, "%s", name),
                                  .hash = hash,
                                  .place = stmt->place,
                                  .is_learned = t->is_parameter,
                                  .rank = t->rank};
    }
    hwnas_shared_weight *weight = &s->weights[i];
    if (weight->is_learned != t->is_parameter)
        return hwnas_hint(
            hwnas_fail(HWNAS_E_UNSUPPORTED, &stmt->place,
                       "the weights of '%s' cannot be shared: some networks learn its "
                       "%s, and others have none",
                       stmt->name, strrchr(name, '/') + 1),
            "let all learn it, or none");
    for (int d = 0; d < t->rank; d++)
        if (t->dims[d] > weight->dims[d] && !w->learns)
            return too_large(stmt, name);
        else if (t->dims[d] > weight->dims[d])
            weight->dims[d] = t->dims[d];
    see_size(w, i, t);
    w->weights[tensor] = (int)i;
    return HWNAS_OK;
}

static void make_room(watch *w, size_t n)
{
    if (n <= w->n_tensors)
        return;
    w->weights = hwnas_realloc(w->weights, 2 * n * sizeof *w->weights);
    while (w->n_tensors < 2 * n)
        w->weights[w->n_tensors++] = -1;
}

static hwnas_status see_node(watch *w, const level *at, const hwnas_graph *graph,
                             const hwnas_node *node)
{
    const char *layer =
        hwnas_arena_join(w->scratch, at->base, hwnas_shared_label(w->shared, at->stmt), "");
    TRY(check_node(w, layer, at->stmt, graph, node));
    for (int i = node->n_data_inputs; i < node->n_inputs; i++) {
        const hwnas_tensor *t = hwnas_node_input(graph, node, i);
        const char *dot = strrchr(t->name, '.');
        if (t->kind != HWNAS_TENSOR_WEIGHT || !dot)
            continue;
        make_room(w, graph->n_tensors);
        TRY(see_weight(w, node->inputs[i], hwnas_arena_join(w->scratch, layer, "/", dot + 1),
                       at->stmt, t));
    }
    return HWNAS_OK;
}

/* ---- The watcher ---- */

static void see_expr(void *context, const hwnas_expr *expr, const hwnas_scope_frame *frame)
{
    (void)context;
    (void)expr;
    (void)frame;
}

static void enter(void *context, const hwnas_stmt *stmt, const hwnas_scope_frame *frame)
{
    (void)frame;
    watch *w = context;
    level *parent = &w->levels[w->n_levels - 1];
    const hwnas_stmt *around = parent->stmt;
    if (w->n_levels == MAX_LEVELS) {
        if (w->status == HWNAS_OK)
            w->status = hwnas_fail(HWNAS_E_UNSUPPORTED, &stmt->place,
                                   "more than %d statements inside each other", MAX_LEVELS);
        return;
    }
    const bool is_loop =
        around && (around->kind == HWNAS_STMT_FOR || around->kind == HWNAS_STMT_REPEAT);
    if (is_loop && stmt == around->bodies[0].stmts[0])
        parent->at = hwnas_arena_printf(w->scratch, "%s%d/", parent->base, parent->turn++);
    level *inner = &w->levels[w->n_levels++];
    *inner = (level){.stmt = stmt, .base = parent->at, .at = parent->at};
    if (stmt->kind == HWNAS_STMT_LAYER && stmt->call)
        inner->at = hwnas_arena_join(w->scratch, parent->at,
                                     hwnas_shared_label(w->shared, stmt), "/");
}

static void leave(void *context, const hwnas_stmt *stmt, const hwnas_graph *graph, int before,
                  int after)
{
    (void)before;
    (void)after;
    watch *w = context;
    if (w->n_levels < 2 || w->levels[w->n_levels - 1].stmt != stmt)
        return; /* deeper than there is room for */
    const level *at = &w->levels[--w->n_levels];
    for (; w->n_nodes < graph->n_nodes; w->n_nodes++)
        if (w->status == HWNAS_OK)
            w->status = see_node(w, at, graph, &graph->nodes[w->n_nodes]);
}

hwnas_status hwnas_shared_watch(hwnas_graph **out, int **weights, hwnas_shared_sizes *sizes,
                                hwnas_shared *shared, const hwnas_arch *arch, int batch,
                                bool learns)
{
    watch *w = hwnas_alloc(sizeof *w);
    w->shared = shared;
    w->sizes = sizes;
    w->scratch = hwnas_arena_new();
    w->learns = learns;
    w->levels[0] = (level){.base = "", .at = ""};
    w->n_levels = 1;
    const hwnas_elaborate_watcher watcher = {w, see_expr, enter, leave};
    hwnas_graph *graph = NULL;
    hwnas_status status = hwnas_graph_build_watched(&graph, arch, batch, &watcher);
    if (status == HWNAS_OK)
        status = w->status;
    if (status == HWNAS_OK && weights) {
        make_room(w, graph->n_tensors);
        *weights = w->weights;
        w->weights = NULL;
    }
    if (status == HWNAS_OK && out) {
        *out = graph;
        graph = NULL;
    }
    hwnas_graph_free(graph);
    free(w->weights);
    hwnas_arena_free(w->scratch);
    free(w);
    return status;
}
