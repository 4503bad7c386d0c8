/* frame.h: some lines at the bottom of the terminal that show how far something is, each time drawn
 * over what stood there. */
#ifndef HWNAS_CLI_FRAME_H
#define HWNAS_CLI_FRAME_H

#include <stdbool.h>

/* Standard error is a terminal that can draw over what it has (TERM is not "dumb"). */
bool hwnas_frame_is_possible(void);
/* Lines with \n between them, no longer than the terminal is wide and fewer than it is high, in
 * place of those before; NULL: none. They may have sequences that colour them, and no other
 * control characters. All of it is one write, and nothing is erased before it is written over, so
 * that it does not flicker. */
void hwnas_frame_show(const char *lines);

#endif
