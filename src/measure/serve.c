/* serve.c: the runner, the child that does what may crash, hang or eat all memory.
 *
 * It talks frames over its standard input and output; whatever a library prints goes to standard
 * error, of which the parent quotes the last line when we die. It leaves SIGINT and SIGTERM to the
 * parent, who decides whether a running trial is finished. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/c_locale.h"
#include "base/clock.h"
#include "device/helpers.h"
#include "measure/child.h"
#include "measure/core_choice.h"
#include "measure/cores.h"
#include "measure/race.h"
#include "measure/far.h"
#include "measure/hello.h"
#include "measure/inbox.h"
#include "measure/peak.h"
#include "measure/runner.h"
#include "measure/steps.h"
#include "measure/team.h"
#include "measure/verify.h"
#include "measure/wire.h"
#include "onnx/onnx.h"

static const double BEAT_SECONDS = 0.1; /* between two words of progress that say the same */
static const double IDLE_SECONDS = 0.02; /* without a request, and the cores are for others */

typedef struct session {
    hwnas_inbox *inbox;
    int out;
    hwnas_device *device;
    char phase[64]; /* last said */
    double said_when;
} session;

static hwnas_status write_all(int fd, const void *bytes, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t put = write(fd, (const char *)bytes + done, n - done);
        if (put >= 0)
            done += (size_t)put;
        else if (errno != EINTR)
            return hwnas_fail(HWNAS_E_IO, NULL, "cannot write to the parent: %s", strerror(errno));
    }
    return HWNAS_OK;
}

static hwnas_status send_frame(const session *s, hwnas_frame_type type, const char *bytes)
{
    unsigned char head[HWNAS_FRAME_HEAD];
    size_t length = strlen(bytes);
    hwnas_frame_encode(head, (hwnas_wire_frame){.type = type, .length = length});
    TRY(write_all(s->out, head, sizeof head));
    return write_all(s->out, bytes, length);
}

/* The next frame's payload, NUL-terminated, yours to free(). It must be of the given type, or with
 * `other` of that one. */
static hwnas_status receive_frame(void **out, hwnas_wire_frame *frame, const session *s,
                                  hwnas_frame_type type, hwnas_frame_type other)
{
    unsigned char head[HWNAS_FRAME_HEAD];
    TRY(hwnas_inbox_read(s->inbox, head, sizeof head));
    if (!hwnas_frame_decode(frame, head) || (frame->type != type && frame->type != other))
        return hwnas_fail(HWNAS_E_INPUT, NULL,
                          "the parent does not speak as it should; `hwnas runner` "
                          "is for hwnas itself");
    void *bytes;
    TRY(hwnas_try_alloc(&bytes, (size_t)frame->length + 1, "the network as ONNX"));
    hwnas_status status = hwnas_inbox_read(s->inbox, bytes, (size_t)frame->length);
    if (status == HWNAS_OK)
        *out = bytes;
    else
        free(bytes);
    return status;
}

/* A heartbeat, whole or not at all. It never waits: of several copies the parent hears one after
 * the other, and what those that it does not hear yet have said fills the socket in some seconds. A
 * copy that then waited would be no load for the others. */
static void beat(const session *s, const char *phase)
{
    unsigned char frame[HWNAS_FRAME_HEAD + sizeof s->phase];
    const size_t length = strlen(phase), n = HWNAS_FRAME_HEAD + length;
    hwnas_frame_encode(frame, (hwnas_wire_frame){.type = HWNAS_FRAME_PHASE, .length = length});
    memcpy(frame + HWNAS_FRAME_HEAD, phase, length);
    ssize_t put = send(s->out, frame, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put < 0 && errno == ENOTSOCK)
        put = 0;
    /* A parent that does not hear is a parent that has gone, which the next read finds out. */
    if (put >= 0 && write_all(s->out, frame + put, n - (size_t)put) != HWNAS_OK)
        hwnas_error_clear();
}

/* Says what goes on, as hwnas_measure_options.progress. */
static void say(void *context, const char *phase)
{
    session *s = context;
    double now = hwnas_now();
    if (!strcmp(phase, s->phase) && now - s->said_when < BEAT_SECONDS)
        return;
    snprintf(s->phase, sizeof s->phase, "%s", phase);
    s->said_when = now;
    beat(s, s->phase);
}

