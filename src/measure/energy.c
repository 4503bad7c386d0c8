#include "measure/energy.h"

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

enum { MAX_PACKAGES = 16 };

typedef struct package {
    int fd;            /* energy_uj */
    double last, wrap; /* microjoules; wrap: where the counter begins again */
} package;

struct hwnas_energy {
    int n;
    package packages[MAX_PACKAGES];
    double joules;
};

static bool read_text(char *out, size_t size, const char *zone, const char *file)
{
    char *path = hwnas_printf("%s/%s", zone, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);
    out[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        close(fd);
    free(path);
    return n > 0;
}

static bool read_counter(double *out, int fd)
{
    char text[32];
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    *out = (double)strtoull(text, NULL, 10);
    return n > 0;
}

static void open_package(hwnas_energy *e, const char *zone)
{
    char name[64], range[32];
    package p = {.fd = -1};
    if (e->n == MAX_PACKAGES || !read_text(name, sizeof name, zone, "name") ||
        !hwnas_starts_with(name, "package") ||
        !read_text(range, sizeof range, zone, "max_energy_range_uj"))
        return;
    char *path = hwnas_printf("%s/energy_uj", zone);
    p.fd = open(path, O_RDONLY | O_CLOEXEC);
    p.wrap = (double)strtoull(range, NULL, 10);
    free(path);
    if (p.fd >= 0 && read_counter(&p.last, p.fd))
        e->packages[e->n++] = p;
    else if (p.fd >= 0)
        close(p.fd);
}

const char *hwnas_energy_root(void)
{
    const char *root = getenv("HWNAS_POWERCAP");
    return root && *root ? root : "/sys/class/powercap";
}

hwnas_energy *hwnas_energy_open(const char *root)
{
    hwnas_energy *e = hwnas_alloc(sizeof *e);
    glob_t zones;
    /* "intel-rapl:0" is a package, "intel-rapl:0:1" a part of it; AMD's have the same names. */
    char *pattern = hwnas_printf("%s/intel-rapl:*", root);
    if (!glob(pattern, 0, NULL, &zones)) {
        for (size_t i = 0; i < zones.gl_pathc; i++)
            open_package(e, zones.gl_pathv[i]);
        globfree(&zones);
    }
    free(pattern);
    if (e->n)
        return e;
    free(e);
    return NULL;
}

void hwnas_energy_close(hwnas_energy *e)
{
    if (!e)
        return;
    for (int i = 0; i < e->n; i++)
        close(e->packages[i].fd);
    free(e);
}

double hwnas_energy_joules(hwnas_energy *e)
{
    for (int i = 0; i < e->n; i++) {
        package *p = &e->packages[i];
        double now;
        if (!read_counter(&now, p->fd))
            continue;
        e->joules += 1e-6 * (now - p->last + (now < p->last ? p->wrap : 0));
        p->last = now;
    }
    return e->joules;
}
