#include "predict/vector.h"

#include <string.h>

static size_t width_one_hot(const hwnas_gene *gene)
{
    return gene->n_values;
}

static void fill_one_hot(float *out, const hwnas_gene *gene, uint16_t value)
{
    (void)gene;
    out[value] = 1;
}

static char *label_one_hot(const hwnas_space *space, const hwnas_gene *gene, size_t i)
{
    return hwnas_printf("%s[%zu]=%s", space->choices[gene->choice].name, gene->position + 1,
                        gene->labels[i]);
}

static size_t width_value(const hwnas_gene *gene)
{
    (void)gene;
    return 1;
}

static void fill_value(float *out, const hwnas_gene *gene, uint16_t value)
{
    bool are_numbers = true;
    for (size_t i = 0; i < gene->n_values; i++)
        are_numbers &=
            gene->values[i].kind == HWNAS_VALUE_INT || gene->values[i].kind == HWNAS_VALUE_REAL;
    const hwnas_value *v = &gene->values[value];
    *out = !are_numbers ? (float)value : v->kind == HWNAS_VALUE_REAL ? (float)v->r : (float)v->i;
}

static char *label_value(const hwnas_space *space, const hwnas_gene *gene, size_t i)
{
    (void)i;
    return hwnas_printf("%s[%zu]", space->choices[gene->choice].name, gene->position + 1);
}

const hwnas_vector_layout hwnas_vector_layouts[] = {
    {"one-hot", "a 1 among 0s for each value", width_one_hot, fill_one_hot, label_one_hot},
    {"values", "the values themselves", width_value, fill_value, label_value},
    {0},
};

size_t hwnas_vector_length(const hwnas_vector_layout *layout, const hwnas_space *space)
{
    size_t n = 0;
    for (size_t g = 0; g < space->n_genes; g++)
        n += layout->width(&space->genes[g]);
    return n;
}

void hwnas_vector_fill(float *out, const hwnas_vector_layout *layout, const hwnas_arch *arch)
{
    const hwnas_space *space = arch->space;
    hwnas_arch *settled = hwnas_arch_copy(arch);
    hwnas_arch_settle(settled);
    memset(out, 0, hwnas_vector_length(layout, space) * sizeof *out);
    for (size_t g = 0; g < space->n_genes; out += layout->width(&space->genes[g++]))
        if (hwnas_arch_is_active(settled, g))
            layout->fill(out, &space->genes[g], settled->genes[g]);
    hwnas_arch_free(settled);
}
