/* test_skip.c: which measurements a search can do without, and which of those that it put off come
 * first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "graph/elaborate.h"
#include "trial/judge.h"
#include "study/session.h"
#include "study/starts.h"
#include "store/database.h"
#include "trial/skip.h"
#include "study/waiting.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define assert_near(x, y, tolerance) assert_true(fabs((x) - (y)) <= (tolerance))

static hwnas_job *load_job(const char *constraints, const char *estimate)
{
    hwnas_job *job;
    const hwnas_job_flag flags[] = {{"space", "nas_bench_macro"},
                                    {"accuracy", "nas_bench_macro_cifar10"},
                                    {"device", "cpu"},
                                    {"objectives", "accuracy, latency.p50"},
                                    {"constraints", constraints},
                                    {"estimate", estimate},
                                    {0}};
    assert_int_equal(hwnas_job_load(&job, NULL, flags), HWNAS_OK);
    return job;
}

static void add(hwnas_trial *trial, const char *metric, hwnas_source source, double value,
                double low, double high)
{
    hwnas_value_row row = {.value = value, .low = low, .high = high, .source = source};
    row.metric = metric;
    hwnas_trial_add(trial, &row);
}

/* Of this accuracy, with a latency that is estimated to lie in [low, high]. */
static hwnas_trial estimated(double accuracy, double low, double high)
{
    hwnas_trial trial = {.is_finished = true};
    add(&trial, "accuracy", HWNAS_PREDICTED, accuracy, NAN, NAN);
    add(&trial, "latency.p50", HWNAS_ESTIMATED, (low + high) / 2, low, high);
    return trial;
}

/* ---- What can be left out ---- */

/* Is a trial of this accuracy, whose latency is estimated to lie in [low, high], unable to improve?
 */
static bool cannot_improve(const hwnas_job *job, const hwnas_front *front, double accuracy,
                           double low, double high)
{
    hwnas_trial trial = estimated(accuracy, low, high);
    const bool is = hwnas_trial_cannot_improve(&trial, &job->goals, front);
    assert_true(hwnas_trial_is_estimated(&trial));
    assert_false(hwnas_trial_is_feasible(&trial, &job->goals, 0)); /* never one of a front */
    free(trial.values);
    return is;
}

/* From which accuracy on a training is worth it, of a network whose latency is estimated. */
static void tells_what_a_training_must_reach(void **state)
{
    (void)state;
    hwnas_job *job = load_job("latency.p50 <= 10 ms", "auto");
    hwnas_front front = {.n_objectives = 2};
    hwnas_trial trial = {.is_finished = true};
    assert_true(isinf(hwnas_trial_accuracy_floor(&trial, &job->goals, &front)));
    hwnas_front_insert(&front, &(hwnas_point){.objectives = {-90, 5e-3}});
    hwnas_front_insert(&front, &(hwnas_point){.objectives = {-92, 8e-3}});
    assert_true(
        isinf(hwnas_trial_accuracy_floor(&trial, &job->goals, &front))); /* of any latency */
    add(&trial, "latency.p50", HWNAS_ESTIMATED, 7e-3, 6e-3, 9e-3);       /* 6 ms at best */
    assert_true(hwnas_trial_accuracy_floor(&trial, &job->goals, &front) == 90);
    trial.values[0].low = 4e-3; /* it may be the fastest */
    assert_true(isinf(hwnas_trial_accuracy_floor(&trial, &job->goals, &front)));
    trial.values[0].source = HWNAS_MEASURED;
    trial.values[0].value = 8e-3;
    assert_true(hwnas_trial_accuracy_floor(&trial, &job->goals, &front) == 92);
    assert_true(isinf(hwnas_trial_accuracy_floor(&trial, &job->goals, NULL)));
    /* What its curve says of it puts it on no front, however good that is. */
    add(&trial, "accuracy", HWNAS_OF_CURVE, 99, 98, 100);
    trial.values[0].high = 9e-3;
    assert_false(hwnas_trial_is_feasible(&trial, &job->goals, 0));
    assert_true(hwnas_trial_score(&trial, &job->goals).objectives[0] ==
                -99); /* but is learnt from */
    trial.values[1].source = HWNAS_TRAINED;
    assert_true(hwnas_trial_is_feasible(&trial, &job->goals, 0));
    hwnas_job_free(job);
    /* A limit is a floor, too. */
    job = load_job("accuracy >= 93", "auto");
    assert_true(hwnas_trial_accuracy_floor(&trial, &job->goals, &front) == 93);
    free(trial.values);
    hwnas_front_done(&front);
    hwnas_job_free(job);
}

