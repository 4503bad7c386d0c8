#define _GNU_SOURCE 1 /* strcasestr() */
#include "measure/runner_link.h"

#include <hwnas/common.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/file.h"
#include "base/home.h"
#include "base/mem.h"
#include "base/str.h"
#include "measure/runner.h"

enum { MOST_WORDS = 16, LOST = 255, NO_PROGRAM = 127, NOT_EXECUTABLE = 126 };

typedef struct kind kind;

struct hwnas_link {
    const kind *kind;
    char *where, *device;
};

struct kind {
    const char *name;             /* of the device; NULL: every other one */
    bool is_whole;                /* it needs no argument */
    bool is_own;                  /* what is started runs our code, with all of its abilities */
    const char *(*program)(void); /* that starts the runner; NULL: it is always there */
    const char *program_hint;
    hwnas_status (*read)(hwnas_link *out, const char *argument);
    void (*list)(char **words, const hwnas_link *link);
    hwnas_status (*explain)(bool *may_return, const hwnas_link *link, int wait_status,
                            const char *line, bool is_starting);
};

/* ---- Our own child ---- */

static hwnas_status read_own(hwnas_link *out, const char *spelling)
{
    out->where = hwnas_strdup("");
    out->device = hwnas_strdup(spelling);
    return HWNAS_OK;
}

static void list_own(char **words, const hwnas_link *link)
{
    (void)link;
    *words++ = hwnas_strdup("hwnas");
    *words = hwnas_strdup("runner");
}

/* ---- Anybody's program ---- */

static hwnas_status read_command(hwnas_link *out, const char *argument)
{
    if (!argument[strspn(argument, " \t")])
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL, "device 'runner' needs a command"),
                          "write runner:COMMAND (docs/runner-protocol.md)");
    out->where = hwnas_strdup(argument);
    out->device = hwnas_strdup("");
    return HWNAS_OK;
}

static void list_command(char **words, const hwnas_link *link)
{
    *words++ = hwnas_strdup("/bin/sh");
    *words++ = hwnas_strdup("-c");
    *words = hwnas_strdup(link->where);
}

static hwnas_status explain_command(bool *may_return, const hwnas_link *link, int wait_status,
                                    const char *line, bool is_starting)
{
    (void)may_return;
    const int code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 0;
    if (!is_starting || (code != NO_PROGRAM && code != NOT_EXECUTABLE))
        return HWNAS_OK;
    return hwnas_hint(
        hwnas_fail(HWNAS_E_NOT_FOUND, NULL, "cannot start the runner '%s': %s", link->where, line),
        "the shell must find it from the directory that hwnas is started in");
}

/* ---- PyTorch on this machine ---- */

static hwnas_status read_torch(hwnas_link *out, const char *argument)
{
    out->where = hwnas_strdup("");
    out->device = hwnas_printf("%s%s%s", out->kind->name, *argument ? ":" : "", argument);
    return HWNAS_OK;
}

static const char *variable(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
}

static const char TORCH_HINT[] =
    "install Debian's python3-torch, or name a Python that has PyTorch in $HWNAS_TORCH_PYTHON";

/* Python becomes our runner by this library. */
static void list_torch(char **words, const hwnas_link *link)
{
    (void)link;
    *words++ = hwnas_strdup(hwnas_torch_python());
    *words++ = hwnas_printf("%s/runners/torch_runner.py", hwnas_data_root());
    *words = hwnas_strdup(hwnas_library_file());
}

/* ---- hwnas on another machine ---- */

static const kind *find_kind(const char *spelling);

/* HOST, or HOST/DEVICE. What ssh would take for an option is refused, and what is elsewhere again.
 */
static hwnas_status read_ssh(hwnas_link *out, const char *argument)
{
    const size_t n = strcspn(argument, "/");
    if (!n || *argument == '-' || *argument == '@' || argument[n - 1] == '@' ||
        argument[strcspn(argument, " \t\n'\"\\;|&<>$`")])
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, NULL, "'ssh:%s' names no machine", argument),
            "write ssh:HOST or ssh:USER@HOST, with a device ssh:HOST/ort (docs/devices.md)");
    if (memchr(argument, '+', n))
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL,
                                     "'ssh:%s' names several boards, which only a search takes",
                                     argument),
                          "name one of them");
    const char *device = argument[n] && argument[n + 1] ? argument + n + 1 : "cpu";
    if (find_kind(device)->name)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL,
                                     "behind ssh hwnas runs its own devices alone, not '%s'",
                                     device),
                          "write ssh:%.*s, or ssh:%.*s/ort", (int)n, argument, (int)n, argument);
    out->where = hwnas_printf("%.*s", (int)n, argument);
    out->device = hwnas_strdup(device);
    return HWNAS_OK;
}

