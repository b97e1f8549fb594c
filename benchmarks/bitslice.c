/* Joint histograms of Hamming distance and relevance by bit-slicing, written by hand: how near is the product?

   The same layout and the same steps as tiebench/_bitslice.py (which explains them), by a C compiler: all planes,
   octets and adders are unrolled for each width. With AVX-512 a full adder is two instructions (vpternlogq), the
   selection of an octet one or two, and the bits of eight words are counted by one (vpopcntq); elsewhere the
   compiler's vector extensions serve.

   cc -O3 -march=native -shared -fPIC */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if defined(__AVX512F__) && defined(__AVX512VPOPCNTDQ__)
#include <immintrin.h>
#define AVX512 1
#endif

#define LANES 8
#define VECTOR_ITEMS 512
#define BLOCK_VECTORS 16
#define PLANES 7

typedef uint64_t vec __attribute__((vector_size(64)));
typedef uint64_t unaligned_vec __attribute__((vector_size(64), aligned(8)));
#define INLINE static inline __attribute__((always_inline))

INLINE vec load(const uint64_t *p) { return *(const unaligned_vec *)p; }
INLINE void store(uint64_t *p, vec x) { *(unaligned_vec *)p = x; }

#ifdef AVX512
INLINE vec sum3(vec a, vec b, vec c)
{
    return (vec)_mm512_ternarylogic_epi64((__m512i)a, (__m512i)b, (__m512i)c, 0x96);
}
INLINE vec carry3(vec a, vec b, vec c)
{
    return (vec)_mm512_ternarylogic_epi64((__m512i)a, (__m512i)b, (__m512i)c, 0xe8);
}
INLINE vec popcount(vec a) { return (vec)_mm512_popcnt_epi64((__m512i)a); }
#else
INLINE vec sum3(vec a, vec b, vec c) { return a ^ b ^ c; }
INLINE vec carry3(vec a, vec b, vec c) { return (a & b) | ((a ^ b) & c); }
INLINE vec popcount(vec a)
{
    vec n;
    for (int lane = 0; lane < LANES; lane++)
        n[lane] = (uint64_t)__builtin_popcountll(a[lane]);
    return n;
}
#endif

INLINE vec broadcast(uint64_t word) { return (vec){word, word, word, word, word, word, word, word}; }

/* *low + b + c -> *low, and what is carried */
INLINE vec add(vec *low, vec b, vec c)
{
    vec carry = carry3(*low, b, c);
    *low = sum3(*low, b, c);
    return carry;
}

/* Add a plane worth 2^k to the digits k, k + 1, ... */
INLINE void ripple(vec *digits, int k, vec carry)
{
    for (; k < PLANES; k++) {
        vec next = digits[k] & carry;
        digits[k] ^= carry;
        carry = next;
    }
}

/* Eight planes x into the digits: `eights` comes back, worth 8. */
INLINE vec add8(vec *digits, const vec *x)
{
    vec twos_a = add(&digits[0], x[0], x[1]);
    vec twos_b = add(&digits[0], x[2], x[3]);
    vec fours_a = add(&digits[1], twos_a, twos_b);
    twos_a = add(&digits[0], x[4], x[5]);
    twos_b = add(&digits[0], x[6], x[7]);
    vec fours_b = add(&digits[1], twos_a, twos_b);
    return add(&digits[2], fours_a, fours_b);
}

