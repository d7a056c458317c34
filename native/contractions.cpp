// Sums over core axes, and what learners make of them: each a function of one instance.
#include "contractions.hpp"

#include "each.hpp"

namespace coldq::COLDQ_LEVEL {
namespace {

void dot_of(Vector a, Vector b, double& out) { out = dot(a.at, b.at, a.size); }

Size one_per_row(const Operand* operands) { return operands[0].length[0]; }

// sum_i scale_i log(1 + rate_i x_i)
void log_capacity(Vector scale, Vector rate, Vector x, double& out) {
    out = sum<double>(x.size, [=](Size i) { return scale[i] * std::log1p(rate[i] * x[i]); });
}

// sum_j W_ij x_j over the neighbours, those of a weight, one after the other from -0, to which any
// number may be added without a change: with the identity every bit of x stays.
void mix(Matrix W, Matrix x, OutMatrix out) {
    for (Size i = 0; i < W.rows; ++i) {
        across(x.columns, [&]<class T>(T total, Size k) {
            total = T(-0.0);
            for (Size j = 0; j < W.columns; ++j)
                if (W[i][j] != 0.0) total += T(W[i][j]) * load<T>(x[j] + k);
            store(out[i] + k, total);
        });
    }
}

// The point nearest to x of a ball.
void into_ball(Vector x, Vector center, double radius, OutVector out) {
    double largest = 0.0;
    for (Size i = 0; i < x.size; ++i) largest = larger(largest, absolute(x[i] - center[i]));
    // Divided by the largest first: squares of huge numbers would overflow.
    const double squares = largest == 0.0 ? 0.0 : sum<double>(x.size, [=](Size i) {
        const double part = (x[i] - center[i]) / largest;
        return part * part;
    });
    const double norm = root(squares);
    const bool inside = largest * norm <= radius;
    for (Size i = 0; i < x.size; ++i)
        out[i] = inside ? x[i] : center[i] + (x[i] - center[i]) / largest / norm * radius;
}

// Whether a x <= b follows from A x <= B, one row, on the box.
//
// For any factor l >= 0, on the box and where A x <= B:
//     a x - b <= max over the box of (a - l A) x - (b - l B).
// The right side, with what rounding may add to it, is convex and piecewise linear in l, so that
// Newton's method from l = 0 finds where it stops being positive, if it does. It goes a little too
// far on purpose: at the very place rounding would decide.
bool follows_from_row(Vector a, double b, const double* A, double B, Vector lower, Vector upper) {
    const Size p = a.size;
    const double rounding = 4.0 * (double(p) + 8.0) * 2.3e-16;
    double factor = 0.0, top = 1.0;
    for (Size round = 0; round < p + 8; ++round) {
        top = factor * B - b + rounding * (absolute(b) + factor * absolute(B));
        double fall = -B - rounding * absolute(B);
        for (Size i = 0; i < p; ++i) {
            const double size = absolute(a[i]) + factor * absolute(A[i]);
            if (!(size > 0.0) && A[i] == 0.0) continue;
            const double reach = rounding * larger(absolute(lower[i]), absolute(upper[i]));
            if (reach == HUGE_VAL) return false;
            const double slope = a[i] - factor * A[i];
            const double end = slope > 0.0 || (slope == 0.0 && A[i] < 0.0) ? upper[i] : lower[i];
            top += reach * size + (slope != 0.0 ? slope * end : 0.0);
            fall += A[i] * end - reach * absolute(A[i]);
        }
        if (!(top > 0.0 && fall > 0.0 && top < HUGE_VAL)) break;
        factor += 1.000001 * top / fall;
    }
    return top <= 0.0;
}

void implied(Vector a, double b, Matrix A, Vector B, Vector lower, Vector upper, double& out) {
    out = 0.0;
    for (Size k = 0; k < A.rows && out == 0.0; ++k) {
        bool same = b >= B[k];
        for (Size i = 0; i < a.size; ++i) same = same && a[i] == A[k][i];
        if (same || follows_from_row(a, b, A[k], B[k], lower, upper)) out = 1.0;
    }
}

// The least <a, x> over blocks of coordinates with sums.
void least_on_blocks(Vector a, Vector lower, Vector upper, Vector start, Vector total, Vector kind,
                     double& out) {
    auto open = [](Vector of) { return const_cast<double*>(of.at); };
    const Domain domain = {open(lower), open(upper), open(start), open(total),
                           open(kind),  start.size,  nullptr};
    out = domain.least(a.at, a.size);
}

}  // namespace

extern const Entry contractions[];
const Entry contractions[] = {
    {"dot", "(p),(p)->()", each<dot_of>},
    {"matvec", "(n,p),(p)->(n)", each<matvec>},
    {"vecmat", "(n,p),(n)->(p)", each<vecmat>},
    {"affine_value", "(n,p),(p),(n)->(n)", each<affine_value>},
    {"least_squares_gradient", "(m,p),(p),(m)->(p)", each<least_squares_gradient>, one_per_row},
    {"log_capacity", "(p),(p),(p)->()", each<log_capacity>},
    {"bounded_queue", "(n),(n),(),(),()->(n)", each<bounded_queue>},
    {"hedge", "(m*),(m*,p),(p),(p),()->(m)", each<hedge>},
    {"weighted_mean", "(m*),(m*,p)->(p)", each<weighted_mean>, one_per_row},
    {"mix", "(n,n),(n,p)->(n,p)", each<mix>},
    {"into_ball", "(p),(p),()->(p)", each<into_ball>},
    {"least_on_blocks", "(p),(p),(p),(k),(k),(k)->()", each<least_on_blocks>},
    {"implied", "(p),(),(n,p),(n),(p),(p)->()", each<implied>},
    {},
};

}  // namespace coldq::COLDQ_LEVEL
