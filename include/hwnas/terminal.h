/* terminal.h: for programs that print texts of reports to a terminal. */
#ifndef HWNAS_PUBLIC_TERMINAL_H
#define HWNAS_PUBLIC_TERMINAL_H

#include <hwnas/common.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Tables of reports that are made or written from here on have lines of at most so many columns: what
 * does not fit of a row stands in lines below it. 0, as at first: no end. For the whole process. */
HWNAS_API void hwnas_set_columns(int columns);

#ifdef __cplusplus
}
#endif
#endif
