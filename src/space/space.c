/* space.c: loading by name, freeing, and counting. The grammar is in parse.c. */
#include "space/space.h"

#include <gmp.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

/* A space is written by hand; a larger file is something else. */
#define MAX_BYTES ((size_t)1 << 20)

hwnas_status hwnas_space_load(hwnas_space **out, const char *name)
{
    hwnas_status status = HWNAS_OK;
    char *path = NULL, *text = NULL;
    size_t length;
    TRY_OUT(hwnas_file_find(&path, name, "search_spaces", ".yaml"));
    TRY_OUT(hwnas_file_read(&text, &length, path, MAX_BYTES));
    TRY_OUT(hwnas_space_parse(out, path, text, length));
out:
    free(text);
    free(path);
    return status;
}

void hwnas_space_free(hwnas_space *space)
{
    if (space)
        hwnas_arena_free(space->arena);
}

char *hwnas_space_count(const hwnas_space *space)
{
    mpz_t count;
    mpz_init_set_ui(count, 1);
    for (size_t i = 0; i < space->n_genes; i++)
        mpz_mul_ui(count, count, space->genes[i].n_values);
    char *gmp_text = mpz_get_str(NULL, 10, count);
    char *text = hwnas_strdup(gmp_text);
    void (*gmp_free)(void *, size_t);
    mp_get_memory_functions(NULL, NULL, &gmp_free);
    gmp_free(gmp_text, strlen(gmp_text) + 1);
    mpz_clear(count);
    return text;
}

uint64_t hwnas_space_count_up_to(const hwnas_space *space, uint64_t limit)
{
    uint64_t count = 1;
    for (size_t i = 0; i < space->n_genes; i++)
        if (__builtin_mul_overflow(count, space->genes[i].n_values, &count) || count > limit)
            return 0;
    return count <= limit ? count : 0;
}
