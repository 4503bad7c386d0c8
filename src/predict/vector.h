/* vector.h: an architecture as a plain vector, for models that others fit.
 *
 * Two layouts. `one-hot`: for each position of each choice, in the order of the code, one number
 * for each of its values: 1 for the value chosen, else 0. `values`: one number for each position:
 * the value itself where the choice's values are numbers, else its index from 0. In both a position
 * that does not count (its condition does not hold) is 0 throughout. */
#ifndef HWNAS_PREDICT_VECTOR_H
#define HWNAS_PREDICT_VECTOR_H

#include "space/arch.h"

typedef struct hwnas_vector_layout {
    const char *name; /* NULL ends the table */
    const char *help;
    size_t (*width)(const hwnas_gene *gene); /* numbers for one position */
    void (*fill)(float *out, const hwnas_gene *gene, uint16_t value);
    /* Of a gene's i-th number: "op[1]=3". Yours to free(). */
    char *(*label)(const hwnas_space *space, const hwnas_gene *gene, size_t i);
} hwnas_vector_layout;

extern const hwnas_vector_layout hwnas_vector_layouts[];

size_t hwnas_vector_length(const hwnas_vector_layout *layout, const hwnas_space *space);
/* `out` has room for hwnas_vector_length(). */
void hwnas_vector_fill(float *out, const hwnas_vector_layout *layout, const hwnas_arch *arch);

#endif
