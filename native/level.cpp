// The tables of this CPU level.
#include "batch.hpp"

namespace coldq::COLDQ_LEVEL {

extern const Entry active_set[];
extern const Entry contractions[];
extern const Entry curved[];
extern const Entry dense[];
extern const Entry interior_point[];
extern const Entry pieces[];
extern const Entry queued[];
extern const Entry learner_parts[];
extern const Entry self_tuning[];
extern const Entry newton[];
extern const Entry blocks[];
extern const Entry roots[];

extern const Level level;
const Level level = {COLDQ_LEVEL_NAME,
                     {active_set, contractions, curved, dense, interior_point, pieces, queued,
                      learner_parts, self_tuning, newton, blocks, roots, nullptr}};

}  // namespace coldq::COLDQ_LEVEL
