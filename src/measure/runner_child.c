/* runner_child.c: the child of a runner: its start, its end, and what became of it.
 *
 * The child's standard input and output are one socket, so there is one descriptor to wait on and
 * send() can leave SIGPIPE out of it. Its standard error is a pipe that is emptied while we wait
 * for the child: of any amount only the end is kept, whose last line goes into the message when the
 * child dies. */
#define _GNU_SOURCE 1 /* pipe2(), F_SETPIPE_SZ, strcasestr(), sigabbrev_np() */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "measure/priority.h"
#include "measure/runner_priv.h"

extern char **environ;

enum {
    GRACE_MS = 1000,
    PIPE_BYTES = 1 << 20, /* for what is said while we wait for another child; the most that anybody
                             may ask for */
};

/* Whoever opens the device says that there is none. */
static bool has_own_threads(const char *device)
{
    const hwnas_device_ops *ops;
    const char *argument;
    if (hwnas_device_find(&ops, &argument, device) == HWNAS_OK)
        return ops->has_own_threads;
    hwnas_error_clear();
    return false;
}

/* Our environment with OpenMP's settings in it. They must be there before the library is loaded,
 * and they stand above the user's, as the measurement says how it was made. */
char **hwnas_runner_environment(const char *device, int threads, const int *cores, int n_cores)
{
    hwnas_str places = {0};
    for (int i = 0; i < n_cores; i++)
        hwnas_str_addf(&places, "%s{%d}", i ? "," : "", cores[i]);
    /* With more threads than cores the kernel knows better. */
    bool is_bound = n_cores == threads;
    const bool spins = is_bound && !has_own_threads(device);
    char *settings[] = {
        hwnas_printf("OMP_NUM_THREADS=%d", threads),
        hwnas_strdup("OMP_DYNAMIC=false"),
        hwnas_strdup(spins ? "OMP_WAIT_POLICY=active" : "OMP_WAIT_POLICY=passive"),
        hwnas_strdup(is_bound ? "OMP_PROC_BIND=close" : "OMP_PROC_BIND=false"),
        hwnas_printf("OMP_PLACES=%s", is_bound ? places.s : "threads"),
        hwnas_strdup("HWNAS_IS_RUNNER=1"),
    };
    const size_t n_settings = sizeof settings / sizeof *settings;
    size_t n = 0;
    while (environ[n])
        n++;
    char **list = hwnas_alloc((n + n_settings + 1) * sizeof *list);
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        bool is_set_here = false;
        for (size_t j = 0; j < n_settings; j++) {
            size_t length = strcspn(settings[j], "=") + 1;
            is_set_here |= !strncmp(environ[i], settings[j], length);
        }
        if (!is_set_here)
            list[used++] = hwnas_strdup(environ[i]);
    }
    memcpy(list + used, settings, sizeof settings);
    hwnas_str_done(&places);
    return list;
}

/* posix_spawn() with the three streams in place. In our own child SIGINT and SIGTERM start blocked:
 * they may come before it can ignore them. Another program gets a process group: what the keyboard
 * sends is not meant for it, and what it starts ends with it. */
