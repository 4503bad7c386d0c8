/* test_measure_runner.c: the runner, with each of the bad ends that a child can have, and what goes
 * over the wire. The program is its own runner: `test_measure_runner runner` serves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "measure/far.h"
#include "measure/race.h"
#include "measure/runner.h"
#include "measure/runner_priv.h"
#include "measure/streamed.h"
#include "measure/streams.h"
#include "measure/verify.h"
#include "measure/wire.h"
#include "tests/unit/measure_fixture.h"

static void test_wire(void **state)
{
    (void)state;
    unsigned char head[HWNAS_FRAME_HEAD];
    hwnas_wire_frame frame;
    hwnas_frame_encode(head, (hwnas_wire_frame){.type = HWNAS_FRAME_GRAPH, .length = 1 << 25});
    assert_true(hwnas_frame_decode(&frame, head));
    assert_int_equal(frame.type, HWNAS_FRAME_GRAPH);
    assert_int_equal(frame.length, 1 << 25);
    head[4] = HWNAS_FRAME_ANSWER; /* too long for words */
    assert_false(hwnas_frame_decode(&frame, head));
    head[0] = 'H';
    assert_false(hwnas_frame_decode(&frame, head));

    hwnas_measurement m = measure_script(noisy), back;
    json_t *object = hwnas_wire_measurement(&m);
    assert_true(hwnas_wire_read_measurement(&back, object));
    assert_true(m.p50 == back.p50 && m.p50_low == back.p50_low && m.drift == back.drift);
    assert_true(isnan(m.tails[HWNAS_P99].value) == isnan(back.tails[HWNAS_P99].value) &&
                m.stop == back.stop);
    assert_int_equal(m.n_samples, back.n_samples);
    json_object_del(object, "drift");
    assert_false(hwnas_wire_read_measurement(&back, object));
    for (int i = 0; i < 2; i++) {
        json_t *other = hwnas_wire_measurement(&m);
        json_object_set_new(other, i ? "stop" : "mode", json_string("never"));
        assert_false(hwnas_wire_read_measurement(&back, other));
        json_object_set_new(other, i ? "stop" : "mode", json_integer(1));
        assert_false(hwnas_wire_read_measurement(&back, other));
        json_decref(other);
    }
    json_decref(object);
}

/* 2^32 + 1 is not 1. */
static void test_what_no_int_holds_is_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"n_attempts", "runs_per_sample", "stop", "mode"};
    const json_int_t large[] = {((json_int_t)1 << 32) + 1, -((json_int_t)1 << 32) + 1};
    hwnas_measurement m = measure_script(noisy), back;
    hwnas_step_times steps;
    for (size_t i = 0; i < 2 * sizeof names / sizeof *names; i++) {
        json_t *object = hwnas_wire_measurement(&m);
        json_object_set_new(object, names[i / 2], json_integer(large[i % 2]));
        assert_false(hwnas_wire_read_measurement(&back, object));
        json_decref(object);
    }
    json_t *none = json_pack("{s:i, s:[f,f,f], s:[f,f,f], s:[f,f,f], s:[]}", "n_samples", -1,
                             "whole", 1., 1., 1., "sum", 1., 1., 1., "ratio", 1., 1., 1., "list");
    assert_false(hwnas_wire_read_steps(&steps, none, &(hwnas_graph){0}));
    json_decref(none);
}

/* What is not known is skipped, what is missing has its default, what is wrong is refused. */
static void test_hello(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_good;
        unsigned native;
        int abilities;
    } cases[] = {
        {"{'name': 'board'}", true, 0, 0},
        {"{'name': 'board', 'native': ['f32', 'f4', 's8'], 'abilities': ['fly', 'race'], 'x': {}}",
         true, 1 << HWNAS_F32 | 1 << HWNAS_S8, 1 << HWNAS_CAN_RACE},
        {"{'native': ['f32']}", false, 0, 0},
        {"{'name': 'board', 'native': 'f32'}", false, 0, 0},
        {"{'name': 'board', 'threads': 4294967297}", false, 0, 0},
        {"{'name': 'board', 'machine': '0123456789abcdef0'}", false, 0, 0},
        {"{'name': 'board', 'batch': 8, 'priority': 'normal'}", true, 0, 0},
        {"{'name': 'board', 'batch': '8'}", false, 0, 0},
        {"{'name': 'board', 'batch': 4294967297}", false, 0, 0},
        {"{'name': 'board', 'priority': 1}", false, 0, 0},
        {"[]", false, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        hwnas_hello hello = {0};
        snprintf(text, sizeof text, "%s", cases[i].text);
        for (char *quote; (quote = strchr(text, '\''));)
            *quote = '"';
        json_t *object = json_loads(text, 0, NULL);
        assert_non_null(object);
        assert_int_equal(hwnas_wire_read_hello(&hello, object), cases[i].is_good);
        assert_int_equal(hello.info.native, cases[i].native);
        assert_int_equal(hello.abilities, cases[i].abilities);
        json_decref(object);
    }
}

