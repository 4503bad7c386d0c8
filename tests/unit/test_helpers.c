/* test_helpers.c: threads that help with what nobody measures. */
#define _GNU_SOURCE 1 /* sched_getaffinity(), gettid() */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "device/helpers.h"

enum { MOST = 8 };

/* What each of the threads saw. All meet before one leaves, so that they are known to run at once.
 */
typedef struct seen {
    pthread_barrier_t meet;
    int n, threads[MOST], policies[MOST];
    cpu_set_t cores[MOST];
} seen;

static void look(void *context)
{
    seen *s = context;
    const int i = __atomic_fetch_add(&s->n, 1, __ATOMIC_RELAXED);
    s->threads[i] = (int)gettid();
    s->policies[i] = sched_getscheduler(0);
    sched_getaffinity(0, sizeof s->cores[i], &s->cores[i]);
    pthread_barrier_wait(&s->meet);
}

static seen help(int most, int expected)
{
    seen s = {0};
    pthread_barrier_init(&s.meet, NULL, (unsigned)expected);
    hwnas_helpers_run(most, look, &s);
    pthread_barrier_destroy(&s.meet);
    assert_int_equal(s.n, expected);
    return s;
}

static int first_core(void)
{
    cpu_set_t own;
    int core = 0;
    assert_int_equal(sched_getaffinity(0, sizeof own, &own), 0);
    while (!CPU_ISSET((size_t)core, &own))
        core++;
    return core;
}

static int n_cores(void)
{
    cpu_set_t own;
    assert_int_equal(sched_getaffinity(0, sizeof own, &own), 0);
    return CPU_COUNT(&own);
}

static int room[MOST], n_room;

static int find_room(int *cores, int most)
{
    assert_true(n_room <= most);
    for (int i = 0; i < n_room; i++)
        cores[i] = room[i];
    return n_room;
}

static void by_itself(void **state)
{
    (void)state;
    const int core = first_core();
    help(1, 1);
    help(MOST, n_cores() < MOST ? n_cores() : MOST); /* where nobody has said more */
    hwnas_helpers_set_room(find_room);
    n_room = 0; /* others measure on all cores */
    help(MOST, 1);
    cpu_set_t all, one;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    CPU_SET((size_t)core, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    room[0] = core; /* where the caller computes, nobody helps */
    n_room = 1;
    help(MOST, 1);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    hwnas_helpers_set_room(NULL);
}

static void in_the_room_at_ordinary_priority(void **state)
{
    (void)state;
    const struct sched_param batch = {0};
    cpu_set_t wanted;
    hwnas_helpers_set_room(find_room);
    room[0] = first_core();
    n_room = 1;
    CPU_ZERO(&wanted);
    CPU_SET((size_t)room[0], &wanted);
    assert_int_equal(sched_setscheduler(0, SCHED_BATCH, &batch), 0);
    if (n_cores() > 1) { /* else the caller is bound to the only core */
        const seen s = help(MOST, 2);
        for (int i = 0; i < 2; i++) {
            if (s.threads[i] == (int)gettid())
                continue;
            assert_int_equal(s.policies[i], SCHED_OTHER);
            assert_true(CPU_EQUAL(&s.cores[i], &wanted));
        }
    }
    assert_int_equal(sched_setscheduler(0, SCHED_OTHER, &batch), 0);
    hwnas_helpers_set_room(NULL);
}

/* It takes its core from the room when it asks for the second time. */
static void leave(void *context)
{
    bool *left = context;
    const bool is_caller = gettid() == getpid();
    assert_true(hwnas_helper_goes_on());
    if (is_caller)
        return;
    n_room = 0;
    usleep(20000); /* twice as long as a look is good for */
    *left = !hwnas_helper_goes_on();
}

static void until_its_core_is_wanted(void **state)
{
    (void)state;
    bool has_left = false;
    hwnas_helpers_set_room(find_room);
    room[0] = first_core();
    n_room = 1;
    hwnas_helpers_run(2, leave, &has_left);
    assert_int_equal(has_left, n_cores() > 1);
    hwnas_helpers_set_room(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_itself),
        cmocka_unit_test(in_the_room_at_ordinary_priority),
        cmocka_unit_test(until_its_core_is_wanted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
