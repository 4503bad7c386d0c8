/* rules.c: which encodings of a space count: conditions of choices, constraints between them, and
 * how many are left. */
#include <gmp.h>
#include <stdlib.h>
#include <string.h>

#include "space/arch.h"

/* Combinations of the choices that rules look at that are tried one by one when counting. */
#define MAX_COMBINATIONS ((uint64_t)1 << 20)

static const char *const position_name = "i";
static const hwnas_template position_scope = {
    .name = "condition", .n_slots = 1, .slot_names = (const char **)&position_name};

static hwnas_value choice_value(const hwnas_arch *arch, size_t c, hwnas_arena *arena)
{
    const hwnas_space *space = arch->space;
    const hwnas_choice *choice = &space->choices[c];
    const hwnas_gene *genes = &space->genes[choice->first_gene];
    const uint16_t *picks = &arch->genes[choice->first_gene];
    if (!choice->is_vector)
        return genes[0].values[picks[0]];
    hwnas_value *items = hwnas_arena_alloc(arena, choice->n_positions * sizeof *items);
    for (size_t p = 0; p < choice->n_positions; p++)
        items[p] = genes[p].values[picks[p]];
    return (hwnas_value){.kind = HWNAS_VALUE_LIST, .list = {items, choice->n_positions}};
}

hwnas_value *hwnas_arch_values(const hwnas_arch *arch, hwnas_arena *arena)
{
    hwnas_value *values = hwnas_arena_alloc(arena, (arch->space->n_choices + 1) * sizeof *values);
    for (size_t c = 0; c < arch->space->n_choices; c++)
        values[c] = choice_value(arch, c, arena);
    return values;
}

/* Does position `p` of a choice count, with the choices above worth `values`? */
static bool holds(const hwnas_choice *choice, size_t p, hwnas_value *values, hwnas_arena *arena)
{
    hwnas_value position = {.kind = HWNAS_VALUE_INT, .i = (int64_t)p};
    hwnas_frame frame = {.scope = &position_scope, .slots = &position, .choices = values};
    bool truth;
    if (!choice->when)
        return true;
    return hwnas_expr_eval_truth(&truth, choice->when, &frame, arena) == HWNAS_OK && truth;
}

bool hwnas_arch_settle(hwnas_arch *arch)
{
    const hwnas_space *space = arch->space;
    if (!space->has_rules)
        return true;
    hwnas_arena *arena = hwnas_arena_new();
    hwnas_value *values = hwnas_arena_alloc(arena, (space->n_choices + 1) * sizeof *values);
    for (size_t c = 0; c < space->n_choices; c++) {
        const hwnas_choice *choice = &space->choices[c];
        for (size_t p = 0; choice->when && p < choice->n_positions; p++)
            if (!holds(choice, p, values, arena))
                arch->genes[choice->first_gene + p] = 0;
        values[c] = choice_value(arch, c, arena);
    }
    hwnas_frame frame = {.choices = values};
    bool is_valid = true;
    for (size_t i = 0; i < space->n_constraints && is_valid; i++)
        if (hwnas_expr_eval_truth(&is_valid, space->constraints[i], &frame, arena) != HWNAS_OK)
            is_valid = false;
    hwnas_arena_free(arena);
    return is_valid;
}

bool hwnas_arch_is_active(const hwnas_arch *arch, size_t gene)
{
    const hwnas_gene *g = &arch->space->genes[gene];
    const hwnas_choice *choice = &arch->space->choices[g->choice];
    if (!choice->when)
        return true;
    hwnas_arena *arena = hwnas_arena_new();
    bool is_active = holds(choice, g->position, hwnas_arch_values(arch, arena), arena);
    hwnas_arena_free(arena);
    return is_active;
}

/* Computes every rule once, for its errors. */
static hwnas_status try_rules(const hwnas_arch *arch, hwnas_arena *arena)
{
    const hwnas_space *space = arch->space;
    hwnas_value *values = hwnas_arch_values(arch, arena);
    bool truth;
    for (size_t g = 0; g < space->n_genes; g++) {
        const hwnas_choice *choice = &space->choices[space->genes[g].choice];
        hwnas_value position = {.kind = HWNAS_VALUE_INT, .i = (int64_t)space->genes[g].position};
        hwnas_frame frame = {.scope = &position_scope, .slots = &position, .choices = values};
        if (choice->when)
            TRY(hwnas_expr_eval_truth(&truth, choice->when, &frame, arena));
    }
    hwnas_frame frame = {.scope = &position_scope, .choices = values};
    for (size_t i = 0; i < space->n_constraints; i++)
        TRY(hwnas_expr_eval_truth(&truth, space->constraints[i], &frame, arena));
    return HWNAS_OK;
}

