#include "search/neighbours.h"

#include <stdlib.h>
#include <string.h>

#include "space/repair.h"

static void add(hwnas_neighbours *out, const hwnas_arch *arch)
{
    HWNAS_GROW(out->archs, out->n, out->capacity);
    out->archs[out->n++] = hwnas_arch_copy(arch);
}

static bool has(const hwnas_neighbours *neighbours, const hwnas_arch *arch)
{
    for (size_t i = 0; i < neighbours->n; i++)
        if (hwnas_arch_equal(neighbours->archs[i], arch))
            return true;
    return false;
}

/* Those that differ in gene g; `arch` is scratch. */
static void change_alone(hwnas_neighbours *out, const hwnas_arch *of, size_t g, hwnas_arch *arch)
{
    for (size_t v = 0; v < of->space->genes[g].n_values; v++) {
        if (v == of->genes[g])
            continue;
        hwnas_arch_assign(arch, of);
        arch->genes[g] = (uint16_t)v;
        if (hwnas_arch_settle(arch) && arch->genes[g] == v)
            add(out, arch);
    }
}

static void change_with_others(hwnas_neighbours *out, const hwnas_arch *of, size_t g,
                               const hwnas_repair *repair, hwnas_arch *arch)
{
    for (size_t v = 0; v < of->space->genes[g].n_values; v++)
        if (v != of->genes[g] && hwnas_repair_find(arch, repair, g, v) && !has(out, arch))
            add(out, arch);
}

void hwnas_neighbours_of(hwnas_neighbours *out, const hwnas_arch *of)
{
    hwnas_arch *arch = hwnas_arch_new(of->space);
    hwnas_repair *repair = NULL;
    *out = (hwnas_neighbours){0};
    for (size_t g = 0; g < of->space->n_genes; g++) {
        const size_t n = out->n;
        change_alone(out, of, g, arch);
        if (out->n > n || !hwnas_arch_is_stuck(of, g))
            continue;
        repair = repair ? repair : hwnas_repair_new(of);
        change_with_others(out, of, g, repair, arch);
    }
    hwnas_repair_free(repair);
    hwnas_arch_free(arch);
}

void hwnas_neighbours_shuffle(hwnas_neighbours *neighbours, hwnas_rng *rng)
{
    for (size_t i = neighbours->n; i > 1; i--) {
        size_t j = hwnas_rng_below(rng, (uint32_t)i);
        hwnas_arch *other = neighbours->archs[j];
        neighbours->archs[j] = neighbours->archs[i - 1];
        neighbours->archs[i - 1] = other;
    }
}

void hwnas_neighbours_done(hwnas_neighbours *neighbours)
{
    for (size_t i = 0; i < neighbours->n; i++)
        hwnas_arch_free(neighbours->archs[i]);
    free(neighbours->archs);
    memset(neighbours, 0, sizeof *neighbours);
}
