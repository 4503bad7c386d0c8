/* ruleset.h: the rules of a space, each with the genes that it looks at. Private to space/.
 *
 * A rule is a constraint, or the condition of one position. */
#ifndef HWNAS_SPACE_RULESET_H
#define HWNAS_SPACE_RULESET_H

#include "space/partial.h"

#define HWNAS_NO_RULE SIZE_MAX

typedef struct hwnas_rule {
    const hwnas_expr *expr;
    bool is_condition;
    size_t gene; /* of a condition: the gene that counts when it holds */
    size_t position;
    hwnas_truth truth; /* while nothing is known; HWNAS_OPEN: it looks at these genes */
    size_t n_genes;
    uint32_t *genes; /* ascending */
} hwnas_rule;

typedef struct hwnas_ruleset {
    const hwnas_space *space;
    size_t n; /* the constraints come first, in their order, then the conditions */
    hwnas_rule *rules;
    size_t n_links;     /* genes of all rules */
    size_t *n_touching; /* by gene: the open rules that look at it */
    uint32_t **touching;
    size_t *condition;             /* by gene: its rule, or HWNAS_NO_RULE: it always counts */
    struct hwnas_diagram *diagram; /* every architecture (diagram.h); NULL: too large to make */
    uint16_t *example; /* without a diagram: the genes of an architecture; NULL: none is known */
    bool is_empty;     /* it is proven that no architecture meets the constraints */
} hwnas_ruleset;

/* `mask` picks the constraints; NULL: all. NULL when the rules are too many to work with. Without
 * diagram and example. */
hwnas_ruleset *hwnas_ruleset_new(const hwnas_space *space, const bool *mask, hwnas_arena *arena);

/* An order of the genes in which each comes behind those that its condition looks at: that of the
 * file, or one that keeps what a rule looks at together. */
uint32_t *hwnas_ruleset_order(const hwnas_ruleset *rules, bool is_of_file, hwnas_arena *arena);

#endif