static hwnas_streamed stream(const char *text, bool is_good)
{
    hwnas_streamed s = {0};
    json_t *frame = json_loads(text, 0, NULL);
    assert_int_equal(hwnas_streamed_add(&s, frame), is_good);
    json_decref(frame);
    return s;
}

/* A runner's samples, judged here: order statistics of 20 numbers by hand. */
static void test_streamed_samples(void **state)
{
    (void)state;
    static const char *const wrong[] = {"{}",
                                        "{\"seconds\": []}",
                                        "{\"seconds\": [0.0]}",
                                        "{\"seconds\": [1, -1]}",
                                        "{\"seconds\": [\"1\"]}",
                                        "{\"seconds\": 1}"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        hwnas_streamed s = stream(wrong[i], false);
        hwnas_streamed_done(&s);
    }
    hwnas_measure_options o = HWNAS_MEASURE_DEFAULTS;
    hwnas_measurement m;
    hwnas_streamed s =
        stream("{\"seconds\": [10, 1, 9, 2, 8, 3, 7, 4, 6, 5, 11, 20, 12, 19, 13, 18, 14, 17, 15, "
               "16]}",
               true);
    o.max_seconds = 1000; /* the sum is 210 */
    assert_false(hwnas_streamed_is_enough(&s, &o));
    assert_true(hwnas_streamed_conclude(&m, &s, NULL, &o));
    assert_int_equal(m.n_samples, 20);
    assert_true(m.p50 == 10.5 && m.min == 1 && m.run_seconds == 210);
    assert_true(m.p50_low == 6 && m.p50_high == 15); /* order statistics 6 and 15: 95.9 % */
    assert_int_equal(m.stop, HWNAS_STOP_BUDGET);
    hwnas_streamed_done(&s);

    const struct {
        double interval, give_up, max_seconds;
        hwnas_stop stop;
    } stops[] = {{1, 0, 1000, HWNAS_STOP_INTERVAL},
                 {1e-3, 5, 1000, HWNAS_STOP_ABOVE},
                 {1e-3, 0, 200, HWNAS_STOP_BUDGET}};
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
        s = stream("{\"seconds\": [10, 1, 9, 2, 8, 3, 7, 4, 6, 5, 11, 20, 12, 19, 13, 18, 14, 17, "
                   "15, 16]}",
                   true);
        o.min_samples = 20;
        o.interval = stops[i].interval;
        o.give_up = stops[i].give_up;
        o.max_seconds = stops[i].max_seconds;
        assert_true(hwnas_streamed_is_enough(&s, &o));
        assert_false(hwnas_streamed_is_enough(&s, &o)); /* STOP is sent once */
        assert_true(hwnas_streamed_conclude(&m, &s, NULL, &o));
        assert_int_equal(m.stop, stops[i].stop);
        hwnas_streamed_done(&s);
    }
    assert_false(hwnas_streamed_conclude(&m, &s, NULL, &o));
}

static hwnas_runner *runner;
static hwnas_graph *tiny;

static int open_runner(void **state)
{
    (void)state;
    tiny = make_graph();
    return hwnas_runner_open(&runner, "null", 1);
}

static int close_runner(void **state)
{
    (void)state;
    hwnas_runner_close(runner);
    hwnas_graph_free(tiny);
    unsetenv("HWNAS_RUNNER");
    unsetenv("HWNAS_RUNNER_FAULT");
    return waitpid(-1, NULL, WNOHANG) == -1 ? 0 : -1; /* no child is left */
}

static hwnas_status measure_tiny(hwnas_measure_options options)
{
    hwnas_measurement m = {0};
    hwnas_status status = hwnas_runner_measure(&m, runner, tiny, &options);
    assert_int_equal(m.p50 > 0, status == HWNAS_OK);
    assert_int_equal(hwnas_last_error()->message[0] != 0, status != HWNAS_OK);
    return status;
}

static const hwnas_measure_options quick = {
    .interval = 0.1, .max_seconds = 0.05, .min_samples = 6, .timeout = 60};

static void assert_works(void)
{
    hwnas_error_clear();
    assert_int_equal(measure_tiny(quick), HWNAS_OK);
}

