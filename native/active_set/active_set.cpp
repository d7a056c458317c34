// The active-set methods as entries: affine rows on a box where the dual Newton method has not
// settled.
#include "each.hpp"
#include "extended.hpp"
#include "in_double.hpp"

namespace coldq::COLDQ_LEVEL {
namespace {

AffineBox box_of(Vector center, Vector gradient, double alpha, Vector multiplier_lower,
                 Vector multiplier_upper, Matrix A, Vector b, Vector lower, Vector upper) {
    return {.n = b.size,
            .p = center.size,
            .center = center.at,
            .gradient = gradient.at,
            .alpha = alpha,
            .multiplier_lower = multiplier_lower.at,
            .multiplier_upper = multiplier_upper.at,
            .A = A.at,
            .b = b.at,
            .lower = lower.at,
            .upper = upper.at};
}

Size extended_memory(const Operand* operands) {
    return Extended::memory(operands[6].length[0], operands[0].length[0], operands[9].length[0]);
}

// Where enforced rows contradict, the multipliers are the combination of them that proves it.
void active_set_extended(Scratch scratch, Vector center, Vector gradient, double alpha,
                         Vector multiplier_lower, Vector multiplier_upper, Matrix A, Vector b,
                         Vector lower, Vector upper, Vector compliance, Vector share, Vector middle,
                         Vector start, OutVector x, OutVector multipliers, double& residual,
                         double& status) {
    AffineBox given =
        box_of(center, gradient, alpha, multiplier_lower, multiplier_upper, A, b, lower, upper);
    given.give_way(compliance), given.weigh(share, middle);
    const Answer answer = Extended::solve(given, start.at, x.at, multipliers.at, scratch.at);
    residual = answer.residual;
    status = double(answer.status);
}

Size descent_memory(const Operand* operands) {
    return Descent::memory(operands[5].length[0], operands[0].length[0]);
}

void active_set_double(Scratch scratch, Vector center, Vector gradient, double alpha,
                       Vector multiplier_lower, Vector multiplier_upper, Matrix A, Vector b,
                       Vector lower, Vector upper, Vector start, OutVector x, OutVector multipliers,
                       double& residual, double& status) {
    const AffineBox given =
        box_of(center, gradient, alpha, multiplier_lower, multiplier_upper, A, b, lower, upper);
    const Answer answer = Descent::solve(given, start.at, x.at, multipliers.at, scratch.at);
    residual = answer.residual;
    status = double(answer.status);
}

void affine_residual(Vector center, Vector gradient, double alpha, Vector multiplier_lower,
                     Vector multiplier_upper, Matrix A, Vector b, Vector lower, Vector upper,
                     Vector compliance, Vector share, Vector middle, Vector x, Vector multipliers,
                     double& residual) {
    AffineBox given =
        box_of(center, gradient, alpha, multiplier_lower, multiplier_upper, A, b, lower, upper);
    given.give_way(compliance), given.weigh(share, middle);
    residual = relative_residual(given, x.at, multipliers.at);
}

}  // namespace

extern const Entry active_set[];
const Entry active_set[] = {
    {"active_set_double", "(p),(p),(),(n),(n),(n,p),(n),(p),(p),(n)?->(p),(n),(),()",
     each<active_set_double>, descent_memory},
    {"active_set_extended",
     "(p),(p),(),(n),(n),(n,p),(n),(p),(p),(c),(p)?,(p)?,(n)?->(p),(n),(),()",
     each<active_set_extended>, extended_memory},
    {"affine_residual", "(p),(p),(),(n),(n),(n,p),(n),(p),(p),(c),(p)?,(p)?,(p),(n)->()",
     each<affine_residual>},
    {},
};

}  // namespace coldq::COLDQ_LEVEL
