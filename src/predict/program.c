#define _GNU_SOURCE 1 /* pipe2(), sigabbrev_np() */
#include "predict/program.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"

enum { SLICE_MS = 20, TAIL_BYTES = 4096 };
static const double GRACE = 2; /* seconds between SIGTERM and SIGKILL */
/* A program that says more than this on one stream has lost its mind, not just its patience. */
#define MAX_OUTPUT ((size_t)64 << 20)

/* The end of what came through a pipe. */
typedef struct tail {
    int fd;
    size_t total, n;
    char bytes[2 * TAIL_BYTES];
} tail;

typedef enum verdict { RUNNING, TOO_LONG, TOO_MUCH, STOPPED } verdict;

typedef struct child {
    hwnas_run *run; /* NULL: the seat is free */
    pid_t pid;
    int attempt;
    double begun, killed_at; /* killed_at 0: not told to end */
    verdict verdict;
    tail out, err;
} child;

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static int spawn(child *c, int out, int err)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETPGROUP);
    int error = posix_spawnp(&c->pid, c->run->arguments[0], &actions, &attributes,
                             c->run->arguments, c->run->environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

static hwnas_status start(child *c, hwnas_run *run)
{
    int out[2] = {-1, -1}, err[2] = {-1, -1}, error = 0;
    c->run = run;
    if (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC) || fcntl(out[0], F_SETFL, O_NONBLOCK) ||
        fcntl(err[0], F_SETFL, O_NONBLOCK))
        error = errno;
    if (!error)
        error = spawn(c, out[1], err[1]);
    close_fd(&out[1]);
    close_fd(&err[1]);
    if (error) {
        close_fd(&out[0]);
        close_fd(&err[0]);
        c->run = NULL;
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL, "cannot start the program '%s': %s",
                                     run->arguments[0], strerror(error)),
                          "it must exist and be executable, and a script begins with #!");
    }
    c->begun = hwnas_now();
    c->killed_at = 0;
    c->verdict = RUNNING;
    c->out = (tail){.fd = out[0]};
    c->err = (tail){.fd = err[0]};
    return HWNAS_OK;
}

/* Takes what is there now. */
static void drain(tail *t)
{
    for (ssize_t got; t->fd >= 0 && t->total <= MAX_OUTPUT;) {
        if (t->n > TAIL_BYTES) {
            memmove(t->bytes, t->bytes + t->n - TAIL_BYTES, TAIL_BYTES);
            t->n = TAIL_BYTES;
        }
        got = read(t->fd, t->bytes + t->n, sizeof t->bytes - 1 - t->n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got == 0)
            close_fd(&t->fd);
        if (got <= 0)
            return;
        t->n += (size_t)got;
        t->total += (size_t)got;
    }
}

/* The last line with something in it; cuts the tail. */
static char *last_line(tail *t)
{
    while (t->n > 0 && (unsigned char)t->bytes[t->n - 1] <= ' ')
        t->n--;
    t->bytes[t->n] = '\0';
    size_t start = t->n;
    while (start > 0 && t->bytes[start - 1] != '\n')
        start--;
    for (char *c = t->bytes + start; *c; c++) /* a terminal's tricks stay out of messages */
        if ((unsigned char)*c < ' ')
            *c = ' ';
    return t->bytes + start;
}

static void end_group(child *c, verdict why, double now)
{
    if (c->killed_at)
        return;
    c->verdict = why;
    c->killed_at = now;
    kill(-c->pid, SIGTERM);
}

/* A decimal number and nothing that strtod() also takes: hexadecimal, inf, nan. */
static bool read_number(double *out, char **at)
{
    char *begin = *at + strspn(*at, " \t,"), *end;
    size_t length = strspn(begin, "+-.0123456789eE");
    double value = strtod(begin, &end);
    if (end == begin || (size_t)(end - begin) != length || !isfinite(value))
        return false;
    *at = end;
    *out = value;
    return true;
}

/* "ACCURACY" or "ACCURACY SD". */
static hwnas_status read_answer(hwnas_run *run, tail *out)
{
    char *line = last_line(out), *at = line;
    double mean, sd = NAN;
    bool good = *line && read_number(&mean, &at);
    if (good && at[strspn(at, " \t,")])
        good = read_number(&sd, &at) && sd >= 0;
    if (!good || at[strspn(at, " \t")])
        return hwnas_hint(
            *line ? hwnas_fail(HWNAS_E_INPUT, NULL,
                               "the last line that '%s' printed is no accuracy: '%.80s'",
                               run->arguments[0], line)
                  : hwnas_fail(HWNAS_E_INPUT, NULL, "'%s' printed nothing", run->arguments[0]),
            "the last line on its standard output must be a number, or a number and its standard "
            "deviation");
    run->mean = mean;
    run->sd = sd;
    return HWNAS_OK;
}