/* Sends how a request ended, with what it produced. Takes `result`, which may be NULL. */
static hwnas_status answer(const session *s, hwnas_status status, const char *name, json_t *result)
{
    const hwnas_error *error = hwnas_last_error();
    bool is_ok = status == HWNAS_OK;
    json_t *object = json_pack("{s:s, s:s, s:s}", "status", hwnas_status_name(status), "message",
                               is_ok ? "" : error->message, "hint", is_ok ? "" : error->hint);
    if (result)
        json_object_set_new(object, name, result);
    char *text = json_dumps(object, JSON_COMPACT);
    hwnas_status sent = text ? send_frame(s, HWNAS_FRAME_ANSWER, text)
                             : hwnas_fail(HWNAS_E_MEMORY, NULL, "no memory for the answer");
    free(text);
    json_decref(object);
    return sent;
}

/* Test-only: HWNAS_RUNNER_FAULT makes a measurement end badly in one of the ways that happen, so
 * that each verdict of runner_child.c is tried for real. */
static hwnas_status inject_fault(const session *s)
{
    const char *fault = getenv("HWNAS_RUNNER_FAULT");
    if (!fault)
        return HWNAS_OK;
    fprintf(stderr, "fault: %s\n", fault);
    if (!strcmp(fault, "crash")) {
        signal(SIGSEGV, SIG_DFL); /* a sanitizer would make another end of it */
        raise(SIGSEGV);
    }
    if (!strcmp(fault, "killed")) /* as the kernel does when memory is short */
        raise(SIGKILL);
    if (!strcmp(fault, "exit"))
        exit(3);
    if (!strcmp(fault, "garbage"))
        for (int i = 0; i < 100; i++)
            TRY(write_all(s->out, "not a frame at all. ", 20));
    while (!strcmp(fault, "hang"))
        pause();
    for (;;) {
        void *block;
        if (!strcmp(fault, "oom")) /* a library that reports it */
            TRY(hwnas_try_alloc(&block, 64 << 20, "a fault"));
        else if (!strcmp(fault, "alloc")) /* code that cannot */
            block = hwnas_alloc(64 << 20);
        else if (!strcmp(fault, "unchecked")) /* a library that does not look */
            block = calloc(1, 64 << 20);
        else
            return HWNAS_OK;
        *(volatile char *)block = 1;
    }
}

/* One network on its way through the runner. */
typedef struct job {
    hwnas_graph *graph;
    hwnas_exec *exec;
    double compile_seconds;
    bool has_peak; /* counted since this network came */
} job;

static void job_done(job *j)
{
    hwnas_exec_free(j->exec);
    hwnas_graph_free(j->graph);
}

/* `onnx` is freed on the way, or left to the caller. */
static hwnas_status compile(job *j, session *s, void **onnx, size_t length,
                            const hwnas_measure_options *options)
{
    hwnas_graph *raw;
    j->has_peak = hwnas_peak_begin();
    say(s, "reading");
    TRY(hwnas_child_limit_memory(options->memory_limit));
    TRY(hwnas_onnx_take(&raw, "the candidate", onnx, length));
    const hwnas_status formed = hwnas_exec_form(&j->graph, raw, &options->exec);
    hwnas_graph_free(raw);
    TRY(formed);

    say(s, "compiling");
    TRY(inject_fault(s));
    const double start = hwnas_now();
    TRY(hwnas_device_compile(&j->exec, s->device, j->graph, &options->exec));
    j->compile_seconds = hwnas_now() - start;
    return HWNAS_OK;
}

/* `out` becomes the measurement as JSON. */
static hwnas_status measure(json_t **out, const session *s, const job *j,
                            const hwnas_measure_options *options, bool with_steps)
{
    hwnas_status status = HWNAS_OK;
    hwnas_measurement m;
    hwnas_step_times steps = {0};
    hwnas_inbox_begin(s->inbox);
    TRY_OUT(hwnas_measure_exec(&m, j->exec, j->graph, options));
    m.compile_seconds = j->compile_seconds;
    m.peak_bytes = j->has_peak && !hwnas_inbox_has_prepared(s->inbox) ? hwnas_peak_bytes() : 0;
    if (with_steps)
        TRY_OUT(hwnas_measure_steps(&steps, j->exec, j->graph, options));
    *out = hwnas_wire_measurement(&m);
    if (with_steps)
        json_object_set_new(*out, "steps", hwnas_wire_steps(&steps, j->graph));
out:
    hwnas_inbox_end(s->inbox);
    hwnas_step_times_done(&steps);
    return status;
}

