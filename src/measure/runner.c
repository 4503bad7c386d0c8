/* runner.c: the parent's side of the runner: ask and wait. The child itself is in runner_child.c.
 */
#define _GNU_SOURCE 1 /* MSG_NOSIGNAL, program_invocation_name */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "measure/runner_priv.h"
#include "measure/wire.h"

enum { SLICE_MS = 100, LONGEST_PHASE = 1024 };
/* An answer may take so many times the silence that is a hang, and the time for measuring. */
static const double SILENCES = 30, BUDGETS = 10;
/* Loading the libraries of a device from a cold disk is not a hang. */
static const double START_TIMEOUT = 60;

/* Counted here: in the child OpenMP binds the main thread, and it would count one core. */
static int count_threads(const hwnas_link *link, int threads)
{
    return threads || !hwnas_link_is_own(link) ? threads : hwnas_device_cores();
}

hwnas_status hwnas_runner_open(hwnas_runner **out, const char *device, int threads)
{
    if (threads < 0)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "%d threads", threads);
    hwnas_link *link;
    TRY(hwnas_link_new(&link, device));
    hwnas_runner *r = hwnas_alloc(sizeof *r);
    r->device = hwnas_strdup(device);
    r->link = link;
    r->threads = count_threads(link, threads);
    r->prepares = hwnas_device_is_quick(device);
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

bool hwnas_runner_is_far(const hwnas_runner *runner)
{
    return hwnas_link_is_far(runner->link);
}

void hwnas_runner_rest(hwnas_runner *runner)
{
    hwnas_orders_done(runner);
    hwnas_runner_end_child(runner, false);
}

void hwnas_runner_set_threads(hwnas_runner *runner, int threads)
{
    hwnas_runner_rest(runner);
    runner->threads = count_threads(runner->link, threads);
}

void hwnas_runner_close(hwnas_runner *runner)
{
    if (!runner)
        return;
    hwnas_runner_rest(runner);
    hwnas_streamed_done(&runner->samples);
    hwnas_link_free(runner->link);
    free(runner->device);
    free(runner);
}

/* Waits until the socket is ready or hung up, and takes what the child writes to standard error
 * meanwhile. */
static hwnas_status wait_ready(hwnas_runner *r, short events, double timeout,
                               const hwnas_measure_options *o)
{
    /* Silence is added up slice by slice, so that a job that was stopped (Ctrl-Z) or a machine that
     * slept does not come back to a timeout. */
    for (double silence = 0; silence < timeout;) {
        /* Meanwhile what is sent ahead goes on. */
        const short ahead = hwnas_orders_push(r) ? POLLOUT & ~events : 0;
        struct pollfd p[] = {{.fd = r->fd, .events = (short)(events | ahead)},
                             {.fd = r->log, .events = POLLIN}};
        double start = hwnas_now();
        if (o->stop && *o->stop)
            return hwnas_fail(HWNAS_E_INTERRUPTED, NULL, "interrupted while %s", r->phase);
        int n = poll(p, 2, (int)fmin(SLICE_MS, ceil(1e3 * (timeout - silence))));
        if (n > 0 && p[1].revents)
            hwnas_runner_drain_log(r);
        if (n > 0 && p[0].revents & ~ahead)
            return HWNAS_OK;
        if (n < 0 && errno != EINTR)
            return hwnas_fail(HWNAS_E_IO, NULL, "cannot wait for the runner: %s", strerror(errno));
        silence = n > 0 && p[0].revents ? 0 : silence + fmin(hwnas_now() - start, 2e-3 * SLICE_MS);
    }
    /* A link that is stuck looks the same as a network that is. */
    r->may_return = hwnas_link_is_far(r->link);
    hwnas_status status =
        hwnas_fail(HWNAS_E_TIMEOUT, NULL,
                   "the runner said nothing for %g s while %s, and was killed", timeout, r->phase);
    return hwnas_hint(status, "when the device is that slow, raise the timeout");
}

static hwnas_status send_all(hwnas_runner *r, const void *bytes, size_t n, double timeout,
                             const hwnas_measure_options *o)
{
    while (hwnas_orders_push(r)) /* frames stay whole */
        TRY(wait_ready(r, POLLOUT, timeout, o));
    for (size_t done = 0; done < n;) {
        ssize_t put = send(r->fd, (const char *)bytes + done, n - done, MSG_NOSIGNAL);
        if (put >= 0)
            done += (size_t)put;
        else if (errno == EAGAIN)
            TRY(wait_ready(r, POLLOUT, timeout, o));
        else if (errno != EINTR)
            return hwnas_runner_classify_exit(r);
    }
    return HWNAS_OK;
}

