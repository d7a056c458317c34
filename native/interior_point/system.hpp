// The linear system of a step: over the coordinates or over the rows, whichever are fewer.
//
//     (diag(stiff) + A' W A + S' V S) d = right,    along = A d,
//
// where S are the sums of blocks of coordinates. With no more rows than coordinates, these and the
// stiffness are inverted by Sherman and Morrison's formula block by block, and there remains
//
//     (1/W + A M^-1 A') z = A M^-1 right,   M = diag(stiff) + S'VS,   along = z / W,
//
// which leaves `along` all its digits where weights are large. Its matrix is a sum of squares about
// the mean of each block, so that nothing is left of a difference: with the flow f = 1 / stiff, the
// mean c of a row of A over a block under f, F = sum f and V,
//
//     A M^-1 A' = sum over i of f_i (a_i - c)(a_i - c)' + sum over blocks of c c' F / (1 + V F).
#pragma once

#include "contractions.hpp"
#include "dense.hpp"

namespace coldq::COLDQ_LEVEL {

constexpr double LEAST_PIVOT = 1e-14;  // of the diagonal entry
constexpr double NO_WEIGHT = 1e-300;   // guards a division by a weight of 0

struct System {
    Matrix A;
    Size n, p, k;        // rows, coordinates and blocks
    const Size* first;   // of each block, and p
    const double* kind;  // infinite where a block has no sum
    bool over_rows, summed;
    Size order;
    double *H, *inverse, *work;          // the matrix, then its factor
    double *flow, *taken, *mean, *part;  // over the rows; `taken` is V / (1 + V F) of a block

    static bool is_over_rows(Size n, Size p) { return n <= p; }
    static Size size(Size n, Size p, Size k) {
        const Size order = is_over_rows(n, p) ? n : p;
        const Size work = is_over_rows(n, p) ? weighted_rows_work(n) : weighted_columns_work(p);
        return order * order + order + work + (n + 3) * (p + k) + n + p;
    }

    System(double* memory, Matrix A_, Size k_, const Size* first_, const double* kind_)
        : A(A_), n(A_.rows), p(A_.columns), k(k_), first(first_), kind(kind_) {
        over_rows = is_over_rows(n, p);
        order = over_rows ? n : p;
        summed = false;
        for (Size j = 0; j < k; ++j) summed = summed || has_sum(j);
        auto take = [&](Size count) { return (memory += count) - count; };
        H = take(order * order), inverse = take(order);
        flow = take(p + k), taken = take(k), mean = take((n + 1) * (p + k)), part = take(n + p);
        work = memory;
    }

    bool has_sum(Size j) const { return kind[j] < HUGE_VAL; }

    // The blocks' sums, 0 where they may be anything.
    void sums_of(const double* x, double* out) const {
        for (Size j = 0; j < k; ++j)
            out[j] = has_sum(j) ? sum<double>(first[j + 1] - first[j],
                                              [=, this](Size i) { return x[first[j] + i]; })
                                : 0.0;
    }

    // A x, then the sums.
    void times(const double* x, double* out) const {
        matvec(A, {x, p}, {out, n});
        sums_of(x, out + n);
    }

    // Take from `out` A'z, and what sums of such multipliers pull.
    void take_across(const double* z, double* out) const {
        add_products<true>(out, p, 1, p, Lines<double>{z, 1}, Lines<double>{A.at, A.step}, n);
        for (Size j = 0; j < k; ++j)
            if (has_sum(j))
                for (Size i = first[j]; i < first[j + 1]; ++i) out[i] -= z[n + j];
    }

    // M^-1 d in place.
    void ease(double* d) const {
        for (Size j = 0; j < k; ++j) {
            double total = 0.0;
            for (Size i = first[j]; i < first[j + 1]; ++i) total += d[i] *= flow[i];
            for (Size i = first[j]; has_sum(j) && i < first[j + 1]; ++i)
                d[i] -= flow[i] * (taken[j] * total);
        }
    }

    // Factor the system of n rows and k sums of these weights.
    void begin(const double* weight, const double* stiff) {
        for (Size a = 0; a < order * order; ++a) H[a] = 0.0;
        if (over_rows) {
            for (Size a = 0; a < n; ++a) H[a * n + a] = 1.0 / (weight[a] + NO_WEIGHT);
            begin_over_rows(weight + n, stiff);
        } else {
            for (Size i = 0; i < p; ++i) H[i * p + i] = stiff[i];
            add_sums(weight + n);
            add_weighted_columns(H, p, Lines<double>{A.at, A.step}, n, p, weight, work);
        }
        factor(H, order, order, inverse, LEAST_PIVOT);
    }

    void begin_over_rows(const double* weight, const double* stiff) {
        for (Size i = 0; i < p; ++i) flow[i] = 1.0 / stiff[i];
        if (!summed) {
            for (Size j = 0; j < k; ++j) taken[j] = 0.0;
            add_weighted_rows(H, n, Lines<double>{A.at, A.step}, n, p, flow, work);
            return;
        }
        // Each row about the means of its blocks, then the means.
        const Size wide = p + k;
        for (Size j = 0; j < k; ++j) {
            const Size from = first[j], count = first[j + 1] - from;
            const double through = sum<double>(count, [=, this](Size i) { return flow[from + i]; });
            const double bent = 1.0 + weight[j] * through;
            taken[j] = has_sum(j) ? weight[j] / bent : 0.0;
            flow[p + j] = has_sum(j) ? through / bent : 0.0;
            for (Size a = 0; a < n; ++a) {
                const double* row = A[a] + from;
                double* about = mean + a * wide;
                const double own =
                    has_sum(j) ? sum<double>(
                                     count, [=, this](Size i) { return flow[from + i] * row[i]; }) /
                                     through
                               : 0.0;
                for (Size i = 0; i < count; ++i) about[from + i] = row[i] - own;
                about[p + j] = own;
            }
        }
        add_weighted_rows(H, n, Lines<double>{mean, wide}, n, wide, flow, work);
    }

    void add_sums(const double* weight) {
        for (Size j = 0; j < k; ++j)
            for (Size a = first[j]; has_sum(j) && a < first[j + 1]; ++a)
                for (Size c = a; c < first[j + 1]; ++c) H[a * p + c] += weight[j];
    }

    // d in the place of a right side; `along` has A d and the sums.
    void solve_for(const double* weight, double* d, double* along) {
        if (!over_rows) {
            solve(H, p, p, inverse, d);
            times(d, along);
            return;
        }
        double *eased = part, *z = part + p;
        for (Size i = 0; i < p; ++i) eased[i] = d[i];
        ease(eased);
        matvec(A, {eased, p}, {z, n});
        solve(H, n, n, inverse, z);
        add_products<true>(d, p, 1, p, Lines<double>{z, 1}, Lines<double>{A.at, A.step}, n);
        ease(d);
        sums_of(d, along + n);
        for (Size a = 0; a < n; ++a) along[a] = z[a] / (weight[a] + NO_WEIGHT);
    }
};

}  // namespace coldq::COLDQ_LEVEL
