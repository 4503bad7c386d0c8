/* rules.c: which encodings of a space count: conditions of choices, constraints between them, and
 * how many are left. */
#include <gmp.h>
#include <stdlib.h>
#include <string.h>

#include "space/among.h"
#include "space/arch.h"
#include "space/backtrack.h"
#include "space/diagram.h"

enum { EXAMPLE_STREAM = 3 };

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
    hwnas_scope_frame frame = {.scope = &position_scope, .slots = &position, .choices = values};
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
    hwnas_scope_frame frame = {.choices = values};
    bool is_valid = true;
    for (size_t i = 0; i < space->n_constraints && is_valid; i++)
        if (hwnas_expr_eval_truth(&is_valid, space->constraints[i], &frame, arena) != HWNAS_OK)
            is_valid = false;
    hwnas_arena_free(arena);
    return is_valid && (!space->among || hwnas_among_has(space->among, arch->genes));
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
        hwnas_scope_frame frame = {.scope = &position_scope, .slots = &position, .choices = values};
        if (choice->when)
            TRY(hwnas_expr_eval_truth(&truth, choice->when, &frame, arena));
    }
    hwnas_scope_frame frame = {.scope = &position_scope, .choices = values};
    for (size_t i = 0; i < space->n_constraints; i++)
        TRY(hwnas_expr_eval_truth(&truth, space->constraints[i], &frame, arena));
    return HWNAS_OK;
}

/* ---- What follows from them ---- */

void hwnas_space_prepare(hwnas_space *space)
{
    space->rules = NULL;
    if (!space->has_rules)
        return;
    hwnas_ruleset *rules = hwnas_ruleset_new(space, NULL, space->arena);
    space->rules = rules;
    if (!rules)
        return;
    rules->diagram = hwnas_diagram_new(rules, space->arena);
    if (rules->diagram) {
        rules->is_empty = !hwnas_diagram_has_any(rules->diagram);
        return;
    }
    hwnas_rng rng = hwnas_rng_new(0, EXAMPLE_STREAM);
    uint16_t *genes = hwnas_arena_alloc(space->arena, space->n_genes * sizeof *genes);
    const hwnas_finding finding = hwnas_backtrack(genes, rules, NULL, &rng);
    rules->is_empty = finding == HWNAS_NONE;
    rules->example = finding == HWNAS_FOUND ? genes : NULL;
}

/* ---- Spaces without an architecture ---- */

/* Is it proven that no architecture meets the constraints from `first` to before `end`? */
static bool is_refuted(const hwnas_space *space, size_t first, size_t end)
{
    hwnas_arena *arena = hwnas_arena_new();
    bool *mask = hwnas_arena_alloc(arena, space->n_constraints);
    memset(mask + first, true, end - first);
    const hwnas_ruleset *rules = hwnas_ruleset_new(space, mask, arena);
    const hwnas_diagram *diagram = rules ? hwnas_diagram_new(rules, arena) : NULL;
    const bool is_empty = diagram && !hwnas_diagram_has_any(diagram);
    hwnas_arena_free(arena);
    return is_empty;
}

/* The first constraint that leaves no architecture, with those above it. */
static size_t first_contradiction(const hwnas_space *space)
{
    size_t low = 1, high = space->n_constraints;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (is_refuted(space, 0, middle))
            high = middle;
        else
            low = middle + 1;
    }
    return low - 1;
}

