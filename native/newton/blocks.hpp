// The step with affine rows on blocks of coordinates with sums, as the rest of the core calls it.
#pragma once

#include "batch.hpp"

namespace coldq::COLDQ_LEVEL {

// The operands of `blocks_step` by name, in the order of its layout. `entries` are those of A;
// where it is sparse, `indices` and `pointers` are whole numbers seen as floats, else there are
// none.
struct BlockOperands {
    Operand center, gradient, alpha, floor, weights, guess, entries, indices, pointers, b;
    Operand lower, upper, start, total, kind, steps;
    Operand x, multipliers, residual;
};

void blocks_step(const Run& run);

// How many numbers of scratch memory it needs; negative if too many.
Size blocks_scratch(const BlockOperands& given);

}  // namespace coldq::COLDQ_LEVEL
