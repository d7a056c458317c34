// Sums over core axes, and the queue.
#include "each.hpp"
#include "numbers.hpp"

namespace coldq::COLDQ_LEVEL {
namespace {

void dot_of(Vector a, Vector b, double& out) { out = dot(a.at, b.at, a.size); }

}  // namespace

extern const Entry contractions[];
const Entry contractions[] = {
    {"dot", "(p),(p)->()", each<dot_of>, "``sum_i a_i b_i`` over the last axis."},
    {},
};

}  // namespace coldq::COLDQ_LEVEL