/* The constraint that most random networks do not meet, and the part of them. */
static size_t worst_constraint(double *part, const hwnas_space *space)
{
    enum { N = 2000 };
    size_t *n_failed = hwnas_alloc(space->n_constraints * sizeof *n_failed), worst = 0;
    hwnas_arch *arch = hwnas_arch_new(space);
    hwnas_rng rng = hwnas_rng_new(0, EXAMPLE_STREAM);
    for (int i = 0; i < N; i++) {
        hwnas_arena *arena = hwnas_arena_new();
        for (size_t g = 0; g < space->n_genes; g++)
            arch->genes[g] = (uint16_t)hwnas_rng_below(&rng, (uint32_t)space->genes[g].n_values);
        hwnas_arch_settle(arch);
        hwnas_scope_frame frame = {.choices = hwnas_arch_values(arch, arena)};
        for (size_t c = 0; c < space->n_constraints; c++) {
            bool truth = false;
            if (hwnas_expr_eval_truth(&truth, space->constraints[c], &frame, arena) != HWNAS_OK)
                truth = false;
            n_failed[c] += !truth;
        }
        hwnas_arena_free(arena);
    }
    for (size_t c = 0; c < space->n_constraints; c++)
        worst = n_failed[c] > n_failed[worst] ? c : worst;
    *part = (double)n_failed[worst] / N;
    hwnas_arch_free(arch);
    free(n_failed);
    return worst;
}

hwnas_status hwnas_space_none_found(const hwnas_space *space)
{
    if (space->rules && space->rules->is_empty) {
        const size_t at = first_contradiction(space);
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, &space->constraints[at]->place,
                       is_refuted(space, at, at + 1)
                           ? "no architecture meets this constraint"
                           : "no architecture meets this constraint and those above it"),
            "every combination of the choices breaks one: relax it, or allow more values");
    }
    double part;
    const size_t at = worst_constraint(&part, space);
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &space->constraints[at]->place,
                                 "no architecture was found that meets the constraints; %.4g %% of "
                                 "random networks break this one",
                                 100 * part),
                      "there may be some all the same: relax it, or use fewer values");
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
        if (!hwnas_arch_sample(arch, &rng)) {
            status = hwnas_space_none_found(space);
            break;
        }
        TRY_OUT(try_rules(arch, arena));
    }
out:
    hwnas_arch_free(arch);
    hwnas_arena_free(arena);
    return status;
}

/* ---- Counting ---- */

static char *text_of(const mpz_t number)
{
    char *gmp_text = mpz_get_str(NULL, 10, number), *text = hwnas_strdup(gmp_text);
    void (*gmp_free)(void *, size_t);
    mp_get_memory_functions(NULL, NULL, &gmp_free);
    gmp_free(gmp_text, strlen(gmp_text) + 1);
    return text;
}

/* Of all combinations. */
static void count_plain(mpz_t out, const hwnas_space *space)
{
    mpz_set_ui(out, 1);
    for (size_t i = 0; i < space->n_genes; i++)
        mpz_mul_ui(out, out, space->genes[i].n_values);
}

static const hwnas_diagram *diagram_of(const hwnas_space *space)
{
    return space->rules ? space->rules->diagram : NULL;
}

char *hwnas_space_count(const hwnas_space *space, bool *is_exact)
{
    const hwnas_diagram *diagram = diagram_of(space);
    const bool is_refuted = space->rules && space->rules->is_empty;
    if (is_exact && space->among)
        *is_exact = true;
    if (space->among)
        return hwnas_printf("%zu", space->among->n);
    if (is_exact)
        *is_exact = !space->has_rules || diagram || is_refuted;
    if (diagram || is_refuted)
        return hwnas_strdup(is_refuted ? "0" : diagram->count);
    mpz_t number;
    mpz_init(number);
    count_plain(number, space);
    char *text = text_of(number);
    mpz_clear(number);
    return text;
}

uint64_t hwnas_space_count_up_to(const hwnas_space *space, uint64_t limit)
{
    if (space->among)
        return space->among->n <= limit ? space->among->n : 0;
    if (space->has_rules) {
        const uint64_t n = diagram_of(space) ? diagram_of(space)->few : 0;
        return n <= limit ? n : 0;
    }
    mpz_t number;
    mpz_init(number);
    count_plain(number, space);
    bool fits = mpz_sizeinbase(number, 2) <= 63 && mpz_get_ui(number) <= limit;
    uint64_t result = fits ? mpz_get_ui(number) : 0;
    mpz_clear(number);
    return result;
}
