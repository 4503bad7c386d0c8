/* runner_turn.c: runners of one machine that have their turns one after the other: which of them
 * may stay open meanwhile. */
#define _GNU_SOURCE 1 /* sched_getaffinity() */
#include <sched.h>
#include <sys/wait.h>

#include "measure/conditions.h"
#include "measure/free_memory.h"
#include "measure/runner_priv.h"

/* A runner ends its team when there is nothing to do (team.h), and ONNX Runtime's threads spin for
 * moments only. A runner in another program, PyTorch's, may have a team of that program's own,
 * whose threads spin. */
static bool leaves_cores_alone(const hwnas_runner *r)
{
    return r->threads == 1 || hwnas_link_is_itself(r->link) || !hwnas_link_is_own(r->link);
}

/* One that went to another core than ours holds that until it ends (core_choice.c). */
static bool has_moved(const hwnas_runner *r)
{
    cpu_set_t set;
    return r->threads == 1 && hwnas_link_is_own(r->link) && r->cores.n == 1 &&
           !sched_getaffinity(r->pid, sizeof set, &set) && CPU_COUNT(&set) == 1 &&
           !CPU_ISSET((size_t)r->cores.numbers[0], &set);
}

static bool has_died(const hwnas_runner *r)
{
    siginfo_t info = {0};
    return !waitid(P_PID, (id_t)r->pid, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid;
}

void hwnas_runner_make_way(hwnas_runner *r)
{
    if (hwnas_link_is_far(r->link))
        return;
    if (!hwnas_runner_is_ready(r) || r->pinned || hwnas_runner_n_ahead(r) ||
        !leaves_cores_alone(r) || has_moved(r) ||
        !hwnas_memory_is_plenty_now(hwnas_conditions_root())) {
        hwnas_runner_rest(r);
        return;
    }
    hwnas_cores_lend(&r->cores);
    r->is_idle = true;
}

void hwnas_runner_take_turn(hwnas_runner *r)
{
    if (r->is_idle && !hwnas_cores_reclaim(&r->cores))
        hwnas_runner_rest(r);
    /* What ends a runner that has nothing to do is no fault of the next network. */
    else if (hwnas_runner_is_ready(r) && !hwnas_runner_n_ahead(r) && has_died(r))
        hwnas_runner_rest(r);
    r->is_idle = false;
}
