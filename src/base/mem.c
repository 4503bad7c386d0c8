/* mem.c: an arena of growing chunks, and allocation that does not fail. */
#include "base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

#define ALIGN 16
#define FIRST_CHUNK 4096

/* A search builds one graph after another, and fresh pages cost the kernel more than a graph costs
 * us. So a thread keeps this many bytes of freed arenas; none where a sanitizer watches what is
 * freed. */
#ifdef HWNAS_SANITIZED
#define MAX_SPARE 0
#else
#define MAX_SPARE (1 << 20)
#endif

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

/* ---- Spare chunks of this thread ---- */

typedef struct spare {
    chunk *head;
    size_t size; /* of all of them */
} spare;

static tss_t spare_key;

static void free_spare(void *data)
{
    spare *s = data;
    for (chunk *c = s->head, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    free(s);
}

static void make_spare_key(void)
{
    if (tss_create(&spare_key, free_spare) != thrd_success)
        checked(NULL);
}

static spare *find_spare(void)
{
    static once_flag once = ONCE_FLAG_INIT;
    call_once(&once, make_spare_key);
    spare *s = tss_get(spare_key);
    if (!s) {
        s = hwnas_alloc(sizeof *s);
        if (tss_set(spare_key, s) != thrd_success)
            checked(NULL);
    }
    return s;
}

/* A spare chunk of at least `size` bytes, or a new one of `room`. */
static chunk *take_chunk(size_t size, size_t room)
{
    spare *s = find_spare();
    for (chunk **c = &s->head; *c; c = &(*c)->next)
        if ((*c)->size >= size) {
            chunk *taken = *c;
            *c = taken->next;
            s->size -= taken->size;
            return taken;
        }
    chunk *fresh = checked(malloc(sizeof *fresh + room));
    fresh->size = room;
    return fresh;
}

static void give_chunk(chunk *c)
{
    spare *s = find_spare();
    if (s->size + c->size > MAX_SPARE) {
        free(c);
        return;
    }
    c->next = s->head;
    s->head = c;
    s->size += c->size;
}

/* ---- Arenas ---- */

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
        give_chunk(c);
    }
    free(arena);
}

/* Not zeroed. */
static void *take(hwnas_arena *arena, size_t size)
{
    size = (size + ALIGN - 1) / ALIGN * ALIGN;
    chunk *c = arena->head;
    if (!c || c->size - c->used < size) {
        size_t room = c ? 2 * c->size : FIRST_CHUNK;
        if (room < size)
            room = size;
        c = take_chunk(size, room);
        c->used = 0;
        c->next = arena->head;
        arena->head = c;
    }
    void *p = c->bytes + c->used;
    c->used += size;
    return p;
}

void *hwnas_arena_alloc(hwnas_arena *arena, size_t size)
{
    return memset(take(arena, size), 0, size);
}

void *hwnas_arena_grow(hwnas_arena *arena, const void *old, size_t old_size, size_t new_size)
{
    void *p = take(arena, new_size);
    if (old_size)
        memcpy(p, old, old_size);
    return p;
}

void *hwnas_arena_copy(hwnas_arena *arena, const void *from, size_t size)
{
    void *p = take(arena, size);
    if (size)
        memcpy(p, from, size);
    return p;
}

char *hwnas_arena_string(hwnas_arena *arena, const char *from, size_t length)
{
    char *p = take(arena, length + 1);
    if (length) /* an empty text of a file may be no pointer */
        memcpy(p, from, length);
    p[length] = '\0';
    return p;
}

char *hwnas_arena_join(hwnas_arena *arena, const char *a, const char *b, const char *c)
{
    const size_t n_a = strlen(a), n_b = strlen(b), n_c = strlen(c);
    char *p = take(arena, n_a + n_b + n_c + 1);
    memcpy(p, a, n_a);
    memcpy(p + n_a, b, n_b);
    memcpy(p + n_a + n_b, c, n_c + 1);
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
