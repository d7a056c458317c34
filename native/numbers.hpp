// What a method is written over: double, or Pack<W>, W instances side by side.
//
// Nothing is fused, and every sum runs in one fixed order, so that an instance has the same bits
// alone, in any lane of a pack, at every CPU level and on every processor.
#pragma once

#include <cmath>
#include <cstddef>
#ifdef __AVX__
#include <immintrin.h>
#endif

namespace coldq::COLDQ_LEVEL {

using Size = std::ptrdiff_t;

// Lanes of the processor's widest registers.
#if defined __AVX512F__
constexpr int WIDEST = 8;
#elif defined __AVX__
constexpr int WIDEST = 4;
#else
constexpr int WIDEST = 2;
#endif

#define COLDQ_INLINE inline __attribute__((always_inline))

// Vectors of GCC and clang, whose + - * / and comparisons work lane by lane.
template <int W>
struct Lanes;
#define COLDQ_LANES(W)                                              \
    template <>                                                     \
    struct Lanes<W> {                                               \
        typedef double Numbers __attribute__((vector_size(8 * W))); \
        typedef long long Bits __attribute__((vector_size(8 * W))); \
    };
COLDQ_LANES(2)
COLDQ_LANES(4)
COLDQ_LANES(8)
#undef COLDQ_LANES

// W doubles.
template <int W>
struct Pack {
    using Numbers = typename Lanes<W>::Numbers;
    using Bits = typename Lanes<W>::Bits;
    static constexpr int width = W;

    // What a comparison of packs gives: all bits of a lane, or none.
    struct Mask {
        Bits bits;

        friend COLDQ_INLINE Mask operator&(Mask a, Mask b) { return {a.bits & b.bits}; }
        friend COLDQ_INLINE Mask operator|(Mask a, Mask b) { return {a.bits | b.bits}; }
        friend COLDQ_INLINE Mask operator~(Mask a) { return {~a.bits}; }
        friend COLDQ_INLINE Mask operator!(Mask a) { return {~a.bits}; }
        COLDQ_INLINE bool operator[](int lane) const { return bits[lane] != 0; }
    };

    Numbers lanes;

    Pack() = default;
    COLDQ_INLINE Pack(Numbers given) : lanes(given) {}
    COLDQ_INLINE Pack(double everywhere) : lanes(everywhere - Numbers{}) {}

    COLDQ_INLINE double operator[](int lane) const { return lanes[lane]; }
    COLDQ_INLINE void set(int lane, double value) { lanes[lane] = value; }

    friend COLDQ_INLINE Pack operator+(Pack a, Pack b) { return a.lanes + b.lanes; }
    friend COLDQ_INLINE Pack operator-(Pack a, Pack b) { return a.lanes - b.lanes; }
    friend COLDQ_INLINE Pack operator*(Pack a, Pack b) { return a.lanes * b.lanes; }
    friend COLDQ_INLINE Pack operator/(Pack a, Pack b) { return a.lanes / b.lanes; }
    friend COLDQ_INLINE Pack operator-(Pack a) { return -a.lanes; }
    COLDQ_INLINE Pack& operator+=(Pack a) { return *this = *this + a; }
    COLDQ_INLINE Pack& operator-=(Pack a) { return *this = *this - a; }
    COLDQ_INLINE Pack& operator*=(Pack a) { return *this = *this * a; }
    COLDQ_INLINE Pack& operator/=(Pack a) { return *this = *this / a; }

