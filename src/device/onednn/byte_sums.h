/* byte_sums.h: what becomes of sums of products of bytes: for each channel a factor and an offset,
 * then functions, then bytes again. For loops of ours where the processor has AVX2 and no products
 * of bytes that end in 32 bits (VNNI). */
#ifndef HWNAS_DEVICE_ONEDNN_BYTE_SUMS_H
#define HWNAS_DEVICE_ONEDNN_BYTE_SUMS_H

#include "device/onednn/groups.h"
#include "device/onednn/onednn_steps.h"
#include "device/onednn/posts.h"

#if defined __x86_64__
#include <immintrin.h>
#endif

/* Channels are taken in blocks; a block has sums in so many vectors. */
enum {
    HWNAS_SUMS_BLOCK = 32,
    HWNAS_SUMS_LANES = 8,
    HWNAS_SUMS_VECTORS = HWNAS_SUMS_BLOCK / HWNAS_SUMS_LANES,
};

typedef struct hwnas_byte_sums {
    int64_t n_channels, n_blocks;
    /* By block and place (hwnas_byte_sums_channel()): what a sum begins with, its factor, and what
     * is added to that product. */
    int32_t *begins;
    float *factors, *offsets;
    /* Functions behind, unless all are limits: then the results are in units of their bytes, and
     * the limits among those of the bytes. */
    int n_posts;
    hwnas_onednn_post posts[HWNAS_ONEDNN_MAX_POSTS];
    float unit, per_byte, low, high;
    int sum;          /* tensor of bytes that is added, or -1; before the limits */
    float sum_factor; /* from its bytes to the unit */
    int32_t zero;
    uint8_t blank; /* a byte that stands for 0 in the input */
    bool in_is_signed, out_is_signed, sum_is_signed;
} hwnas_byte_sums;

/* What may be done to the sums before they become bytes. */
typedef enum hwnas_byte_posts {
    HWNAS_BYTE_LIMITS,    /* they are cut off */
    HWNAS_BYTE_FUNCTIONS, /* functions of each value */
    HWNAS_BYTE_SUM,       /* another tensor of bytes is added, then they are cut off */
    HWNAS_BYTE_OTHER,     /* what these loops do not do */
} hwnas_byte_posts;

hwnas_byte_posts hwnas_byte_posts_of(const hwnas_onednn_group *group);
/* Whether a group is a convolution of an image that has its channels last, at least a block of them
 * in the result, which becomes bytes; and the processor one for these loops. */
bool hwnas_byte_sums_fit(const hwnas_onednn_source *source, const hwnas_onednn_group *group,
                         const hwnas_onednn_layout *layouts);
/* The kernel of such a group, [channels][...], whole numbers. Yours to free(). */
HWNAS_CHECKED hwnas_status hwnas_byte_kernel(float **out, const hwnas_onednn_source *source,
                                             const hwnas_onednn_group *group);
/* Also says what the step reads and writes, and counts its memory. `kernel`: as many weights for
 * each channel as are multiplied with unsigned bytes; signed ones are to be made unsigned by
 * flipping their top bit. */
HWNAS_CHECKED hwnas_status hwnas_byte_sums_init(hwnas_byte_sums *out, hwnas_onednn_step *step,
                                                const hwnas_onednn_source *source,
                                                const hwnas_onednn_group *group,
                                                const float *kernel, hwnas_arena *arena);
void hwnas_byte_sums_done(hwnas_byte_sums *sums);

/* The first channel of a block: the last one begins earlier where it would be cut off. */
static inline int64_t hwnas_byte_sums_first(const hwnas_byte_sums *s, int64_t block)
{
    const int64_t first = block * HWNAS_SUMS_BLOCK, last = s->n_channels - HWNAS_SUMS_BLOCK;
    return first < last ? first : last;
}

/* The channel at a place among those of all blocks. Instructions that bring bytes together do so in
 * each half of a vector by itself, which is why the places are no plain order. */
static inline int64_t hwnas_byte_sums_channel(const hwnas_byte_sums *s, int64_t place)
{
    const int64_t vector = place % HWNAS_SUMS_BLOCK / HWNAS_SUMS_LANES;
    const int64_t lane = place % HWNAS_SUMS_LANES;
    return hwnas_byte_sums_first(s, place / HWNAS_SUMS_BLOCK) + lane / 4 * (HWNAS_SUMS_BLOCK / 2) +
           vector * 4 + lane % 4;
}

