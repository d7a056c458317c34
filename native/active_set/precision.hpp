// How many digits of a number type count, as shares of what a number is the sum of.
#pragma once

#include "double_double.hpp"
#include "numbers.hpp"

namespace coldq::COLDQ_LEVEL {

template <class Number>
struct Precision;

template <>
struct Precision<DoubleDouble> {
    static constexpr double dependent = 1e-26;  // of a row's square: what others leave unexplained
    static constexpr double vanishing = 1e-30;  // of a row's square: what is free of it
    static constexpr double noise = 1e-28;      // of the largest that a number can be
    static constexpr double rounding = 1e-29;   // of the terms of z formed afresh
    static constexpr double cancelled = 1e-4;   // of a pivot: with less left it must be made anew
    static constexpr int updates = 60;          // of a factor, after which it is made anew
};

template <>
struct Precision<double> {
    static constexpr double dependent = 1e-13;
    static constexpr double vanishing = 1e-15;
    static constexpr double noise = 1e-14;
    static constexpr double rounding = 1e-14;
    static constexpr double cancelled = 1e-4;
    static constexpr int updates = 24;
};

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

constexpr double constant_row = 1e-100;  // a row shorter than this is constant on the box

}  // namespace coldq::COLDQ_LEVEL