static void spares_what_cannot_win(void **state)
{
    (void)state;
    hwnas_job *job = load_job("latency.p50 <= 10 ms", "auto");
    hwnas_front front = {.n_objectives = 2};
    hwnas_front_insert(&front, &(hwnas_point){.objectives = {-90, 5e-3}}); /* 90 % in 5 ms */
    assert_true(cannot_improve(job, NULL, 99, 10.1e-3, 12e-3));  /* misses the limit for sure */
    assert_false(cannot_improve(job, NULL, 99, 9.9e-3, 12e-3));  /* may meet it */
    assert_true(cannot_improve(job, &front, 89, 5.1e-3, 6e-3));  /* worse in both for sure */
    assert_false(cannot_improve(job, &front, 89, 4.9e-3, 6e-3)); /* may be faster */
    assert_false(cannot_improve(job, &front, 91, 5.1e-3, 6e-3)); /* more accurate */
    hwnas_job_free(job);
    job = load_job("latency.p50 <= 10 ms", "aggressive");
    assert_true(cannot_improve(job, &front, 89, 4.9e-3, 5.2e-3)); /* more likely slower than not */
    assert_false(cannot_improve(job, &front, 89, 4.8e-3, 5.1e-3));
    assert_false(cannot_improve(job, &front, 89, 4.9e-3, 5.0e-3));
    assert_false(cannot_improve(job, NULL, 99, 9.9e-3, 12e-3)); /* limits are none the narrower */
    hwnas_front_done(&front);
    hwnas_job_free(job);
}

/* From which latency on is a trial of this accuracy beaten? */
static double give_up(const hwnas_job *job, const hwnas_front *front, double accuracy)
{
    hwnas_trial trial = {.is_finished = true};
    if (!isnan(accuracy))
        add(&trial, "accuracy", HWNAS_PREDICTED, accuracy, NAN, NAN);
    const double seconds = hwnas_trial_give_up(&trial, &job->goals, front, "latency.p50");
    free(trial.values);
    return seconds;
}

static void knows_when_a_network_is_beaten(void **state)
{
    (void)state;
    hwnas_job *job = load_job("latency.p50 <= 10 ms", "auto");
    hwnas_front front = {.n_objectives = 2};
    hwnas_front_insert(&front, &(hwnas_point){.objectives = {-90, 5e-3}});
    hwnas_front_insert(&front, &(hwnas_point){.objectives = {-93, 7e-3}});
    assert_true(give_up(job, NULL, 80) == 10e-3);   /* the limit */
    assert_true(give_up(job, &front, 95) == 10e-3); /* nobody is as good */
    assert_true(give_up(job, &front, 93) == 7e-3);
    assert_true(give_up(job, &front, 91) == 7e-3);
    assert_true(give_up(job, &front, 90) == 5e-3); /* both are as good, one is faster */
    /* Its accuracy, which is not known yet, may be the best; the limit is missed with any. */
    assert_true(give_up(job, &front, NAN) == 10e-3);
    hwnas_job_free(job);
    job = load_job("latency.p90 <= 10 ms", "auto");
    assert_true(give_up(job, &front, 80) == 0); /* p90 needs its samples */
    assert_true(give_up(job, &front, NAN) == 0);
    hwnas_job_free(job);
    hwnas_front_done(&front);
}

/* ---- What waits ---- */

