// A pool of step sizes c under AdaHedge: each takes its own steps, the weighted mean is played.
//
// With d the gradient, S the sum of |d|^2, D the largest |d| and R the domain's diameter, member c
// steps by d / F with alpha = c sqrt(S) / R / F, where F = D + 2 c sqrt(S). Its loss is
// l^c = <d, x^c - x>. With w the weights, Delta the mixability gap so far and eta = ln K / Delta
//
//     Delta += <w, l> + ln(sum_c w^c exp(-eta l^c)) / eta,   w^c ~ exp(-eta L^c),
//
// where L^c are the losses so far; while the gap is zero, the leaders share the weight.
#pragma once

#include "contractions.hpp"

namespace coldq::COLDQ_LEVEL {

constexpr double ALIKE = 1e-10;  // losses, relative to R |d|, that rounding alone may make

// The entries of a hedge, as pool.py names them: the gap, S, D, and the step size of most weight.
enum Hedge : Size { MIXABILITY_GAP, SQUARES, STEEPEST, HEAVIEST };

template <class Number>
struct Pool {
    Number *hedge, *losses, *weights;
};

// A slot as the pool meets it: its K members' points, and the decision that was made of them.
struct PoolSlot {
    Size K, p;
    const double *gradient, *x, *points, *sizes;
    double R;
};

// The mix loss -ln(sum_k w_k exp(-eta l_k)) / eta; of the leader for eta without bound.
inline double mixed(Size K, const double* loss, const double* weights, double gap, double leader) {
    if (!(gap > 0.0)) return leader;
    double low = HUGE_VAL;
    for (Size k = 0; k < K; ++k)
        if (weights[k] > 0.0) low = smaller(low, loss[k]);
    const double eta = std::log(double(K)) / gap;
    const double total = sum<double>(K, [&](Size k) {
        return weights[k] * std::exp(-eta * (weights[k] > 0.0 ? loss[k] - low : 0.0));
    });
    return low - std::log(total) / (eta > 0.0 ? eta : 1.0);
}

// The pool after a slot, and what each member steps with. `loss` has room for K numbers.
inline void weigh(const PoolSlot& slot, const Pool<const double>& before, const Pool<double>& after,
                  double* directions, double* alphas, double* loss) {
    const Size K = slot.K, p = slot.p;
    const double square = dot(slot.gradient, slot.gradient, p), size = root(square);
    const double alike = ALIKE * slot.R * size, gap = before.hedge[MIXABILITY_GAP];
    const double S = before.hedge[SQUARES] + square, D = larger(before.hedge[STEEPEST], size);

    double least = HUGE_VAL, least_before = HUGE_VAL;
    for (Size k = 0; k < K; ++k) {
        const double* point = slot.points + k * p;
        loss[k] = sum_over<double>(p, [&](auto read) __attribute__((always_inline)) {
            return (read(point) - read(slot.x)) * read(slot.gradient);
        });
        if (absolute(loss[k]) <= alike) loss[k] = 0.0;
        after.losses[k] = before.losses[k] + loss[k];
        least = smaller(least, after.losses[k]);
        least_before = smaller(least_before, before.losses[k]);
    }
    const double lost =
        dot(before.weights, loss, K) - mixed(K, loss, before.weights, gap, least - least_before);
    const double next_gap = K > 1 && lost > alike ? gap + lost : gap;
    const double eta = std::log(double(K)) / (next_gap > 0.0 ? next_gap : 1.0);
    for (Size k = 0; k < K; ++k) {
        after.losses[k] -= least;
        after.weights[k] = next_gap > 0.0 ? std::exp(-eta * after.losses[k])
                           : after.losses[k] <= ALIKE * slot.R * D ? 1.0
                                                                   : 0.0;
    }
    const double total = sum<double>(K, [&](Size k) { return after.weights[k]; });
    Size heaviest = 0;
    for (Size k = 0; k < K; ++k) {
        after.weights[k] /= total;
        if (after.weights[k] > after.weights[heaviest]) heaviest = k;
    }
    after.hedge[MIXABILITY_GAP] = next_gap;
    after.hedge[SQUARES] = S;
    after.hedge[STEEPEST] = D;
    after.hedge[HEAVIEST] = slot.sizes[heaviest];

    // Before any gradient the steps are those of a first one, of any size.
    const double way = root(S > 0.0 ? S : 1.0), steepest = D > 0.0 ? D : 1.0;
    for (Size k = 0; k < K; ++k) {
        const double F = steepest + 2.0 * slot.sizes[k] * way;
        alphas[k] = slot.sizes[k] * way / slot.R / F;
        across(p, [&]<class T>(T, Size i) {
            store(directions + k * p + i, load<T>(slot.gradient + i) / T(F));
        });
    }
}

// The weighted mean of the pool, which rounding does not take out of a box.
inline void play(Vector weights, Matrix points, OutVector x) {
    across(x.size, [&]<class T>(T, Size i) {
        T least(HUGE_VAL), most(-HUGE_VAL);
        const T mean = sum<T>(weights.size, [&](Size k) {
            const T entry = load<T>(points[k] + i);
            least = smaller(least, entry);
            most = larger(most, entry);
            return entry * T(weights[k]);
        });
        store(&x[i], smaller(larger(mean, least), most));
    });
}

}  // namespace coldq::COLDQ_LEVEL
