// Sums over coordinates, in one order everywhere.
//
// A sum has eight partial sums: term i goes to the partial sum i mod 8, and these are joined as
// ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7)). A single instance adds eight terms at once; in lanes,
// one instance each, every lane follows the same order. So the bits depend neither on the
// instances beside one, nor on how wide the processor's registers are.
#pragma once

#include "numbers.hpp"

namespace coldq::COLDQ_LEVEL {

constexpr Size PARTS = 8;

// Several sums of one pass.
template <class V, int K>
struct Terms {
    V of[K];
};

template <class V>
COLDQ_INLINE V joined(const V* part) {
    return ((part[0] + part[4]) + (part[2] + part[6])) +
           ((part[1] + part[5]) + (part[3] + part[7]));
}

// The sums of `term(at)` over the coordinates, where `at(array)` reads a coordinate of an array.
// Of one instance: eight coordinates are read together.
template <int K, class F>
COLDQ_INLINE Terms<double, K> sums(Size p, double, F term) {
    using Wide = Pack<WIDEST>;
    constexpr int STEPS = PARTS / WIDEST;
    Wide parts[K][STEPS];
    for (int k = 0; k < K; ++k)
        for (int s = 0; s < STEPS; ++s) parts[k][s] = Wide(0.0);
    const Size whole = p - p % PARTS;
    for (Size i = 0; i < whole; i += PARTS)
        for (int s = 0; s < STEPS; ++s) {
            const Size from = i + s * WIDEST;
            auto terms = term([from](const double* a)
                                  __attribute__((always_inline)) { return load<Wide>(a + from); });
            for (int k = 0; k < K; ++k) parts[k][s] = parts[k][s] + terms.of[k];
        }
    double own[K][PARTS];
    for (int k = 0; k < K; ++k)
        for (int s = 0; s < STEPS; ++s) store(own[k] + s * WIDEST, parts[k][s]);
    for (Size i = whole; i < p; ++i) {
        auto terms = term([i](const double* a) __attribute__((always_inline)) { return a[i]; });
        for (int k = 0; k < K; ++k) own[k][i - whole] += terms.of[k];
    }
    Terms<double, K> sum;
    for (int k = 0; k < K; ++k) sum.of[k] = joined(own[k]);
    return sum;
}

// Of several instances in lanes: a coordinate of all of them is one pack.
template <int K, class T, class F>
COLDQ_INLINE Terms<T, K> sums(Size p, T, F term) {
    T parts[K][PARTS];
    for (int k = 0; k < K; ++k)
        for (int r = 0; r < PARTS; ++r) parts[k][r] = T(0.0);
    const Size whole = p - p % PARTS;
    for (Size i = 0; i < whole; i += PARTS)
#pragma GCC unroll 8
        for (int r = 0; r < PARTS; ++r) {
            auto terms =
                term([i, r](const T* a) __attribute__((always_inline)) { return a[i + r]; });
            for (int k = 0; k < K; ++k) parts[k][r] = parts[k][r] + terms.of[k];
        }
#pragma GCC unroll 8
    for (int r = 0; r < PARTS - 1; ++r) {
        if (whole + r >= p) break;
        const Size i = whole + r;
        auto terms = term([i](const T* a) __attribute__((always_inline)) { return a[i]; });
        for (int k = 0; k < K; ++k) parts[k][r] = parts[k][r] + terms.of[k];
    }
    Terms<T, K> sum;
    for (int k = 0; k < K; ++k) sum.of[k] = joined(parts[k]);
    return sum;
}

}  // namespace coldq::COLDQ_LEVEL
