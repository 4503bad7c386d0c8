#include "measure/crowd.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "device/devices.h"
#include "measure/conditions.h"
#include "measure/priority.h"

enum { NAMED = 3 }; /* programs that are told by name */
static const double LOOK_SECONDS = 0.3;
static const double ROOM = 0.1; /* of a core, that may lack for each thread */

/* A process, or a program with all its processes. */
typedef struct member {
    long process, parent;
    char name[32];
    double seconds;
} member;

struct hwnas_crowd {
    size_t n, capacity;
    member *members; /* by process */
};

/* "PID (name) state ppid ...", of which the name may have any character; utime and stime are the
 * fields 14 and 15. */
static bool read_process(member *out, const char *path)
{
    char line[1024];
    unsigned long long user, system;
    FILE *file = hwnas_file_stream(path);
    const size_t n = file ? fread(line, 1, sizeof line - 1, file) : 0;
    if (file)
        fclose(file);
    line[n] = '\0';
    char *name = strchr(line, '('), *end = strrchr(line, ')');
    if (!name || !end || end < name)
        return false;
    *end = '\0';
    out->process = strtol(line, NULL, 10);
    snprintf(out->name, sizeof out->name, "%s", name + 1);
    hwnas_clean(out->name, "");
    if (sscanf(end + 1, " %*c %ld %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &out->parent,
               &user, &system) != 3)
        return false;
    out->seconds = (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
    return true;
}

static int by_process(const void *a, const void *b)
{
    const member *x = a, *y = b;
    return (x->process > y->process) - (x->process < y->process);
}

static const member *find(const hwnas_crowd *crowd, long process)
{
    const member key = {.process = process};
    return crowd->n ? bsearch(&key, crowd->members, crowd->n, sizeof key, by_process) : NULL;
}

/* This process, or one that it has started, at any remove. */
static bool is_ours(const hwnas_crowd *crowd, const member *m)
{
    for (size_t step = 0; m && step < crowd->n; step++) {
        if (m->process == (long)getpid())
            return true;
        m = find(crowd, m->parent);
    }
    return false;
}

hwnas_crowd *hwnas_crowd_look(const char *root)
{
    hwnas_crowd *crowd = hwnas_alloc(sizeof *crowd);
    char *folder = hwnas_printf("%s/proc", root);
    DIR *processes = opendir(folder);
    for (struct dirent *e; processes && (e = readdir(processes));) {
        member m;
        if (!isdigit((unsigned char)e->d_name[0]))
            continue;
        char *path = hwnas_printf("%s/%s/stat", folder, e->d_name);
        if (read_process(&m, path)) {
            HWNAS_GROW(crowd->members, crowd->n, crowd->capacity);
            crowd->members[crowd->n++] = m;
        }
        free(path);
    }
    if (processes)
        closedir(processes);
    free(folder);
    if (crowd->n)
        qsort(crowd->members, crowd->n, sizeof *crowd->members, by_process);
    return crowd;
}

void hwnas_crowd_free(hwnas_crowd *crowd)
{
    if (!crowd)
        return;
    free(crowd->members);
    free(crowd);
}

static int by_seconds(const void *a, const void *b)
{
    const member *x = a, *y = b;
    return x->seconds != y->seconds ? (x->seconds < y->seconds ? 1 : -1) : strcmp(x->name, y->name);
}

/* Adds what a process has used to that of its program. */
static void add(hwnas_crowd *programs, const member *m, double seconds)
{
    for (size_t i = 0; i < programs->n; i++)
        if (!strcmp(programs->members[i].name, m->name)) {
            programs->members[i].seconds += seconds;
            return;
        }
    HWNAS_GROW(programs->members, programs->n, programs->capacity);
    programs->members[programs->n] = *m;
    programs->members[programs->n++].seconds = seconds;
}

static char *name_programs(const hwnas_crowd *programs, double seconds)
{
    hwnas_str words = {0};
    double rest = 0;
    for (size_t i = 0; i < programs->n; i++) {
        const double share = programs->members[i].seconds / seconds;
        if (i < NAMED)
            hwnas_str_addf(&words, "%s%s %.2f", i ? ", " : "", programs->members[i].name, share);
        else
            rest += share;
    }
    if (programs->n > NAMED)
        hwnas_str_addf(&words, ", %zu other%s %.2f", programs->n - NAMED,
                       programs->n == NAMED + 1 ? "" : "s", rest);
    return words.s ? words.s : hwnas_strdup("");
}

double hwnas_crowd_used(char **words, const hwnas_crowd *before, const hwnas_crowd *after,
                        double seconds)
{
    hwnas_crowd programs = {0};
    double sum = 0;
    for (size_t i = 0; i < after->n; i++) {
        const member *now = &after->members[i], *then = find(before, now->process);
        const double used = now->seconds - (then ? then->seconds : 0);
        if (used <= 0 || is_ours(after, now))
            continue;
        sum += used;
        add(&programs, now, used);
    }
    if (programs.n)
        qsort(programs.members, programs.n, sizeof *programs.members, by_seconds);
    if (words)
        *words = name_programs(&programs, seconds);
    free(programs.members);
    return sum / seconds;
}

char *hwnas_crowd_warning(int threads, hwnas_priority priority)
{
    const char *root = hwnas_conditions_root();
    const bool is_asked = priority == HWNAS_PRIORITY_NORMAL;
    char *words, *warning = NULL;
    if (threads < 2 || (!is_asked && hwnas_priority_check() == HWNAS_OK))
        return NULL;
    char *why =
        is_asked ? hwnas_strdup("they have ordinary priority, as asked")
                 : hwnas_printf("%s (%s)", hwnas_last_error()->message, hwnas_last_error()->hint);
    hwnas_error_clear();
    const struct timespec pause = {.tv_nsec = (long)(1e9 * LOOK_SECONDS)};
    hwnas_crowd *before = hwnas_crowd_look(root);
    nanosleep(&pause, NULL);
    hwnas_crowd *after = hwnas_crowd_look(root);
    const double used = hwnas_crowd_used(&words, before, after, LOOK_SECONDS);
    const int cores = hwnas_device_cores();
    if (used > cores - threads + ROOM * threads)
        warning = hwnas_printf("this machine is too busy to measure %d threads: other programs use "
                               "%.2f of its %d cores (%s), and %s; what is disturbed is marked",
                               threads, used, cores, words, why);
    hwnas_crowd_free(before);
    hwnas_crowd_free(after);
    free(words);
    free(why);
    return warning;
}
