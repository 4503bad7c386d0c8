/* crew.h: several of this program at once, which search together. */
#ifndef HWNAS_CLI_CREW_H
#define HWNAS_CLI_CREW_H

#include "cli/cli.h"

enum { HWNAS_MAX_CREW = 1024 };

typedef struct hwnas_crew {
    int n;
    struct hwnas_crew_member *members;
} hwnas_crew;

/* What `--workers` may be. */
HWNAS_CHECKED hwnas_status hwnas_crew_check(long n);
/* Starts n - 1 others with the same command line; none in one of these others. They get each signal
 * that this process gets, and SIGTERM when it dies. */
HWNAS_CHECKED hwnas_status hwnas_crew_start(hwnas_crew *out, long n, int argc, char **argv);
/* Whether this process was started so. */
bool hwnas_crew_is_member(void);
/* Waits for the others and says which of them failed. Where this one has failed (`status`), or was
 * asked to stop, they are stopped first. */
void hwnas_crew_end(hwnas_crew *crew, hwnas_status status);

#endif
