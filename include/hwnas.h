/* hwnas.h: the public face of libhwnas. docs/library.md shows it at work.
 *
 * Handles. hwnas_X_open() gives a handle, hwnas_X_close() takes it back; what is made of a handle
 * (an executable, a result) is given back with hwnas_X_free(). Both accept NULL. A handle belongs
 * to one thread at a time; different handles are independent, unless one was made with the other,
 * which then must stay open and is the same thread's: a network of an open space, an executable of
 * a device.
 *
 * Failures. A function that can fail returns a hwnas_status; a status other than HWNAS_OK comes
 * with a message that hwnas_last_error() gives in the same thread. Outputs come first, are called
 * `out`, and are untouched on failure. The library never prints.
 *
 * Ownership. Text that comes through `out`, or is returned as `char *`, is yours: hwnas_free().
 * What is returned as `const` is borrowed, as long as its handle is open. Text that is given is
 * copied.
 *
 * Options. A struct of options begins with its own size, which HWNAS_X_OPTIONS_INIT sets; what a
 * smaller one of an older header lacks has its default, as has each field that is 0. NULL: all
 * defaults. A size of 0 is taken for that of the library.
 *
 * Numbers are SI: seconds, bytes, counts. Text is UTF-8; JSON is described in docs/json.md. The
 * locale of the program does not matter, and is not changed.
 *
 * Networks are named as in the program: by a space (a YAML file, the name of one that ships or of a
 * network of the zoo, with settings behind it as in "bert:length=64"; or NAME.onnx) and a code
 * ("e=1666666,k=...", "22212220"; NULL where the space leaves nothing to choose).
 *
 * Cost. What is said to be cheap takes micro- to milliseconds; the rest is said where it is. */
#ifndef HWNAS_H
#define HWNAS_H

#include <hwnas/common.h>
#include <hwnas/network.h>
#include <hwnas/exec.h>
#include <hwnas/estimate.h>
#include <hwnas/measure.h>
#include <hwnas/data.h>
#include <hwnas/search.h>
#include <hwnas/study.h>

#endif
