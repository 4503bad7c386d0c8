#include "search/codebook.h"

#include <stdlib.h>
#include <string.h>

enum { INITIAL_CAPACITY = 1024, MAX_ENTRIES = 1 << 15 };

void hwnas_codebook_init(hwnas_codebook *book)
{
    *book = (hwnas_codebook){.capacity = INITIAL_CAPACITY,
                             .slots = hwnas_alloc(INITIAL_CAPACITY * sizeof *book->slots)};
}

void hwnas_codebook_done(hwnas_codebook *book)
{
    for (size_t i = 0; i < book->capacity; i++)
        if (book->slots[i]) {
            hwnas_encoding_done(&book->slots[i]->encoding);
            free(book->slots[i]);
        }
    free(book->slots);
    memset(book, 0, sizeof *book);
}

static hwnas_codebook_entry **find(const hwnas_codebook *book, const hwnas_arch *arch)
{
    size_t mask = book->capacity - 1, at = hwnas_arch_hash(arch) & mask;
    while (book->slots[at] && !hwnas_arch_equal(book->slots[at]->encoding.arch, arch))
        at = (at + 1) & mask;
    return &book->slots[at];
}

static void grow(hwnas_codebook *book)
{
    size_t old_capacity = book->capacity;
    hwnas_codebook_entry **old = book->slots;
    book->capacity *= 2;
    book->slots = hwnas_alloc(book->capacity * sizeof *book->slots);
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i])
            *find(book, old[i]->encoding.arch) = old[i];
    free(old);
}

hwnas_codebook_entry *hwnas_codebook_get(hwnas_codebook *book, const hwnas_arch *arch)
{
    hwnas_codebook_entry **place = find(book, arch);
    if (*place)
        return *place;
    if (2 * (book->n + 1) > book->capacity) {
        grow(book);
        place = find(book, arch);
    }
    hwnas_codebook_entry *entry = hwnas_alloc(sizeof *entry);
    entry->can_be_built = hwnas_encode(&entry->encoding, arch) == HWNAS_OK;
    if (!entry->can_be_built)
        entry->encoding = (hwnas_encoding){.arch = hwnas_arch_copy(arch)};
    book->n++;
    return *place = entry;
}

void hwnas_codebook_trim(hwnas_codebook *book)
{
    if (book->n <= MAX_ENTRIES)
        return;
    hwnas_codebook_done(book);
    hwnas_codebook_init(book);
}
