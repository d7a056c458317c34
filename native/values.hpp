// What values of a user's arrays are made with.
#pragma once

#include "python.hpp"

namespace coldq {

// The functions `frozen`, `are_finite` and `put`, and an entry without a name.
extern PyMethodDef value_methods[];

}  // namespace coldq
