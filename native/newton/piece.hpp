// The maximum of a concave quadratic over a box: of the dual's piece in d, the change of mu.
//
//     max  gain'd - d'H d / 2   over  down <= d <= up
//
// Block principal pivoting (Judice and Pires, 1994) guesses which entries are at a bound, solves
// for the others by LDL' and corrects all wrong guesses at once. A few rounds are nearly always
// enough, but it is not monotone; where it does not end, a primal active-set method takes over.
#pragma once

#include "newton/instance.hpp"

namespace coldq::COLDQ_LEVEL {

constexpr int PIVOT_ROUNDS = 6;
constexpr double LEAST_PIVOT = 1e-14;  // of the diagonal entry that it comes from

template <class T>
COLDQ_INLINE T down(const Iterate<T>& at, Size k) {
    return at.lo[k] - at.mu[k];
}
template <class T>
COLDQ_INLINE T up(const Iterate<T>& at, Size k) {
    return at.hi[k] - at.mu[k];
}

template <class T>
COLDQ_INLINE Mask<T> is_free(const Iterate<T>& at, Size k) {
    return (at.moving[k] > T(0.0)) & (at.side[k] == T(0.0));
}

// Solve H d = rhs over the entries that are free in any lane, by LDL'; in lanes where they are not
// the row and column are those of the identity, and d stays.
template <class T>
COLDQ_INLINE void solve_free_entries(const Iterate<T>& at, Size n) {
    const T zero(0.0), one(1.0);
    constexpr bool alone = sizeof(T) == sizeof(double);  // then all entries in order are free
    Size m = 0;
    for (Size k = 0; k < n; ++k)
        if (any(is_free(at, k))) at.order[m++] = k;
    if (m > n) __builtin_unreachable();
    for (Size a = 0; a < m; ++a) {
        const Size k = at.order[a];
        const Mask<T> free = is_free(at, k);
        T* row = at.factor + triangle(a);
        for (Size c = 0; c < a; ++c) {
            const Size j = at.order[c];
            row[c] = alone ? at.hessian[k * n + j]
                           : select(free & is_free(at, j), at.hessian[k * n + j], zero);
        }
        row[a] = select(free, at.hessian[k * n + k], one);
        at.solved[a] = select(free, at.rhs[k], at.d[k]);
    }
    // Right-looking: once entry e is eliminated, what is left of the later rows is brought up to
    // date.
    for (Size e = 0; e < m; ++e) {
        const Size k = at.order[e];
        const T* pivot_row = at.factor + triangle(e);
        const T least = select(is_free(at, k), T(LEAST_PIVOT) * at.hessian[k * n + k], one);
        const T pivot = larger(pivot_row[e], least);
        for (Size a = e + 1; a < m; ++a) at.column[a] = at.factor[triangle(a) + e];
        for (Size a = e + 1; a < m; ++a) {
            T* row = at.factor + triangle(a);
            const T share = at.column[a] / pivot;
            for (Size c = e + 1; c <= a; ++c) row[c] = row[c] - share * at.column[c];
            at.solved[a] = at.solved[a] - share * at.solved[e];
            row[e] = share;
        }
        at.column[e] = pivot;
        at.solved[e] = at.solved[e] / pivot;
    }
    for (Size a = m; a-- > 0;) {
        const Size k = at.order[a];
        T s = at.solved[a];
        for (Size e = a + 1; e < m; ++e) s = s - at.factor[triangle(e) + a] * at.solved[e];
        at.solved[a] = s;
        at.d[k] = select(is_free(at, k), s, at.d[k]);
    }
}

// One round: the entries at a bound are put there, the others solved for.
template <class T>
COLDQ_INLINE void solve_guess(const Iterate<T>& at, Size n) {
    const T zero(0.0);
    for (Size k = 0; k < n; ++k) {
        const T side = at.side[k];
        at.d[k] = select(side < zero, down(at, k), select(side > zero, up(at, k), zero));
        at.rhs[k] = at.g[k];
    }
    for (Size j = 0; j < n; ++j) {
        if (!any(!(at.side[j] == zero))) continue;
        for (Size k = 0; k < n; ++k) at.rhs[k] = at.rhs[k] - at.hessian[j * n + k] * at.d[j];
    }
    solve_free_entries(at, n);
}

// Correct the guesses; where none was wrong.
template <class T>
COLDQ_INLINE Mask<T> correct_guess(const Iterate<T>& at, Size n) {
    const T zero(0.0), above(1.0), below(-1.0);
    Mask<T> right = zero == zero;
    for (Size k = 0; k < n; ++k) {
        const T side = at.side[k], d = at.d[k];
        T next = select(d < down(at, k), below, select(d > up(at, k), above, zero));
        if (any(!(side == zero))) {
            T slope = at.g[k];
            for (Size j = 0; j < n; ++j) slope = slope - at.hessian[k * n + j] * at.d[j];
            next = select(side == zero, next, select(side * slope < zero, zero, side));
        }
        next = select(at.moving[k] > zero, next, side);
        right = right & (next == side);
        at.rhs[k] = next;
    }
    for (Size k = 0; k < n; ++k) at.side[k] = at.rhs[k];
    return right;
}

// Set d by block principal pivoting from the sides that are guessed; where that ended.
template <class T>
COLDQ_INLINE Mask<T> pivot_from_guess(const Iterate<T>& at, Size n, Mask<T> wanted, int& rounds) {
    const T zero(0.0);
    Mask<T> ended = zero == zero;
    for (rounds = 1; rounds <= PIVOT_ROUNDS; ++rounds) {
        solve_guess(at, n);
        ended = correct_guess(at, n);
        if (!any(wanted & !ended)) break;
    }
    return ended;
}

// The same from no entry at a bound.
template <class T>
COLDQ_INLINE Mask<T> pivot(const Iterate<T>& at, Size n, Mask<T> wanted, int& rounds) {
    for (Size k = 0; k < n; ++k) at.side[k] = T(0.0);
    return pivot_from_guess(at, n, wanted, rounds);
}

// Set d by the primal active-set method from d = 0: every step goes up. `rhs` holds the slope
// g - H d, and `step` the Newton step over the free entries. Returns how many systems it solved.
inline int climb(const Iterate<double>& at, Size n, double most, double* step) {
    const int last = 30 + 6 * static_cast<int>(n);
    for (Size k = 0; k < n; ++k) {
        at.d[k] = 0.0;
        at.side[k] = 0.0;
        if (at.moving[k] == 0.0) continue;
        if (up(at, k) <= 0.0 && at.g[k] >= 0.0)
            at.side[k] = 1.0;
        else if (down(at, k) >= 0.0 && at.g[k] <= 0.0)
            at.side[k] = -1.0;
    }
    for (int systems = 0; systems < last && systems <= most; ++systems) {
        for (Size k = 0; k < n; ++k) {
            step[k] = at.d[k];
            double slope = at.g[k];
            for (Size j = 0; j < n; ++j) slope -= at.hessian[k * n + j] * at.d[j];
            at.rhs[k] = slope;
        }
        for (Size k = 0; k < n; ++k) at.d[k] = 0.0;
        solve_free_entries(at, n);
        double length = 1.0;
        Size blocking = -1;
        for (Size k = 0; k < n; ++k) {
            const double d = step[k];
            step[k] = at.d[k];
            at.d[k] = d;
            if (at.side[k] != 0.0 || at.moving[k] == 0.0) continue;
            const double room = step[k] > 0.0 ? up(at, k) - d : down(at, k) - d;
            if (absolute(step[k]) * length > absolute(room)) {
                length = absolute(room) / larger(absolute(step[k]), TINY);
                blocking = k;
            }
        }
        for (Size k = 0; k < n; ++k)
            if (at.side[k] == 0.0 && at.moving[k] != 0.0)
                at.d[k] = clip(at.d[k] + length * step[k], down(at, k), up(at, k));
        if (blocking >= 0) {
            at.side[blocking] = step[blocking] > 0.0 ? 1.0 : -1.0;
            at.d[blocking] = step[blocking] > 0.0 ? up(at, blocking) : down(at, blocking);
            continue;
        }
        double worst = 0.0;
        for (Size k = 0; k < n; ++k) {
            if (at.side[k] == 0.0 || !(down(at, k) < up(at, k))) continue;
            double size = absolute(at.g[k]), slope = at.g[k];
            for (Size j = 0; j < n; ++j) {
                const double term = at.hessian[k * n + j] * at.d[j];
                size += absolute(term);
                slope -= term;
            }
            const double wrong = -at.side[k] * slope;
            if (wrong > LEAST_PIVOT * size && wrong > worst * size) {
                worst = wrong / larger(size, TINY);
                blocking = k;
            }
        }
        if (blocking < 0) return systems;
        at.side[blocking] = 0.0;
    }
    return last;
}

}  // namespace coldq::COLDQ_LEVEL
