#define _GNU_SOURCE 1 /* pipe2(), SOCK_CLOEXEC */
#include "predict/fork_server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "base/home.h"
#include "base/log.h"
#include "base/str.h"

extern char **environ;

enum { PATIENCE_MS = 10000 }; /* for a Python to start, or to end */
/* What ends it so often will do so again, as a lack of memory does. */
enum { MOST_AGAIN = 3 };

static bool waits_for(int fd)
{
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    int n;
    do
        n = poll(&readable, 1, PATIENCE_MS);
    while (n < 0 && errno == EINTR);
    return n > 0;
}

static void stop_and_wait(hwnas_supervised *process)
{
    int status;
    hwnas_supervised_stop(process);
    while (!hwnas_supervised_has_ended(&status, process))
        waits_for(process->report);
}

/* The whole line: a pipe that is closed before its end would end who writes it. */
static bool says_ready(int fd)
{
    for (const char *c = "ready\n"; *c; c++) {
        char byte;
        if (!waits_for(fd) || read(fd, &byte, 1) != 1 || byte != *c)
            return false;
    }
    return true;
}

/* Returns 0 or an errno. */
static int start(hwnas_fork_server *server, char *python)
{
    int said[2] = {-1, -1}, error = 0;
    char *path = hwnas_program_find(python);
    char *program = hwnas_printf("%s/training/train.py", hwnas_data_root());
    char *const arguments[] = {python, program, "--serve", server->socket, NULL};
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null < 0 || pipe2(said, O_CLOEXEC)) {
        error = errno;
    } else {
        const hwnas_program about = {.path = path ? path : python,
                                     .arguments = arguments,
                                     .environment = environ,
                                     .out = said[1],
                                     .err = null};
        error = hwnas_supervise(&server->process, &about);
    }
    hwnas_close_fd(&said[1]);
    hwnas_close_fd(&null);
    if (!error && !says_ready(said[0])) {
        error = ETIMEDOUT;
        stop_and_wait(&server->process);
    }
    hwnas_close_fd(&said[0]);
    free(program);
    free(path);
    return error;
}

static void forget(hwnas_fork_server *server)
{
    hwnas_scratch_close(&server->scratch);
    free(server->socket);
    free(server->python);
    *server = (hwnas_fork_server){0};
}

void hwnas_fork_server_start(hwnas_fork_server *server, const char *python)
{
    if (server->socket)
        return;
    if (hwnas_scratch_open(&server->scratch, NULL) != HWNAS_OK) {
        hwnas_error_clear();
        return;
    }
    server->socket = hwnas_printf("%s/socket", server->scratch.folder);
    server->python = hwnas_strdup(python);
    const int error = start(server, server->python);
    if (!error)
        return;
    hwnas_log(HWNAS_LOG_DEBUG, "PyTorch is loaded for each training: %s", strerror(error));
    forget(server);
}

void hwnas_fork_server_stop(hwnas_fork_server *server)
{
    if (!server->socket)
        return;
    stop_and_wait(&server->process);
    forget(server);
}

/* Its supervisor may take a while to tell of its end, and whoever waited for a fork knows at once:
 * so its socket is asked. */
static bool is_gone(const hwnas_fork_server *server)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || strlen(server->socket) >= sizeof address.sun_path) {
        hwnas_close_fd(&fd);
        return false;
    }
    strcpy(address.sun_path, server->socket);
    const bool is_gone = connect(fd, (struct sockaddr *)&address, sizeof address) &&
                         (errno == ECONNREFUSED || errno == ENOENT);
    hwnas_close_fd(&fd);
    return is_gone;
}

void hwnas_fork_server_revive(hwnas_fork_server *server)
{
    if (!server->socket || !is_gone(server))
        return;
    stop_and_wait(&server->process);
    unlink(server->socket);
    const bool may = server->n_again++ < MOST_AGAIN;
    const int error = may ? start(server, server->python) : 0;
    if (may && !error) {
        hwnas_log(HWNAS_LOG_NOTE,
                  "the process that had loaded PyTorch ended, and is started again");
        return;
    }
    hwnas_log(HWNAS_LOG_NOTE,
              "the process that had loaded PyTorch ended, and is not started again (%s): each "
              "training loads PyTorch from now on",
              may ? strerror(error) : "it ended too often");
    forget(server);
}

void hwnas_fork_server_offer(hwnas_fork_server *server, hwnas_handed *handed)
{
    hwnas_fork_server_revive(server);
    if (server->socket)
        hwnas_handed_set(handed, "HWNAS_FORK_SERVER", server->socket);
}
