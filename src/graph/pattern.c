/* pattern.c: reads patterns, and looks for them by going back and trying again.
 *
 * What is still to be shown is a list of goals, each "this tensor is that part". The first is taken
 * and the rest follows it; where that fails, what was found on the way is forgotten. A product or
 * sum is taken apart into items, from one that is the whole of it: each stays as it is or is
 * replaced by those that its node multiplies or adds, and then items are given to parts. */
#include "graph/pattern.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PARTS = 4, MAX_NUMBERS = 2, MAX_ITEMS = 8, MAX_STEPS = 2000 };

typedef hwnas_pattern part;

typedef enum part_kind { VARIABLE, NODE, PRODUCT, SUM } part_kind;

struct hwnas_pattern {
    part_kind kind;
    hwnas_pattern_variable variable;
    hwnas_op_id op; /* NODE */
    int n_parts, n_numbers;
    const part *parts[MAX_PARTS];
    double powers[MAX_PARTS];    /* PRODUCT: exponents; SUM: 1 or -1 */
    double numbers[MAX_NUMBERS]; /* NODE: attributes; else the number of the product or sum */
    bool takes_number;           /* any will do: # */
    int n_repeats;               /* items more than parts: x^3 may be three of them */
};

/* ---- Reading ---- */

static bool take(const char **at, const char *text)
{
    *at += strspn(*at, " ");
    const bool is_there = !strncmp(*at, text, strlen(text));
    *at += is_there ? strlen(text) : 0;
    return is_there;
}

static double take_number(const char **at)
{
    char *end;
    const double number = strtod(*at, &end);
    assert(end != *at);
    *at = end;
    return number;
}

static bool is_whole(double power)
{
    return power == rint(power);
}

static const part *parse(const char **at, hwnas_arena *arena);

/* A part of `to`: perhaps (^ PART POWER) or (- PART). */
static void parse_part(part *to, const char **at, hwnas_arena *arena)
{
    const int i = to->n_parts++;
    const bool has_power = take(at, "(^"), is_negative = !has_power && take(at, "(- ");
    assert(i < MAX_PARTS);
    to->parts[i] = parse(at, arena);
    to->powers[i] = has_power ? take_number(at) : is_negative ? -1 : 1;
    if (has_power || is_negative) {
        const bool is_closed = take(at, ")");
        assert(is_closed);
    }
    if (to->kind == PRODUCT && is_whole(to->powers[i]))
        to->n_repeats += (int)fabs(to->powers[i]) - 1;
}

static void parse_kind(part *out, const char **at, hwnas_arena *arena)
{
    out->kind = take(at, "* ") ? PRODUCT : take(at, "+ ") ? SUM : NODE;
    out->numbers[0] = out->kind == PRODUCT;
    if (out->kind != NODE)
        return;
    const size_t length = strcspn(*at, " )");
    const hwnas_op *op = hwnas_op_by_name(hwnas_arena_string(arena, *at, length));
    assert(op);
    out->op = op->id;
    *at += length;
}

static const part *parse(const char **at, hwnas_arena *arena)
{
    static const char *const variables[] = {"x", "S", "B"};
    part *p = hwnas_arena_alloc(arena, sizeof *p);
    *p = (part){.kind = VARIABLE};
    for (int i = 0; i < HWNAS_PATTERN_N_VARIABLES; i++)
        if (take(at, variables[i])) {
            p->variable = (hwnas_pattern_variable)i;
            return p;
        }
    const bool is_open = take(at, "(");
    assert(is_open);
    parse_kind(p, at, arena);
    while (!take(at, ")")) {
        assert(**at);
        if (take(at, "#"))
            p->takes_number = true;
        else if (**at != '(' && !strchr("xSB", **at))
            p->numbers[p->kind == NODE ? p->n_numbers++ : 0] = take_number(at);
        else
            parse_part(p, at, arena);
    }
    return p;
}

