/* cores.c: fast cores before slow ones, one thread of a core before its second, high numbers before
 * low ones: Linux gives core 0 its housekeeping and most interrupts. */
#include "measure/cores.h"

#include <errno.h>
#include <hwloc.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

typedef struct core {
    int number;
    bool is_sibling; /* a lower number is a thread of the same physical core */
    int speed;       /* rank of its kind (performance, efficiency); -1 where all are alike */
    int node;        /* of NUMA */
} core;

static hwloc_topology_t machine; /* NULL: not known */

/* Once in a process, by what measures alone: it takes a millisecond or more. Nothing else of the
 * machine is asked, and no thread visits the cores to ask them. */
static void load_machine(void)
{
    const unsigned long flags = HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING |
                                HWLOC_TOPOLOGY_FLAG_NO_DISTANCES | HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS;
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology))
        return;
    if (!hwloc_topology_set_flags(topology, flags) && !hwloc_topology_load(topology))
        machine = topology;
    else
        hwloc_topology_destroy(topology);
}

static hwloc_topology_t this_machine(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_machine);
    return machine;
}

static int compare_cores(const void *a, const void *b)
{
    const core *x = a, *y = b;
    if (x->is_sibling != y->is_sibling)
        return x->is_sibling ? 1 : -1;
    if (x->speed != y->speed)
        return x->speed > y->speed ? -1 : 1;
    if (x->node != y->node)
        return y->node - x->node;
    return y->number - x->number;
}

/* hwloc ranks kinds by the capacity that Arm's kernels tell, or by clock rates. */
static core describe(hwloc_topology_t topology, int number)
{
    core out = {.number = number, .speed = -1};
    const hwloc_obj_t thread = hwloc_get_pu_obj_by_os_index(topology, (unsigned)number);
    const hwloc_obj_t whole =
        thread ? hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, thread) : NULL;
    if (whole)
        out.is_sibling = hwloc_bitmap_first(whole->cpuset) < number;
    if (!thread)
        return out;
    const int kind = hwloc_cpukinds_get_by_cpuset(topology, thread->cpuset, 0);
    if (kind >= 0)
        hwloc_cpukinds_get_info(topology, (unsigned)kind, NULL, &out.speed, NULL, NULL, 0);
    out.node = thread->nodeset ? hwloc_bitmap_first(thread->nodeset) : 0;
    if (out.node < 0) /* its memory is not for us, as by docker's --cpuset-mems */
        out.node = 0;
    return out;
}

/* All that this thread may use, best first; returns how many. */
static int list_cores(core cores[HWNAS_MAX_CORES])
{
    int n = 0;
    const hwloc_topology_t topology = this_machine();
    const hwloc_bitmap_t allowed = hwloc_bitmap_alloc();
    if (topology && allowed && !hwloc_get_cpubind(topology, allowed, HWLOC_CPUBIND_THREAD))
        for (int i = hwloc_bitmap_first(allowed); i >= 0 && n < HWNAS_MAX_CORES;
             i = hwloc_bitmap_next(allowed, i))
            cores[n++] = describe(topology, i);
    hwloc_bitmap_free(allowed);
    qsort(cores, (size_t)n, sizeof *cores, compare_cores);
    return n;
}

int hwnas_cores_choose(int out[HWNAS_MAX_CORES], int threads)
{
    core cores[HWNAS_MAX_CORES];
    int n = list_cores(cores);
    if (n > threads)
        n = threads;
    for (int i = 0; i < n; i++)
        out[i] = cores[i].number;
    return n;
}

double hwnas_cores_last_cache(void)
{
    const hwloc_topology_t topology = this_machine();
    double most = 0;
    for (int type = HWLOC_OBJ_L2CACHE; topology && type <= HWLOC_OBJ_L5CACHE; type++) {
        const hwloc_obj_t cache = hwloc_get_obj_by_type(topology, (hwloc_obj_type_t)type, 0);
        if (cache && cache->attr->cache.size)
            most = (double)cache->attr->cache.size;
    }
    return most;
}

/* A name in the kernel's own room for sockets (unix(7), "abstract"): one owner at a time, whoever
 * that is, gone with its process, and nothing on the disk that another user could stand in the way
 * of. Processes in another network namespace do not see it.
 *
 * Test-only: HWNAS_CORE_LOCKS is part of the name, so that what else runs on this machine does not
 * count. Returns the address's length. */
