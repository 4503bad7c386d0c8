/* mortal.c: the program as it is, but for things that tests want of it, by the linker's --wrap:
 * that it tells and dies, for tests of --resume, and that its time is a script.
 *
 * MORTAL_TOLD=FILE: what the strategy is asked and told is added to the file, a line for each,
 * every number exact. MORTAL_DIES=N: it is killed at the N-th moment of its life; before and after
 * each beginning of a trial and each transaction of the study there is one. MORTAL_STOPS=N: it is
 * stopped there, until SIGCONT. MORTAL_COUNT=FILE: when it ends by itself, it writes the number of
 * these moments.
 *
 * MORTAL_CLOCK=FILE: as many seconds have passed as the file has bytes. Whoever takes time, such as
 * a program that trains, writes that to it. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "search/search.h"
#include "store/store.h"

/* ---- Dying ---- */

static long n_moments;

static void write_count(void)
{
    FILE *file = fopen(getenv("MORTAL_COUNT"), "w");
    if (!file)
        return;
    fprintf(file, "%ld\n", n_moments);
    fclose(file);
}

static void moment(void)
{
    const char *last = getenv("MORTAL_DIES"), *stop = getenv("MORTAL_STOPS");
    if (n_moments++ == 0 && getenv("MORTAL_COUNT"))
        atexit(write_count);
    if (last && n_moments == atol(last))
        kill(getpid(), SIGKILL);
    if (stop && n_moments == atol(stop))
        raise(SIGSTOP);
}

hwnas_status __real_hwnas_store_start(hwnas_store *store, uint64_t number, const char *code,
                                      const char *digest, int rung);
hwnas_status __wrap_hwnas_store_start(hwnas_store *store, uint64_t number, const char *code,
                                      const char *digest, int rung);
hwnas_status __wrap_hwnas_store_start(hwnas_store *store, uint64_t number, const char *code,
                                      const char *digest, int rung)
{
    moment();
    hwnas_status status = __real_hwnas_store_start(store, number, code, digest, rung);
    moment();
    return status;
}

hwnas_status __real_hwnas_store_end(hwnas_store *store, hwnas_status status);
hwnas_status __wrap_hwnas_store_end(hwnas_store *store, hwnas_status status);
hwnas_status __wrap_hwnas_store_end(hwnas_store *store, hwnas_status status)
{
    moment();
    status = __real_hwnas_store_end(store, status);
    moment();
    return status;
}

/* ---- Time ---- */

double __real_hwnas_now(void);
double __wrap_hwnas_now(void);
double __wrap_hwnas_now(void)
{
    struct stat st;
    const char *path = getenv("MORTAL_CLOCK");
    if (!path)
        return __real_hwnas_now();
    return stat(path, &st) ? 0 : (double)st.st_size;
}

/* ---- Listening ---- */

typedef struct listener {
    hwnas_strategy base;
    hwnas_strategy_ops ops;
    hwnas_strategy *inner;
    int n_objectives;
    FILE *file;
} listener;

static hwnas_status listen_ask(hwnas_strategy *strategy, uint64_t trial, hwnas_arch *out)
{
    listener *l = (listener *)strategy;
    TRY(l->inner->ops->ask(l->inner, trial, out));
    char *code = hwnas_arch_code(out);
    fprintf(l->file, "ask %llu %s\n", (unsigned long long)trial, code);
    fflush(l->file);
    free(code);
    return HWNAS_OK;
}

static int listen_rung(const hwnas_strategy *strategy, uint64_t trial)
{
    const listener *l = (const listener *)strategy;
    return l->inner->ops->rung(l->inner, trial);
}

static hwnas_status listen_tell(hwnas_strategy *strategy, uint64_t trial, const hwnas_arch *arch,
                                const hwnas_score *score)
{
    listener *l = (listener *)strategy;
    char *code = hwnas_arch_code(arch);
    fprintf(l->file, "tell %llu %s rung %d%s violation %a", (unsigned long long)trial, code,
            score->rung, score->is_estimate ? " estimate" : "", score->violation);
    for (int i = 0; i < l->n_objectives; i++)
        fprintf(l->file, " %a", score->objectives[i]);
    for (int i = 0; i < score->n_margins; i++)
        fprintf(l->file, " %a", score->margins[i]);
    fprintf(l->file, "\n");
    fflush(l->file);
    free(code);
    return l->inner->ops->tell(l->inner, trial, arch, score);
}

static void listen_note(hwnas_strategy *strategy, uint64_t trial, const hwnas_arch *arch)
{
    const listener *l = (const listener *)strategy;
    l->inner->ops->note(l->inner, trial, arch);
}

static void listen_free(hwnas_strategy *strategy)
{
    listener *l = (listener *)strategy;
    hwnas_strategy_free(l->inner);
    fclose(l->file);
    free(l);
}

hwnas_status __real_hwnas_strategy_new(hwnas_strategy **out, const char *name,
                                       const hwnas_strategy_config *config);
hwnas_status __wrap_hwnas_strategy_new(hwnas_strategy **out, const char *name,
                                       const hwnas_strategy_config *config);
hwnas_status __wrap_hwnas_strategy_new(hwnas_strategy **out, const char *name,
                                       const hwnas_strategy_config *config)
{
    const char *path = getenv("MORTAL_TOLD");
    hwnas_strategy *inner;
    TRY(__real_hwnas_strategy_new(&inner, name, config));
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file) {
        *out = inner;
        return HWNAS_OK;
    }
    listener *l = calloc(1, sizeof *l);
    *l = (listener){
        .ops = *inner->ops, .inner = inner, .n_objectives = config->n_objectives, .file = file};
    l->base.ops = &l->ops;
    l->ops.ask = listen_ask;
    l->ops.tell = listen_tell;
    l->ops.free = listen_free;
    if (l->ops.rung)
        l->ops.rung = listen_rung;
    if (l->ops.note)
        l->ops.note = listen_note;
    *out = &l->base;
    return HWNAS_OK;
}