const hwnas_pattern *hwnas_pattern_parse(hwnas_arena *arena, const char *text)
{
    return parse(&text, arena);
}

/* ---- Matching ---- */

typedef struct matcher {
    const hwnas_graph *graph;
    const hwnas_uses *uses;
    bool (*accepts)(const hwnas_match *match, void *context);
    void *context;
    int n_steps; /* bounded, whatever a file holds */
    hwnas_match found;
} matcher;

typedef struct goal {
    const part *pattern;
    int tensor;
    const struct goal *next; /* NULL ends */
} goal;

typedef struct items {
    double number;
    int n;
    struct {
        int tensor;
        double power; /* as of parts */
    } list[MAX_ITEMS];
} items;

static bool solve(matcher *m, const goal *goals);

static const hwnas_node *producer(const matcher *m, int tensor)
{
    const int node = m->graph->tensors[tensor].producer;
    return node < 0 ? NULL : &m->graph->nodes[node];
}

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-6 * fabs(b);
}

static bool is_number(double *out, const matcher *m, int tensor)
{
    const hwnas_tensor *t = &m->graph->tensors[tensor];
    if (t->kind != HWNAS_TENSOR_WEIGHT || !t->data || hwnas_tensor_count(t) != 1)
        return false;
    *out = t->data[0];
    return true;
}

static bool has_node(const hwnas_match *found, int node)
{
    for (int i = 0; i < found->n_nodes; i++)
        if (found->nodes[i] == node)
            return true;
    return false;
}

static bool add_node(matcher *m, const hwnas_node *node)
{
    const int index = (int)(node - m->graph->nodes);
    if (has_node(&m->found, index))
        return true;
    if (m->found.n_nodes == HWNAS_PATTERN_MAX_NODES)
        return false;
    m->found.nodes[m->found.n_nodes++] = index;
    return true;
}

/* Are the values between x and the output the match's own? */
static bool is_closed(const matcher *m)
{
    const hwnas_match *found = &m->found;
    for (int i = 0; i < found->n_nodes; i++) {
        const int output = m->graph->nodes[found->nodes[i]].output;
        int n_inputs = 0;
        if (output == found->output)
            continue;
        for (int k = 0; k < found->n_nodes; k++) {
            const hwnas_node *reader = &m->graph->nodes[found->nodes[k]];
            for (int input = 0; input < reader->n_inputs; input++)
                n_inputs += reader->inputs[input] == output;
        }
        if (m->uses[output].is_output || m->uses[output].n_inputs != n_inputs)
            return false;
    }
    return true;
}

static bool has_fitting_tensors(const matcher *m)
{
    const hwnas_match *found = &m->found;
    const hwnas_tensor *output = &m->graph->tensors[found->output], *x;
    for (int i = 0; i < HWNAS_PATTERN_N_VARIABLES; i++) {
        const int tensor = found->tensors[i];
        const int node = tensor < 0 ? -1 : m->graph->tensors[tensor].producer;
        if (node >= 0 && has_node(found, node))
            return false;
    }
    x = &m->graph->tensors[found->tensors[HWNAS_PATTERN_X]];
    return x->dtype == output->dtype && !hwnas_dtype_is_whole(x->dtype) &&
           hwnas_same_shape(x, output) &&
           (!found->reduction ||
            hwnas_same_shape(hwnas_node_input(m->graph, found->reduction, 0), x));
}

static bool match_variable(matcher *m, const goal *g)
{
    int *bound = &m->found.tensors[g->pattern->variable];
    if (*bound >= 0 ? *bound != g->tensor
                    : g->pattern->variable != HWNAS_PATTERN_X &&
                          m->graph->tensors[g->tensor].kind != HWNAS_TENSOR_WEIGHT)
        return false;
    *bound = g->tensor;
    return solve(m, g->next);
}

