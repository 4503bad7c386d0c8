/* sized_options.h: options of a public function, from a program that may have been built with
 * another version of the header. */
#ifndef HWNAS_BASE_SIZED_OPTIONS_H
#define HWNAS_BASE_SIZED_OPTIONS_H

#include <stddef.h>

#include "base/status.h"

/* Copies the options `given` (NULL: all defaults) into `out`, a struct of `size` bytes whose first
 * member is its size: what a smaller struct lacks is 0. A larger one whose tail is not 0 asks for
 * what this library does not know: HWNAS_E_UNSUPPORTED. */
HWNAS_CHECKED hwnas_status hwnas_sized_options_take(void *out, size_t size, const void *given);

#define TAKE_OPTIONS(out, given) hwnas_sized_options_take((out), sizeof *(out), (given))

#endif
