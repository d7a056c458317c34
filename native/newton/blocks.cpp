// Affine rows on blocks of coordinates with sums: a batch, one after another.
#include "newton/blocks.hpp"

#include "newton/blocks_newton.hpp"

namespace coldq::COLDQ_LEVEL {
namespace {

double* of(const Operand& operand, Size i) { return operand.at + i * operand.step; }

// Set the blocks' first coordinates and upper bounds; false where these are no blocks.
bool begin_blocks(Blocks& set, const double* start, double* roof) {
    for (Size j = 0; j < set.count; ++j) {
        if (!(0.0 <= start[j] && start[j] <= double(set.p))) return false;
        set.first[j] = Size(start[j]);
        if (set.first[j] < (j > 0 ? set.first[j - 1] : 0)) return false;
        set.theta[j] = set.shift[j] = 0.0;
    }
    set.first[set.count] = set.p;
    if (set.p > 0 && (set.count == 0 || set.first[0] != 0)) return false;
    for (Size j = 0; j < set.count; ++j) {
        bool implied = set.kind[j] <= 0.0;
        for (Size i = set.first[j]; i < set.first[j + 1]; ++i)
            implied = implied && set.lower[i] == 0.0 && set.upper[i] >= set.total[j];
        set.plain[j] = implied ? 1.0 : 0.0;
        for (Size i = set.first[j]; i < set.first[j + 1]; ++i)
            roof[i] = implied ? INFINITE : set.upper[i];
    }
    return true;
}

// Set what the iteration starts from; false where it is not finite.
template <class R>
bool begin(BlockIterate<R>& at, const BlockOperands& given, Size i) {
    const double half = 0.5 / *of(given.alpha, i);
    const double *gradient = of(given.gradient, i), *guess = of(given.guess, i);
    const double *floor = of(given.floor, i), *weights = of(given.weights, i);
    double finite = 0.0, size = 0.0, reach = 0.0;
    for (Size k = 0; k < at.rows.p; ++k) {
        at.y[k] = at.center[k] - gradient[k] * half;
        at.set.z[k] = at.y[k];
        at.set.w[k] = 0.0;
        at.terms[k] = at.set.lower[k] < at.set.upper[k] ? 1.0 : 0.0;
        finite += 0.0 * at.y[k];
        const double lower = at.set.lower[k], upper = at.set.upper[k];
        size = larger(size, absolute(clip(at.y[k], lower, upper)));
        reach = larger(reach, smaller(absolute(at.y[k]), larger(-lower, upper)));
    }
    // Where all of x is small, floors of 1 would hide it.
    size = larger(size, SIZE_FLOOR * reach);
    at.least = SIZE_FLOOR * (0.0 < size && size < SIZE_FLOOR ? size : 1.0);
    for (Size k = 0; k < at.rows.n; ++k) {
        at.lo[k] = floor[k] * half;
        at.hi[k] = weights[k] * half;
        at.norm[k] = at.rows
                         .template over<1>(k,
                                           [&](auto a, auto read) __attribute__((always_inline)) {
                                               using V = decltype(a);
                                               return Terms<V, 1>{{(V(read(at.terms)) * a) * a}};
                                           })
                         .of[0];
        at.mu[k] = clip(guess[k] * half, at.lo[k], at.hi[k]);
        finite += 0.0 * at.mu[k] + 0.0 * at.norm[k];
        if (!(at.lo[k] <= at.hi[k])) finite = NOT_A_NUMBER;
    }
    add_rows(at, at.mu, -1.0, at.set.z);
    return finite == 0.0;
}

// One instance: its residual.
template <class R>
double solve_one(R rows, const BlockOperands& given, Size i, double* memory) {
    const Size n = rows.n, p = rows.p, count = given.start.length[0], most = most_moving(n, p);
    Scratch scratch{memory};
    auto whole = [&](Size size) { return reinterpret_cast<Size*>(scratch.take(size)); };
    BlockIterate<R> at;
    const Size entries = given.entries.length[0];
    at.piece = box_quadratic_in(scratch, most, rows.room(most, count, entries));
    if (!rows.begin(scratch, at.piece.factor.entries, most, entries)) return NOT_A_NUMBER;
    at.rows = rows;
    double *roof = scratch.take(p), *z = scratch.take(p), *w = scratch.take(p);
    double *theta = scratch.take(count + 1), *shift = scratch.take(count + 1),
           *plain = scratch.take(count + 1);
    at.set = {p,
              count,
              of(given.lower, i),
              of(given.upper, i),
              of(given.total, i),
              of(given.kind, i),
              roof,
              z,
              w,
              theta,
              shift,
              plain,
              whole(count + 1)};
    at.free = {count, whole(p), whole(count + 1), scratch.take(count + 1)};
    at.center = of(given.center, i);
    at.b = of(given.b, i);
    at.y = scratch.take(p);
    at.terms = scratch.take(p);
    at.x = of(given.x, i);
    double** lines[] = {&at.mu, &at.lo, &at.hi, &at.g, &at.scale, &at.norm, &at.d};
    for (double** line : lines) *line = scratch.take(n);
    at.chosen = whole(n);
    double* multipliers = of(given.multipliers, i);
    for (Size k = 0; k < n; ++k) multipliers[k] = 0.0;
    if (!begin_blocks(at.set, of(given.start, i), roof) || !begin(at, given, i))
        return NOT_A_NUMBER;
    bool started = false;
    for (Size k = 0; k < n; ++k) started = started || of(given.guess, i)[k] != 0.0;
    const double residual = solve(at, *of(given.steps, i), started);
    const double *floor = of(given.floor, i), *weights = of(given.weights, i);
    for (Size k = 0; k < n; ++k)
        multipliers[k] = at.mu[k] >= at.hi[k] ? weights[k]
                         : at.mu[k] <= at.lo[k]
                             ? floor[k]
                             : clip(at.mu[k] * (2.0 * *of(given.alpha, i)), floor[k], weights[k]);
    return residual;
}

const Size* whole_numbers(const Operand& operand, Size i) {
    return reinterpret_cast<const Size*>(of(operand, i));
}

}  // namespace

Size blocks_scratch(const BlockOperands& given) {
    const Size n = given.b.length[0], p = given.center.length[0], k = given.start.length[0];
    const Size most = most_moving(n, p), entries = given.entries.length[0];
    Size product;
    if (__builtin_mul_overflow(most, 4 * most + 2 * (p + PARTS), &product)) return -1;
    return given.pointers.length[0] > 0 ? BlockIterate<SparseRows>::size(n, p, k, entries)
                                        : BlockIterate<DenseRows>::size(n, p, k, entries);
}

void blocks_step(const Run& run) {
    const auto& given = *reinterpret_cast<const BlockOperands*>(run.operands);
    const Size n = given.b.length[0], p = given.center.length[0];
    const Size entries = given.entries.length[0], pointers = given.pointers.length[0];
    for (Size i = 0; i < run.count; ++i) {
        double& residual = *of(given.residual, i);
        const double* A = of(given.entries, i);
        if (pointers == 0 && entries == n * p) {
            residual = solve_one(DenseRows{n, p, A, nullptr, nullptr}, given, i, run.scratch);
        } else if (pointers == n + 1 && given.indices.length[0] == entries) {
            SparseRows rows = {};
            rows.n = n;
            rows.p = p;
            rows.data = A;
            rows.indices = whole_numbers(given.indices, i);
            rows.indptr = whole_numbers(given.pointers, i);
            residual = solve_one(rows, given, i, run.scratch);
        } else {
            residual = NOT_A_NUMBER;
        }
    }
}

namespace {

Size scratch(const Operand* operands) {
    return blocks_scratch(*reinterpret_cast<const BlockOperands*>(operands));
}

}  // namespace

extern const Entry blocks[];
const Entry blocks[] = {
    {"blocks_step", "(p),(p),(),(n),(n),(n),(m),(e),(q),(n),(p),(p),(k),(k),(k),()->(p),(n),()",
     blocks_step, scratch},
    {},
};

}  // namespace coldq::COLDQ_LEVEL
