/* runner_install.c: a runner goes to a board through one ssh, as a tar file on its standard input:
 * so the board needs a shell and tar, and no other port or protocol. */
#define _GNU_SOURCE 1 /* pipe2() */
#include "measure/runner_install.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/home.h"
#include "base/str.h"
#include "measure/runner_link.h"

extern char **environ;

enum { LONGEST_WORDS = 4096, SLICE_MS = 100 };

/* What a command on the other machine wrote. */
typedef struct said {
    char out[LONGEST_WORDS], err[LONGEST_WORDS];
    size_t n_out, n_err;
} said;

/* ---- A command there ---- */

/* Keeps the beginning; closes `fd` at its end. */
static void take(char *text, size_t *n, int *fd)
{
    char bytes[LONGEST_WORDS];
    const ssize_t got = read(*fd, bytes, sizeof bytes);
    if (got <= 0 && errno != EINTR)
        hwnas_close_fd(fd);
    const size_t room = LONGEST_WORDS - 1 - *n;
    const size_t kept = got <= 0 ? 0 : (size_t)got < room ? (size_t)got : room;
    memcpy(text + *n, bytes, kept);
    *n += kept;
    text[*n] = '\0';
}

/* False: it was interrupted. */
static bool listen(said *s, int *out, int *err, const volatile sig_atomic_t *stop)
{
    while (*out >= 0 || *err >= 0) {
        struct pollfd fds[] = {{.fd = *out, .events = POLLIN}, {.fd = *err, .events = POLLIN}};
        if (stop && *stop)
            return false;
        if (poll(fds, 2, SLICE_MS) <= 0)
            continue;
        if (fds[0].revents)
            take(s->out, &s->n_out, out);
        if (fds[1].revents)
            take(s->err, &s->n_err, err);
    }
    return true;
}

static int start(pid_t *pid, char **words, int in, int out, int err)
{
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
    const int error = posix_spawnp(pid, words[0], &actions, NULL, words, environ);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* The last line with something in it; cuts the text. */
static const char *last_line(char *text)
{
    size_t n = strlen(text);
    while (n && (unsigned char)text[n - 1] <= ' ')
        text[--n] = '\0';
    const char *newline = strrchr(text, '\n');
    return newline ? newline + 1 : text;
}

/* Runs words with `in` as standard input. HWNAS_OK: it ended with *wait_status. */
static hwnas_status run(said *s, int *wait_status, char **words, int in,
                        const volatile sig_atomic_t *stop)
{
    hwnas_status status = HWNAS_OK;
    int out[2] = {-1, -1}, err[2] = {-1, -1};
    pid_t pid;
    if (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC))
        TRY_OUT(hwnas_fail(HWNAS_E_IO, NULL, "cannot make a pipe: %s", strerror(errno)));
    const int error = start(&pid, words, in, out[1], err[1]);
    if (error)
        TRY_OUT(hwnas_fail(HWNAS_E_NOT_FOUND, NULL, "cannot start '%s': %s", words[0],
                           strerror(error)));
    hwnas_close_fd(&out[1]);
    hwnas_close_fd(&err[1]);
    if (!listen(s, &out[0], &err[0], stop)) {
        kill(pid, SIGKILL);
        status = hwnas_fail(HWNAS_E_INTERRUPTED, NULL, "interrupted");
    }
    while (waitpid(pid, wait_status, 0) < 0 && errno == EINTR)
        continue;
out:
    for (int i = 0; i < 2; i++) {
        hwnas_close_fd(&out[i]);
        hwnas_close_fd(&err[i]);
    }
    return status;
}

/* Runs a script on the machine of the link; what it wrote is in `s`. A way there that fails is told
 * as it is of a runner; another end than a good one with `what` it was to do. */
static hwnas_status run_there(said *s, const hwnas_link *link, const char *script, int in,
                              const char *what, const volatile sig_atomic_t *stop)
{
    enum { LOST = 255 };
    int wait_status = 0;
    bool may_return;
    char **words = hwnas_link_words_there(link, script);
    *s = (said){{0}, {0}, 0, 0};
    const hwnas_status status = run(s, &wait_status, words, in, stop);
    hwnas_link_free_words(words);
    TRY(status);
    const int code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : LOST;
    const char *line = last_line(s->err);
    if (code == LOST)
        return hwnas_link_explain(&may_return, link, wait_status, line, true);
    return code ? hwnas_fail(HWNAS_E_LIBRARY, NULL, "cannot %s on '%s': %s", what,
                             hwnas_link_where(link), *line ? line : "it says nothing")
                : HWNAS_OK;
}

