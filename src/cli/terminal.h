/* terminal.h: what is printed where lines have an end. */
#ifndef HWNAS_CLI_TERMINAL_H
#define HWNAS_CLI_TERMINAL_H

/* Of the terminal that a descriptor is; 0: it is none, or does not say. */
int hwnas_terminal_columns(int fd);
/* The same of its lines. */
int hwnas_terminal_lines(int fd);
/* What of a text fits before the last column of such a terminal (0: all of it), as one line without
 * power over it; to be given to free(). */
char *hwnas_cut_line(const char *text, int columns);

/* Prints a text to standard output; lines that are too long go on below, where their first words
 * stand. */
void hwnas_print_lines(const char *text, int columns);

#endif