static void test_measures(void **state)
{
    (void)state;
    hwnas_device_info info;
    assert_int_equal(hwnas_runner_pid(runner), 0);
    assert_int_equal(hwnas_runner_describe(&info, runner), HWNAS_OK);
    assert_int_not_equal(info.name[0], 0);
    pid_t pid = hwnas_runner_pid(runner);
    assert_int_not_equal(pid, 0);
    for (int i = 0; i < 3; i++)
        assert_works();
    assert_int_equal(hwnas_runner_pid(runner), pid); /* one child for all */
}

static void test_faults(void **state)
{
    (void)state;
    const struct {
        const char *fault;
        hwnas_status status;
        const char *words;
        double timeout;
        size_t memory_limit;
    } cases[] = {
        {"crash", HWNAS_E_CRASHED, "SIGSEGV while compiling: fault: crash", 60, 0},
        {"hang", HWNAS_E_TIMEOUT, "said nothing for 0.5 s while", 0.5, 0},
        {"killed", HWNAS_E_MEMORY, "out-of-memory killer", 60, 0},
        {"oom", HWNAS_E_MEMORY, "no memory for a fault", 60, 512 << 20},
        {"alloc", HWNAS_E_MEMORY, "hwnas: out of memory", 60, 512 << 20},
        {"unchecked", HWNAS_E_MEMORY, "nearly used up: out of memory", 60, 512 << 20},
        {"exit", HWNAS_E_CRASHED, "status 3 while compiling: fault: exit", 60, 0},
        {"garbage", HWNAS_E_CRASHED, "not an answer", 60, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hwnas_measure_options options = quick;
#ifdef HWNAS_SANITIZED /* its shadow memory is beyond any limit */
        if (cases[i].memory_limit)
            continue;
#endif
        options.timeout = cases[i].timeout;
        options.memory_limit = cases[i].memory_limit;
        setenv("HWNAS_RUNNER_FAULT", cases[i].fault, 1);
        hwnas_status status = measure_tiny(options);
        if (status != cases[i].status || !strstr(hwnas_last_error()->message, cases[i].words))
            fail_msg("fault %s: status %s, %s", cases[i].fault, hwnas_status_name(status),
                     hwnas_last_error()->message);
        assert_int_equal(hwnas_runner_pid(runner), 0);
        unsetenv("HWNAS_RUNNER_FAULT");
        assert_works();
        hwnas_runner_close(runner); /* the next child must see the next fault */
        assert_int_equal(hwnas_runner_open(&runner, "null", 1), HWNAS_OK);
    }
}

static void kill_at(void *context, const char *phase)
{
    if (!strcmp(phase, context))
        kill(hwnas_runner_pid(runner), SIGKILL);
}

static void test_killed_from_outside(void **state)
{
    (void)state;
    hwnas_measure_options options = quick;
    options.interval = -1; /* never narrow enough */
    options.max_seconds = 30;
    options.progress = kill_at;
    options.context = (void *)"sampling";
    assert_int_equal(measure_tiny(options), HWNAS_E_MEMORY);
    assert_non_null(strstr(hwnas_last_error()->message, "while sampling"));
    assert_works();
    /* One that has died while idle takes no network with it. */
    siginfo_t info;
    const pid_t idle = hwnas_runner_pid(runner);
    kill(idle, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)idle, &info, WEXITED | WNOWAIT), 0);
    assert_works();
    assert_int_not_equal(hwnas_runner_pid(runner), idle);
}

static volatile sig_atomic_t stop_flag;

static void stop_at(void *context, const char *phase)
{
    if (!strcmp(phase, context))
        stop_flag = 1;
}

static void test_interrupted(void **state)
{
    (void)state;
    hwnas_measure_options options = quick;
    options.interval = -1; /* never narrow enough */
    options.max_seconds = 30;
    options.progress = stop_at;
    options.context = (void *)"sampling";
    options.stop = &stop_flag;
    stop_flag = 0;
    assert_int_equal(measure_tiny(options), HWNAS_E_INTERRUPTED);
    assert_works();
}

/* Ctrl-C reaches the whole process group; the child leaves it to us. */
static void test_sigint_is_not_for_the_child(void **state)
{
    (void)state;
    assert_works();
    pid_t pid = hwnas_runner_pid(runner);
    kill(pid, SIGINT);
    kill(pid, SIGTERM);
    assert_works();
    assert_int_equal(hwnas_runner_pid(runner), pid);
}