    friend COLDQ_INLINE Mask operator<(Pack a, Pack b) { return {(Bits)(a.lanes < b.lanes)}; }
    friend COLDQ_INLINE Mask operator<=(Pack a, Pack b) { return {(Bits)(a.lanes <= b.lanes)}; }
    friend COLDQ_INLINE Mask operator>(Pack a, Pack b) { return {(Bits)(a.lanes > b.lanes)}; }
    friend COLDQ_INLINE Mask operator>=(Pack a, Pack b) { return {(Bits)(a.lanes >= b.lanes)}; }
    friend COLDQ_INLINE Mask operator==(Pack a, Pack b) { return {(Bits)(a.lanes == b.lanes)}; }
    friend COLDQ_INLINE Mask operator!=(Pack a, Pack b) { return {(Bits)(a.lanes != b.lanes)}; }
};

// The type of a comparison: bool, or a pack's mask.
template <class T>
struct MaskOf {
    using type = typename T::Mask;
};
template <>
struct MaskOf<double> {
    using type = bool;
};
template <class T>
using Mask = typename MaskOf<T>::type;

COLDQ_INLINE bool any(int mask) { return mask != 0; }
COLDQ_INLINE bool all(int mask) { return mask != 0; }

// By one instruction where there is one: lane by lane it took a tenth of a step's time.
template <class M>
COLDQ_INLINE auto any(M mask) -> decltype(mask.bits[0] != 0) {
#if defined(__AVX512F__) && defined(__AVX512DQ__)
    if constexpr (sizeof mask.bits == 64) return __builtin_ia32_cvtq2mask512(mask.bits) != 0;
#elif defined(__AVX__)
    if constexpr (sizeof mask.bits == 32)
        return __builtin_ia32_movmskpd256((Pack<4>::Numbers)mask.bits) != 0;
#elif defined(__SSE2__)
    if constexpr (sizeof mask.bits == 16)
        return __builtin_ia32_movmskpd((Pack<2>::Numbers)mask.bits) != 0;
#endif
    long long found = 0;
    for (int lane = 0; lane < int(sizeof mask.bits / sizeof found); ++lane)
        found |= mask.bits[lane];
    return found != 0;
}

template <class M>
COLDQ_INLINE auto all(M mask) -> decltype(mask.bits[0] != 0) {
    return !any(~mask);
}

COLDQ_INLINE double select(bool mask, double yes, double no) { return mask ? yes : no; }

template <int W>
COLDQ_INLINE Pack<W> select(typename Pack<W>::Mask mask, Pack<W> yes, Pack<W> no) {
    return mask.bits ? yes.lanes : no.lanes;
}

// The first, unless the second is beyond it: a NaN counts only where it is first.
template <class T>
COLDQ_INLINE T smaller(T a, T b) {
    return select(b < a, b, a);
}

template <class T>
COLDQ_INLINE T larger(T a, T b) {
    return select(b > a, b, a);
}

COLDQ_INLINE double absolute(double a) { return __builtin_fabs(a); }
COLDQ_INLINE double root(double a) { return __builtin_sqrt(a); }

template <int W>
COLDQ_INLINE Pack<W> absolute(Pack<W> a) {
    Pack<W> out;
    for (int lane = 0; lane < W; ++lane) out.lanes[lane] = __builtin_fabs(a.lanes[lane]);
    return out;
}

template <int W>
COLDQ_INLINE Pack<W> root(Pack<W> a) {
    Pack<W> out;
    for (int lane = 0; lane < W; ++lane) out.lanes[lane] = __builtin_sqrt(a.lanes[lane]);
    return out;
}

template <class T>
COLDQ_INLINE T load(const double* from) {
    T out;
    __builtin_memcpy(&out, from, sizeof out);
    return out;
}

// A mask of the first `count` lanes, or of all if there are fewer.
template <int W>
COLDQ_INLINE typename Pack<W>::Mask first_lanes(Size count) {
    typename Pack<W>::Bits place;
    for (int lane = 0; lane < W; ++lane) place[lane] = lane;
    return {(typename Pack<W>::Bits)(place < count)};
}

// The first `count` numbers, at least one, and zeros behind them.
template <int W>
COLDQ_INLINE Pack<W> load_first(const double* from, Size count) {
    if (count >= W) return load<Pack<W>>(from);
#ifdef __AVX512F__
    if constexpr (W == 8)
        return (typename Pack<W>::Numbers)_mm512_maskz_loadu_pd((1u << count) - 1, from);
#endif
#ifdef __AVX__
    if constexpr (W == 4)
        return (typename Pack<W>::Numbers)_mm256_maskload_pd(from,
                                                             (__m256i)first_lanes<W>(count).bits);
#endif
    Pack<W> out(0.0);
    for (int lane = 0; lane < W; ++lane)
        if (lane < count) out.lanes[lane] = from[lane];
    return out;
}

template <class T>
COLDQ_INLINE void store(double* to, T value) {
    __builtin_memcpy(to, &value, sizeof value);
}

// step(T(), i) for the columns 0 .. n - 1, as many at once as fit: T is a pack of the columns from
// i on, or the last of them alone.
template <class Step>
COLDQ_INLINE void across(Size n, Step step) {
    Size i = 0;
    for (; i + WIDEST <= n; i += WIDEST) step(Pack<WIDEST>(), i);
    for (; WIDEST > 2 && i + 2 <= n; i += 2) step(Pack<2>(), i);
    for (; i < n; ++i) step(0.0, i);
}

}  // namespace coldq::COLDQ_LEVEL
