/* Any bytes as what the search reads from its runner: what they say of a device, of a measurement
 * with its steps, of a race and of a window is taken, or the request fails with a message. The
 * first byte says what is asked. No process is started: the socket is filled before. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "frames.h"
#include "fuzz.h"
#include "latency/latency_table.h"
#include "measure/race.h"
#include "measure/runner.h"
#include "measure/steps.h"
#include "measure/streams.h"

enum { FAKE_PID = 0x7ffffff0 };

static hwnas_str answers;
static int other_end = -1;

/* These stand before those of the C library, which are reached as system calls. */
int socketpair(int domain, int type, int protocol, int fds[2])
{
    if (syscall(SYS_socketpair, domain, type, protocol, fds))
        return -1;
    const int room = 1 << 20;
    setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    other_end = dup(fds[1]);
    /* What does not fit is an answer that is cut short. */
    if (send(fds[1], answers.s, answers.n, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        errno = 0;
    shutdown(fds[1], SHUT_WR);
    return 0;
}

int posix_spawnp(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const arguments[],
                 char *const environment[])
{
    (void)path, (void)actions, (void)attributes, (void)arguments, (void)environment;
    *pid = FAKE_PID;
    return 0;
}

int kill(pid_t pid, int number)
{
    return pid == FAKE_PID ? 0 : (int)syscall(SYS_kill, pid, number);
}

pid_t waitpid(pid_t pid, int *status, int options)
{
    if (pid != FAKE_PID)
        return (pid_t)syscall(SYS_wait4, pid, status, options, NULL);
    *status = 0;
    return pid;
}

static hwnas_status measure(hwnas_runner *runner, const hwnas_measure_options *options)
{
    hwnas_measurement m;
    hwnas_step_times steps = {0};
    TRY(hwnas_runner_measure_steps(&m, &steps, runner, fuzz_graph(), options));
    hwnas_observation *observation = hwnas_observation_new(fuzz_graph(), &m, &steps);
    hwnas_observation_free(observation);
    hwnas_step_times_done(&steps);
    return HWNAS_OK;
}

static hwnas_status race(hwnas_runner *runner, const hwnas_measure_options *options)
{
    const hwnas_graph *const graphs[] = {fuzz_graph(), fuzz_graph()};
    hwnas_race result;
    TRY(hwnas_runner_race(&result, runner, graphs, NULL, 2, options));
    for (int i = 0; i < result.n; i++)
        hwnas_race_judge(&result, 0, i, options->interval);
    hwnas_race_done(&result);
    return HWNAS_OK;
}

static hwnas_status window(const hwnas_measure_options *options)
{
    hwnas_status status = HWNAS_OK;
    hwnas_streams *streams = NULL;
    hwnas_measurement m;
    double rate;
    TRY(hwnas_streams_open(&streams, "null", 1, 1));
    status = hwnas_streams_measure(&m, &rate, streams, fuzz_graph(), options);
    hwnas_streams_close(streams);
    return status;
}

/* Networks in four precisions on the way, of which some are not wanted after all. */
static hwnas_status ahead(hwnas_runner *runner, hwnas_measure_options options)
{
    static const hwnas_precision sent[] = {HWNAS_F32, HWNAS_BF16, HWNAS_F16, HWNAS_S8};
    static const hwnas_precision measured[] = {HWNAS_F16, HWNAS_BF16, HWNAS_F32, HWNAS_F16};
    enum { N = sizeof sent / sizeof *sent };
    hwnas_measurement m;
    for (int i = 0; i < N; i++) {
        options.exec.precision = sent[i];
        TRY(hwnas_runner_send_ahead(runner, fuzz_graph(), false, &options));
    }
    hwnas_runner_forget_ahead(runner);
    for (int i = 2; i >= 1; i--) {
        options.exec.precision = sent[i];
        TRY(hwnas_runner_send_ahead(runner, fuzz_graph(), false, &options));
    }
    hwnas_status status = HWNAS_OK;
    for (int i = 0; i < N; i++) {
        options.exec.precision = measured[i];
        if (status != HWNAS_OK)
            hwnas_error_clear();
        status = hwnas_runner_measure(&m, runner, fuzz_graph(), &options);
        FUZZ_CHECK(!hwnas_runner_has_ahead(runner, fuzz_graph(), measured[i]));
    }
    FUZZ_CHECK(hwnas_runner_n_ahead(runner) == 0);
    return status;
}

/* The last kind is asked of a program of others, which takes requests ahead. */
static const char *spelling_of(int what)
{
    return what % 4 == 3 ? "runner:another" : "null";
}

static hwnas_status ask(hwnas_runner *runner, int what)
{
    hwnas_measure_options options = HWNAS_MEASURE_DEFAULTS;
    options.max_attempts = 1;
    TRY(hwnas_runner_describe(&(hwnas_device_info){0}, runner));
    switch (what % 4) {
    case 0:
        return measure(runner, &options);
    case 1:
        return race(runner, &options);
    case 2:
        return window(&options);
    default:
        return ahead(runner, options);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hwnas_runner *runner = NULL;
    answers = (hwnas_str){0};
    if (size)
        frames_write(&answers, data + 1, size - 1, NULL);
    FUZZ_CHECK(!hwnas_runner_open(&runner, spelling_of(size ? data[0] : 0), 1));
    hwnas_status status = ask(runner, size ? data[0] : 0);
    if (status != HWNAS_OK)
        fuzz_check_message(status);
    hwnas_runner_close(runner);
    if (other_end >= 0)
        close(other_end);
    other_end = -1;
    hwnas_str_done(&answers);
    return 0;
}
