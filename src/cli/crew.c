#define _GNU_SOURCE 1 /* memfd_create() */
#include "cli/crew.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/verbosity.h"

#define MEMBER "HWNAS_IS_WORKER"

typedef struct hwnas_crew_member {
    pid_t pid;
    int log; /* what it writes to standard error */
} hwnas_crew_member;

bool hwnas_crew_is_member(void)
{
    return getenv(MEMBER) != NULL;
}

/* ---- Starting ---- */

/* All are one group, whose number is that of the first. What goes wrong here is told by the exit
 * code. */
static _Noreturn void become_member(pid_t group, int log, pid_t parent, int argc, char **argv)
{
    const int nothing = open("/dev/null", O_RDWR);
    char **words = hwnas_need((size_t)argc + 2, sizeof *words);
    static char name[] = "hwnas";
    words[0] = name;
    memcpy(words + 1, argv, (size_t)argc * sizeof *argv);
    setpgid(0, group);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() == parent && dup2(nothing, STDIN_FILENO) >= 0 &&
        dup2(nothing, STDOUT_FILENO) >= 0 && dup2(log, STDERR_FILENO) >= 0 &&
        !setenv(MEMBER, "1", 1))
        execv("/proc/self/exe", words);
    _exit(127);
}

static hwnas_status start_one(hwnas_crew *crew, int argc, char **argv)
{
    const pid_t parent = getpid(), group = crew->n ? crew->members[0].pid : 0;
    hwnas_crew_member m = {.log = memfd_create("worker", MFD_CLOEXEC)};
    if (m.log < 0 || (m.pid = fork()) < 0) {
        const int error = errno;
        if (m.log >= 0)
            close(m.log);
        return hwnas_fail(HWNAS_E_IO, NULL, "cannot start a worker: %s", strerror(error));
    }
    if (!m.pid)
        become_member(group, m.log, parent, argc, argv);
    setpgid(m.pid, group); /* whoever of the two is first */
    crew->members[crew->n++] = m;
    return HWNAS_OK;
}

hwnas_status hwnas_crew_check(long n)
{
    return n >= 1 && n <= HWNAS_MAX_CREW
               ? HWNAS_OK
               : hwnas_fail(HWNAS_E_USAGE, NULL, "--workers is at least 1 and at most %d",
                            HWNAS_MAX_CREW);
}

hwnas_status hwnas_crew_start(hwnas_crew *out, long n, int argc, char **argv)
{
    *out = (hwnas_crew){0};
    if (n < 2 || hwnas_crew_is_member())
        return HWNAS_OK;
    out->members = hwnas_need((size_t)n, sizeof *out->members);
    for (long i = 1; i < n; i++) {
        const hwnas_status status = start_one(out, argc, argv);
        if (status != HWNAS_OK) {
            hwnas_crew_end(out, status);
            return status;
        }
        hwnas_stop_with(out->members[0].pid);
    }
    return HWNAS_OK;
}

/* ---- Ending ---- */

static void print_log(const hwnas_crew_member *m)
{
    char line[512];
    FILE *log = fdopen(dup(m->log), "r");
    if (!log)
        return;
    rewind(log);
    while (fgets(line, sizeof line, log))
        hwnas_say(stderr, "%s", line);
    fclose(log);
}

static void say_how_it_ended(const hwnas_crew_member *m, int state)
{
    if (WIFSIGNALED(state))
        hwnas_say(stderr, "hwnas: warning: the worker with process %ld was killed: %s\n",
                  (long)m->pid, strsignal(WTERMSIG(state)));
    else if (WEXITSTATUS(state) == 1 || WEXITSTATUS(state) == 2 || WEXITSTATUS(state) > 100)
        hwnas_say(stderr, "hwnas: warning: the worker with process %ld failed:\n", (long)m->pid);
    else
        return;
    print_log(m);
}

/* Those that report what the search found have a code of their own, the same for all. */
static void end_one(const hwnas_crew_member *m, bool is_told)
{
    int state;
    while (waitpid(m->pid, &state, 0) < 0 && errno == EINTR)
        ;
    if (is_told)
        say_how_it_ended(m, state);
    close(m->log);
}

void hwnas_crew_end(hwnas_crew *crew, hwnas_status status)
{
    hwnas_stop_with(0);
    const bool is_good = status == HWNAS_OK && !hwnas_is_stop_asked();
    if (crew->n && !is_good)
        kill(-crew->members[0].pid, SIGTERM);
    for (int i = 0; i < crew->n; i++)
        end_one(&crew->members[i], is_good && !hwnas_log_is_quiet());
    free(crew->members);
    *crew = (hwnas_crew){0};
}
