#include "derive/change.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "derive/resolution.h"
#include "graph/rewrite.h"

void hwnas_change_options_add(hwnas_change_options *to, hwnas_change_option row)
{
    HWNAS_GROW(to->rows, to->n, to->capacity);
    to->rows[to->n++] = row;
}

void hwnas_change_options_done(hwnas_change_options *options)
{
    for (size_t i = 0; i < options->n; i++) {
        free(options->rows[i].of);
        free(options->rows[i].choice);
        free(options->rows[i].values);
        free(options->rows[i].about);
    }
    free(options->rows);
}

/* ---- Names of nodes ---- */

/* What is not there, with the nearest of what is. `names` ends with NULL. */
static hwnas_status not_found(const hwnas_model_change *change, const char *what,
                              const char *const *names)
{
    const char *near = hwnas_nearest(change->of, names);
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &change->of_place, "the model has no %s '%.100s'",
                                 what, change->of),
                      near     ? "did you mean '%s'?"
                      : *names ? "the first is '%s'"
                               : "leave the change out%s",
                      near     ? near
                      : *names ? *names
                               : "");
}

static hwnas_status no_node(const hwnas_original *o, const hwnas_model_change *change,
                            const char *what)
{
    const char **names = hwnas_alloc((o->graph->n_nodes + 1) * sizeof *names);
    for (size_t i = 0; i < o->graph->n_nodes; i++)
        names[i] = o->graph->nodes[i].name;
    const hwnas_status status = not_found(change, what, names);
    free(names);
    return status;
}

static int find_node(const hwnas_original *o, const char *name, size_t length)
{
    for (size_t i = 0; i < o->graph->n_nodes; i++)
        if (!strncmp(o->graph->nodes[i].name, name, length) && !o->graph->nodes[i].name[length])
            return (int)i;
    return -1;
}

/* "/blocks/blocks.0/mlp/mlp.2/MatMul" as a choice: "blocks_0_mlp_2". PyTorch's exporter names the
 * modules on the way to a node, each with the list that it is in before it. */
static char *choice_name(const char *prefix, const char *node)
{
    enum { LONGEST = 48 };
    const char *end = strrchr(node, '/');
    hwnas_str name = {0};
    hwnas_str_add(&name, prefix);
    if (!end || end == node)
        end = node + strlen(node);
    for (const char *part = node, *next; part < end && name.n < LONGEST; part = next) {
        const size_t n = strcspn(part, "/");
        next = part + n + (part[n] == '/');
        if (next < end && !strncmp(next, part, n) && next[n] == '.')
            continue;
        for (const char *at = part; at < next && at < end && name.n < LONGEST; at++)
            if (isalnum((unsigned char)*at))
                hwnas_str_addn(&name, at, 1);
            else if (name.s[name.n - 1] != '_')
                hwnas_str_add(&name, "_");
    }
    while (name.s[name.n - 1] == '_')
        name.s[--name.n] = '\0';
    return name.s;
}

/* ---- width: {of: NODE, to: CHANNELS} ---- */

/* Of several groups of one node the second is "NODE#2". */
static size_t own_number(const hwnas_coupling *c, size_t group)
{
    size_t first = group;
    while (first > 0 && c->groups[first - 1].node == c->groups[group].node)
        first--;
    return group - first + 1;
}

static char *group_name(const hwnas_original *o, size_t group)
{
    const char *node = o->graph->nodes[o->coupling->groups[group].node].name;
    const size_t number = own_number(o->coupling, group);
    return number == 1 ? hwnas_strdup(node) : hwnas_printf("%s#%zu", node, number);
}