static socklen_t name_lock(struct sockaddr_un *out, const char *what, int number)
{
    const char *more = getenv("HWNAS_CORE_LOCKS");
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    const int n = snprintf(out->sun_path + 1, sizeof out->sun_path - 1, "hwnas-%s-%d%.60s", what,
                           number, more ? more : "");
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int lock(const char *what, int number)
{
    struct sockaddr_un name;
    const socklen_t length = name_lock(&name, what, number);
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -2;
    if (!bind(fd, (const struct sockaddr *)&name, length))
        return fd;
    const bool is_taken = errno == EADDRINUSE;
    close(fd);
    return is_taken ? HWNAS_CORE_TAKEN : -2;
}

/* A socket that somebody owns can be connected to. */
static bool is_locked(const char *what, int number)
{
    struct sockaddr_un name;
    const socklen_t length = name_lock(&name, what, number);
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const bool is_there = fd >= 0 && !connect(fd, (const struct sockaddr *)&name, length);
    if (fd >= 0)
        close(fd);
    return is_there;
}

bool hwnas_core_is_in_use(int number)
{
    return is_locked("core", number) || is_locked("turn", number);
}

int hwnas_core_lock(int number)
{
    return lock("core", number);
}

static void unlock(int *locks, int *n_locks)
{
    while (*n_locks)
        close(locks[--*n_locks]);
}

/* All of them, or none. */
static bool lock_each(int *locks, int *n_locks, const char *what, const int *cores, int n)
{
    *n_locks = 0;
    for (int i = 0; i < n && i < HWNAS_MAX_CORES; i++) {
        const int fd = lock(what, cores[i]);
        if (fd >= 0)
            locks[(*n_locks)++] = fd;
        if (fd == HWNAS_CORE_TAKEN) {
            unlock(locks, n_locks);
            return false;
        }
    }
    return true;
}

bool hwnas_turn_take(hwnas_turn *out, const int *cores, int n)
{
    return lock_each(out->locks, &out->n_locks, "turn", cores, n);
}

void hwnas_turn_end(hwnas_turn *turn)
{
    unlock(turn->locks, &turn->n_locks);
}

/* Takes free ones of a node, of all with -1, until there are enough, and no second threads of
 * cores on a node alone. */
static bool take_free(hwnas_cores *out, const core *all, int n, int node, int wanted)
{
    for (int i = 0; i < n && out->n < wanted; i++) {
        if (node >= 0 && (all[i].node != node || all[i].is_sibling))
            continue;
        const int fd = hwnas_core_lock(all[i].number);
        if (fd == HWNAS_CORE_TAKEN)
            continue;
        if (fd >= 0)
            out->locks[out->n_locks++] = fd;
        out->numbers[out->n++] = all[i].number;
    }
    return out->n == wanted;
}

void hwnas_cores_take(hwnas_cores *out, int threads)
{
    core all[HWNAS_MAX_CORES];
    const int n = list_cores(all);
    const int wanted = n < threads ? n : threads;
    out->n = out->n_locks = 0;
    /* The node of the best core that has enough of them, then whatever there is. */
    for (int i = 0; i < n; i++) {
        bool is_first = true;
        for (int k = 0; k < i; k++)
            is_first &= all[k].node != all[i].node;
        if (is_first && take_free(out, all, n, all[i].node, wanted))
            return;
        if (is_first)
            hwnas_cores_release(out);
    }
    if (take_free(out, all, n, -1, wanted))
        return;
    out->n = wanted; /* too few are free: the best, whoever has them */
    for (int i = 0; i < wanted; i++)
        out->numbers[i] = all[i].number;
}

/* Of memory, as numactl gives one: whose it is knows why. */
static bool has_policy(hwloc_topology_t topology, int flags)
{
    hwloc_membind_policy_t policy = HWLOC_MEMBIND_DEFAULT;
    const hwloc_bitmap_t nodes = hwloc_bitmap_alloc();
    const bool is_known = !hwloc_get_membind(topology, nodes, &policy, flags);
    hwloc_bitmap_free(nodes);
    return is_known && policy != HWLOC_MEMBIND_DEFAULT && policy != HWLOC_MEMBIND_FIRSTTOUCH;
}

int hwnas_cores_spread_memory(const int *cores, int n)
{
    const hwloc_topology_t topology = this_machine();
    const hwloc_bitmap_t nodes = hwloc_bitmap_alloc();
    for (int i = 0; i < n && topology; i++)
        if (cores[i] >= 0)
            hwloc_bitmap_set(nodes, (unsigned)describe(topology, cores[i]).node);
    const int n_nodes = hwloc_bitmap_weight(nodes);
    const int flags = HWLOC_MEMBIND_THREAD | HWLOC_MEMBIND_BYNODESET;
    if (n_nodes > 1 && !has_policy(topology, flags) &&
        hwloc_set_membind(topology, nodes, HWLOC_MEMBIND_INTERLEAVE, flags))
        fprintf(stderr, "hwnas: cannot interleave the runner's memory: %s\n", strerror(errno));
    hwloc_bitmap_free(nodes);
    return n_nodes;
}

void hwnas_cores_lend(hwnas_cores *cores)
{
    unlock(cores->locks, &cores->n_locks);
}

bool hwnas_cores_reclaim(hwnas_cores *cores)
{
    hwnas_cores_lend(cores);
    return lock_each(cores->locks, &cores->n_locks, "core", cores->numbers, cores->n);
}

void hwnas_cores_release(hwnas_cores *cores)
{
    hwnas_cores_lend(cores);
    cores->n = 0;
}
