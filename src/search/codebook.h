/* codebook.h: encodings of architectures, made when first asked for and kept for a while. */
#ifndef HWNAS_SEARCH_CODEBOOK_H
#define HWNAS_SEARCH_CODEBOOK_H

#include "search/encoding.h"

typedef struct hwnas_codebook_entry {
    hwnas_encoding encoding;
    bool can_be_built;
    uint64_t mark; /* the caller's, 0 at first */
} hwnas_codebook_entry;

typedef struct hwnas_codebook {
    size_t n, capacity; /* a power of two */
    hwnas_codebook_entry **slots;
} hwnas_codebook;

void hwnas_codebook_init(hwnas_codebook *book);
void hwnas_codebook_done(hwnas_codebook *book);

/* Borrowed until the book is trimmed. */
hwnas_codebook_entry *hwnas_codebook_get(hwnas_codebook *book, const hwnas_arch *arch);
/* Forgets all when they have become too many. */
void hwnas_codebook_trim(hwnas_codebook *book);

#endif
