/* terminal.h: what is printed where lines have an end. */
#ifndef HWNAS_CLI_TERMINAL_H
#define HWNAS_CLI_TERMINAL_H

/* Of the terminal that a descriptor is; 0: it is none, or does not say. */
int hwnas_terminal_columns(int fd);

/* Prints a text to standard output; lines that are too long go on below, where their first words
 * stand. */
void hwnas_print_lines(const char *text, int columns);

#endif
