/* test_inbox.c: what the parent sends is read in its order, ahead of its turn or not, and a device
 * prepares the next network on other cores meanwhile. Built with ThreadSanitizer where there is
 * one. */
#define _GNU_SOURCE 1 /* sched_getaffinity(), RUSAGE_THREAD, gettid() */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "device/device.h"
#include "graph/op.h"
#include "measure/cores.h"
#include "measure/inbox.h"
#include "measure/machine.h"
#include "measure/priority.h"
#include "measure/wire.h"
#include "onnx/onnx.h"

/* ---- A device that prepares ---- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t change;
    int n_begun, n_done;
    bool stays;   /* until it is told to leave, */
    bool was_let; /* or has stayed for too long */
    bool is_ordinary;
    void (*works)(void); /* what else it does */
    size_t n_nodes;
    cpu_set_t cores;
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER};

enum { MOST_NAPS = 20000 }; /* then a thread that should have left is given up */

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void note(int *n)
{
    pthread_mutex_lock(&seen.lock);
    ++*n;
    pthread_cond_broadcast(&seen.change);
    pthread_mutex_unlock(&seen.lock);
}

static void wait_for(const int *n, int wanted)
{
    pthread_mutex_lock(&seen.lock);
    while (*n < wanted)
        pthread_cond_wait(&seen.change, &seen.lock);
    pthread_mutex_unlock(&seen.lock);
}

static void prepare(hwnas_device *device, const hwnas_graph *graph,
                    const hwnas_exec_options *options, bool (*goes_on)(void *context),
                    void *context)
{
    (void)device;
    (void)options;
    seen.n_nodes = graph->n_nodes;
    seen.is_ordinary = sched_getscheduler(0) == SCHED_OTHER;
    sched_getaffinity(0, sizeof seen.cores, &seen.cores);
    note(&seen.n_begun);
    if (seen.works)
        seen.works();
    int i = 0;
    while (seen.stays && i < MOST_NAPS && goes_on(context)) {
        i++;
        nap();
    }
    seen.was_let = i == MOST_NAPS;
    note(&seen.n_done);
}

static const hwnas_device_ops ops = {
    .name = "slow", .precisions = 1U << HWNAS_F32, .prepare = prepare};
static hwnas_device device = {&ops};

/* ---- A parent ---- */

static void put(int fd, const void *bytes, size_t n)
{
    assert_int_equal(write(fd, bytes, n), n);
}

static void put_frame(int fd, hwnas_frame_type type, const void *bytes, size_t n)
{
    unsigned char head[HWNAS_FRAME_HEAD];
    hwnas_frame_encode(head, (hwnas_wire_frame){.type = type, .length = n});
    put(fd, head, sizeof head);
    put(fd, bytes, n);
}

typedef struct sent {
    char *text;
    void *onnx;
    size_t n;
} sent;

static sent make_request(bool is_copy)
{
    sent out;
    hwnas_measure_options options = HWNAS_MEASURE_DEFAULTS;
    hwnas_graph *graph = hwnas_graph_new("next", 1);
    int in, made;
    assert_int_equal(hwnas_graph_add_input(&in, graph, "x", HWNAS_FLOAT32, 2, (int64_t[]){1, 4}),
                     HWNAS_OK);
    assert_int_equal(
        hwnas_graph_add_node(&made, graph, hwnas_op_by_name("relu"), "r", NULL, 1, &in, true),
        HWNAS_OK);
    hwnas_graph_add_output(graph, made);
    assert_int_equal(hwnas_onnx_write(&out.onnx, &out.n, graph, HWNAS_ONNX_SEEDS), HWNAS_OK);
    hwnas_graph_free(graph);
    json_t *request = hwnas_wire_options(&options);
    json_object_set_new(request, "is_copy", json_boolean(is_copy));
    out.text = json_dumps(request, JSON_COMPACT);
    json_decref(request);
    return out;
}

static void send_request(int fd, const sent *r)
{
    put_frame(fd, HWNAS_FRAME_MEASURE, r->text, strlen(r->text));
    put_frame(fd, HWNAS_FRAME_GRAPH, r->onnx, r->n);
}

