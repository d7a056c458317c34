// Which multipliers decide, found from inside: a primal-dual interior-point method.
//
// Where more rows pull than there are coordinates, most multipliers are at their weights, and
// methods that go from piece to piece meet very many pieces. Here some fifteen steps, each one
// linear system, tell which multipliers are at a bound.
#include "each.hpp"
#include "interior_point/iterate.hpp"
#include "interior_point/system.hpp"

namespace coldq::COLDQ_LEVEL {
namespace {

constexpr double STEPS = 40.0;
constexpr double SHORT = 0.995;                  // of the way to the boundary
constexpr double ROOM = 0.1;                     // of a coordinate's width: where it starts
constexpr double FEWEST = 0.01, FULLEST = 0.99;  // of a block's room: what is in it at the start

constexpr Size REMEMBERED = 4;  // numbers beside the iterate: first gap, steps left, two scales

Size remembered(Size n, Size p, Size k) { return REMEMBERED + Iterate::remembered(n + k, p); }

// The nearest number to y that keeps away from the bounds.
double well_inside(double y, double lower, double upper) {
    const bool low = lower > -HUGE_VAL, high = upper < HUGE_VAL;
    const double width = low && high ? upper - lower : 1.0 + absolute(low ? lower : upper);
    const double room = low || high ? ROOM * width : 0.0;
    return smaller(larger(y, lower + room), upper - room);
}

// Where x starts in a block: its sum is right, as far as bounds leave room for both.
void begin_block(const Iterate& at, Size first, Size last, double total, double kind) {
    const auto room = [&](Size i) {
        return smaller(at.upper[i], larger(at.lower[i], total)) - at.lower[i];
    };
    double spare = 0.0, needed = total;
    for (Size i = first; i < last; ++i) spare += room(i), needed -= at.lower[i];
    double share = needed / larger(spare, TINY);
    const bool known = kind < HUGE_VAL && absolute(share) < HUGE_VAL;
    share = smaller(larger(share, FEWEST), FULLEST) * (kind == 0.0 ? 0.5 : 1.0);
    for (Size i = first; i < last; ++i) {
        const bool within = known && 0.0 < room(i) && room(i) < HUGE_VAL;
        at.x[i] =
            within ? at.lower[i] + share * room(i) : well_inside(at.y[i], at.lower[i], at.upper[i]);
    }
}

// Whether each block begins where the last one ends.
bool set_blocks(Vector start, Size p, Size* first) {
    for (Size j = 0; j < start.size; ++j) {
        first[j] = start[j] >= 0.0 && start[j] <= double(p) ? Size(start[j]) : -1;
        if (first[j] < (j > 0 ? first[j - 1] : 0) || (j == 0 && first[j] > 0)) return false;
    }
    first[start.size] = p;
    return start.size > 0 || p == 0;
}

// An instance as the method takes it, and where it is.
struct Walk {
    Iterate at;
    System system;
    Vector b, total;
    double *weight, *along;  // of raw rows

    // a_k x - b_k
    void set_values() {
        system.times(at.x, at.g);
        for (Size k = 0; k < at.m; ++k)
            at.g[k] = (at.g[k] - (k < b.size ? b[k] : total[k - b.size])) / at.length[k];
    }

