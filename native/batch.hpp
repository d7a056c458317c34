// What a kernel of the core sees of a batch, and how it is made known to Python.
//
// A kernel is compiled once for each CPU level. It is handed a run: `count` instances, the arrays
// of one following those of the last at a fixed step, 0 where all have the same.
#pragma once

#include <cstddef>

namespace coldq {

using Size = std::ptrdiff_t;

constexpr int MOST_OPERANDS = 72;
constexpr int MOST_CORE_AXES = 3;

struct Operand {
    double* at;                   // of the run's first instance
    Size step;                    // from one instance to the next, in numbers
    Size length[MOST_CORE_AXES];  // of its core axes
    Size lead;                    // from one entry to the next of the first core axis
};

struct Run {
    Size count;
    const Operand* operands;  // inputs, then outputs
    double* scratch;          // as many numbers as the entry said
};

constexpr Size DO_NOT_FIT = -2;  // told for memory, by entries that None or sizes do not suit

// An entry of the core. The layout names core axes as NumPy does, "(n,p),(p)->(n)"; the first axis
// of an array may have a star, "(m*,p)", and then any step. All else of the core is contiguous. An
// input with a question mark, "(p)?", may be None, and then is at a null pointer.
struct Entry {
    const char* name;
    const char* layout;
    void (*run)(const Run&);
    Size (*scratch)(const Operand*) = nullptr;  // how many numbers, negative if too many; or null
};

// The tables of entries of one CPU level; an entry without a name ends a table, a null ends them.
struct Level {
    const char* name;
    const Entry* tables[16];
};

// Arguments of a kernel for one instance.

struct Vector {
    const double* at;
    Size size;

    const double& operator[](Size i) const { return at[i]; }
};

struct StridedVector {
    const double* at;
    Size size, step;

    const double& operator[](Size i) const { return at[i * step]; }
};

struct Matrix {
    const double* at;
    Size rows, columns, step;

    const double* operator[](Size row) const { return at + row * step; }
};

struct OutVector {
    double* at;
    Size size;

    double& operator[](Size i) const { return at[i]; }
};

struct OutMatrix {
    double* at;
    Size rows, columns;

    double* operator[](Size row) const { return at + row * columns; }
};

struct Scratch {
    double* at;

    double* take(Size count) {
        double* taken = at;
        at += count;
        return taken;
    }
};

}  // namespace coldq
