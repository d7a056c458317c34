// Affine rows on a box in double-double arithmetic, or a proof that enforced rows contradict.
#pragma once

#include "dual_ascent.hpp"
#include "residual.hpp"

namespace coldq::COLDQ_LEVEL {

class Extended {
  public:
    // How many numbers of memory an instance needs; negative if its sizes are too large. No more
    // rows are independent than there are coordinates, but for those with compliance.
    static Size memory(Size n, Size p, Size compliant) {
        Memory counted(nullptr);
        Extended nothing;
        nothing.lay_out(counted, n, p, compliant);
        return counted.numbers();
    }

    // Solves an instance from a guess of its multipliers, or from none. Where enforced rows have no
    // common point, `multipliers` is a combination of them that says so (`farkas_gap`).
    static Answer solve(const AffineBox& given, const double* start, double* x, double* multipliers,
                        double* memory) {
        Memory store(memory);
        Extended method;
        method.lay_out(store, given.n, given.p, given.compliant);
        return method.run(given, start, x, multipliers);
    }

  private:
    static constexpr double PROOF = 1e-9;  // how far a combination must fail, of its terms
    // What rows may be off by, of their terms; more where they contradict by less than is promised.
    static constexpr double TOLERANCES[] = {1e-13, 1e-11, 5e-10};
    static constexpr Size LEAST_STEPS = 100, FEW_STEPS = 2, MANY_STEPS = 20;

    void lay_out(Memory& memory, Size n, Size p, Size compliant) {
        ascent_.lay_out(memory, n, p, 2 + (n - compliant < p ? n : p + compliant));
        trial_x_ = memory.take<double>(p);
        trial_ = memory.take<double>(n);
        zeros_ = memory.take<double>(n);
        proof_ = memory.take<DoubleDouble>(n);
    }

    Answer run(const AffineBox& given, const double* start, double* x, double* multipliers) {
        begin(given, x, multipliers);
        Answer best;
        if (!ascent_.read(given)) return {Status::failed, __builtin_nan("")};
        if (start && !all_finite(start, given.n)) start = nullptr;
        for (const double* from : {start, static_cast<const double*>(zeros_)}) {
            if (!from) continue;
            // A guess that leads nowhere soon is a bad one.
            const bool last = from == zeros_;
            const Size steps = LEAST_STEPS + (last ? MANY_STEPS : FEW_STEPS) * (given.n + given.p);
            for (const double tolerance : TOLERANCES) {
                const auto end = ascent_.climb(from, tolerance, steps);
                if (proves(given, end, PROOF)) return give_proof(given, multipliers);
                keep_better(given, best, x, multipliers);
                if (end == End::optimal || best.residual <= PROMISED) break;
                if (end == End::out_of_steps && !last) break;
            }
            if (best.residual <= PROMISED) break;
        }
        if (proved_ > 0.0 && !(best.residual <= ACCEPTED)) return give_proof(given, multipliers);
        best.status = status_of(best.residual);
        return best;
    }

    using Ascent = DualAscent<DoubleDouble>;
    using End = Ascent::End;

    void begin(const AffineBox& given, double* x, double* multipliers) {
        give_start(given, x, multipliers);
        fill(zeros_, given.n, 0.0);
        proved_ = 0.0;
    }

    // Whether a ray proves by more than this that enforced rows contradict; the best is kept.
    bool proves(const AffineBox& given, End end, double least) {
        if (end != End::ray) return false;
        ascent_.tell_point(trial_x_);
        const double gap = farkas_gap(given, ascent_.ray(), trial_x_);
        if (gap > proved_) {
            proved_ = gap;
            copy(ascent_.ray(), given.n, proof_);
        }
        return gap > least;
    }

    Answer give_proof(const AffineBox& given, double* multipliers) const {
        for (Size k = 0; k < given.n; ++k) multipliers[k] = proof_[k].high;
        return {Status::infeasible, INF};
    }

    void keep_better(const AffineBox& given, Answer& best, double* x, double* multipliers) {
        ascent_.tell(trial_x_, trial_);
        const double residual = relative_residual(given, trial_x_, trial_);
        if (!(residual < best.residual)) return;
        best.residual = residual;
        copy(trial_x_, given.p, x);
        copy(trial_, given.n, multipliers);
    }

    Ascent ascent_;
    double *trial_x_ = nullptr, *trial_ = nullptr, *zeros_ = nullptr;
    DoubleDouble* proof_ = nullptr;
    double proved_ = 0.0;
};

}  // namespace coldq::COLDQ_LEVEL
