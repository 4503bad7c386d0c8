/* test_runner_threads.c: what the threads of a runner do to a machine while they wait. The program
 * is its own runner: `test_runner_threads runner` serves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "fake_machine.h"
#include "measure/runner.h"

/* Of a process: one of its threads is on a processor, or wants to be. */
static bool computes(pid_t process)
{
    bool is_found = false;
    char path[300], text[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)process);
    DIR *tasks = opendir(path);
    assert_non_null(tasks);
    for (struct dirent *e; (e = readdir(tasks));) {
        snprintf(path, sizeof path, "/proc/%d/task/%s/stat", (int)process, e->d_name);
        FILE *f = e->d_name[0] == '.' ? NULL : fopen(path, "r");
        is_found |= f && fgets(text, sizeof text, f) && strstr(text, ") R ");
        if (f)
            fclose(f);
    }
    closedir(tasks);
    return is_found;
}

/* Bound threads spin while they wait for each other; one that has nothing to do leaves its cores
 * alone: a training may have them, or the runner of another device. */
static void an_idle_team_leaves_the_cores_alone(void **state)
{
    (void)state;
#ifdef __clang__
    skip(); /* its OpenMP is not the one of oneDNN, whose team it cannot end */
#endif
    hwnas_measurement m;
    hwnas_runner *runner;
    hwnas_measure_options options = HWNAS_MEASURE_DEFAULTS;
    options.max_seconds = 0.1;
    hwnas_graph *tiny = make_graph();
    assert_int_equal(hwnas_runner_open(&runner, "cpu", 2), HWNAS_OK);
    for (int i = 0; i < 2; i++) {
        const double start = hwnas_now();
        assert_int_equal(hwnas_runner_measure(&m, runner, tiny, &options), HWNAS_OK);
        for (int quiet = 0; quiet < 10 && hwnas_now() - start < 20; usleep(10000))
            quiet = computes(hwnas_runner_pid(runner)) ? 0 : quiet + 1;
        assert_true(hwnas_now() - start < 20);
    }
    hwnas_runner_close(runner);
    hwnas_graph_free(tiny);
}

/* At real-time priority threads that wait for one without a core keep it from that. */
static void more_threads_than_cores(void **state)
{
    (void)state;
    hwnas_measurement m;
    hwnas_runner *runner;
    hwnas_measure_options options = HWNAS_MEASURE_DEFAULTS;
    options.max_seconds = 0.1;
    hwnas_graph *tiny = make_graph();
    assert_int_equal(hwnas_runner_open(&runner, "cpu", (int)sysconf(_SC_NPROCESSORS_ONLN) + 1),
                     HWNAS_OK);
    assert_int_equal(hwnas_runner_measure(&m, runner, tiny, &options), HWNAS_OK);
    hwnas_runner_close(runner);
    hwnas_graph_free(tiny);
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "runner"))
        return hwnas_runner_serve() == HWNAS_OK ? 0 : 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_idle_team_leaves_the_cores_alone),
        cmocka_unit_test(more_threads_than_cores),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
