#include "measure/free_memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "measure/conditions.h"

static bool is_a_quarter(uint64_t all, uint64_t available)
{
    return available > all / 4;
}

bool hwnas_memory_is_plenty(const char *meminfo, const char *groups)
{
    uint64_t all, available;
    const char *total = strstr(meminfo, "MemTotal:"), *left = strstr(meminfo, "MemAvailable:");
    if (!total || !left || sscanf(total, "MemTotal: %" SCNu64, &all) != 1 ||
        sscanf(left, "MemAvailable: %" SCNu64, &available) != 1 || !is_a_quarter(all, available))
        return false;
    for (const char *line = groups; *line; line += *line == '\n') {
        uint64_t limit, used, reclaimable;
        if (sscanf(line, "%" SCNu64 " %" SCNu64 " %" SCNu64, &limit, &used, &reclaimable) == 3) {
            used -= reclaimable < used ? reclaimable : used;
            if (used > limit || !is_a_quarter(limit, limit - used))
                return false;
        }
        line += strcspn(line, "\n");
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

bool hwnas_memory_is_plenty_now(const char *root)
{
    char meminfo[4096];
    hwnas_str groups = {0};
    char *proc = hwnas_printf("%s/proc", root);
    read_text(meminfo, sizeof meminfo, proc, "meminfo");
    free(proc);
    hwnas_conditions_visit_groups(root, "memory", add_group, &groups);
    const bool is_plenty = hwnas_memory_is_plenty(meminfo, groups.n ? groups.s : "");
    hwnas_str_done(&groups);
    return is_plenty;
}
