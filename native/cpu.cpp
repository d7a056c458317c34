#include "cpu.hpp"

#include <cstring>

#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace coldq {

#define LEVEL(name)           \
    namespace name {          \
    extern const Level level; \
    }
#include "levels.inc"
#undef LEVEL

#define LEVEL(name) &name::level,
const Level* const levels[] = {
#include "levels.inc"
    nullptr};
#undef LEVEL

#ifdef __x86_64__

namespace {

struct Registers {
    unsigned a, b, c, d;

    static Registers of(unsigned leaf) {
        Registers r = {};
        __get_cpuid_count(leaf, 0, &r.a, &r.b, &r.c, &r.d);
        return r;
    }
};

// Which registers the operating system saves when it switches between threads.
unsigned saved_registers() {
    unsigned low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

bool has(unsigned found, unsigned needed) { return (found & needed) == needed; }

// The levels of the x86-64 psABI.
int level_of_machine() {
    Registers basic = Registers::of(1), more = Registers::of(7),
              extended = Registers::of(0x80000001);
    if (!has(basic.c,
             bit_SSE3 | bit_SSSE3 | bit_CMPXCHG16B | bit_SSE4_1 | bit_SSE4_2 | bit_POPCNT) ||
        !has(extended.c, bit_LAHF_LM))
        return 1;
    constexpr unsigned VECTORS = 0x6, WIDE_VECTORS = 0xe6;
    if (!has(basic.c, bit_FMA | bit_MOVBE | bit_OSXSAVE | bit_AVX | bit_F16C) ||
        !has(more.b, bit_BMI | bit_AVX2 | bit_BMI2) || !has(extended.c, bit_LZCNT) ||
        !has(saved_registers(), VECTORS))
        return 2;
    if (!has(more.b, bit_AVX512F | bit_AVX512DQ | bit_AVX512CD | bit_AVX512BW | bit_AVX512VL) ||
        !has(saved_registers(), WIDE_VECTORS))
        return 3;
    return 4;
}

}  // namespace

bool machine_has(const char* level) {
    return std::strcmp(level, "plain") == 0 || level[1] - '0' <= level_of_machine();
}

#else

bool machine_has(const char* level) { return std::strcmp(level, "plain") == 0; }

#endif

}  // namespace coldq
