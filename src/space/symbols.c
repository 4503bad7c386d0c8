/* symbols.c: words that are no names, and names of choices that are no word anywhere.
 *
 * A word in an expression that names nothing stands for itself: `values: [conv, pool]` and then
 * `if: kind == conv`. So that a misspelt name is not taken for one, and is found where it is
 * written, every such word needs a partner: what is handed on (an argument, a let, an item of a
 * list) must somewhere be tested (a case, or one side of == and !=) or be a value of a choice; what
 * is tested with
 * == must somewhere be handed on. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "space/expr.h"
#include "space/scope.h"

enum { DECLARED = 1, HANDED = 2, TESTED = 4 };

typedef struct word {
    const char *text;
    const hwnas_place *place;
    int role;
    const hwnas_template *where; /* for "did you mean" */
} word;

typedef struct word_list {
    size_t n, capacity;
    word *words;
    bool *is_used; /* by choice of the space */
} word_list;

static void add_word(word_list *list, const hwnas_value *value, const hwnas_place *place, int role,
                     const hwnas_template *where)
{
    if (value->kind != HWNAS_VALUE_SYMBOL)
        return;
    HWNAS_GROW(list->words, list->n, list->capacity);
    list->words[list->n++] = (word){value->s, place, role, where};
}

static void walk_expr(word_list *list, const hwnas_expr *expr, int role, const hwnas_template *t)
{
    if (!expr)
        return;
    if (expr->kind == HWNAS_EXPR_LITERAL)
        add_word(list, &expr->value, &expr->place, role, t);
    if (expr->kind == HWNAS_EXPR_CHOICE)
        list->is_used[expr->slot] = true;
    bool is_test = expr->kind == HWNAS_EXPR_OPERATOR &&
                   (expr->op == HWNAS_OPERATOR_EQ || expr->op == HWNAS_OPERATOR_NE);
    for (size_t i = 0; i < expr->n_args; i++)
        walk_expr(list, expr->args[i], is_test ? TESTED : HANDED, t);
}

static void walk_body(word_list *list, const hwnas_body *body, const hwnas_template *t)
{
    for (size_t i = 0; i < body->n; i++) {
        const hwnas_stmt *stmt = body->stmts[i];
        walk_expr(list, stmt->expr, HANDED, t);
        for (size_t a = 0; a < stmt->n_args; a++)
            walk_expr(list, stmt->args[a].value, HANDED, t);
        for (size_t b = 0; b < stmt->n_bodies; b++) {
            if (stmt->labels)
                add_word(list, &stmt->labels[b], &stmt->place, DECLARED, t);
            walk_body(list, &stmt->bodies[b], t);
        }
    }
}

static int compare_words(const void *a, const void *b)
{
    return strcmp(((const word *)a)->text, ((const word *)b)->text);
}

static bool stands_before(const hwnas_place *a, const hwnas_place *b)
{
    return a->line < b->line || (a->line == b->line && a->column < b->column);
}

/* An exported network has all its choices, each with the one value that was chosen; that they are
 * compared with the others is no slip. */
static bool is_fixed(const hwnas_space *space)
{
    for (size_t g = 0; g < space->n_genes; g++)
        if (space->genes[g].n_values > 1)
            return false;
    return space->n_genes > 0;
}

/* The first word in the file without a partner, or NULL. */
static const word *find_lonely(const word_list *list, bool may_test)
{
    const word *lonely = NULL;
    for (size_t from = 0, to; from < list->n; from = to) {
        int roles = 0;
        for (to = from; to < list->n && !compare_words(&list->words[from], &list->words[to]); to++)
            roles |= list->words[to].role;
        if (roles != HANDED && (roles != TESTED || may_test))
            continue;
        for (size_t i = from; i < to; i++)
            if (!lonely || stands_before(list->words[i].place, lonely->place))
                lonely = &list->words[i];
    }
    return lonely;
}

static bool is_choice(const hwnas_space *space, const char *name)
{
    for (size_t c = 0; c < space->n_choices; c++)
        if (!strcmp(space->choices[c].name, name))
            return true;
    return false;
}