/* Says that it is ready, and waits for the word to go. */
static hwnas_status wait_for_go(double *lead, double *seconds, const session *s, double run_seconds)
{
    hwnas_wire_frame frame;
    void *text;
    TRY(answer(s, HWNAS_OK, "ready", json_real(run_seconds)));
    TRY(receive_frame(&text, &frame, s, HWNAS_FRAME_GO, HWNAS_FRAME_GO));
    json_t *go = json_loadb(text, frame.length, 0, NULL);
    *lead = json_number_value(json_object_get(go, "lead"));
    *seconds = json_number_value(json_object_get(go, "seconds"));
    json_decref(go);
    free(text);
    return HWNAS_OK;
}

/* One of several copies; `out` becomes what it measured as JSON. */
static hwnas_status measure_window(json_t **out, session *s, const job *j,
                                   const hwnas_measure_options *options)
{
    hwnas_status status = HWNAS_OK;
    hwnas_machine *machine = hwnas_machine_open();
    hwnas_copy copy = {0};
    hwnas_window window = {0};
    double lead, seconds;
    say(s, "running once");
    TRY_OUT(hwnas_copy_open(&copy, j->exec, j->graph, machine));
    TRY_OUT(wait_for_go(&lead, &seconds, s, copy.run_seconds));
    TRY_OUT(hwnas_window_measure(&window, &copy, lead, seconds, options));
    window.m.compile_seconds = j->compile_seconds;
    window.m.peak_bytes = j->has_peak ? hwnas_peak_bytes() : 0;
    *out = hwnas_wire_window(&window);
out:
    hwnas_window_done(&window);
    hwnas_copy_done(&copy);
    hwnas_machine_close(machine);
    return status;
}

/* MEASURE and GRAPH. */
static hwnas_status serve_measure(session *s, const json_t *request)
{
    hwnas_wire_frame frame;
    hwnas_measure_options options;
    json_t *result = NULL;
    job j = {0};
    const bool is_copy = json_is_true(json_object_get(request, "is_copy"));
    void *onnx = NULL;
    s->phase[0] = '\0';
    hwnas_status status = receive_frame(&onnx, &frame, s, HWNAS_FRAME_GRAPH, HWNAS_FRAME_GRAPH);
    if (status == HWNAS_E_MEMORY) /* the stream is out of step now: the parent starts another */
        return answer(s, status, NULL, NULL);
    TRY(status);
    if (!s->device)
        TRY_OUT(hwnas_fail(HWNAS_E_INPUT, NULL, "no device was opened"));
    if (!hwnas_wire_read_options(&options, request))
        TRY_OUT(hwnas_fail(HWNAS_E_INPUT, NULL, "the request lacks options"));
    options.progress = say;
    options.context = s;
    TRY_OUT(compile(&j, s, &onnx, frame.length, &options));
    if (is_copy)
        TRY_OUT(measure_window(&result, s, &j, &options));
    else
        TRY_OUT(measure(&result, s, &j, &options, json_is_true(json_object_get(request, "steps"))));
out:
    job_done(&j);
    free(onnx);
    return answer(s, status, is_copy ? "window" : "measurement", result);
}

static hwnas_status take_precision(hwnas_precision *out, const json_t *name)
{
    if (!json_is_string(name))
        return hwnas_fail(HWNAS_E_INPUT, NULL, "a network of the race lacks its precision");
    return hwnas_precision_find(out, json_string_value(name));
}

/* MEASURE and several graphs. All are read before anything can fail, so that the stream stays in
 * step. */
