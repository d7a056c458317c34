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
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace coldq