static void test_heartbeat_outlasts_the_timeout(void **state)
{
    (void)state;
    hwnas_measure_options options = quick;
    options.interval = -1; /* never narrow enough */
    options.max_seconds = 1.5;
    options.timeout = 1;
    assert_int_equal(measure_tiny(options), HWNAS_OK);
}

static void test_wrong_programs(void **state)
{
    (void)state;
    const struct {
        const char *program;
        hwnas_status status;
        const char *words;
    } cases[] = {
        {"/nonexistent/hwnas", HWNAS_E_IO, "'/nonexistent/hwnas': No such file"},
        {"/bin/true", HWNAS_E_CRASHED, "status 0 while starting"},
        {"/bin/echo", HWNAS_E_CRASHED, "while starting"}, /* too short for a head */
        {"/bin/ls", HWNAS_E_CRASHED, "runner"},           /* complains of its argument */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setenv("HWNAS_RUNNER", cases[i].program, 1);
        hwnas_status status = measure_tiny(quick);
        if (status != cases[i].status || !strstr(hwnas_last_error()->message, cases[i].words))
            fail_msg("%s: status %s, %s", cases[i].program, hwnas_status_name(status),
                     hwnas_last_error()->message);
    }
    unsetenv("HWNAS_RUNNER");
    assert_works();
}

/* ---- A runner that means ill ---- */

static void send_words(hwnas_frame_type type, const char *words, size_t length)
{
    unsigned char head[HWNAS_FRAME_HEAD];
    hwnas_frame_encode(head, (hwnas_wire_frame){.type = type, .length = length});
    if (write(STDOUT_FILENO, head, sizeof head) != sizeof head ||
        write(STDOUT_FILENO, words, length) != (ssize_t)length)
        _exit(1);
}

/* Opens as it should, and is asked for something. */
static void pretend(int largest_batch)
{
    char bytes[4096];
    hwnas_hello hello = {
        .protocol = HWNAS_PROTOCOL, .batch = largest_batch, .info = {.name = "a pretender"}};
    json_t *answer = json_pack("{s:s, s:s, s:s, s:o}", "status", hwnas_status_name(HWNAS_OK),
                               "message", "", "hint", "", "info", hwnas_wire_hello(&hello));
    char *text = json_dumps(answer, 0);
    if (read(STDIN_FILENO, bytes, sizeof bytes) <= 0)
        _exit(1);
    send_words(HWNAS_FRAME_ANSWER, text, strlen(text));
    if (read(STDIN_FILENO, bytes, sizeof bytes) <= 0)
        _exit(1);
    free(text);
    json_decref(answer);
}

enum { LARGEST_BATCH = 2 };

/* This program as a runner with $HOSTILE. */
static int be_hostile(const char *how)
{
    static char line[1024], words[1 << 20];
    const bool is_small = !strcmp(how, "small");
    pretend(is_small ? LARGEST_BATCH : 0);
    if (is_small) {
        fputs("it was sent\n", stderr);
        return 3;
    }
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\n';
    for (int i = 0; !strcmp(how, "heartbeats"); i++)
        send_words(HWNAS_FRAME_PHASE, i % 2 ? "this" : "that", 4);
    if (!strcmp(how, "words"))
        send_words(HWNAS_FRAME_PHASE, words, sizeof words);
    const bool is_endless = !strcmp(how, "stderr");
    for (int i = 0; i < 64 << 10 || is_endless; i++)
        if (write(STDERR_FILENO, line, sizeof line) < 0)
            return 1;
    send_words(HWNAS_FRAME_PHASE, "talking", 7);
    for (int i = 0; i < 64 << 10; i++)
        if (write(STDERR_FILENO, line, sizeof line) < 0)
            return 1;
    fputs("the last word\n", stderr);
    return 3;
}

static off_t largest_open;

/* Looks for what the parent holds of it. */
static void look_at_files(void *context, const char *phase)
{
    (void)context;
    (void)phase;
    struct stat st;
    for (int fd = 0; fd < 64; fd++)
        if (!fstat(fd, &st) && st.st_size > largest_open)
            largest_open = st.st_size;
}