static hwnas_status send_frame(hwnas_runner *r, hwnas_frame_type type, const void *bytes,
                               size_t length, double timeout, const hwnas_measure_options *o)
{
    unsigned char head[HWNAS_FRAME_HEAD];
    hwnas_frame_encode(head, (hwnas_wire_frame){.type = type, .length = length});
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
            return hwnas_runner_classify_exit(r);
    }
    return HWNAS_OK;
}

/* What came is no frame. At the beginning it is often what a shell or another program prints. */
static hwnas_status not_a_runner(const hwnas_runner *r)
{
    if (hwnas_link_is_own(r->link))
        return hwnas_runner_protocol_error(r, "no frame");
    hwnas_status status = hwnas_fail(
        hwnas_link_is_far(r->link) && r->is_starting ? HWNAS_E_LIBRARY : HWNAS_E_CRASHED, NULL,
        "'%s' wrote something that is no frame of a runner", hwnas_link_where(r->link));
    return hwnas_link_is_far(r->link)
               ? hwnas_hint(status,
                            "'ssh %s true' must print nothing; see what the shell there "
                            "prints when it starts",
                            hwnas_link_where(r->link))
               : hwnas_hint(status, "standard output is for frames alone: docs/runner-protocol.md");
}

/* The next frame's payload, NUL-terminated, yours to free(). */
static hwnas_status receive_frame(char **out, hwnas_wire_frame *frame, hwnas_runner *r,
                                  double timeout, const hwnas_measure_options *o)
{
    unsigned char head[HWNAS_FRAME_HEAD];
    TRY(receive_all(r, head, sizeof head, timeout, o));
    if (!hwnas_frame_decode(frame, head) ||
        (frame->type != HWNAS_FRAME_PHASE && frame->type != HWNAS_FRAME_ANSWER &&
         frame->type != HWNAS_FRAME_SAMPLES) ||
        (frame->type == HWNAS_FRAME_PHASE && frame->length > LONGEST_PHASE))
        return not_a_runner(r);
    char *text = hwnas_alloc(frame->length + 1);
    hwnas_status status = receive_all(r, text, frame->length, timeout, o);
    if (status == HWNAS_OK)
        *out = text;
    else
        free(text);
    return status;
}

/* What the answer says of itself: the child's own failure becomes ours. What is lacking as it is
 * started is lacking where it is. */
static hwnas_status read_verdict(const hwnas_runner *r, const json_t *answer)
{
    const bool is_there = r->is_starting && hwnas_link_is_far(r->link);
    const char *name = json_string_value(json_object_get(answer, "status"));
    const char *message = json_string_value(json_object_get(answer, "message"));
    const char *hint = json_string_value(json_object_get(answer, "hint"));
    hwnas_status status = name ? hwnas_status_from_name(name) : HWNAS_N_STATUS;
    if (status == HWNAS_N_STATUS)
        return hwnas_runner_protocol_error(r, !json_is_object(answer)
                                                  ? "an ANSWER that is no JSON object"
                                              : name ? "an ANSWER with an unknown status"
                                                     : "an ANSWER without status");
    if (status == HWNAS_OK)
        return HWNAS_OK;
    hwnas_fail(status, NULL, "%s%s%s%s", is_there ? "on '" : "",
               is_there ? hwnas_link_where(r->link) : "", is_there ? "': " : "",
               message && *message ? message : "the runner does not say why");
    return hint && *hint ? hwnas_hint(status, "%s", hint) : status;
}

/* A child that says again and again that it lives, and nothing else, is not waited for without
 * end. */
static hwnas_status check_patience(const hwnas_runner *r, double waited, double timeout,
                                   const hwnas_measure_options *o)
{
    const double most =
        SILENCES * timeout + BUDGETS * (double)r->n_graphs * (o->max_seconds + o->steps_seconds);
    if (o->stop && *o->stop)
        return hwnas_fail(HWNAS_E_INTERRUPTED, NULL, "interrupted while %s", r->phase);
    if (waited <= most)
        return HWNAS_OK;
    return hwnas_hint(hwnas_fail(HWNAS_E_TIMEOUT, NULL,
                                 "the runner gave no answer for %.0f s while %s, and was killed",
                                 waited, r->phase),
                      "when the device is that slow, raise the timeout");
}

/* Takes samples, and says when there are enough. */
static hwnas_status take_samples(hwnas_runner *r, const char *text, size_t length, double timeout,
                                 const hwnas_measure_options *o)
{
    json_t *frame = json_loadb(text, length, 0, NULL);
    const bool is_good = hwnas_streamed_add(&r->samples, frame);
    json_decref(frame);
    if (!is_good)
        return hwnas_runner_protocol_error(r,
                                           "SAMPLES without `seconds`, a list of numbers above 0");
    return hwnas_streamed_is_enough(&r->samples, o)
               ? send_frame(r, HWNAS_FRAME_STOP, "", 0, timeout, o)
               : HWNAS_OK;
}