/* At most eight widths, in even steps, that are whole vectors of 8 floats where they can be. */
static char *width_values(const hwnas_channel_group *group, int n_needed)
{
    enum { N_WIDTHS = 8, VECTOR = 8 };
    const int64_t unit = group->n_made / group->n_sets;
    int64_t step = unit;
    while (group->n_made / step > N_WIDTHS)
        step += step < VECTOR ? step : unit > VECTOR || VECTOR % unit ? unit : VECTOR;
    step -= step % unit;
    hwnas_str values = {0};
    hwnas_str_addf(&values, "%lld", (long long)group->n_made);
    for (int64_t n = (group->n_made - 1) / step * step; n > 0 && n >= n_needed * unit; n -= step)
        hwnas_str_addf(&values, ", %lld", (long long)n);
    return values.s;
}

/* By group, heap: the nodes whose weights have its channels. */
static hwnas_str *list_members(const hwnas_original *o)
{
    enum { N_SHOWN = 6 };
    const hwnas_coupling *c = o->coupling;
    hwnas_str *texts = hwnas_alloc((c->n_groups + 1) * sizeof *texts);
    int *group_of = hwnas_alloc(((size_t)c->n_sets + 1) * sizeof *group_of); /* from 1 on */
    int *last = hwnas_alloc((c->n_groups + 1) * sizeof *last); /* node that it has, from 1 on */
    int *n_found = hwnas_alloc((c->n_groups + 1) * sizeof *n_found);
    for (size_t g = 0; g < c->n_groups; g++)
        group_of[c->groups[g].sets[0]] = (int)g + 1;
    for (size_t n = 0; n < o->graph->n_nodes; n++) {
        const hwnas_node *node = &o->graph->nodes[n];
        for (int i = 1; i < node->n_inputs; i++) {
            const hwnas_tensor *t = hwnas_node_input(o->graph, node, i);
            for (int d = 0; d < t->rank && t->kind == HWNAS_TENSOR_WEIGHT; d++) {
                const int *sets = hwnas_coupling_sets(c, node->inputs[i], d);
                for (int64_t k = 0; k < t->dims[d]; k++) {
                    const int g = sets[k] == HWNAS_SET_FIXED ? -1 : group_of[sets[k]] - 1;
                    if (g < 0 || last[g] == (int)n + 1)
                        continue;
                    last[g] = (int)n + 1;
                    if (n_found[g]++ < N_SHOWN)
                        hwnas_str_addf(&texts[g], "%s%s", texts[g].n ? ", " : "", node->name);
                }
            }
        }
    }
    for (size_t g = 0; g < c->n_groups; g++)
        if (n_found[g] > N_SHOWN)
            hwnas_str_addf(&texts[g], " and %d more", n_found[g] - N_SHOWN);
    free(group_of);
    free(last);
    free(n_found);
    return texts;
}

static void list_widths(hwnas_change_options *to, const hwnas_original *o)
{
    hwnas_str *members = list_members(o);
    for (size_t g = 0; g < o->coupling->n_groups; g++) {
        const hwnas_channel_group *group = &o->coupling->groups[g];
        const char *node = o->graph->nodes[group->node].name;
        const size_t number = own_number(o->coupling, g);
        if (o->n_needed[g] < group->n_sets) {
            char *choice = choice_name("w_", node);
            hwnas_change_options_add(
                to, (hwnas_change_option){
                        .of = group_name(o, g),
                        .choice = number == 1 ? hwnas_strdup(choice)
                                              : hwnas_printf("%s_%zu", choice, number),
                        .values = width_values(group, o->n_needed[g]),
                        .about = hwnas_printf("%lld channels of %s", (long long)group->n_made,
                                              members[g].s)});
            free(choice);
        }
        hwnas_str_done(&members[g]);
    }
    free(members);
}

static hwnas_status find_group(size_t *out, const hwnas_original *o,
                               const hwnas_model_change *change)
{
    const bool is_whole = find_node(o, change->of, strlen(change->of)) >= 0;
    const char *hash = is_whole ? NULL : strrchr(change->of, '#');
    const size_t length = hash ? (size_t)(hash - change->of) : strlen(change->of);
    const size_t number = hash ? strtoul(hash + 1, NULL, 10) : 1;
    const int node = find_node(o, change->of, length);
    if (node < 0)
        return no_node(o, change, "node");
    for (size_t g = 0; g < o->coupling->n_groups; g++)
        if (o->coupling->groups[g].node == node && own_number(o->coupling, g) == number) {
            *out = g;
            return HWNAS_OK;
        }
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &change->of_place,
                                 "'%.100s' makes no channels of its own that can be taken out",
                                 change->of),
                      "they are fixed by the network's input or output, or belong to an earlier "
                      "node");
}

