/* mem.c: an arena of growing chunks, and allocation that does not fail. */
#include "base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGN 16
#define FIRST_CHUNK 4096

typedef struct chunk {
    struct chunk *next;
    size_t used, size;
    _Alignas(ALIGN) char bytes[];
} chunk;

struct hwnas_arena {
    chunk *head; /* newest first */
};

static void *checked(void *p)
{
    if (!p) {
        fputs("hwnas: out of memory\n", stderr);
        exit(1);
    }
    return p;
}

void *hwnas_alloc(size_t size)
{
    return checked(calloc(1, size ? size : 1));
}

void *hwnas_realloc(void *old, size_t size)
{
    return checked(realloc(old, size ? size : 1));
}

char *hwnas_strdup(const char *from)
{
    return checked(strdup(from));
}

char *hwnas_printf(const char *format, ...)
{
    char *out = NULL;
    va_list ap;
    va_start(ap, format);
    int n = vasprintf(&out, format, ap);
    va_end(ap);
    return checked(n < 0 ? NULL : out);
}

hwnas_status hwnas_try_alloc(void **out, size_t size, const char *what)
{
    size_t rounded = (size + 63) / 64 * 64;
    void *p = size <= SIZE_MAX - 64 ? aligned_alloc(64, rounded ? rounded : 64) : NULL;
    if (!p)
        return hwnas_fail(HWNAS_E_MEMORY, NULL, "no memory for %s (%.1f MiB)", what,
                          (double)size / (1 << 20));
    memset(p, 0, rounded);
    *out = p;
    return HWNAS_OK;
}

hwnas_arena *hwnas_arena_new(void)
{
    return hwnas_alloc(sizeof(hwnas_arena));
}

void hwnas_arena_free(hwnas_arena *arena)
{
    if (!arena)
        return;
    for (chunk *c = arena->head, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    free(arena);
}

void *hwnas_arena_alloc(hwnas_arena *arena, size_t size)
{
    size = (size + ALIGN - 1) / ALIGN * ALIGN;
    chunk *c = arena->head;
    if (!c || c->size - c->used < size) {
        size_t room = c ? 2 * c->size : FIRST_CHUNK;
        if (room < size)
            room = size;
        c = hwnas_alloc(sizeof *c + room);
        c->size = room;
        c->next = arena->head;
        arena->head = c;
    }
    void *p = c->bytes + c->used;
    c->used += size;
    return p;
}

void *hwnas_arena_copy(hwnas_arena *arena, const void *from, size_t size)
{
    void *p = hwnas_arena_alloc(arena, size);
    if (size)
        memcpy(p, from, size);
    return p;
}

char *hwnas_arena_string(hwnas_arena *arena, const char *from, size_t length)
{
    char *p = hwnas_arena_alloc(arena, length + 1);
    memcpy(p, from, length);
    return p;
}

char *hwnas_arena_printf(hwnas_arena *arena, const char *format, ...)
{
    char *text = NULL;
    va_list ap;
    va_start(ap, format);
    int n = vasprintf(&text, format, ap);
    va_end(ap);
    checked(n < 0 ? NULL : text);
    char *p = hwnas_arena_string(arena, text, (size_t)n);
    free(text);
    return p;
}
