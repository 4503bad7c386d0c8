/* caches.c: finds oneDNN's record of the caches, and completes it. caches.h says why. */
#define _GNU_SOURCE 1 /* dl_iterate_phdr */
#include "device/onednn/caches.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <oneapi/dnnl/dnnl.h>

#if defined __x86_64__

#include <cpuid.h>
#include <link.h>

/* What stands in xbyak's class Cpu behind its type. The numbers of the processor's model are what
 * we recognise it by. */
typedef struct processor {
    uint32_t cores[2];
    hwnas_onednn_caches caches;
    uint32_t avx10;
    uint32_t model, family, stepping, extended_model, extended_family, shown_family, shown_model;
} processor;

static uint32_t bits(uint32_t value, int first, int count)
{
    return value >> first & ((1U << count) - 1);
}

/* As xbyak's setFamily(); the encoding is CPUID's leaf 1. */
static void identify(processor *p)
{
    uint32_t eax = 0, ebx, ecx, edx;
    __get_cpuid(1, &eax, &ebx, &ecx, &edx);
    p->stepping = bits(eax, 0, 4);
    p->model = bits(eax, 4, 4);
    p->family = bits(eax, 8, 4);
    p->extended_model = bits(eax, 16, 4);
    p->extended_family = bits(eax, 20, 8);
    p->shown_family = p->family == 0xf ? p->family + p->extended_family : p->family;
    p->shown_model =
        p->family == 0xf || p->family == 6 ? (p->extended_model << 4) + p->model : p->model;
}

static bool is_record(const processor *found, const processor *wanted)
{
    const hwnas_onednn_caches *caches = &found->caches;
    if (memcmp(&found->model, &wanted->model, sizeof *wanted - offsetof(processor, model)) != 0 ||
        !caches->levels || caches->levels > HWNAS_ONEDNN_CACHE_LEVELS)
        return false;
    for (uint32_t i = caches->levels; i < HWNAS_ONEDNN_CACHE_LEVELS; i++)
        if (caches->bytes[i] || caches->sharing[i])
            return false;
    return true;
}

typedef struct search {
    processor wanted;
    hwnas_onednn_caches *found;
} search;

/* Whether an object of the process is oneDNN: the one that has one of its functions. */
static bool is_onednn(const struct dl_phdr_info *object)
{
    const uintptr_t function = (uintptr_t)&dnnl_engine_create;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type == PT_LOAD &&
            function - (object->dlpi_addr + part->p_vaddr) < part->p_memsz)
            return true;
    }
    return false;
}

static int look_into(struct dl_phdr_info *object, size_t size, void *context)
{
    (void)size;
    search *s = context;
    if (!is_onednn(object))
        return 0;
    for (int i = 0; i < object->dlpi_phnum && !s->found; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_W))
            continue;
        const uintptr_t begin = object->dlpi_addr + part->p_vaddr;
        const uintptr_t end = begin + part->p_memsz;
        const size_t step = _Alignof(processor);
        for (uintptr_t at = (begin + step - 1) / step * step; at + sizeof(processor) <= end;
             at += step)
            if (is_record((const processor *)at, &s->wanted)) {
                s->found = &((processor *)at)->caches;
                break;
            }
    }
    return 1;
}

hwnas_onednn_caches *hwnas_onednn_find_caches(void)
{
    static search s;
    if (!s.found) {
        (void)dnnl_get_effective_cpu_isa(); /* makes oneDNN fill its record */
        identify(&s.wanted);
        dl_iterate_phdr(look_into, &s);
    }
    return s.found;
}

#else

hwnas_onednn_caches *hwnas_onednn_find_caches(void)
{
    return NULL;
}

#endif

void hwnas_onednn_know_caches(void)
{
    /* oneDNN's own guesses: get_per_core_cache_size() in its src/cpu/platform.cpp. Every level
     * beyond has the last. A cache below 1 KiB is one that was not told. */
    static const uint32_t guesses[] = {32 << 10, 512 << 10, 1 << 20};
    const uint32_t least = 1024, last = sizeof guesses / sizeof *guesses - 1;
    hwnas_onednn_caches *caches = hwnas_onednn_find_caches();
    for (uint32_t i = 0; caches && i < caches->levels; i++) {
        if (!caches->sharing[i])
            caches->sharing[i] = 1;
        if (caches->bytes[i] / caches->sharing[i] < least)
            caches->bytes[i] = guesses[i < last ? i : last] * caches->sharing[i];
    }
}