static hwnas_status apply_width(hwnas_derivation *d, const hwnas_model_change *change,
                                const hwnas_value *value)
{
    const hwnas_original *o = d->original;
    size_t g = 0;
    TRY(find_group(&g, o, change));
    const hwnas_channel_group *group = &o->coupling->groups[g];
    const int64_t unit = group->n_made / group->n_sets, least = unit * o->n_needed[g];
    const bool is_whole = value->kind == HWNAS_VALUE_INT;
    if (!is_whole || value->i < least || value->i > group->n_made || value->i % unit)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &change->to->place,
                                     "'%.80s' has %lld channels, which cannot become %lld",
                                     change->of, (long long)group->n_made,
                                     is_whole ? (long long)value->i : 0),
                          "multiples of %lld, which is how many go together, from %lld on",
                          (long long)unit, (long long)least);
    for (int64_t i = value->i / unit; i < group->n_sets; i++)
        d->is_kept[group->sets[d->ranking[g][i]]] = false;
    return HWNAS_OK;
}

/* ---- branch: {of: SUM, to: 1 or 0} ---- */

/* Whether `tensor` is computed from `from`. Nodes stand behind what they read. */
static bool comes_from(const hwnas_graph *graph, int tensor, int from)
{
    const int first = graph->tensors[from].producer, last = graph->tensors[tensor].producer;
    bool is_found = tensor == from;
    if (is_found || last <= first)
        return is_found;
    bool *is_needed = hwnas_alloc((size_t)(last - first));
    is_needed[last - first - 1] = true;
    for (int n = last; n > first && !is_found; n--) {
        const hwnas_node *node = &graph->nodes[n];
        for (int i = 0; i < node->n_inputs && is_needed[n - first - 1]; i++) {
            const int producer = graph->tensors[node->inputs[i]].producer;
            is_found |= node->inputs[i] == from;
            if (producer > first)
                is_needed[producer - first - 1] = true;
        }
    }
    free(is_needed);
    return is_found;
}

/* Of x + f(x) which input is x; -1: it is no such sum. */
static int shortcut_of(const hwnas_graph *graph, const hwnas_node *node)
{
    if (node->op->id != HWNAS_OP_ADD)
        return -1;
    for (size_t i = 0; i < graph->n_outputs; i++)
        if (graph->outputs[i] == node->output) /* outputs keep their names */
            return -1;
    const hwnas_tensor *y = hwnas_node_output(graph, node);
    for (int i = 0; i < 2; i++) {
        const int x = node->inputs[i], other = node->inputs[!i];
        if (x == other || graph->tensors[x].kind == HWNAS_TENSOR_WEIGHT ||
            graph->tensors[other].producer < 0 || !hwnas_same_shape(&graph->tensors[x], y) ||
            !hwnas_same_shape(&graph->tensors[other], y))
            continue;
        if (comes_from(graph, other, x))
            return i;
    }
    return -1;
}

static void list_branches(hwnas_change_options *to, const hwnas_original *o)
{
    for (size_t n = 0; n < o->graph->n_nodes; n++) {
        const hwnas_node *node = &o->graph->nodes[n];
        if (shortcut_of(o->graph, node) >= 0)
            hwnas_change_options_add(
                to, (hwnas_change_option){
                        .of = hwnas_strdup(node->name),
                        .choice = choice_name("keep_", node->name),
                        .values = hwnas_strdup("1, 0"),
                        .about = hwnas_printf("x + f(x) at %s; 0: x alone", node->name)});
    }
}

