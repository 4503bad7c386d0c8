/* diagram.c: makes the diagram of a space, level by level, and counts its ways from the end. */
#include "space/diagram.h"

#include <gmp.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A large diagram takes about a second and 100 MB. In the order of the file, which is tried first,
 * less: the other order is better where that one is bad. */
static const uint64_t max_work[] = {(uint64_t)1 << 22, (uint64_t)1 << 25};
enum { MAX_NODES = 1 << 20, MAX_EDGES = 1 << 22, MAX_KEYS = 1 << 26, MAX_STATES = 1 << 24 };
/* Edges times genes: what adding up their long numbers may take. */
static const uint64_t max_digits = (uint64_t)1 << 28;
/* Looks at rules that finding the other order may take. */
enum { MAX_ORDERING = 1 << 26 };

/* ---- Numbers for texts: of keys, and of nodes by their state ---- */

typedef struct interner {
    size_t n, capacity; /* a power of two */
    struct {
        size_t at, length;
        uint32_t number;
        bool is_used;
    } * slots;
    char *bytes; /* never NULL when there are slots */
    size_t n_bytes, bytes_capacity;
} interner;

static uint64_t hash_bytes(const char *bytes, size_t n)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * 1099511628211u;
    return hash ^ hash >> 29;
}

static size_t find_slot(const interner *t, const char *bytes, size_t n)
{
    size_t at = hash_bytes(bytes, n) & (t->capacity - 1);
    while (t->slots[at].is_used &&
           (t->slots[at].length != n || memcmp(t->bytes + t->slots[at].at, bytes, n)))
        at = (at + 1) & (t->capacity - 1);
    return at;
}

static void grow_slots(interner *t)
{
    interner old = *t;
    if (!t->bytes)
        t->bytes = hwnas_alloc(t->bytes_capacity = 64);
    t->capacity = old.capacity ? 2 * old.capacity : 64;
    t->slots = hwnas_alloc(t->capacity * sizeof *t->slots);
    for (size_t i = 0; i < old.capacity; i++)
        if (old.slots[i].is_used)
            t->slots[find_slot(t, t->bytes + old.slots[i].at, old.slots[i].length)] = old.slots[i];
    free(old.slots);
}

/* The number of a text; a new one gets `next`. */
static uint32_t intern(interner *t, const void *bytes, size_t n, uint32_t next)
{
    if (2 * (t->n + 1) > t->capacity)
        grow_slots(t);
    const size_t at = find_slot(t, bytes, n);
    if (t->slots[at].is_used)
        return t->slots[at].number;
    if (t->n_bytes + n > t->bytes_capacity) {
        t->bytes_capacity = 2 * (t->n_bytes + n);
        t->bytes = hwnas_realloc(t->bytes, t->bytes_capacity);
    }
    if (n)
        memcpy(t->bytes + t->n_bytes, bytes, n);
    t->slots[at].at = t->n_bytes;
    t->slots[at].length = n;
    t->slots[at].number = next;
    t->slots[at].is_used = true;
    t->n_bytes += n;
    t->n++;
    return next;
}

static void clear_interner(interner *t)
{
    t->n = t->n_bytes = 0;
    if (t->slots)
        memset(t->slots, 0, t->capacity * sizeof *t->slots);
}

static void free_interner(interner *t)
{
    free(t->slots);
    free(t->bytes);
}

/* ---- Making ---- */

/* What is left of a rule: HWNAS_FALSE, HWNAS_TRUE, or from here on the number of a key. */
enum { FIRST_KEY = HWNAS_OPEN };

typedef struct builder {
    const hwnas_ruleset *rules;
    const uint32_t *order;
    uint64_t most_work;
    hwnas_partial partial;
    uint16_t *genes;
    bool *is_known;
    size_t *first_level,
        *last_level; /* by rule: the levels between which something is left of it */
    size_t n_live, n_next;
    uint32_t *live, *next;           /* such rules above and below this level */
    uint32_t *old_slot;              /* by rule: where it is in `live` */
    uint32_t *new_slot;              /* and in `next` */
    uint32_t *states, *states_below; /* what is left of them, for each node of a level */
    size_t n_below, below_capacity;
    uint32_t *state; /* of the node below that is looked for */
    interner keys, below;
    uint32_t *levels;
    size_t n_nodes, node_capacity, n_edges, edge_capacity;
    hwnas_diagram_node *nodes;
    size_t n_origins, origin_capacity;
    struct origin {
        uint32_t parent;
        uint16_t value;
    } * origins; /* by node: one way to it */
    uint32_t *edges;
    bool is_too_large;
} builder;

