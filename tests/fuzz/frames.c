#define _GNU_SOURCE 1 /* memmem() */
#include "frames.h"

#include <string.h>

static const char MAGIC[] = "hwn1";
enum { MAGIC_LENGTH = sizeof MAGIC - 1 };

static void write_piece(hwnas_str *out, const char *piece, size_t size, frames_edit edit)
{
    hwnas_str edited = {0};
    unsigned char head[HWNAS_FRAME_HEAD];
    const int type = size ? piece[0] - '0' : 0;
    if (type < HWNAS_FRAME_OPEN || type > HWNAS_FRAME_STOP) {
        hwnas_str_addn(out, MAGIC, MAGIC_LENGTH);
        hwnas_str_addn(out, piece, size);
        return;
    }
    hwnas_wire_frame frame = {.type = (hwnas_frame_type)type, .length = size - 1};
    const bool is_edited = edit && edit(&edited, frame.type, piece + 1, size - 1);
    if (is_edited)
        frame.length = edited.n;
    hwnas_frame_encode(head, frame);
    hwnas_str_addn(out, (const char *)head, sizeof head);
    hwnas_str_addn(out, is_edited ? edited.s : piece + 1, (size_t)frame.length);
    hwnas_str_done(&edited);
}

void frames_write(hwnas_str *out, const uint8_t *data, size_t size, frames_edit edit)
{
    const char *at = (const char *)data, *end = at + size;
    const char *next = size ? memmem(at, size, MAGIC, MAGIC_LENGTH) : NULL;
    hwnas_str_addn(out, at, next ? (size_t)(next - at) : size);
    while (next) {
        at = next + MAGIC_LENGTH;
        next = memmem(at, (size_t)(end - at), MAGIC, MAGIC_LENGTH);
        write_piece(out, at, (size_t)((next ? next : end) - at), edit);
    }
}
