// Affine rows on boxes: a batch, of which several instances go side by side in lanes.
//
// A block of instances is looked at first: those that need no multipliers are answered there. Of
// the others as many at a time as a register has lanes go the ordinary way together; what is out of
// the ordinary is solved alone, from its start, with the same bits as if it had come alone.
#include "newton/affine.hpp"

#include "newton/working_set.hpp"

namespace coldq::COLDQ_LEVEL {
namespace {

using Lane = Pack<WIDEST>;

constexpr Size BLOCK = 256;            // instances looked at before those that need multipliers
constexpr Size MOST_LANE_ROWS = 8;     // with more, systems take most of the time, and are unlike
constexpr Size MOST_LANE_DATA = 1000;  // numbers of A: more do not stay in the nearest cache
constexpr Size ALIGNMENT = 8;          // numbers, which a line of the cache has

bool fit_lanes(Size n, Size p) { return 0 < n && n <= MOST_LANE_ROWS && n * p <= MOST_LANE_DATA; }

// Numbers that an instance's own arrays take in lanes.
Size lane_inputs(Size n, Size p) { return 4 * p + n * p + 4 * n; }

// One batch's arrays, and the memory to work in.
struct Batch {
    const AffineOperands& given;
    Size n, p;
    double* alone;
    Lane* together;

    double* of(const Operand& operand, Size i) const { return operand.at + i * operand.step; }