static void test_hostile_runners(void **state)
{
    (void)state;
    const struct {
        const char *how;
        double timeout;
        hwnas_status status;
        const char *words;
    } cases[] = {
        {"much", 60, HWNAS_E_CRASHED, "ended with status 3 while talking: the last word"},
        {"words", 60, HWNAS_E_CRASHED, "not an answer"},
        {"heartbeats", 0.2, HWNAS_E_TIMEOUT, "was killed"},
        {"stderr", 0.2, HWNAS_E_TIMEOUT, "said nothing for"},
    };
    hwnas_measure_options options = quick;
    options.progress = look_at_files;
    setenv("HWNAS_RUNNER", "/proc/self/exe", 1);
    alarm(120); /* a parent that hangs is to fail */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setenv("HOSTILE", cases[i].how, 1);
        options.timeout = cases[i].timeout;
        hwnas_status status = measure_tiny(options);
        if (status != cases[i].status || !strstr(hwnas_last_error()->message, cases[i].words))
            fail_msg("%s: status %s, %s", cases[i].how, hwnas_status_name(status),
                     hwnas_last_error()->message);
    }
    assert_true(largest_open < 8 << 20);
    volatile sig_atomic_t stop = 1;
    setenv("HOSTILE", "heartbeats", 1);
    options.stop = &stop;
    assert_int_equal(measure_tiny(options), HWNAS_E_INTERRUPTED);
    alarm(0);
    unsetenv("HOSTILE");
    unsetenv("HWNAS_RUNNER");
    hwnas_runner_close(runner); /* what they said to be is another device */
    assert_int_equal(hwnas_runner_open(&runner, "null", 1), HWNAS_OK);
    assert_works();
}

static void assert_too_large(hwnas_status status, const char *request)
{
    if (status != HWNAS_E_UNSUPPORTED ||
        !strstr(hwnas_last_error()->message, "takes batches of at most 2, and this one is of 3"))
        fail_msg("%s: status %s, %s", request, hwnas_status_name(status),
                 hwnas_last_error()->message);
}

/* Whatever is asked for. */
static void test_larger_batches_are_not_sent(void **state)
{
    (void)state;
    hwnas_graph *fits = make_relu(2, (const int64_t[]){LARGEST_BATCH, 4}),
                *large = make_relu(2, (const int64_t[]){LARGEST_BATCH + 1, 4});
    const hwnas_graph *const both[] = {fits, large};
    hwnas_measurement m;
    hwnas_verified verified;
    hwnas_race race;
    hwnas_streams *streams;
    double rate;
    setenv("HWNAS_RUNNER", "/proc/self/exe", 1);
    setenv("HOSTILE", "small", 1);
    hwnas_runner_close(runner);
    assert_int_equal(hwnas_runner_open(&runner, "null", 1), HWNAS_OK);
    assert_too_large(hwnas_runner_measure(&m, runner, large, &quick), "measure");
    assert_too_large(hwnas_runner_verify(&verified, runner, large, 1, &quick), "verify");
    assert_too_large(hwnas_runner_race(&race, runner, both, NULL, 2, &quick), "race");
    assert_int_equal(hwnas_streams_open(&streams, "null", 1, 1), HWNAS_OK);
    assert_too_large(hwnas_streams_measure(&m, &rate, streams, large, &quick), "streams");
    hwnas_streams_close(streams);
    /* What it takes is sent. */
    assert_int_equal(hwnas_runner_measure(&m, runner, fits, &quick), HWNAS_E_CRASHED);
    unsetenv("HOSTILE");
    unsetenv("HWNAS_RUNNER");
    hwnas_runner_close(runner);
    assert_int_equal(hwnas_runner_open(&runner, "null", 1), HWNAS_OK);
    hwnas_graph_free(fits);
    hwnas_graph_free(large);
    assert_works();
}

/* ---- Sending ahead ---- */

/* Another runner of this program, which takes what is sent ahead: as a program of others, it is
 * reached by a command. */
static hwnas_runner *open_far(void)
{
    hwnas_runner *far;
    hwnas_device_info info;
    char *self = realpath("/proc/self/exe", NULL),
         *spelling = hwnas_printf("runner:exec '%s' far", self);
    assert_int_equal(hwnas_runner_open(&far, spelling, 1), HWNAS_OK);
    assert_int_equal(hwnas_runner_describe(&info, far), HWNAS_OK);
    assert_true(hwnas_runner_takes_ahead(far));
    free(spelling);
    free(self);
    return far;
}

enum { N_AHEAD = 4 };

/* Networks that need memory in proportion to their numbers, so that an answer says whose it is. */
static void open_ahead(hwnas_runner **far, hwnas_graph *graphs[N_AHEAD], size_t bytes[N_AHEAD])
{
    hwnas_measurement m;
    *far = open_far();
    for (int i = 0; i < N_AHEAD; i++) {
        graphs[i] = make_relu(2, (const int64_t[]){1, (int64_t)100000 << i});
        assert_int_equal(hwnas_runner_measure(&m, *far, graphs[i], &quick), HWNAS_OK);
        bytes[i] = m.memory_bytes;
        assert_true(i == 0 || bytes[i] > bytes[i - 1]);
    }
    assert_int_equal(hwnas_runner_n_ahead(*far), 0);
}

