#include "values.hpp"

#include <cmath>

namespace coldq {
namespace {

PyObject* refuse(const char* sentence) {
    PyErr_SetString(PyExc_TypeError, sentence);
    return nullptr;
}

// The array that this is, if it is one of float64 with these flags; else null.
PyArrayObject* plain_array(PyObject* given, int flags) {
    if (!PyArray_CheckExact(given)) return nullptr;
    auto* array = reinterpret_cast<PyArrayObject*>(given);
    const bool plain = PyArray_TYPE(array) == NPY_DOUBLE && PyArray_ISNOTSWAPPED(array) &&
                       PyArray_CHKFLAGS(array, flags);
    return plain ? array : nullptr;
}

bool is_finite(PyArrayObject* array) {
    const auto* number = static_cast<const double*>(PyArray_DATA(array));
    const npy_intp size = PyArray_SIZE(array);
    bool all = true;
    for (npy_intp i = 0; i < size; ++i) all &= std::isfinite(number[i]);
    return all;
}

PyObject* frozen(PyObject*, PyObject* const* given, Py_ssize_t count) {
    if (count != 1 && count != 2) return refuse("frozen takes an array, and whether it is finite");
    const bool any_number = count == 2 && given[1] == Py_False;
    PyObject* own = nullptr;
    if (PyFloat_Check(given[0])) {
        const double number = PyFloat_AsDouble(given[0]);
        if (!any_number && !std::isfinite(number)) Py_RETURN_NONE;
        own = PyArray_SimpleNew(0, nullptr, NPY_DOUBLE);
        if (own)
            *static_cast<double*>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(own))) = number;
    } else {
        auto* array = plain_array(given[0], NPY_ARRAY_CARRAY_RO);
        if (!array || !(any_number || is_finite(array))) Py_RETURN_NONE;
        if (!PyArray_ISWRITEABLE(array)) {
            if (PyArray_BASE(array)) Py_RETURN_NONE;  // which may be written to
            return Py_NewRef(given[0]);
        }
        own = PyArray_NewCopy(array, NPY_CORDER);
    }
    if (own) PyArray_CLEARFLAGS(reinterpret_cast<PyArrayObject*>(own), NPY_ARRAY_WRITEABLE);
    return own;
}

PyObject* are_finite(PyObject*, PyObject* const* given, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; ++i) {
        auto* array = plain_array(given[i], NPY_ARRAY_CARRAY_RO);
        if (!array || !is_finite(array)) Py_RETURN_FALSE;
    }
    Py_RETURN_TRUE;
}

PyObject* put(PyObject*, PyObject* const* given, Py_ssize_t count) {
    if (count % 2 == 0) return refuse("put takes a value, and names and fields in turns");
    for (Py_ssize_t i = 1; i < count; i += 2)
        if (PyObject_GenericSetAttr(given[0], given[i], given[i + 1]) < 0) return nullptr;
    Py_RETURN_NONE;
}

// The limits of several slots from blocks that hold those of the last slots.
struct Ago {
    npy_intp blocks, batch, rows, length, count;
    const double* const* block;
    const long long *t, *back;

    void gather(double* out) const {
        for (npy_intp i = 0; i < batch; ++i)
            for (npy_intp a = 0; a < count; ++a) {
                const long long slots = blocks * length, slot = (t[i] - back[a]) % slots;
                const npy_intp place = npy_intp(slot < 0 ? slot + slots : slot);
                const double* from = block[place / length] + i * rows * length + place % length;
                for (npy_intp k = 0; k < rows; ++k)
                    out[(i * rows + k) * count + a] = from[k * length];
            }
    }
};

PyArrayObject* whole_numbers(PyObject* given) {
    return reinterpret_cast<PyArrayObject*>(PyArray_ContiguousFromAny(given, NPY_INT64, 0, 0));
}

constexpr Py_ssize_t MOST_BLOCKS = 4096;
constexpr int MOST_AXES = 32;

PyObject* limits_ago(PyObject*, PyObject* const* given, Py_ssize_t count) {
    if (count != 3 || !PyTuple_Check(given[0]))
        return refuse("limits_ago takes a tuple of blocks, the slot, and how many slots ago");
    const Py_ssize_t blocks = PyTuple_Size(given[0]);
    if (blocks < 1 || blocks > MOST_BLOCKS) return refuse("limits_ago: too few or many blocks");
    const double* block[MOST_BLOCKS];
    PyArrayObject* first = nullptr;
    for (Py_ssize_t b = 0; b < blocks; ++b) {
        auto* array = plain_array(PyTuple_GetItem(given[0], b), NPY_ARRAY_CARRAY_RO);
        if (!first) first = array;
        const int axes = array ? PyArray_NDIM(array) : 0;
        if (axes < 2 || axes > MOST_AXES || axes != PyArray_NDIM(first) ||
            !PyArray_CompareLists(PyArray_DIMS(array), PyArray_DIMS(first), axes))
            return refuse("limits_ago: the blocks are not alike");
        block[b] = static_cast<const double*>(PyArray_DATA(array));
    }
    const int axes = PyArray_NDIM(first);
    npy_intp shape[MOST_AXES], batch = 1;
    for (int axis = 0; axis < axes; ++axis) shape[axis] = PyArray_DIMS(first)[axis];
    for (int axis = 0; axis < axes - 2; ++axis) batch *= shape[axis];
    PyArrayObject *t = whole_numbers(given[1]), *back = t ? whole_numbers(given[2]) : nullptr;
    PyObject* out = nullptr;
    if (back && (PyArray_SIZE(t) != batch || PyArray_NDIM(back) != 1)) {
        refuse("limits_ago: a slot for each member of the batch is needed");
    } else if (back) {
        const npy_intp length = shape[axes - 1];
        shape[axes - 1] = PyArray_SIZE(back);
        out = PyArray_SimpleNew(axes, shape, NPY_DOUBLE);
        if (out && length > 0) {
            const Ago ago = {blocks,
                             batch,
                             shape[axes - 2],
                             length,
                             shape[axes - 1],
                             block,
                             static_cast<const long long*>(PyArray_DATA(t)),
                             static_cast<const long long*>(PyArray_DATA(back))};
            ago.gather(static_cast<double*>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(out))));
        }
    }
    Py_XDECREF(reinterpret_cast<PyObject*>(t));
    Py_XDECREF(reinterpret_cast<PyObject*>(back));
    return out;
}

PyCFunction function(PyObject* (*given)(PyObject*, PyObject* const*, Py_ssize_t)) {
    // CPython keeps functions of any signature as PyCFunction.
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(given));
}

}  // namespace

PyMethodDef value_methods[] = {
    {"frozen", function(frozen), METH_FASTCALL,
     "An array that nobody can write to, of a float or of what is as most arrays come: whole, of "
     "float64, and finite unless False is given. None of anything else."},
    {"are_finite", function(are_finite), METH_FASTCALL,
     "Whether all are contiguous arrays of float64 without NaN or infinity."},
    {"put", function(put), METH_FASTCALL,
     "Set fields of a frozen value, each name followed by what it is."},
    {"limits_ago", function(limits_ago), METH_FASTCALL,
     "Limits (..., N, count) of the slots `t - back`, from blocks (..., N, length) of the last "
     "slots: slot t is at place t of all of them, modulo their length."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace coldq
