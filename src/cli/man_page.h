/* man_page.h: pages of the manual, in the macros of man(7), of what --help prints. */
#ifndef HWNAS_CLI_MAN_PAGE_H
#define HWNAS_CLI_MAN_PAGE_H

#include "cli/cli.h"
#include "cli/topics.h"

/* hwnas(1), which lists the commands and the topics. */
void hwnas_man_program(FILE *to);
/* hwnas-COMMAND(1). */
HWNAS_CHECKED hwnas_status hwnas_man_command(FILE *to, const hwnas_command *row);
/* hwnas-TOPIC(7). */
void hwnas_man_topic(FILE *to, const hwnas_topic *topic);

#endif