static void close_ahead(hwnas_runner *far, hwnas_graph *graphs[N_AHEAD])
{
    hwnas_runner_close(far);
    for (int i = 0; i < N_AHEAD; i++)
        hwnas_graph_free(graphs[i]);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void send_ahead(hwnas_runner *far, hwnas_graph *const graphs[N_AHEAD], const char *which)
{
    for (; *which; which++)
        assert_int_equal(hwnas_runner_send_ahead(far, graphs[*which - '0'], false, &quick),
                         HWNAS_OK);
}

/* Each answer is that of its network, in whatever order they are asked for. */
static void test_ahead_answers_belong_to_their_networks(void **state)
{
    (void)state;
    static const struct {
        const char *sent, *wanted; /* wanted: sent again after all were forgotten */
        const char *measured;
    } cases[] = {
        {"0123", "", "0123"}, {"0123", "", "3210"}, {"0011", "", "10"}, {"01", "", "23"},
        {"01", "1", "1"},     {"0123", "31", "13"}, {"012", "0", "20"}, {"", "2", "02"},
    };
    hwnas_graph *graphs[N_AHEAD];
    size_t bytes[N_AHEAD];
    hwnas_runner *far;
    open_ahead(&far, graphs, bytes);
    const pid_t pid = hwnas_runner_pid(far);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        send_ahead(far, graphs, cases[i].sent);
        if (*cases[i].wanted)
            hwnas_runner_forget_ahead(far);
        send_ahead(far, graphs, cases[i].wanted);
        for (const char *c = cases[i].measured; *c; c++) {
            hwnas_measurement m;
            assert_int_equal(hwnas_runner_measure(&m, far, graphs[*c - '0'], &quick), HWNAS_OK);
            assert_int_equal(m.memory_bytes, bytes[*c - '0']);
            assert_false(hwnas_runner_has_ahead(far, graphs[*c - '0'], HWNAS_F32));
        }
        assert_int_equal(hwnas_runner_n_ahead(far), 0);
    }
    assert_int_equal(hwnas_runner_pid(far), pid); /* all that by one */
    close_ahead(far, graphs);
}

/* What is on the way counts once, by network and precision, until nobody wants it. */
static void test_ahead_is_counted(void **state)
{
    (void)state;
    hwnas_graph *graphs[N_AHEAD];
    size_t bytes[N_AHEAD];
    hwnas_runner *far;
    hwnas_measure_options narrow = quick;
    narrow.exec.precision = HWNAS_BF16;
    open_ahead(&far, graphs, bytes);
    send_ahead(far, graphs, "0010");
    assert_int_equal(hwnas_runner_n_ahead(far), 2);
    assert_int_equal(hwnas_runner_send_ahead(far, graphs[0], false, &narrow), HWNAS_OK);
    assert_int_equal(hwnas_runner_n_ahead(far), 3);
    assert_true(hwnas_runner_has_ahead(far, graphs[0], HWNAS_BF16));
    assert_false(hwnas_runner_has_ahead(far, graphs[1], HWNAS_BF16));
    hwnas_runner_forget_ahead(far);
    assert_int_equal(hwnas_runner_n_ahead(far), 0);
    narrow.memory_limit = 1 << 30; /* such a network has a process of its own */
    assert_int_equal(hwnas_runner_send_ahead(far, graphs[2], false, &narrow), HWNAS_OK);
    assert_int_equal(hwnas_runner_n_ahead(far), 0);
    close_ahead(far, graphs);
}

/* What is answered before its turn is there when its turn comes, whatever became of the runner. */
static void test_ahead_answers_are_kept(void **state)
{
    (void)state;
    hwnas_graph *graphs[N_AHEAD];
    size_t bytes[N_AHEAD];
    hwnas_runner *far;
    hwnas_measurement m;
    open_ahead(&far, graphs, bytes);
    send_ahead(far, graphs, "0123");
    assert_int_equal(hwnas_runner_measure(&m, far, graphs[2], &quick), HWNAS_OK);
    assert_int_equal(m.memory_bytes, bytes[2]);
    assert_int_equal(hwnas_runner_n_ahead(far), 1);
    hwnas_runner_rest(far);
    assert_int_equal(hwnas_runner_n_ahead(far), 0);

    send_ahead(far, graphs, "0123");
    assert_int_equal(hwnas_runner_measure(&m, far, graphs[2], &quick), HWNAS_OK);
    hwnas_runner_leave(far); /* as when its link is lost */
    for (int i = 0; i < 2; i++) {
        assert_true(hwnas_runner_has_answer(far, graphs[i], HWNAS_F32));
        assert_int_equal(hwnas_runner_measure(&m, far, graphs[i], &quick), HWNAS_OK);
        assert_int_equal(m.memory_bytes, bytes[i]);
        assert_int_equal(hwnas_runner_pid(far), 0);
    }
    assert_false(hwnas_runner_has_answer(far, graphs[3], HWNAS_F32));
    assert_int_equal(hwnas_runner_measure(&m, far, graphs[3], &quick), HWNAS_OK);
    assert_int_equal(m.memory_bytes, bytes[3]);
    close_ahead(far, graphs);
}

