// From NumPy's arrays to runs of the core, and back.
#pragma once

#include "batch.hpp"
#include "python.hpp"

namespace coldq {

constexpr int MOST_SIZES = 24;

// An entry with its layout read.
struct Door {
    struct Core {
        int axes;
        int size[MOST_CORE_AXES];  // which of the sizes each axis has
        bool any_step;             // of its first axis
        bool optional;             // None will do
    };

    const Entry* entry;
    int inputs, operands;
    Core core[MOST_OPERANDS];
};

Door read_layout(const Entry& entry);

// Computes the outputs of a batch: new arrays, or those that follow the inputs.
PyObject* call(const Door& door, PyObject* const* arguments, Py_ssize_t count);

}  // namespace coldq
