/* stop.c: Ctrl-C as a question that long work may answer. */
#include <signal.h>
#include <time.h>

#include "cli/cli.h"

static volatile sig_atomic_t stop_asked;
static struct timespec stop_when;
static volatile sig_atomic_t group; /* 0: nobody else */

/* The first signal asks; a later one ends the program. timeout(1) and service managers send theirs
 * twice at once, to the process and to its group: that is one. */
static void ask_stop(int signal_number)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double since =
        (double)(now.tv_sec - stop_when.tv_sec) + 1e-9 * (double)(now.tv_nsec - stop_when.tv_nsec);
    if (group)
        kill(-(pid_t)group, signal_number);
    if (!stop_asked) {
        stop_asked = 1;
        stop_when = now;
    } else if (since > 0.5) {
        signal(signal_number, SIG_DFL);
        raise(signal_number);
    }
}

void hwnas_stop_with(pid_t others)
{
    group = others;
}

bool hwnas_is_stop_asked(void)
{
    return stop_asked;
}

const volatile sig_atomic_t *hwnas_stop_on_signals(void)
{
    signal(SIGINT, ask_stop);
    signal(SIGTERM, ask_stop);
    return &stop_asked;
}
