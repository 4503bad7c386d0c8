/* fuzz.h: what the targets share. A target takes any bytes; it aborts where something is wrong. */
#ifndef HWNAS_FUZZ_FUZZ_H
#define HWNAS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "graph/graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Aborts, in a build with NDEBUG as well, and says why. */
#define FUZZ_CHECK(condition)                                                                      \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fuzz_abort(__FILE__, __LINE__, #condition);                                            \
    } while (0)
_Noreturn void fuzz_abort(const char *file, int line, const char *condition);

/* A failure has the message that it owes its user: one line, with its hint, of this status. */
void fuzz_check_message(hwnas_status status);
/* The same, and the failure is HWNAS_E_INPUT. */
void fuzz_check_refused(hwnas_status status);

/* The bytes as a file, alone in a folder of this process that is deleted at its end. The path is
 * borrowed; the next call deletes the file and whatever was left beside it. */
const char *fuzz_file(const uint8_t *data, size_t size, const char *name);

/* tests/fuzz/space.yaml, read once. */
const struct hwnas_space *fuzz_space(void);
/* Its first network, made once. */
const hwnas_graph *fuzz_graph(void);

#endif
