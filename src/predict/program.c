#define _GNU_SOURCE 1 /* pipe2(), sigabbrev_np() */
#include "predict/program.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "predict/supervise.h"

enum { SLICE_MS = 20, TAIL_BYTES = 4096, LINE_BYTES = 400 };
/* A program that says more than this on one stream has lost its mind, not just its patience. */
#define MAX_OUTPUT ((size_t)64 << 20)

/* The end of what came through a pipe. */
typedef struct tail {
    int fd;
    size_t total, n;
    char bytes[2 * TAIL_BYTES];
    const char *of; /* the program */
    char line[LINE_BYTES + 1];
    size_t n_line;                  /* bytes of a line that has not ended */
    const hwnas_programs *programs; /* who hears each line; NULL: nobody */
    hwnas_run *run;
} tail;

typedef enum verdict { RUNNING, TOO_LONG, TOO_MUCH, ENOUGH, STOPPED } verdict;

typedef struct child {
    hwnas_run *run; /* NULL: the seat is free */
    hwnas_supervised process;
    int attempt;
    double begun;
    verdict verdict;
    tail out, err;
} child;

static const char *name_of(const hwnas_run *run)
{
    return run->name ? run->name : run->arguments[0];
}

static int start_process(child *c, int out, int err)
{
    const char *name = c->run->arguments[0];
    char *path = hwnas_program_find(name);
    const hwnas_program program = {.path = path ? path : name,
                                   .arguments = c->run->arguments,
                                   .environment = c->run->environment,
                                   .out = out,
                                   .err = err};
    const int error = hwnas_supervise(&c->process, &program);
    free(path);
    return error;
}

/* An attempt at the child's run. */
static hwnas_status start(child *c, const hwnas_programs *p)
{
    int out[2] = {-1, -1}, err[2] = {-1, -1}, error = 0;
    c->begun = hwnas_now(); /* it may be done before we are back */
    if (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC) || fcntl(out[0], F_SETFL, O_NONBLOCK) ||
        fcntl(err[0], F_SETFL, O_NONBLOCK))
        error = errno;
    if (!error)
        error = start_process(c, out[1], err[1]);
    hwnas_close_fd(&out[1]);
    hwnas_close_fd(&err[1]);
    if (error) {
        hwnas_close_fd(&out[0]);
        hwnas_close_fd(&err[0]);
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL, "cannot start the program '%s': %s",
                                     c->run->arguments[0], strerror(error)),
                          "it must exist and be executable, and a script begins with #!");
    }
    c->verdict = RUNNING;
    c->out = (tail){.fd = out[0], .of = name_of(c->run), .programs = p, .run = c->run};
    c->err = (tail){.fd = err[0], .of = name_of(c->run)};
    return HWNAS_OK;
}

/* For whoever follows what a training says; bars of progress end by a carriage return. */
static void log_bytes(tail *t, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const bool is_end = bytes[i] == '\n' || bytes[i] == '\r';
        if (!is_end)
            t->line[t->n_line++] = bytes[i];
        if ((is_end || t->n_line == LINE_BYTES) && t->n_line) {
            t->line[t->n_line] = '\0';
            if (t->programs && t->programs->says)
                t->programs->says(t->programs->context, t->run, t->line);
            hwnas_log(HWNAS_LOG_DEBUG, "%s: %.*s", t->of, (int)t->n_line, t->line);
            t->n_line = 0;
        }
    }
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
        if (got == 0) {
            log_bytes(t, "\n", 1);
            hwnas_close_fd(&t->fd);
        }
        if (got <= 0)
            return;
        log_bytes(t, t->bytes + t->n, (size_t)got);
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

static void stop(child *c, verdict why)
{
    if (c->verdict != RUNNING)
        return;
    c->verdict = why;
    hwnas_supervised_stop(&c->process);
}

/* A decimal number and nothing that strtod() also takes: hexadecimal, inf, nan. */
static bool read_number(double *out, char **at)
{
    char *begin = *at + strspn(*at, " \t"), *end;
    size_t length = strspn(begin, "+-.0123456789eE");
    double value = strtod(begin, &end);
    if (end == begin || (size_t)(end - begin) != length || !isfinite(value))
        return false;
    *at = end;
    *out = value;
    return true;
}

/* Goes past "%" with or without a blank before it. */
static bool take_percent(char **at)
{
    char *sign = *at + strspn(*at, " \t");
    if (*sign != '%')
        return false;
    *at = sign + 1;
    return true;
}

