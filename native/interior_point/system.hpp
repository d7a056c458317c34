// Vectors and positive definite systems over the number type.
#pragma once

#include "active_set/problem.hpp"
#include "dense.hpp"

namespace coldq::COLDQ_LEVEL {

inline double product(const double* a, const double* b, Size n) { return dot(a, b, n); }

// Not forced into its callers: that takes long to compile.
[[gnu::noinline]] inline DoubleDouble product(const DoubleDouble* a, const DoubleDouble* b,
                                              Size n) {
    return sum<DoubleDouble>(n, [=](Size i) { return a[i] * b[i]; });
}

// to += s row
inline void add_multiple(double* to, double s, const double* row, Size n) {
    across(n, [=]<class T>(T, Size i) __attribute__((always_inline)) {
        store(to + i, load<T>(to + i) + T(s) * load<T>(row + i));
    });
}

[[gnu::noinline]] inline void add_multiple(DoubleDouble* to, DoubleDouble s,
                                           const DoubleDouble* row, Size n) {
    for (Size i = 0; i < n; ++i) to[i] += row[i] * s;
}

// The same, and the sizes of what is added.
inline void add_multiple(double* to, double* sizes, double s, const double* row, Size n) {
    across(n, [=]<class T>(T, Size i) __attribute__((always_inline)) {
        const T term = T(s) * load<T>(row + i);
        store(to + i, load<T>(to + i) + term);
        store(sizes + i, load<T>(sizes + i) + absolute(term));
    });
}

[[gnu::noinline]] inline void add_multiple(DoubleDouble* to, double* sizes, DoubleDouble s,
                                           const DoubleDouble* row, Size n) {
    for (Size i = 0; i < n; ++i) {
        const DoubleDouble term = row[i] * s;
        to[i] += term, sizes[i] += absolute(term.high);
    }
}

// A positive definite matrix, of which the upper half is given, and its factor in its place.
template <class Number>
class System {
  public:
    System(Size most, Memory& memory)
        : entries_(memory.take<Number>(most, most)), inverse_(memory.take<Number>(most)) {}

    // n rows, zero.
    Number* clear(Size n) {
        n_ = n;
        fill(entries_, n * n, Number(0.0));
        return entries_;
    }
    Number& operator()(Size i, Size j) { return entries_[i * n_ + j]; }
    Number* row(Size i) { return entries_ + i * n_; }
    Size size() const { return n_; }

    // Whether there is a factor; pivots that rounding leaves nothing of are raised.
    bool make() {
        for (Size i = 0; i < n_; ++i) {
            const double d = rounded((*this)(i, i));
            if (!(d > 0.0 && d < INF)) return false;
        }
        factor(entries_, n_, n_, inverse_, sizeof(Number) > sizeof(double) ? 1e-30 : 1e-15);
        return true;
    }
    void solve(Number* z) { coldq::COLDQ_LEVEL::solve(entries_, n_, n_, inverse_, z); }

  private:
    Number* entries_;
    Number* inverse_;
    Size n_ = 0;
};

}  // namespace coldq::COLDQ_LEVEL
