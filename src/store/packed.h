/* packed.h: events of a study's history as bytes.
 *
 * Of a large study each event is read again and again, by who looks at it and who goes on with it,
 * and rows of tables take a microsecond each. What happened never changes; so, when there are
 * HWNAS_PACKED of them, they are written once more as one row of bytes, without details. The tables
 * stay what is true: where a pack is missing or not as it was written, they are read instead. */
#ifndef HWNAS_STORE_PACKED_H
#define HWNAS_STORE_PACKED_H

#include "base/str.h"
#include "store/store.h"

enum { HWNAS_PACKED = 1024 };

/* Adds the events to `out`. False: they do not fit, as they have more than 255 kinds of values. */
bool hwnas_pack(hwnas_str *out, const hwnas_event *events, size_t n);

typedef struct hwnas_unpacker hwnas_unpacker;

/* `bytes`, of which there are n, are borrowed. NULL: they are no such events, of another format, or
 * not as they were written. */
hwnas_unpacker *hwnas_unpacker_new(const void *bytes, size_t n);
/* The next one, whose texts and values live until the one after it; *is_there false: that was the
 * last. False: it is damaged. */
bool hwnas_unpack(hwnas_event *out, bool *is_there, hwnas_unpacker *unpacker);
void hwnas_unpacker_free(hwnas_unpacker *unpacker); /* accepts NULL */

#endif
