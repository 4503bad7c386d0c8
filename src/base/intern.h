/* intern.h: texts that there are few of, and that many things have. */
#ifndef HWNAS_BASE_INTERN_H
#define HWNAS_BASE_INTERN_H

/* The one copy of a text, which lives as long as the process. Safe in any thread. For names of
 * metrics and units: what is given is never forgotten. */
const char *hwnas_intern(const char *text);

#endif