typedef struct waiting_case {
    hwnas_job *job;
    hwnas_waiting waiting;
    hwnas_front front; /* measured */
    hwnas_trial trials[16];
    size_t n;
} waiting_case;

static waiting_case begin(const char *estimate)
{
    waiting_case c = {.job = load_job("latency.p50 <= 10 ms", estimate),
                      .front = {.n_objectives = 2}};
    c.waiting.goals = &c.job->goals;
    return c;
}

/* An interval of 10 % on either side. */
static void wait_for(waiting_case *c, double accuracy, double seconds)
{
    c->trials[c->n] = estimated(accuracy, 0.9 * seconds, 1.1 * seconds);
    hwnas_waiting_add(&c->waiting, c->n, &c->trials[c->n], &c->front);
    c->n++;
}

static void measure(waiting_case *c, size_t id, double accuracy, double seconds, bool is_unstable)
{
    hwnas_trial trial = {.is_finished = true, .is_unstable = is_unstable};
    add(&trial, "accuracy", HWNAS_PREDICTED, accuracy, NAN, NAN);
    add(&trial, "latency.p50", HWNAS_MEASURED, seconds, seconds, seconds);
    hwnas_waiting_tell(&c->waiting, id, &trial);
    if (seconds <= 10e-3)
        hwnas_front_insert(&c->front, &(hwnas_point){.objectives = {-accuracy, seconds}});
    hwnas_waiting_update(&c->waiting, &c->front);
    free(trial.values);
}

static void end(waiting_case *c)
{
    for (size_t i = 0; i < c->n; i++)
        free(c->trials[i].values);
    hwnas_waiting_done(&c->waiting);
    hwnas_front_done(&c->front);
    hwnas_job_free(c->job);
}

static void what_gives_way_makes_room(void **state)
{
    (void)state;
    waiting_case c = begin("auto");
    size_t next = 99;
    wait_for(&c, 90, 5e-3);
    wait_for(&c, 89, 5.5e-3); /* behind the first, if that is as fast as estimated */
    wait_for(&c, 80, 9e-3);   /* behind both by more than the intervals say */
    assert_int_equal(hwnas_waiting_front(&next, &c.waiting, &c.front, 0), 1);
    assert_int_equal(next, 0);
    assert_int_equal(hwnas_waiting_possible(&next, &c.waiting, 0), 3); /* nothing is measured yet */
    assert_int_equal(next, 0);
    measure(&c, 0, 90, 7e-3, false);
    assert_int_equal(c.waiting.n, 1); /* 8.1 ms at best, for 80 %, is beaten by now */
    assert_int_equal(hwnas_waiting_front(&next, &c.waiting, &c.front, 0), 1);
    assert_int_equal(next, 1);
    measure(&c, 1, 89, 5.6e-3, false);
    assert_int_equal(hwnas_waiting_front(&next, &c.waiting, &c.front, 0), 0);
    assert_int_equal(c.waiting.n, 0);
    wait_for(&c, 90, 7.5e-3);  /* may be faster than the 7 ms that were measured */
    wait_for(&c, 85, 7.5e-3);  /* cannot be faster than 5.6 ms */
    wait_for(&c, 95, 12e-3);   /* misses the limit for sure */
    wait_for(&c, 95, 10.5e-3); /* may meet it */
    assert_int_equal(hwnas_waiting_front(&next, &c.waiting, &c.front, 0), 0);
    assert_int_equal(hwnas_waiting_possible(&next, &c.waiting, 0), 2);
    end(&c);

    c = begin("aggressive");
    measure(&c, 99, 90, 7e-3, false);
    wait_for(&c, 90, 7.5e-3);
    wait_for(&c, 95, 10.5e-3);
    wait_for(&c, 90, 6.9e-3);
    assert_int_equal(hwnas_waiting_front(&next, &c.waiting, &c.front, 0), 1);
    assert_int_equal(next, 2);
    assert_int_equal(hwnas_waiting_possible(&next, &c.waiting, 0), 1);
    end(&c);
}