static hwnas_status serve_race(session *s, const json_t *request, int n)
{
    hwnas_status status = HWNAS_OK;
    hwnas_measure_options options;
    hwnas_race race = {0};
    job jobs[HWNAS_RACE_MOST] = {{0}};
    hwnas_exec *execs[HWNAS_RACE_MOST];
    const hwnas_graph *graphs[HWNAS_RACE_MOST];
    void *onnx[HWNAS_RACE_MOST] = {NULL};
    hwnas_wire_frame frames[HWNAS_RACE_MOST];
    hwnas_machine *machine = hwnas_machine_open();
    s->phase[0] = '\0';
    for (int i = 0; i < n; i++)
        TRY_OUT(receive_frame(&onnx[i], &frames[i], s, HWNAS_FRAME_GRAPH, HWNAS_FRAME_GRAPH));
    if (!s->device || !hwnas_wire_read_options(&options, request))
        TRY_OUT(hwnas_fail(HWNAS_E_INPUT, NULL, "the request lacks options or a device"));
    options.progress = say;
    options.context = s;
    const json_t *precisions = json_object_get(request, "race_precisions");
    for (int i = 0; i < n; i++) {
        hwnas_measure_options own = options;
        if (precisions)
            TRY_OUT(take_precision(&own.exec.precision, json_array_get(precisions, (size_t)i)));
        TRY_OUT(compile(&jobs[i], s, &onnx[i], frames[i].length, &own));
        execs[i] = jobs[i].exec;
        graphs[i] = jobs[i].graph;
    }
    TRY_OUT(hwnas_race_run(&race, execs, graphs, n, &options, machine));
    for (int i = 0; i < n; i++)
        race.measurements[i].compile_seconds = jobs[i].compile_seconds;
out:
    for (int i = 0; i < n; i++) {
        job_done(&jobs[i]);
        free(onnx[i]);
    }
    hwnas_machine_close(machine);
    status = answer(s, status, "race", status ? NULL : hwnas_wire_race(&race));
    hwnas_race_done(&race);
    return status;
}

/* MEASURE and GRAPH: the result is wanted, not its time. */
static hwnas_status serve_verify(session *s, const json_t *request)
{
    hwnas_status status;
    hwnas_measure_options options;
    hwnas_verified verified;
    hwnas_graph *graph = NULL;
    hwnas_wire_frame frame;
    void *onnx = NULL;
    s->phase[0] = '\0';
    TRY(receive_frame(&onnx, &frame, s, HWNAS_FRAME_GRAPH, HWNAS_FRAME_GRAPH));
    if (!s->device || !hwnas_wire_read_options(&options, request))
        TRY_OUT(hwnas_fail(HWNAS_E_INPUT, NULL, "the request lacks options or a device"));
    options.progress = say;
    options.context = s;
    say(s, "reading");
    TRY_OUT(hwnas_child_limit_memory(0));
    TRY_OUT(hwnas_onnx_take(&graph, "the candidate", &onnx, frame.length));
    TRY_OUT(inject_fault(s));
    TRY_OUT(hwnas_verify(&verified, s->device, graph,
                         json_number_value(json_object_get(request, "verify")), &options));
out:
    hwnas_graph_free(graph);
    free(onnx);
    return answer(s, status, "verified", status ? NULL : hwnas_wire_verified(&verified));
}

/* How many. */
static int read_cores(int out[HWNAS_MAX_CORES], const json_t *cores)
{
    const int n = (int)json_array_size(cores);
    for (int i = 0; i < n && i < HWNAS_MAX_CORES; i++)
        out[i] = (int)json_integer_value(json_array_get(cores, (size_t)i));
    return n < HWNAS_MAX_CORES ? n : HWNAS_MAX_CORES;
}

static void get_help(const session *s, const char *spelling, const json_t *request)
{
    int ours[HWNAS_MAX_CORES], all[HWNAS_MAX_CORES];
    const int n_ours = read_cores(ours, json_object_get(request, "cores"));
    const int n_all = read_cores(all, json_object_get(request, "allowed"));
    if (!s->device->ops->prepare || !hwnas_device_is_quick(spelling))
        return;
    /* The helper's only core is not taken from it: where a GPU computes, plans in time are worth
     * more than the quieter core. */
    if (hwnas_inbox_help(s->inbox, s->device, all, n_all, ours, n_ours) == 1)
        hwnas_place_allow(NULL, 0, hwnas_place_threads());
}

