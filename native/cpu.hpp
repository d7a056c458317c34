// Which CPU level runs.
#pragma once

#include "batch.hpp"

namespace coldq {

// The levels that were built, from the plainest to the richest, and a null.
extern const Level* const levels[];

bool machine_has(const char* level);

}  // namespace coldq
