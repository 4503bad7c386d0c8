/* completions.h: what the completions of shells need to know, of the tables that --help is printed
 * from. What they do with it is in the folder completion/. */
#ifndef HWNAS_CLI_COMPLETIONS_H
#define HWNAS_CLI_COMPLETIONS_H

#include "cli/cli.h"

HWNAS_CHECKED hwnas_status hwnas_complete_bash(FILE *to);
HWNAS_CHECKED hwnas_status hwnas_complete_zsh(FILE *to);
HWNAS_CHECKED hwnas_status hwnas_complete_fish(FILE *to);

#endif
