// Dense symmetric systems: A' diag(w) A, A diag(w) A', Cholesky's factor H = U'U, solutions.
//
// A symmetric matrix is given by its upper triangle, row after row, `step` numbers apart; what is
// below the diagonal is never read and may be written. All of it is one loop over tiles that stay
// in registers,
//
//     H_ij += sum over k of L_ki R_kj   for i <= j,
//
// where every entry takes its terms one after the other from k = 0 on: so its bits depend neither
// on the tile nor on the processor. A number type T is double, DoubleDouble or a pack of instances.
#pragma once

#include "double_double.hpp"
#include "sums.hpp"

namespace coldq::COLDQ_LEVEL {

constexpr Size BLOCK = 48;  // terms of an entry that are taken at once: their lines stay in cache
constexpr Size TILE_ROWS = 4;

// Several neighbours in a row of doubles, or one number of another type.
template <class V, class E>
COLDQ_INLINE auto neighbours(const E* from) {
    if constexpr (__is_same(E, double) && !__is_same(V, DoubleDouble))
        return load<V>(from);
    else
        return *from;
}

// step<V, C>(j) for all columns: C times as many as V has of T are done at once.
template <class T, class Step>
COLDQ_INLINE void strips(Size n, Step step) {
    Size j = 0;
    if constexpr (__is_same(T, double)) {
        for (; j + 2 * WIDEST <= n; j += 2 * WIDEST) step.template operator()<Pack<WIDEST>, 2>(j);
        for (; j + WIDEST <= n; j += WIDEST) step.template operator()<Pack<WIDEST>, 1>(j);
        for (; WIDEST > 4 && j + 4 <= n; j += 4) step.template operator()<Pack<4>, 1>(j);
        for (; WIDEST > 2 && j + 2 <= n; j += 2) step.template operator()<Pack<2>, 1>(j);
    }
    for (; j < n; ++j) step.template operator()<T, 1>(j);
}

template <class T>
struct Lines {
    const T* at;
    Size step;
};

// The loop for ROWS rows and the columns of C numbers V.
template <bool minus, int ROWS, int C, class V, class T, class E>
COLDQ_INLINE void add_tile(T* H, Size step, Lines<T> left, Lines<E> right, Size count) {
    constexpr Size WIDE = sizeof(V) / sizeof(T);
    V s[ROWS][C];
    for (int r = 0; r < ROWS; ++r)
        for (int c = 0; c < C; ++c) s[r][c] = neighbours<V>(H + r * step + c * WIDE);
    for (Size k = 0; k < count; ++k) {
        const T* one = left.at + k * left.step;
        const E* line = right.at + k * right.step;
        for (int c = 0; c < C; ++c) {
            const auto over = neighbours<V>(line + c * WIDE);
            for (int r = 0; r < ROWS; ++r)
                s[r][c] = minus ? s[r][c] - V(one[r]) * over : s[r][c] + V(one[r]) * over;
        }
    }
    for (int r = 0; r < ROWS; ++r)
        for (int c = 0; c < C; ++c) __builtin_memcpy(H + r * step + c * WIDE, &s[r][c], sizeof(V));
}

// The loop for the first rows of H, which has n columns.
template <bool minus, class T, class E>
void add_products(T* H, Size step, Size rows, Size n, Lines<T> left, Lines<E> right, Size count) {
    strips<T>(n, [&]<class V, int C>(Size j) __attribute__((always_inline)) {
        const Size beyond = j + C * Size(sizeof(V) / sizeof(T));
        const Size end = rows < beyond ? rows : beyond;
        const Lines<E> columns = {right.at + j, right.step};
        Size i = 0;
        auto add = [&]<int ROWS>() __attribute__((always_inline)) {
            add_tile<minus, ROWS, C, V>(H + i * step + j, step, Lines<T>{left.at + i, left.step},
                                        columns, count);
            i += ROWS;
        };
        while (i + TILE_ROWS <= end) add.template operator()<TILE_ROWS>();
        if (i + 2 <= end) add.template operator()<2>();
        if (i < end) add.template operator()<1>();
    });
}

// H += A' diag(w) A for n rows of p numbers. `work` has weighted_columns_work(p) numbers.
constexpr Size weighted_columns_work(Size p) { return BLOCK * p; }

template <class T, class E>
void add_weighted_columns(T* H, Size step, Lines<E> A, Size n, Size p, const T* w, T* work) {
    for (Size first = 0; first < n; first += BLOCK) {
        const Size count = n - first < BLOCK ? n - first : BLOCK;
        const Lines<E> some = {A.at + first * A.step, A.step};
        for (Size k = 0; k < count; ++k)
            for (Size i = 0; i < p; ++i) work[k * p + i] = w[first + k] * some.at[k * A.step + i];
        add_products<false>(H, step, p, p, Lines<T>{work, p}, some, count);
    }
}

// H += A diag(w) A' for n rows of p numbers. `work` has weighted_rows_work(n) numbers.
constexpr Size weighted_rows_work(Size n) { return 2 * BLOCK * n; }

template <class T, class E>
void add_weighted_rows(T* H, Size step, Lines<E> A, Size n, Size p, const T* w, T* work) {
    T* left = work;
    E* right = reinterpret_cast<E*>(work + BLOCK * n);
    for (Size first = 0; first < p; first += BLOCK) {
        const Size count = p - first < BLOCK ? p - first : BLOCK;
        for (Size i = 0; i < n; ++i)
            for (Size k = 0; k < count; ++k) right[k * n + i] = A.at[i * A.step + first + k];
        for (Size k = 0; k < count; ++k)
            for (Size i = 0; i < n; ++i) left[k * n + i] = w[first + k] * right[k * n + i];
        add_products<false>(H, step, n, n, Lines<T>{left, n}, Lines<E>{right, n}, count);
    }
}

// Put U with H = U'U in the place of H, and the inverses of its diagonal entries into `inverse`.
// A pivot that is not above this share of the diagonal entry is raised to it (to 1 if that is 0);
// false if there was one: then U is the factor of a matrix that was raised there.
template <class T>
auto factor(T* H, Size step, Size n, T* inverse, double least) {
    auto sound = T(0.0) == T(0.0);
    for (Size c = 0; c < n; ++c) inverse[c] = H[c * step + c] * T(least);
    for (Size first = 0; first < n; first += BLOCK) {
        const Size last = first + BLOCK < n ? first + BLOCK : n;
        for (Size c = first; c < last; c += TILE_ROWS) {
            const Size rows = last - c < TILE_ROWS ? last - c : TILE_ROWS;
            const Lines<T> before = {H + first * step + c, step};
            add_products<true>(H + c * step + c, step, rows, n - c, before, before, c - first);
            for (Size r = c; r < c + rows; ++r) {
                T* row = H + r * step;
                for (Size q = c; q < r; ++q) {
                    const T* above = H + q * step;
                    const T share = above[r];
                    for (Size j = r; j < n; ++j) row[j] = row[j] - share * above[j];
                }
                const T bound = inverse[r];
                const auto fine = row[r] > bound;
                const T raised = select(bound > T(0.0), bound, T(1.0));
                const T inverse_root = T(1.0) / root(select(fine, row[r], raised));
                sound = sound & fine;
                row[r] = T(1.0) / inverse_root;
                inverse[r] = inverse_root;
                for (Size j = r + 1; j < n; ++j) row[j] = row[j] * inverse_root;
            }
        }
        const Lines<T> panel = {H + first * step + last, step};
        add_products<true>(H + last * step + last, step, n - last, n - last, panel, panel,
                           last - first);
    }
    return sound;
}

// Solve U'U d = d in place with what `factor` left, some rows at a time.
template <class T>
void solve(const T* U, Size step, Size n, const T* inverse, T* d) {
    constexpr Size ROWS = TILE_ROWS;
    const auto size = [n](Size c) { return n - c < ROWS ? n - c : ROWS; };
    for (Size c = 0; c < n; c += ROWS) {
        const Size after = c + size(c);
        for (Size k = c; k < after; ++k) {
            d[k] = d[k] * inverse[k];
            for (Size j = k + 1; j < after; ++j) d[j] = d[j] - d[k] * U[k * step + j];
        }
        add_products<true>(d + after, n, 1, n - after, Lines<T>{d + c, 1},
                           Lines<T>{U + c * step + after, step}, after - c);
    }
    for (Size c = (n - 1) / ROWS * ROWS; c >= 0; c -= ROWS) {
        const Size after = c + size(c), rest = n - after;
        const T *known = d + after, *row = U + c * step + after;
        // A row that there is not is any other.
        const Size second = c + 1 < n ? step : 0, third = c + 2 < n ? 2 * step : 0;
        const Size fourth = c + 3 < n ? 3 * step : 0;
        const auto sum = sums_over<ROWS, T>(rest, [=](auto read) __attribute__((always_inline)) {
            const auto x = read(known);
            return Terms<decltype(read(known)), ROWS>{{read(row) * x, read(row + second) * x,
                                                       read(row + third) * x,
                                                       read(row + fourth) * x}};
        });
        for (Size k = after - 1; k >= c; --k) {
            T s = d[k] - sum.of[k - c];
            for (Size j = k + 1; j < after; ++j) s = s - U[k * step + j] * d[j];
            d[k] = s * inverse[k];
        }
    }
}

}  // namespace coldq::COLDQ_LEVEL
