/* domain.h: which values of each choice a predictor has learned from, and networks of which sizes.
 * What it says of a network with any other value, or of another size, is extrapolation. */
#ifndef HWNAS_PREDICT_DOMAIN_H
#define HWNAS_PREDICT_DOMAIN_H

#include <jansson.h>

#include "base/str.h"
#include "predict/feature_encoding.h"

/* {choice: [labels]}: of all choices, in the order of the space's values. A position that does not
 * count in a network adds nothing; one choice's positions are taken together. A new reference. */
json_t *hwnas_domain_of(const hwnas_space *space, hwnas_arch *const *archs, size_t n);

/* Whether an object is a domain of this space; else HWNAS_E_INPUT. */
HWNAS_CHECKED hwnas_status hwnas_domain_check(const json_t *domain, const hwnas_space *space);

/* Whether a list of labels has one. */
bool hwnas_domain_lists(const json_t *list, const char *label);

/* Whether a domain has a value of a gene. A choice that is not in it has all. */
bool hwnas_domain_has(const json_t *domain, const hwnas_space *space, size_t gene, size_t value);

/* The labels of a choice that may be chosen and that a domain does not have, each once, in the
 * order of the space's values. A new reference. */
json_t *hwnas_domain_unseen(const json_t *domain, const hwnas_space *space,
                            const hwnas_choice *choice);

/* "128, 132, ... 220 (24)": a list of labels in a few words; "-": it is empty. */
void hwnas_labels_text(hwnas_str *out, const json_t *labels);

/* A Markdown table: of each choice the values in a domain, and the others that the space has. */
void hwnas_domain_table(hwnas_str *out, const json_t *domain, const hwnas_space *space);

/* The same by gene and value, for many networks. */
typedef struct hwnas_domain_map hwnas_domain_map;
hwnas_domain_map *hwnas_domain_map_new(const json_t *domain, const hwnas_space *space);
void hwnas_domain_map_free(hwnas_domain_map *map); /* accepts NULL */

/* Whether a gene of an architecture counts and has a value outside. */
bool hwnas_domain_is_outside(const hwnas_domain_map *map, const hwnas_arch *arch, size_t gene);
/* Whether any does. */
bool hwnas_domain_is_beyond(const hwnas_domain_map *map, const hwnas_arch *arch);

/* ---- Sizes ---- */

/* The facts that are a network's size: MACs and parameters, as logarithms. */
enum { HWNAS_N_SIZES = 2 };
bool hwnas_fact_is_size(const char *name);

/* From the least to the greatest of the rows; one that all networks share is none. */
typedef struct hwnas_size_range {
    const char *name; /* "log macs"; stays */
    size_t column;    /* of the encoding */
    double low, high;
} hwnas_size_range;

typedef struct hwnas_sizes {
    size_t n;
    hwnas_size_range ranges[HWNAS_N_SIZES];
} hwnas_sizes;

/* `ranges`: those of all facts of the encoding (hwnas_fact_ranges()); NULL: not known, and no
 * network is outside. */
hwnas_sizes hwnas_sizes_of(const hwnas_feature_encoding *encoding, const json_t *ranges);

/* How far a size lies outside: above 0 beyond the greatest, below 0 beyond the least, 0 inside.
 * `row`: of the encoding, with its facts. */
double hwnas_size_excess(const hwnas_size_range *range, const double *row);
/* Whether any does. */
bool hwnas_sizes_are_beyond(const hwnas_sizes *sizes, const double *row);

#endif