static const char *ssh_program(void)
{
    return variable("HWNAS_SSH", "ssh");
}

static const char SSH_HINT[] = "install Debian's openssh-client, or name an ssh in $HWNAS_SSH";

/* Nobody is asked for a password, a machine that is silent for half a minute counts as gone, and no
 * key of the keyboard means anything. The shell on the other side makes an exit status of a signal,
 * which ssh would tell as 255, as it does a lost connection. */
static void list_command_there(char **words, const hwnas_link *link, char *command)
{
    static const char *const options[] = {
        "-T",
        "-oBatchMode=yes",
        "-oConnectTimeout=20",
        "-oServerAliveInterval=10",
        "-oServerAliveCountMax=3",
        "-oEscapeChar=none",
    };
    *words++ = hwnas_strdup(ssh_program());
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        *words++ = hwnas_strdup(options[i]);
    *words++ = hwnas_strdup("--");
    *words++ = hwnas_strdup(link->where);
    *words = command;
}

static void list_ssh(char **words, const hwnas_link *link)
{
    list_command_there(words, link,
                       hwnas_printf("sh -c 'PATH=\"$HOME/" HWNAS_RUNNER_THERE ":$PATH\"; \"$0\" "
                                    "runner serve; exit $?' %s",
                                    variable("HWNAS_SSH_PROGRAM", "hwnas")));
}

/* What ssh says when nobody can help but the user. */
static const struct {
    const char *words, *message, *hint;
    bool may_pass; /* of a machine that has been reached: it restarts, say */
} refusals[] = {
    {"Host key verification failed", "the host key of '%s' is not known here, or has changed",
     "compare it, and connect once by hand: 'ssh %s' says what is wrong", false},
    {"Permission denied", "'%s' does not let you in without a password",
     "is the user's name right (ssh:USER@HOST)? Then give it your key: ssh-copy-id %s", false},
    {"Could not resolve hostname", "there is no machine '%s'",
     "names and short cuts are those of ssh: try 'ssh %s'", true},
};

static hwnas_status refuse_ssh(const hwnas_link *link, const char *line)
{
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        if (!strstr(line, refusals[i].words) || (refusals[i].may_pass && hwnas_link_was_open(link)))
            continue;
        char *message = hwnas_printf(refusals[i].message, link->where);
        char *hint = hwnas_printf(refusals[i].hint, link->where);
        hwnas_status status =
            hwnas_hint(hwnas_fail(HWNAS_E_LIBRARY, NULL, "%s: %s", message, line), "%s", hint);
        free(message);
        free(hint);
        return status;
    }
    return HWNAS_OK;
}

static hwnas_status explain_start(const hwnas_link *link, int code, const char *line)
{
    const char *program = variable("HWNAS_SSH_PROGRAM", "hwnas");
    if (code == NO_PROGRAM || code == NOT_EXECUTABLE)
        return hwnas_hint(
            hwnas_fail(HWNAS_E_LIBRARY, NULL, "there is no program '%s' on '%s': %s", program,
                       link->where, line),
            "put a runner there with 'hwnas runner install ssh:%s', or say where it is: "
            "HWNAS_SSH_PROGRAM=/path/hwnas",
            link->where);
    return hwnas_hint(
        hwnas_fail(HWNAS_E_LIBRARY, NULL, "'%s' on '%s' ended with status %d as it was started: %s",
                   program, link->where, code, line),
        "it must be a hwnas that has `runner serve`; this one is %s", hwnas_version());
}

static hwnas_status explain_ssh(bool *may_return, const hwnas_link *link, int wait_status,
                                const char *line, bool is_starting)
{
    const int code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : LOST;
    *may_return = false;
    if (code != LOST)
        return is_starting && code && code < 128 ? explain_start(link, code, line) : HWNAS_OK;
    TRY(refuse_ssh(link, line));
    *may_return = hwnas_link_was_open(link);
    if (*may_return || !is_starting)
        return hwnas_fail(HWNAS_E_LIBRARY, NULL, "the link to '%s' was lost%s%s", link->where,
                          *line ? ": " : "", line);
    return hwnas_hint(hwnas_fail(HWNAS_E_LIBRARY, NULL, "cannot reach '%s'%s%s", link->where,
                                 *line ? ": " : "", line),
                      "'ssh %s true' must work without a password", link->where);
}

/* ---- All ---- */