/* Goes past a comma with a blank behind it; one without is somebody's decimal point. */
static void take_comma(char **at)
{
    char *comma = *at + strspn(*at, " \t");
    if (*comma == ',' && (comma[1] == ' ' || comma[1] == '\t'))
        *at = comma + 1;
}

/* A digit, a comma and a digit somewhere. */
static bool has_decimal_comma(const char *line)
{
    for (const char *c = strchr(line, ','); c; c = strchr(c + 1, ','))
        if (c > line && isdigit((unsigned char)c[-1]) && isdigit((unsigned char)c[1]))
            return true;
    return false;
}

/* "ACCURACY", "ACCURACY SD" or "ACCURACY, SD", each number perhaps with "%". */
static hwnas_status read_answer(hwnas_run *run, char *line)
{
    char *at = line;
    double mean, sd = NAN;
    bool good = *line && read_number(&mean, &at), is_percent = good && take_percent(&at);
    if (good)
        take_comma(&at);
    if (good && at[strspn(at, " \t")])
        good = read_number(&sd, &at) && sd >= 0 && take_percent(&at) == is_percent;
    if (!good || at[strspn(at, " \t")])
        return hwnas_hint(
            *line ? hwnas_fail(HWNAS_E_INPUT, NULL,
                               "the last line that '%s' printed is not an accuracy: '%.80s'",
                               name_of(run), line)
                  : hwnas_fail(HWNAS_E_INPUT, NULL, "'%s' printed nothing", name_of(run)),
            "%s",
            has_decimal_comma(line)
                ? "a decimal point is '.', as in 93.41; a standard deviation comes after a blank"
                : "the last line on its standard output must be a number, or a number and its "
                  "standard deviation");
    run->mean = mean;
    run->sd = sd;
    run->is_percent = is_percent;
    return HWNAS_OK;
}

/* How an attempt went. */
static hwnas_status judge(child *c, int wait_status, const hwnas_programs *p)
{
    const char *name = name_of(c->run), *line = last_line(&c->err), *colon = *line ? ": " : "";
    switch (c->verdict) {
    case TOO_LONG:
        return hwnas_hint(hwnas_fail(HWNAS_E_TIMEOUT, NULL,
                                     "'%s' did not end within %g s, and was killed%s%.200s", name,
                                     p->timeout, colon, line),
                          "a training that takes longer needs '#timeout=SECONDS'");
    case TOO_MUCH:
        return hwnas_hint(hwnas_fail(HWNAS_E_CRASHED, NULL,
                                     "'%s' wrote more than %zu MiB, and was killed", name,
                                     MAX_OUTPUT >> 20),
                          "let it write its log to a file");
    case STOPPED:
        return hwnas_fail(HWNAS_E_INTERRUPTED, NULL, "interrupted while '%s' was running", name);
    case ENOUGH: /* however it ended: a quick one may have been over when it was told to */
        return HWNAS_OK;
    case RUNNING:
        break;
    }
    if (WIFSIGNALED(wait_status))
        return hwnas_fail(HWNAS_E_CRASHED, NULL, "'%s' died of SIG%s%s%.200s", name,
                          sigabbrev_np(WTERMSIG(wait_status)), colon, line);
    if (WEXITSTATUS(wait_status))
        return hwnas_fail(HWNAS_E_CRASHED, NULL, "'%s' ended with status %d%s%.200s", name,
                          WEXITSTATUS(wait_status), colon, line);
    char *answer = last_line(&c->out);
    return p->read ? p->read(p->context, answer) : read_answer(c->run, answer);
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
    drain(&c->out);
    drain(&c->err);
    if (p->stop && *p->stop)
        stop(c, STOPPED);
    else if (c->run->is_enough)
        stop(c, ENOUGH);
    else if (c->out.total > MAX_OUTPUT || c->err.total > MAX_OUTPUT)
        stop(c, TOO_MUCH);
    else if (hwnas_now() - c->begun > p->timeout)
        stop(c, TOO_LONG);
    if (!hwnas_supervised_has_ended(&wait_status, &c->process))
        return false;
    drain(&c->out);
    drain(&c->err);
    if (c->run->is_enough && c->verdict == RUNNING)
        c->verdict = ENOUGH;
    hwnas_close_fd(&c->out.fd);
    hwnas_close_fd(&c->err.fd);
    c->run->seconds = hwnas_now() - c->begun;
    hwnas_status status = judge(c, wait_status, p);
    take_message(c->run, status);
    if (status == HWNAS_E_CRASHED && c->verdict == RUNNING && c->attempt < p->retries) {
        c->attempt++;
        if (p->again)
            p->again(p->context);
        status = start(c, p);
        if (status == HWNAS_OK)
            return false;
        take_message(c->run, status);
    }
    return true;
}

