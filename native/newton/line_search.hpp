// How far to go along a direction of the dual: a safeguarded Newton iteration on its slope.
//
// Along w = A'd the slope at t is  w'clip(z - t w) - offset - bend t,  piecewise linear and falling
// from `start` > 0. In lanes a few places are tried, and a lane in which anything is in doubt says
// so; one instance alone then goes through the doubtful cases as well.
#pragma once

#include "newton/instance.hpp"

namespace coldq::COLDQ_LEVEL {

constexpr double SEARCH_TOLERANCE =
    0.02;  // of the slope at the start: looser searches cost more Newton steps
constexpr double FLAT_SLOPE = 1e-6;     // of the slope at the start: less is a flat stretch
constexpr double NO_CURVATURE = 1e-16;  // of |w|^2: less is what regularisation makes of none
constexpr int FEW_PLACES = 12, MOST_PLACES = 100;

template <class T>
struct Search {
    T start, offset, bend, limit;  // limit: where the first multiplier meets its bound, at least 1
    T steep;                       // |w|^2
};

template <class T>
struct Found {
    T t;
    Mask<T> doubt;
};

// The slope at t and its rate of fall.
template <class T>
COLDQ_INLINE Terms<T, 2> slope_at(const Instance<T>& of, const Iterate<T>& at,
                                  const Search<T>& along, T t) {
    auto sum = sums_over<2, T>(of.p, [&](auto read) __attribute__((always_inline)) {
        const auto w = read(at.w);
        using V = decltype(read(at.w));
        const V s = read(at.z) - V(t) * w;
        const V x = clip(s, V(read(of.lower)), V(read(of.upper)));
        return Terms<V, 2>{{w * x, select(s == x, w * w, V(0.0))}};
    });
    return {{(sum.of[0] - along.offset) - along.bend * t, sum.of[1] + along.bend}};
}

// Where the slope at t is next to nothing: the first place from which on hardly any coordinate
// moves until t; t if they do. Of a direction without curvature the regularised piece returns a
// huge multiple, beside which the rest of d is small: coordinates that only this rest moves do not
// count.
template <class T>
COLDQ_INLINE T start_of_flat_stretch(const Instance<T>& of, const Iterate<T>& at, T steep, T t,
                                     T curvature) {
    const T zero(0.0), least = T(NO_CURVATURE) * steep;
    T first = zero;
    for (Size i = 0; i < of.p; ++i) {
        const T w = at.w[i];
        const T leave = select(w > zero, of.lower[i], of.upper[i]);
        const T meets = (at.z[i] - leave) / select(w == zero, T(1.0), w);
        const auto counts = (w * w > least) & (absolute(leave) < T(INFINITE)) & (meets <= t);
        first = select(counts, larger(first, meets), first);
    }
    return select((first > zero) & !(curvature > least), first, t);
}

// Where the dual stops rising, in the lanes that are wanted.
template <class T>
COLDQ_INLINE Found<T> search(const Instance<T>& of, const Iterate<T>& at, const Search<T>& along,
                             Mask<T> wanted) {
    const T zero(0.0), endless(INFINITE), least(TINY);
    T left = zero, right = endless, t(1.0), found = zero;
    Mask<T> going = wanted, doubt = zero > zero;
    for (int place = 0; place < FEW_PLACES && any(going); ++place) {
        const Terms<T, 2> sum = slope_at(of, at, along, t);
        const T slope = sum.of[0], curvature = sum.of[1];
        const auto steep = absolute(slope) > SEARCH_TOLERANCE * along.start;
        const auto rising = slope > zero, curved = curvature > zero;
        const T newton = t + slope / larger(curvature, least);
        const T low = select(rising, t, left), high = select(rising, right, t);
        const T middle = 0.5 * (low + high);
        T up = select(curved, newton, endless);
        up = smaller(select(up >= high, middle, up), along.limit);
        T down = select(curved, newton, low);
        down = select(down <= low, middle, down);
        const T next = select(rising, up, down);
        const auto at_limit = steep & rising & (t >= along.limit);
        const auto goes_on = going & steep & !at_limit;
        const auto sound = (low < next) & (next < endless);
        doubt = doubt | (goes_on & !sound) | (going & !(absolute(slope) < endless));
        T stop = select(at_limit, along.limit, t);
        const auto flat = going & !steep & (absolute(slope) <= FLAT_SLOPE * along.start);
        if (any(flat))
            stop = select(flat, start_of_flat_stretch(of, at, along.steep, t, curvature), stop);
        found = select(going & !goes_on, stop, found);
        going = goes_on & sound;
        left = low;
        right = high;
        t = next;
    }
    return {found, Mask<T>(doubt | going)};
}

// A place beyond t where the last coordinate has left its bounds; t if there is none.
inline double beyond_breakpoints(const Instance<double>& of, const Iterate<double>& at, double t) {
    double far = t;
    for (Size i = 0; i < of.p; ++i) {
        const double w = at.w[i];
        if (w == 0.0) continue;
        const double enter = w > 0.0 ? of.upper[i] : of.lower[i];
        const double leave = w > 0.0 ? of.lower[i] : of.upper[i];
        if (absolute(leave) < INFINITE)
            far = larger(far, (at.z[i] - leave) / w);
        else
            far = larger(far, 2.0 * (at.z[i] - enter) / w);
    }
    return far;
}

// The same search of one instance, whatever it meets; infinite where the dual rises for ever, that
// is where enforced rows have no common point.
inline double search_patiently(const Instance<double>& of, const Iterate<double>& at,
                               const Search<double>& along) {
    double left = 0.0, right = INFINITE, t = 1.0;
    for (int place = 0; place < MOST_PLACES; ++place) {
        const Terms<double, 2> sum = slope_at(of, at, along, t);
        const double slope = sum.of[0], curvature = sum.of[1];
        if (!(absolute(slope) > SEARCH_TOLERANCE * along.start)) {
            const bool flat = absolute(slope) <= FLAT_SLOPE * along.start;
            return flat ? start_of_flat_stretch(of, at, along.steep, t, curvature) : t;
        }
        const double newton = t + slope / larger(curvature, TINY);
        if (slope > 0.0) {
            if (t >= along.limit) return along.limit;
            left = t;
            t = curvature > 0.0 ? newton : INFINITE;
            if (t >= right) t = 0.5 * (left + right);
            t = smaller(t, along.limit);
            if (t == INFINITE) {
                t = beyond_breakpoints(of, at, left);
                if (t <= left) return INFINITE;
            }
        } else {
            right = t;
            t = curvature > 0.0 ? newton : left;
            if (t <= left) t = 0.5 * (left + right);
        }
        if (!(left < t)) return t;
    }
    return t;
}

}  // namespace coldq::COLDQ_LEVEL
