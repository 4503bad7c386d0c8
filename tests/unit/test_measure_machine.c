/* test_measure_machine.c: this machine as measurements see it: its interference monitors, cores and
 * counters of energy. */
#define _GNU_SOURCE /* gettid() */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <hwloc.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "measure/core_choice.h"
#include "measure/cores.h"
#include "measure/crowd.h"
#include "measure/energy.h"
#include "measure/free_memory.h"
#include "measure/machine.h"
#include "measure/occupancy.h"
#include "measure/priority.h"
#include "tests/unit/fake_machine.h"

/* The real interference monitors move the right way; no figures. */
static void test_real_machine(void **state)
{
    (void)state;
    hwnas_machine *m = hwnas_machine_open();
    m->watch(m);
    double start = m->now(m), reference = m->reference(m);
    assert_true(reference > 0 && m->now(m) - start >= reference);
    assert_true(m->stolen(m) >= 0);
    double waited = m->waited(m);
    assert_true(isnan(waited) || waited >= 0);
    hwnas_machine_close(m);
    hwnas_machine_close(NULL);
}

static int count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int n = 0;
    assert_non_null(folder);
    while (readdir(folder))
        n++;
    closedir(folder);
    return n;
}

/* A race watches one machine once for each network. */
static void test_real_machine_is_watched_again(void **state)
{
    (void)state;
    hwnas_machine *m = hwnas_machine_open();
    m->watch(m);
    const int n_descriptors = count_descriptors();
    const double start = m->now(m), waited = m->waited(m);
    for (int i = 0; i < 7; i++)
        m->watch(m);
    assert_int_equal(count_descriptors(), n_descriptors);
    /* One thread cannot have waited longer than the time that has passed. */
    if (!isnan(waited))
        assert_true(m->waited(m) - waited <= m->now(m) - start);
    hwnas_machine_close(m);
}

/* Lines as proc(5) has them, in hundredths of a second. */
/* ---- Priority ---- */

static int policy_of(pid_t thread)
{
    return sched_getscheduler(thread) & ~0x40000000; /* SCHED_RESET_ON_FORK */
}

typedef struct helper {
    pthread_t thread;
    pid_t id;
    pthread_barrier_t barrier;
} helper;

/* A thread that waits, as those of OpenMP. */
static void *help(void *context)
{
    helper *h = context;
    h->id = gettid();
    pthread_barrier_wait(&h->barrier);
    pthread_barrier_wait(&h->barrier);
    return NULL;
}

/* All threads get it and give it back, and those that start in between are ordinary. */
static void test_priority(void **state)
{
    (void)state;
    helper before, later;
    if (hwnas_priority_check() != HWNAS_OK)
        skip(); /* a container without the right */
    assert_int_equal(policy_of(0), SCHED_OTHER);
    pthread_barrier_init(&before.barrier, NULL, 2);
    pthread_barrier_init(&later.barrier, NULL, 2);
    pthread_create(&before.thread, NULL, help, &before);
    pthread_barrier_wait(&before.barrier);

    assert_int_equal(hwnas_priority_raise(10), HWNAS_OK);
    assert_true(hwnas_priority_is_raised());
    assert_int_equal(policy_of(0), SCHED_FIFO);
    assert_int_equal(policy_of(before.id), SCHED_FIFO);
    pthread_create(&later.thread, NULL, help, &later);
    pthread_barrier_wait(&later.barrier);
    assert_int_equal(policy_of(later.id), SCHED_OTHER);

    hwnas_priority_lower();
    assert_false(hwnas_priority_is_raised());
    assert_int_equal(policy_of(0), SCHED_OTHER);
    assert_int_equal(policy_of(before.id), SCHED_OTHER);
    pthread_barrier_wait(&before.barrier);
    pthread_barrier_wait(&later.barrier);
    pthread_join(before.thread, NULL);
    pthread_join(later.thread, NULL);
}