static void expect_frame(hwnas_inbox *inbox, hwnas_frame_type type, const void *bytes, size_t n)
{
    unsigned char head[HWNAS_FRAME_HEAD];
    hwnas_wire_frame frame;
    assert_int_equal(hwnas_inbox_read(inbox, head, sizeof head), HWNAS_OK);
    assert_true(hwnas_frame_decode(&frame, head) && frame.type == type && frame.length == n);
    char *got = hwnas_alloc(n + 1);
    assert_int_equal(hwnas_inbox_read(inbox, got, n), HWNAS_OK);
    assert_memory_equal(got, bytes, n);
    free(got);
}

static void expect_request(hwnas_inbox *inbox, const sent *r)
{
    expect_frame(inbox, HWNAS_FRAME_MEASURE, r->text, strlen(r->text));
    expect_frame(inbox, HWNAS_FRAME_GRAPH, r->onnx, r->n);
}

static void free_request(sent *r)
{
    free(r->text);
    free(r->onnx);
}

typedef struct fixture {
    hwnas_inbox *inbox;
    int to;
    int pipe[2];
} fixture;

/* The cores that this process may use, the last first; how many. */
static int list_cores(int *out, int most)
{
    cpu_set_t all;
    int n = 0;
    sched_getaffinity(0, sizeof all, &all);
    for (int i = CPU_SETSIZE; i-- > 0 && n < most;)
        if (CPU_ISSET((size_t)i, &all))
            out[n++] = i;
    return n;
}

/* With a thread on these cores but the one that is taken. */
static fixture begin_on(const int *cores, int n, int taken)
{
    fixture f;
    assert_int_equal(pipe(f.pipe), 0);
    seen.n_begun = seen.n_done = 0;
    seen.stays = false;
    seen.works = NULL;
    f.inbox = hwnas_inbox_new(f.pipe[0]);
    f.to = f.pipe[1];
    const int n_helped = hwnas_inbox_help(f.inbox, &device, cores, n, &taken, 1);
    int n_free = 0;
    for (int i = 0; i < n; i++)
        n_free += cores[i] != taken;
    assert_int_equal(n_helped, n_free);
    return f;
}

/* With a thread on the last core that this process may use. */
static fixture begin(bool with_thread)
{
    int last;
    list_cores(&last, 1);
    return begin_on(&last, 1, with_thread ? -1 : last);
}

/* The parent goes. */
static void end(fixture *f)
{
    char one;
    close(f->to);
    assert_int_equal(hwnas_inbox_read(f->inbox, &one, 1), HWNAS_E_NOT_FOUND);
    hwnas_inbox_free(f->inbox);
    close(f->pipe[0]);
}

/* ---- Cases ---- */

static void what_is_sent_is_read_in_its_order(void **state)
{
    (void)state;
    for (int with_thread = 0; with_thread < 2; with_thread++) {
        fixture f = begin(with_thread);
        sent r = make_request(false);
        send_request(f.to, &r);
        expect_request(f.inbox, &r);
        for (int i = 0; i < 3; i++) { /* while one is measured comes the next */
            hwnas_inbox_begin(f.inbox);
            send_request(f.to, &r);
            if (with_thread)
                wait_for(&seen.n_done, i + 1);
            hwnas_inbox_end(f.inbox);
            expect_request(f.inbox, &r);
        }
        assert_int_equal(seen.n_done, with_thread ? 3 : 0);
        assert_int_equal(hwnas_inbox_has_prepared(f.inbox), with_thread);
        end(&f);
        free_request(&r);
    }
}

static void the_network_is_prepared_apart(void **state)
{
    (void)state;
    fixture f = begin(true);
    sent r = make_request(false);
    const bool is_raised = hwnas_priority_raise(10) == HWNAS_OK; /* where it may be */
    hwnas_inbox_begin(f.inbox);
    send_request(f.to, &r);
    wait_for(&seen.n_done, 1);
    hwnas_inbox_end(f.inbox);
    if (is_raised)
        hwnas_priority_lower();
    assert_int_equal(seen.n_nodes, 1);
    assert_int_equal(CPU_COUNT(&seen.cores), 1);
    assert_true(seen.is_ordinary);
    expect_request(f.inbox, &r);
    end(&f);
    free_request(&r);
}

