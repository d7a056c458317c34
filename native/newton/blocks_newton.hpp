// Affine rows on blocks of coordinates with sums: the dual Newton method, the sums eliminated.
//
// Given the multipliers mu of the rows, x(mu) is the projection of y - A'mu, block by block, by
// thresholds. So the dual has a variable for each row and none for a block; its curvature is
// A_F (I - 11'/f) A_F' over the f free coordinates F of each block whose sum is held. As on a box
// z = y - A'mu - theta is carried along by increments, so that x has its own digits and not y's.
#pragma once

#include "newton/box_quadratic.hpp"
#include "newton/residual.hpp"
#include "newton/thresholds.hpp"

namespace coldq::COLDQ_LEVEL {

constexpr double SIZE_FLOOR = 1e-3;    // as what a coordinate counts at least in a row's terms, in
                                       // units of x that are no larger than 1
constexpr double SETTLED_ROW = 1e-13;  // of the size of a row's terms
constexpr double LEAST_CURVATURE = 1e-11;  // of a row's squared length, is added to the piece
constexpr double EASE =
    1e-3;  // of the worst row's share squared: how much more is far from the end
constexpr double FLAT = 1e-9;  // of a row's squared length: a piece with less says no length
constexpr double FRESH_ABOVE = 1e-12;    // the residual above which z is formed afresh
constexpr Size MANY_MOVING = 64;         // rows that move at once in any case
constexpr Size HASTY = 8, HASTIER = 15;  // rows: with more, the first and second step cost little
constexpr Size SINGLE = 8;               // rows that do even if they depend on each other
constexpr int FLAT_AFTER = 5;            // steps, from which on rows without curvature move alone
constexpr int SLOPES_A_STEP = 5;         // how often a step may ask for the slope, on average
constexpr int HALVINGS = 30;
constexpr double SHORT = 0.1;   // of the way that the piece says: its neighbours are many
constexpr double HURRIED = 30;  // steps: of no more, few may be short
constexpr int FEW_SHORT = 3;

// No more rows are independent than there are coordinates.
inline Size most_moving(Size n, Size p) {
    const Size most = p > MANY_MOVING ? p : MANY_MOVING;
    return n < most ? n : most;
}

template <class R>
struct BlockIterate {
    R rows;
    Blocks set;
    FreeCoordinates free;
    const double *center, *b;
    double *y, *terms, *x;                        // of coordinates
    double least;                                 // as what a coordinate counts in a row's terms
    double *mu, *lo, *hi, *g, *scale, *norm, *d;  // of rows
    Size* chosen;                                 // rows that move, and their
    BoxQuadratic piece;

    static Size size(Size n, Size p, Size k, Size entries) {
        const Size most = most_moving(n, p);
        return 6 * p + 6 * (k + 1) + 7 * n + n +
               BoxQuadratic::size(most, R::room(most, k, entries)) +
               R::scratch(n, p, most, entries);
    }
};

// Set g, and the size of the terms that each of its entries is the sum of.
template <class R>
inline void set_values(const BlockIterate<R>& at) {
    for (Size k = 0; k < at.rows.n; ++k) {
        const auto sum =
            at.rows.template over<2>(k, [&](auto a, auto read) __attribute__((always_inline)) {
                using V = decltype(a);
                const V x = read(at.x);
                return Terms<V, 2>{{a * x, absolute(a) * larger(absolute(x), V(at.least))}};
            });
        at.g[k] = sum.of[0] - at.b[k];
        at.scale[k] = sum.of[1] + absolute(at.b[k]);
    }
}

template <class R>
inline void add_rows(const BlockIterate<R>& at, const double* shares, double sign, double* out) {
    for (Size k = 0; k < at.rows.n; ++k)
        if (shares[k] != 0.0) at.rows.add(k, sign * shares[k], out);
}

// Form z = y - A'mu afresh, and the size of its terms.
template <class R>
inline void form_z(const BlockIterate<R>& at) {
    for (Size i = 0; i < at.rows.p; ++i) {
        at.set.z[i] = at.y[i];
        at.terms[i] = absolute(at.y[i]);
    }
    add_rows(at, at.mu, -1.0, at.set.z);
    for (Size k = 0; k < at.rows.n; ++k)
        if (at.mu[k] != 0.0) at.rows.add_sizes(k, at.mu[k], at.terms);
    for (Size j = 0; j < at.set.count; ++j)
        for (Size i = at.set.first[j]; i < at.set.first[j + 1]; ++i) {
            at.set.z[i] -= at.set.theta[j];
            at.terms[i] += absolute(at.set.theta[j]);
        }
}

// Residuals twice, as on a box: as the iteration has them, and as the answer is judged.
struct Residuals {
    double own = 0.0, judged = 0.0;
    double broken = 0.0;  // finite unless anything is not

