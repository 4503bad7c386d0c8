/* place.c: greedy placement by size: the largest block first, each at the lowest offset that is
 * free during its life. Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net
 * Inference", MLSys 2020 workshop, algorithm 3: within a few per cent of the lower bound on mobile
 * networks. */
#include "device/place.h"

#include <stdlib.h>

#include "base/mem.h"

static int larger_first(const void *a, const void *b)
{
    const hwnas_block *x = *(hwnas_block *const *)a, *y = *(hwnas_block *const *)b;
    if (x->size != y->size)
        return x->size < y->size ? 1 : -1;
    return x < y ? -1 : x > y; /* the same order everywhere */
}

static int lower_first(const void *a, const void *b)
{
    const hwnas_block *x = *(hwnas_block *const *)a, *y = *(hwnas_block *const *)b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static size_t aligned(size_t size)
{
    return (size + HWNAS_PLACE_ALIGN - 1) / HWNAS_PLACE_ALIGN * HWNAS_PLACE_ALIGN;
}

/* The lowest offset at which `block` meets none of the `n` neighbours, sorted by offset. */
static size_t lowest_gap(const hwnas_block *block, hwnas_block *const *neighbours, size_t n)
{
    size_t offset = 0;
    for (size_t i = 0; i < n; i++) {
        if (offset + block->size <= neighbours[i]->offset)
            break;
        size_t end = aligned(neighbours[i]->offset + neighbours[i]->size);
        if (end > offset)
            offset = end;
    }
    return offset;
}

size_t hwnas_place_blocks(hwnas_block *blocks, size_t n)
{
    size_t total = 0;
    hwnas_block **order = hwnas_alloc(n * sizeof *order);
    hwnas_block **neighbours = hwnas_alloc(n * sizeof *neighbours);
    for (size_t i = 0; i < n; i++)
        order[i] = &blocks[i];
    qsort(order, n, sizeof *order, larger_first);

    for (size_t i = 0; i < n; i++) {
        hwnas_block *block = order[i];
        size_t n_neighbours = 0;
        for (size_t j = 0; j < i; j++)
            if (order[j]->first <= block->last && block->first <= order[j]->last)
                neighbours[n_neighbours++] = order[j];
        qsort(neighbours, n_neighbours, sizeof *neighbours, lower_first);
        block->offset = lowest_gap(block, neighbours, n_neighbours);
        if (block->offset + block->size > total)
            total = block->offset + block->size;
    }
    free(neighbours);
    free(order);
    return aligned(total);
}