static void find_levels(builder *b)
{
    const size_t n = b->rules->space->n_genes;
    size_t *level_of = hwnas_alloc((n + 1) * sizeof *level_of);
    for (size_t k = 0; k < n; k++)
        level_of[b->order[k]] = k;
    for (size_t r = 0; r < b->rules->n; r++) {
        const hwnas_rule *rule = &b->rules->rules[r];
        b->first_level[r] = SIZE_MAX;
        for (size_t i = 0; i < rule->n_genes; i++) {
            const size_t k = level_of[rule->genes[i]];
            b->first_level[r] = k < b->first_level[r] ? k : b->first_level[r];
            b->last_level[r] = k > b->last_level[r] ? k : b->last_level[r];
        }
        if (rule->is_condition)
            b->last_level[r] = level_of[rule->gene];
    }
    free(level_of);
}

/* The rules of which something is left below a level. */
static void find_next(builder *b, size_t level)
{
    b->n_next = 0;
    for (size_t r = 0; r < b->rules->n; r++)
        if (b->first_level[r] <= level && b->last_level[r] > level) {
            b->new_slot[r] = (uint32_t)b->n_next;
            b->next[b->n_next++] = (uint32_t)r;
        }
    b->partial.work += b->rules->n / 8;
}

/* The genes of one way to a node. */
static void recall(builder *b, uint32_t node, size_t level)
{
    for (size_t k = level; k-- > 0; node = b->origins[node].parent)
        b->genes[b->order[k]] = b->origins[node].value;
    b->partial.work += level / 4;
}

static bool is_live(const builder *b, size_t rule, size_t level)
{
    return b->first_level[rule] < level;
}

/* What the rules say when the gene of a level has this value; false: a constraint fails. */
static bool step(builder *b, const uint32_t *state, size_t level, uint16_t value)
{
    const size_t g = b->order[level];
    for (size_t i = 0; i < b->n_next; i++) {
        const size_t r = b->next[i];
        if (is_live(b, r, level))
            b->state[i] = state[b->old_slot[r]];
    }
    b->partial.work += b->n_next / 4;
    b->genes[g] = value;
    for (size_t i = 0; i < b->rules->n_touching[g]; i++) {
        const size_t r = b->rules->touching[g][i];
        const hwnas_rule *rule = &b->rules->rules[r];
        if (is_live(b, r, level) && state[b->old_slot[r]] < FIRST_KEY)
            continue;
        const hwnas_truth truth = hwnas_partial_truth(&b->partial, rule->expr, rule->position);
        if (truth == HWNAS_FALSE && !rule->is_condition)
            return false;
        if (b->last_level[r] > level)
            b->state[b->new_slot[r]] = truth != HWNAS_OPEN
                                           ? (uint32_t)truth
                                           : intern(&b->keys, b->partial.key, b->partial.n_key,
                                                    FIRST_KEY + (uint32_t)b->keys.n);
    }
    return true;
}

/* The node below whose state is b->state; a new one unless there is one. */
static uint32_t node_below(builder *b, uint32_t parent, uint16_t value)
{
    const uint32_t fresh = (uint32_t)b->n_origins;
    const uint32_t node = intern(&b->below, b->state, b->n_next * sizeof *b->state, fresh);
    if (node != fresh)
        return node;
    HWNAS_GROW(b->origins, b->n_origins, b->origin_capacity);
    b->origins[b->n_origins++] = (struct origin){.parent = parent, .value = value};
    while (b->n_below + b->n_next > b->below_capacity) {
        b->below_capacity = b->below_capacity ? 2 * b->below_capacity : 1024;
        b->states_below =
            hwnas_realloc(b->states_below, b->below_capacity * sizeof *b->states_below);
    }
    if (b->n_next)
        memcpy(b->states_below + b->n_below, b->state, b->n_next * sizeof *b->state);
    b->n_below += b->n_next;
    return node;
}

static bool counts(const builder *b, const uint32_t *state, size_t level)
{
    const size_t r = b->rules->condition[b->order[level]];
    if (r == HWNAS_NO_RULE)
        return true;
    const hwnas_truth truth = b->rules->rules[r].truth;
    return (truth == HWNAS_OPEN ? state[b->old_slot[r]] : (uint32_t)truth) == HWNAS_TRUE;
}

static void expand(builder *b, uint32_t node, const uint32_t *state, size_t level)
{
    const size_t g = b->order[level];
    hwnas_diagram_node *out;
    HWNAS_GROW(b->nodes, b->n_nodes, b->node_capacity);
    out = &b->nodes[b->n_nodes++];
    *out = (hwnas_diagram_node){.edge = (uint32_t)b->n_edges,
                                .is_active = counts(b, state, level),
                                .is_shared = b->rules->n_touching[g] == 0};
    const size_t n = out->is_active && !out->is_shared ? b->rules->space->genes[g].n_values : 1;
    if (!out->is_shared)
        recall(b, node, level);
    for (size_t v = 0; v < n; v++) {
        const uint32_t below =
            step(b, state, level, (uint16_t)v) ? node_below(b, node, (uint16_t)v) : HWNAS_DEAD;
        HWNAS_GROW(b->edges, b->n_edges, b->edge_capacity);
        b->edges[b->n_edges++] = below;
    }
    b->partial.work += 1 + n;
    b->is_too_large = b->partial.work > b->most_work || b->n_edges > MAX_EDGES ||
                      b->n_origins > MAX_NODES || b->keys.n_bytes > MAX_KEYS ||
                      b->n_below > MAX_STATES || b->n_edges * b->rules->space->n_genes > max_digits;
}