    // One step; false if there is no direction.
    bool step(double now) {
        at.weigh();
        for (Size k = 0; k < at.m; ++k) weight[k] = at.weight[k] / (at.length[k] * at.length[k]);
        system.begin(weight, at.stiff);
        // First aim at zero, to see how far that leads; then at the little that it would leave.
        double tau = 0.0;
        for (bool sure : {false, true}) {
            at.aim(tau);
            for (Size k = 0; k < at.m; ++k) at.pull[k] /= at.length[k];
            system.take_across(at.pull, at.right);
            system.solve_for(weight, at.right, along);
            double finite = 0.0;
            for (Size i = 0; i < at.p; ++i) finite += 0.0 * at.right[i];
            if (!(finite == 0.0)) return false;
            for (Size k = 0; k < at.m; ++k) along[k] /= at.length[k];
            at.complete(tau, at.right, along);
            const double t = smaller(SHORT * at.longest(), 1.0);
            if (sure) {
                at.move(t);
                set_values();
            } else {
                const double left = at.gap(t) / now;
                tau = now * (left * left * left);
            }
        }
        return true;
    }
};

// Go on until the mean product is this share of the first one. What is reached is told, infinite
// where there is no direction. Multipliers are at a bound where the room is larger than its price.
// `given` and `left` are what goes from one call to the next, zeros at first.
void interior_point(Scratch scratch, Vector center, Vector gradient, double alpha, Vector floor,
                    Vector weights, Matrix A, Vector b, Vector lower, Vector upper, Vector start,
                    Vector total, Vector kind, double near, double share, Vector given,
                    OutVector multipliers, OutVector left, double& reached) {
    const Size n = b.size, p = center.size, k = start.size, m = n + k;
    reached = HUGE_VAL;
    for (Size a = 0; a < n; ++a) multipliers[a] = 0.0;
    for (Size a = 0; a < given.size; ++a) left[a] = given[a];
    Size* first = reinterpret_cast<Size*>(scratch.take(k + 1));
    if (given.size != remembered(n, p, k) || !set_blocks(start, p, first)) return;

    double* own = scratch.take(Iterate::size(m, p));
    for (Size a = 0; a < Iterate::size(m, p); ++a) own[a] = 0.0;
    double *weight = scratch.take(m), *along = scratch.take(m);
    Walk walk = {
        Iterate(own, m, p), System(scratch.at, A, k, first, kind.at), b, total, weight, along};
    Iterate& at = walk.at;
    const double half = 0.5 / alpha;
    double finite = 0.0;
    for (Size i = 0; i < p; ++i) {
        at.y[i] = center[i] - gradient[i] * half;
        finite += 0.0 * at.y[i];
        at.lower[i] = lower[i], at.upper[i] = upper[i];
    }
    if (!(finite == 0.0)) return;
    for (Size a = 0; a < n; ++a) {
        const double norm = root(dot(A[a], A[a], p));
        at.length[a] = norm > 0.0 ? norm : 1.0;
        at.lo[a] = floor[a] * half * at.length[a], at.hi[a] = weights[a] * half * at.length[a];
    }
    for (Size j = 0; j < k; ++j) {
        const bool sum = kind[j] < HUGE_VAL;
        at.length[n + j] = root(double(larger(first[j + 1] - first[j], Size(1))));
        at.lo[n + j] = sum ? kind[j] : 0.0, at.hi[n + j] = sum ? HUGE_VAL : 0.0;
    }
    const bool begins = given[0] == 0.0;
    double first_gap = given[0], steps = begins ? STEPS : given[1];
    for (Size j = 0; begins && j < k; ++j)
        begin_block(at, first[j], first[j + 1], total[j], kind[j]);
    for (Size j = 0; j < k; ++j)  // an upper bound that the sum keeps to is none
        for (Size i = first[j]; i < first[j + 1]; ++i)
            if (kind[j] < 0.0 && lower[i] == 0.0 && upper[i] >= total[j]) at.upper[i] = HUGE_VAL;
    if (!begins) {
        for (Size a = REMEMBERED; a < given.size; ++a) own[a - REMEMBERED] = given[a];
        at.reach = given[2], at.unit = given[3];
    }
    walk.set_values();
    if (begins) {
        at.begin(near != 0.0);
        first_gap = at.gap(0.0);
    }
    double now = at.gap(0.0);
    for (; steps > 0.0 && now > share * first_gap; now = at.gap(0.0), steps -= 1.0)
        if (!walk.step(now)) return;

    reached = first_gap > 0.0 ? now / first_gap : 0.0;
    left[0] = first_gap, left[1] = steps, left[2] = at.reach, left[3] = at.unit;
    for (Size a = REMEMBERED; a < given.size; ++a) left[a] = own[a - REMEMBERED];
    const double unit = at.unit_now();
    for (Size a = 0; a < n; ++a) {
        const double mu = at.mu[a] / at.length[a] * (2.0 * alpha);
        multipliers[a] = smaller(larger(mu, floor[a]), weights[a]);
        if (at.u[a] > unit * (at.hi[a] - at.mu[a])) multipliers[a] = weights[a];
        if (at.v[a] > unit * (at.mu[a] - at.lo[a])) multipliers[a] = floor[a];
    }
}

Size scratch(const Operand* operands) {
    const Size n = operands[5].length[0], p = operands[5].length[1], k = operands[9].length[0];
    return k + 1 + Iterate::size(n + k, p) + 2 * (n + k) + System::size(n, p, k);
}

}  // namespace

extern const Entry inside[];
const Entry inside[] = {
    {"interior_point", "(p),(p),(),(n),(n),(n,p),(n),(p),(p),(k),(k),(k),(),(),(s)->(n),(s),()",
     each<interior_point>, scratch},
    {},
};

}  // namespace coldq::COLDQ_LEVEL