/* How an attempt went. */
static hwnas_status judge(child *c, int wait_status, double timeout)
{
    const char *name = c->run->arguments[0], *line = last_line(&c->err), *colon = *line ? ": " : "";
    switch (c->verdict) {
    case TOO_LONG:
        return hwnas_hint(hwnas_fail(HWNAS_E_TIMEOUT, NULL,
                                     "'%s' did not end within %g s, and was killed%s%.200s", name,
                                     timeout, colon, line),
                          "a training that takes longer needs '#timeout=SECONDS'");
    case TOO_MUCH:
        return hwnas_hint(hwnas_fail(HWNAS_E_CRASHED, NULL,
                                     "'%s' wrote more than %zu MiB, and was killed", name,
                                     MAX_OUTPUT >> 20),
                          "let it write its log to a file");
    case STOPPED:
        return hwnas_fail(HWNAS_E_INTERRUPTED, NULL, "interrupted while '%s' was running", name);
    case RUNNING:
        break;
    }
    if (WIFSIGNALED(wait_status))
        return hwnas_fail(HWNAS_E_CRASHED, NULL, "'%s' died of SIG%s%s%.200s", name,
                          sigabbrev_np(WTERMSIG(wait_status)), colon, line);
    if (WEXITSTATUS(wait_status))
        return hwnas_fail(HWNAS_E_CRASHED, NULL, "'%s' ended with status %d%s%.200s", name,
                          WEXITSTATUS(wait_status), colon, line);
    return read_answer(c->run, &c->out);
}

/* When the program has ended: what is left of its group ends too, before the number of the process
 * is free for another. */
static bool has_ended(child *c, int *wait_status)
{
    siginfo_t info = {0};
    if (waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) || !info.si_pid)
        return false;
    kill(-c->pid, SIGKILL);
    while (waitpid(c->pid, wait_status, 0) < 0 && errno == EINTR)
        continue;
    return true;
}

static void take_message(hwnas_run *run, hwnas_status status)
{
    run->error = status ? *hwnas_last_error() : (hwnas_error){.status = HWNAS_OK};
}

static hwnas_status fail_as(const hwnas_error *error)
{
    hwnas_place place = {.file = error->file, .line = error->line, .column = error->column};
    hwnas_status status =
        hwnas_fail(error->status, *error->file ? &place : NULL, "%s", error->message);
    return *error->hint ? hwnas_hint(status, "%s", error->hint) : status;
}

/* A run is over: its failure, or that of what is done with its answer. */
static hwnas_status end(const hwnas_programs *p, hwnas_run *run)
{
    TRY(p->done(p->context, run));
    return run->error.status ? fail_as(&run->error) : HWNAS_OK;
}

/* Looks after one child; true when its run is over. */
static bool attend(child *c, const hwnas_programs *p)
{
    int wait_status;
    double now = hwnas_now();
    drain(&c->out);
    drain(&c->err);
    if (p->stop && *p->stop)
        end_group(c, STOPPED, now);
    else if (c->out.total > MAX_OUTPUT || c->err.total > MAX_OUTPUT)
        end_group(c, TOO_MUCH, now);
    else if (now - c->begun > p->timeout)
        end_group(c, TOO_LONG, now);
    if (c->killed_at && now - c->killed_at > GRACE)
        kill(-c->pid, SIGKILL);
    if (!has_ended(c, &wait_status))
        return false;
    drain(&c->out);
    drain(&c->err);
    close_fd(&c->out.fd);
    close_fd(&c->err.fd);
    c->run->seconds = hwnas_now() - c->begun;
    hwnas_status status = judge(c, wait_status, p->timeout);
    take_message(c->run, status);
    if (status == HWNAS_E_CRASHED && c->verdict == RUNNING && c->attempt < p->retries) {
        c->attempt++;
        status = start(c, c->run);
        if (status == HWNAS_OK)
            return false;
        take_message(c->run, status);
    }
    return true;
}

/* Sleeps until a child says something, at most a slice: its end is no event of poll(). */
static void wait_a_little(const child *children, size_t n)
{
    struct pollfd *fds = hwnas_alloc(2 * n * sizeof *fds);
    for (size_t i = 0; i < n; i++) {
        fds[2 * i] =
            (struct pollfd){.fd = children[i].run ? children[i].out.fd : -1, .events = POLLIN};
        fds[2 * i + 1] =
            (struct pollfd){.fd = children[i].run ? children[i].err.fd : -1, .events = POLLIN};
        /* Too much has been said: what more there is stays in the pipe. */
        if (children[i].killed_at)
            fds[2 * i].fd = fds[2 * i + 1].fd = -1;
    }
    poll(fds, 2 * n, SLICE_MS);
    free(fds);
}

/* Begins a run in a free seat. */
static hwnas_status begin(child *c, const hwnas_programs *p, hwnas_run *run)
{
    c->attempt = 0;
    hwnas_status status = p->begin(p->context, run);
    if (status == HWNAS_OK)
        status = start(c, run);
    take_message(run, status);
    return status == HWNAS_OK ? HWNAS_OK : end(p, run);
}

hwnas_status hwnas_programs_run(const hwnas_programs *programs, hwnas_run *runs, size_t n)
{
    hwnas_error first = {.status = HWNAS_OK};
    const size_t n_seats = programs->jobs < n ? programs->jobs : n;
    child *children = hwnas_alloc(n_seats * sizeof *children);
    for (size_t next = 0, n_running = 1; n_running;) {
        n_running = 0;
        for (size_t i = 0; i < n_seats; i++) {
            child *c = &children[i];
            hwnas_run *run = c->run;
            hwnas_status status = HWNAS_OK;
            if (run && attend(c, programs)) {
                c->run = NULL;
                status = end(programs, run);
            }
            if (!c->run && !first.status && !status && next < n)
                status = begin(c, programs, &runs[next++]);
            if (status && !first.status)
                first = *hwnas_last_error();
            n_running += c->run != NULL;
        }
        if (n_running)
            wait_a_little(children, n_seats);
    }
    free(children);
    return first.status ? fail_as(&first) : HWNAS_OK;
}