static const kind kinds[] = {
    {"runner", false, false, NULL, NULL, read_command, list_command, explain_command},
    {"ssh", false, false, ssh_program, SSH_HINT, read_ssh, list_ssh, explain_ssh},
    {"torch", true, true, hwnas_torch_python, TORCH_HINT, read_torch, list_torch, NULL},
    {"torch-cuda", true, true, hwnas_torch_python, TORCH_HINT, read_torch, list_torch, NULL},
    {NULL, true, true, NULL, NULL, read_own, list_own, NULL}, /* the last, which takes all */
};

static const kind *find_kind(const char *spelling)
{
    const size_t n = strcspn(spelling, ":");
    const kind *k = kinds;
    while (k->name && (strlen(k->name) != n || strncmp(k->name, spelling, n) != 0))
        k++;
    return k;
}

bool hwnas_link_needs_argument(const char *spelling)
{
    return !find_kind(spelling)->is_whole;
}

hwnas_status hwnas_link_check_program(const char *spelling)
{
    const kind *k = find_kind(spelling);
    char *found = k->program ? hwnas_program_find(k->program()) : NULL;
    const bool is_there = !k->program || found;
    free(found);
    return is_there ? HWNAS_OK
                    : hwnas_hint(hwnas_fail(HWNAS_E_NOT_FOUND, NULL, "there is no program '%s'",
                                            k->program()),
                                 "%s", k->program_hint);
}

const char *hwnas_link_program_hint(const hwnas_link *link)
{
    return link->kind->program_hint;
}

hwnas_status hwnas_link_new(hwnas_link **out, const char *spelling)
{
    const kind *k = find_kind(spelling);
    const size_t n = k->name ? strlen(k->name) : 0;
    hwnas_link *link = hwnas_alloc(sizeof *link);
    link->kind = k;
    const hwnas_status status = k->read(link, spelling + n + (k->name && spelling[n] == ':'));
    if (status == HWNAS_OK)
        *out = link;
    else
        hwnas_link_free(link);
    return status;
}

void hwnas_link_free(hwnas_link *link)
{
    if (!link)
        return;
    free(link->where);
    free(link->device);
    free(link);
}

bool hwnas_link_is_own(const hwnas_link *link)
{
    return link->kind->is_own;
}

bool hwnas_link_is_itself(const hwnas_link *link)
{
    return !link->kind->name;
}

bool hwnas_link_is_far(const hwnas_link *link)
{
    return link->kind->read == read_ssh;
}

const char *hwnas_link_device(const hwnas_link *link)
{
    return link->device;
}

const char *hwnas_link_where(const hwnas_link *link)
{
    return link->where;
}

char **hwnas_link_words(const hwnas_link *link)
{
    char **words = hwnas_alloc((MOST_WORDS + 1) * sizeof *words);
    link->kind->list(words, link);
    return words;
}

char **hwnas_link_words_there(const hwnas_link *link, const char *script)
{
    char **words = hwnas_alloc((MOST_WORDS + 1) * sizeof *words);
    list_command_there(words, link, hwnas_printf("sh -c '%s'", script));
    return words;
}

void hwnas_link_free_words(char **words)
{
    for (size_t i = 0; words && words[i]; i++)
        free(words[i]);
    free(words);
}

/* Machines that have answered, so that one that does not answer now is worth waiting for. They stay
 * until the process ends. */
static struct reached {
    struct reached *next;
    char *where;
} * reached;
static pthread_mutex_t reached_lock = PTHREAD_MUTEX_INITIALIZER;

static bool find_reached(const char *where)
{
    const struct reached *r = reached;
    while (r && strcmp(r->where, where) != 0)
        r = r->next;
    return r != NULL;
}

bool hwnas_link_was_open(const hwnas_link *link)
{
    pthread_mutex_lock(&reached_lock);
    const bool was_open = find_reached(link->where);
    pthread_mutex_unlock(&reached_lock);
    return was_open;
}

void hwnas_link_is_open(hwnas_link *link)
{
    if (!hwnas_link_is_far(link))
        return;
    pthread_mutex_lock(&reached_lock);
    if (!find_reached(link->where)) {
        struct reached *r = hwnas_alloc(sizeof *r);
        *r = (struct reached){.next = reached, .where = hwnas_strdup(link->where)};
        reached = r;
    }
    pthread_mutex_unlock(&reached_lock);
}

hwnas_status hwnas_link_explain(bool *may_return, const hwnas_link *link, int wait_status,
                                const char *line, bool is_starting)
{
    *may_return = false;
    return link->kind->explain
               ? link->kind->explain(may_return, link, wait_status, line, is_starting)
               : HWNAS_OK;
}