static void estimates_are_put_right(void **state)
{
    (void)state;
    waiting_case c = begin("aggressive");
    size_t next = 99;
    for (int i = 0; i < 8; i++)
        wait_for(&c, 50 + i, (1 + 0.1 * i) * 1e-3);
    for (size_t i = 0; i < 4; i++) /* each a fifth slower than estimated */
        measure(&c, i, 50 + (double)i, 1.2 * (1 + 0.1 * (double)i) * 1e-3, false);
    assert_true(hwnas_waiting_ratio(&c.waiting) == 1); /* four say little */
    measure(&c, 4, 54, 9e-3, true);                    /* and what was disturbed nothing */
    assert_true(hwnas_waiting_ratio(&c.waiting) == 1);
    measure(&c, 5, 55, 1.2 * 1.5e-3, false);
    assert_near(hwnas_waiting_ratio(&c.waiting), 1.2, 1e-12);
    measure(&c, 6, 56, 4 * 1.6e-3, false); /* one that is off has no say */
    assert_near(hwnas_waiting_ratio(&c.waiting), 1.2, 1e-12);
    wait_for(&c, 95, 8.2e-3); /* 9.84 ms */
    wait_for(&c, 97, 8.5e-3); /* 10.2 ms: too slow */
    assert_int_equal(hwnas_waiting_front(&next, &c.waiting, &c.front, 0), 2);
    measure(&c, 7, 57, 1.2 * 1.7e-3, false);
    assert_int_equal(hwnas_waiting_front(&next, &c.waiting, &c.front, 0), 1);
    assert_int_equal(next, 8);
    end(&c);

    c = begin("auto");
    for (int i = 0; i < 5; i++)
        wait_for(&c, 50 + i, (1 + 0.1 * i) * 1e-3);
    for (size_t i = 0; i < 5; i++) /* faster than when the table learnt */
        measure(&c, i, 50 + (double)i, 0.8 * (1 + 0.1 * (double)i) * 1e-3, false);
    wait_for(&c, 95, 11.5e-3); /* 9.2 ms; without that 10.35 ms at best */
    assert_int_equal(hwnas_waiting_front(&next, &c.waiting, &c.front, 0), 1);
    /* One that was not trained, as it seemed to miss the limit, comes after those that were. */
    hwnas_trial untrained = {.is_finished = true};
    add(&untrained, "latency.p50", HWNAS_ESTIMATED, 11.5e-3, 10.35e-3, 12.65e-3);
    hwnas_waiting_add(&c.waiting, 6, &untrained, &c.front);
    free(untrained.values);
    assert_int_equal(hwnas_waiting_front(&next, &c.waiting, &c.front, 0), 1);
    measure(&c, 5, 95, 9.2e-3, false);
    assert_int_equal(hwnas_waiting_possible(&next, &c.waiting, 0), 1);
    assert_int_equal(next, 6);
    end(&c);
}

static void what_is_disturbed_is_put_off(void **state)
{
    (void)state;
    waiting_case c = begin("auto");
    size_t next = 99;
    wait_for(&c, 90, 5e-3);
    wait_for(&c, 89, 5.5e-3);
    wait_for(&c, 95, 8e-3);
    assert_int_equal(hwnas_waiting_front(&next, &c.waiting, &c.front, 100), 2);
    assert_true(hwnas_waiting_put_off(&c.waiting, 0, 100));
    assert_true(c.waiting.next_try > 100 && c.waiting.next_try < 101);
    assert_int_equal(hwnas_waiting_front(&next, &c.waiting, &c.front, 101), 1);
    assert_int_equal(next, 2); /* the second is behind the first as much as before */
    assert_int_equal(hwnas_waiting_possible(&next, &c.waiting, 101), 2);
    assert_true(hwnas_waiting_put_off(&c.waiting, 2, 101));
    assert_int_equal(hwnas_waiting_front(&next, &c.waiting, &c.front, 102), 0);
    assert_int_equal(hwnas_waiting_front(&next, &c.waiting, &c.front, 200), 2);
    assert_true(hwnas_waiting_put_off(&c.waiting, 0, 200));
    assert_true(c.waiting.next_try > 201); /* the third on end */
    assert_int_equal(hwnas_waiting_front(&next, &c.waiting, &c.front, INFINITY), 2);
    assert_int_equal(next, 2);                               /* that was tried less */
    assert_false(hwnas_waiting_put_off(&c.waiting, 0, 300)); /* is told as it is */
    measure(&c, 0, 90, 5e-3, true);
    assert_int_equal(hwnas_waiting_front(&next, &c.waiting, &c.front, 400), 1);
    end(&c);
}

