// A number as the unevaluated sum of two doubles: about 31 decimal digits.
//
// A rounded sum or product of two doubles differs from the exact one by a double, which a few more
// operations give exactly (Dekker 1971, Knuth 1969). Nothing that includes this may be compiled
// with reordered or contracted arithmetic: either would take the low parts for zero.
#pragma once

#include "numbers.hpp"

namespace coldq::COLDQ_LEVEL {

struct DoubleDouble {
    double high = 0.0;
    double low = 0.0;

    constexpr DoubleDouble() = default;
    constexpr DoubleDouble(double value) : high(value) {}
    constexpr DoubleDouble(double high_, double low_) : high(high_), low(low_) {}
};

// high + low without rounding, for |high| >= |low|.
[[gnu::always_inline]] inline DoubleDouble fast_two_sum(double high, double low) {
    const double sum = high + low;
    return {sum, low - (sum - high)};
}

// a + b without rounding.
[[gnu::always_inline]] inline DoubleDouble two_sum(double a, double b) {
    const double sum = a + b;
    const double moved = sum - a;
    return {sum, (a - (sum - moved)) + (b - moved)};
}

// a b without rounding: by a fused product where the processor has one, else from halves of the
// digits. Both give the same bits.
[[gnu::always_inline]] inline DoubleDouble two_product(double a, double b) {
    const double product = a * b;
#if defined(__FMA__) || defined(__aarch64__)
    return {product, __builtin_fma(a, b, -product)};
#else
    constexpr double splitter = 134217729.0;  // 2^27 + 1
    const double long_a = splitter * a, long_b = splitter * b;
    const double a_half = long_a - (long_a - a), b_half = long_b - (long_b - b);
    const double a_rest = a - a_half, b_rest = b - b_half;
    const double error =
        ((a_half * b_half - product) + a_half * b_rest + a_rest * b_half) + a_rest * b_rest;
    return {product, error};
#endif
}

[[gnu::always_inline]] inline DoubleDouble operator-(DoubleDouble a) { return {-a.high, -a.low}; }

[[gnu::always_inline]] inline DoubleDouble operator+(DoubleDouble a, DoubleDouble b) {
    const DoubleDouble sum = two_sum(a.high, b.high);
    return fast_two_sum(sum.high, sum.low + (a.low + b.low));
}

[[gnu::always_inline]] inline DoubleDouble operator-(DoubleDouble a, DoubleDouble b) {
    return a + -b;
}

[[gnu::always_inline]] inline DoubleDouble operator*(DoubleDouble a, double b) {
    const DoubleDouble product = two_product(a.high, b);
    return fast_two_sum(product.high, product.low + a.low * b);
}

[[gnu::always_inline]] inline DoubleDouble operator*(DoubleDouble a, DoubleDouble b) {
    const DoubleDouble product = two_product(a.high, b.high);
    return fast_two_sum(product.high, product.low + (a.high * b.low + a.low * b.high));
}

[[gnu::always_inline]] inline DoubleDouble operator/(DoubleDouble a, DoubleDouble b) {
    const double quotient = a.high / b.high;
    const DoubleDouble rest = a - b * quotient;
    return fast_two_sum(quotient, rest.high / b.high);
}

// By a step of Newton's method from the root in double.
inline DoubleDouble root(DoubleDouble a) {
    const double near = __builtin_sqrt(a.high);
    if (!(near > 0.0)) return near;
    return fast_two_sum(near, (a - two_product(near, near)).high / (2.0 * near));
}

inline DoubleDouble& operator+=(DoubleDouble& a, DoubleDouble b) { return a = a + b; }
inline DoubleDouble& operator-=(DoubleDouble& a, DoubleDouble b) { return a = a - b; }

inline bool operator<(DoubleDouble a, DoubleDouble b) {
    return a.high < b.high || (a.high == b.high && a.low < b.low);
}
inline bool operator>(DoubleDouble a, DoubleDouble b) { return b < a; }
inline bool operator==(DoubleDouble a, DoubleDouble b) {
    return a.high == b.high && a.low == b.low;
}
inline bool operator!=(DoubleDouble a, DoubleDouble b) { return !(a == b); }

inline DoubleDouble absolute(DoubleDouble a) { return a.high < 0.0 ? -a : a; }
inline DoubleDouble select(bool mask, DoubleDouble yes, DoubleDouble no) { return mask ? yes : no; }

// What a method written over the number type asks of one.
template <class Number>
Number exact_product(double a, double b);
template <>
inline double exact_product<double>(double a, double b) {
    return a * b;
}
template <>
inline DoubleDouble exact_product<DoubleDouble>(double a, double b) {
    return two_product(a, b);
}
inline double rounded(double a) { return a; }
inline double rounded(DoubleDouble a) { return a.high; }

}  // namespace coldq::COLDQ_LEVEL
