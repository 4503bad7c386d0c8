/* frames.h: bytes of a fuzzer as frames between a search and its runner.
 *
 * Lengths that fit their payloads are what a fuzzer cannot guess, so its bytes are pieces: each
 * begins with the magic "hwn1" and the digit of its type, and goes on until the next magic. A piece
 * with another character in the place of the digit goes out as it is: a head that may be wrong. */
#ifndef HWNAS_FUZZ_FRAMES_H
#define HWNAS_FUZZ_FRAMES_H

#include "base/str.h"
#include "measure/wire.h"

/* May write another payload than the fuzzer's to `out`; false: it did not. */
typedef bool (*frames_edit)(hwnas_str *out, hwnas_frame_type type, const char *payload,
                            size_t length);

/* `edit` may be NULL. `out` is to be done with hwnas_str_done(). */
void frames_write(hwnas_str *out, const uint8_t *data, size_t size, frames_edit edit);

#endif
