// The tables of this CPU level.
#include "batch.hpp"

namespace coldq::COLDQ_LEVEL {

extern const Entry contractions[];
extern const Entry newton[];

extern const Level level;
const Level level = {COLDQ_LEVEL_NAME, {contractions, newton, nullptr}};

}  // namespace coldq::COLDQ_LEVEL
