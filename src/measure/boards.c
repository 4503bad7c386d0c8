#include "measure/boards.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/host.h"
#include "base/log.h"
#include "base/str.h"
#include "measure/runner_priv.h"

/* What a board has: a network that it measures, and the next. */
enum { AHEAD = 2 };

/* `ssh:A+B/DEVICE` is `ssh:A/DEVICE` and `ssh:B/DEVICE`; every other spelling is one. */
static const char *hosts_of(const char *spelling)
{
    static const char prefix[] = "ssh:";
    return hwnas_starts_with(spelling, prefix) ? spelling + strlen(prefix) : NULL;
}

hwnas_status hwnas_boards_open(hwnas_boards *out, const char *spelling, int threads)
{
    hwnas_status status = HWNAS_OK;
    hwnas_boards boards = {.threads = threads};
    const char *hosts = hosts_of(spelling);
    const size_t end = hosts ? strcspn(hosts, "/") : 0;
    size_t at = 0;
    do {
        const size_t n = hosts ? strcspn(hosts + at, "+/") : 0;
        char *one = hosts ? hwnas_printf("ssh:%.*s%s", (int)n, hosts + at, hosts + end)
                          : hwnas_strdup(spelling);
        status = boards.n < HWNAS_MAX_BOARDS
                     ? hwnas_runner_open(&boards.runners[boards.n], one, threads)
                     : hwnas_fail(HWNAS_E_INPUT, NULL, "'%s' names more than %d boards", spelling,
                                  HWNAS_MAX_BOARDS);
        boards.n += status == HWNAS_OK;
        free(one);
        at += n + 1;
    } while (status == HWNAS_OK && hosts && at <= end);
    if (status == HWNAS_OK)
        *out = boards;
    else
        hwnas_boards_close(&boards);
    return status;
}

void hwnas_boards_rest(hwnas_boards *boards)
{
    for (int i = 0; i < boards->n; i++)
        hwnas_runner_rest(boards->runners[i]);
}

void hwnas_boards_make_way(hwnas_boards *boards)
{
    for (int i = 0; i < boards->n; i++)
        hwnas_runner_make_way(boards->runners[i]);
}

void hwnas_boards_set_threads(hwnas_boards *boards, int threads)
{
    for (int i = 0; i < boards->n && threads != boards->threads; i++)
        hwnas_runner_set_threads(boards->runners[i], threads);
    boards->threads = threads;
}

void hwnas_boards_close(hwnas_boards *boards)
{
    for (int i = 0; i < boards->n; i++)
        hwnas_runner_close(boards->runners[i]);
    *boards = (hwnas_boards){0};
}

/* ---- Who they are ---- */

/* The name without the machine at its end. */
static size_t kind_length(const hwnas_runner *r)
{
    return strlen(r->hello.info.name) - strlen(r->hello.machine);
}

/* What their users allow them may differ. */
static bool are_of_one_kind(const hwnas_runner *a, const hwnas_runner *b)
{
    const hwnas_device_info *x = &a->hello.info, *y = &b->hello.info;
    const int differ = a->hello.abilities ^ b->hello.abilities;
    return kind_length(a) == kind_length(b) && !strncmp(x->name, y->name, kind_length(a)) &&
           !strcmp(x->library, y->library) && !strcmp(x->isa, y->isa) && x->threads == y->threads &&
           x->native == y->native && !(differ & ~(1 << HWNAS_CAN_REALTIME));
}

static hwnas_status check_pair(const hwnas_runner *a, const hwnas_runner *b)
{
    const hwnas_device_info *x = &a->hello.info, *y = &b->hello.info;
    if (!are_of_one_kind(a, b))
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, NULL,
                       "'%s' and '%s' are not of one kind: %.80s, %s, %d threads; and "
                       "%.80s, %s, %d threads",
                       a->device, b->device, x->name, x->library, x->threads, y->name, y->library,
                       y->threads),
            "boards behind one '+' are alike, with the same hwnas; others are devices "
            "of their own: devices: [...]");
    if (!strcmp(a->hello.machine, b->hello.machine))
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL, "'%s' and '%s' are the same machine",
                                     a->device, b->device),
                          "two searches on one machine disturb each other: name it once");
    return HWNAS_OK;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* One identity for all, whatever their order. */
static void describe_all(hwnas_device_info *out, const hwnas_boards *boards)
{
    char machines[HWNAS_MAX_BOARDS][sizeof boards->runners[0]->hello.machine];
    char id[HWNAS_HOST_ID];
    hwnas_str all = {0};
    for (int i = 0; i < boards->n; i++)
        memcpy(machines[i], boards->runners[i]->hello.machine, sizeof machines[i]);
    qsort(machines, (size_t)boards->n, sizeof *machines, compare_texts);
    for (int i = 0; i < boards->n; i++)
        hwnas_str_addf(&all, "%s+", machines[i]);
    hwnas_host_id_of(id, all.s, "");
    hwnas_str_done(&all);
    *out = boards->runners[0]->hello.info;
    const int n = (int)kind_length(boards->runners[0]) - (int)strlen(" machine ");
    snprintf(out->name, sizeof out->name, "%.*s %d machines %s", n,
             boards->runners[0]->hello.info.name, boards->n, id);
}