static hwnas_status apply_branch(hwnas_derivation *d, const hwnas_model_change *change,
                                 const hwnas_value *value)
{
    const hwnas_graph *graph = d->original->graph;
    const int n = find_node(d->original, change->of, strlen(change->of));
    if (n < 0)
        return no_node(d->original, change, "node");
    const hwnas_node *node = &graph->nodes[n];
    const int shortcut = shortcut_of(graph, node);
    if (shortcut < 0)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &change->of_place,
                                     "'%.100s' is not a sum x + f(x)", change->of),
                          "both have to be of one shape");
    if (value->kind != HWNAS_VALUE_INT || (value->i != 0 && value->i != 1))
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, &change->to->place, "a branch is kept (1) or not (0)"),
            "values: [1, 0]");
    if (!value->i)
        d->replaced_by[node->output] = node->inputs[shortcut];
    return HWNAS_OK;
}

/* ---- kernel: {of: CONVOLUTION, to: SIZE} ---- */

/* A square window with a middle, whose edge lies in the padding when it is cut off. */
static bool can_shrink(const hwnas_graph *graph, const hwnas_node *node)
{
    if (node->op->id != HWNAS_OP_CONV ||
        hwnas_node_input(graph, node, 1)->kind != HWNAS_TENSOR_WEIGHT)
        return false;
    const int64_t *window = hwnas_node_attr(node, "kernel")->ints;
    const int64_t *pad = hwnas_node_attr(node, "pad")->ints;
    const int64_t *dilation = hwnas_node_attr(node, "dilation")->ints;
    bool fits = window[0] == window[1] && window[0] % 2 && window[0] > 1;
    for (int i = 0; i < 4; i++)
        fits = fits && pad[i] >= window[i % 2] / 2 * dilation[i % 2];
    return fits;
}

static void list_kernels(hwnas_change_options *to, const hwnas_original *o)
{
    for (size_t n = 0; n < o->graph->n_nodes; n++) {
        const hwnas_node *node = &o->graph->nodes[n];
        const int64_t window =
            can_shrink(o->graph, node) ? hwnas_node_attr(node, "kernel")->ints[0] : 0;
        hwnas_str values = {0};
        if (window < 5) /* of 3 x 3 only the middle would be left */
            continue;
        for (int64_t k = window; k >= 3; k -= 2)
            hwnas_str_addf(&values, "%s%lld", values.n ? ", " : "", (long long)k);
        hwnas_change_options_add(
            to, (hwnas_change_option){.of = hwnas_strdup(node->name),
                                      .choice = choice_name("k_", node->name),
                                      .values = values.s,
                                      .about = hwnas_printf("window of %s", node->name)});
    }
}

static hwnas_status apply_kernel(hwnas_derivation *d, const hwnas_model_change *change,
                                 const hwnas_value *value)
{
    const hwnas_graph *graph = d->original->graph;
    const int n = find_node(d->original, change->of, strlen(change->of));
    if (n < 0)
        return no_node(d->original, change, "node");
    if (!can_shrink(graph, &graph->nodes[n]))
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &change->of_place,
                                     "'%.100s' has no window that can shrink", change->of),
                          "a convolution with an odd, square window, padded by half of it");
    const int64_t window = hwnas_node_attr(&graph->nodes[n], "kernel")->ints[0];
    if (value->kind != HWNAS_VALUE_INT || value->i < 1 || value->i > window || !(value->i % 2))
        return hwnas_fail(HWNAS_E_INPUT, &change->to->place,
                          "a window of %lld x %lld can become an odd number from 1 to %lld",
                          (long long)window, (long long)window, (long long)window);
    d->kernel[n] = value->i == window ? 0 : (int)value->i;
    return HWNAS_OK;
}

/* ---- activation: {of: OPERATOR, to: OPERATOR} ---- */

static bool is_activation(const hwnas_op *op)
{
    return op && op->class == HWNAS_CLASS_ACTIVATION && op->max_inputs == 1 && !op->max_weights &&
           !op->is_internal;
}