static void make_level(builder *b, size_t level)
{
    const size_t first = b->levels[level], n = b->n_origins - first;
    find_next(b, level);
    clear_interner(&b->below);
    b->n_below = 0;
    b->is_known[b->order[level]] = true;
    for (size_t i = 0; i < n && !b->is_too_large; i++) {
        if (i % 64 == 0) {
            hwnas_arena_free(b->partial.arena);
            b->partial.arena = hwnas_arena_new();
        }
        expand(b, (uint32_t)(first + i), b->n_live ? b->states + i * b->n_live : NULL, level);
    }
    b->levels[level + 1] = (uint32_t)(first + n);
    uint32_t *live = b->live, *slots = b->old_slot;
    free(b->states);
    b->states = b->states_below;
    b->states_below = NULL;
    b->below_capacity = 0;
    b->live = b->next;
    b->next = live;
    b->old_slot = b->new_slot;
    b->new_slot = slots;
    b->n_live = b->n_next;
}

static void free_builder(builder *b)
{
    free(b->genes);
    free(b->is_known);
    free(b->first_level);
    free(b->last_level);
    free(b->live);
    free(b->next);
    free(b->old_slot);
    free(b->new_slot);
    free(b->states);
    free(b->states_below);
    free(b->state);
    free_interner(&b->keys);
    free_interner(&b->below);
    free(b->levels);
    free(b->nodes);
    free(b->origins);
    free(b->edges);
    hwnas_arena_free(b->partial.arena);
    hwnas_partial_done(&b->partial);
}

static bool is_refuted(const hwnas_ruleset *rules)
{
    for (size_t r = 0; r < rules->n; r++)
        if (!rules->rules[r].is_condition && rules->rules[r].truth == HWNAS_FALSE)
            return true;
    return false;
}

/* ---- Counting ---- */

static void count_node(mpz_t sum, const hwnas_diagram *d, uint32_t node, size_t level,
                       const mpz_t *below)
{
    const size_t width = hwnas_diagram_width(d, node, level);
    const uint32_t first = d->levels[level + 1];
    mpz_set_ui(sum, 0);
    if (d->nodes[node].is_shared) {
        const uint32_t child = hwnas_diagram_child(d, node, 0);
        if (child != HWNAS_DEAD)
            mpz_mul_ui(sum, below[child - first], width);
        return;
    }
    for (size_t v = 0; v < width; v++) {
        const uint32_t child = hwnas_diagram_child(d, node, v);
        if (child != HWNAS_DEAD)
            mpz_add(sum, sum, below[child - first]);
    }
}

/* Weights of a node, and its edges to nodes without any way become dead. */
static void weigh_node(hwnas_diagram *d, uint32_t node, size_t level, const mpz_t *below)
{
    const size_t width = hwnas_diagram_width(d, node, level);
    const size_t n_edges = d->nodes[node].is_shared ? 1 : width;
    const double times = d->nodes[node].is_shared ? (double)width : 1;
    double mass = 0, share = 0;
    for (size_t v = 0; v < n_edges; v++) {
        uint32_t *child = &d->edges[d->nodes[node].edge + v];
        if (*child != HWNAS_DEAD && !mpz_sgn(below[*child - d->levels[level + 1]]))
            *child = HWNAS_DEAD;
        if (*child == HWNAS_DEAD)
            continue;
        mass += times * d->mass[*child];
        share += times * d->share[*child];
    }
    d->mass[node] = mass / (double)width;
    d->share[node] = share;
}

/* The largest of a level becomes 1; says what it was. */
static double scale_level(double *weights, const hwnas_diagram *d, size_t level)
{
    double most = 0;
    for (uint32_t i = d->levels[level]; i < d->levels[level + 1]; i++)
        most = fmax(most, weights[i]);
    for (uint32_t i = d->levels[level]; i < d->levels[level + 1] && most > 0; i++)
        weights[i] /= most;
    return most;
}

static const char *decimal(const mpz_t number, hwnas_arena *arena)
{
    char *text = hwnas_arena_alloc(arena, mpz_sizeinbase(number, 10) + 2);
    return mpz_get_str(text, 10, number);
}