/* Reductions are the operators with axes. */
static bool has_reduction(matcher *m, const hwnas_node *node)
{
    const hwnas_attr *axes = hwnas_node_find_attr(node, "axes");
    const hwnas_node *other = m->found.reduction;
    if (!axes)
        return true;
    m->found.reduction = node;
    if (!hwnas_node_attr(node, "keep")->ints[0] || !other)
        return hwnas_node_attr(node, "keep")->ints[0];
    const hwnas_attr *same = hwnas_node_attr(other, "axes");
    return axes->n == same->n &&
           !memcmp(axes->ints, same->ints, (size_t)axes->n * sizeof *axes->ints) &&
           hwnas_same_shape(hwnas_node_input(m->graph, node, 0),
                            hwnas_node_input(m->graph, other, 0));
}

static bool has_attributes(const part *p, const hwnas_node *node)
{
    int n = 0;
    for (int i = 0; node->op->attrs[i].name; i++)
        if (node->op->attrs[i].kind == HWNAS_ATTR_NUMBER && n < p->n_numbers) {
            const double wanted = p->numbers[n++];
            if (wanted == 0 ? node->attrs[i].number != 0 : !is_near(node->attrs[i].number, wanted))
                return false;
        }
    return n == p->n_numbers;
}

static bool match_node(matcher *m, const goal *g)
{
    const part *p = g->pattern;
    const hwnas_node *node = producer(m, g->tensor);
    if (!hwnas_node_is(node, p->op) || node->n_inputs != p->n_parts || p->n_parts != 1 ||
        !has_attributes(p, node) || !has_reduction(m, node) || !add_node(m, node))
        return false;
    return solve(m, &(goal){p->parts[0], node->inputs[0], g->next});
}

/* What an operator multiplies or adds: its inputs with these powers. */
typedef struct expansion {
    part_kind kind; /* VARIABLE: none */
    double powers[2];
} expansion;

static const expansion expansions[HWNAS_N_OPS] = {
    [HWNAS_OP_ADD] = {SUM, {1, 1}},
    [HWNAS_OP_DIV] = {PRODUCT, {1, -1}},
    [HWNAS_OP_MUL] = {PRODUCT, {1, 1}},
    [HWNAS_OP_NEG] = {SUM, {-1, 0}},
    [HWNAS_OP_POW] = {PRODUCT, {0, 0}}, /* as its input 1 says */
    [HWNAS_OP_RECIPROCAL] = {PRODUCT, {-1, 0}},
    [HWNAS_OP_SQRT] = {PRODUCT, {0.5, 0}},
    [HWNAS_OP_SUB] = {SUM, {1, -1}},
};

/* Puts a tensor among the items at `at`; a number goes into theirs. */
static bool put(items *to, const matcher *m, part_kind kind, int at, int tensor, double power)
{
    double number;
    if (is_number(&number, m, tensor)) {
        to->number = kind == SUM ? to->number + power * number : to->number * pow(number, power);
        return true;
    }
    if (to->n == MAX_ITEMS)
        return false;
    memmove(to->list + at + 1, to->list + at, (size_t)(to->n++ - at) * sizeof *to->list);
    to->list[at].tensor = tensor;
    to->list[at].power = power;
    return true;
}

/* Replaces an item by what it is the product or sum of. Roots of products are not those of the
 * factors: these may be negative. */
static bool expand(items *out, matcher *m, part_kind kind, const items *in, int at)
{
    const hwnas_node *node = producer(m, in->list[at].tensor);
    const double power = in->list[at].power;
    if (!node || expansions[node->op->id].kind != kind || (kind == PRODUCT && !is_whole(power)))
        return false;
    expansion e = expansions[node->op->id];
    const bool is_pow = node->op->id == HWNAS_OP_POW;
    if ((is_pow && !is_number(&e.powers[0], m, node->inputs[1])) || !add_node(m, node))
        return false;
    *out = *in;
    memmove(out->list + at, out->list + at + 1, (size_t)(--out->n - at) * sizeof *out->list);
    for (int i = is_pow ? 0 : node->n_inputs - 1; i >= 0; i--)
        if (!put(out, m, kind, at, node->inputs[i], power * e.powers[i]))
            return false;
    return true;
}

