/* Joint histograms of Hamming distance and relevance by bit-slicing, written by hand: how near is the product?

   The same layout and the same two steps as tiebench/_bitslice.py (which explains them), by other means:
   the queries' loop is inside the block's, each vector's planes are added eight at a time into counters that stay
   in registers, and two vectors share each broadcast word of the query. With AVX-512 a full adder is two
   instructions (vpternlogq) and the bits of eight words are counted by one (vpopcntq); elsewhere the
   compiler's vector extensions serve.

   cc -O3 -march=native -shared -fPIC */

#include <stdint.h>
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

INLINE int64_t total(vec a)
{
    uint64_t n = 0;
    for (int lane = 0; lane < LANES; lane++)
        n += a[lane];
    return (int64_t)n;
}

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

/* Digits of the distances of `vectors` vectors (an even number is computed: planes and scratch are padded). */
INLINE void distances(const uint64_t *planes, const uint64_t *masks, int vectors, uint64_t *scratch, const int octets)
{
    const int width = 8 * octets;
    for (int v = 0; v < vectors; v += 2) {
        /* The last vector of an odd number is its own neighbour. */
        const uint64_t *left = planes + (int64_t)v * width * LANES;
        const uint64_t *right = v + 1 < vectors ? left + width * LANES : left;
        vec a[PLANES] = {0}, b[PLANES] = {0}, held_a = {0}, held_b = {0};
        for (int octet = 0; octet < octets; octet++) {
            vec x[8], y[8];
            for (int bit = 0; bit < 8; bit++) {
                vec mask = broadcast(masks[8 * octet + bit]);
                x[bit] = load(left + (8 * octet + bit) * LANES) ^ mask;
                y[bit] = load(right + (8 * octet + bit) * LANES) ^ mask;
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
            store(scratch + ((v + 1) * PLANES + k) * LANES, b[k]);
        }
    }
}

/* Add the distance histogram of the items under `select` (there are `selected`) to bins (bits + 1). */
INLINE void add_bins(const uint64_t *scratch, int begin, int end, const uint64_t *select, int64_t selected, int bits,
                     int64_t *bins, const int octets)
{
    int64_t remaining = selected;
    for (int octet = 0; octet < octets; octet++) {
        vec sums[8] = {0};
        for (int v = begin; v < end; v++) {
            const uint64_t *p = scratch + v * PLANES * LANES;
            vec one = load(p), two = load(p + LANES), four = load(p + 2 * LANES);
            vec eight = load(p + 3 * LANES), sixteen = load(p + 4 * LANES), thirty_two = load(p + 5 * LANES);
            vec items = load(select + v * LANES) & ~load(p + 6 * LANES);
            items &= octet & 1 ? eight : ~eight;
            items &= octet & 2 ? sixteen : ~sixteen;
            items &= octet & 4 ? thirty_two : ~thirty_two;
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
        int64_t n[8];
        for (int k = 0; k < 8; k++)
            n[k] = total(sums[k]);
        remaining -= n[0];
        /* Inclusion and exclusion: from 'at least these planes' to 'exactly these planes'. */
        for (int plane = 1; plane < 8; plane *= 2)
            for (int k = 0; k < 8; k++)
                if (!(k & plane))
                    n[k] -= n[k | plane];
        for (int k = 0; k < 8 && 8 * octet + k <= bits; k++)
            bins[8 * octet + k] += n[k];
    }
    if (bits % 8 == 0)
        bins[bits] += remaining;
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

INLINE void count(const uint64_t *planes, int64_t items, const uint64_t *masks, int64_t queries,
                  const int64_t *relevant_begin, const int64_t *relevant_end, int bits, int64_t *counts,
                  const int octets)
{
    uint64_t scratch[(BLOCK_VECTORS + 1) * PLANES * LANES], valid[BLOCK_VECTORS * LANES];
    uint64_t select[BLOCK_VECTORS * LANES];
    const int width = 8 * octets;
    const int64_t block_items = BLOCK_VECTORS * VECTOR_ITEMS, row = bits + 1;
    for (int64_t begin = 0; begin < items; begin += block_items) {
        int64_t end = begin + block_items < items ? begin + block_items : items;
        int zero, vectors, first, last;
        mask_items(valid, 0, end - begin, &zero, &vectors);
        const uint64_t *block = planes + begin / VECTOR_ITEMS * width * LANES;
        for (int64_t q = 0; q < queries; q++) {
            int64_t *bins = counts + 2 * q * row;
            distances(block, masks + q * width, vectors, scratch, octets);
            add_bins(scratch, 0, vectors, valid, end - begin, bits, bins, octets);
            int64_t low = relevant_begin[q] > begin ? relevant_begin[q] : begin;
            int64_t high = relevant_end[q] < end ? relevant_end[q] : end;
            if (low < high) {
                mask_items(select, low - begin, high - begin, &first, &last);
                add_bins(scratch, first, last, select, high - low, bits, bins + row, octets);
            }
        }
    }
    for (int64_t q = 0; q < queries; q++)
        for (int64_t d = 0; d < row; d++)
            counts[2 * q * row + d] -= counts[(2 * q + 1) * row + d];
}

/* planes: uint64 (vector, 8 octets, 8), items sorted by class; masks (queries, 8 octets), all ones where the query's
   bit is 1; counts int64 (queries, 2, bits + 1), zero on entry: irrelevant, relevant. bits: 1 to 64. */
void count_equal_labels(const uint64_t *planes, int64_t items, const uint64_t *masks, int64_t queries,
                        const int64_t *relevant_begin, const int64_t *relevant_end, int bits, int64_t *counts)
{
#define CASE(octets) \
    case octets: \
        count(planes, items, masks, queries, relevant_begin, relevant_end, bits, counts, octets); \
        break
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
}
