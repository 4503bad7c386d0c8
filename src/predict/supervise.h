/* supervise.h: a program and a process of ours beside it, its supervisor, that sees to its end.
 *
 * The supervisor is a fork of the caller. It is the reaper of all that the program leaves behind
 * (prctl(2), PR_SET_CHILD_SUBREAPER), so a grandchild in a session of its own ends too. It ends the
 * program when it is told to, and when the caller is gone, however that came: both close a pipe.
 * What becomes of the program comes through another pipe, so it matters not what the caller does
 * with SIGCHLD. */
#ifndef HWNAS_PREDICT_SUPERVISE_H
#define HWNAS_PREDICT_SUPERVISE_H

#include <stdbool.h>
#include <sys/types.h>

typedef struct hwnas_supervised {
    pid_t supervisor;
    int order;  /* closed: the program is to end; -1: it was told */
    int report; /* becomes readable when the program has ended */
} hwnas_supervised;

typedef struct hwnas_program {
    const char *path; /* with a slash where it is not in this directory: $PATH is not looked at */
    char *const *arguments, *const *environment; /* NULL-terminated */
    int out, err;                                /* its standard output and error */
} hwnas_program;

/* Starts a program with nothing on its standard input and no other file open. Returns 0 or an
 * errno. */
int hwnas_supervise(hwnas_supervised *out, const hwnas_program *program);
/* Tells the program to end: SIGTERM, 2 s later SIGKILL. */
void hwnas_supervised_stop(hwnas_supervised *s);
/* True when the program and all that it started have ended; then `s` is done with. */
bool hwnas_supervised_has_ended(int *wait_status, hwnas_supervised *s);

#endif
