// Affine rows that conflict in few coordinates, in double arithmetic.
#pragma once

#include "primal_descent.hpp"

namespace coldq::COLDQ_LEVEL {

struct Descent {
    // How many numbers of memory an instance needs; negative if its sizes are too large.
    static Size memory(Size n, Size p) {
        Memory counted(nullptr);
        PrimalDescent<double> nothing;
        nothing.lay_out(counted, n, p);
        return counted.numbers();
    }

    // Solves an instance from a guess of its multipliers, and where that leads nowhere from none.
    static Answer solve(const AffineBox& given, const double* start, double* x, double* multipliers,
                        double* memory) {
        Memory store(memory);
        PrimalDescent<double> method;
        method.lay_out(store, given.n, given.p);
        double residual = INF;
        if (method.read(given)) {
            if (start && all_finite(start, given.n) && method.descend(start))
                residual = method.tell(x, multipliers);
            if (!(residual <= PROMISED) && method.descend(nullptr))
                residual = method.tell(x, multipliers);
        }
        if (!(residual < INF)) give_start(given, x, multipliers);
        return {status_of(residual), residual};
    }
};

}  // namespace coldq::COLDQ_LEVEL
