/* cores.c: fast cores before slow ones, one thread of a core before its second, high numbers before
 * low ones: Linux gives core 0 its housekeeping and most interrupts. */
#define _GNU_SOURCE 1 /* sched_getaffinity() */
#include "measure/cores.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"

typedef struct core {
    int number;
    bool is_sibling; /* a lower number is a thread of the same physical core */
    long speed;      /* capacity or highest clock rate; 0 where the kernel does not tell */
} core;

/* The first number in a file of a core's directory in sysfs, or `otherwise`. */
static long read_number(int number, const char *file, long otherwise)
{
    char path[128];
    long value = otherwise;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/%s", number, file);
    FILE *f = hwnas_file_stream(path);
    if (f) {
        if (fscanf(f, "%ld", &value) != 1)
            value = otherwise;
        fclose(f);
    }
    return value;
}

static int compare_cores(const void *a, const void *b)
{
    const core *x = a, *y = b;
    if (x->is_sibling != y->is_sibling)
        return x->is_sibling ? 1 : -1;
    if (x->speed != y->speed)
        return x->speed > y->speed ? -1 : 1;
    return y->number - x->number;
}

int hwnas_cores_choose(int out[HWNAS_MAX_CORES], int threads)
{
    cpu_set_t set;
    core cores[HWNAS_MAX_CORES];
    int n = 0;
    if (sched_getaffinity(0, sizeof set, &set))
        return 0;
    for (int i = 0; i < CPU_SETSIZE && n < HWNAS_MAX_CORES; i++) {
        if (!CPU_ISSET(i, &set))
            continue;
        /* cpu_capacity is Arm's word for big and little; cpufreq knows performance and efficiency
         * cores of x86. Both compare only with themselves, and a machine has one of them. */
        long fallback = read_number(i, "cpufreq/cpuinfo_max_freq", 0);
        cores[n++] = (core){
            .number = i,
            .is_sibling = read_number(i, "topology/thread_siblings_list", i) < i,
            .speed = read_number(i, "cpu_capacity", fallback),
        };
    }
    qsort(cores, (size_t)n, sizeof *cores, compare_cores);
    if (n > threads)
        n = threads;
    for (int i = 0; i < n; i++)
        out[i] = cores[i].number;
    return n;
}

/* A name in the kernel's own room for sockets (unix(7), "abstract"): one owner at a time, whoever
 * that is, gone with its process, and nothing on the disk that another user could stand in the way
 * of. Processes in another network namespace do not see it. */
static int lock(const char *what, int number)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    const int n =
        snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "hwnas-%s-%d", what, number);
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -2;
    if (!bind(fd, (const struct sockaddr *)&name,
              (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)))
        return fd;
    const bool is_taken = errno == EADDRINUSE;
    close(fd);
    return is_taken ? HWNAS_CORE_TAKEN : -2;
}

int hwnas_core_lock(int number)
{
    return lock("core", number);
}

bool hwnas_turn_take(hwnas_turn *out, const int *cores, int n)
{
    out->n_locks = 0;
    for (int i = 0; i < n && i < HWNAS_MAX_CORES; i++) {
        const int fd = lock("turn", cores[i]);
        if (fd >= 0)
            out->locks[out->n_locks++] = fd;
        if (fd == HWNAS_CORE_TAKEN) {
            hwnas_turn_end(out);
            return false;
        }
    }
    return true;
}

void hwnas_turn_end(hwnas_turn *turn)
{
    while (turn->n_locks)
        close(turn->locks[--turn->n_locks]);
}

void hwnas_cores_take(hwnas_cores *out, int threads)
{
    int all[HWNAS_MAX_CORES], n = hwnas_cores_choose(all, HWNAS_MAX_CORES);
    int wanted = n < threads ? n : threads;
    out->n = out->n_locks = 0;
    for (int i = 0; i < n && out->n < wanted; i++) {
        int fd = hwnas_core_lock(all[i]);
        if (fd == HWNAS_CORE_TAKEN)
            continue;
        if (fd >= 0)
            out->locks[out->n_locks++] = fd;
        out->numbers[out->n++] = all[i];
    }
    if (out->n < wanted) { /* too few are free: the best, whoever has them */
        out->n = wanted;
        memcpy(out->numbers, all, (size_t)wanted * sizeof *all);
    }
}

void hwnas_cores_release(hwnas_cores *cores)
{
    while (cores->n_locks)
        close(cores->locks[--cores->n_locks]);
    cores->n = 0;
}