static int spawn(pid_t *pid, const char *program, char *const *arguments, int socket_fd, int log_fd,
                 char **environment, bool is_own)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t blocked, defaults;
    sigemptyset(&blocked);
    if (is_own) {
        sigaddset(&blocked, SIGINT);
        sigaddset(&blocked, SIGTERM);
    }
    sigfillset(&defaults);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, socket_fd, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, socket_fd, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, log_fd, STDERR_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &blocked);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                              (is_own ? 0 : POSIX_SPAWN_SETPGROUP));
    int error = posix_spawnp(pid, program, &actions, &attributes, arguments, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

static const char *default_program = "/proc/self/exe";

void hwnas_runner_use(const char *program)
{
    default_program = program;
}

hwnas_status hwnas_runner_start_child(hwnas_runner *r, const int *cores, int n_cores)
{
    hwnas_status status = HWNAS_OK;
    const char *program = getenv("HWNAS_RUNNER");
    int fds[2] = {-1, -1}, log[2] = {-1, -1};
    const bool is_own = hwnas_link_is_own(r->link);
    char **words = hwnas_link_words(r->link);
    char **environment =
        is_own ? hwnas_runner_environment(r->device, r->threads, cores, n_cores) : NULL;
    if (!hwnas_link_is_itself(r->link))
        program = words[0];
    else if (!program || !*program)
        program = default_program;
    if (pipe2(log, O_CLOEXEC) || fcntl(log[0], F_SETFL, O_NONBLOCK) ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) ||
        fcntl(fds[0], F_SETFL, O_NONBLOCK)) {
        status = hwnas_fail(HWNAS_E_IO, NULL, "cannot set up a runner: %s", strerror(errno));
        goto out;
    }
    fcntl(log[1], F_SETPIPE_SZ, PIPE_BYTES); /* less does as well */
    int error =
        spawn(&r->pid, program, words, fds[1], log[1], environment ? environment : environ, is_own);
    if (error) {
        r->pid = 0;
        status = hwnas_fail(HWNAS_E_IO, NULL, "cannot start the runner '%s': %s", program,
                            error == EAGAIN ? "there may be no more processes" : strerror(error));
        if (error == EAGAIN)
            hwnas_hint(status, "raise the limit of processes: 'ulimit -u', or the container's");
        else if (error == ENOENT && hwnas_link_program_hint(r->link))
            hwnas_hint(status, "%s", hwnas_link_program_hint(r->link));
        goto out;
    }
    r->fd = fds[0];
    r->log = log[0];
    r->n_requests = r->n_graphs = r->n_tail = 0;
    hwnas_orders_rewind(r);
    fds[0] = log[0] = -1;
    hwnas_log(HWNAS_LOG_DEBUG, "started the runner '%s' for %s with %d threads: process %d",
              program, r->device, r->threads, (int)r->pid);
out:
    hwnas_link_free_words(environment);
    hwnas_link_free_words(words);
    hwnas_close_fd(&fds[0]);
    hwnas_close_fd(&fds[1]);
    hwnas_close_fd(&log[0]);
    hwnas_close_fd(&log[1]);
    return status;
}

void hwnas_runner_drain_log(hwnas_runner *r)
{
    const size_t room = sizeof r->tail;
    char bytes[sizeof r->tail];
    /* As much as a pipe holds: a child that writes on and on does not keep us here. */
    for (size_t taken = 0; taken < PIPE_BYTES;) {
        const ssize_t n = r->log < 0 ? -1 : read(r->log, bytes, sizeof bytes);
        if (n == 0) /* it has closed it, which poll() would tell for ever */
            hwnas_close_fd(&r->log);
        if (n <= 0)
            return;
        const size_t got = (size_t)n, kept = r->n_tail < room - got ? r->n_tail : room - got;
        memmove(r->tail, r->tail + r->n_tail - kept, kept);
        memcpy(r->tail + kept, bytes, got);
        r->n_tail = kept + got;
        taken += got;
    }
}

/* With what it has started, where it has a process group. */
static void end_at_once(const hwnas_runner *r)
{
    kill(hwnas_link_is_own(r->link) ? r->pid : -r->pid, SIGKILL);
}

/* Waits for the child's end, at most GRACE_MS, then ends it: `was_alive`. Returns its wait
 * status. */
static int reap(hwnas_runner *r, bool *was_alive)
{
    const struct timespec nap = {.tv_nsec = 1000000};
    const hwnas_kept_priority kept = hwnas_priority_leave();
    int wait_status = 0;
    pid_t got = 0;
    for (int i = 0; i < GRACE_MS && got == 0; i++) {
        got = waitpid(r->pid, &wait_status, WNOHANG);
        hwnas_runner_drain_log(r); /* a child may have much to say before it dies */
        if (got == 0)
            nanosleep(&nap, NULL);
    }
    *was_alive = got == 0;
    if (got == 0) {
        end_at_once(r);
        while (waitpid(r->pid, &wait_status, 0) < 0 && errno == EINTR)
            continue;
    }
    hwnas_priority_return(kept);
    r->pid = 0;
    return wait_status;
}