/* Hears phases until the answer is there. */
static hwnas_status receive_answer(json_t **out, hwnas_runner *r, double timeout,
                                   const hwnas_measure_options *o)
{
    for (double waited = 0, last = hwnas_now();;) {
        hwnas_wire_frame frame;
        char *text = NULL;
        TRY(check_patience(r, waited, timeout, o));
        TRY(receive_frame(&text, &frame, r, timeout, o));
        waited += fmin(hwnas_now() - last, timeout); /* a machine may sleep in between */
        last = hwnas_now();
        if (frame.type == HWNAS_FRAME_ANSWER) {
            json_t *answer = json_loadb(text, frame.length, 0, NULL);
            free(text);
            hwnas_status status = read_verdict(r, answer);
            if (status == HWNAS_OK)
                *out = answer;
            else
                json_decref(answer);
            return status;
        }
        hwnas_status status = HWNAS_OK;
        if (frame.type == HWNAS_FRAME_SAMPLES)
            status = take_samples(r, text, frame.length, timeout, o);
        snprintf(r->phase, sizeof r->phase, "%s",
                 frame.type == HWNAS_FRAME_SAMPLES ? "sampling" : text);
        free(text);
        TRY(status);
        if (o->progress)
            o->progress(o->context, r->phase);
    }
}

hwnas_status hwnas_runner_end_request(hwnas_runner *r, hwnas_status status)
{
    if (status != HWNAS_OK && status != HWNAS_E_UNSUPPORTED)
        hwnas_runner_end_child(r, true);
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

/* Threads are compared where the same number was asked for. */
static bool is_same(const hwnas_hello *a, const hwnas_hello *b, bool with_threads)
{
    const hwnas_device_info *x = &a->info, *y = &b->info;
    return !strcmp(x->name, y->name) && !strcmp(x->library, y->library) &&
           !strcmp(x->isa, y->isa) && !strcmp(a->machine, b->machine) &&
           (!with_threads || x->threads == y->threads);
}

/* A link that was made anew must end where the first one did. */
static hwnas_status check_same(hwnas_runner *r, const hwnas_hello *now)
{
    const hwnas_device_info *x = &r->hello.info, *y = &now->info;
    if (!r->is_known || is_same(&r->hello, now, r->asked_threads == r->threads))
        return HWNAS_OK;
    r->is_other = true;
    return hwnas_hint(hwnas_fail(HWNAS_E_LIBRARY, NULL,
                                 "another machine than before answers as '%s': it was %s, %s, %d "
                                 "thread%s; it is %s, %s, %d thread%s",
                                 r->device, x->name, x->library, x->threads,
                                 x->threads == 1 ? "" : "s", y->name, y->library, y->threads,
                                 y->threads == 1 ? "" : "s"),
                      "when the first one answers again, --resume goes on with the search; a new "
                      "study on this one can begin with --warm-start");
}

/* Who it is, and where: what is measured on two machines is never taken for one. */
static hwnas_status read_hello(hwnas_runner *r, const json_t *info)
{
    hwnas_hello h;
    if (!hwnas_wire_read_hello(&h, info))
        return hwnas_runner_protocol_error(
            r, "an ANSWER to OPEN whose `info` lacks a `name`, or has wrong members");
    if (h.protocol != HWNAS_PROTOCOL)
        return hwnas_hint(
            hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                       "the runner%s%s speaks version %d of the protocol%s%s, and "
                       "this hwnas version %d",
                       *hwnas_link_where(r->link) ? " of " : "", hwnas_link_where(r->link),
                       h.protocol, *h.version ? ": it is hwnas " : "", h.version, HWNAS_PROTOCOL),
            "install the same version on both sides; this one is %s", hwnas_version());
    if (hwnas_link_is_far(r->link)) {
        const hwnas_device_info there = h.info;
        snprintf(h.info.name, sizeof h.info.name, "%.80s, over ssh, machine %s", there.name,
                 h.machine);
        snprintf(h.info.library, sizeof h.info.library, "%.40s, hwnas %.14s", there.library,
                 h.version);
    }
    if (!hwnas_link_is_own(r->link) && !(h.abilities & 1 << HWNAS_CAN_VERIFY))
        h.info.computes = false;
    TRY(check_same(r, &h));
    hwnas_link_is_open(r->link);
    r->lost_since = r->nap = 0;
    r->asked_threads = r->threads;
    r->is_known = true;
    r->is_other = false;
    r->hello = h;
    return HWNAS_OK;
}

