// Symmetric positive definite systems in an envelope: of each row what lies between the diagonal
// and its last entry, no row ending before the one above it.
//
// Cholesky's factor U'U keeps to the envelope (George and Liu 1981). So one method serves dense
// systems, whose envelope is all, and sparse ones in an order that brings together what belongs
// together (Cuthill and McKee 1969), in which parts that have nothing in common cost no more than
// each alone.
#pragma once

#include "newton/instance.hpp"

namespace coldq::COLDQ_LEVEL {

constexpr double LEAST_PIVOT_SHARE = 1e-14;  // of the diagonal entry that a pivot comes from
constexpr Size PIVOTS = 4;                   // that later rows are brought up to date by at once

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
    Size n, room;
    Size *last, *start;  // of each row its last column, and where its entries are
    double* entries;     // as many as there is room for
    double* least;       // of each row the least that its pivot counts as

    double* row(Size a) const { return entries + (start[a] - a); }
    double& diagonal(Size a) const { return entries[start[a]]; }

    // Lay out m rows whose last columns are set, zeros at first; false if there is no room.
    bool lay_out(Size m) {
        n = start[0] = 0;
        for (Size a = 0; a < m; ++a) {
            if (a > 0 && last[a - 1] > last[a]) last[a] = last[a - 1];
            start[a + 1] = start[a] + (last[a] + 1 - a);
            if (start[a + 1] > room) return false;
        }
        n = m;
        for (Size e = 0; e < start[m]; ++e) entries[e] = 0.0;
        return true;
    }
};

// Add sign H d.
inline void add_product(const Envelope& H, const double* d, double sign, double* out) {
    for (Size a = 0; a < H.n; ++a) {
        const double *row = H.row(a) + a, *beyond = d + a, own = sign * d[a];
        const Size count = H.last[a] + 1 - a;
        out[a] += sign * block_sums<1>(count, [&](auto read) __attribute__((always_inline)) {
                             using V = decltype(read(row));
                             return Terms<V, 1>{{read(row) * read(beyond)}};
                         }).of[0];
        for (Size c = 1; own != 0.0 && c < count; ++c) out[a + c] += own * row[c];
    }
}

// Bring row a up to date in the columns from `from` to `last` by the R rows from e on.
template <int R>
COLDQ_INLINE void subtract_rows(const Envelope& U, Size e, Size a, Size from, Size last) {
    const double* factored[R];
    double share[R];
    for (int r = 0; r < R; ++r) factored[r] = U.row(e + r), share[r] = factored[r][a];
    double* row = U.row(a);
    across(last + 1 - from, [&]<class T>(T entry, Size c) __attribute__((always_inline)) {
        entry = load<T>(row + from + c);
        for (int r = 0; r < R; ++r) entry = entry - T(share[r]) * load<T>(factored[r] + from + c);
        store(row + from + c, entry);
    });
}

// Factor U in place.
inline void factor(const Envelope& U) {
    for (Size e = 0; e < U.n; e += PIVOTS) {
        const Size end = e + PIVOTS < U.n ? e + PIVOTS : U.n;
        for (Size k = e; k < end; ++k) {
            for (Size r = e; r < k; ++r)
                if (U.last[r] >= k) subtract_rows<1>(U, r, k, k, U.last[r]);
            const double pivot = root(larger(larger(U.diagonal(k), U.least[k]), TINY));
            double* row = U.row(k);
            row[k] = pivot;
            for (Size c = k + 1; c <= U.last[k]; ++c) row[c] /= pivot;
        }
        for (Size a = end; a <= U.last[end - 1]; ++a) {
            Size from = a;
            if (end == e + PIVOTS && a <= U.last[e]) {
                subtract_rows<PIVOTS>(U, e, a, a, U.last[e]);
                from = U.last[e] + 1;
            }
            for (Size r = e; r < end; ++r)
                if (U.last[r] >= from) subtract_rows<1>(U, r, a, from, U.last[r]);
        }
    }
}

// Solve U'U x = x in place.
inline void solve_factored(const Envelope& U, double* x) {
    for (Size a = 0; a < U.n; ++a) {
        const double* row = U.row(a);
        x[a] /= row[a];
        for (Size c = a + 1; c <= U.last[a]; ++c) x[c] -= x[a] * row[c];
    }
    for (Size a = U.n; a-- > 0;) {
        const double *row = U.row(a) + a + 1, *beyond = x + a + 1;
        const double sum =
            block_sums<1>(U.last[a] - a, [&](auto read) __attribute__((always_inline)) {
                using V = decltype(read(row));
                return Terms<V, 1>{{read(row) * read(beyond)}};
            }).of[0];
        x[a] = (x[a] - sum) / U.row(a)[a];
    }
}

}  // namespace coldq::COLDQ_LEVEL
