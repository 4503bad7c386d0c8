/* runner.c: the parent's side of the runner: start a child, ask, wait, and when it does not answer
 * find out why.
 *
 * The child's standard input and output are one socket, so there is one descriptor to wait on and
 * send() can leave SIGPIPE out of it. Its standard error is a file in memory: it never blocks a
 * child that talks much, and its last line goes into the message when the child dies. */
#define _GNU_SOURCE 1 /* memfd_create(), strcasestr(), MSG_NOSIGNAL */
#include "measure/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "measure/cores.h"
#include "measure/wire.h"
#include "onnx/onnx.h"

extern char **environ;

enum { SLICE_MS = 100, GRACE_MS = 1000, TAIL_BYTES = 4096 };
/* Loading the libraries of a device from a cold disk is not a hang. */
static const double START_TIMEOUT = 60;

struct hwnas_runner {
    char *device;
    int threads;
    pid_t pid;         /* 0: no child */
    int fd;            /* socket to it */
    int log;           /* its standard error */
    char phase[64];    /* what it said that it is doing */
    size_t n_requests; /* that the child has had */
    hwnas_device_info info;
    hwnas_cores cores; /* of the child */
    const int *pinned; /* these instead, when they are given; borrowed */
};

hwnas_status hwnas_runner_open(hwnas_runner **out, const char *device, int threads)
{
    if (threads < 0)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "%d threads", threads);
    hwnas_runner *r = hwnas_alloc(sizeof *r);
    r->device = hwnas_strdup(device);
    /* Counted here: in the child OpenMP binds the main thread, and it would count one core. */
    r->threads = threads ? threads : hwnas_device_cores();
    r->fd = r->log = -1;
    *out = r;
    return HWNAS_OK;
}

void hwnas_runner_pin(hwnas_runner *runner, const int *cores)
{
    runner->pinned = cores;
}

pid_t hwnas_runner_pid(const hwnas_runner *runner)
{
    return runner->pid;
}

/* Waits for the child's end, at most GRACE_MS, then ends it: `was_alive`. Returns its wait
 * status. */