/* Items of one tensor are one, as are x x and x^2. */
static void join(items *all)
{
    for (int i = 0; i < all->n; i++)
        for (int k = all->n - 1; k > i; k--)
            if (all->list[k].tensor == all->list[i].tensor && is_whole(all->list[k].power) &&
                is_whole(all->list[i].power)) {
                all->list[i].power += all->list[k].power;
                memmove(all->list + k, all->list + k + 1,
                        (size_t)(--all->n - k) * sizeof *all->list);
            }
}

/* Gives items to the parts from `k` on. `goals` has those that were given. */
static bool assign(matcher *m, const part *p, const items *all, int k, unsigned given,
                   const goal *goals)
{
    if (k == MAX_PARTS || k == p->n_parts)
        return solve(m, goals);
    for (int i = 0; i < all->n; i++)
        if (!(given >> i & 1) && all->list[i].power == p->powers[k] &&
            assign(m, p, all, k + 1, given | 1U << i,
                   &(goal){p->parts[k], all->list[i].tensor, goals}))
            return true;
    return false;
}

static bool assign_all(matcher *m, const goal *g, items all)
{
    const part *p = g->pattern;
    join(&all);
    if (all.n != p->n_parts ||
        !(p->takes_number || all.number == p->numbers[0] || is_near(all.number, p->numbers[0])))
        return false;
    if (p->takes_number)
        m->found.number = all.number;
    return assign(m, p, &all, 0, 0, g->next);
}

/* Each item from `at` on stays or is replaced. */
static bool is_made_of(matcher *m, const goal *g, const items *all, int at)
{
    const part *p = g->pattern;
    if (++m->n_steps > MAX_STEPS || all->n > p->n_parts + p->n_repeats)
        return false;
    if (at == all->n)
        return assign_all(m, g, *all);
    const hwnas_match before = m->found;
    items more;
    if (is_made_of(m, g, all, at + 1))
        return true;
    m->found = before;
    return expand(&more, m, p->kind, all, at) && is_made_of(m, g, &more, at);
}

static bool match_joined(matcher *m, const goal *g)
{
    items all = {.number = g->pattern->kind == PRODUCT};
    return put(&all, m, g->pattern->kind, 0, g->tensor, 1) && is_made_of(m, g, &all, 0);
}

static bool solve(matcher *m, const goal *goals)
{
    static bool (*const kinds[])(matcher * m, const goal *g) = {[VARIABLE] = match_variable,
                                                                [NODE] = match_node,
                                                                [PRODUCT] = match_joined,
                                                                [SUM] = match_joined};
    if (!goals)
        return has_fitting_tensors(m) && is_closed(m) && m->accepts(&m->found, m->context);
    if (++m->n_steps > MAX_STEPS)
        return false;
    const hwnas_match before = m->found;
    if (kinds[goals->pattern->kind](m, goals))
        return true;
    m->found = before;
    return false;
}

bool hwnas_pattern_match(hwnas_match *out, const hwnas_pattern *pattern, const hwnas_graph *graph,
                         const hwnas_uses *uses, int node,
                         bool (*accepts)(const hwnas_match *match, void *context), void *context)
{
    const hwnas_node *last = &graph->nodes[node];
    matcher m = {.graph = graph, .uses = uses, .accepts = accepts, .context = context};
    const bool may_end = pattern->kind == NODE ? last->op->id == pattern->op
                                               : expansions[last->op->id].kind == pattern->kind;
    if (!may_end)
        return false;
    m.found.output = last->output;
    for (int i = 0; i < HWNAS_PATTERN_N_VARIABLES; i++)
        m.found.tensors[i] = -1;
    const bool is_found = solve(&m, &(goal){pattern, last->output, NULL});
    *out = m.found;
    return is_found;
}