static void some_jobs_do_not_wait(void **state)
{
    (void)state;
    hwnas_goals goals = {.devices = {.n = 1}};
    assert_true(hwnas_waiting_suits(&goals));
    goals.n_targets = 1;
    assert_false(hwnas_waiting_suits(&goals));
    goals = (hwnas_goals){.devices = {.n = 2}};
    assert_false(hwnas_waiting_suits(&goals));
    goals.is_front_per_device = true;
    assert_false(hwnas_waiting_suits(&goals));
}

/* ---- In a session ---- */

static hwnas_status tell_nobody(hwnas_strategy *strategy, uint64_t trial, const hwnas_arch *arch,
                                const hwnas_score *score)
{
    (void)strategy;
    (void)trial;
    (void)arch;
    (void)score;
    return HWNAS_OK;
}

/* A session of its own study, whose strategy does not listen. */
static void begin_session(hwnas_session *s, const hwnas_job *job)
{
    static const hwnas_strategy_ops deaf = {.tell = tell_nobody};
    static hwnas_strategy strategy = {.ops = &deaf};
    char path[64];
    *s = (hwnas_session){.job = job,
                         .front = {.n_objectives = 2},
                         .steady = {.n_objectives = 2},
                         .waiting = {.goals = &job->goals},
                         .scores = {.n_objectives = 2},
                         .winner_id = -1,
                         .setup = {.strategy = &strategy}};
    snprintf(path, sizeof path, "test_spare-%d.db", (int)getpid());
    assert_int_equal(hwnas_store_open(&s->store, path, HWNAS_STORE_CREATE), HWNAS_OK);
}

static void end_session(hwnas_session *s)
{
    hwnas_session_forget(s);
    hwnas_store_discard(s->store);
}

/* Takes a measured trial into a session. */
static void absorb(hwnas_session *s, const hwnas_arch *arch, double accuracy, double latency,
                   bool is_unstable)
{
    hwnas_trial *trial = hwnas_alloc(sizeof *trial);
    trial->number = s->n_done;
    trial->code = hwnas_arch_code(arch);
    trial->is_finished = true;
    trial->is_unstable = is_unstable;
    add(trial, "accuracy", HWNAS_PREDICTED, accuracy, NAN, NAN);
    add(trial, "latency.p50", HWNAS_MEASURED, latency, 0.99 * latency, 1.01 * latency);
    trial->violation = hwnas_trial_violation(trial, &s->job->goals, true);
    assert_int_equal(hwnas_session_absorb(s, trial, arch), HWNAS_OK);
    hwnas_trials_free(trial, 1);
}

/* A study that cannot be read is no study without the network that is looked for. */
static void starts_need_the_study(void **state)
{
    (void)state;
    hwnas_session s;
    hwnas_job *job = load_job("macs <= 20 M", "auto");
    hwnas_space *space = NULL;
    assert_int_equal(hwnas_graph_load_space(&space, "nas_bench_macro"), HWNAS_OK);
    begin_session(&s, job);
    s.setup.space = space;
    s.setup.walked = space;
    s.n_warm = s.next = 1;
    assert_int_equal(hwnas_session_find_starts(&s), HWNAS_OK);
    assert_true(s.n_starts > 0);
    while (s.n_starts)
        hwnas_arch_free(s.starts[--s.n_starts]);
    hwnas_database *db = hwnas_store_database(s.store);
    assert_true(db->ops->exec(db, "ALTER TABLE trial RENAME TO away"));
    assert_int_not_equal(hwnas_session_find_starts(&s), HWNAS_OK);
    assert_int_equal(s.n_starts, 0);
    assert_true(db->ops->exec(db, "ALTER TABLE away RENAME TO trial"));
    end_session(&s);
    hwnas_space_free(space);
    hwnas_job_free(job);
}