/* Digits of the distances of some vectors to two queries, which share each load of a plane. */
INLINE void distances(const uint64_t *planes, const uint64_t *masks, const uint64_t *other_masks, int vectors,
                      uint64_t *scratch, uint64_t *other_scratch, const int octets)
{
    for (int v = 0; v < vectors; v++) {
        const uint64_t *from = planes + (int64_t)v * 8 * octets * LANES;
        vec a[PLANES] = {0}, b[PLANES] = {0}, held_a = {0}, held_b = {0};
        for (int octet = 0; octet < octets; octet++) {
            vec x[8], y[8];
            for (int bit = 0; bit < 8; bit++) {
                vec plane = load(from + (8 * octet + bit) * LANES);
                x[bit] = plane ^ broadcast(masks[8 * octet + bit]);
                y[bit] = plane ^ broadcast(other_masks[8 * octet + bit]);
            }
            vec eights_a = add8(a, x), eights_b = add8(b, y);
            if (octet % 2 == 0 && octet + 1 < octets) {
                held_a = eights_a, held_b = eights_b;
            } else if (octet % 2) {
                ripple(a, 4, add(&a[3], held_a, eights_a));
                ripple(b, 4, add(&b[3], held_b, eights_b));
            } else {
                ripple(a, 3, eights_a);
                ripple(b, 3, eights_b);
            }
        }
        for (int k = 0; k < PLANES; k++) {
            store(scratch + (v * PLANES + k) * LANES, a[k]);
            store(other_scratch + (v * PLANES + k) * LANES, b[k]);
        }
    }
}

#define SHUFFLE(x, y, ...) __builtin_shuffle(x, y, (vec){__VA_ARGS__})

/* Lane k of the result is the sum of the lanes of sums[k]. */
INLINE vec add_lanes(vec *sums)
{
    for (int k = 0; k < 4; k++)
        sums[k] = SHUFFLE(sums[2 * k], sums[2 * k + 1], 0, 8, 2, 10, 4, 12, 6, 14) +
                  SHUFFLE(sums[2 * k], sums[2 * k + 1], 1, 9, 3, 11, 5, 13, 7, 15);
    for (int half = 2; half; half /= 2)
        for (int k = 0; k < half; k++)
            sums[k] = SHUFFLE(sums[2 * k], sums[2 * k + 1], 0, 1, 4, 5, 8, 9, 12, 13) +
                      SHUFFLE(sums[2 * k], sums[2 * k + 1], 2, 3, 6, 7, 10, 11, 14, 15);
    return sums[0];
}

/* Add the distance histogram of the items under `select` to bins (8 octets). */
INLINE void add_bins(const uint64_t *scratch, int begin, int end, const uint64_t *select, uint64_t *bins,
                     const int octets)
{
    const vec zero = {0};
    for (int octet = 0; octet < octets; octet++) {
        vec sums[8] = {0};
        for (int v = begin; v < end; v++) {
            const uint64_t *p = scratch + v * PLANES * LANES;
            vec one = load(p), two = load(p + LANES), four = load(p + 2 * LANES);
            vec items = load(select + v * LANES);
            items &= octet & 1 ? load(p + 3 * LANES) : ~load(p + 3 * LANES);
            if (octets > 1)
                items &= octet & 2 ? load(p + 4 * LANES) : ~load(p + 4 * LANES);
            if (octets > 3)
                items &= octet & 4 ? load(p + 5 * LANES) : ~load(p + 5 * LANES);
            if (octets > 7)
                items &= ~load(p + 6 * LANES);
            vec items_1 = items & one, items_2 = items & two, items_12 = items_1 & two;
            sums[0] += popcount(items);
            sums[1] += popcount(items_1);
            sums[2] += popcount(items_2);
            sums[3] += popcount(items_12);
            sums[4] += popcount(items & four);
            sums[5] += popcount(items_1 & four);
            sums[6] += popcount(items_2 & four);
            sums[7] += popcount(items_12 & four);
        }
        vec n = add_lanes(sums);
        /* Inclusion and exclusion: from 'at least these planes' to 'exactly these planes'. */
        n -= SHUFFLE(n, zero, 1, 8, 3, 8, 5, 8, 7, 8);
        n -= SHUFFLE(n, zero, 2, 3, 8, 8, 6, 7, 8, 8);
        n -= SHUFFLE(n, zero, 4, 5, 6, 7, 8, 8, 8, 8);
        store(bins + 8 * octet, load(bins + 8 * octet) + n);
    }
}