/* Runs `body` in a child, whose priority is its own affair; its exit status. */
static int in_child(int (*body)(void))
{
    int status;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (!child)
        _exit(body());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* 0: the kernel brought it back to ordinary priority, and the process lives. */
static int compute_for_ever(void)
{
    struct rlimit limit;
    if (hwnas_priority_raise(0.05) != HWNAS_OK)
        return 1;
    while (hwnas_priority_is_raised())
        continue;
    if (policy_of(0) != SCHED_OTHER)
        return 2;
    hwnas_priority_lower();
    return getrlimit(RLIMIT_RTTIME, &limit) || limit.rlim_cur != limit.rlim_max ? 3 : 0;
}

static void test_priority_ends_by_itself(void **state)
{
    (void)state;
    if (hwnas_priority_check() != HWNAS_OK)
        skip();
    assert_int_equal(in_child(compute_for_ever), 0);
}

/* What somebody gave the process from outside (chrt) stays as it is, but for a while that is asked
 * for. */
static int keep_own(void)
{
    const struct sched_param own = {.sched_priority = 7};
    struct sched_param now;
    if (sched_setscheduler(0, SCHED_RR, &own) || hwnas_priority_raise(10) != HWNAS_OK)
        return 1;
    if (!hwnas_priority_is_raised() || policy_of(0) != SCHED_RR)
        return 2;
    hwnas_priority_lower();
    const hwnas_kept_priority kept = hwnas_priority_leave();
    if (policy_of(0) != SCHED_OTHER)
        return 4;
    hwnas_priority_return(kept);
    return policy_of(0) == SCHED_RR && !sched_getparam(0, &now) && now.sched_priority == 7 ? 0 : 3;
}

static void test_priority_from_outside(void **state)
{
    (void)state;
    if (hwnas_priority_check() != HWNAS_OK)
        skip();
    assert_int_equal(in_child(keep_own), 0);
}

static void test_occupancy(void **state)
{
    (void)state;
    static const char before[] = "cpu  300 0 100 1000 0 0 0 7 0 0\n"
                                 "cpu0 100 10 50 500 20 1 2 3 0 0\n"
                                 "cpu1 200 0 50 500 0 0 0 4 0 0\n"
                                 "cpu1000000 1 1 1 1 1 1 1 1 0 0\n"
                                 "intr 12345 0 0\n";
    static const char after[] = "cpu  400 0 200 1000 0 0 0 7 0 0\n"
                                "cpu0 130 20 60 550 25 3 5 8 0 0\n" /* 60 more, 5 of them stolen */
                                "cpu1 290 0 55 505 0 0 0 4 0 0\n"   /* 95 more */
                                "intr 12345 0 0\n";
    hwnas_core_ticks t;
    const char *at = hwnas_core_ticks_next(&t, before);
    assert_int_equal(t.core, 0);
    assert_int_equal(t.busy, 100 + 10 + 50 + 1 + 2);
    assert_int_equal(t.stolen, 3);
    at = hwnas_core_ticks_next(&t, at);
    assert_int_equal(t.core, 1);
    at = hwnas_core_ticks_next(&t, at);
    assert_int_equal(t.core, 1000000);
    assert_null(hwnas_core_ticks_next(&t, at));
    assert_null(hwnas_core_ticks_next(&t, ""));
    assert_non_null(hwnas_core_ticks_next(&t, "cpu3"));
    assert_int_equal(t.busy, 0);

    hwnas_occupancy o = {0};
    hwnas_occupancy_look(&o, before, 100,
                         &(hwnas_look){.now = 50, .own = 2, .core = 1, .other = 1});
    assert_true(o.others[0] == 0 && o.others[1] == 0); /* nothing to compare with */
    hwnas_occupancy_look(&o, after, 100,
                         &(hwnas_look){.now = 51, .own = 2.7, .core = 1, .other = 1.1});
    assert_float_equal(o.others[0], 0.6 - 0.1, 1e-9);
    assert_float_equal(o.others[1], 0.95 - 0.7 - 0.1, 1e-9);
    hwnas_occupancy_look(&o, after, 100,
                         &(hwnas_look){.now = 52, .own = 3.7, .core = 1, .other = 1.1});
    assert_true(o.others[0] == 0 && o.others[1] == 0); /* ticks that are yet to come are no debt */
}

enum { SKIPPED = 77 };

/* For what a process does once, or to itself; 0: as it should be. */
static void in_a_process(int (*run)(void))
{
    int status;
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid)
        _exit(run());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == SKIPPED)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* In a process of its own: a process looks at its machine once. */