/* A disturbed measurement is no reason to cut another one short or to leave it out. */
static void the_unstable_beat_nobody(void **state)
{
    (void)state;
    hwnas_session s;
    hwnas_job *job = load_job("latency.p50 <= 10 ms", "auto");
    hwnas_space *space = NULL;
    assert_int_equal(hwnas_graph_load_space(&space, "nas_bench_macro"), HWNAS_OK);
    hwnas_arch *arch = hwnas_arch_first(space);
    begin_session(&s, job);
    hwnas_trial rival = estimated(89, 5.1e-3, 6e-3);
    absorb(&s, arch, 90, 5e-3, true);
    assert_int_equal(s.front.n, 1);
    assert_false(hwnas_trial_cannot_improve(&rival, &job->goals, &s.steady));
    assert_near(hwnas_trial_give_up(&rival, &job->goals, &s.steady, "latency.p50"), 10e-3, 1e-12);
    absorb(&s, arch, 90, 5e-3, false);
    assert_true(hwnas_trial_cannot_improve(&rival, &job->goals, &s.steady));
    assert_near(hwnas_trial_give_up(&rival, &job->goals, &s.steady, "latency.p50"), 5e-3, 1e-12);
    end_session(&s);
    free(rival.values);
    hwnas_arch_free(arch);
    hwnas_space_free(space);
    hwnas_job_free(job);
}

/* The closest network of a search that finds nothing is measured before it is told. */
static void the_closest_is_measured(void **state)
{
    (void)state;
    hwnas_session s;
    hwnas_job *job = load_job("latency.p50 <= 10 ms", "auto");
    hwnas_space *space = NULL;
    size_t id = 0;
    assert_int_equal(hwnas_graph_load_space(&space, "nas_bench_macro"), HWNAS_OK);
    hwnas_arch *arch = hwnas_arch_first(space);
    begin_session(&s, job);
    assert_false(hwnas_session_find_closest(&id, &s));
    absorb(&s, arch, 90, 14e-3, "{}");
    assert_false(hwnas_session_find_closest(&id, &s)); /* it is measured */
    hwnas_trial *trial = hwnas_alloc(sizeof *trial);
    *trial = estimated(90, 11e-3, 13e-3);
    trial->violation = hwnas_trial_violation(trial, &job->goals, false);
    assert_int_equal(hwnas_session_absorb(&s, trial, arch), HWNAS_OK);
    hwnas_trials_free(trial, 1);
    absorb(&s, arch, 90, 15e-3, "{}");
    assert_true(hwnas_session_find_closest(&id, &s));
    assert_int_equal(id, 1);
    absorb(&s, arch, 90, 5e-3, "{}"); /* feasible */
    assert_false(hwnas_session_find_closest(&id, &s));
    end_session(&s);
    hwnas_arch_free(arch);
    hwnas_space_free(space);
    hwnas_job_free(job);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_what_a_training_must_reach),
        cmocka_unit_test(spares_what_cannot_win),
        cmocka_unit_test(the_unstable_beat_nobody),
        cmocka_unit_test(starts_need_the_study),
        cmocka_unit_test(the_closest_is_measured),
        cmocka_unit_test(knows_when_a_network_is_beaten),
        cmocka_unit_test(what_gives_way_makes_room),
        cmocka_unit_test(estimates_are_put_right),
        cmocka_unit_test(what_is_disturbed_is_put_off),
        cmocka_unit_test(some_jobs_do_not_wait),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("spare", tests, NULL, NULL);
}
