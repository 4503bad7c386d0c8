/* watch: the page of a study, served while the search runs. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include <hwnas/page.h>

#include "cli/page_server.h"

static const hwnas_usage usage = {
    .synopsis = "watch STUDY",
    .summary = "Serves what `hwnas report` writes while the search runs: a page that shows each "
               "trial\nsoon after it is finished. It ends with the search.",
    .notes = "It is read-only, for this machine alone (127.0.0.1), and for those who know the "
             "address,\nwhich has a token in it. The study may appear later.\n"
             "hwnas watch quickstart.db",
    .min_arguments = 1,
    .max_arguments = 1};

enum { LOOKS_A_SECOND = 5, FAREWELL = 6 /* seconds in which pages ask for the last data */ };

typedef struct watched {
    const char *path;
    hwnas_page_server *server;
    bool is_address;
    bool was_running, has_data, has_ended;
    double next;                 /* when it is looked at again */
    struct timespec modified[2]; /* of the file, and of SQLite's log, when it was looked at */
} watched;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* To ask a database for its lock takes a connection: a search there runs until the study says that
 * it has ended. */
static bool is_running(const watched *w)
{
    return w->is_address ? w->has_data && !w->has_ended : hwnas_study_is_running(w->path);
}

/* Whether the study's files changed since they were looked at. */
static bool has_changed(watched *w)
{
    static const char *const endings[] = {"", "-wal"};
    bool changed = w->is_address;
    for (int i = 0; i < 2; i++) {
        struct stat st = {0};
        char path[4096];
        snprintf(path, sizeof path, "%s%s", w->path, endings[i]);
        stat(path, &st);
        changed |= memcmp(&w->modified[i], &st.st_mtim, sizeof st.st_mtim) != 0;
        w->modified[i] = st.st_mtim;
    }
    return changed;
}

static hwnas_status read_data(char **out, const char *path)
{
    hwnas_study *study;
    hwnas_report *page;
    TRY(hwnas_study_read(&study, path));
    hwnas_status status = hwnas_page_of_study(&page, study);
    hwnas_study_close(study);
    TRY(status);
    status = hwnas_page_data(out, page);
    hwnas_report_free(page);
    return status;
}

static const char *state_of(const watched *w, bool runs)
{
    return runs || !w->has_data ? "running" : w->has_ended ? "ended" : "stopped";
}

/* Looks at the study, and shows what is new. What cannot be read may be half made: the next look
 * tells. The process that measures is to have the cores: making a page takes a tenth of the time at
 * most. */
static void look(watched *w, bool runs)
{
    char *data = NULL;
    const double begun = now();
    const bool has_news = has_changed(w) || runs != w->was_running;
    if (has_news && read_data(&data, w->path) != HWNAS_OK)
        memset(w->modified, 0, sizeof w->modified);
    if (data) {
        w->has_data = true;
        w->has_ended = !strstr(data, "\"ended\":null");
    }
    hwnas_page_server_show(w->server, data, state_of(w, w->is_address ? is_running(w) : runs));
    const double took = now() - begun;
    w->next = begun + (10 * took > 1 ? 10 * took : 1);
}

static void wait_a_moment(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000000 / LOOKS_A_SECOND}, NULL);
}

static hwnas_status fail_idle(const char *path)
{
    const hwnas_place place = {.file = path};
    return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, &place, "no search works on this study"),
                      "`hwnas report` writes it as a file; --stay serves it all the same");
}

static hwnas_status check_address(watched *w, bool stays)
{
    char *data;
    TRY(read_data(&data, w->path));
    const bool has_ended = !strstr(data, "\"ended\":null");
    hwnas_free(data);
    return has_ended && !stays ? fail_idle(w->path) : HWNAS_OK;
}

/* A file that is there is a study, and has a search unless the page is to stay; one that is not may
 * come. */
static hwnas_status check_study(watched *w, bool stays)
{
    struct stat st;
    hwnas_study *study;
    w->is_address = strstr(w->path, "://") != NULL;
    if (w->is_address)
        return check_address(w, stays);
    if (stat(w->path, &st)) {
        const hwnas_status status = hwnas_study_read(&study, w->path);
        if (status == HWNAS_E_USAGE) /* it never comes: the name is that of something else */
            return status;
        hwnas_say(stderr, "hwnas: %s is not there yet: the page waits for its search to begin\n",
                  w->path);
        return HWNAS_OK;
    }
    if (hwnas_study_is_running(w->path))
        return HWNAS_OK;
    TRY(hwnas_study_read(&study, w->path));
    hwnas_study_close(study);
    return stays ? HWNAS_OK : fail_idle(w->path);
}

/* Until the search has ended, or somebody wants it to. */
static void watch(watched *w, bool stays, const volatile sig_atomic_t *stop)
{
    double over = 0;
    while (!*stop && !(over > 0 && now() > over)) {
        const bool runs = is_running(w);
        if (now() >= w->next || runs != w->was_running)
            look(w, runs);
        if (runs)
            over = 0;
        else if ((w->was_running || w->has_data) && over <= 0 && !stays)
            over = now() + FAREWELL;
        w->was_running = runs;
        wait_a_moment();
    }
    if (!*stop)
        hwnas_say(stderr, "hwnas: %s\n",
                  w->has_ended ? "the search has ended"
                               : "no process works on the study any more: the search was stopped");
}

hwnas_status hwnas_cmd_watch(int argc, char **argv)
{
    watched w = {0};
    long port = 0;
    bool stays = false, done;
    int n;
    const hwnas_option options[] = {
        {"port", 'p', HWNAS_OPTION_INT, &port, "N", "to serve on (one that is free)"},
        {"stay", 0, HWNAS_OPTION_FLAG, &stays, NULL,
         "go on when the search has ended, until Ctrl-C"},
        {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, &w.path, &n, &done));
    if (done)
        return HWNAS_OK;
    if (port > 65535)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--port: %ld is no port, which are 1 to 65535",
                          port);
    TRY(check_study(&w, stays));
    const volatile sig_atomic_t *stop = hwnas_stop_on_signals();
    TRY(hwnas_page_server_start(&w.server, (int)port));
    setpriority(PRIO_PROCESS, 0, 10);
    hwnas_say(stdout, "%s\n", hwnas_page_server_address(w.server));
    fflush(stdout);
    watch(&w, stays, stop);
    hwnas_page_server_stop(w.server);
    return HWNAS_OK;
}
