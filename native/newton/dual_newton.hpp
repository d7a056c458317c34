// Affine rows on a box: the dual Newton method.
//
// Each step maximises the dual's quadratic piece at mu over the box of the multipliers, and is
// followed by a line search along the whole piecewise quadratic (finite Newton methods for convex
// piecewise quadratics: Li and Swetits 1997; Sun 1997). z = y - A'mu is carried along by increments
// and never formed afresh: where y is huge (a small alpha) the increments shrink as the iteration
// converges, so that g(x) goes to zero at the accuracy of x, not of y.
//
// The ordinary way (a few steps, nothing in doubt) is written once, for one instance or several in
// lanes. What is out of the ordinary is left to `solve_one`, which goes on alone.
#pragma once

#include "newton/line_search.hpp"
#include "newton/piece.hpp"
#include "newton/residual.hpp"

namespace coldq::COLDQ_LEVEL {

constexpr double X_FLOOR = 1e-3;          // as what a coordinate counts at least in a row's terms
constexpr double ROW_TOLERANCE = 1e-13;   // of the size of a row's terms: a few hundred roundings
constexpr double REGULARISATION = 1e-11;  // of a row's squared length: the piece has one maximiser
constexpr double REFRESH_ABOVE = 1e-12;   // the residual above which z is formed afresh
constexpr double UNSETTLED = 1e-6;        // at least the residual of what was given up on the way
constexpr double LONG_MULTIPLIER = 1e5;   // times the size of y: it costs x five digits
constexpr double SMALL_LENGTH = 1e-100;   // of a row, guards a division
constexpr double NO_ENTRY = 1e-14;        // of a row's squared length: less of it is free
constexpr int ORDINARY_STEPS = 6;

struct Limits {
    double systems;  // how many may be solved
    bool apart;      // whether rows are judged by the coordinates that they have
};

// Set the dual's gradient, and the size of the terms that each of its entries is the sum of.
template <class T>
COLDQ_INLINE void set_gradient(const Instance<T>& of, const Iterate<T>& at) {
    for (Size k = 0; k < of.n; ++k) {
        const T* row = of.A + k * of.p;
        const auto sum = sums_over<2, T>(of.p, [&](auto read) __attribute__((always_inline)) {
            using V = decltype(read(row));
            const V a = read(row), x = read(at.x);
            return Terms<V, 2>{{a * x, absolute(a) * larger(absolute(x), V(X_FLOOR))}};
        });
        const T soft = at.soft[k] * at.mu[k];
        at.g[k] = (sum.of[0] - of.b[k]) - soft;
        at.scale[k] = (sum.of[1] + absolute(of.b[k])) + absolute(soft);
    }
}

template <class T>
COLDQ_INLINE void set_x(const Instance<T>& of, const Iterate<T>& at) {
    for (Size i = 0; i < of.p; ++i) at.x[i] = clip(at.z[i], of.lower[i], of.upper[i]);
}

// The product of two rows over the free coordinates.
template <class T>
COLDQ_INLINE T free_product(const Instance<T>& of, const Iterate<T>& at, const T* row,
                            const T* other) {
    return sum_over<T>(of.p, [&](auto read) __attribute__((always_inline)) {
        return (read(at.free) * read(row)) * read(other);
    });
}

// Set what the iteration starts from, multipliers nearest to zero; where a row that is constant on
// the box cannot hold.
template <class T>
COLDQ_INLINE Mask<T> begin(const Instance<T>& of, const Iterate<T>& at) {
    const T zero(0.0), half = T(0.5) / of.alpha;
    for (Size i = 0; i < of.p; ++i) {
        at.y[i] = of.center[i] - of.gradient[i] * half;
        at.z[i] = at.y[i];
        at.free[i] = select(of.lower[i] < of.upper[i], T(1.0), zero);
    }
    for (Size k = 0; k < of.n; ++k) {
        const T* row = of.A + k * of.p;
        at.lo[k] = of.floor[k] * half;
        at.hi[k] = of.weights[k] * half;
        at.soft[k] = of.soft[k] * (T(2.0) * of.alpha);
        at.norm[k] = at.soft[k] + free_product(of, at, row, row);
        at.mu[k] = clip(zero, at.lo[k], at.hi[k]);
    }
    set_x(of, at);
    set_gradient(of, at);
    Mask<T> impossible = zero > zero, started = impossible;
    for (Size k = 0; k < of.n; ++k) {
        // A row that is constant on the box has its multiplier at a bound, once and for all.
        const auto constant = (at.norm[k] == zero) & !(at.g[k] == zero);
        const T bound = select(at.g[k] > zero, at.hi[k], at.lo[k]);
        const auto endless = absolute(bound) == T(INFINITE);
        impossible = impossible | (constant & endless);
        at.mu[k] = select(constant, select(endless, zero, bound), at.mu[k]);
        const auto used = !(at.mu[k] == zero);
        started = started | used;
        if (!any(used)) continue;
        for (Size i = 0; i < of.p; ++i)
            at.z[i] = select(used, at.z[i] - at.mu[k] * of.A[k * of.p + i], at.z[i]);
    }
    if (any(started)) {
        set_x(of, at);
        set_gradient(of, at);
    }
    return impossible;
}

// Where y is finite and the box is one; NaN in rows is found by their residuals.
template <class T>
COLDQ_INLINE Mask<T> is_sound(const Instance<T>& of, const Iterate<T>& at) {
    Mask<T> sound = of.alpha > T(0.0);
    for (Size i = 0; i < of.p; ++i)
        sound = sound & (absolute(at.y[i]) < T(INFINITE)) & (of.lower[i] <= of.upper[i]);
    return sound;
}

// Mark the rows whose multiplier should move; where none need do so by much.
template <class T>
COLDQ_INLINE Mask<T> mark_moving(const Iterate<T>& at, Size n) {
    const T zero(0.0), one(1.0);
    Mask<T> settled = zero == zero;
    for (Size k = 0; k < n; ++k) {
        const T tolerance = T(ROW_TOLERANCE) * at.scale[k];
        const auto held = ((at.mu[k] <= at.lo[k]) & (at.g[k] <= tolerance)) |
                          ((at.mu[k] >= at.hi[k]) & (at.g[k] >= -tolerance)) | (at.norm[k] == zero);
        at.moving[k] = select(held, zero, one);
        settled = settled & (held | (absolute(at.g[k]) <= tolerance));
    }
    return settled;
}

// Set the quadratic piece that holds here: x moves where it is free.
template <class T>
COLDQ_INLINE void set_piece(const Instance<T>& of, const Iterate<T>& at) {
    const T zero(0.0), one(1.0);
    for (Size i = 0; i < of.p; ++i)
        at.free[i] = select((of.lower[i] < at.z[i]) & (at.z[i] < of.upper[i]), one, zero);
    for (Size k = 0; k < of.n; ++k) {
        const T* row = of.A + k * of.p;
        for (Size j = 0; j <= k; ++j) {
            const T* other = of.A + j * of.p;
            T entry = zero;
            if (any((at.moving[k] > zero) & (at.moving[j] > zero)))
                entry = free_product(of, at, row, other);
            if (j == k) entry = (entry + at.soft[k]) + T(REGULARISATION) * at.norm[k];
            at.hessian[k * of.n + j] = entry;
            at.hessian[j * of.n + k] = entry;
        }
    }
}

// Set d, zero in rows that stay, and w = A'd; what a line search along it takes.
template <class T>
COLDQ_INLINE Search<T> set_direction(const Instance<T>& of, const Iterate<T>& at, Mask<T> wanted) {
    const T zero(0.0), tiny(TINY);
    Search<T> along{zero, zero, zero, T(INFINITE), zero};
    for (Size i = 0; i < of.p; ++i) at.w[i] = zero;
    for (Size k = 0; k < of.n; ++k) {
        const T d = select(wanted & (at.moving[k] > zero), at.d[k], zero);
        at.d[k] = d;
        along.start = along.start + d * at.g[k];
        along.offset = along.offset + d * (of.b[k] + at.soft[k] * at.mu[k]);
        along.bend = along.bend + at.soft[k] * d * d;
        const T room = select(d > zero, up(at, k), down(at, k)) /
                       select(d > zero, larger(d, tiny), smaller(d, -tiny));
        along.limit = smaller(along.limit, select(d == zero, along.limit, room));
        for (Size i = 0; i < of.p; ++i) at.w[i] = at.w[i] + d * of.A[k * of.p + i];
    }
    along.limit = larger(along.limit, T(1.0));
    along.steep = dot<T>(at.w, at.w, of.p);
    return along;
}

// Go along d by t; multipliers that meet a bound are at it exactly.
template <class T>
COLDQ_INLINE void advance(const Instance<T>& of, const Iterate<T>& at, T t) {
    for (Size k = 0; k < of.n; ++k) {
        const T step = t * at.d[k];
        const T moved = select(step <= down(at, k), at.lo[k], at.mu[k] + step);
        at.mu[k] = select(at.d[k] == T(0.0), at.mu[k], select(step >= up(at, k), at.hi[k], moved));
    }
    for (Size i = 0; i < of.p; ++i) at.z[i] = select(t > T(0.0), at.z[i] - t * at.w[i], at.z[i]);
    set_x(of, at);
    set_gradient(of, at);
}

// The multipliers of the problem as it was given; what is at a bound is so exactly.
template <class T>
COLDQ_INLINE void give_multipliers(const Instance<T>& of, const Iterate<T>& at, T* multipliers) {
    for (Size k = 0; k < of.n; ++k) {
        const T given = clip(at.mu[k] * (T(2.0) * of.alpha), of.floor[k], of.weights[k]);
        const T bound = select(at.mu[k] <= at.lo[k], of.floor[k], given);
        multipliers[k] = select(at.mu[k] >= at.hi[k], of.weights[k], bound);
    }
}

// Where multipliers of enforced rows are far longer than y: y - A'mu has lost digits there.
template <class T>
COLDQ_INLINE Mask<T> has_long_multiplier(const Instance<T>& of, const Iterate<T>& at) {
    const T zero(0.0), endless(INFINITE);
    T size(1.0);
    for (Size i = 0; i < of.p; ++i) size = larger(size, T(1.0) + absolute(at.y[i]));
    Mask<T> found = zero > zero;
    for (Size k = 0; k < of.n; ++k) {
        const auto enforced = ((at.hi[k] == endless) & (at.mu[k] > zero)) |
                              ((at.lo[k] == -endless) & (at.mu[k] < zero));
        const T most = T(LONG_MULTIPLIER) * size;
        found = found | (enforced & ((at.mu[k] * at.mu[k]) * at.norm[k] > most * most));
    }
    return found;
}

// The ordinary way; where it ended, in the others nothing was found. Their residuals are set. What
// is known of the sizes when this is compiled makes loops straight.
template <class T>
COLDQ_INLINE Mask<T> solve_ordinary(const Instance<T>& of, const Iterate<T>& at, T& residual) {
    const T zero(0.0);
    Mask<T> left = begin(of, at), done = zero > zero;
    left = left | !is_sound(of, at);
    for (int iteration = 0; iteration <= ORDINARY_STEPS; ++iteration) {
        done = done | mark_moving(at, of.n);
        const Mask<T> open = !(done | left);
        if (!any(open) || iteration == ORDINARY_STEPS) {
            left = left | open;
            break;
        }
        set_piece(of, at);
        int rounds = 0;
        left = left | !pivot(at, of.n, open, rounds);
        const Search<T> along = set_direction(of, at, open);
        const Found<T> found = search(of, at, along, open);
        left = left | (open & (found.doubt | !(along.start > zero)));
        advance(of, at, select(open & !left, found.t, zero));
    }
    form_z(of, at);
    left = left | !(stationarity(of, at) <= T(REFRESH_ABOVE)) | has_long_multiplier(of, at);
    residual = judge(of, at, false);
    const Mask<T> sound = residual < T(INFINITE);
    return sound & Mask<T>(!left);
}

// Let only the rows move that no free coordinate enters, if such a row should move. The dual is
// linear along them up to a breakpoint that may be very far: moved together with the others they
// would share one step length with them, and creep.
inline void keep_flat_rows(const Iterate<double>& at, Size n) {
    bool found = false;
    for (Size k = 0; k < n; ++k) {
        const double curvature = at.hessian[k * n + k] - REGULARISATION * at.norm[k];
        const bool flat = at.moving[k] > 0.0 && absolute(at.g[k]) > ROW_TOLERANCE * at.scale[k] &&
                          curvature <= NO_ENTRY * at.norm[k];
        at.side[k] = flat ? 1.0 : 0.0;
        found = found || flat;
    }
    for (Size k = 0; k < n && found; ++k) at.moving[k] = at.side[k];
}

// Shorten multipliers of enforced rows that are far longer than y, and form z with those.
inline void shorten_multipliers(const Instance<double>& of, const Iterate<double>& at) {
    double size = 1.0;
    for (Size i = 0; i < of.p; ++i) size = larger(size, 1.0 + absolute(at.y[i]));
    for (Size k = 0; k < of.n; ++k) {
        const double most =
            LONG_MULTIPLIER * size / larger(__builtin_sqrt(at.norm[k]), SMALL_LENGTH);
        if (at.hi[k] == INFINITE) at.mu[k] = smaller(at.mu[k], most);
        if (at.lo[k] == -INFINITE) at.mu[k] = larger(at.mu[k], -most);
    }
    form_z(of, at);
}

// One instance, whatever it meets: the residual, infinite where enforced rows seem to have no
// common point, NaN where anything is. at.x and at.mu have the answer. `step` has room for n
// numbers.
inline __attribute__((noinline)) double solve_one(const Instance<double>& of,
                                                  const Iterate<double>& at, Limits limits,
                                                  double* step) {
    if (begin(of, at)) return INFINITE;
    if (!is_sound(of, at)) return NOT_A_NUMBER;
    const int last = 40 + 10 * static_cast<int>(of.n);
    double residual = INFINITE, spent = 0.0;
    int refreshed = 0;
    bool formed = false;
    for (int iteration = 0; iteration < last && spent <= limits.systems; ++iteration) {
        formed = false;
        if (mark_moving(at, of.n)) {
            form_z(of, at);  // long detours leave rounding in z
            formed = true;
            residual = stationarity(of, at);
            const bool shortens = refreshed == 0 && has_long_multiplier(of, at);
            if ((residual <= REFRESH_ABOVE && !shortens) || refreshed == 2) break;
            ++refreshed;
            if (shortens) shorten_multipliers(of, at);
            set_x(of, at);
            set_gradient(of, at);
            continue;
        }
        set_piece(of, at);
        if (iteration >= ORDINARY_STEPS) keep_flat_rows(at, of.n);
        int rounds = 0;
        if (!pivot(at, of.n, true, rounds)) rounds += climb(at, of.n, limits.systems, step);
        spent += rounds;
        const Search<double> along = set_direction(of, at, true);
        if (!(along.start > 0.0)) break;
        Found<double> found = search(of, at, along, true);
        if (found.doubt) found.t = search_patiently(of, at, along);
        if (found.t == INFINITE) return INFINITE;
        advance(of, at, found.t);
    }
    if (!formed) {
        form_z(of, at);
        residual = stationarity(of, at);
    }
    if (!(residual < INFINITE)) return residual;
    const double judged = judge(of, at, limits.apart);
    return spent > limits.systems && residual > REFRESH_ABOVE ? larger(judged, UNSETTLED) : judged;
}

}  // namespace coldq::COLDQ_LEVEL
