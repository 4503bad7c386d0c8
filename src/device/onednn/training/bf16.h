/* bf16.h: floats of 16 bits, for loops of ours. */
#ifndef HWNAS_DEVICE_ONEDNN_TRAINING_BF16_H
#define HWNAS_DEVICE_ONEDNN_TRAINING_BF16_H

#include <string.h>

#include "device/onednn/simd.h"

HWNAS_INLINE float hwnas_from_bf16(uint16_t x)
{
    const uint32_t bits = (uint32_t)x << 16;
    float out;
    memcpy(&out, &bits, sizeof out);
    return out;
}

/* To the nearest, ties to even. */
HWNAS_INLINE uint16_t hwnas_to_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#endif