hwnas_status hwnas_space_check_rules(const hwnas_space *space)
{
    enum { N_RANDOM = 16 };
    hwnas_status status = HWNAS_OK;
    if (!space->has_rules)
        return HWNAS_OK;
    hwnas_arena *arena = hwnas_arena_new();
    hwnas_arch *arch = hwnas_arch_new(space);
    hwnas_rng rng = hwnas_rng_new(0, 0);
    TRY_OUT(try_rules(arch, arena));
    for (int i = 0; i < N_RANDOM; i++) {
        hwnas_arch_sample(arch, &rng);
        TRY_OUT(try_rules(arch, arena));
        if (!hwnas_arch_settle(arch)) {
            status = hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &space->constraints[0]->place,
                                           "no architecture was found that meets the constraints"),
                                "thousands of random ones were tried");
            break;
        }
    }
out:
    hwnas_arch_free(arch);
    hwnas_arena_free(arena);
    return status;
}

/* ---- Counting ---- */

/* Marks the genes of the choices that an expression names. */
static void mark(bool *is_seen, const hwnas_space *space, const hwnas_expr *expr)
{
    if (expr->kind == HWNAS_EXPR_CHOICE) {
        const hwnas_choice *choice = &space->choices[expr->slot];
        memset(is_seen + choice->first_gene, true, choice->n_positions);
    }
    for (size_t i = 0; i < expr->n_args; i++)
        mark(is_seen, space, expr->args[i]);
}

static void mark_rules(bool *is_seen, const hwnas_space *space)
{
    for (size_t c = 0; c < space->n_choices; c++)
        if (space->choices[c].when)
            mark(is_seen, space, space->choices[c].when);
    for (size_t i = 0; i < space->n_constraints; i++)
        mark(is_seen, space, space->constraints[i]);
}

/* The next combination of the genes that rules look at. */
static bool next_seen(hwnas_arch *arch, const bool *is_seen)
{
    for (size_t i = arch->space->n_genes; i-- > 0;) {
        if (!is_seen[i])
            continue;
        if (++arch->genes[i] < arch->space->genes[i].n_values)
            return true;
        arch->genes[i] = 0;
    }
    return false;
}

/* Adds the encodings of one combination: the product over the other genes that count. */
static void add_combination(mpz_t sum, const hwnas_arch *combination, hwnas_arch *settled,
                            const bool *is_seen)
{
    const hwnas_space *space = combination->space;
    mpz_t product;
    hwnas_arch_assign(settled, combination);
    if (!hwnas_arch_settle(settled) || !hwnas_arch_equal(settled, combination))
        return;
    mpz_init_set_ui(product, 1);
    hwnas_arena *arena = hwnas_arena_new();
    hwnas_value *values = hwnas_arch_values(settled, arena);
    for (size_t i = 0; i < space->n_genes; i++) {
        const hwnas_gene *gene = &space->genes[i];
        if (!is_seen[i] && holds(&space->choices[gene->choice], gene->position, values, arena))
            mpz_mul_ui(product, product, gene->n_values);
    }
    hwnas_arena_free(arena);
    mpz_add(sum, sum, product);
    mpz_clear(product);
}

/* false: there are too many combinations; then `out` is untouched. */
static bool count_with_rules(mpz_t out, const hwnas_space *space)
{
    bool *is_seen = hwnas_alloc(space->n_genes + 1);
    uint64_t combinations = 1;
    mark_rules(is_seen, space);
    for (size_t i = 0; i < space->n_genes; i++)
        if (is_seen[i] && (__builtin_mul_overflow(combinations, space->genes[i].n_values,
                                                  &combinations) ||
                           combinations > MAX_COMBINATIONS))
            combinations = MAX_COMBINATIONS + 1;
    bool is_few = combinations <= MAX_COMBINATIONS;
    if (is_few) {
        hwnas_arch *arch = hwnas_arch_new(space), *settled = hwnas_arch_new(space);
        mpz_set_ui(out, 0);
        do
            add_combination(out, arch, settled, is_seen);
        while (next_seen(arch, is_seen));
        hwnas_arch_free(arch);
        hwnas_arch_free(settled);
    }
    free(is_seen);
    return is_few;
}

static bool count(mpz_t out, const hwnas_space *space)
{
    if (space->has_rules && count_with_rules(out, space))
        return true;
    mpz_set_ui(out, 1);
    for (size_t i = 0; i < space->n_genes; i++)
        mpz_mul_ui(out, out, space->genes[i].n_values);
    return !space->has_rules;
}

char *hwnas_space_count(const hwnas_space *space, bool *is_exact)
{
    mpz_t number;
    mpz_init(number);
    bool exact = count(number, space);
    if (is_exact)
        *is_exact = exact;
    char *gmp_text = mpz_get_str(NULL, 10, number), *text = hwnas_strdup(gmp_text);
    void (*gmp_free)(void *, size_t);
    mp_get_memory_functions(NULL, NULL, &gmp_free);
    gmp_free(gmp_text, strlen(gmp_text) + 1);
    mpz_clear(number);
    return text;
}

uint64_t hwnas_space_count_up_to(const hwnas_space *space, uint64_t limit)
{
    mpz_t number;
    mpz_init(number);
    bool is_exact = count(number, space);
    bool fits = is_exact && mpz_sizeinbase(number, 2) <= 63 && mpz_get_ui(number) <= limit;
    uint64_t result = fits ? mpz_get_ui(number) : 0;
    mpz_clear(number);
    return result;
}
