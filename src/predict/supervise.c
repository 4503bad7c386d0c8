#define _GNU_SOURCE 1 /* pipe2(), dup3(), close_range() */
#include "predict/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"

static const double GRACE = 2;                 /* seconds between SIGTERM and SIGKILL */
enum { BUSY_TRIES = 100, KILL_ROUNDS = 1000 }; /* of 20 and 5 ms */

/* The supervisor's files, behind the standard ones. */
enum { ORDER = 3, REPORT, OUT, ERR, N_FILES };

static void nap(long ms)
{
    const struct timespec time = {.tv_nsec = ms * 1000000};
    nanosleep(&time, NULL);
}

/* ---- The supervisor: after fork(), so nothing here allocates ---- */

/* Keeps the files of `from` as ORDER and what follows, and no others. */
static void keep_files(const int from[N_FILES])
{
    int high[N_FILES], null = open("/dev/null", O_RDWR);
    for (int i = ORDER; i < N_FILES; i++)
        high[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 64);
    for (int i = ORDER; i < N_FILES; i++)
        dup3(high[i], i, O_CLOEXEC);
    for (int i = 0; i < ORDER; i++)
        dup2(null, i);
    close_range(N_FILES, ~0U, 0);
}

/* The program's process until it is the program. Tells `failed` what hindered it. */
static void become(const hwnas_program *program, pid_t supervisor, int failed)
{
    sigset_t none;
    sigemptyset(&none);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != supervisor)
        _exit(1);
    for (int i = 1; i < NSIG; i++)
        signal(i, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    dup2(OUT, STDOUT_FILENO);
    dup2(ERR, STDERR_FILENO);
    /* A file that is being written cannot be run for a moment; so can one that a child of another
     * thread still holds open. */
    for (int i = 0; i < BUSY_TRIES; i++) {
        execve(program->path, program->arguments, program->environment);
        if (errno != ETXTBSY)
            break;
        nap(20);
    }
    const int error = errno;
    if (write(failed, &error, sizeof error) < 0)
        _exit(2);
    _exit(1);
}

static void send_report(int what)
{
    while (write(REPORT, &what, sizeof what) < 0 && errno == EINTR)
        continue;
}

/* Starts the program; an errno, or 0 once it runs. */
static int start(pid_t *out, const hwnas_program *program)
{
    int fds[2], error = 0;
    const pid_t supervisor = getpid();
    if (pipe2(fds, O_CLOEXEC))
        return errno;
    *out = fork();
    if (*out < 0)
        return errno;
    if (*out == 0)
        become(program, supervisor, fds[1]);
    close(fds[1]);
    while (read(fds[0], &error, sizeof error) < 0 && errno == EINTR)
        continue;
    close(fds[0]);
    return error;
}

/* Sends a signal to our children. Whoever loses its parent becomes one. */
static void signal_children(int number)
{
    char text[4096];
    const int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t n = read(fd, text, sizeof text);
    close(fd);
    pid_t pid = 0;
    for (ssize_t i = 0; i < n; i++) {
        if (text[i] >= '0' && text[i] <= '9') {
            pid = 10 * pid + (text[i] - '0');
        } else if (pid) { /* a number that the end of the text cuts is for the next round */
            kill(pid, number);
            pid = 0;
        }
    }
}

/* Waits for the children that have ended, but for the program, which keeps its number until its
 * group has been ended. True when it has ended. */
static bool reap_others(pid_t program)
{
    for (;;) {
        siginfo_t info = {0};
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) || !info.si_pid)
            return false;
        if (info.si_pid == program)
            return true;
        waitpid(info.si_pid, NULL, 0);
    }
}

/* Until the program has ended, or has not although it was told to. */
static void watch(pid_t program)
{
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    struct pollfd fds[] = {
        {.fd = ORDER, .events = POLLIN},
        {.fd = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK), .events = POLLIN}};
    double told = 0;
    while (!reap_others(program)) {
        const double left = told ? told + GRACE - hwnas_now() : 0;
        struct signalfd_siginfo info;
        if (told && left <= 0)
            return;
        poll(fds, 2, told ? (int)(1000 * left) + 1 : -1);
        while (read(fds[1].fd, &info, sizeof info) > 0)
            continue;
        if (fds[0].fd < 0 || !fds[0].revents)
            continue;
        fds[0].fd = -1;
        told = hwnas_now();
        kill(-program, SIGTERM);
        signal_children(SIGTERM);
    }
}

/* Ends all that is left. What the kernel does not let go of in seconds is left to it. */
static int end_all(pid_t program)
{
    int status, of_program = SIGKILL;
    kill(-program, SIGKILL);
    for (int i = 0; i < KILL_ROUNDS; i++) {
        pid_t pid;
        signal_children(SIGKILL);
        while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
            if (pid == program)
                of_program = status;
        if (pid < 0 && errno == ECHILD)
            break;
        nap(5);
    }
    return of_program;
}

static void supervise(const hwnas_program *program, const int files[N_FILES])
{
    pid_t pid = 0;
    setpgid(0, 0);
    signal(SIGCHLD, SIG_DFL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    keep_files(files);
    const int error = start(&pid, program);
    send_report(error);
    if (error)
        _exit(1);
    close(OUT);
    close(ERR);
    watch(pid);
    send_report(end_all(pid));
    _exit(0);
}

/* ---- The caller ---- */

/* With all signals blocked, as no handler of the caller's is to run in the supervisor. */
static pid_t fork_supervisor(const hwnas_program *program, const int files[N_FILES])
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const pid_t pid = fork();
    if (pid == 0)
        supervise(program, files);
    const int error = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return pid;
}

static void reap(pid_t pid)
{
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue; /* ECHILD: the caller ignores SIGCHLD */
}

/* What the supervisor says; false: it died. */
static bool read_report(int *out, int fd)
{
    ssize_t n;
    do
        n = read(fd, out, sizeof *out);
    while (n < 0 && errno == EINTR);
    return n == sizeof *out;
}

int hwnas_supervise(hwnas_supervised *out, const hwnas_program *program)
{
    int order[2] = {-1, -1}, report[2] = {-1, -1}, error = 0;
    pid_t pid = 0;
    if (pipe2(order, O_CLOEXEC) || pipe2(report, O_CLOEXEC)) {
        error = errno;
    } else {
        const int files[N_FILES] = {
            [ORDER] = order[0], [REPORT] = report[1], [OUT] = program->out, [ERR] = program->err};
        pid = fork_supervisor(program, files);
        error = pid < 0 ? errno : 0;
    }
    hwnas_close_fd(&order[0]);
    hwnas_close_fd(&report[1]);
    if (!error && !read_report(&error, report[0]))
        error = EIO;
    if (error && pid > 0)
        reap(pid);
    if (error) {
        hwnas_close_fd(&order[1]);
        hwnas_close_fd(&report[0]);
        return error;
    }
    *out = (hwnas_supervised){.supervisor = pid, .order = order[1], .report = report[0]};
    return 0;
}

void hwnas_supervised_stop(hwnas_supervised *s)
{
    hwnas_close_fd(&s->order);
}

bool hwnas_supervised_has_ended(int *wait_status, hwnas_supervised *s)
{
    struct pollfd report = {.fd = s->report, .events = POLLIN};
    if (poll(&report, 1, 0) <= 0)
        return false;
    if (!read_report(wait_status, s->report))
        *wait_status = SIGKILL; /* of the supervisor, and so of the program */
    hwnas_close_fd(&s->order);
    hwnas_close_fd(&s->report);
    reap(s->supervisor);
    return true;
}
