#include "space/hold.h"

#include <string.h>

#include "space/arch.h"

/* ---- Expressions ---- */

static hwnas_expr *new_expr(hwnas_arena *arena, hwnas_expr like)
{
    return hwnas_arena_copy(arena, &like, sizeof like);
}

static hwnas_expr *literal(hwnas_arena *arena, const hwnas_value *value, const hwnas_place *place)
{
    return new_expr(
        arena,
        (hwnas_expr){.kind = HWNAS_EXPR_LITERAL, .place = *place, .size = 1, .value = *value});
}

static hwnas_expr *number(hwnas_arena *arena, int64_t value, const hwnas_place *place)
{
    return literal(arena, &(hwnas_value){.kind = HWNAS_VALUE_INT, .i = value}, place);
}

/* `b` NULL: of one operand. */
static hwnas_expr *operate(hwnas_arena *arena, hwnas_operator op, hwnas_expr *a, hwnas_expr *b)
{
    hwnas_expr *args[] = {a, b};
    return new_expr(arena, (hwnas_expr){.kind = HWNAS_EXPR_OPERATOR,
                                        .place = a->place,
                                        .op = op,
                                        .size = 1 + a->size + (b ? b->size : 0),
                                        .n_args = b ? 2 : 1,
                                        .args = hwnas_arena_copy(arena, args, sizeof args)});
}

/* A condition as it is for one position: `i` is that number. */
static hwnas_expr *at_position(hwnas_arena *arena, const hwnas_expr *when, size_t position)
{
    if (when->kind == HWNAS_EXPR_VARIABLE)
        return number(arena, (int64_t)position, &when->place);
    hwnas_expr *out = hwnas_arena_copy(arena, when, sizeof *when);
    if (when->n_args)
        out->args = hwnas_arena_copy(arena, when->args, when->n_args * sizeof *when->args);
    for (size_t i = 0; i < when->n_args; i++)
        out->args[i] = at_position(arena, when->args[i], position);
    return out;
}

/* One of expressions [begin, end), halved again and again so that none lies deep. */
static hwnas_expr *any_of(hwnas_arena *arena, hwnas_expr **of, size_t begin, size_t end)
{
    const size_t middle = begin + (end - begin) / 2;
    return end - begin == 1 ? of[begin]
                            : operate(arena, HWNAS_OPERATOR_OR, any_of(arena, of, begin, middle),
                                      any_of(arena, of, middle, end));
}

/* ---- Rules ---- */

/* NULL: all values of the gene are kept. */
static hwnas_expr *rule_of(const hwnas_space *space, const hwnas_gene *gene, const bool *kept)
{
    const hwnas_choice *choice = &space->choices[gene->choice];
    hwnas_arena *arena = space->arena;
    hwnas_expr **equal = hwnas_arena_alloc(arena, (gene->n_values + 2) * sizeof *equal);
    size_t n = 0;
    for (size_t v = 0; v < gene->n_values; v++) {
        if (!kept[v])
            continue;
        hwnas_expr *of = new_expr(arena, (hwnas_expr){.kind = HWNAS_EXPR_CHOICE,
                                                      .place = choice->place,
                                                      .name = choice->name,
                                                      .slot = (int)gene->choice,
                                                      .size = 1});
        if (choice->is_vector)
            of = operate(arena, HWNAS_OPERATOR_INDEX, of,
                         number(arena, (int64_t)gene->position, &choice->place));
        equal[n++] =
            operate(arena, HWNAS_OPERATOR_EQ, of, literal(arena, &gene->values[v], &choice->place));
    }
    if (n == gene->n_values)
        return NULL;
    if (!n)
        equal[n++] = number(arena, 0, &choice->place);
    if (choice->when) /* a position that does not count may be worth anything */
        equal[n++] = operate(arena, HWNAS_OPERATOR_NOT,
                             at_position(arena, choice->when, gene->position), NULL);
    return any_of(arena, equal, 0, n);
}

/* What is kept by both. */
static const bool *keep_both(hwnas_arena *arena, const hwnas_gene *gene, const bool *kept)
{
    bool *both = hwnas_arena_alloc(arena, gene->n_values * sizeof *both);
    for (size_t v = 0; v < gene->n_values; v++)
        both[v] = kept[v] && hwnas_gene_keeps(gene, v);
    return both;
}

hwnas_status hwnas_space_hold(const hwnas_space **out, const hwnas_space *space,
                              const bool *const *kept)
{
    hwnas_arena *arena = space->arena;
    hwnas_space *held = hwnas_arena_copy(arena, space, sizeof *space);
    held->constraints = hwnas_arena_alloc(arena, (space->n_constraints + space->n_genes + 1) *
                                                     sizeof *held->constraints);
    if (space->n_constraints)
        memcpy(held->constraints, space->constraints,
               space->n_constraints * sizeof *held->constraints);
    if (space->n_genes)
        held->genes = hwnas_arena_copy(arena, space->genes, space->n_genes * sizeof *held->genes);
    for (size_t g = 0; g < space->n_genes; g++) {
        hwnas_expr *rule = rule_of(space, &space->genes[g], kept[g]);
        if (!rule)
            continue;
        held->constraints[held->n_constraints++] = rule;
        held->genes[g].kept = keep_both(arena, &space->genes[g], kept[g]);
    }
    *out = space;
    if (held->n_constraints == space->n_constraints)
        return HWNAS_OK;
    held->has_rules = true;
    hwnas_space_prepare(held);
    TRY(hwnas_space_check_rules(held));
    *out = held;
    return HWNAS_OK;
}
