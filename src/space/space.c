/* space.c: loading by name, freeing, and counting. The grammar is in parse.c. */
#include "space/space.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"

/* A space is written by hand; a larger file is something else. */
#define MAX_BYTES ((size_t)1 << 20)

/* The spaces come first, then the networks of the zoo. */
static hwnas_status find(char **path, const char *name)
{
    hwnas_status status = hwnas_file_find(path, name, "search_spaces", ".yaml");
    if (status != HWNAS_E_NOT_FOUND)
        return status;
    if (hwnas_file_find(path, name, "search_spaces/zoo", ".yaml") == HWNAS_OK)
        return HWNAS_OK;
    return hwnas_file_find(path, name, "search_spaces", ".yaml"); /* for its message */
}

/* Both are the caller's, also of a failure. */
static hwnas_status read_space(char **path, char **text, size_t *length, const char *name)
{
    TRY(find(path, name));
    return hwnas_file_read_text(text, length, *path, MAX_BYTES);
}

size_t hwnas_space_name_length(const char *name)
{
    const char *colon = strrchr(name, ':');
    return colon && strchr(colon, '=') ? (size_t)(colon - name) : strlen(name);
}

hwnas_status hwnas_space_load(hwnas_space **out, const char *name)
{
    hwnas_status status = HWNAS_OK;
    const size_t n = hwnas_space_name_length(name);
    char *file = hwnas_printf("%.*s", (int)n, name), *path = NULL, *text = NULL;
    size_t length;
    TRY_OUT(read_space(&path, &text, &length, file));
    TRY_OUT(hwnas_space_parse(out, path, text, length, name[n] ? name + n + 1 : NULL));
out:
    free(text);
    free(path);
    free(file);
    return status;
}

hwnas_status hwnas_space_load_base(hwnas_space **out, const char *name, const char *settings)
{
    hwnas_status status = HWNAS_OK;
    char *path = NULL, *text = NULL;
    size_t length;
    TRY_OUT(read_space(&path, &text, &length, name));
    TRY_OUT(hwnas_space_parse_base(out, path, text, length, settings));
out:
    free(text);
    free(path);
    return status;
}

bool hwnas_gene_keeps(const hwnas_gene *gene, size_t value)
{
    return !gene->kept || gene->kept[value];
}

void hwnas_space_free(hwnas_space *space)
{
    if (!space)
        return;
    if (space->builder)
        space->builder->free(space->model);
    hwnas_arena_free(space->arena);
}
