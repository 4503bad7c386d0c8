/* seen.c: a hash table with linear probing, and sampling from its complement. */
#include "search/seen.h"

#include <stdlib.h>
#include <string.h>

/* Of a larger space no study ever sees half. */
#define MAX_COUNTED ((uint64_t)UINT32_MAX)

/* Samples that are seen, before the others get better chances; and before it is given up. */
enum { TRIES = 64, EVEN_TRIES = 256 };

void hwnas_seen_init(hwnas_seen *seen, const hwnas_space *space)
{
    *seen = (hwnas_seen){
        .space = space,
        .space_size = hwnas_space_count_up_to(space, MAX_COUNTED),
        .capacity = 64,
        .slots = hwnas_alloc(64 * sizeof *seen->slots),
    };
}

void hwnas_seen_done(hwnas_seen *seen)
{
    free(seen->genes);
    free(seen->hashes);
    free(seen->slots);
    memset(seen, 0, sizeof *seen);
}

/* Four genes at a time: a study of a million trials is gone through when it is continued. */
static uint32_t hash_of(const hwnas_arch *arch)
{
    const size_t n = arch->space->n_genes;
    uint64_t hash = 14695981039346656037u; /* FNV-1a's numbers */
    for (size_t i = 0; i < n; i += 4) {
        uint64_t genes = 0;
        memcpy(&genes, arch->genes + i, (n - i < 4 ? n - i : 4) * sizeof *arch->genes);
        hash = (hash ^ genes) * 1099511628211u;
        hash ^= hash >> 32;
    }
    return (uint32_t)hash;
}

static bool is_at(const hwnas_seen *seen, size_t at, const hwnas_arch *arch, uint32_t hash)
{
    const size_t n = seen->space->n_genes;
    return seen->hashes[at] == hash &&
           !memcmp(seen->genes + at * n, arch->genes, n * sizeof *seen->genes);
}

/* Its slot, or the empty one where it belongs. The capacity is a power of two. */
static uint32_t *find(const hwnas_seen *seen, const hwnas_arch *arch, uint32_t hash)
{
    const size_t mask = seen->capacity - 1;
    size_t at = hash & mask;
    while (seen->slots[at] && !is_at(seen, seen->slots[at] - 1, arch, hash))
        at = (at + 1) & mask;
    return &seen->slots[at];
}

bool hwnas_seen_has(const hwnas_seen *seen, const hwnas_arch *arch)
{
    return *find(seen, arch, hash_of(arch)) != 0;
}

static void grow(hwnas_seen *seen)
{
    seen->capacity *= 4;
    free(seen->slots);
    seen->slots = hwnas_alloc(seen->capacity * sizeof *seen->slots);
    for (size_t i = 0; i < seen->n; i++) {
        size_t at = seen->hashes[i] & (seen->capacity - 1);
        while (seen->slots[at])
            at = (at + 1) & (seen->capacity - 1);
        seen->slots[at] = (uint32_t)i + 1;
    }
}

void hwnas_seen_add(hwnas_seen *seen, const hwnas_arch *arch)
{
    const size_t n_genes = seen->space->n_genes;
    const uint32_t hash = hash_of(arch);
    if (*find(seen, arch, hash))
        return;
    if (2 * (seen->n + 1) > seen->capacity)
        grow(seen);
    if (seen->n == seen->room) {
        seen->room = seen->room ? 2 * seen->room : 64;
        seen->hashes = hwnas_realloc(seen->hashes, seen->room * sizeof *seen->hashes);
        seen->genes = hwnas_realloc(seen->genes, (seen->room * n_genes + 1) * sizeof *seen->genes);
    }
    seen->hashes[seen->n] = hash;
    memcpy(seen->genes + seen->n * n_genes, arch->genes, n_genes * sizeof *seen->genes);
    *find(seen, arch, hash) = (uint32_t)++seen->n;
}

/* The first encoding that is not seen, after passing over `n_skipped` of them. */
static void walk_to_new(const hwnas_seen *seen, hwnas_arch *out, uint64_t n_skipped)
{
    hwnas_arch *first = hwnas_arch_first(seen->space);
    hwnas_arch_assign(out, first);
    hwnas_arch_free(first);
    while (hwnas_seen_has(seen, out) || n_skipped-- > 0)
        hwnas_arch_next(out);
}

hwnas_status hwnas_seen_all(const hwnas_seen *seen)
{
    return hwnas_fail(HWNAS_E_EXHAUSTED, NULL,
                      "each network of the space '%s' has been tried (%zu)", seen->space->name,
                      seen->n);
}

/* Of a space that is too large to be counted, and which few architectures are found of. */
static hwnas_status none_new(const hwnas_seen *seen)
{
    hwnas_place place = {.file = seen->space->path};
    return hwnas_hint(hwnas_fail(HWNAS_E_EXHAUSTED, &place,
                                 "no new network of the space '%s' was found beside the %zu that "
                                 "have been tried",
                                 seen->space->name, seen->n),
                      "its constraints leave few that can be found");
}

hwnas_status hwnas_seen_sample_new(const hwnas_seen *seen, hwnas_arch *out, hwnas_rng *rng)
{
    if (seen->space_size && seen->n == seen->space_size)
        return hwnas_seen_all(seen);
    if (seen->space_size && seen->n > seen->space_size / 2) {
        uint32_t n_left = (uint32_t)(seen->space_size - seen->n);
        walk_to_new(seen, out, hwnas_rng_below(rng, n_left));
        return HWNAS_OK;
    }
    for (int i = 0; i < TRIES; i++) {
        if (!hwnas_arch_sample(out, rng))
            return hwnas_space_none_found(seen->space);
        if (!hwnas_seen_has(seen, out))
            return HWNAS_OK;
    }
    /* With conditions a few may have nearly all the chances. At most half is seen, so two tries are
     * enough on average where all have the same. */
    for (int i = 0; i < EVEN_TRIES; i++)
        if (hwnas_arch_sample_evenly(out, rng) && !hwnas_seen_has(seen, out))
            return HWNAS_OK;
    return none_new(seen);
}