static void check_order(const char *variable, const char *machine, const int *wanted, int n,
                        double last_cache)
{
    int cores[HWNAS_MAX_CORES], status;
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        setenv(variable, machine, 1);
        const bool is_right = hwnas_cores_choose(cores, HWNAS_MAX_CORES) == n &&
                              !memcmp(cores, wanted, (size_t)n * sizeof *cores) &&
                              hwnas_cores_last_cache() == last_cache;
        _exit(!is_right);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
}

/* Four cores, of which those numbered 1 and 2 are the fast kind. */
static void write_two_kinds(const char *path)
{
    hwloc_topology_t t;
    assert_int_equal(hwloc_topology_init(&t), 0);
    assert_int_equal(hwloc_topology_set_synthetic(t, "core:4 pu:1"), 0);
    assert_int_equal(hwloc_topology_load(t), 0);
    hwloc_bitmap_t cores = hwloc_bitmap_alloc();
    for (int kind = 0; kind < 2; kind++) {
        hwloc_bitmap_zero(cores);
        hwloc_bitmap_set(cores, kind ? 1 : 0);
        hwloc_bitmap_set(cores, kind ? 2 : 3);
        assert_int_equal(hwloc_cpukinds_register(t, cores, kind, 0, NULL, 0), 0);
    }
    assert_int_equal(hwloc_topology_export_xml(t, path, 0), 0);
    hwloc_bitmap_free(cores);
    hwloc_topology_destroy(t);
}

/* Even numbers on node 0, odd ones on node 1. */
#define TWO_NODES "numa:2 core:4 pu:1(indexes=0,2,4,6,1,3,5,7)"

static bool has_cores(const hwnas_cores *cores, const int *wanted, int n)
{
    return cores->n == n && !memcmp(cores->numbers, wanted, (size_t)n * sizeof *wanted);
}

static int take_cores_of_two_nodes(void)
{
    hwnas_cores first, second, third, rest;
    setenv("HWLOC_SYNTHETIC", TWO_NODES, 1);
    setenv("HWNAS_CORE_LOCKS", "-nodes", 1);
    hwnas_cores_take(&first, 2);  /* of the four on node 1 */
    hwnas_cores_take(&second, 3); /* two are left there: the other node */
    hwnas_cores_take(&third, 2);  /* those two */
    hwnas_cores_take(&rest, 8);   /* of both, whoever has them */
    return !(has_cores(&first, (int[]){7, 5}, 2) && has_cores(&second, (int[]){6, 4, 2}, 3) &&
             has_cores(&third, (int[]){3, 1}, 2) &&
             has_cores(&rest, (int[]){7, 5, 3, 1, 6, 4, 2, 0}, 8) &&
             hwnas_cores_spread_memory(second.numbers, 3) == 1 &&
             hwnas_cores_spread_memory(rest.numbers, 8) == 2);
}

/* Threads are on one node where one has room for all of them, and memory is of all nodes that have
 * some. */
static void test_cores_of_one_node(void **state)
{
    (void)state;
    in_a_process(take_cores_of_two_nodes);
}

/* Of other machines. Has to be the first case that looks at one. */
static void test_order_of_cores(void **state)
{
    (void)state;
    char path[] = "/tmp/hwnas-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    check_order("HWLOC_SYNTHETIC", "core:3 pu:1", (int[]){2, 1, 0}, 3, 0);
    check_order("HWLOC_SYNTHETIC", "l3:1(size=33554432) l2:2(size=1048576) core:1 pu:2",
                (int[]){2, 0, 3, 1}, 4, 33554432);
    check_order("HWLOC_SYNTHETIC", "l2:2(size=2097152) core:1 pu:2(indexes=0,2,1,3)",
                (int[]){1, 0, 3, 2}, 4, 2097152);
    check_order("HWLOC_SYNTHETIC", TWO_NODES, (int[]){7, 5, 3, 1, 6, 4, 2, 0}, 8, 0);
    write_two_kinds(path);
    check_order("HWLOC_XMLFILE", path, (int[]){2, 1, 3, 0}, 4, 0);
    unlink(path);
}