static hwnas_status serve_open(session *s, const json_t *request)
{
    hwnas_hello hello = {0};
    hwnas_device_options options = {0};
    const char *spelling = json_string_value(json_object_get(request, "device"));
    if (!hwnas_wire_read_int(&options.threads, json_object_get(request, "threads")))
        return answer(s, hwnas_fail(HWNAS_E_INPUT, NULL, "the request lacks a number of threads"),
                      "info", NULL);
    if (hwnas_hello_check(request) != HWNAS_OK)
        return answer(s, HWNAS_E_UNSUPPORTED, "info", NULL);
    hwnas_child_pin(json_object_get(request, "cores"));
    int cores[HWNAS_MAX_CORES];
    hwnas_place_bind(cores, read_cores(cores, json_object_get(request, "cores")));
    hwnas_place_allow(cores, read_cores(cores, json_object_get(request, "allowed")),
                      options.threads);
    hwnas_helpers_set_room(hwnas_place_free);
    hwnas_inbox_rest(s->inbox);
    hwnas_device_close(s->device);
    s->device = NULL;
    hwnas_status status = hwnas_device_open(&s->device, spelling ? spelling : "", &options);
    if (status == HWNAS_OK) {
        hwnas_hello_make(&hello, s->device);
        if (s->device->ops->listen)
            s->device->ops->listen(s->device, say, s);
        get_help(s, spelling ? spelling : "", request);
    }
    return answer(s, status, "info", status ? NULL : hwnas_wire_hello(&hello));
}

static hwnas_status serve_request(session *s)
{
    hwnas_wire_frame frame;
    void *text;
    TRY(receive_frame(&text, &frame, s, HWNAS_FRAME_OPEN, HWNAS_FRAME_MEASURE));
    json_t *request = json_loadb(text, frame.length, 0, NULL);
    const json_int_t n = json_integer_value(json_object_get(request, "race"));
    hwnas_status status = frame.type == HWNAS_FRAME_OPEN  ? serve_open(s, request)
                          : n > 0 && n <= HWNAS_RACE_MOST ? serve_race(s, request, (int)n)
                          : json_is_number(json_object_get(request, "verify"))
                              ? serve_verify(s, request)
                              : serve_measure(s, request);
    json_decref(request);
    free(text);
    return status;
}

/* What was read before this program was started once more. */
static hwnas_status serve_kept(session *s)
{
    json_t *request = hwnas_far_take_kept();
    const hwnas_status status = request ? serve_open(s, request) : HWNAS_OK;
    json_decref(request);
    return status;
}

hwnas_status hwnas_runner_serve_streams(int in, int out)
{
    session s = {.inbox = hwnas_inbox_new(in), .out = out};
    hwnas_status status = serve_kept(&s);
    while (status == HWNAS_OK) {
        if (!hwnas_inbox_has_more(s.inbox, IDLE_SECONDS))
            hwnas_team_dismiss();
        status = serve_request(&s);
    }
    hwnas_inbox_free(s.inbox);
    hwnas_device_close(s.device);
    return status == HWNAS_E_NOT_FOUND ? HWNAS_OK : status;
}

hwnas_status hwnas_runner_serve(void)
{
    int in, out;
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    hwnas_child_be_expendable();
    TRY(hwnas_child_claim_streams(&in, &out));
    TRY(hwnas_child_watch_parent(&in));
    return hwnas_runner_serve_streams(in, out);
}

bool hwnas_runner_is_called(int *exit_code, int argc, char *const *argv)
{
    const bool is_called = argc >= 2 && !strcmp(argv[1], "runner");
    const bool is_far = is_called && argc >= 3 && argc <= 4 && !strcmp(argv[2], "serve");
    if (!is_far && (!is_called || argc != 2 || !getenv("HWNAS_IS_RUNNER")))
        return false;
    IN_C_LOCALE;
    const hwnas_status status =
        is_far ? hwnas_far_serve(argc == 4 ? argv[3] : "cpu") : hwnas_runner_serve();
    if (status != HWNAS_OK) /* the parent reads it there */
        dprintf(STDERR_FILENO, "%s\n", hwnas_last_error()->message);
    *exit_code = hwnas_status_exit_code(status);
    return true;
}