    void take(double error, double scale, double size) {
        own = larger(own, error / larger(scale, TINY));
        judged = larger(judged, error / larger(size, TINY));
        broken += error;
    }
};

// What a coordinate is compared with where it counts least: the largest and farthest of all.
struct Extent {
    double largest, reach;

    double least(double size, double own) const {
        return LEAST_SIZE * (size > 0.0 ? own : larger(own, reach));
    }
};

// The errors of x = clip(z), and of a block's sum, which is a row.
template <class R>
inline void judge_block(const BlockIterate<R>& at, Size j, const Extent& extent, Residuals& found) {
    const Blocks& set = at.set;
    const double size = absolute(set.total[j]);
    double over = -set.total[j], own = 0.0;
    for (Size i = set.first[j]; i < set.first[j + 1]; ++i) {
        const double x = at.x[i], z = set.z[i], y = absolute(at.y[i]);
        const double off = absolute(x - clip(z, set.lower[i], set.upper[i]));
        const bool inside = set.lower[i] < z && z < set.upper[i];
        const double noise = inside ? NOISE * (at.terms[i] - y) : 0.0;
        double least =
            larger((y + absolute(at.center[i])) + absolute(x), LEAST_SIZE * extent.largest);
        if (off > 0.0 && !inside) least = size_at_bound(x, z, y, least, set.lower[i], set.upper[i]);
        found.own = larger(found.own, off / (at.terms[i] + at.least / SIZE_FLOOR));
        found.judged = larger(found.judged, (off + noise) / larger(least, TINY));
        found.broken += off;
        over += x;
        own = larger(own, absolute(x));
    }
    if (!set.has_sum(j) || !(over > 0.0 || (over < 0.0 && set.theta[j] > set.kind[j]))) return;
    const double least = extent.least(size, own);
    double scale = size, terms = size;
    for (Size i = set.first[j]; i < set.first[j + 1]; ++i) {
        scale += larger(absolute(at.x[i]), at.least);
        terms += larger(absolute(at.x[i]), least);
    }
    found.take(absolute(over), scale, terms);
}

template <class R>
inline void judge_row(const BlockIterate<R>& at, Size k, const Extent& extent, Residuals& found) {
    const double mu = at.mu[k], g = at.g[k], size = absolute(at.b[k]);
    const double outside =
        larger(at.lo[k] - mu, mu - at.hi[k]) / (at.least / SIZE_FLOOR + absolute(mu));
    found.own = larger(found.own, outside);
    found.broken += outside + g;
    if (!((mu > at.lo[k] && g < 0.0) || (mu < at.hi[k] && g > 0.0))) return;
    const double least = extent.least(size, at.rows.largest(k, at.x));
    const double terms =
        at.rows
            .template over<1>(
                k,
                [&](auto a, auto read) __attribute__((always_inline)) {
                    using V = decltype(a);
                    return Terms<V, 1>{{absolute(a) * larger(absolute(V(read(at.x))), V(least))}};
                })
            .of[0];
    found.take(absolute(g), at.scale[k], size + terms);
}

// The residuals of (x, mu, theta); z is formed afresh.
template <class R>
inline Residuals judge(const BlockIterate<R>& at) {
    form_z(at);
    Extent extent = {0.0, 0.0};
    for (Size i = 0; i < at.rows.p; ++i) {
        const double known = larger(absolute(at.y[i]), absolute(at.center[i]));
        extent.largest = larger(extent.largest, absolute(at.x[i]));
        extent.reach =
            larger(extent.reach, smaller(larger(-at.set.lower[i], at.set.upper[i]), known));
    }
    Residuals found;
    for (Size j = 0; j < at.set.count; ++j) judge_block(at, j, extent, found);
    for (Size k = 0; k < at.rows.n; ++k) judge_row(at, k, extent, found);
    if (!(absolute(found.broken) < INFINITE)) found.own = found.judged = NOT_A_NUMBER;
    return found;
}

// Put rows without a coordinate that can move where their multiplier belongs; whether they hold.
template <class R>
inline bool set_constants(const BlockIterate<R>& at) {
    for (Size k = 0; k < at.rows.n; ++k) {
        if (at.norm[k] != 0.0 || at.g[k] == 0.0) continue;
        at.mu[k] = at.g[k] > 0.0 ? at.hi[k] : at.lo[k];
        if (absolute(at.mu[k]) == INFINITE) return false;
    }
    return true;
}

// List the rows whose multiplier should move; whether none need do so by much.
template <class R>
inline bool list_moving(const BlockIterate<R>& at, Size& m) {
    bool settled = true;
    m = 0;
    for (Size k = 0; k < at.rows.n; ++k) {
        const double g = at.g[k], tolerance = SETTLED_ROW * at.scale[k];
        if ((at.mu[k] <= at.lo[k] && g <= tolerance) || (at.mu[k] >= at.hi[k] && g >= -tolerance) ||
            at.norm[k] == 0.0)
            continue;
        at.chosen[m++] = k;
        settled = settled && absolute(g) <= tolerance;
    }
    return settled;
}

// Keep so many of the m rows that should move: those that hold x back before the others, of each
// those that x violates most for the length that they have, and if these tie the first ones.
template <class R>
inline Size keep_deepest(const BlockIterate<R>& at, Size m, Size most) {
    double deepest = 0.0;
    for (Size a = 0; a < m; ++a) {
        const Size k = at.chosen[a];
        at.d[k] = absolute(at.g[k]) / root(at.norm[k]);
        deepest = larger(deepest, at.d[k]);
    }
    for (Size a = 0; a < m; ++a) {
        const Size k = at.chosen[a];
        at.d[k] += at.lo[k] < at.mu[k] && at.mu[k] < at.hi[k] ? deepest : 0.0;
    }
    auto deeper = [&](double depth) {
        Size count = 0;
        for (Size a = 0; a < m; ++a) count += at.d[at.chosen[a]] > depth;
        return count;
    };
    double least = 0.0, enough = 2.0 * deepest;
    for (int count = 0; count < HALVINGS; ++count) {
        const double middle = 0.5 * (least + enough);
        (deeper(middle) > most ? least : enough) = middle;
    }
    Size room = most - deeper(enough), kept = 0;
    for (Size a = 0; a < m; ++a) {
        const bool deep = at.d[at.chosen[a]] > enough;
        if (!deep && room-- <= 0) continue;
        at.chosen[kept++] = at.chosen[a];
    }
    return kept;
}

// List the coordinates that move with z. Of a block whose sum is held one alone does not.
inline void list_free(const Blocks& set, const FreeCoordinates& free) {
    Size count = 0;
    for (Size j = 0; j < set.count; ++j) {
        const Size begin = count;
        for (Size i = set.first[j]; i < set.first[j + 1]; ++i) {
            free.listed[count] = i;
            count += set.lower[i] < set.z[i] && set.z[i] < set.roof[i];
        }
        if (set.is_held(j) && count == begin + 1) --count;
        free.share[j] = set.is_held(j) && count > begin ? 1.0 / double(count - begin) : 0.0;
        free.end[j] = count;
    }
}

// What the a-th of the chosen rows gains by its multiplier, and how far that may go.
template <class R>
inline void set_room(const BlockIterate<R>& at, Size a) {
    const Size k = at.chosen[a];
    at.piece.gain[a] = at.g[k];
    at.piece.down[a] = at.lo[k] - at.mu[k];
    at.piece.up[a] = at.hi[k] - at.mu[k];
}

// Set the quadratic piece of the chosen rows: m, or fewer where there is no room for all.
template <class R>
inline Size set_piece(BlockIterate<R>& at, Size m, int iteration) {
    BoxQuadratic& piece = at.piece;
    while (!at.rows.set_hessian(at.chosen, m, at.free, piece.hessian))
        m = keep_deepest(at, m, m - m / 4);
    double off = 0.0;
    for (Size a = 0; a < m; ++a) {
        const Size k = at.chosen[a];
        off = larger(off, absolute(at.g[k]) / larger(at.scale[k], TINY));
    }
    // Far from the end some more curvature keeps the piece's maximiser near, and easy to find.
    const double share = larger(LEAST_CURVATURE, EASE * off * off);
    bool flat = false;
    for (Size a = 0; a < m; ++a) {
        const Size k = at.chosen[a];
        double& own = piece.hessian.diagonal(a);
        set_room(at, a);
        piece.side[a] = 0.0;
        // Without curvature the piece does not say how far to go: at first as if all coordinates
        // were free.
        const bool curved = own > FLAT * at.norm[k];
        own += curved ? share * at.norm[k] : at.norm[k];
        piece.solved[a] = curved || !(absolute(at.g[k]) > SETTLED_ROW * at.scale[k]) ? 0.0 : 1.0;
        flat = flat || piece.solved[a] != 0.0;
    }
    for (Size a = 0; a < m; ++a) {
        // The dual is linear along flat rows up to a breakpoint that may be very far: moved
        // together with others they would share one step length with them, and creep.
        if (iteration > FLAT_AFTER && flat && piece.solved[a] == 0.0)
            piece.down[a] = piece.up[a] = 0.0;
        // Entries that would get to their lower bound alone mostly do.
        piece.side[a] = piece.gain[a] < piece.down[a] * piece.hessian.diagonal(a) ? -1.0 : 0.0;
    }
    return m;
}

// Set each row's step as if it were alone: far from the end a piece says little of where to go,
// and its curvature costs more than that.
template <class R>
inline void move_alone(const BlockIterate<R>& at, Size m) {
    for (Size a = 0; a < m; ++a) {
        set_room(at, a);
        at.piece.d[a] =
            clip(at.g[at.chosen[a]] / at.norm[at.chosen[a]], at.piece.down[a], at.piece.up[a]);
    }
}

// Go along the piece's d as far as the dual rises: how far that is, 0 if it does not rise. The
// multipliers move; z does with w = A'd.
template <class R>
inline double advance(const BlockIterate<R>& at, Size m, int& slopes) {
    const BoxQuadratic& piece = at.piece;
    double start = 0.0, offset = 0.0, noise = 0.0, limit = INFINITE;
    for (Size i = 0; i < at.rows.p; ++i) at.set.w[i] = 0.0;
    for (Size a = 0; a < m; ++a) {
        const Size k = at.chosen[a];
        const double d = piece.d[a];
        start += d * at.g[k];
        offset += d * at.b[k];
        noise += SUM_NOISE * absolute(d) * at.scale[k];
        if (d > 0.0) limit = smaller(limit, piece.up[a] / larger(d, TINY));
        if (d < 0.0) limit = smaller(limit, piece.down[a] / smaller(d, -TINY));
    }
    if (!(start > 0.0)) return 0.0;
    for (Size a = 0; a < m; ++a)
        if (piece.d[a] != 0.0) at.rows.add(at.chosen[a], piece.d[a], at.set.w);
    const double t = search(at.set, start, offset, noise, larger(limit, 1.0), slopes);
    if (!(t < INFINITE)) return t;
    for (Size a = 0; a < m; ++a) {
        const Size k = at.chosen[a];
        const double step = t * piece.d[a];
        if (step == 0.0) continue;
        at.mu[k] = step >= piece.up[a]     ? at.hi[k]
                   : step <= piece.down[a] ? at.lo[k]
                                           : at.mu[k] + step;
    }
    return t;
}

// How many rows may move at once from multipliers that nobody chose.
inline Size most_independent(const Blocks& set, const double* x, Size most) {
    Size free = 0;
    for (Size i = 0; i < set.p; ++i) free += set.lower[i] < x[i] && x[i] < set.upper[i];
    if (free < SINGLE) free = SINGLE;
    return free < most ? free : most;
}

// The residual after so many steps, infinite where enforced rows seem to have no common point, NaN
// where anything is. `started` says whether the multipliers were chosen.
template <class R>
inline double solve(BlockIterate<R>& at, double steps, bool started) {
    double t = 0.0, spent = 0.0;
    int refreshed = 0, slopes = 0, shorts = 0;
    bool stuck = false;
    for (int iteration = 0;; ++iteration) {
        place(at.set, t, at.x);
        set_values(at);
        if (iteration < 2 && !set_constants(at)) return INFINITE;
        Size m;
        const bool settled = list_moving(at, m);
        spent = larger(double(iteration - 1), double(slopes) / SLOPES_A_STEP);
        if (settled || stuck || spent >= steps) {
            const Residuals found = judge(at);
            if (found.own <= FRESH_ABOVE || refreshed == 2 || !settled) return found.judged;
            ++refreshed;  // long detours leave rounding in z, which was just formed afresh
            t = 0.0;
            continue;
        }
        const Size most = most_moving(at.rows.n, at.rows.p);
        const Size independent = started ? most : most_independent(at.set, at.x, most);
        const bool hasty = !started && m <= most && m > (iteration == 0 ? HASTY : HASTIER);
        if (hasty && iteration < 2) {
            move_alone(at, m);
        } else {
            if (m > independent) m = keep_deepest(at, m, independent);
            list_free(at.set, at.free);
            m = set_piece(at, m, iteration);
            maximise(at.piece);
        }
        t = advance(at, m, slopes);
        if (t == 0.0) {
            move_alone(at, m);
            t = advance(at, m, slopes);
        }
        if (t == INFINITE) return INFINITE;
        stuck = t == 0.0;
        shorts += t < SHORT && iteration > 1;
        // The end is not near, and other methods are waiting.
        if (shorts == FEW_SHORT && steps <= HURRIED && !started) steps = 0.0;
    }
}

}  // namespace coldq::COLDQ_LEVEL