static hwnas_status unknown_word(const hwnas_space *space, const word_list *list,
                                 const word *lonely)
{
    if (is_choice(space, lonely->text)) /* the only place where its name is a word */
        return hwnas_hint(
            hwnas_fail(
                HWNAS_E_INPUT, lonely->place,
                "the choice '%s' is not known yet: a condition sees the choices above its own",
                lonely->text),
            "put it above; choices that wait for each other in a circle have no first");

    static const char *const truths[] = {"true", "false", "yes", "no", NULL};
    size_t n = 0, n_slots = lonely->where->n_slots;
    const char **names = hwnas_alloc(
        (n_slots + space->n_choices + space->n_settings + list->n + 16) * sizeof *names);
    bool is_elsewhere = false; /* a variable of this name, but none that can be seen from here */
    for (size_t i = 0; i < n_slots; i++) {
        is_elsewhere |= !strcmp(lonely->where->slot_names[i], lonely->text);
        names[n++] = lonely->where->slot_names[i];
    }
    for (size_t i = 0; i < space->n_choices; i++)
        names[n++] = space->choices[i].name;
    for (size_t i = 0; i < space->n_settings; i++)
        names[n++] = space->settings[i].name;
    for (size_t i = 0; hwnas_tensor_names[i]; i++)
        names[n++] = hwnas_tensor_names[i];
    for (size_t i = 0; truths[i]; i++)
        names[n++] = truths[i];
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->words[i].text, lonely->text))
            names[n++] = list->words[i].text;
    const char *near = hwnas_nearest(lonely->text, names);
    hwnas_status status = lonely->role == TESTED
                              ? hwnas_fail(HWNAS_E_INPUT, lonely->place,
                                           "nothing can be equal to '%.60s': it is not a name "
                                           "that is known here and no value of a choice",
                                           lonely->text)
                              : hwnas_fail(HWNAS_E_INPUT, lonely->place,
                                           "'%.60s' is not a name that is known here", lonely->text);
    if (is_elsewhere)
        hwnas_hint(status,
                   "a variable is known from its line to the end of its list, a parameter to "
                   "the defaults behind it");
    else if (near)
        hwnas_hint(status, "did you mean '%s'?", near);
    else
        hwnas_hint(status,
                   "known are choices, settings, parameters, let and loop variables, and in, "
                   "height, width, length of the current tensor");
    free(names);
    return status;
}

static hwnas_status check_choices(const hwnas_space *space, const bool *is_used)
{
    for (size_t c = 0; c < space->n_choices; c++)
        if (!is_used[c])
            return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &space->choices[c].place,
                                         "nothing uses the choice '%s'", space->choices[c].name),
                              "leave it out: its values would all be the same network");
    return HWNAS_OK;
}

hwnas_status hwnas_symbols_check(const hwnas_space *space)
{
    word_list list = {.is_used = hwnas_alloc((space->n_choices + 1) * sizeof *list.is_used)};
    for (size_t g = 0; g < space->n_genes; g++)
        for (size_t v = 0; v < space->genes[g].n_values; v++)
            if (g == 0 || space->genes[g].values != space->genes[g - 1].values)
                add_word(&list, &space->genes[g].values[v],
                         &space->choices[space->genes[g].choice].place, DECLARED, space->network);
    for (size_t c = 0; c < space->n_choices; c++)
        walk_expr(&list, space->choices[c].when, HANDED, space->network);
    for (size_t i = 0; i < space->n_constraints; i++)
        walk_expr(&list, space->constraints[i], HANDED, space->network);
    for (size_t i = 0; i < space->n_inputs; i++) {
        const hwnas_input *input = &space->inputs[i];
        walk_expr(&list, input->each, HANDED, space->network);
        for (int d = 0; d < input->n_dims; d++)
            walk_expr(&list, input->dims[d], HANDED, space->network);
    }
    for (size_t i = 0; i < space->n_settings; i++) {
        walk_expr(&list, space->settings[i].expr, HANDED, space->network);
        for (size_t v = 0; v < space->settings[i].n_values; v++)
            add_word(&list, &space->settings[i].values[v], &space->settings[i].place, DECLARED,
                     space->network);
    }
    for (size_t i = 0; i < space->n_templates; i++) {
        const hwnas_template *t = space->templates[i];
        for (size_t p = 0; p < t->n_parameters; p++)
            walk_expr(&list, t->parameters[p].fallback, HANDED, t);
        walk_body(&list, &t->body, t);
    }
    for (size_t i = 0; i < space->n_changes; i++)
        walk_expr(&list, space->changes[i].to, HANDED, space->network);
    walk_body(&list, &space->network->body, space->network);
    if (list.n)
        qsort(list.words, list.n, sizeof *list.words, compare_words);
    const word *lonely = find_lonely(&list, is_fixed(space));
    hwnas_status status =
        lonely ? unknown_word(space, &list, lonely) : check_choices(space, list.is_used);
    free(list.is_used);
    free(list.words);
    return status;
}
