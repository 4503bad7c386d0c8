/* fork_server.h: a process that has PyTorch loaded, of which trainings are forks
 * (training/fork_server.py): to load it takes longer than a small training. */
#ifndef HWNAS_PREDICT_FORK_SERVER_H
#define HWNAS_PREDICT_FORK_SERVER_H

#include "predict/handed.h"
#include "predict/supervise.h"

/* All zeros: there is none. */
typedef struct hwnas_fork_server {
    hwnas_scratch scratch;
    char *socket; /* NULL: none */
    char *python;
    int n_again; /* how often it was started once more */
    hwnas_supervised process;
} hwnas_fork_server;

/* Starts one, unless it is there: `python` runs training/train.py. Where that fails there is none:
 * trainings take longer then. It ends with this process, and all its forks with it. */
void hwnas_fork_server_start(hwnas_fork_server *server, const char *python);
void hwnas_fork_server_stop(hwnas_fork_server *server);
/* One that was killed is started again at the same place, a few times, and that is noted. */
void hwnas_fork_server_revive(hwnas_fork_server *server);
/* The program that `handed` is for may use the server, if there is one; revives it. */
void hwnas_fork_server_offer(hwnas_fork_server *server, hwnas_handed *handed);

#endif
