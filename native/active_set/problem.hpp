// One instance of affine rows on a box, what becomes of it, and the memory that it is solved in.
#pragma once

#include <initializer_list>

#include "batch.hpp"
#include "sums.hpp"

namespace coldq::COLDQ_LEVEL {

constexpr double INF = __builtin_inf();

// min over x in [lower, upper] of <gradient, x - center> + alpha |x - center|^2 + penalties, where
// row k, A_k x - b_k - compliance_k lambda_k, is priced by the best lambda_k in
// [multiplier_lower_k, multiplier_upper_k]. An infinite bound enforces the row; two, an equality.
//
// Where `share` is given, coordinate i moves by share_i times what it would, from middle_i: the
// square of its distance to there counts more.
struct AffineBox {
    Size n = 0, p = 0;
    const double* center = nullptr;
    const double* gradient = nullptr;
    double alpha = 0.0;
    const double* multiplier_lower = nullptr;
    const double* multiplier_upper = nullptr;
    const double* compliance = nullptr;  // of the first rows, so many
    Size compliant = 0;
    const double* A = nullptr;  // row after row
    const double* b = nullptr;
    const double* lower = nullptr;
    const double* upper = nullptr;
    const double* share = nullptr;  // or none
    const double* middle = nullptr;

    void give_way(Vector first_rows) {
        compliance = first_rows.at;
        compliant = first_rows.size < n ? first_rows.size : n;
    }
    void weigh(Vector shares, Vector middles) {
        share = middles.at ? shares.at : nullptr;
        middle = middles.at;
    }
    double row_compliance(Size k) const { return k < compliant ? compliance[k] : 0.0; }
    bool enforced(Size k) const {
        return __builtin_isinf(multiplier_lower[k]) || __builtin_isinf(multiplier_upper[k]);
    }
};

enum class Status : int { optimal = 0, inexact = 1, infeasible = 2, failed = 3 };

constexpr double PROMISED = 1e-9;  // relative residual
constexpr double ACCEPTED = 1e-6;  // the same of an answer that is not what was promised

inline Status status_of(double residual) {
    return residual <= PROMISED   ? Status::optimal
           : residual <= ACCEPTED ? Status::inexact
                                  : Status::failed;
}

struct Answer {
    Status status = Status::failed;
    double residual = INF;
};

template <class T>
inline T clipped(T value, double lower, double upper) {
    return smaller(larger(value, T(lower)), T(upper));
}

template <class T>
inline void fill(T* to, Size count, T value) {
    for (Size i = 0; i < count; ++i) to[i] = value;
}

template <class T>
inline void copy(const T* from, Size count, T* to) {
    for (Size i = 0; i < count; ++i) to[i] = from[i];
}

inline bool all_finite(const double* values, Size count) {
    double finite = 0.0;
    for (Size i = 0; i < count; ++i) finite += 0.0 * values[i];
    return finite == 0.0;
}

// What is told where nothing was found: the center, and no multipliers.
inline void give_start(const AffineBox& given, double* x, double* multipliers) {
    for (Size i = 0; i < given.p; ++i)
        x[i] = clipped(given.center[i], given.lower[i], given.upper[i]);
    for (Size k = 0; k < given.n; ++k)
        multipliers[k] = clipped(0.0, given.multiplier_lower[k], given.multiplier_upper[k]);
}

// Memory given by the caller, handed out piece by piece. Without a beginning it only counts, so
// that one function says both how much an instance needs and where everything is.
class Memory {
  public:
    explicit Memory(double* begin) : begin_(begin) {}

    template <class T>
    T* take(Size count, Size of_each = 1) {
        Size bytes = 0, end = 0;
        overflow_ |= count < 0 || of_each < 0 || __builtin_mul_overflow(count, of_each, &bytes) ||
                     __builtin_mul_overflow(bytes, Size(sizeof(T)), &bytes) ||
                     __builtin_add_overflow(bytes, LINE - 1, &bytes);
        const Size numbers = bytes / LINE * LINE / Size(sizeof(double));
        overflow_ |= __builtin_add_overflow(used_, numbers, &end);
        T* const place = begin_ ? reinterpret_cast<T*>(begin_ + used_) : nullptr;
        used_ = overflow_ ? used_ : end;
        return place;
    }

    // How many numbers were handed out; negative if they cannot be counted.
    Size numbers() const { return overflow_ ? -1 : used_; }

  private:
    static constexpr Size LINE = 64;  // bytes of the processor's cache

    double* begin_;
    Size used_ = 0;
    bool overflow_ = false;
};

}  // namespace coldq::COLDQ_LEVEL