static void test_cores(void **state)
{
    (void)state;
    int one[HWNAS_MAX_CORES], all[HWNAS_MAX_CORES];
    int n = hwnas_cores_choose(all, HWNAS_MAX_CORES);
    assert_int_equal(n, hwnas_device_cores());
    assert_int_equal(hwnas_cores_choose(one, 1), 1);
    assert_int_equal(one[0], all[0]);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            assert_int_not_equal(all[i], all[j]);
}

/* What one has taken the next does not get, while there are others. */
static void test_cores_are_held(void **state)
{
    (void)state;
    hwnas_cores a, b, both;
    int n = hwnas_device_cores();
    hwnas_cores_take(&a, 1);
    hwnas_cores_take(&b, 1);
    assert_int_equal(a.n, 1);
    assert_int_equal(b.n, 1);
    /* Another program may hold some of them meanwhile. */
    if (a.n_locks && b.n_locks)
        assert_int_not_equal(a.numbers[0], b.numbers[0]);
    hwnas_cores_take(&both, n + 1); /* more than there are, and some are taken: all the same */
    assert_int_equal(both.n, n);
    hwnas_cores_release(&both);
    hwnas_cores_release(&a);
    hwnas_cores_release(&b);
    assert_int_equal(b.n_locks, 0);
}

/* All cores or none, until it is over. Numbers that no machine has. */
static void test_turns(void **state)
{
    (void)state;
    const int two[] = {900001, 900002}, one[] = {900002}, other[] = {900003, 900002};
    hwnas_turn a = {0}, b = {0}, c = {0};
    assert_true(hwnas_turn_take(&a, two, 2));
    if (!a.n_locks)
        skip(); /* nothing can be locked here */
    assert_false(hwnas_turn_take(&b, one, 1));
    assert_false(hwnas_turn_take(&b, other, 2));
    assert_int_equal(b.n_locks, 0);
    assert_true(hwnas_turn_take(&c, other, 1)); /* what a vain try had taken is free */
    hwnas_turn_end(&c);
    hwnas_turn_end(&a);
    assert_true(hwnas_turn_take(&b, other, 2));
    hwnas_turn_end(&b);
    hwnas_turn_end(&b);
}

enum { HOG_SECONDS = 4 }; /* the kernel may leave us alone for two of them */

/* Cores of this process's own, as a runner's child has them; in a process of its own, as it is
 * moved. */
static int take_turn_elsewhere(void)
{
    hwnas_turn held = {0}, mine = {0};
    const int *now;
    int all[HWNAS_MAX_CORES];
    const int n = hwnas_cores_choose(all, HWNAS_MAX_CORES);
    setenv("HWNAS_CORE_LOCKS", "-elsewhere", 1);
    hwnas_place_allow(all, n, 1);
    const bool is_moving = n > 1 && hwnas_place_cores(&now) == 1;
    const int first = is_moving ? *now : -1;
    if (!is_moving || !hwnas_turn_take(&held, &first, 1) || !held.n_locks)
        return SKIPPED;
    if (!hwnas_place_take_turn(&mine) || mine.n_locks != 1 || sched_getcpu() == first ||
        hwnas_place_cores(&now) != 1 || *now == first)
        return 1;
    for (int i = 0; i < n; i++) /* somebody measures on each: none is ours */
        hwnas_turn_take(&(hwnas_turn){0}, &all[i], 1);
    return hwnas_place_take_turn(&(hwnas_turn){0});
}

/* A thread of real-time priority on our core keeps us from it; one that has ended does not. */
static int nap_beside_real_time(void)
{
    int core = sched_getcpu(), ready[2];
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)core, &set);
    if (sched_setaffinity(0, sizeof set, &set) || pipe(ready))
        return SKIPPED;
    hwnas_place_allow(&core, 1, 1);
    hwnas_place_bind(&core, 1);
    const pid_t hog = fork();
    if (!hog) {
        const bool is_raised = hwnas_priority_raise(10) == HWNAS_OK;
        if (write(ready[1], &is_raised, sizeof is_raised) < 0)
            _exit(1);
        for (const double start = hwnas_now(); is_raised && hwnas_now() - start < HOG_SECONDS;)
            continue;
        _exit(0);
    }
    bool is_raised = false, was_kept = false;
    if (read(ready[0], &is_raised, sizeof is_raised) < 0)
        return 1;
    while (is_raised && !waitpid(hog, NULL, WNOHANG))
        was_kept |= hwnas_place_nap();
    return !is_raised ? SKIPPED : !was_kept;
}

