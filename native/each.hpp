// A kernel from a plain function of one instance, whose parameters say what its arrays are.
#pragma once

#include <utility>

#include "batch.hpp"

namespace coldq::COLDQ_LEVEL {

template <class T>
struct Argument;

template <>
struct Argument<double> {
    static double of(const Operand& o, double* at) { return (void)o, *at; }
};
template <>
struct Argument<double&> {
    static double& of(const Operand& o, double* at) { return (void)o, *at; }
};
template <>
struct Argument<Vector> {
    static Vector of(const Operand& o, double* at) { return {at, o.length[0]}; }
};
template <>
struct Argument<StridedVector> {
    static StridedVector of(const Operand& o, double* at) { return {at, o.length[0], o.lead}; }
};
template <>
struct Argument<Matrix> {
    static Matrix of(const Operand& o, double* at) {
        return {at, o.length[0], o.length[1], o.lead};
    }
};
template <>
struct Argument<OutVector> {
    static OutVector of(const Operand& o, double* at) { return {at, o.length[0]}; }
};
template <>
struct Argument<OutMatrix> {
    static OutMatrix of(const Operand& o, double* at) { return {at, o.length[0], o.length[1]}; }
};

// The array of instance `i` of an operand.
template <class T>
inline T instance(const Operand& o, Size i) {
    return Argument<T>::of(o, o.at + i * o.step);
}

template <auto function, class Signature = decltype(function)>
struct Each;

template <auto function, class... Given>
struct Each<function, void (*)(Given...)> {
    static void run(const Run& run) { all(run, std::make_index_sequence<sizeof...(Given)>()); }

    template <std::size_t... which>
    static void all(const Run& run, std::index_sequence<which...>) {
        for (Size i = 0; i < run.count; ++i) function(instance<Given>(run.operands[which], i)...);
    }
};

template <auto function, class... Given>
struct Each<function, void (*)(Scratch, Given...)> {
    static void run(const Run& run) { all(run, std::make_index_sequence<sizeof...(Given)>()); }

    template <std::size_t... which>
    static void all(const Run& run, std::index_sequence<which...>) {
        for (Size i = 0; i < run.count; ++i)
            function(Scratch{run.scratch}, instance<Given>(run.operands[which], i)...);
    }
};

// void (*)(const Run&) of a function such as `void dot(Vector a, Vector b, double& out)`. One that
// works in scratch memory takes a `Scratch` first.
template <auto function>
constexpr auto each = &Each<function>::run;

}  // namespace coldq::COLDQ_LEVEL
