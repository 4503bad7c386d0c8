/* runner_link.h: how a runner is reached: as a child of ours, as anybody's program
 * (`runner:COMMAND`), PyTorch's (`torch`, `torch-cuda`), or as hwnas elsewhere, through ssh
 * (`ssh:HOST`). What is said is the same (docs/runner-protocol.md). */
#ifndef HWNAS_MEASURE_RUNNER_LINK_H
#define HWNAS_MEASURE_RUNNER_LINK_H

#include <stdbool.h>

#include "base/status.h"

typedef struct hwnas_link hwnas_link;

/* Where a board has the runner that was put there, in its user's home. */
#define HWNAS_RUNNER_THERE ".local/lib/hwnas-runner"

/* Of a device's spelling; opens nothing. */
HWNAS_CHECKED hwnas_status hwnas_link_new(hwnas_link **out, const char *spelling);
void hwnas_link_free(hwnas_link *link); /* accepts NULL */

/* The device's name alone names no runner: `ssh`, `runner`. */
bool hwnas_link_needs_argument(const char *spelling);

/* Whether what starts runners of this kind is here: ssh, or Python; whatever their argument. */
HWNAS_CHECKED hwnas_status hwnas_link_check_program(const char *spelling);
/* What to do where the program that starts the runner is not here; NULL: nothing is known. */
const char *hwnas_link_program_hint(const hwnas_link *link);

/* The runner is a child on this machine that runs our code, on cores chosen here. */
bool hwnas_link_is_own(const hwnas_link *link);
/* That is `hwnas` itself, started once more; else what hwnas_link_words() names first. */
bool hwnas_link_is_itself(const hwnas_link *link);
/* The runner is on another machine. */
bool hwnas_link_is_far(const hwnas_link *link);
/* The device that the other side is to open; borrowed. */
const char *hwnas_link_device(const hwnas_link *link);
/* The machine or the command; "" for our own; borrowed. */
const char *hwnas_link_where(const hwnas_link *link);
/* What is started, NULL-terminated; yours to free with hwnas_link_free_words(). */
char **hwnas_link_words(const hwnas_link *link);
/* What runs a shell script, which has no single quotes, on the machine of a link that is far. */
char **hwnas_link_words_there(const hwnas_link *link, const char *script);
void hwnas_link_free_words(char **words);

/* The runner's first answer has come: the other side is there. */
void hwnas_link_is_open(hwnas_link *link);
/* Whether it has ever been, for any runner of this process. */
bool hwnas_link_was_open(const hwnas_link *link);

/* The failure where the end of what was started is the link's, not the runner's; HWNAS_OK where it
 * is not. `line` is what was said last on standard error; `is_starting`: nothing has been answered
 * yet. `may_return`: it is worth trying again. */
HWNAS_CHECKED hwnas_status hwnas_link_explain(bool *may_return, const hwnas_link *link,
                                              int wait_status, const char *line, bool is_starting);

#endif