/* select: ones at the items low..high-1 of the block; *first..*last: the vectors that hold them. */
static void mask_items(uint64_t *select, int64_t low, int64_t high, int *first, int *last)
{
    *first = (int)(low / VECTOR_ITEMS);
    *last = (int)((high + VECTOR_ITEMS - 1) / VECTOR_ITEMS);
    for (int word = *first * LANES; word < *last * LANES; word++) {
        int64_t from = low - 64 * (int64_t)word, to = high - 64 * (int64_t)word;
        uint64_t mask = ~(uint64_t)0;
        if (from > 0)
            mask = from >= 64 ? 0 : mask << from;
        if (to < 64)
            mask &= to <= 0 ? 0 : ~(uint64_t)0 >> (64 - to);
        select[word] = mask;
    }
}

INLINE int count(const uint64_t *planes, int64_t items, const uint64_t *masks, int64_t queries,
                 const int64_t *relevant_begin, const int64_t *relevant_end, int bits, int64_t *counts,
                 const int octets)
{
    uint64_t scratch[2][BLOCK_VECTORS * PLANES * LANES], valid[BLOCK_VECTORS * LANES];
    uint64_t select[BLOCK_VECTORS * LANES];
    const int width = 8 * octets;
    const int64_t block_items = BLOCK_VECTORS * VECTOR_ITEMS;
    uint64_t *bins = calloc((size_t)(2 * queries * width), sizeof *bins);
    if (!bins)
        return 1;
    for (int64_t begin = 0; begin < items; begin += block_items) {
        int64_t end = begin + block_items < items ? begin + block_items : items;
        int zero, vectors, first, last;
        mask_items(valid, 0, end - begin, &zero, &vectors);
        const uint64_t *block = planes + begin / VECTOR_ITEMS * width * LANES;
        for (int64_t pair = 0; pair < queries; pair += 2) {
            int64_t other = pair + 1 < queries ? pair + 1 : pair;
            distances(block, masks + pair * width, masks + other * width, vectors, scratch[0], scratch[1], octets);
            for (int64_t q = pair; q <= other; q++) {
                add_bins(scratch[q - pair], 0, vectors, valid, bins + 2 * q * width, octets);
                int64_t low = relevant_begin[q] > begin ? relevant_begin[q] : begin;
                int64_t high = relevant_end[q] < end ? relevant_end[q] : end;
                if (low < high) {
                    mask_items(select, low - begin, high - begin, &first, &last);
                    add_bins(scratch[q - pair], first, last, select, bins + (2 * q + 1) * width, octets);
                }
            }
        }
    }
    for (int64_t q = 0; q < queries; q++) {
        int64_t *irrelevant = counts + 2 * q * (bits + 1), *relevant = irrelevant + bits + 1;
        int64_t left = items, left_relevant = relevant_end[q] - relevant_begin[q];
        for (int d = 0; d < width && d <= bits; d++) {
            relevant[d] = (int64_t)bins[(2 * q + 1) * width + d];
            irrelevant[d] = (int64_t)bins[2 * q * width + d] - relevant[d];
            left -= relevant[d] + irrelevant[d];
            left_relevant -= relevant[d];
        }
        if (bits == width) {
            relevant[bits] = left_relevant;
            irrelevant[bits] = left - left_relevant;
        }
    }
    free(bins);
    return 0;
}

/* planes: uint64 (vector, 8 octets, 8), items sorted by class; masks (queries, 8 octets), all ones where the query's
   bit is 1; counts int64 (queries, 2, bits + 1): irrelevant, relevant. bits: 1 to 64. Returns 1 without memory. */
int count_equal_labels(const uint64_t *planes, int64_t items, const uint64_t *masks, int64_t queries,
                       const int64_t *relevant_begin, const int64_t *relevant_end, int bits, int64_t *counts)
{
#define CASE(octets) \
    case octets: \
        return count(planes, items, masks, queries, relevant_begin, relevant_end, bits, counts, octets)
    switch ((bits + 7) / 8) {
        CASE(1);
        CASE(2);
        CASE(3);
        CASE(4);
        CASE(5);
        CASE(6);
        CASE(7);
        CASE(8);
    }
    return 1;
}
