/* diagram.h: every architecture of a space with rules, as the ways through a decision diagram
 * (Bryant, "Graph-Based Algorithms for Boolean Function Manipulation", 1986, with many values).
 * Private to space/.
 *
 * A level decides on one gene. A node is what the rules still say of the genes below (partial.h),
 * so ways that leave the same are counted, drawn and walked as one. */
#ifndef HWNAS_SPACE_DIAGRAM_H
#define HWNAS_SPACE_DIAGRAM_H

#include "base/rng.h"
#include "space/ruleset.h"

#define HWNAS_DEAD UINT32_MAX /* no way goes on here */

typedef struct hwnas_diagram_node {
    uint32_t edge;  /* its first: the node below for each value */
    bool is_active; /* the gene counts; else its first value is the only one */
    bool is_shared; /* all values lead to one node: there is one edge */
} hwnas_diagram_node;

typedef struct hwnas_diagram {
    const hwnas_space *space;
    uint32_t *order; /* genes by level */
    uint32_t
        *levels; /* the first node of each; the level behind the last has the end of all paths */
    hwnas_diagram_node *nodes;
    uint32_t *edges;
    /* Of the ways below a node, as a part of the largest of its level: */
    double *mass;      /* the chance that random values meet the constraints */
    double *share;     /* the number of architectures */
    double acceptance; /* chance that random values of all genes meet the constraints */
    const char *count; /* architectures, in decimal */
    uint64_t few;      /* the same as a number; 0: none, or more than 63 bits hold */
} hwnas_diagram;

/* NULL when it takes more than a bounded effort, in time (about a second) and memory. */
hwnas_diagram *hwnas_diagram_new(const hwnas_ruleset *rules, hwnas_arena *arena);

/* false: there is no architecture. */
static inline bool hwnas_diagram_has_any(const hwnas_diagram *diagram)
{
    return diagram->count[0] != '0';
}

static inline size_t hwnas_diagram_width(const hwnas_diagram *d, uint32_t node, size_t level)
{
    return d->nodes[node].is_active ? d->space->genes[d->order[level]].n_values : 1;
}

static inline uint32_t hwnas_diagram_child(const hwnas_diagram *d, uint32_t node, size_t value)
{
    return d->edges[d->nodes[node].edge + (d->nodes[node].is_shared ? 0 : value)];
}

/* A random way by the weights `mass` or `share`. */
void hwnas_diagram_draw(uint16_t *genes, const hwnas_diagram *diagram, const double *weights,
                        hwnas_rng *rng);
/* Uniform over the architectures whose genes are those of `a` or `b`; both are architectures. */
void hwnas_diagram_cross(uint16_t *genes, const hwnas_diagram *diagram, const uint16_t *a,
                         const uint16_t *b, hwnas_rng *rng);
/* The first and the next way; false: there is none. */
bool hwnas_diagram_first(uint16_t *genes, const hwnas_diagram *diagram);
bool hwnas_diagram_next(uint16_t *genes, const hwnas_diagram *diagram);

#endif
