// The parts of SelfTuning's update one by one, for other rows and domains.
#include "each.hpp"
#include "learners/enforced.hpp"
#include "learners/operands.hpp"

namespace coldq::COLDQ_LEVEL {
namespace {

void row_slack(Vector x, Vector g, Matrix J, double R, double tolerance, OutVector out) {
    for (Size k = 0; k < g.size; ++k) out[k] = slack_of(x.at, g[k], J[k], x.size, R, tolerance);
}

Domain domain_of(Vector lower, Vector upper, Vector start, Vector total, Vector kind,
                 const double& systems) {
    auto open = [](Vector of) { return const_cast<double*>(of.at); };
    return {open(lower),
            open(upper),
            open(start),
            open(total),
            open(kind),
            start.size,
            const_cast<double*>(&systems)};
}

// Without an answer the point is NaN.
void least_violation(Scratch scratch, Vector x, Matrix A, Vector b, Vector lower, Vector upper,
                     Vector start, Vector total, Vector kind, double systems, double width,
                     double by_slope, OutVector point) {
    const Domain domain = domain_of(lower, upper, start, total, kind, systems);
    const Violation of = {{b.size, x.size, A.at, b.at, nullptr}, domain, width, by_slope != 0.0};
    if (!of.least(x.at, point.at, scratch.at))
        for (Size i = 0; i < x.size; ++i) point[i] = __builtin_nan("");
}

// Of a domain's operands from the lower bounds on.
bool are_blocks(const Operand* of) {
    return DomainOperands{of[0], of[1], of[2], of[3], of[4], of[5]}.fit();
}

Size violation_scratch(const Operand* of) {
    const Size n = of[2].length[0], p = of[0].length[0];
    return are_blocks(of + 3) ? Violation::scratch(n, p, of[5].length[0]) : DO_NOT_FIT;
}

// `kept` and `reduced` say what became of the margin. Without an answer the point is NaN.
void margin_kept(Scratch scratch, Vector near, Matrix A, Vector b, Vector margin, Vector worst,
                 Vector lower, Vector upper, Vector start, Vector total, Vector kind,
                 double systems, double R, double tolerance, OutVector kept, double& whole,
                 double& reduced, OutVector point) {
    const Rows rows = {b.size, near.size, A.at, b.at, nullptr};
    const Domain domain = domain_of(lower, upper, start, total, kind, systems);
    const MarginSearch search = {rows, domain, R, tolerance, near.at};
    const Room room = search.largest(margin.at, worst.at, kept.at, point.at, scratch.at);
    whole = room == Room::whole ? 1.0 : 0.0;
    reduced = room == Room::none ? 1.0 : 0.0;
    if (room == Room::unknown)
        for (Size i = 0; i < near.size; ++i) point[i] = __builtin_nan("");
}

Size margin_scratch(const Operand* of) {
    const Size n = of[2].length[0], p = of[0].length[0];
    return are_blocks(of + 5) ? MarginSearch::scratch(n, p, of[7].length[0]) : DO_NOT_FIT;
}

struct BookOperands {
    Operand counts, largest, record, entry_largest, entry_record, highest;
    Operand rate, t, violated, surprise, tolerance, infeasible, reduced;
    Operand next, next_largest, next_record, next_entry_largest, next_entry_record, next_highest;
};

void book_slot(const Run& run) {
    const auto& of = *reinterpret_cast<const BookOperands*>(run.operands);
    for (Size i = 0; i < run.count; ++i) {
        const double* counts = at(of.counts, i);
        const BudgetCounts next =
            book({counts[0], counts[1], counts[2], counts[3]},
                 {at(of.largest, i), at(of.record, i), at(of.entry_largest, i),
                  at(of.entry_record, i), at(of.highest, i)},
                 *at(of.rate, i), *at(of.t, i),
                 {of.largest.length[0], at(of.violated, i), at(of.surprise, i), at(of.tolerance, i),
                  *at(of.infeasible, i) != 0.0, *at(of.reduced, i) != 0.0},
                 {at(of.next_largest, i), at(of.next_record, i), at(of.next_entry_largest, i),
                  at(of.next_entry_record, i), at(of.next_highest, i)});
        double* out = at(of.next, i);
        out[0] = next.overdraft, out[1] = next.stretch;
        out[2] = next.violations, out[3] = next.reduced;
    }
}

Size book_scratch(const Operand* operands) { return operands[0].length[0] == 4 ? 0 : DO_NOT_FIT; }

void tightened_margin(double overdraft, double stretch, Vector largest, double rate, double t,
                      Vector ordinary, OutVector margin) {
    tighten({overdraft, stretch, 0.0, 0.0}, largest.at, rate, t, ordinary.at, ordinary.size,
            margin.at);
}

struct JudgeOperands {
    Operand t, predicted;
    RememberedOperands before;
    Operand values, own_values, slack, infeasible, kind, forced, rate;
    RememberedOperands after;
    Operand usual;
};

Size judge_scratch(const Operand* operands) {
    const auto& of = *reinterpret_cast<const JudgeOperands*>(operands);
    const bool any = of.predicted.length[0] > 0;
    return any && of.before.fit() ? 2 * of.values.length[0] : DO_NOT_FIT;
}

void judge_slot(const Run& run) {
    const auto& of = *reinterpret_cast<const JudgeOperands*>(run.operands);
    for (Size i = 0; i < run.count; ++i)
        judge({of.values.length[0], of.predicted.length[0], *at(of.t, i), at(of.predicted, i),
               at(of.values, i), at(of.own_values, i), at(of.slack, i),
               *at(of.infeasible, i) != 0.0, *at(of.kind, i), *at(of.forced, i)},
              read_only(of.before.of(i)), *at(of.rate, i), of.after.of(i), at(of.usual, i),
              run.scratch);
}

struct RememberOperands {
    Operand t, since;
    KeptOperands before;
    Operand data, limits, usual, affine, infeasible;
    ForecastOperands forecasts;
    KeptOperands after;
    Operand ahead, expected;
};

Size remember_scratch(const Operand* operands) {
    const auto& of = *reinterpret_cast<const RememberOperands*>(operands);
    const bool sizes = of.usual.length[0] >= of.forecasts.table.length[0];
    return sizes && of.forecasts.fit(of.before) ? 0 : DO_NOT_FIT;
}

void remember_slot(const Run& run) {
    const auto& of = *reinterpret_cast<const RememberOperands*>(run.operands);
    for (Size i = 0; i < run.count; ++i) {
        const Revealed slot = {of.limits.length[0],
                               of.data.length[0],
                               *at(of.t, i),
                               *at(of.since, i),
                               at(of.data, i),
                               at(of.limits, i),
                               at(of.usual, i),
                               at(of.forecasts.lags, i),
                               at(of.forecasts.asked, i),
                               *at(of.affine, i) != 0.0,
                               *at(of.infeasible, i) != 0.0};
        remember(of.forecasts.of(of.before, i), slot, read_only(of.before.of(i)), of.after.of(i),
                 at(of.ahead, i), at(of.expected, i));
    }
}

struct WeighOperands {
    Operand gradient, x, points;
    PoolOperands before;
    Operand sizes, R;
    PoolOperands after;
    Operand directions, alphas;
};

Size weigh_scratch(const Operand* operands) {
    const auto& of = *reinterpret_cast<const WeighOperands*>(operands);
    const Size K = of.sizes.length[0];
    return of.before.hedge.length[0] == COUNTS && K > 0 ? K : DO_NOT_FIT;
}

void weigh_pool(const Run& run) {
    const auto& of = *reinterpret_cast<const WeighOperands*>(run.operands);
    for (Size i = 0; i < run.count; ++i)
        weigh({of.sizes.length[0], of.x.length[0], at(of.gradient, i), at(of.x, i),
               at(of.points, i), at(of.sizes, i), *at(of.R, i)},
              read_only(of.before.of(i)), of.after.of(i), at(of.directions, i), at(of.alphas, i),
              run.scratch);
}

void weighted_play(Vector weights, Matrix points, OutVector x) { play(weights, points, x); }

}  // namespace

extern const Entry learner_parts[];
const Entry learner_parts[] = {
    {"row_slack", "(p),(n),(n,p),(),()->(n)", each<row_slack>},
    {"least_violation", "(p),(n,p),(n),(p),(p),(k)?,(k)?,(k)?,(),(),()->(p)", each<least_violation>,
     violation_scratch},
    {"margin_kept", "(p),(n,p),(n),(n),(n),(p),(p),(k)?,(k)?,(k)?,(),(),()->(n),(),(),(p)",
     each<margin_kept>, margin_scratch},
    {"book", "(c),(n),(n),(n),(n),(n),(),(),(n),(n),(n),(),()->(c),(n),(n),(n),(n),(n)", book_slot,
     book_scratch},
    {"tighten", "(),(),(n),(),(),(n)->(n)", each<tightened_margin>},
    {"judge",
     "(),(j,n),(c),(n),(n),(n),(n),(e,n),(n),(j,n),(j),(n),(n),(n),(),(),(),()"
     "->(c),(n),(n),(n),(n),(e,n),(n),(j,n),(j),(j,n)",
     judge_slot, judge_scratch},
    {"remember",
     "(),(),(r,d),(l,n),(n,h),(n,h),(n,h,h),(d),(n),(w,n),(),(),(n,a),(o,n)?,(f,g),(u),(v)"
     "->(r,d),(l,n),(n,h),(n,h),(n,h,h),(r,d),(f,n)",
     remember_slot, remember_scratch},
    {"weigh", "(p),(p),(k,p),(c),(k),(k),(k),()->(c),(k),(k),(k,p),(k)", weigh_pool, weigh_scratch},
    {"play", "(k),(k,p)->(p)", each<weighted_play>},
    {},
};

}  // namespace coldq::COLDQ_LEVEL