static size_t count_of(const hwnas_graph *graph, hwnas_op_id id)
{
    size_t n = 0;
    for (size_t i = 0; i < graph->n_nodes; i++)
        n += graph->nodes[i].op->id == id;
    return n;
}

/* Those that cost more than relu does. */
static void list_activations(hwnas_change_options *to, const hwnas_original *o)
{
    for (int id = 0; id < HWNAS_N_OPS; id++) {
        const hwnas_op *op = hwnas_ops[id];
        const size_t n = is_activation(op) && id != HWNAS_OP_RELU && id != HWNAS_OP_CLIP &&
                                 id != HWNAS_OP_LEAKY_RELU && id != HWNAS_OP_SIGMOID &&
                                 id != HWNAS_OP_HARD_SIGMOID
                             ? count_of(o->graph, (hwnas_op_id)id)
                             : 0;
        if (n)
            hwnas_change_options_add(
                to, (hwnas_change_option){.of = hwnas_strdup(op->name),
                                          .choice = hwnas_printf("act_%s", op->name),
                                          .values = hwnas_printf("%s, relu", op->name),
                                          .about = hwnas_printf("all %zu of them", n)});
    }
}

static hwnas_status apply_activation(hwnas_derivation *d, const hwnas_model_change *change,
                                     const hwnas_value *value)
{
    const hwnas_graph *graph = d->original->graph;
    const hwnas_op *from = hwnas_op_by_name(change->of);
    const hwnas_op *to = value->kind == HWNAS_VALUE_SYMBOL ? hwnas_op_by_name(value->s) : NULL;
    if (!is_activation(from) || !count_of(graph, from->id))
        return hwnas_fail(HWNAS_E_INPUT, &change->of_place, "the model has no activation '%.60s'",
                          change->of);
    if (!is_activation(to))
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, &change->to->place, "an activation becomes another one"),
            "values: [%s, relu]", from->name);
    for (size_t n = 0; n < graph->n_nodes; n++)
        if (graph->nodes[n].op == from)
            d->op[n] = to->id;
    return HWNAS_OK;
}

/* ---- All of them ---- */

const hwnas_change_kind hwnas_change_kinds[] = {
    {"width", "how many channels a node makes, and all that goes together with them", false,
     list_widths, apply_width},
    {"branch", "1: x + f(x), 0: x alone", false, list_branches, apply_branch},
    {"kernel", "height and width of a window", false, list_kernels, apply_kernel},
    {"activation", "all nodes of one activation as another one", false, list_activations,
     apply_activation},
    {"resolution", "height of images, which are made smaller before the model sees them", true,
     hwnas_resolution_list, hwnas_resolution_apply},
    {0},
};
_Static_assert(sizeof hwnas_change_kinds / sizeof *hwnas_change_kinds <= HWNAS_MAX_CHANGE_KINDS,
               "more kinds than there is room for");

hwnas_status hwnas_change_kind_find(const hwnas_change_kind **out, const hwnas_model_change *change)
{
    const char *names[sizeof hwnas_change_kinds / sizeof *hwnas_change_kinds];
    hwnas_str all = {0};
    size_t n = 0;
    for (; hwnas_change_kinds[n].name; n++) {
        names[n] = hwnas_change_kinds[n].name;
        hwnas_str_addf(&all, "%s%s", n ? ", " : "there are ", names[n]);
        if (!strcmp(names[n], change->kind)) {
            *out = &hwnas_change_kinds[n];
            hwnas_str_done(&all);
            return HWNAS_OK;
        }
    }
    names[n] = NULL;
    const char *near = hwnas_nearest(change->kind, names);
    const hwnas_status status = hwnas_hint(
        hwnas_fail(HWNAS_E_INPUT, &change->place, "there is no change '%.60s'", change->kind),
        near ? "did you mean '%s'?" : "%s", near ? near : all.s);
    hwnas_str_done(&all);
    return status;
}