static void who_measures_does_not_wait(void **state)
{
    (void)state;
    fixture f = begin(true);
    sent r = make_request(false);
    seen.stays = true;
    hwnas_inbox_begin(f.inbox);
    send_request(f.to, &r);
    wait_for(&seen.n_begun, 1);
    hwnas_inbox_end(f.inbox);
    expect_request(f.inbox, &r); /* whether the device has been left by now or not */
    wait_for(&seen.n_done, 1);
    hwnas_inbox_begin(f.inbox); /* and at its end while it is in the device */
    send_request(f.to, &r);
    wait_for(&seen.n_begun, 2);
    hwnas_inbox_rest(f.inbox);
    assert_int_equal(seen.n_done, 2);
    hwnas_inbox_end(f.inbox);
    expect_request(f.inbox, &r);
    end(&f);
    free_request(&r);
}

/* Another search takes a core in the middle, and gives it back. */
static void cores_of_others_are_left(void **state)
{
    (void)state;
    int cores[2];
    const int n = list_cores(cores, 2);
    fixture f = begin_on(cores, n, -1);
    sent r = make_request(false);
    int first = hwnas_core_lock(cores[0]);
    if (first < 0)
        skip(); /* nothing can be locked here */
    seen.stays = true;
    if (n == 2) { /* one is free, until somebody measures there */
        hwnas_turn turn = {0};
        hwnas_inbox_begin(f.inbox);
        send_request(f.to, &r);
        wait_for(&seen.n_begun, 1);
        assert_int_equal(CPU_COUNT(&seen.cores), 1);
        assert_true(CPU_ISSET((size_t)cores[1], &seen.cores));
        assert_true(hwnas_turn_take(&turn, &cores[1], 1));
        wait_for(&seen.n_done, 1);
        assert_false(seen.was_let);
        hwnas_inbox_end(f.inbox);
        expect_request(f.inbox, &r);
        hwnas_turn_end(&turn);
    }
    close(first);
    seen.n_begun = seen.n_done = 0;
    hwnas_inbox_begin(f.inbox);
    send_request(f.to, &r);
    wait_for(&seen.n_begun, 1);
    assert_int_equal(CPU_COUNT(&seen.cores), n);
    for (int i = 0; i < n; i++)
        assert_true((cores[i] = hwnas_core_lock(cores[i])) >= 0);
    wait_for(&seen.n_done, 1);
    assert_false(seen.was_let);
    hwnas_inbox_end(f.inbox);
    expect_request(f.inbox, &r);
    for (int i = 0; i < n; i++)
        close(cores[i]);
    end(&f);
    free_request(&r);
}

/* ---- What the thread does is no disturbance ---- */

static struct {
    pthread_t thread;
    int id;
    pthread_barrier_t up, over;
} child;

static unsigned long switches(void)
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_THREAD, &usage), 0);
    return (unsigned long)usage.ru_nivcsw;
}

static bool is_alone;

static void *yield_on(void *nothing)
{
    while (!__atomic_load_n(&is_alone, __ATOMIC_ACQUIRE))
        sched_yield();
    return nothing;
}

/* Another thread on the same core wants it, too. */
static void give_up_the_core(void)
{
    enum { ENOUGH = 10 };
    cpu_set_t before, one;
    pthread_t other;
    const unsigned long start = switches();
    sched_getaffinity(0, sizeof before, &before);
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    is_alone = false;
    if (pthread_create(&other, NULL, yield_on, NULL))
        abort();
    while (switches() < start + ENOUGH)
        sched_yield();
    __atomic_store_n(&is_alone, true, __ATOMIC_RELEASE);
    pthread_join(other, NULL);
    sched_setaffinity(0, sizeof before, &before);
}

static void its_switches_are_not_the_networks(void **state)
{
    (void)state;
    fixture f = begin(true);
    sent r = make_request(false);
    hwnas_machine *machine = hwnas_machine_open();
    seen.works = give_up_the_core;
    hwnas_inbox_begin(f.inbox);
    send_request(f.to, &r);
    wait_for(&seen.n_done, 1);
    const unsigned long least = switches(), told = machine->preemptions(machine);
    assert_in_range(told, least, switches());
    hwnas_inbox_end(f.inbox);
    expect_request(f.inbox, &r);
    hwnas_machine_close(machine);
    end(&f);
    free_request(&r);
}

