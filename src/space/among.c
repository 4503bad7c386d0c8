#define _GNU_SOURCE 1 /* qsort_r() */
/* among.c: a sorted list of architectures, and what is near to others in it.
 *
 * A table has some thousand rows, so whole walks of it take less time than a graph. */
#include "space/among.h"

#include <stdlib.h>
#include <string.h>

static int compare(const uint16_t *a, const uint16_t *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

static int by_genes(const void *a, const void *b, void *n)
{
    return compare(a, b, *(const size_t *)n);
}

size_t hwnas_among_after(const hwnas_among *among, const uint16_t *genes)
{
    size_t low = 0, high = among->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (compare(hwnas_among_at(among, middle), genes, among->n_genes) > 0)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

bool hwnas_among_has(const hwnas_among *among, const uint16_t *genes)
{
    const size_t after = hwnas_among_after(among, genes);
    return after && !compare(hwnas_among_at(among, after - 1), genes, among->n_genes);
}

static size_t count_others(const uint16_t *a, const uint16_t *b, size_t n)
{
    size_t others = 0;
    for (size_t i = 0; i < n; i++)
        others += a[i] != b[i];
    return others;
}

size_t hwnas_among_nearest(const hwnas_among *among, const uint16_t *near, size_t gene,
                           uint16_t value, const uint16_t *a, const uint16_t *b)
{
    const size_t n = among->n_genes, size = n * sizeof *near;
    size_t best = among->n, fewest = SIZE_MAX;
    for (size_t i = 0; i < among->n; i++) {
        const uint16_t *genes = hwnas_among_at(among, i);
        if (gene != SIZE_MAX && genes[gene] != value)
            continue;
        const size_t others = count_others(genes, near, n);
        if (others >= fewest || (a && !memcmp(genes, a, size)) || (b && !memcmp(genes, b, size)))
            continue;
        fewest = others;
        best = i;
    }
    return best;
}

/* ---- Making ---- */

typedef struct list {
    size_t n, room;
    uint16_t *genes;
} list;

static void add(list *to, const hwnas_arch *arch)
{
    const size_t n_genes = arch->space->n_genes;
    if (to->n == to->room) {
        to->room = to->room ? 2 * to->room : 256;
        to->genes = hwnas_realloc(to->genes, (to->room * n_genes + 1) * sizeof *to->genes);
    }
    if (n_genes)
        memcpy(to->genes + to->n++ * n_genes, arch->genes, n_genes * sizeof *to->genes);
}

/* With each combination of the genes from `first` on. */
static void add_all(list *to, hwnas_arch *arch, const hwnas_arch *given)
{
    const hwnas_space *space = arch->space;
    const size_t first = given->space->n_genes;
    uint16_t *raw = hwnas_alloc((space->n_genes + 1) * sizeof *raw);
    if (first)
        memcpy(raw, given->genes, first * sizeof *raw);
    for (size_t g = space->n_genes; g != SIZE_MAX;) {
        if (space->n_genes)
            memcpy(arch->genes, raw, space->n_genes * sizeof *raw);
        if (hwnas_arch_settle(arch))
            add(to, arch);
        for (g = space->n_genes - 1; g != SIZE_MAX && g >= first; g--) {
            if (++raw[g] < space->genes[g].n_values)
                break;
            raw[g] = 0;
        }
        if (g < first)
            break;
    }
    free(raw);
}

static size_t drop_repeated(list *sorted, size_t n_genes)
{
    size_t n = 0;
    for (size_t i = 0; i < sorted->n; i++) {
        const uint16_t *genes = sorted->genes + i * n_genes;
        if (n && !compare(sorted->genes + (n - 1) * n_genes, genes, n_genes))
            continue;
        memmove(sorted->genes + n++ * n_genes, genes, n_genes * sizeof *genes);
    }
    return n;
}

hwnas_status hwnas_space_among(const hwnas_space **out, const hwnas_space *space,
                               const hwnas_arch *const *archs, size_t n)
{
    list all = {0};
    size_t n_genes = space->n_genes;
    hwnas_arch *arch = hwnas_arch_new(space);
    for (size_t i = 0; i < n; i++)
        add_all(&all, arch, archs[i]);
    hwnas_arch_free(arch);
    *out = space;
    if (!n_genes && n) /* its one network */
        return HWNAS_OK;
    if (!all.n) {
        free(all.genes);
        return hwnas_fail(HWNAS_E_INPUT, NULL, "none of them is an architecture of the space '%s'",
                          space->name);
    }
    qsort_r(all.genes, all.n, n_genes * sizeof *all.genes, by_genes, &n_genes);
    all.n = drop_repeated(&all, n_genes);
    if (all.n != hwnas_space_count_up_to(space, all.n)) {
        hwnas_arena *arena = space->arena;
        hwnas_space *few = hwnas_arena_copy(arena, space, sizeof *space);
        const hwnas_among among = {
            .n = all.n,
            .n_genes = n_genes,
            .genes = hwnas_arena_copy(arena, all.genes, all.n * n_genes * sizeof *all.genes)};
        few->among = hwnas_arena_copy(arena, &among, sizeof among);
        few->has_rules = true;
        *out = few;
    }
    free(all.genes);
    return HWNAS_OK;
}
