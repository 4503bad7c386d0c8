/* ends.c: the two ends of a space. */
#include "search/ends.h"

#include "space/repair.h"

static bool is_number(const hwnas_value *value)
{
    return value->kind == HWNAS_VALUE_INT || value->kind == HWNAS_VALUE_REAL;
}

static double number(const hwnas_value *value)
{
    return value->kind == HWNAS_VALUE_INT ? (double)value->i : value->r;
}

/* Index of the value at that end of a gene, of those that may be chosen, or -1 where one is not a
 * number.
 */
static int index_at(const hwnas_gene *gene, hwnas_end end)
{
    int at = -1;
    for (int v = 0; v < (int)gene->n_values; v++) {
        if (!is_number(&gene->values[v]))
            return -1;
        if (!hwnas_gene_keeps(gene, (size_t)v))
            continue;
        if (at < 0)
            at = v;
        double step = number(&gene->values[v]) - number(&gene->values[at]);
        if (end == HWNAS_LARGEST ? step > 0 : step < 0)
            at = v;
    }
    return at;
}

bool hwnas_end_sample(hwnas_arch *out, hwnas_end end, hwnas_rng *rng)
{
    if (!hwnas_arch_sample(out, rng))
        return false;
    for (size_t i = 0; i < out->space->n_genes; i++) {
        int at = index_at(&out->space->genes[i], end);
        if (at >= 0)
            out->genes[i] = (uint16_t)at;
    }
    if (hwnas_arch_settle(out))
        return true;
    hwnas_repair *repair = hwnas_repair_new(out);
    const bool found = hwnas_repair_find(out, repair, SIZE_MAX, 0) || hwnas_arch_sample(out, rng);
    hwnas_repair_free(repair);
    return found;
}