/* A runner that dies with several networks on the way costs one of them; the next one is sent them
 * again. */
static void test_ahead_is_sent_again(void **state)
{
    (void)state;
    hwnas_graph *graphs[N_AHEAD];
    size_t bytes[N_AHEAD];
    hwnas_runner *far;
    hwnas_measurement m;
    open_ahead(&far, graphs, bytes);
    const pid_t pid = hwnas_runner_pid(far);
    kill(-pid, SIGSTOP); /* or it would have answered all before it dies */
    send_ahead(far, graphs, "012");
    kill(-pid, SIGKILL);
    int n_failed = 0;
    for (int i = 0; i < 3; i++) {
        const hwnas_status status = hwnas_runner_measure(&m, far, graphs[i], &quick);
        n_failed += status != HWNAS_OK;
        assert_true(status != HWNAS_OK || m.memory_bytes == bytes[i]);
    }
    assert_int_equal(n_failed, 1);
    assert_int_not_equal(hwnas_runner_pid(far), pid);
    close_ahead(far, graphs);
}

static hwnas_runner *doomed;
static pid_t ended;
static int n_ended, n_retries;

static void end_life(void *context, const char *phase)
{
    (void)context;
    if (strcmp(phase, "sampling") != 0)
        return;
    const pid_t pid = hwnas_runner_pid(doomed);
    kill(-pid, SIGKILL);
    n_ended += pid != ended; /* it may have said so several times before */
    ended = pid;
}

static void count_retries(void *context, hwnas_log_level level, const char *line)
{
    (void)context;
    (void)level;
    n_retries += strstr(line, "; trying again") != NULL;
}

/* What was sent ahead to a runner that died, and is sent anew by itself, is in doubt no more. */
static void test_doubt_ends_with_the_runner(void **state)
{
    (void)state;
    hwnas_graph *graphs[N_AHEAD];
    size_t bytes[N_AHEAD];
    hwnas_measurement m;
    hwnas_measure_options endless = quick; /* it samples until it is killed */
    endless.interval = -1;
    endless.max_seconds = 3600;
    endless.progress = end_life;
    open_ahead(&doomed, graphs, bytes);
    doomed->prepares = true;
    n_ended = 0;
    ended = 0;
    const pid_t pid = hwnas_runner_pid(doomed);
    kill(-pid, SIGSTOP); /* or the first would be answered before it dies */
    send_ahead(doomed, graphs, "0");
    assert_int_equal(hwnas_runner_send_ahead(doomed, graphs[1], false, &endless), HWNAS_OK);
    kill(-pid, SIGKILL);
    assert_int_equal(hwnas_runner_measure(&m, doomed, graphs[0], &quick), HWNAS_OK);
    assert_true(hwnas_runner_has_ahead(doomed, graphs[1], HWNAS_F32));
    assert_int_not_equal(hwnas_runner_measure(&m, doomed, graphs[1], &endless), HWNAS_OK);
    assert_int_equal(n_ended, 1);
    close_ahead(doomed, graphs);
}