/* ---- What is installed ---- */

/* The packed runner for the machine; yours to free(). */
static hwnas_status find_file(char **out, const hwnas_link *link, const volatile sig_atomic_t *stop)
{
    said s;
    const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    const hwnas_status status =
        run_there(&s, link, "uname -m", null, "ask for the kind of machine", stop);
    close(null);
    TRY(status);
    const char *kind = last_line(s.out);
    if (!*kind || kind[strspn(kind, "abcdefghijklmnopqrstuvwxyz0123456789_")])
        return hwnas_fail(HWNAS_E_LIBRARY, NULL, "'uname -m' on '%s' names no kind of machine",
                          hwnas_link_where(link));
    char *path = hwnas_printf("%s/runners/hwnas-runner-%s.tar.gz", hwnas_data_root(), kind);
    if (access(path, R_OK)) {
        hwnas_hint(hwnas_fail(HWNAS_E_NOT_FOUND, NULL,
                              "there is no runner for %s, which '%s' is: %s", kind,
                              hwnas_link_where(link), path),
                   "'scripts/build-runner %s' makes it where that is a kind that it knows; or name "
                   "the file: --file",
                   kind);
        free(path);
        return HWNAS_E_NOT_FOUND;
    }
    *out = path;
    return HWNAS_OK;
}

/* Nothing of an earlier one is touched before the new one has been started. */
static const char script[] =
    "set -e; umask 022; lib=$HOME/.local/lib; at=$HOME/" HWNAS_RUNNER_THERE "; mkdir -p \"$lib\"; "
    "new=$(mktemp -d \"$lib/hwnas-runner.XXXXXX\"); trap \"rm -rf \\\"$new\\\" \\\"$new.old\\\"\" "
    "EXIT; "
    "chmod 755 \"$new\"; tar xzf - -C \"$new\"; \"$new/hwnas\" version; "
    "[ ! -e \"$at\" ] || mv \"$at\" \"$new.old\"; "
    "mv \"$new\" \"$at\" || { mv \"$new.old\" \"$at\"; exit 1; }";

static hwnas_status unpack_there(char **said_there, const hwnas_link *link, const char *file,
                                 const volatile sig_atomic_t *stop)
{
    said s;
    int fd;
    size_t size;
    TRY(hwnas_file_open(&fd, &size, file));
    const hwnas_status status = run_there(&s, link, script, fd, "install the runner", stop);
    close(fd);
    if (status == HWNAS_E_LIBRARY)
        return hwnas_hint(status,
                          "is '%s' a runner for that kind of machine (scripts/build-runner)? "
                          "Nothing was changed there",
                          file);
    TRY(status);
    *said_there = hwnas_strdup(last_line(s.out));
    return HWNAS_OK;
}

hwnas_status hwnas_runner_put_there(hwnas_installed_runner *out, const char *device,
                                    const char *file, const volatile sig_atomic_t *stop)
{
    hwnas_status status = HWNAS_OK;
    hwnas_installed_runner installed = {0};
    hwnas_link *link = NULL;
    hwnas_runner *runner = NULL;
    TRY_OUT(hwnas_link_new(&link, device));
    if (!hwnas_link_is_far(link))
        TRY_OUT(hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL, "'%s' is no other machine", device),
                           "name it as ssh:HOST"));
    installed.where = hwnas_strdup(hwnas_link_where(link));
    if (file)
        installed.file = hwnas_strdup(file);
    else
        TRY_OUT(find_file(&installed.file, link, stop));
    TRY_OUT(unpack_there(&installed.said, link, installed.file, stop));
    TRY_OUT(hwnas_runner_open(&runner, device, 0));
    TRY_OUT(hwnas_runner_describe(&installed.info, runner));
    *out = installed;
    installed = (hwnas_installed_runner){0};
out:
    hwnas_runner_close(runner);
    hwnas_link_free(link);
    hwnas_installed_runner_done(&installed);
    return status;
}

void hwnas_installed_runner_done(hwnas_installed_runner *installed)
{
    free(installed->file);
    free(installed->where);
    free(installed->said);
    *installed = (hwnas_installed_runner){0};
}