static int reap(hwnas_runner *r, bool *was_alive)
{
    const struct timespec nap = {.tv_nsec = 1000000};
    int wait_status = 0;
    pid_t got = 0;
    for (int i = 0; i < GRACE_MS && got == 0; i++) {
        got = waitpid(r->pid, &wait_status, WNOHANG);
        if (got == 0)
            nanosleep(&nap, NULL);
    }
    *was_alive = got == 0;
    if (got == 0) {
        kill(r->pid, SIGKILL);
        while (waitpid(r->pid, &wait_status, 0) < 0 && errno == EINTR)
            continue;
    }
    r->pid = 0;
    return wait_status;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Ends the child: politely when it is idle, at once when it is not. */
static void stop_child(hwnas_runner *r, bool at_once)
{
    bool was_alive;
    close_fd(&r->fd);
    if (r->pid && at_once)
        kill(r->pid, SIGKILL);
    if (r->pid)
        reap(r, &was_alive);
    close_fd(&r->log);
    hwnas_cores_release(&r->cores);
}

void hwnas_runner_close(hwnas_runner *runner)
{
    if (!runner)
        return;
    stop_child(runner, false);
    free(runner->device);
    free(runner);
}

/* The end of what the child wrote to standard error. */
static void read_tail(char tail[TAIL_BYTES], const hwnas_runner *r)
{
    struct stat st;
    ssize_t n = 0;
    if (!fstat(r->log, &st)) {
        off_t from = st.st_size > TAIL_BYTES - 1 ? st.st_size - (TAIL_BYTES - 1) : 0;
        n = pread(r->log, tail, TAIL_BYTES - 1, from);
    }
    tail[n > 0 ? n : 0] = '\0';
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

/* The child has ended without an answer, or is about to: why? */
static hwnas_status judge(hwnas_runner *r)
{
    char tail[TAIL_BYTES];
    bool was_alive;
    close_fd(&r->fd);
    int wait_status = reap(r, &was_alive);
    read_tail(tail, r);
    close_fd(&r->log);
    bool of_memory = tells_of_memory(tail);
    const char *line = last_line(tail), *colon = *line ? ": " : "";

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

/* Waits until the socket is ready or hung up. */
static hwnas_status wait_ready(hwnas_runner *r, short events, double timeout,
                               const hwnas_measure_options *o)
{
    /* Silence is added up slice by slice, so that a job that was stopped (Ctrl-Z) or a machine that
     * slept does not come back to a timeout. */
    for (double silence = 0; silence < timeout;) {
        struct pollfd p = {.fd = r->fd, .events = events};
        double start = hwnas_now();
        if (o->stop && *o->stop)
            return hwnas_fail(HWNAS_E_INTERRUPTED, NULL, "interrupted while %s", r->phase);
        int n = poll(&p, 1, (int)fmin(SLICE_MS, ceil(1e3 * (timeout - silence))));
        if (n > 0)
            return HWNAS_OK;
        if (n < 0 && errno != EINTR)
            return hwnas_fail(HWNAS_E_IO, NULL, "cannot wait for the runner: %s", strerror(errno));
        silence += fmin(hwnas_now() - start, 2e-3 * SLICE_MS);
    }
    hwnas_status status =
        hwnas_fail(HWNAS_E_TIMEOUT, NULL,
                   "the runner said nothing for %g s while %s, and was killed", timeout, r->phase);
    return hwnas_hint(status, "when the device is that slow, raise the timeout");
}

static hwnas_status send_all(hwnas_runner *r, const void *bytes, size_t n, double timeout,
                             const hwnas_measure_options *o)
{
    for (size_t done = 0; done < n;) {
        ssize_t put = send(r->fd, (const char *)bytes + done, n - done, MSG_NOSIGNAL);
        if (put >= 0)
            done += (size_t)put;
        else if (errno == EAGAIN)
            TRY(wait_ready(r, POLLOUT, timeout, o));
        else if (errno != EINTR)
            return judge(r);
    }
    return HWNAS_OK;
}

static hwnas_status send_frame(hwnas_runner *r, hwnas_frame_type type, const void *bytes,
                               size_t length, double timeout, const hwnas_measure_options *o)
{
    unsigned char head[HWNAS_FRAME_HEAD];
    hwnas_frame_encode(head, (hwnas_frame){.type = type, .length = length});
    TRY(send_all(r, head, sizeof head, timeout, o));
    return send_all(r, bytes, length, timeout, o);
}

static hwnas_status send_json(hwnas_runner *r, hwnas_frame_type type, const json_t *json,
                              double timeout, const hwnas_measure_options *o)
{
    char *text = json_dumps(json, JSON_COMPACT);
    if (!text)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "the device's name is not UTF-8");
    hwnas_status status = send_frame(r, type, text, strlen(text), timeout, o);
    free(text);
    return status;
}

static hwnas_status receive_all(hwnas_runner *r, void *out, size_t n, double timeout,
                                const hwnas_measure_options *o)
{
    for (size_t done = 0; done < n;) {
        ssize_t got = recv(r->fd, (char *)out + done, n - done, 0);
        if (got > 0)
            done += (size_t)got;
        else if (got < 0 && errno == EAGAIN)
            TRY(wait_ready(r, POLLIN, timeout, o));
        else if (got == 0 || errno != EINTR)
            return judge(r);
    }
    return HWNAS_OK;
}

hwnas_status hwnas_runner_spoke_nonsense(void)
{
    hwnas_status status =
        hwnas_fail(HWNAS_E_CRASHED, NULL, "the runner wrote something that is no answer");
    return hwnas_hint(status,
                      "$HWNAS_RUNNER must name the same version of hwnas; or a library wrote "
                      "over memory");
}

/* The next frame's payload, NUL-terminated, yours to free(). */
static hwnas_status receive_frame(char **out, hwnas_frame *frame, hwnas_runner *r, double timeout,
                                  const hwnas_measure_options *o)
{
    unsigned char head[HWNAS_FRAME_HEAD];
    TRY(receive_all(r, head, sizeof head, timeout, o));
    if (!hwnas_frame_decode(frame, head) || frame->type < HWNAS_FRAME_PHASE ||
        frame->type > HWNAS_FRAME_ANSWER)
        return hwnas_runner_spoke_nonsense();
    char *text = hwnas_alloc(frame->length + 1);
    hwnas_status status = receive_all(r, text, frame->length, timeout, o);
    if (status == HWNAS_OK)
        *out = text;
    else
        free(text);
    return status;
}

/* What the answer says of itself: the child's own failure becomes ours. */
static hwnas_status read_verdict(const json_t *answer)
{
    const char *name = json_string_value(json_object_get(answer, "status"));
    const char *message = json_string_value(json_object_get(answer, "message"));
    const char *hint = json_string_value(json_object_get(answer, "hint"));
    hwnas_status status = name ? hwnas_status_from_name(name) : HWNAS_N_STATUS;
    if (status == HWNAS_N_STATUS || !message || !hint)
        return hwnas_runner_spoke_nonsense();
    if (status == HWNAS_OK)
        return HWNAS_OK;
    hwnas_fail(status, NULL, "%s", message);
    return *hint ? hwnas_hint(status, "%s", hint) : status;
}

/* Hears phases until the answer is there. */
static hwnas_status receive_answer(json_t **out, hwnas_runner *r, double timeout,
                                   const hwnas_measure_options *o)
{
    for (;;) {
        hwnas_frame frame;
        char *text = NULL;
        TRY(receive_frame(&text, &frame, r, timeout, o));
        if (frame.type == HWNAS_FRAME_ANSWER) {
            json_t *answer = json_loadb(text, frame.length, 0, NULL);
            free(text);
            hwnas_status status = read_verdict(answer);
            if (status == HWNAS_OK)
                *out = answer;
            else
                json_decref(answer);
            return status;
        }
        snprintf(r->phase, sizeof r->phase, "%s", text);
        free(text);
        if (o->progress)
            o->progress(o->context, r->phase);
    }
}

/* A failure in which the child may still be running, or is not to be trusted, costs the child. A
 * plain "I cannot do this" does not. */
static hwnas_status end_request(hwnas_runner *r, hwnas_status status)
{
    if (status != HWNAS_OK && status != HWNAS_E_UNSUPPORTED)
        stop_child(r, true);
    return status;
}

/* Our environment with OpenMP's settings in it. They must be there before the library is loaded,
 * and they stand above the user's, as the measurement says how it was made. */
static char **make_environment(const hwnas_runner *r, const int *cores, int n_cores)
{
    hwnas_str places = {0};
    for (int i = 0; i < n_cores; i++)
        hwnas_str_addf(&places, "%s{%d}", i ? "," : "", cores[i]);
    /* With more threads than cores the kernel knows better. */
    bool is_bound = n_cores == r->threads;
    char *settings[] = {
        hwnas_printf("OMP_NUM_THREADS=%d", r->threads),
        hwnas_strdup("OMP_DYNAMIC=false"),
        hwnas_strdup(is_bound ? "OMP_WAIT_POLICY=active" : "OMP_WAIT_POLICY=passive"),
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

static void free_environment(char **list)
{
    for (size_t i = 0; list[i]; i++)
        free(list[i]);
    free(list);
}

/* posix_spawn() with the three streams in place. SIGINT and SIGTERM start blocked: they may come
 * before the child can ignore them. */
static int spawn(pid_t *pid, const char *program, int socket_fd, int log_fd, char **environment)
{
    char *const arguments[] = {(char *)"hwnas", (char *)"runner", NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t blocked, defaults;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGINT);
    sigaddset(&blocked, SIGTERM);
    sigfillset(&defaults);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, socket_fd, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, socket_fd, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, log_fd, STDERR_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &blocked);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int error = posix_spawn(pid, program, &actions, &attributes, arguments, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

static const char *default_program = "/proc/self/exe";

void hwnas_runner_use(const char *program)
{
    default_program = program;
}

static hwnas_status start_child(hwnas_runner *r, const int *cores, int n_cores)
{
    hwnas_status status = HWNAS_OK;
    const char *program = getenv("HWNAS_RUNNER");
    int fds[2] = {-1, -1};
    char **environment = make_environment(r, cores, n_cores);
    if (!program || !*program)
        program = default_program;
    r->log = memfd_create("hwnas-runner-stderr", MFD_CLOEXEC);
    if (r->log < 0 || fcntl(r->log, F_SETFL, O_APPEND) ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) ||
        fcntl(fds[0], F_SETFL, O_NONBLOCK)) {
        status = hwnas_fail(HWNAS_E_IO, NULL, "cannot set up a runner: %s", strerror(errno));
        goto out;
    }
    int error = spawn(&r->pid, program, fds[1], r->log, environment);
    if (error) {
        r->pid = 0;
        status = hwnas_fail(HWNAS_E_IO, NULL, "cannot start the runner '%s': %s", program,
                            strerror(error));
        goto out;
    }
    r->fd = fds[0];
    r->n_requests = 0;
    fds[0] = -1;
out:
    free_environment(environment);
    close_fd(&fds[0]);
    close_fd(&fds[1]);
    if (status != HWNAS_OK)
        close_fd(&r->log);
    return status;
}

/* The cores that a child of one thread may move between: all that we may use, unless it was given
 * some. */
static json_t *list_allowed(const hwnas_runner *r)
{
    int all[HWNAS_MAX_CORES];
    const int n = r->pinned ? 0 : hwnas_cores_choose(all, HWNAS_MAX_CORES);
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_integer(all[i]));
    return list;
}

/* A child with an open device. */
static hwnas_status ensure_child(hwnas_runner *r, const hwnas_measure_options *o)
{
    hwnas_status status;
    json_t *answer = NULL;
    if (r->pid)
        return HWNAS_OK;
    if (getenv("HWNAS_IS_RUNNER"))
        return hwnas_fail(HWNAS_E_CRASHED, NULL,
                          "a runner may not start runners: the program '%s' "
                          "does not know the command `runner`",
                          program_invocation_name);
    if (!r->pinned)
        hwnas_cores_take(&r->cores, r->threads);
    const int *cores = r->pinned ? r->pinned : r->cores.numbers;
    const int n_cores = r->pinned ? r->threads : r->cores.n;
    json_t *list = json_array();
    for (int i = 0; i < n_cores; i++)
        json_array_append_new(list, json_integer(cores[i]));
    json_t *request = json_pack("{s:s, s:i, s:o, s:o}", "device", r->device, "threads", r->threads,
                                "cores", list, "allowed", list_allowed(r));
    snprintf(r->phase, sizeof r->phase, "starting");
    TRY_OUT(start_child(r, cores, n_cores));
    TRY_OUT(send_json(r, HWNAS_FRAME_OPEN, request, START_TIMEOUT, o));
    TRY_OUT(receive_answer(&answer, r, START_TIMEOUT, o));
    if (!hwnas_wire_read_info(&r->info, json_object_get(answer, "info")))
        status = hwnas_runner_spoke_nonsense();
out:
    json_decref(request);
    json_decref(answer);
    if (status != HWNAS_OK)
        stop_child(r, true);
    return status;
}

hwnas_status hwnas_runner_describe(hwnas_device_info *out, hwnas_runner *runner)
{
    const hwnas_measure_options options = HWNAS_MEASURE_DEFAULTS;
    TRY(ensure_child(runner, &options));
    *out = runner->info;
    return HWNAS_OK;
}

hwnas_status hwnas_runner_request(hwnas_runner *r, const json_t *request, const void *onnx,
                                  size_t length, const hwnas_measure_options *o)
{
    TRY(ensure_child(r, o));
    /* What was said in an earlier request explains nothing in this one. */
    if (ftruncate(r->log, 0))
        return hwnas_fail(HWNAS_E_IO, NULL, "cannot clear the runner's log: %s", strerror(errno));
    snprintf(r->phase, sizeof r->phase, "reading");
    r->n_requests++;
    TRY(send_json(r, HWNAS_FRAME_MEASURE, request, o->timeout, o));
    return hwnas_runner_send_graph(r, onnx, length, o);
}

hwnas_status hwnas_runner_send_graph(hwnas_runner *r, const void *onnx, size_t length,
                                     const hwnas_measure_options *o)
{
    return send_frame(r, HWNAS_FRAME_GRAPH, onnx, length, o->timeout, o);
}

hwnas_status hwnas_runner_go(hwnas_runner *r, const json_t *go, const hwnas_measure_options *o)
{
    return send_json(r, HWNAS_FRAME_GO, go, o->timeout, o);
}

hwnas_status hwnas_runner_hear(json_t **answer, hwnas_runner *r, const hwnas_measure_options *o)
{
    return receive_answer(answer, r, o->timeout, o);
}

void hwnas_runner_stop(hwnas_runner *r)
{
    stop_child(r, true);
}

/* Sends a request for a measurement and hears the answer; with `steps`, for their times as well. */
static hwnas_status request_measurement(json_t **out, hwnas_runner *r, const void *onnx,
                                        size_t length, bool steps, const hwnas_measure_options *o)
{
    json_t *request = hwnas_wire_options(o);
    json_object_set_new(request, "steps", json_boolean(steps));
    hwnas_status status = hwnas_runner_request(r, request, onnx, length, o);
    json_decref(request);
    return status == HWNAS_OK ? hwnas_runner_hear(out, r, o) : status;
}

hwnas_status hwnas_runner_measure_steps(hwnas_measurement *out, hwnas_step_times *steps,
                                        hwnas_runner *runner, const hwnas_graph *graph,
                                        const hwnas_measure_options *options)
{
    hwnas_status status;
    hwnas_measurement m;
    hwnas_graph *folded = NULL;
    json_t *answer = NULL;
    void *onnx = NULL;
    size_t length;
    double start = hwnas_now();
    /* What earlier candidates left behind, in caches, must not count against this one. */
    if (options->memory_limit && runner->n_requests)
        stop_child(runner, false);
    TRY_OUT(hwnas_onnx_write(&onnx, &length, graph, HWNAS_ONNX_SEEDS));
    TRY_OUT(request_measurement(&answer, runner, onnx, length, steps != NULL, options));
    const json_t *measurement = json_object_get(answer, "measurement");
    if (!hwnas_wire_read_measurement(&m, measurement))
        TRY_OUT(hwnas_runner_spoke_nonsense());
    if (steps) {
        TRY_OUT(hwnas_graph_fold(&folded, graph));
        if (!hwnas_wire_read_steps(steps, json_object_get(measurement, "steps"), folded))
            TRY_OUT(hwnas_runner_spoke_nonsense());
    }
    m.total_seconds = hwnas_now() - start;
    *out = m;
out:
    free(onnx);
    json_decref(answer);
    hwnas_graph_free(folded);
    return end_request(runner, status);
}

hwnas_status hwnas_runner_measure(hwnas_measurement *out, hwnas_runner *runner,
                                  const hwnas_graph *graph, const hwnas_measure_options *options)
{
    return hwnas_runner_measure_steps(out, NULL, runner, graph, options);
}