static void test_a_turn_on_another_core(void **state)
{
    (void)state;
    in_a_process(take_turn_elsewhere);
}

static void test_a_nap_beside_real_time(void **state)
{
    (void)state;
    in_a_process(nap_beside_real_time);
}

/* A core is taken for every user of the machine, until the process ends, and by nothing that lies
 * in a folder where somebody else could put something under its name. */
static void test_a_core_is_held_for_all(void **state)
{
    (void)state;
    enum { NUMBER = 987654 }; /* which no machine has */
    char path[64], target[64] = "", byte;
    int ready[2], done[2];
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(done), 0);
    const pid_t pid = fork();
    if (!pid) {
        const bool is_other = geteuid() || !setuid(65534);
        const char answer = is_other && hwnas_core_lock(NUMBER) >= 0;
        if (write(ready[1], &answer, 1) != 1 || read(done[0], &byte, 1) < 0)
            _exit(1);
        _exit(0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_true(byte);
    assert_int_equal(hwnas_core_lock(NUMBER), HWNAS_CORE_TAKEN);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    const int fd = hwnas_core_lock(NUMBER);
    assert_true(fd >= 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    assert_true(readlink(path, target, sizeof target - 1) > 0);
    assert_non_null(strstr(target, "socket:"));
    close(fd);
    for (int i = 0; i < 2; i++) {
        close(ready[i]);
        close(done[i]);
    }
}

static void write_text(const char *folder, const char *file, const char *text)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* Two packages and a part of one, as the kernel's documentation shows them. */
static void test_energy_counters(void **state)
{
    (void)state;
    char root[] = "/tmp/hwnas-powercap-XXXXXX", zones[3][300];
    const char *const names[] = {"intel-rapl:0", "intel-rapl:0:0", "intel-rapl:1"};
    assert_non_null(mkdtemp(root));
    assert_null(hwnas_energy_open(root));
    for (int i = 0; i < 3; i++) {
        snprintf(zones[i], sizeof zones[i], "%s/%s", root, names[i]);
        assert_int_equal(mkdir(zones[i], 0700), 0);
        write_text(zones[i], "name", i == 0 ? "package-0\n" : i == 1 ? "core\n" : "package-1\n");
        write_text(zones[i], "max_energy_range_uj", "262143328850\n");
        write_text(zones[i], "energy_uj", "262143000000\n");
    }
    hwnas_energy *energy = hwnas_energy_open(root);
    assert_non_null(energy);
    assert_true(hwnas_energy_joules(energy) == 0);
    write_text(zones[0], "energy_uj", "262143300000\n");
    write_text(zones[1], "energy_uj", "262143200000\n"); /* a part: not counted twice */
    assert_near(hwnas_energy_joules(energy), 0.3, 1e-9);
    write_text(zones[2], "energy_uj", "671150\n"); /* it has begun again */
    assert_near(hwnas_energy_joules(energy), 0.3 + 1, 1e-9);
    hwnas_energy_close(energy);
    hwnas_energy_close(NULL);
    for (int i = 0; i < 3; i++) {
        static const char *const files[] = {"name", "max_energy_range_uj", "energy_uj"};
        for (int k = 0; k < 3; k++) {
            char path[1300];
            snprintf(path, sizeof path, "%s/%s", zones[i], files[k]);
            unlink(path);
        }
        rmdir(zones[i]);
    }
    rmdir(root);
}

/* ---- Conditions ---- */

/* A file below a root, with all the folders above it. */
static void write_below(const char *root, const char *path, const char *text)
{
    char whole[1024];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    for (char *at = whole + strlen(root) + 1; (at = strchr(at, '/')); *at++ = '/') {
        *at = '\0';
        mkdir(whole, 0700);
    }
    FILE *f = fopen(whole, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void remove_all(const char *root)
{
    char command[1100];
    snprintf(command, sizeof command, "rm -r '%s'", root);
    assert_int_equal(system(command), 0);
}

/* Files as the kernel's documentation shows them; nothing is known of an empty root. */
static void test_conditions(void **state)
{
    (void)state;
    char root[] = "/tmp/hwnas-system-XXXXXX", path[300];
    assert_non_null(mkdtemp(root));
    hwnas_conditions c = hwnas_conditions_read(root);
    assert_string_equal(c.governor, "");
    assert_true(c.turbo == -1 && isnan(c.celsius) && isnan(c.quota) && isnan(c.quota_stops) &&
                isnan(c.heat_stops));
    for (int core = 0; core < CPU_SETSIZE; core++) {
        cpu_set_t set;
        if (sched_getaffinity(0, sizeof set, &set) || !CPU_ISSET((size_t)core, &set))
            continue;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor", core);
        write_below(root, path, "powersave\n");
        snprintf(path, sizeof path,
                 "/sys/devices/system/cpu/cpu%d/thermal_throttle/package_throttle_count", core);
        write_below(root, path, "41\n");
    }
    write_below(root, "/sys/devices/system/cpu/intel_pstate/no_turbo", "1\n");
    write_below(root, "/sys/class/thermal/thermal_zone0/type", "acpitz\n");
    write_below(root, "/sys/class/thermal/thermal_zone0/temp", "99000\n"); /* not the processor's */
    write_below(root, "/sys/class/thermal/thermal_zone1/type", "x86_pkg_temp\n");
    write_below(root, "/sys/class/thermal/thermal_zone1/temp", "71500\n");
    write_below(root, "/sys/class/hwmon/hwmon3/name", "coretemp\n");
    write_below(root, "/sys/class/hwmon/hwmon3/temp2_input", "68000\n");
    /* Version 2: the limit of the group around ours is the tighter one. */
    write_below(root, "/proc/self/cgroup", "0::/pod/job\n");
    write_below(root, "/sys/fs/cgroup/pod/job/cpu.max", "max 100000\n");
    write_below(root, "/sys/fs/cgroup/pod/job/cpu.stat", "usage_usec 9\nnr_periods 0\n");
    write_below(root, "/sys/fs/cgroup/pod/cpu.max", "150000 100000\n");
    write_below(root, "/sys/fs/cgroup/pod/cpu.stat", "nr_periods 20\nnr_throttled 7\n");
    c = hwnas_conditions_read(root);
    assert_string_equal(c.governor, "powersave");
    assert_int_equal(c.turbo, 0);
    assert_near(c.celsius, 71.5, 1e-9);
    assert_near(c.quota, 1.5, 1e-9);
    assert_near(c.quota_stops, 7, 0);
    assert_near(c.heat_stops, 41, 0);
    /* Version 1, as one of several hierarchies. */
    write_below(root, "/proc/self/cgroup", "4:cpuset:/other\n3:cpu,cpuacct:/box\n0::/\n");
    write_below(root, "/sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "50000\n");
    write_below(root, "/sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us", "100000\n");
    write_below(root, "/sys/fs/cgroup/cpu,cpuacct/box/cpu.stat", "nr_throttled 3\n");
    write_below(root, "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    c = hwnas_conditions_read(root);
    assert_near(c.quota, 0.5, 1e-9);
    assert_near(c.quota_stops, 3, 0);
    /* Nonsense is nothing that is known. */
    write_below(root, "/proc/self/cgroup", "no colon\n\n0:\n:::\n");
    write_below(root, "/sys/devices/system/cpu/intel_pstate/no_turbo", "perhaps\n");
    c = hwnas_conditions_read(root);
    assert_true(isnan(c.quota) && c.turbo == -1);
    remove_all(root);
}

/* ---- Memory ---- */

/* More than a quarter of the machine's, and of each group's limit. */
static void test_amounts_of_memory(void **state)
{
    static const char meminfo[] = "MemTotal:  1000 kB\nMemFree:  10 kB\nMemAvailable:  500 kB\n";
    static const struct {
        const char *groups;
        uint64_t all, available;
    } cases[] = {
        {"", 1024000, 512000},
        {"max 123 45\n", 1024000, 512000},
        {"600000 100000 0\n", 600000, 500000},
        {"900000 800000 100000\n700000 1 0\n", 700000, 200000},
        {"900000 950000 0\n", 900000, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t all, available;
        assert_true(hwnas_memory_find(&all, &available, meminfo, cases[i].groups));
        assert_int_equal(all, cases[i].all);
        assert_int_equal(available, cases[i].available);
    }
    uint64_t all = 1, available = 2;
    assert_false(hwnas_memory_find(&all, &available, "", ""));
}

static void test_plenty_of_memory(void **state)
{
    static const char half[] = "MemTotal:  1000 kB\nMemFree:  10 kB\nMemAvailable:  500 kB\n";
    static const struct {
        const char *meminfo, *groups;
        bool expected;
    } cases[] = {
        {half, "", true},
        {"MemTotal: 1000 kB\nMemAvailable: 251 kB\n", "", true},
        {"MemTotal: 1000 kB\nMemAvailable: 250 kB\n", "", false},
        {"MemTotal: 1000 kB\nMemFree: 900 kB\n", "", false}, /* before Linux 3.14 */
        {"MemTotal: much\nMemAvailable: more\n", "", false},
        {"", "", false},
        {half, "4000 2999 0\n", true},
        {half, "4000 3000 0\n", false},
        {half, "4000 3999 1000\n", true}, /* files that nobody uses are given back */
        {half, "4000 3999 999\n", false},
        {half, "4000 100 200\n", true}, /* counted at different moments */
        {half, "4000 5000 0\n", false}, /* the limit was lowered */
        {half, "0 0 0\n", false},
        {half, "max 123 45\n", true},
        {half, "9223372036854771712 3000 0\n", true}, /* version 1: none */
        {half, "max 1 0\n4000 3500 0\n9000 1 0\n", false},
        {half, "9000 1 0\n\nwhat\n4000 3500 0", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (hwnas_memory_is_plenty(cases[i].meminfo, cases[i].groups) != cases[i].expected)
            fail_msg("case %zu: '%s'", i, cases[i].groups);
}

/* Files as a container has them, where the machine has plenty. */
static void test_memory_of_groups(void **state)
{
    (void)state;
    char root[] = "/tmp/hwnas-system-XXXXXX";
    assert_non_null(mkdtemp(root));
    assert_false(hwnas_memory_is_plenty_now(root));
    write_below(root, "/proc/meminfo",
                "MemTotal:       16384 kB\nMemFree:        1 kB\nMemAvailable:   9000 kB\n");
    assert_true(hwnas_memory_is_plenty_now(root));
    /* Version 2: our group has no limit, the one around it has. */
    write_below(root, "/proc/self/cgroup", "0::/pod/job\n");
    write_below(root, "/sys/fs/cgroup/pod/job/memory.max", "max\n");
    write_below(root, "/sys/fs/cgroup/pod/job/memory.current", "3500\n");
    write_below(root, "/sys/fs/cgroup/pod/memory.max", "4000\n");
    write_below(root, "/sys/fs/cgroup/pod/memory.current", "3500\n");
    assert_false(hwnas_memory_is_plenty_now(root));
    write_below(root, "/sys/fs/cgroup/pod/memory.stat",
                "anon 100\nfile 3400\nactive_file 2400\ninactive_file 1000\n");
    assert_true(hwnas_memory_is_plenty_now(root));
    /* Version 1: the controller of memory alone, below where a container sees its own. */
    write_below(root, "/proc/self/cgroup", "4:memory:/docker/0a1b\n3:cpu,cpuacct:/box\n");
    assert_true(hwnas_memory_is_plenty_now(root));
    write_below(root, "/sys/fs/cgroup/cpu,cpuacct/box/memory.limit_in_bytes", "1\n");
    write_below(root, "/sys/fs/cgroup/cpu,cpuacct/box/memory.usage_in_bytes", "1\n");
    assert_true(hwnas_memory_is_plenty_now(root));
    write_below(root, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "4000\n");
    write_below(root, "/sys/fs/cgroup/memory/memory.usage_in_bytes", "3500\n");
    write_below(root, "/sys/fs/cgroup/memory/memory.stat",
                "cache 3400\ninactive_file 0\nactive_file 0\ntotal_inactive_file 10\n");
    assert_false(hwnas_memory_is_plenty_now(root));
    write_below(root, "/sys/fs/cgroup/memory/memory.stat",
                "cache 3400\ninactive_file 0\nactive_file 0\ntotal_inactive_file 1000\n");
    assert_true(hwnas_memory_is_plenty_now(root));
    remove_all(root);
}

/* ---- Who uses the processor ---- */

static void write_process(const char *root, long process, long parent, const char *name,
                          double seconds)
{
    char path[64], text[256];
    const double ticks = seconds * (double)sysconf(_SC_CLK_TCK);
    snprintf(path, sizeof path, "/proc/%ld/stat", process);
    snprintf(text, sizeof text,
             "%ld (%s) R %ld 1 1 0 -1 4194304 100 0 0 0 %.0f %.0f 0 0 20 0 1 0 55 1 2\n", process,
             name, parent, 0.75 * ticks, 0.25 * ticks);
    write_below(root, path, text);
}

/* proc(5)'s files of a second in which four programs compute, and this one with its child. */
static void test_crowd(void **state)
{
    (void)state;
    const long own = (long)getpid();
    char root[] = "/tmp/hwnas-crowd-XXXXXX", *words;
    assert_non_null(mkdtemp(root));
    hwnas_crowd *none = hwnas_crowd_look(root);
    assert_near(hwnas_crowd_used(NULL, none, none, 1), 0, 0);
    write_process(root, 1, 0, "init", 100);
    write_process(root, own, 1, "hwnas", 10);
    write_process(root, own + 1, own, "hwnas", 20);
    write_process(root, own + 2, 1, "cc1", 5);
    write_process(root, own + 4, 1, "a) (b", 1);
    write_below(root, "/proc/self/stat", "is no process");
    write_below(root, "/proc/99999999/stat", "nonsense");
    hwnas_crowd *before = hwnas_crowd_look(root);
    write_process(root, own, 1, "hwnas", 11);
    write_process(root, own + 1, own, "hwnas", 21);
    write_process(root, own + 2, 1, "cc1", 5.8);
    write_process(root, own + 3, 1, "cc1", 0.4); /* has begun since */
    write_process(root, own + 4, 1, "a) (b", 1.5);
    write_process(root, own + 5, 1, "ld\x1b[31m", 0.2);
    write_process(root, own + 6, 1, "sh", 0.04);
    hwnas_crowd *after = hwnas_crowd_look(root);
    assert_near(hwnas_crowd_used(&words, before, after, 2), (1.2 + 0.5 + 0.2 + 0.04) / 2, 1e-9);
    assert_string_equal(words, "cc1 0.60, a) (b 0.25, ld [31m 0.10, 1 other 0.02");
    free(words);
    hwnas_crowd_free(none);
    hwnas_crowd_free(before);
    hwnas_crowd_free(after);
    remove_all(root);
    assert_null(hwnas_crowd_warning(1, HWNAS_PRIORITY_NORMAL));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_real_machine),
        cmocka_unit_test(test_real_machine_is_watched_again),
        cmocka_unit_test(test_priority),
        cmocka_unit_test(test_priority_ends_by_itself),
        cmocka_unit_test(test_priority_from_outside),
        cmocka_unit_test(test_occupancy),
        cmocka_unit_test(test_order_of_cores),
        cmocka_unit_test(test_cores_of_one_node),
        cmocka_unit_test(test_cores),
        cmocka_unit_test(test_cores_are_held),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_a_turn_on_another_core),
        cmocka_unit_test(test_a_nap_beside_real_time),
        cmocka_unit_test(test_a_core_is_held_for_all),
        cmocka_unit_test(test_energy_counters),
        cmocka_unit_test(test_conditions),
        cmocka_unit_test(test_amounts_of_memory),
        cmocka_unit_test(test_plenty_of_memory),
        cmocka_unit_test(test_memory_of_groups),
        cmocka_unit_test(test_crowd),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
