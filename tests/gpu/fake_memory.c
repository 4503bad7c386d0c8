/* fake_memory.c: the GPU's memory: the host's, behind guards, and full of NaN when it is new. */
#include <cuda.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_gpu.h"

enum { GUARD = 256 };

typedef struct block {
    char *begin;
    size_t bytes;
    struct block *next;
} block;
static block *blocks;
static size_t n_used;

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t bytes)
{
    if (fake.is_lost)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    if (++fake.n_allocations == fake_fault("memory") || n_used + bytes > FAKE_BYTES)
        return CUDA_ERROR_OUT_OF_MEMORY;
    block *b = malloc(sizeof *b);
    char *memory = aligned_alloc(GUARD, (bytes + 3 * GUARD - 1) / GUARD * GUARD);
    memset(memory, 0xA5, GUARD);
    memset(memory + GUARD, 0xFF, bytes);
    memset(memory + GUARD + bytes, 0xA5, GUARD);
    *b = (block){memory + GUARD, bytes, blocks};
    blocks = b;
    n_used += bytes;
    fake.n_live++;
    *out = (CUdeviceptr)b->begin;
    return CUDA_SUCCESS;
}

static bool is_guarded(const block *b)
{
    for (int i = 0; i < GUARD; i++)
        if ((unsigned char)b->begin[i - GUARD] != 0xA5 ||
            (unsigned char)b->begin[b->bytes + (size_t)i] != 0xA5)
            return false;
    return true;
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr at)
{
    for (block **b = &blocks; *b; b = &(*b)->next) {
        block *found = *b;
        if (found->begin != (char *)at)
            continue;
        fake.n_broken += !is_guarded(found);
        n_used -= found->bytes;
        fake.n_live--;
        *b = found->next;
        free(found->begin - GUARD);
        free(found);
        return fake.is_lost ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
    }
    fake.n_broken++;
    return CUDA_ERROR_INVALID_VALUE;
}

bool fake_owns(const char *begin, size_t bytes)
{
    for (const block *b = blocks; b; b = b->next)
        if (begin >= b->begin && begin + bytes <= b->begin + b->bytes)
            return true;
    fprintf(stderr, "fake GPU: %zu bytes at %p are not the GPU's\n", bytes, (const void *)begin);
    fake.n_broken++;
    return false;
}

EXPORT CUresult cuMemGetInfo_v2(size_t *left, size_t *all)
{
    *all = FAKE_BYTES;
    *left = FAKE_BYTES - n_used;
    return CUDA_SUCCESS;
}
