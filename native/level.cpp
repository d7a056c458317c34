// The tables of this CPU level.
#include "batch.hpp"

namespace coldq::COLDQ_LEVEL {

extern const Entry contractions[];
extern const Entry dense[];
extern const Entry newton[];
extern const Entry blocks[];
extern const Entry active_set[];
extern const Entry queued[];

extern const Level level;
const Level level = {COLDQ_LEVEL_NAME,
                     {contractions, dense, newton, blocks, active_set, queued, nullptr}};

}  // namespace coldq::COLDQ_LEVEL
