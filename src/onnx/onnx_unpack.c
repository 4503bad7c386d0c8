/* onnx_unpack.c: bytes -> protobuf-c's classes, for bytes that nobody vouches for.
 *
 * protobuf-c checks lengths, but it recurses as deep as the messages nest, and makes a structure of
 * some 200 bytes from an empty message of two. So the nesting is checked beforehand, and what it
 * allocates is kept in proportion to the file. */
#include "onnx/onnx_priv.h"

#include <stdlib.h>

/* A shape in an attribute's subgraph, the deepest thing in a sane file, is at 11. */
#define MAX_DEPTH 32

/* A dimension takes 4 bytes in the file and 56 in memory; most of a model is weights at 1 to 1. */
#define MEMORY_PER_BYTE 32
#define MEMORY_AT_LEAST ((size_t)1 << 20)

static bool read_varint(uint64_t *out, const uint8_t **at, const uint8_t *end)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && *at < end; shift += 7) {
        uint8_t byte = *(*at)++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *out = value;
            return true;
        }
    }
    return false;
}

static const ProtobufCMessageDescriptor *message_in(const ProtobufCMessageDescriptor *type,
                                                    uint64_t tag)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(type, (unsigned)tag);
    return field && field->type == PROTOBUF_C_TYPE_MESSAGE ? field->descriptor : NULL;
}

/* Walks through a message; gives the place where it is broken or nests too deep, or NULL. */
static const uint8_t *find_break(const ProtobufCMessageDescriptor *type, const uint8_t *at,
                                 const uint8_t *end, int depth)
{
    enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

    while (at < end) {
        const uint8_t *start = at;
        uint64_t key, length = 0;
        if (!read_varint(&key, &at, end) || key >> 3 == 0 || key >> 3 >= 1u << 29)
            return start;
        switch (key & 7) {
        case VARINT:
            if (!read_varint(&(uint64_t){0}, &at, end))
                return start;
            break;
        case FIXED64:
            length = 8;
            break;
        case FIXED32:
            length = 4;
            break;
        case BYTES:
            if (!read_varint(&length, &at, end))
                return start;
            break;
        default:
            return start;
        }
        if (length > (size_t)(end - at))
            return start;
        const ProtobufCMessageDescriptor *inner =
            (key & 7) == BYTES ? message_in(type, key >> 3) : NULL;
        if (inner) {
            const uint8_t *broken =
                depth < MAX_DEPTH ? find_break(inner, at, at + length, depth + 1) : start;
            if (broken)
                return broken;
        }
        at += length;
    }
    return NULL;
}

/* Takes from what may still be allocated; freeing gives nothing back. */
static void *budget_alloc(void *budget, size_t size)
{
    size_t *left = budget;
    if (size > *left)
        return NULL;
    *left -= size;
    return malloc(size);
}

static void budget_free(void *budget, void *p)
{
    (void)budget;
    free(p);
}

hwnas_status hwnas_onnx_unpack(Onnx__ModelProto **out, const void *bytes, size_t length)
{
    const uint8_t *start = bytes;
    const uint8_t *broken =
        length ? find_break(&onnx__model_proto__descriptor, start, start + length, 0) : start;
    if (broken)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL, "not an ONNX model: broken at byte %zu",
                                     (size_t)(broken - start)),
                          "a file that was cut short looks like this, too");

    size_t budget = length > SIZE_MAX / MEMORY_PER_BYTE ? SIZE_MAX : length * MEMORY_PER_BYTE;
    if (budget < MEMORY_AT_LEAST)
        budget = MEMORY_AT_LEAST;
    ProtobufCAllocator allocator = {budget_alloc, budget_free, &budget};
    Onnx__ModelProto *model = onnx__model_proto__unpack(&allocator, length, bytes);
    if (!model)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "not an ONNX model: its fields do not fit ONNX's");
    *out = model;
    return HWNAS_OK;
}
