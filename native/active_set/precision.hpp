// How many digits of a number type count, as shares of what a number is the sum of.
#pragma once

#include "double_double.hpp"
#include "numbers.hpp"
#include "problem.hpp"

namespace coldq::COLDQ_LEVEL {

template <class Number>
struct Precision;

template <>
struct Precision<DoubleDouble> {
    static constexpr double DEPENDENT = 1e-26;  // of a row's square: what others leave unexplained
    static constexpr double VANISHING = 1e-30;  // of a row's square: what is free of it
    static constexpr double NOISE = 1e-28;      // of the largest that a number can be
    static constexpr double ROUNDING = 1e-29;   // of the terms of z formed afresh
    static constexpr double CANCELLED = 1e-4;   // of a pivot: with less left it must be made anew
    static constexpr int UPDATES = 60;          // of a factor, after which it is made anew
};

template <>
struct Precision<double> {
    static constexpr double DEPENDENT = 1e-13;
    static constexpr double VANISHING = 1e-15;
    static constexpr double NOISE = 1e-14;
    static constexpr double ROUNDING = 1e-14;
    static constexpr double CANCELLED = 1e-4;
    static constexpr int UPDATES = 24;
};

// y_i, where coordinate i would be without rows and bounds.
template <class Number>
Number target(const AffineBox& given, Size i) {
    const Number y =
        Number(given.center[i]) - Number(given.gradient[i]) / Number(2.0 * given.alpha);
    if (!given.share || given.share[i] == 1.0) return y;
    const Number middle = Number(given.middle[i]);
    return (y - middle) * given.share[i] + middle;
}

// A multiplier, or a bound of one, divided by 2 alpha, of a row times a power of two.
template <class Number>
Number divided(const AffineBox& given, double multiplier, double power = 1.0) {
    if (__builtin_isinf(multiplier)) return Number(multiplier);
    return Number(multiplier) / Number(2.0 * given.alpha) * (1.0 / power);
}

// The power of two that takes a size to [1, 2): exact.
inline double power_to_one(double size) {
    unsigned long long bits;
    __builtin_memcpy(&bits, &size, sizeof bits);
    const unsigned long long exponent = bits >> 52 & 0x7ff;
    bits = (exponent < 2046 ? 2046 - exponent : 1) << 52;
    double power;
    __builtin_memcpy(&power, &bits, sizeof power);
    return power;
}

constexpr double CONSTANT_ROW = 1e-100;  // a row shorter than this is constant on the box

}  // namespace coldq::COLDQ_LEVEL
