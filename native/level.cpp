// The tables of this CPU level.
#include "batch.hpp"

namespace coldq::COLDQ_LEVEL {

extern const Entry contractions[];
extern const Entry active_set[];

extern const Level level;
const Level level = {COLDQ_LEVEL_NAME, {contractions, active_set, nullptr}};

}  // namespace coldq::COLDQ_LEVEL
