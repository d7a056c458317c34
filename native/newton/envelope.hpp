// Symmetric positive definite systems in an envelope: of each row what lies between its first entry
// and the diagonal.
//
// Cholesky's factor keeps to the envelope (George and Liu 1981). So one method serves dense
// systems, whose envelope is all, and sparse ones in an order that brings together what belongs
// together (Cuthill and McKee 1969), in which parts that have nothing in common cost no more than
// each alone.
#pragma once

#include "newton/instance.hpp"

namespace coldq::COLDQ_LEVEL {

constexpr double LEAST_PIVOT_SHARE = 1e-14;  // of the diagonal entry that a pivot comes from
constexpr Size ROWS_AT_ONCE = 4;             // of a factor, where they begin in the same column

// Sums of a few terms, in order; of more as everywhere.
template <int K, class F>
COLDQ_INLINE Terms<double, K> block_sums(Size count, F term) {
    if (count > PARTS) return sums_over<K, double>(count, term);
    Terms<double, K> sum = {};
    for (Size i = 0; i < count; ++i) {
        auto terms = term([i](const double* a) __attribute__((always_inline)) { return a[i]; });
        for (int k = 0; k < K; ++k) sum.of[k] += terms.of[k];
    }
    return sum;
}

struct Envelope {
    Size n;
    Size *first, *start;  // of each row its first column, and where its entries are
    double* entries;

    double* row(Size a) const { return entries + (start[a] - first[a]); }
    double& diagonal(Size a) const { return row(a)[a]; }
    // Begin the next row; false if there is no room for it.
    bool append(Size column, Size room) {
        first[n] = column;
        start[n + 1] = start[n] + (n + 1 - column);
        ++n;
        return start[n] <= room;
    }
    void clear() { n = start[0] = 0; }
};

inline double envelope_dot(const double* a, const double* b, Size count) {
    return block_sums<1>(count,
                         [&](auto read) __attribute__((always_inline)) {
                             using V = decltype(read(a));
                             return Terms<V, 1>{{read(a) * read(b)}};
                         })
        .of[0];
}

// H d, of which every entry is added to `out`.
inline void add_product(const Envelope& H, const double* d, double sign, double* out) {
    for (Size a = 0; a < H.n; ++a) {
        const Size first = H.first[a];
        const double *row = H.row(a) + first, own = sign * d[a];
        out[a] += sign * envelope_dot(row, d + first, a - first) + row[a - first] * own;
        if (own == 0.0) continue;
        for (Size c = 0; c < a - first; ++c) out[first + c] += own * row[c];
    }
}

// Factor rows a to a + R - 1 of L, which begin in the same column and hold those of H.
template <int R>
inline void factor_rows(const Envelope& L, Size a) {
    const Size first = L.first[a];
    double* row[R];
    double least[R];
    for (int r = 0; r < R; ++r) {
        row[r] = L.row(a + r);
        least[r] = LEAST_PIVOT_SHARE * row[r][a + r];
    }
    for (Size c = first; c < a; ++c) {
        const Size from = first > L.first[c] ? first : L.first[c];
        const double* other = L.row(c);
        const auto sum = block_sums<R>(c - from, [&](auto read) __attribute__((always_inline)) {
            using V = decltype(read(other));
            const V its = read(other + from);
            Terms<V, R> terms;
            for (int r = 0; r < R; ++r) terms.of[r] = its * V(read(row[r] + from));
            return terms;
        });
        for (int r = 0; r < R; ++r) row[r][c] = (row[r][c] - sum.of[r]) / other[c];
    }
    for (int r = 0; r < R; ++r) {
        for (int q = 0; q < r; ++q) {
            const Size c = a + q;
            const double sum = envelope_dot(row[r] + first, row[q] + first, c - first);
            row[r][c] = (row[r][c] - sum) / row[q][c];
        }
        const Size c = a + r;
        const double sum = envelope_dot(row[r] + first, row[r] + first, c - first);
        row[r][c] = root(larger(larger(row[r][c] - sum, least[r]), TINY));
    }
}

// Set L to the factor of H's rows and columns that are listed, in order; `before` is how many of
// those are before each.
inline void factor(const Envelope& H, const Size* listed, const Size* before, Size m, Envelope& L) {
    L.clear();
    for (Size a = 0; a < m; ++a) {
        const Size k = listed[a];
        L.append(before[H.first[k]], H.start[H.n]);
        const double* from = H.row(k);
        double* to = L.row(a);
        for (Size c = L.first[a]; c <= a; ++c) to[c] = from[listed[c]];
    }
    for (Size a = 0; a < m;) {
        bool together = a + ROWS_AT_ONCE <= m;
        for (Size r = 1; together && r < ROWS_AT_ONCE; ++r) together = L.first[a + r] == L.first[a];
        if (together)
            factor_rows<ROWS_AT_ONCE>(L, a), a += ROWS_AT_ONCE;
        else
            factor_rows<1>(L, a), ++a;
    }
}

// Solve L L' x = x in place.
inline void solve_factored(const Envelope& L, double* x) {
    for (Size a = 0; a < L.n; ++a) {
        const Size first = L.first[a];
        const double* row = L.row(a);
        x[a] = (x[a] - envelope_dot(row + first, x + first, a - first)) / row[a];
    }
    for (Size a = L.n; a-- > 0;) {
        const double* row = L.row(a);
        x[a] /= row[a];
        for (Size c = L.first[a]; c < a; ++c) x[c] -= x[a] * row[c];
    }
}

}  // namespace coldq::COLDQ_LEVEL