#if defined __x86_64__
#define HWNAS_WITH_AVX2 __attribute__((target("avx2,fma")))
#define HWNAS_AVX2_INLINE HWNAS_WITH_AVX2 HWNAS_INLINE

/* What turns signed bytes into unsigned ones, and leaves those. */
HWNAS_AVX2_INLINE __m256i hwnas_byte_flip(bool is_signed)
{
    return _mm256_set1_epi8(is_signed ? INT8_MIN : 0);
}

HWNAS_AVX2_INLINE void hwnas_byte_sums_begin(__m256i sums[HWNAS_SUMS_VECTORS],
                                             const hwnas_byte_sums *s, int64_t block)
{
    const int32_t *begins = s->begins + block * HWNAS_SUMS_BLOCK;
    for (int i = 0; i < HWNAS_SUMS_VECTORS; i++)
        sums[i] = _mm256_loadu_si256((const __m256i *)(begins + i * HWNAS_SUMS_LANES));
}

/* Adds a block of another tensor's bytes. */
HWNAS_AVX2_INLINE void hwnas_byte_sums_add(__m256 x[HWNAS_SUMS_VECTORS], const uint8_t *from,
                                           const hwnas_byte_sums *s)
{
    const __m256i none = _mm256_setzero_si256();
    const __m256i bytes = _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)from),
                                           hwnas_byte_flip(s->sum_is_signed));
    const __m256i low = _mm256_unpacklo_epi8(bytes, none), high = _mm256_unpackhi_epi8(bytes, none);
    const __m256i whole[HWNAS_SUMS_VECTORS] = {
        _mm256_unpacklo_epi16(low, none), _mm256_unpackhi_epi16(low, none),
        _mm256_unpacklo_epi16(high, none), _mm256_unpackhi_epi16(high, none)};
    for (int i = 0; i < HWNAS_SUMS_VECTORS; i++)
        x[i] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(whole[i]), _mm256_set1_ps(s->sum_factor), x[i]);
}

/* Writes the bytes of a block of a pixel, whose first channel is at `pixel`; the same of what is
 * added at `other`, which may be `pixel`. `posts` is a constant where this is called: functions
 * that may be there keep sums out of registers. */
HWNAS_AVX2_INLINE void hwnas_byte_sums_store(uint8_t *pixel, const uint8_t *other,
                                             const __m256i sums[HWNAS_SUMS_VECTORS],
                                             const hwnas_byte_sums *s, int64_t block,
                                             hwnas_byte_posts posts)
{
    const float *factors = s->factors + block * HWNAS_SUMS_BLOCK;
    const float *offsets = s->offsets + block * HWNAS_SUMS_BLOCK;
    const int64_t channel = hwnas_byte_sums_first(s, block);
    const __m256 low = _mm256_set1_ps(s->low), high = _mm256_set1_ps(s->high);
    const __m256i zero = _mm256_set1_epi16((int16_t)s->zero);
    __m256 x[HWNAS_SUMS_VECTORS];
    __m256i whole[HWNAS_SUMS_VECTORS];
    for (int i = 0; i < HWNAS_SUMS_VECTORS; i++)
        x[i] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[i]),
                               _mm256_loadu_ps(factors + i * HWNAS_SUMS_LANES),
                               _mm256_loadu_ps(offsets + i * HWNAS_SUMS_LANES));
    if (posts == HWNAS_BYTE_SUM)
        hwnas_byte_sums_add(x, other + channel, s);
    for (int i = 0; i < HWNAS_SUMS_VECTORS && posts == HWNAS_BYTE_FUNCTIONS; i++) {
        hwnas_half values = x[i];
        for (int k = 0; k < s->n_posts; k++)
            hwnas_onednn_apply_post(&values, &s->posts[k]);
        x[i] = values * s->per_byte;
    }
    for (int i = 0; i < HWNAS_SUMS_VECTORS; i++)
        whole[i] = _mm256_cvtps_epi32(_mm256_min_ps(_mm256_max_ps(x[i], low), high));
    const __m256i a = _mm256_add_epi16(_mm256_packs_epi32(whole[0], whole[1]), zero);
    const __m256i b = _mm256_add_epi16(_mm256_packs_epi32(whole[2], whole[3]), zero);
    _mm256_storeu_si256((__m256i *)(pixel + channel),
                        s->out_is_signed ? _mm256_packs_epi16(a, b) : _mm256_packus_epi16(a, b));
}
#endif

#endif