static mpz_t *new_numbers(size_t n)
{
    mpz_t *numbers = hwnas_alloc((n + 1) * sizeof *numbers);
    for (size_t i = 0; i < n; i++)
        mpz_init(numbers[i]);
    return numbers;
}

static void free_numbers(mpz_t *numbers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        mpz_clear(numbers[i]);
    free(numbers);
}

static void count_ways(hwnas_diagram *d, hwnas_arena *arena)
{
    const size_t n_levels = d->space->n_genes;
    size_t n_below = d->levels[n_levels + 1] - d->levels[n_levels];
    mpz_t *below = new_numbers(n_below);
    d->acceptance = 1;
    for (size_t i = 0; i < n_below; i++) {
        mpz_set_ui(below[i], 1);
        d->mass[d->levels[n_levels] + i] = d->share[d->levels[n_levels] + i] = 1;
    }
    for (size_t level = n_levels; level-- > 0;) {
        const size_t n = d->levels[level + 1] - d->levels[level];
        mpz_t *numbers = new_numbers(n);
        for (size_t i = 0; i < n; i++) {
            const uint32_t node = d->levels[level] + (uint32_t)i;
            weigh_node(d, node, level, below);
            count_node(numbers[i], d, node, level, below);
        }
        d->acceptance *= scale_level(d->mass, d, level);
        scale_level(d->share, d, level);
        free_numbers(below, n_below);
        below = numbers;
        n_below = n;
    }
    mpz_t none;
    mpz_init(none);
    d->count = decimal(n_below ? below[0] : none, arena);
    d->few = n_below && mpz_sizeinbase(below[0], 2) <= 63 ? mpz_get_ui(below[0]) : 0;
    mpz_clear(none);
    free_numbers(below, n_below);
}

/* ---- Whole ---- */

static hwnas_diagram *finish(builder *b, hwnas_arena *arena)
{
    const size_t n = b->rules->space->n_genes;
    hwnas_diagram *d = hwnas_arena_alloc(arena, sizeof *d);
    b->levels[n + 1] = (uint32_t)b->n_origins;
    d->space = b->rules->space;
    d->order = hwnas_arena_copy(arena, b->order, (n + 1) * sizeof *d->order);
    d->levels = hwnas_arena_copy(arena, b->levels, (n + 2) * sizeof *d->levels);
    d->nodes = hwnas_arena_copy(arena, b->nodes, b->n_nodes * sizeof *d->nodes);
    d->edges = hwnas_arena_copy(arena, b->edges, b->n_edges * sizeof *d->edges);
    d->mass = hwnas_arena_alloc(arena, (b->n_origins + 1) * sizeof *d->mass);
    d->share = hwnas_arena_alloc(arena, (b->n_origins + 1) * sizeof *d->share);
    count_ways(d, arena);
    return d;
}

static hwnas_diagram *make(const hwnas_ruleset *rules, bool is_of_file, hwnas_arena *arena)
{
    const size_t n = rules->space->n_genes;
    hwnas_arena *scratch = hwnas_arena_new();
    builder b = {.rules = rules,
                 .order = hwnas_ruleset_order(rules, is_of_file, scratch),
                 .most_work = max_work[!is_of_file],
                 .genes = hwnas_alloc(n * sizeof *b.genes),
                 .is_known = hwnas_alloc(n),
                 .first_level = hwnas_alloc(rules->n * sizeof *b.first_level),
                 .last_level = hwnas_alloc(rules->n * sizeof *b.last_level),
                 .live = hwnas_alloc(rules->n * sizeof *b.live),
                 .next = hwnas_alloc(rules->n * sizeof *b.next),
                 .old_slot = hwnas_alloc(rules->n * sizeof *b.old_slot),
                 .new_slot = hwnas_alloc(rules->n * sizeof *b.new_slot),
                 .state = hwnas_alloc(rules->n * sizeof *b.state),
                 .levels = hwnas_alloc((n + 2) * sizeof *b.levels)};
    b.partial = (hwnas_partial){.space = rules->space, .genes = b.genes, .is_known = b.is_known};
    find_levels(&b);
    if (!is_refuted(rules)) {
        HWNAS_GROW(b.origins, b.n_origins, b.origin_capacity);
        b.origins[b.n_origins++] = (struct origin){0};
    }
    for (size_t level = 0; level < n && !b.is_too_large; level++)
        make_level(&b, level);
    hwnas_diagram *d = b.is_too_large ? NULL : finish(&b, arena);
    free_builder(&b);
    hwnas_arena_free(scratch);
    return d;
}

hwnas_diagram *hwnas_diagram_new(const hwnas_ruleset *rules, hwnas_arena *arena)
{
    hwnas_diagram *d = make(rules, true, arena);
    if (d || rules->space->n_genes * (rules->n_links + rules->n) > MAX_ORDERING)
        return d;
    return make(rules, false, arena);
}
