#include "measure/free_memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "measure/conditions.h"

static bool read_machine(uint64_t *all, uint64_t *available, const char *meminfo)
{
    const char *total = strstr(meminfo, "MemTotal:"), *left = strstr(meminfo, "MemAvailable:");
    return total && left && sscanf(total, "MemTotal: %" SCNu64, all) == 1 &&
           sscanf(left, "MemAvailable: %" SCNu64, available) == 1;
}

/* A line, which becomes the next one; false: it has no limit. */
static bool read_group(uint64_t *limit, uint64_t *available, const char **line)
{
    uint64_t used, reclaimable;
    const bool has =
        sscanf(*line, "%" SCNu64 " %" SCNu64 " %" SCNu64, limit, &used, &reclaimable) == 3;
    *line += strcspn(*line, "\n");
    *line += **line == '\n';
    if (!has)
        return false;
    used -= reclaimable < used ? reclaimable : used;
    *available = used > *limit ? 0 : *limit - used;
    return true;
}

static bool is_a_quarter(uint64_t all, uint64_t available)
{
    return available > all / 4;
}

bool hwnas_memory_is_plenty(const char *meminfo, const char *groups)
{
    uint64_t all, available;
    if (!read_machine(&all, &available, meminfo) || !is_a_quarter(all, available))
        return false;
    for (const char *line = groups; *line;)
        if (read_group(&all, &available, &line) && !is_a_quarter(all, available))
            return false;
    return true;
}

bool hwnas_memory_find(uint64_t *all, uint64_t *available, const char *meminfo, const char *groups)
{
    uint64_t limit, left;
    if (!read_machine(all, available, meminfo))
        return false;
    *all *= 1024;
    *available *= 1024;
    for (const char *line = groups; *line;)
        if (read_group(&limit, &left, &line)) {
            *all = limit < *all ? limit : *all;
            *available = left < *available ? left : *available;
        }
    return true;
}

/* As much as is looked at. */
static void read_text(char *out, size_t size, const char *folder, const char *name)
{
    char *path = hwnas_printf("%s/%s", folder, name);
    FILE *file = hwnas_file_stream(path);
    const size_t n = file ? fread(out, 1, size - 1, file) : 0;
    out[n] = '\0';
    if (file)
        fclose(file);
    free(path);
}

/* Pages of files that nobody has used lately are given back before a limit is reached. */
static void add_group(void *context, const char *folder)
{
    static const struct {
        const char *limit, *used, *reclaimable;
    } versions[] = {{"memory.max", "memory.current", "\ninactive_file "},
                    {"memory.limit_in_bytes", "memory.usage_in_bytes", "\ntotal_inactive_file "}};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        char limit[32], used[32], stat[8192];
        read_text(limit, sizeof limit, folder, versions[i].limit);
        read_text(used, sizeof used, folder, versions[i].used);
        read_text(stat, sizeof stat, folder, "memory.stat");
        const char *found = strstr(stat, versions[i].reclaimable);
        if (*limit && *used)
            hwnas_str_addf(
                context, "%.*s %.*s %" PRIu64 "\n", (int)strcspn(limit, "\n"), limit,
                (int)strcspn(used, "\n"), used,
                found ? (uint64_t)strtoull(found + strlen(versions[i].reclaimable), NULL, 10) : 0);
    }
}

typedef struct memory_texts {
    char meminfo[4096];
    hwnas_str groups;
} memory_texts;

static void read_texts(memory_texts *out, const char *root)
{
    char *proc = hwnas_printf("%s/proc", root);
    out->groups = (hwnas_str){0};
    read_text(out->meminfo, sizeof out->meminfo, proc, "meminfo");
    free(proc);
    hwnas_str_add(&out->groups, "");
    hwnas_conditions_visit_groups(root, "memory", add_group, &out->groups);
}

bool hwnas_memory_is_plenty_now(const char *root)
{
    memory_texts texts;
    read_texts(&texts, root);
    const bool is_plenty = hwnas_memory_is_plenty(texts.meminfo, texts.groups.s);
    hwnas_str_done(&texts.groups);
    return is_plenty;
}

bool hwnas_memory_find_now(uint64_t *all, uint64_t *available, const char *root)
{
    memory_texts texts;
    read_texts(&texts, root);
    const bool is_known = hwnas_memory_find(all, available, texts.meminfo, texts.groups.s);
    hwnas_str_done(&texts.groups);
    return is_known;
}
