// A learner's whole update in one call: the queue, and the step that it weighs.
//
// For affine rows on a box or on blocks with sums, and losses whose gradient is a vector, P x + q,
// or H'(H x - y). The queue becomes  max{(1 - eta) queue + gain [g]_+, floor},  before the step, or
// after it with g at the new x. In the step rows weigh price times the queue that there is; a queue
// that looks ahead counts what it just gained once more. Gradient and g before the step are those
// at x, or at the decision that was played where feedback is late; the step starts from x.
#include "learners/slot.hpp"

namespace coldq::COLDQ_LEVEL {
namespace {

enum class When { before, after, ahead };

// How a learner's queue moves in a slot, and what its rows weigh.
struct QueueRule {
    double gain, eta, floor, price;
    When when;
};

// Set the queue, unless it moves after the step, and what the rows weigh in that.
void weigh(const QueueRule& rule, const Rows& rows, const double* x, const double* queue,
           double* next_queue, double* weights, double* g) {
    const double* value = rows.measured;
    for (Size k = 0; k < rows.n; ++k) g[k] = 0.0;
    if (rule.gain == 0.0)
        value = g;  // not looked at
    else if (!value && rule.when != When::after)
        rows.value(x, g), value = g;
    if (rule.when != When::after)
        bounded_queue({queue, rows.n}, {value, rows.n}, rule.gain, rule.eta, rule.floor,
                      {next_queue, rows.n});
    for (Size k = 0; k < rows.n; ++k) {
        weights[k] = rule.when == When::after ? queue[k] : next_queue[k];
        if (rule.when == When::ahead) weights[k] += rule.gain * larger(value[k], 0.0);
        weights[k] *= rule.price;
    }
}

// Set the queue that moves after the step, to x.
void follow(const QueueRule& rule, const Rows& rows, const double* x, const double* queue,
            double* next_queue, double* g) {
    rows.value(x, g);
    bounded_queue({queue, rows.n}, {g, rows.n}, rule.gain, rule.eta, rule.floor,
                  {next_queue, rows.n});
}

When when_of(double number) {
    return number == 0.0 ? When::before : number == 1.0 ? When::after : When::ahead;
}

struct QueueOperands {
    Operand x, played, linear, matrix, levels, A, b, measured, queue;
    Operand alpha, gain, eta, floor, price, when;
    DomainOperands domain;
    Operand next, next_queue, multipliers, residual;
};

Size queue_scratch(const Operand* operands) {
    const auto& of = *reinterpret_cast<const QueueOperands*>(operands);
    const Size n = of.b.length[0], p = of.x.length[0];
    if (!has_gradient(of.linear, of.matrix, of.levels, p) || !of.domain.fit()) return DO_NOT_FIT;
    const Size rest = Points::scratch(n, p, 1, of.domain.start.length[0]);
    return rest < 0 ? rest : p + of.levels.length[0] + 3 * n + rest;
}

void queue_step(const Run& run) {
    const auto& of = *reinterpret_cast<const QueueOperands*>(run.operands);
    const Size n = of.b.length[0], p = of.x.length[0], m = of.matrix.length[0];
    Scratch scratch{run.scratch};
    double *slope = scratch.take(p), *levels = scratch.take(of.levels.length[0]);
    double *weights = scratch.take(n), *g = scratch.take(n), *zeros = scratch.take(n);
    for (Size k = 0; k < n; ++k) zeros[k] = 0.0;
    for (Size i = 0; i < run.count; ++i) {
        double *x = at(of.x, i), *queue = at(of.queue, i), *next = at(of.next, i);
        double* next_queue = at(of.next_queue, i);
        const Rows rows{n, p, at(of.A, i), at(of.b, i), at(of.measured, i)};
        const Loss loss{p, m, at(of.linear, i), at(of.matrix, i), at(of.levels, i)};
        const QueueRule rule{*at(of.gain, i), *at(of.eta, i), *at(of.floor, i), *at(of.price, i),
                             when_of(*at(of.when, i))};
        const double* place = of.played.at ? at(of.played, i) : x;
        weigh(rule, rows, place, queue, next_queue, weights, g);
        const double* gradient = loss.gradient(place, slope, levels);
        const Points point{x, const_cast<double*>(gradient), at(of.alpha, i), weights, 0, 0, zeros};
        point.step(rows, of.domain.of(i), 1, next, at(of.multipliers, i), at(of.residual, i),
                   scratch.at);
        if (rule.when == When::after) follow(rule, rows, next, queue, next_queue, g);
    }
}

struct ExpertOperands {
    Operand points, queues, alphas, x, logs, kappa, shared, linear, matrix, levels, A, b;
    Operand gain, eta, floor, price, when;
    DomainOperands domain;
    Operand next, next_logs, next_points, next_queues, multipliers, residuals;
};

Size expert_scratch(const Operand* operands) {
    const auto& of = *reinterpret_cast<const ExpertOperands*>(operands);
    const Size e = of.points.length[0], n = of.b.length[0], p = of.x.length[0];
    if (!has_gradient(of.linear, of.matrix, of.levels, p) || !of.domain.fit()) return DO_NOT_FIT;
    const Size rest = Points::scratch(n, p, e, of.domain.start.length[0]);
    return rest < 0 ? rest : p + e * p + of.levels.length[0] + 2 * n + e * n + e + rest;
}

// A slot of several experts: their weights by the surrogate losses, their steps, their mean.
void experts_step(const Run& run) {
    const auto& of = *reinterpret_cast<const ExpertOperands*>(run.operands);
    const Size e = of.points.length[0], n = of.b.length[0], p = of.x.length[0],
               m = of.matrix.length[0];
    Scratch scratch{run.scratch};
    double *slope = scratch.take(p), *slopes = scratch.take(e * p),
           *levels = scratch.take(of.levels.length[0]);
    double *g = scratch.take(n), *zeros = scratch.take(n), *weights = scratch.take(e * n);
    double* their_weights = scratch.take(e);
    for (Size k = 0; k < n; ++k) zeros[k] = 0.0;
    for (Size i = 0; i < run.count; ++i) {
        double *x = at(of.x, i), *points = at(of.points, i), *queues = at(of.queues, i);
        double *next_points = at(of.next_points, i), *next_queues = at(of.next_queues, i);
        double* logs = at(of.next_logs, i);
        const Rows rows{n, p, at(of.A, i), at(of.b, i), nullptr};
        const Loss loss{p, m, at(of.linear, i), at(of.matrix, i), at(of.levels, i)};
        const bool shared = *at(of.shared, i) != 0.0;
        auto rule_of = [&](Size j) {
            auto its = [&](const Operand& operand) { return at(operand, i)[j * operand.lead]; };
            return QueueRule{its(of.gain), its(of.eta), its(of.floor), its(of.price),
                             when_of(*at(of.when, i))};
        };
        const double* at_x = loss.gradient(x, slope, levels);
        hedge({at(of.logs, i), e, 1}, {points, e, p, p}, {x, p}, {at_x, p}, *at(of.kappa, i),
              {logs, e});
        for (Size j = 0; j < e; ++j) {
            double *its = slopes + j * p, *point = points + j * p;
            const double* found = shared ? at_x : loss.gradient(point, its, levels);
            for (Size k = 0; k < p; ++k) its[k] = found[k];
            weigh(rule_of(j), rows, point, queues + j * n, next_queues + j * n, weights + j * n, g);
        }
        const Points all{points, slopes, at(of.alphas, i), weights, of.alphas.lead, n, zeros};
        all.step(rows, of.domain.of(i), e, next_points, at(of.multipliers, i), at(of.residuals, i),
                 scratch.at);
        for (Size j = 0; j < e; ++j) {
            const QueueRule rule = rule_of(j);
            if (rule.when == When::after)
                follow(rule, rows, next_points + j * p, queues + j * n, next_queues + j * n, g);
        }
        weighted_mean({their_weights}, {logs, e, 1}, {next_points, e, p, p}, {at(of.next, i), p});
    }
}

}  // namespace

extern const Entry queued[];
const Entry queued[] = {
    {"queue_step",
     "(p),(p)?,(p)?,(m,p)?,(m)?,(n,p),(n),(n)?,(n),(),(),(),(),(),(),"
     "(p),(p),(k)?,(k)?,(k)?,()->(p),(n),(n),()",
     queue_step, queue_scratch},
    {"experts_step",
     "(e,p),(e,n),(e*),(p),(e),(),(),(p)?,(m,p)?,(m)?,(n,p),(n),(e*),(e*),(e*),(e*),(),"
     "(p),(p),(k)?,(k)?,(k)?,()->(p),(e),(e,p),(e,n),(e,n),(e)",
     experts_step, expert_scratch},
    {},
};

}  // namespace coldq::COLDQ_LEVEL
