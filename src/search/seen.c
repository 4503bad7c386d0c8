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
    for (size_t i = 0; i < seen->capacity; i++)
        hwnas_arch_free(seen->slots[i]);
    free(seen->slots);
    memset(seen, 0, sizeof *seen);
}

/* Where `arch` is, or the empty slot where it belongs. The capacity is a power of two. */
static hwnas_arch **find(const hwnas_seen *seen, const hwnas_arch *arch)
{
    size_t mask = seen->capacity - 1;
    size_t at = hwnas_arch_hash(arch) & mask;
    while (seen->slots[at] && !hwnas_arch_equal(seen->slots[at], arch))
        at = (at + 1) & mask;
    return &seen->slots[at];
}

bool hwnas_seen_has(const hwnas_seen *seen, const hwnas_arch *arch)
{
    return *find(seen, arch) != NULL;
}

static void grow(hwnas_seen *seen)
{
    size_t old_capacity = seen->capacity;
    hwnas_arch **old = seen->slots;
    seen->capacity *= 2;
    seen->slots = hwnas_alloc(seen->capacity * sizeof *seen->slots);
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i])
            *find(seen, old[i]) = old[i];
    free(old);
}

void hwnas_seen_add(hwnas_seen *seen, const hwnas_arch *arch)
{
    if (hwnas_seen_has(seen, arch))
        return;
    if (2 * (seen->n + 1) > seen->capacity)
        grow(seen);
    *find(seen, arch) = hwnas_arch_copy(arch);
    seen->n++;
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
