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
    double own[K][PARTS];
    for (int k = 0; k < K; ++k)
        for (int s = 0; s < STEPS; ++s) store(own[k] + s * WIDEST, parts[k][s]);
    for (Size i = whole; i < p; ++i) {
        const Terms<double, K> terms =
            term([i](const double* array) __attribute__((always_inline)) { return array[i]; });
        for (int k = 0; k < K; ++k) own[k][i - whole] += terms.of[k];
    }
    Terms<double, K> sum;
    for (int k = 0; k < K; ++k) sum.of[k] = joined(own[k]);
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