    Instance<double> instance(Size i) const {
        return {n,
                p,
                of(given.center, i),
                of(given.gradient, i),
                *of(given.alpha, i),
                of(given.floor, i),
                of(given.weights, i),
                of(given.soft, i),
                of(given.A, i),
                of(given.b, i),
                of(given.lower, i),
                of(given.upper, i)};
    }
    void set_residual(Size i, double value) const { *of(given.residual, i) = value; }
};

// Set x without multipliers; whether that is the answer.
bool is_quiet(const Batch& batch, Size i) {
    const Instance<double> of = batch.instance(i);
    double* x = batch.of(batch.given.x, i);
    const double half = 0.5 / of.alpha;
    bool quiet = of.alpha > 0.0;
    across(of.p, [&]<class T>(T y, Size k) {
        y = load<T>(of.center + k) - load<T>(of.gradient + k) * T(half);
        const T lower = load<T>(of.lower + k), upper = load<T>(of.upper + k);
        store(x + k, clip(y, lower, upper));
        quiet = quiet && all((absolute(y) < T(INFINITE)) & (lower <= upper));
    });
    for (Size k = 0; k < of.n && quiet; ++k) {
        const double* row = of.A + k * of.p;
        const double g = dot<double>(row, x, of.p) - of.b[k];
        const double least = of.floor[k], most = of.weights[k];
        quiet = least <= 0.0 && 0.0 <= most &&
                (g == 0.0 || (g < 0.0 && least == 0.0) || (g > 0.0 && most == 0.0));
    }
    if (!quiet) return false;
    double* multipliers = batch.of(batch.given.multipliers, i);
    for (Size k = 0; k < of.n; ++k) multipliers[k] = 0.0;
    batch.set_residual(i, 0.0);
    return true;
}

void solve_alone(const Batch& batch, Size i) {
    const Instance<double> of = batch.instance(i);
    Iterate<double> at = iterate_in(batch.alone, of.n, of.p);
    at.x = batch.of(batch.given.x, i);
    const double systems = *batch.of(batch.given.systems, i);
    const Limits limits = {systems, systems < INFINITE};
    batch.set_residual(i, solve_one(of, at, limits, batch.alone + iterate_size(of.n, of.p)));
    give_multipliers(of, at, batch.of(batch.given.multipliers, i));
}

// The arrays of several instances side by side.
const Lane* gathered(const Batch& batch, const Operand& operand, const Size* which, Size count,
                     Lane*& memory) {
    Lane* out = memory;
    memory += count;
    if (operand.step == 0) {
        for (Size e = 0; e < count; ++e) out[e] = Lane(operand.at[e]);
        return out;
    }
    const double* from[WIDEST];
    for (int lane = 0; lane < WIDEST; ++lane) from[lane] = batch.of(operand, which[lane]);
    for (Size e = 0; e < count; ++e)
        for (int lane = 0; lane < WIDEST; ++lane) out[e].set(lane, from[lane][e]);
    return out;
}

// Solve the instances at `which`, of which the first `live` are wanted, side by side. A number of
// rows N that is known when this is compiled makes its loops straight; 0 is any.
template <Size N>
__attribute__((noinline)) void solve_together_of(const Batch& batch, const Size* which, Size live) {
    const AffineOperands& given = batch.given;
    const Size n = N > 0 ? N : batch.n, p = batch.p;
    Lane* memory = batch.together;
    auto lanes = [&](const Operand& operand, Size count) {
        return gathered(batch, operand, which, count, memory);
    };
    Instance<Lane> of{n,
                      p,
                      lanes(given.center, p),
                      lanes(given.gradient, p),
                      Lane(0.0),
                      lanes(given.floor, n),
                      lanes(given.weights, n),
                      lanes(given.soft, n),
                      lanes(given.A, n * p),
                      lanes(given.b, n),
                      lanes(given.lower, p),
                      lanes(given.upper, p)};
    for (int lane = 0; lane < WIDEST; ++lane)
        of.alpha.set(lane, *batch.of(given.alpha, which[lane]));
    const Iterate<Lane> at = iterate_in(memory, n, p);
    Lane* multipliers = memory + iterate_size(n, p);
    Lane residual(0.0);
    const auto done = solve_ordinary(of, at, residual);
    give_multipliers(of, at, multipliers);
    for (int lane = 0; lane < live; ++lane) {
        const Size i = which[lane];
        if (!done[lane]) {
            solve_alone(batch, i);
            continue;
        }
        double *x = batch.of(given.x, i), *its = batch.of(given.multipliers, i);
        for (Size k = 0; k < p; ++k) x[k] = at.x[k][lane];
        for (Size k = 0; k < n; ++k) its[k] = multipliers[k][lane];
        batch.set_residual(i, residual[lane]);
    }
}

void solve_together(const Batch& batch, const Size* which, Size live) {
    if (batch.n == 1)
        solve_together_of<1>(batch, which, live);
    else if (batch.n == 2)
        solve_together_of<2>(batch, which, live);
    else
        solve_together_of<0>(batch, which, live);
}

template <class T>
T* aligned(T* memory) {
    const auto address = reinterpret_cast<unsigned long long>(memory);
    return reinterpret_cast<T*>((address + 63) & ~63ULL);
}

}  // namespace

Size affine_scratch(Size n, Size p, Size count) {
    Size square;
    if (__builtin_mul_overflow(n, 4 * n, &square)) return -1;
    const Size alone = iterate_size(n, p) + n;
    const bool in_lanes = fit_lanes(n, p) && count >= WIDEST;
    const Size together = in_lanes ? WIDEST * (iterate_size(n, p) + lane_inputs(n, p) + n) : 0;
    return 2 * ALIGNMENT + alone + together;
}

void affine_step(const Run& run) {
    const auto& given = *reinterpret_cast<const AffineOperands*>(run.operands);
    Batch batch{given, given.b.length[0], given.center.length[0], aligned(run.scratch), nullptr};
    batch.together =
        reinterpret_cast<Lane*>(aligned(batch.alone + iterate_size(batch.n, batch.p) + batch.n));
    const bool in_lanes = fit_lanes(batch.n, batch.p) && run.count >= WIDEST &&
                          given.systems.step == 0 && *given.systems.at == INFINITE;
    Size loud[BLOCK + WIDEST], found = 0;
    for (Size i = 0; i < run.count; ++i) {
        if (is_quiet(batch, i)) continue;
        if (!in_lanes) {
            solve_alone(batch, i);
            continue;
        }
        loud[found++] = i;
        if (found < BLOCK) continue;
        for (found -= WIDEST; found >= 0; found -= WIDEST)
            solve_together(batch, loud + found, WIDEST);
        found = 0;
    }
    for (; found >= WIDEST; found -= WIDEST) solve_together(batch, loud + found - WIDEST, WIDEST);
    if (2 * found > WIDEST) {
        for (Size lane = found; lane < WIDEST; ++lane) loud[lane] = loud[0];
        solve_together(batch, loud, found);
    } else {
        for (Size lane = 0; lane < found; ++lane) solve_alone(batch, loud[lane]);
    }
}

namespace {

Size scratch(const Operand* operands) {
    const auto& given = *reinterpret_cast<const AffineOperands*>(operands);
    return affine_scratch(given.b.length[0], given.center.length[0], WIDEST);
}

Size working_scratch(const Operand* operands) {
    const auto& given = *reinterpret_cast<const AffineOperands*>(operands);
    const Size n = given.b.length[0], p = given.center.length[0];
    return working_set_size(n, p);
}

void working_set_step(const Run& run) {
    const auto& given = *reinterpret_cast<const AffineOperands*>(run.operands);
    const Batch batch{given, given.b.length[0], given.center.length[0], run.scratch, nullptr};
    const Round round = round_in(run.scratch + iterate_size(batch.n, batch.p, 0), batch.n, batch.p);
    for (Size i = 0; i < run.count; ++i) {
        if (is_quiet(batch, i)) continue;
        const Instance<double> of = batch.instance(i);
        Iterate<double> at = iterate_in(run.scratch, of.n, of.p);
        at.x = batch.of(given.x, i);
        const bool apart = *batch.of(given.systems, i) < INFINITE;
        batch.set_residual(i, solve_by_working_set(of, at, round, apart));
        give_multipliers(of, at, batch.of(given.multipliers, i));
    }
}

}  // namespace

extern const Entry newton[];
const Entry newton[] = {
    {"affine_step", "(p),(p),(),(n),(n),(n),(n,p),(n),(p),(p),()->(p),(n),()", affine_step,
     scratch},
    {"working_set_step", "(p),(p),(),(n),(n),(n),(n,p),(n),(p),(p),()->(p),(n),()",
     working_set_step, working_scratch},
    {},
};

}  // namespace coldq::COLDQ_LEVEL
