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
template <class T, int K>
struct Terms {
    T of[K];
};

template <class T>
COLDQ_INLINE T joined(const T* part) {
    return ((part[0] + part[4]) + (part[2] + part[6])) +
           ((part[1] + part[5]) + (part[3] + part[7]));
}

// The same of partial sums that lie in packs, one after the other.
template <int W>
COLDQ_INLINE double joined_steps(const Pack<W>* part) {
    if constexpr (W == 2) {
        const Pack<2> two = (part[0] + part[2]) + (part[1] + part[3]);
        return two.lanes[0] + two.lanes[1];
    } else {
        typename Pack<4>::Numbers four;
        if constexpr (W == 4)
            four = part[0].lanes + part[1].lanes;
        else
            four = __builtin_shufflevector(part[0].lanes, part[0].lanes, 0, 1, 2, 3) +
                   __builtin_shufflevector(part[0].lanes, part[0].lanes, 4, 5, 6, 7);
        const auto two =
            __builtin_shufflevector(four, four, 0, 1) + __builtin_shufflevector(four, four, 2, 3);
        return two[0] + two[1];
    }
}

// The sums of the Terms<T, K> that term(0), ..., term(n - 1) are.
template <int K, class T, class Term>
COLDQ_INLINE Terms<T, K> sums(Size n, Term term) {
    T parts[K][PARTS];
    for (int k = 0; k < K; ++k)
        for (int r = 0; r < PARTS; ++r) parts[k][r] = T(0.0);
    auto add = [&](Size i, Size r) __attribute__((always_inline)) {
        const Terms<T, K> terms = term(i);
        for (int k = 0; k < K; ++k) parts[k][r] = parts[k][r] + terms.of[k];
    };
    const Size whole = n - n % PARTS;
    for (Size i = 0; i < whole; i += PARTS)
#pragma GCC unroll 8
        for (Size r = 0; r < PARTS; ++r) add(i + r, r);
#pragma GCC unroll 8
    for (Size r = 0; r < PARTS - 1; ++r)
        if (whole + r < n) add(whole + r, r);
    Terms<T, K> sum;
    for (int k = 0; k < K; ++k) sum.of[k] = joined(parts[k]);
    return sum;
}

// term(0) + ... + term(n - 1)
template <class T, class Term>
COLDQ_INLINE T sum(Size n, Term term) {
    return sums<1, T>(n,
                      [&](Size i) __attribute__((always_inline)) { return Terms<T, 1>{{term(i)}}; })
        .of[0];
}

// The sums of `term(read)` over the coordinates of arrays, where `read(array)` is that of one
// coordinate, or of one instance of several at once: then term works on packs.
template <int K, class T, class Term>
COLDQ_INLINE Terms<T, K> sums_over(Size p, Term term) {
    return sums<K, T>(p, [&](Size i) __attribute__((always_inline)) {
        return term([i](const T* array) __attribute__((always_inline)) { return array[i]; });
    });
}

template <int K, class T, class Term>
    requires(__is_same(T, double))
COLDQ_INLINE Terms<double, K> sums_over(Size p, Term term) {
    using Wide = Pack<WIDEST>;
    constexpr int STEPS = PARTS / WIDEST;
    Wide parts[K][STEPS];
    for (int k = 0; k < K; ++k)
        for (int s = 0; s < STEPS; ++s) parts[k][s] = Wide(0.0);
    const Size whole = p - p % PARTS;
    for (Size i = 0; i < whole; i += PARTS)
        for (int s = 0; s < STEPS; ++s) {
            const Size from = i + s * WIDEST;
            const Terms<Wide, K> terms =
                term([from](const double* array)
                         __attribute__((always_inline)) { return load<Wide>(array + from); });
            for (int k = 0; k < K; ++k) parts[k][s] = parts[k][s] + terms.of[k];
        }
    for (int s = 0; s < STEPS; ++s) {
        const Size from = whole + s * WIDEST, count = p - from;
        if (count <= 0) break;
        // The last terms, and zeros behind them: a partial sum plus zero is itself, for it is no
        // -0.
        const auto there = first_lanes<WIDEST>(count);
        const Terms<Wide, K> terms =
            term([from, count](const double* array) __attribute__((always_inline)) {
                return load_first<WIDEST>(array + from, count);
            });
        for (int k = 0; k < K; ++k)
            parts[k][s] = parts[k][s] + select(there, terms.of[k], Wide(0.0));
    }
    Terms<double, K> sum;
    for (int k = 0; k < K; ++k) sum.of[k] = joined_steps(parts[k]);
    return sum;
}

// The same of one sum.
template <class T, class Term>
COLDQ_INLINE T sum_over(Size p, Term term) {
    return sums_over<1, T>(p,
                           [&](auto read) __attribute__((always_inline)) {
                               using V = decltype(term(read));
                               return Terms<V, 1>{{term(read)}};
                           })
        .of[0];
}

template <class T>
COLDQ_INLINE T dot(const T* a, const T* b, Size n) {
    return sum_over<T>(n,
                       [=](auto read) __attribute__((always_inline)) { return read(a) * read(b); });
}

}  // namespace coldq::COLDQ_LEVEL
