// The active-set methods as entries: affine rows on a box where the dual Newton method has not
// settled.
#include "each.hpp"
#include "extended.hpp"

namespace coldq::COLDQ_LEVEL {
namespace {

Size extended_memory(const Operand* operands) {
    return Extended::memory(operands[7].length[0], operands[0].length[0], operands[5].length[0]);
}

void active_set_extended(Scratch scratch, Vector center, Vector gradient, double alpha,
                         Vector multiplier_lower, Vector multiplier_upper, Vector compliance,
                         Matrix A, Vector b, Vector lower, Vector upper, Vector share,
                         Vector middle, Vector start, OutVector x, OutVector multipliers,
                         double& residual, double& status) {
    const AffineBox given{.n = b.size,
                          .p = center.size,
                          .center = center.at,
                          .gradient = gradient.at,
                          .alpha = alpha,
                          .multiplier_lower = multiplier_lower.at,
                          .multiplier_upper = multiplier_upper.at,
                          .compliance = compliance.at,
                          .compliant = compliance.size,
                          .A = A.at,
                          .b = b.at,
                          .lower = lower.at,
                          .upper = upper.at,
                          .share = share.at,
                          .middle = middle.at};
    Answer answer;
    if (compliance.size <= b.size)
        answer = Extended::solve(given, start.at, x.at, multipliers.at, scratch.at);
    residual = answer.residual;
    status = double(answer.status);
}

void affine_residual(Vector center, Vector gradient, double alpha, Vector multiplier_lower,
                     Vector multiplier_upper, Vector compliance, Matrix A, Vector b, Vector lower,
                     Vector upper, Vector share, Vector middle, Vector x, Vector multipliers,
                     double& residual) {
    const AffineBox given{.n = b.size,
                          .p = center.size,
                          .center = center.at,
                          .gradient = gradient.at,
                          .alpha = alpha,
                          .multiplier_lower = multiplier_lower.at,
                          .multiplier_upper = multiplier_upper.at,
                          .compliance = compliance.at,
                          .compliant = compliance.size,
                          .A = A.at,
                          .b = b.at,
                          .lower = lower.at,
                          .upper = upper.at,
                          .share = share.at,
                          .middle = middle.at};
    residual = compliance.size <= b.size ? relative_residual(given, x.at, multipliers.at) : INF;
}

}  // namespace

extern const Entry active_set[];
const Entry active_set[] = {
    {"active_set_extended", "(p),(p),(),(n),(n),(c),(n,p),(n),(p),(p),(p),(p),(n)->(p),(n),(),()",
     each<active_set_extended>,
     "Affine rows on a box in double-double arithmetic: x, multipliers, residual, status. Where "
     "the "
     "status is that enforced rows contradict, the multipliers are the combination that proves it.",
     extended_memory},
    {"affine_residual", "(p),(p),(),(n),(n),(c),(n,p),(n),(p),(p),(p),(p),(p),(n)->()",
     each<affine_residual>, "The relative residual of the optimality conditions of an answer."},
    {},
};

}  // namespace coldq::COLDQ_LEVEL