void hwnas_runner_end_child(hwnas_runner *r, bool at_once)
{
    bool was_alive;
    hwnas_close_fd(&r->fd);
    if (r->pid && at_once)
        end_at_once(r);
    if (r->pid)
        reap(r, &was_alive);
    hwnas_close_fd(&r->log);
    hwnas_cores_release(&r->cores);
}

/* The last line with something in it; cuts `tail`. */
static const char *last_line(char *tail)
{
    size_t n = strlen(tail);
    while (n > 0 && (unsigned char)tail[n - 1] <= ' ')
        tail[--n] = '\0';
    char *newline = strrchr(tail, '\n');
    return newline ? newline + 1 : tail;
}

/* How it is put by ourselves and libgomp, the C++ runtime, strerror(ENOMEM), and libgomp again when
 * there is no memory for a thread's stack. */
static bool tells_of_memory(const char *tail)
{
    return strcasestr(tail, "out of memory") || strstr(tail, "std::bad_alloc") ||
           strcasestr(tail, "cannot allocate memory") || strstr(tail, "Thread creation failed");
}

/* A shell between us and the runner makes an exit status of a signal. */
static int signal_of_shell(const hwnas_runner *r, int wait_status)
{
    const int code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 0;
    const bool is_signal = code > 128 && code <= 128 + SIGRTMAX;
    return is_signal && !hwnas_link_is_own(r->link) ? code - 128 : wait_status;
}

hwnas_status hwnas_runner_classify_exit(hwnas_runner *r)
{
    char tail[sizeof r->tail + 1];
    bool was_alive;
    hwnas_close_fd(&r->fd);
    int wait_status = reap(r, &was_alive);
    memcpy(tail, r->tail, r->n_tail);
    tail[r->n_tail] = '\0';
    hwnas_close_fd(&r->log);
    bool of_memory = tells_of_memory(tail);
    const char *line = last_line(tail), *colon = *line ? ": " : "";

    if (!was_alive)
        TRY(hwnas_link_explain(&r->may_return, r->link, wait_status, line, r->is_starting));
    wait_status = signal_of_shell(r, wait_status);

    if (of_memory)
        return hwnas_fail(HWNAS_E_MEMORY, NULL, "the runner ran out of memory while %s%s%s",
                          r->phase, colon, line);
    if (was_alive)
        return hwnas_fail(HWNAS_E_CRASHED, NULL, "the runner closed its output while %s%s%s",
                          r->phase, colon, line);
    if (WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL)
        return hwnas_fail(HWNAS_E_MEMORY, NULL,
                          "the runner was killed while %s, probably by the kernel's out-of-memory "
                          "killer%s%s",
                          r->phase, colon, line);
    if (WIFSIGNALED(wait_status))
        return hwnas_fail(HWNAS_E_CRASHED, NULL, "the runner died of SIG%s while %s%s%s",
                          sigabbrev_np(WTERMSIG(wait_status)), r->phase, colon, line);
    return hwnas_fail(HWNAS_E_CRASHED, NULL, "the runner ended with status %d while %s%s%s",
                      WEXITSTATUS(wait_status), r->phase, colon, line);
}

hwnas_status hwnas_runner_protocol_error(const hwnas_runner *r, const char *what)
{
    if (hwnas_link_is_own(r->link))
        return hwnas_hint(
            hwnas_fail(HWNAS_E_CRASHED, NULL, "the runner wrote something that is not an answer"),
            "$HWNAS_RUNNER must name the same version of hwnas; or a library wrote over memory");
    return hwnas_hint(
        hwnas_fail(HWNAS_E_CRASHED, NULL, "'%.200s' wrote %s", hwnas_link_where(r->link), what),
        "docs/runner-protocol.md says what it is to write");
}