hwnas_status hwnas_runner_begin_opening(hwnas_runner *r, const hwnas_measure_options *o)
{
    hwnas_status status;
    const bool is_own = hwnas_link_is_own(r->link);
    if (getenv("HWNAS_IS_RUNNER"))
        return hwnas_fail(HWNAS_E_CRASHED, NULL,
                          "a runner may not start runners: the program '%s' "
                          "does not know the command `runner`",
                          program_invocation_name);
    if (!r->pinned && is_own)
        hwnas_cores_take(&r->cores, r->threads);
    const int *cores = r->pinned ? r->pinned : r->cores.numbers;
    const int n_cores = r->pinned ? r->threads : r->cores.n;
    json_t *list = json_array();
    for (int i = 0; i < n_cores; i++)
        json_array_append_new(list, json_integer(cores[i]));
    json_t *request = json_pack("{s:i, s:s, s:i}", "protocol", HWNAS_PROTOCOL, "device",
                                hwnas_link_device(r->link), "threads", r->threads);
    if (is_own) { /* elsewhere they are chosen there */
        json_object_set(request, "cores", list);
        json_object_set_new(request, "allowed", list_allowed(r));
    }
    json_decref(list);
    snprintf(r->phase, sizeof r->phase, "starting");
    r->is_starting = true;
    TRY_OUT(hwnas_runner_start_child(r, cores, n_cores));
    TRY_OUT(send_json(r, HWNAS_FRAME_OPEN, request, START_TIMEOUT, o));
out:
    json_decref(request);
    if (status != HWNAS_OK)
        hwnas_runner_end_child(r, true);
    return status;
}

hwnas_status hwnas_runner_end_opening(hwnas_runner *r, double patience,
                                      const hwnas_measure_options *o)
{
    hwnas_status status;
    json_t *answer = NULL;
    TRY_OUT(receive_answer(&answer, r, patience, o));
    TRY_OUT(read_hello(r, json_object_get(answer, "info")));
    r->is_starting = false;
out:
    json_decref(answer);
    if (status != HWNAS_OK)
        hwnas_runner_end_child(r, true);
    return status;
}

/* A child with an open device. */
hwnas_status hwnas_runner_make_ready(hwnas_runner *r, const hwnas_measure_options *o)
{
    hwnas_runner_take_turn(r);
    if (hwnas_runner_is_ready(r))
        return HWNAS_OK;
    if (!r->pid)
        TRY(hwnas_runner_begin_opening(r, o));
    return hwnas_runner_end_opening(r, START_TIMEOUT, o);
}

hwnas_status hwnas_runner_describe(hwnas_device_info *out, hwnas_runner *runner)
{
    const hwnas_measure_options options = HWNAS_MEASURE_DEFAULTS;
    hwnas_status status;
    hwnas_losses losses = {0};
    do
        status = hwnas_runner_make_ready(runner, &options);
    while (hwnas_runner_tries_again(&status, &losses, runner, &options));
    if (status == HWNAS_OK)
        *out = runner->hello.info;
    return status;
}

void hwnas_runner_begin_request(hwnas_runner *r)
{
    hwnas_streamed_done(&r->samples);
    /* What was said in an earlier request explains nothing in this one. */
    hwnas_runner_drain_log(r);
    r->n_tail = r->n_graphs = 0;
    snprintf(r->phase, sizeof r->phase, "reading");
    r->n_requests++;
}

void hwnas_runner_take_up(hwnas_runner *r)
{
    hwnas_streamed_done(&r->samples);
    r->n_graphs = 1;
    snprintf(r->phase, sizeof r->phase, "reading");
}

hwnas_status hwnas_runner_request(hwnas_runner *r, const hwnas_graph *const *graphs, int n,
                                  const json_t *request, const void *onnx, size_t length,
                                  const hwnas_measure_options *o)
{
    hwnas_orders_drop(r);
    TRY(hwnas_runner_make_ready_for(r, graphs, n, o));
    hwnas_runner_begin_request(r);
    TRY(send_json(r, HWNAS_FRAME_MEASURE, request, o->timeout, o));
    return hwnas_runner_send_graph(r, onnx, length, o);
}

hwnas_status hwnas_runner_send_graph(hwnas_runner *r, const void *onnx, size_t length,
                                     const hwnas_measure_options *o)
{
    r->n_graphs++;
    return send_frame(r, HWNAS_FRAME_GRAPH, onnx, length, o->timeout, o);
}

hwnas_status hwnas_runner_go(hwnas_runner *r, const json_t *go, const hwnas_measure_options *o)
{
    return send_json(r, HWNAS_FRAME_GO, go, o->timeout, o);
}

hwnas_status hwnas_runner_receive(json_t **answer, hwnas_runner *r, const hwnas_measure_options *o)
{
    return receive_answer(answer, r, o->timeout, o);
}

void hwnas_runner_stop(hwnas_runner *r)
{
    hwnas_runner_end_child(r, true);
}