hwnas_status hwnas_boards_describe(hwnas_device_info *out, hwnas_boards *boards)
{
    hwnas_device_info info;
    for (int i = 0; i < boards->n; i++) {
        TRY(hwnas_runner_describe(&info, boards->runners[i]));
        for (int j = 0; j < i; j++)
            TRY(check_pair(boards->runners[j], boards->runners[i]));
    }
    if (boards->n > 1)
        describe_all(out, boards);
    else
        *out = info;
    return HWNAS_OK;
}

/* ---- Who measures what ---- */

int hwnas_boards_room(const hwnas_boards *boards)
{
    return boards->n && hwnas_runner_takes_ahead(boards->runners[0]) ? AHEAD * boards->n : 1;
}

void hwnas_boards_forget(hwnas_boards *boards)
{
    for (int i = 0; i < boards->n; i++)
        hwnas_runner_forget_ahead(boards->runners[i]);
}

static bool can_be_asked(const hwnas_boards *boards, const hwnas_runner *runner)
{
    return boards->n == 1 || hwnas_runner_is_ready(runner);
}

static hwnas_runner *find_idle(const hwnas_boards *boards)
{
    hwnas_runner *found = NULL;
    for (int i = 0; i < boards->n; i++) {
        hwnas_runner *runner = boards->runners[i];
        if (can_be_asked(boards, runner) &&
            (!found || hwnas_runner_n_ahead(runner) < hwnas_runner_n_ahead(found)))
            found = runner;
    }
    return found;
}

/* What a board has answered is there, whether the board still is or not. */
static hwnas_runner *find_holder(const hwnas_boards *boards, const hwnas_graph *graph,
                                 hwnas_precision precision)
{
    for (int i = 0; i < boards->n; i++) {
        hwnas_runner *runner = boards->runners[i];
        if (hwnas_runner_has_answer(runner, graph, precision) ||
            (can_be_asked(boards, runner) && hwnas_runner_has_ahead(runner, graph, precision)))
            return runner;
    }
    return NULL;
}

/* The first one, unless it cannot be reached: what decides in the end is measured there. */
static hwnas_runner *find_first(const hwnas_boards *boards)
{
    hwnas_runner *first = boards->runners[0];
    if (can_be_asked(boards, first))
        return first;
    return hwnas_runner_is_missing(first) ? find_idle(boards) : NULL;
}

static void look(const hwnas_boards *boards, const hwnas_measure_options *options)
{
    for (int i = 0; i < boards->n && boards->n > 1; i++)
        hwnas_runner_look(boards->runners[i], options);
}

hwnas_runner *hwnas_boards_take_ahead(const hwnas_boards *boards, const hwnas_graph *graph,
                                      const hwnas_measure_options *options)
{
    look(boards, options);
    hwnas_runner *holder = find_holder(boards, graph, options->exec.precision);
    return holder ? holder : find_idle(boards);
}

hwnas_status hwnas_boards_choose(hwnas_runner **out, const hwnas_boards *boards,
                                 const hwnas_graph *graph, const hwnas_measure_options *options)
{
    const struct timespec nap = {.tv_nsec = 20000000};
    const double since = hwnas_now();
    hwnas_runner *found = NULL;
    for (;;) {
        look(boards, options);
        found = find_holder(boards, graph, options->exec.precision);
        if (found || (found = find_first(boards)))
            break;
        if (options->stop && *options->stop)
            return hwnas_fail(HWNAS_E_INTERRUPTED, NULL, "interrupted while no board was there");
        if (hwnas_now() - since > HWNAS_LINK_PATIENCE)
            return hwnas_hint(hwnas_fail(HWNAS_E_LIBRARY, NULL,
                                         "none of the %d boards can be reached (for five minutes)",
                                         boards->n),
                              "a search goes on where it stopped when it is started again");
        nanosleep(&nap, NULL);
    }
    hwnas_runner_may_be_left(found, boards->n > 1);
    *out = found;
    return HWNAS_OK;
}

bool hwnas_boards_choose_again(hwnas_status *status, hwnas_losses *losses,
                               const hwnas_boards *boards, hwnas_runner *runner)
{
    const bool is_lost = *status != HWNAS_OK && hwnas_runner_is_lost(runner);
    hwnas_runner_may_be_left(runner, false);
    if (!is_lost)
        return false;
    hwnas_runner_leave(runner);
    if (*status == HWNAS_E_TIMEOUT && losses->was_silent)
        return false; /* on another board, too: it is the network */
    losses->was_silent |= *status == HWNAS_E_TIMEOUT;
    if (++losses->n > HWNAS_MOST_CUTS) {
        char message[sizeof hwnas_last_error()->message];
        snprintf(message, sizeof message, "%s", hwnas_last_error()->message);
        *status = hwnas_fail(HWNAS_E_CRASHED, NULL,
                             "%.800s (again and again while this was measured, on %d boards)",
                             message, boards->n);
        return false;
    }
    hwnas_log(HWNAS_LOG_WARNING, "%s; the other boards go on", hwnas_last_error()->message);
    hwnas_error_clear();
    return true;
}