/* Sleeps until a child says something or ends, at most a slice. */
static void wait_a_little(const child *children, size_t n)
{
    struct pollfd *fds = hwnas_alloc(3 * n * sizeof *fds);
    for (size_t i = 0; i < n; i++) {
        const child *c = &children[i];
        /* Once a program is told to end, what more it says stays in the pipe. */
        const bool is_heard = c->run && c->verdict == RUNNING;
        fds[3 * i] = (struct pollfd){.fd = is_heard ? c->out.fd : -1, .events = POLLIN};
        fds[3 * i + 1] = (struct pollfd){.fd = is_heard ? c->err.fd : -1, .events = POLLIN};
        fds[3 * i + 2] = (struct pollfd){.fd = c->run ? c->process.report : -1, .events = POLLIN};
    }
    poll(fds, 3 * n, SLICE_MS);
    free(fds);
}

/* Begins a run in a free seat, unless it is over already or left for later. */
static hwnas_status begin(child *c, const hwnas_programs *p, hwnas_run *run)
{
    hwnas_status status = p->begin(p->context, run);
    if (status == HWNAS_OK && run->state != HWNAS_RUN_READY)
        return HWNAS_OK;
    c->run = run;
    c->attempt = 0;
    if (status == HWNAS_OK)
        status = start(c, p);
    take_message(run, status);
    if (status == HWNAS_OK)
        return HWNAS_OK;
    c->run = NULL;
    run->state = HWNAS_RUN_OVER;
    return end(p, run);
}

/* The runs of one call. */
typedef struct crew {
    const hwnas_programs *programs;
    hwnas_run *runs;
    size_t n_runs, n_seats, n_running;
    child *seats;
    hwnas_error first; /* failure; status HWNAS_OK: none yet */
} crew;

static void note_failure(crew *w, hwnas_status status)
{
    if (status && !w->first.status)
        w->first = *hwnas_last_error();
}

static void attend_all(crew *w)
{
    w->n_running = 0;
    for (size_t i = 0; i < w->n_seats; i++) {
        child *c = &w->seats[i];
        hwnas_run *run = c->run;
        if (run && attend(c, w->programs)) {
            c->run = NULL;
            run->state = HWNAS_RUN_OVER;
            note_failure(w, end(w->programs, run));
        }
        w->n_running += c->run != NULL;
    }
}

static bool is_stopped(const crew *w)
{
    return w->programs->stop && *w->programs->stop;
}

/* Fills the free seats; returns how many runs are left for later. */
static size_t begin_all(crew *w)
{
    size_t n_later = 0;
    for (size_t i = 0, seat = 0; i < w->n_runs && !w->first.status; i++) {
        while (seat < w->n_seats && w->seats[seat].run)
            seat++;
        if (seat < w->n_seats && w->runs[i].state == HWNAS_RUN_LATER && !is_stopped(w)) {
            note_failure(w, begin(&w->seats[seat], w->programs, &w->runs[i]));
            w->n_running += w->seats[seat].run != NULL;
        }
        n_later += w->runs[i].state == HWNAS_RUN_LATER;
    }
    return w->first.status ? 0 : n_later;
}

hwnas_status hwnas_programs_run(const hwnas_programs *programs, hwnas_run *runs, size_t n)
{
    crew w = {.programs = programs,
              .runs = runs,
              .n_runs = n,
              .n_seats = programs->jobs < n ? programs->jobs : n};
    w.seats = hwnas_alloc(w.n_seats * sizeof *w.seats);
    for (;;) {
        attend_all(&w);
        const size_t n_later = begin_all(&w);
        if (n_later && is_stopped(&w))
            note_failure(&w, hwnas_fail(HWNAS_E_INTERRUPTED, NULL,
                                        "interrupted before %zu trainings", n_later));
        if (!w.n_running && (!n_later || w.first.status))
            break;
        if (programs->tick)
            programs->tick(programs->context);
        wait_a_little(w.seats, w.n_seats);
    }
    free(w.seats);
    return w.first.status ? fail_as(&w.first) : HWNAS_OK;
}