/* A failure that was settled before the network's turn is not looked into again. */
static void test_doubt_ends_with_the_answer(void **state)
{
    (void)state;
    hwnas_graph *graphs[N_AHEAD];
    size_t bytes[N_AHEAD];
    hwnas_measurement m;
    siginfo_t info;
    open_ahead(&doomed, graphs, bytes);
    doomed->prepares = true;
    n_retries = 0;
    const pid_t pid = hwnas_runner_pid(doomed);
    kill(-pid, SIGSTOP);
    send_ahead(doomed, graphs, "0");
    kill(-pid, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(hwnas_runner_measure(&m, doomed, graphs[1], &quick), HWNAS_OK);
    assert_true(hwnas_runner_has_answer(doomed, graphs[0], HWNAS_F32));
    send_ahead(doomed, graphs, "23"); /* others are on the way again */
    assert_true(hwnas_orders_are_ahead(doomed));
    hwnas_set_log(count_retries, NULL);
    assert_int_not_equal(hwnas_runner_measure(&m, doomed, graphs[0], &quick), HWNAS_OK);
    hwnas_set_log(NULL, NULL);
    assert_int_equal(n_retries, 0);
    close_ahead(doomed, graphs);
}

/* What the child says of itself arrives as it is, and a child that only cannot is kept. */
static void test_own_words(void **state)
{
    (void)state;
    hwnas_runner *wrong;
    hwnas_device_info info;
    assert_int_equal(hwnas_runner_open(&wrong, "nul", 1), HWNAS_OK);
    assert_int_equal(hwnas_runner_describe(&info, wrong), HWNAS_E_NOT_FOUND);
    assert_non_null(strstr(hwnas_last_error()->message, "nul"));
    assert_non_null(strstr(hwnas_last_error()->hint, "null"));
    hwnas_runner_close(wrong);
    assert_int_equal(hwnas_runner_open(&wrong, "null", -1), HWNAS_E_INPUT);
}

/* The child must not outlive a parent that is killed in the middle. */
static void test_child_dies_with_its_parent(void **state)
{
    (void)state;
    int fds[2];
    pid_t child = 0;
    assert_int_equal(pipe(fds), 0);
    pid_t parent = fork();
    if (parent == 0) {
        setenv("HWNAS_RUNNER_FAULT", "hang", 1);
        hwnas_runner *own;
        hwnas_device_info info;
        if (hwnas_runner_open(&own, "null", 1) || hwnas_runner_describe(&info, own))
            _exit(1);
        pid_t pid = hwnas_runner_pid(own);
        hwnas_measurement m;
        if (write(fds[1], &pid, sizeof pid) == sizeof pid &&
            hwnas_runner_measure(&m, own, tiny, &quick))
            _exit(1);
        _exit(0);
    }
    assert_int_equal(read(fds[0], &child, sizeof child), sizeof child);
    usleep(200000); /* the child hangs by now, or will find its parent gone: both are fine */
    kill(parent, SIGKILL);
    assert_int_equal(waitpid(parent, NULL, 0), parent);
    double start = hwnas_now();
    while (!kill(child, 0) && hwnas_now() - start < 20) {
        char path[64], text[256] = "";
        snprintf(path, sizeof path, "/proc/%d/stat", (int)child);
        FILE *f = fopen(path, "r"); /* a zombie is dead; who reaps it is not our affair */
        bool is_zombie = !f || (fgets(text, sizeof text, f) && strstr(text, ") Z "));
        if (f)
            fclose(f);
        if (is_zombie)
            break;
        usleep(10000);
    }
    assert_true(hwnas_now() - start < 20);
    close(fds[0]);
    close(fds[1]);
}

#define WITH_RUNNER(test) cmocka_unit_test_setup_teardown(test, open_runner, close_runner)

int main(int argc, char **argv)
{
    const char *hostile = getenv("HOSTILE");
    if (argc == 2 && !strcmp(argv[1], "runner") && hostile)
        return be_hostile(hostile);
    if (argc == 2 && !strcmp(argv[1], "far")) /* as `hwnas runner serve ref` */
        return hwnas_far_serve("ref") == HWNAS_OK ? 0 : 1;
    if (argc == 2 && !strcmp(argv[1], "runner"))
        return hwnas_runner_serve() == HWNAS_OK ? 0 : 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire),
        cmocka_unit_test(test_hello),
        cmocka_unit_test(test_streamed_samples),
        cmocka_unit_test(test_what_no_int_holds_is_refused),
        WITH_RUNNER(test_measures),
        WITH_RUNNER(test_faults),
        WITH_RUNNER(test_killed_from_outside),
        WITH_RUNNER(test_interrupted),
        WITH_RUNNER(test_sigint_is_not_for_the_child),
        WITH_RUNNER(test_heartbeat_outlasts_the_timeout),
        WITH_RUNNER(test_wrong_programs),
        WITH_RUNNER(test_hostile_runners),
        WITH_RUNNER(test_larger_batches_are_not_sent),
        cmocka_unit_test(test_ahead_answers_belong_to_their_networks),
        cmocka_unit_test(test_ahead_is_counted),
        cmocka_unit_test(test_ahead_answers_are_kept),
        cmocka_unit_test(test_ahead_is_sent_again),
        cmocka_unit_test(test_doubt_ends_with_the_runner),
        cmocka_unit_test(test_doubt_ends_with_the_answer),
        WITH_RUNNER(test_own_words),
        WITH_RUNNER(test_child_dies_with_its_parent),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
