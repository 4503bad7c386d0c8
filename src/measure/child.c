#define _GNU_SOURCE 1 /* sched_setaffinity() */
#include "measure/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "measure/cores.h"

/* Libraries that do not check malloc() die of it: oneDNN 3.7 does, by SIGSEGV. When less than a
 * quarter of the limit is left at a crash, it is said to be the reason; the parent reads it. */
static void explain_crash(int signal_number)
{
    static const char text[] = "hwnas: crash with memory_limit nearly used up: out of memory\n";
    struct rlimit limit;
    signal(signal_number, SIG_DFL);
    bool is_limited = !getrlimit(RLIMIT_DATA, &limit) && limit.rlim_cur != RLIM_INFINITY;
    size_t quarter = is_limited ? limit.rlim_cur / 4 : 1;
    void *rest = mmap(NULL, quarter, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (rest == MAP_FAILED && write(STDERR_FILENO, text, sizeof text - 1) < 0)
        _exit(1);
    raise(signal_number); /* ends us as the handler returns */
}

hwnas_status hwnas_child_limit_memory(size_t bytes)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_DATA, &limit))
        return hwnas_fail(HWNAS_E_IO, NULL, "cannot ask for the memory limit: %s", strerror(errno));
    limit.rlim_cur = bytes && bytes < limit.rlim_max ? bytes : limit.rlim_max;
    if (setrlimit(RLIMIT_DATA, &limit))
        return hwnas_fail(HWNAS_E_IO, NULL, "cannot limit memory: %s", strerror(errno));
    if (bytes) {
        signal(SIGSEGV, explain_crash);
        signal(SIGBUS, explain_crash);
    }
    return HWNAS_OK;
}

void hwnas_child_pin(const json_t *cores)
{
    cpu_set_t set;
    int numbers[HWNAS_MAX_CORES], n = 0;
    CPU_ZERO(&set);
    for (size_t i = 0; i < json_array_size(cores); i++) {
        json_int_t core = json_integer_value(json_array_get(cores, i));
        if (core < 0 || core >= CPU_SETSIZE)
            continue;
        CPU_SET((size_t)core, &set);
        if (n < HWNAS_MAX_CORES)
            numbers[n++] = (int)core;
    }
    if (n > 1)
        hwnas_cores_spread_memory(numbers, n);
    if (CPU_COUNT(&set) && sched_setaffinity(0, sizeof set, &set))
        fprintf(stderr, "hwnas: cannot pin the runner: %s\n", strerror(errno));
}

/* Ends this process when the parent's end closes, whatever the other threads are stuck in; when
 * they are not, the main thread has read the end and is away before. PR_SET_PDEATHSIG would be
 * shorter, but it fires when the *thread* that started us ends. */
static void *wait_for_hangup(void *in)
{
    struct pollfd parent = {.fd = *(int *)in};
    while (poll(&parent, 1, -1) < 0 && errno == EINTR)
        continue;
    sleep(1);
    _exit(0);
}

hwnas_status hwnas_child_watch_parent(int *in)
{
    pthread_t thread;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 256 << 10); /* counts as data where that is limited */
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    int error = pthread_create(&thread, &attr, wait_for_hangup, in);
    pthread_attr_destroy(&attr);
    return error ? hwnas_fail(HWNAS_E_IO, NULL, "cannot start a thread: %s",
                              error == EAGAIN ? "there may be no more" : strerror(error))
                 : HWNAS_OK;
}

hwnas_status hwnas_child_claim_streams(int *in, int *out)
{
    *in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    *out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (*in < 0 || *out < 0 || nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 ||
        dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return hwnas_fail(HWNAS_E_IO, NULL, "cannot set up the runner's streams: %s",
                          strerror(errno));
    close(nothing);
    return HWNAS_OK;
}

void hwnas_child_be_expendable(void)
{
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    FILE *f = fopen("/proc/self/oom_score_adj", "we");
    if (f) {
        fputs("1000", f);
        fclose(f);
    }
}