static void *stay(void *nothing)
{
    child.id = (int)gettid();
    pthread_barrier_wait(&child.up);
    pthread_barrier_wait(&child.over);
    return nothing;
}

/* As a library does, which keeps it. */
static void start_thread(void)
{
    if (pthread_create(&child.thread, NULL, stay, NULL))
        abort();
    pthread_barrier_wait(&child.up);
}

static void threads_that_it_starts_stand_by_too(void **state)
{
    (void)state;
    fixture f = begin(true);
    sent r = make_request(false);
    pthread_barrier_init(&child.up, NULL, 2);
    pthread_barrier_init(&child.over, NULL, 2);
    seen.works = start_thread;
    hwnas_inbox_begin(f.inbox);
    send_request(f.to, &r);
    wait_for(&seen.n_done, 1);
    assert_true(hwnas_priority_stands_by(child.id));
    assert_false(hwnas_priority_stands_by((int)gettid()));
    if (hwnas_priority_raise(10) == HWNAS_OK) { /* where it may be */
        assert_int_equal(sched_getscheduler(child.id), SCHED_OTHER);
        hwnas_priority_lower();
    }
    pthread_barrier_wait(&child.over);
    pthread_join(child.thread, NULL);
    hwnas_inbox_end(f.inbox);
    expect_request(f.inbox, &r);
    end(&f);
    assert_false(hwnas_priority_has_bystander());
    pthread_barrier_destroy(&child.up);
    pthread_barrier_destroy(&child.over);
    free_request(&r);
}

/* What is not for one measurement, is cut short, or is no network. */
static void other_requests_wait_for_their_turn(void **state)
{
    (void)state;
    fixture f = begin(true);
    sent copy = make_request(true), r = make_request(false);
    hwnas_inbox_begin(f.inbox);
    send_request(f.to, &copy);
    hwnas_inbox_end(f.inbox);
    expect_request(f.inbox, &copy);
    hwnas_inbox_begin(f.inbox);
    put_frame(f.to, HWNAS_FRAME_GO, "{}", 2);
    send_request(f.to, &r);
    hwnas_inbox_end(f.inbox);
    expect_frame(f.inbox, HWNAS_FRAME_GO, "{}", 2);
    expect_request(f.inbox, &r);
    hwnas_inbox_begin(f.inbox);
    put_frame(f.to, HWNAS_FRAME_MEASURE, r.text, strlen(r.text));
    put_frame(f.to, HWNAS_FRAME_GRAPH, "rubbish", 7);
    hwnas_inbox_end(f.inbox);
    expect_frame(f.inbox, HWNAS_FRAME_MEASURE, r.text, strlen(r.text));
    expect_frame(f.inbox, HWNAS_FRAME_GRAPH, "rubbish", 7);
    assert_int_equal(seen.n_done, 0);
    hwnas_inbox_begin(f.inbox); /* after all that it still does what it can */
    send_request(f.to, &r);
    wait_for(&seen.n_done, 1);
    hwnas_inbox_end(f.inbox);
    expect_request(f.inbox, &r);
    put(f.to, "hw", 2);
    hwnas_inbox_begin(f.inbox);
    close(f.to);
    hwnas_inbox_end(f.inbox);
    char two[2], one;
    assert_int_equal(hwnas_inbox_read(f.inbox, two, 2), HWNAS_OK);
    assert_memory_equal(two, "hw", 2);
    assert_int_equal(hwnas_inbox_read(f.inbox, &one, 1), HWNAS_E_NOT_FOUND);
    hwnas_inbox_free(f.inbox);
    close(f.pipe[0]);
    free_request(&copy);
    free_request(&r);
}

int main(void)
{
    char locks[32];
    snprintf(locks, sizeof locks, "-%d", (int)getpid()); /* what else runs here does not count */
    setenv("HWNAS_CORE_LOCKS", locks, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_sent_is_read_in_its_order),
        cmocka_unit_test(the_network_is_prepared_apart),
        cmocka_unit_test(who_measures_does_not_wait),
        cmocka_unit_test(cores_of_others_are_left),
        cmocka_unit_test(its_switches_are_not_the_networks),
        cmocka_unit_test(threads_that_it_starts_stand_by_too),
        cmocka_unit_test(other_requests_wait_for_their_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
