#define _GNU_SOURCE 1 /* SCHED_RESET_ON_FORK, CPU_AND() */
#include "measure/priority.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/str.h"

enum { MAX_THREADS = 512 }; /* more stay ordinary */

/* Of the process, like the priority itself. */
static struct {
    int n, threads[MAX_THREADS];
    bool is_inherited; /* the process was started so, and is left so */
    volatile sig_atomic_t is_raised;
} state;

static int bystander; /* a thread; 0: none */
static cpu_set_t bystander_cores;

static const char *const names[] = {
    [HWNAS_PRIORITY_AUTO] = "auto",
    [HWNAS_PRIORITY_REALTIME] = "realtime",
    [HWNAS_PRIORITY_NORMAL] = "normal",
};

const char *hwnas_priority_name(hwnas_priority priority)
{
    return names[priority];
}

hwnas_status hwnas_priority_find(hwnas_priority *out, const char *name)
{
    for (int i = 0; i < HWNAS_N_PRIORITIES; i++)
        if (!strcmp(name, names[i])) {
            *out = (hwnas_priority)i;
            return HWNAS_OK;
        }
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL, "there is no priority '%.30s'", name),
                      "realtime, normal, or auto: realtime where the kernel allows it");
}

static bool is_real_time(int policy)
{
    policy &= ~SCHED_RESET_ON_FORK;
    return policy == SCHED_FIFO || policy == SCHED_RR;
}

/* System calls only, so a signal handler may call it. A thread that has ended is no failure. */
static int set_policy(int thread, int policy, int priority)
{
    const struct sched_param param = {.sched_priority = priority};
    return sched_setscheduler(thread, policy, &param) && errno != ESRCH ? errno : 0;
}

/* The flag stays: without the right to real-time priority it cannot be taken away (sched(7)). */
static void make_ordinary(void)
{
    for (int i = 0; i < state.n; i++)
        set_policy(state.threads[i], SCHED_OTHER | SCHED_RESET_ON_FORK, 0);
}

/* SIGXCPU: a network, or a library, has computed for longer than any measurement should. */
static void drop(int signal_number)
{
    const int before = errno;
    (void)signal_number;
    state.is_raised = 0;
    make_ordinary();
    errno = before;
}

/* RLIMIT_RTTIME is checked by the kernel at each tick, whatever the thread does. INFINITY: as
 * before any limit. */
static void limit_time(double seconds)
{
    struct rlimit limit;
    const struct sigaction action = {.sa_handler = isinf(seconds) ? SIG_DFL : drop,
                                     .sa_flags = SA_RESTART};
    if (getrlimit(RLIMIT_RTTIME, &limit))
        return;
    const double most = limit.rlim_max == RLIM_INFINITY ? INFINITY : 1e-6 * (double)limit.rlim_max;
    limit.rlim_cur = seconds < most ? (rlim_t)(1e6 * seconds) : limit.rlim_max;
    setrlimit(RLIMIT_RTTIME, &limit);
    sigaction(SIGXCPU, &action, NULL);
}

static hwnas_status refuse(int error)
{
    char program[4096];
    const ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    program[n > 0 ? n : 0] = '\0';
    return hwnas_hint(hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                                 "the kernel refuses real-time priority: %s", strerror(error)),
                      "sudo setcap cap_sys_nice+ep %.300s",
                      n > 0 ? program : "$(command -v hwnas)");
}

/* Raises one thread and remembers it. */
static int raise_thread(int thread)
{
    if (state.n == MAX_THREADS)
        return 0;
    const int error =
        set_policy(thread, SCHED_FIFO | SCHED_RESET_ON_FORK, sched_get_priority_min(SCHED_FIFO));
    if (!error)
        state.threads[state.n++] = thread;
    return error;
}

hwnas_status hwnas_priority_raise(double seconds)
{
    int error = 0;
    if (state.is_inherited || (!state.is_raised && is_real_time(sched_getscheduler(0)))) {
        state.is_inherited = true;
        return HWNAS_OK;
    }
    limit_time(seconds);
    state.n = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *e; tasks && !error && (e = readdir(tasks));)
        if (e->d_name[0] != '.' && !hwnas_priority_stands_by(atoi(e->d_name)))
            error = raise_thread(atoi(e->d_name));
    if (!tasks)
        error = raise_thread(0);
    else
        closedir(tasks);
    state.is_raised = !error;
    if (!error)
        return HWNAS_OK;
    make_ordinary();
    return refuse(error);
}

void hwnas_priority_lower(void)
{
    if (state.is_inherited)
        return;
    state.is_raised = 0;
    make_ordinary();
    state.n = 0;
    limit_time(INFINITY);
}

bool hwnas_priority_is_raised(void)
{
    return state.is_inherited || state.is_raised;
}

hwnas_status hwnas_priority_check(void)
{
    if (is_real_time(sched_getscheduler(0)))
        return HWNAS_OK;
    const int error = set_policy(0, SCHED_FIFO, sched_get_priority_min(SCHED_FIFO));
    if (error)
        return refuse(error);
    set_policy(0, SCHED_OTHER, 0);
    return HWNAS_OK;
}

void hwnas_priority_stand_by(const int *cores, int n)
{
    set_policy(0, SCHED_OTHER, 0);
    CPU_ZERO(&bystander_cores);
    for (int i = 0; i < n; i++)
        if (cores[i] >= 0 && cores[i] < CPU_SETSIZE)
            CPU_SET((size_t)cores[i], &bystander_cores);
    __atomic_store_n(&bystander, (int)gettid(), __ATOMIC_RELEASE);
}

void hwnas_priority_nobody_stands_by(void)
{
    __atomic_store_n(&bystander, 0, __ATOMIC_RELEASE);
}

bool hwnas_priority_has_bystander(void)
{
    return __atomic_load_n(&bystander, __ATOMIC_ACQUIRE) != 0;
}

/* The first thread may have gone to one of those cores, where nobody else was. */
bool hwnas_priority_stands_by(int thread)
{
    cpu_set_t its, both;
    if (!hwnas_priority_has_bystander() || thread == (int)getpid())
        return false;
    if (thread == __atomic_load_n(&bystander, __ATOMIC_ACQUIRE))
        return true;
    if (sched_getaffinity(thread, sizeof its, &its))
        return false;
    CPU_AND(&both, &its, &bystander_cores);
    return CPU_EQUAL(&both, &its);
}

/* ---- For a while ---- */

hwnas_kept_priority hwnas_priority_leave(void)
{
    struct sched_param param = {0};
    const hwnas_kept_priority kept = {.policy = sched_getscheduler(0),
                                      .priority =
                                          sched_getparam(0, &param) ? 0 : param.sched_priority};
    if (kept.priority > 0)
        set_policy(0, SCHED_OTHER, 0);
    return kept;
}

void hwnas_priority_return(hwnas_kept_priority kept)
{
    if (kept.priority > 0)
        set_policy(0, kept.policy, kept.priority);
}
