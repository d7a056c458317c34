// The step with affine rows on a box, as the rest of the core calls it.
#pragma once

#include "batch.hpp"

namespace coldq::COLDQ_LEVEL {

// The operands of `affine_step` by name, in the order of its layout.
struct AffineOperands {
    Operand center, gradient, alpha, floor, weights, soft, A, b, lower, upper, systems;
    Operand x, multipliers, residual;
};

void affine_step(const Run& run);

// How many numbers of scratch memory so many instances need; negative if too many.
Size affine_scratch(Size n, Size p, Size count);

}  // namespace coldq::COLDQ_LEVEL
