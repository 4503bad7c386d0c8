#include "space/hold.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "space/arch.h"
#include "space/scope.h"

/* "k[2] == 3 or k[2] == 5": its values that are kept; "" when all are. */
static void add_rule(hwnas_str *out, const hwnas_space *space, const hwnas_gene *gene,
                     const bool *kept)
{
    const hwnas_choice *choice = &space->choices[gene->choice];
    size_t n_kept = 0;
    for (size_t v = 0; v < gene->n_values; v++)
        n_kept += kept[v];
    for (size_t v = 0; v < gene->n_values && n_kept < gene->n_values; v++) {
        if (!kept[v])
            continue;
        char *value = hwnas_value_text(&gene->values[v]);
        hwnas_str_addf(out, "%s%s", out->n ? " or " : "", choice->name);
        if (choice->is_vector)
            hwnas_str_addf(out, "[%zu]", gene->position);
        hwnas_str_addf(out, " == %s", value);
        free(value);
    }
    if (!n_kept && gene->n_values)
        hwnas_str_add(out, "0");
}

hwnas_status hwnas_space_hold(const hwnas_space **out, const hwnas_space *space,
                              const bool *const *kept)
{
    hwnas_status status = HWNAS_OK;
    hwnas_arena *arena = space->arena;
    hwnas_space *held = hwnas_arena_copy(arena, space, sizeof *space);
    const hwnas_scope scope = {.space = space};
    held->constraints = hwnas_arena_alloc(arena, (space->n_constraints + space->n_genes + 1) *
                                                     sizeof *held->constraints);
    if (space->n_constraints)
        memcpy(held->constraints, space->constraints,
               space->n_constraints * sizeof *held->constraints);
    for (size_t g = 0; g < space->n_genes && status == HWNAS_OK; g++) {
        hwnas_str rule = {0};
        add_rule(&rule, space, &space->genes[g], kept[g]);
        if (rule.n) {
            const char *text = hwnas_arena_string(arena, rule.s, rule.n);
            status = hwnas_expr_parse(&held->constraints[held->n_constraints++], &scope, text,
                                      &space->choices[space->genes[g].choice].place, false);
        }
        hwnas_str_done(&rule);
    }
    TRY(status);
    if (held->n_constraints > space->n_constraints) {
        held->has_rules = true;
        hwnas_space_prepare(held);
        TRY(hwnas_space_check_rules(held));
        *out = held;
    } else {
        *out = space;
    }
    return HWNAS_OK;
}
