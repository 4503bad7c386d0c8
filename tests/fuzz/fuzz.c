#include "fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "graph/elaborate.h"
#include "space/space.h"

_Noreturn void fuzz_abort(const char *file, int line, const char *condition)
{
    const hwnas_error *error = hwnas_last_error();
    fprintf(stderr, "%s:%d: not so: %s (last failure: %s: %s; %s)\n", file, line, condition,
            hwnas_status_name(error->status), error->message, error->hint);
    abort();
}

void fuzz_check_message(hwnas_status status)
{
    const hwnas_error *error = hwnas_last_error();
    FUZZ_CHECK(error->status == status && *error->message);
    FUZZ_CHECK(!strchr(error->message, '\n') && !strchr(error->hint, '\n'));
}

void fuzz_check_refused(hwnas_status status)
{
    FUZZ_CHECK(status == HWNAS_E_INPUT);
    fuzz_check_message(status);
}

static char *folder;

static void empty_folder(void)
{
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
            unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        closedir(dir);
}

static void remove_folder(void)
{
    empty_folder();
    rmdir(folder);
}

static void make_folder(void)
{
    const char *root = getenv("TMPDIR");
    folder = hwnas_printf("%s/hwnas-fuzz.XXXXXX", root && *root ? root : "/tmp");
    FUZZ_CHECK(mkdtemp(folder));
    atexit(remove_folder);
}

const char *fuzz_file(const uint8_t *data, size_t size, const char *name)
{
    static char path[4096];
    if (folder)
        empty_folder();
    else
        make_folder();
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    FUZZ_CHECK(fd >= 0);
    FUZZ_CHECK(write(fd, data, size) == (ssize_t)size);
    close(fd);
    return path;
}

const hwnas_space *fuzz_space(void)
{
    static hwnas_space *space;
    if (space)
        return space;
    FUZZ_CHECK(!hwnas_space_load(&space, HWNAS_SOURCE_DIR "/tests/fuzz/space.yaml"));
    FUZZ_CHECK(!hwnas_graph_check(space));
    return space;
}

const hwnas_graph *fuzz_graph(void)
{
    static hwnas_graph *graph;
    if (graph)
        return graph;
    hwnas_arch *arch = hwnas_arch_new(fuzz_space());
    FUZZ_CHECK(!hwnas_graph_build(&graph, arch, 1));
    hwnas_arch_free(arch);
    return graph;
}
