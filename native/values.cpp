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

// The limits of the last slots, in blocks: slot t is at place t of them all, modulo their length.
struct Blocks {
    PyObject* given;
    npy_intp count, batch, rows, length;
    const double* const* block;

    npy_intp place(npy_intp slot) const {
        const npy_intp all = count * length, at = slot % all;
        return at < 0 ? at + all : at;
    }
    // The limits of slots t[i] - back for each member i of the batch.
    void gather(const npy_intp* t, const npy_intp* back, npy_intp slots, double* out) const {
        for (npy_intp i = 0; i < batch; ++i)
            for (npy_intp a = 0; a < slots; ++a) {
                const npy_intp at = place(t[i] - back[a]);
                const double* from = block[at / length] + i * rows * length + at % length;
                for (npy_intp k = 0; k < rows; ++k)
                    out[(i * rows + k) * slots + a] = from[k * length];
            }
    }
    // These with the limits of one slot, of which all but one block are the same.
    PyObject* with(npy_intp slot, const double* limits) const {
        const npy_intp at = place(slot);
        PyObject* old = PyTuple_GetItem(given, at / length);
        PyObject* made = PyArray_NewCopy(reinterpret_cast<PyArrayObject*>(old), NPY_CORDER);
        PyObject* all = made ? PyTuple_New(count) : nullptr;
        if (!all) {
            Py_XDECREF(made);
            return nullptr;
        }
        auto* array = reinterpret_cast<PyArrayObject*>(made);
        double* to = static_cast<double*>(PyArray_DATA(array)) + at % length;
        for (npy_intp k = 0; k < batch * rows; ++k) to[k * length] = limits[k];
        PyArray_CLEARFLAGS(array, NPY_ARRAY_WRITEABLE);
        for (npy_intp b = 0; b < count; ++b) {
            PyObject* its = b == at / length ? made : Py_NewRef(PyTuple_GetItem(given, b));
            PyTuple_SetItem(all, b, its);
        }
        return all;
    }
};

constexpr Py_ssize_t MOST_BLOCKS = 4096;
constexpr int MOST_AXES = 32;

// The slots of the members of a batch: a number, or an array of them; null with an error.
const npy_intp* slots_of(PyObject* given, npy_intp batch, npy_intp& one) {
    if (PyArray_Check(given) && PyArray_NDIM(reinterpret_cast<PyArrayObject*>(given)) > 0) {
        auto* array = reinterpret_cast<PyArrayObject*>(given);
        if (PyArray_TYPE(array) == NPY_INTP && PyArray_SIZE(array) == batch &&
            PyArray_CHKFLAGS(array, NPY_ARRAY_CARRAY_RO))
            return static_cast<const npy_intp*>(PyArray_DATA(array));
    } else if (batch == 1) {
        one = PyNumber_AsSsize_t(given, PyExc_OverflowError);
        return one == -1 && PyErr_Occurred() ? nullptr : &one;
    }
    refuse("recall: a slot for each member of the batch is needed");
    return nullptr;
}

PyObject* recall(PyObject*, PyObject* const* given, Py_ssize_t count) {
    if (count != 4 || !PyTuple_Check(given[0]) || !PyArray_Check(given[2]))
        return refuse("recall takes blocks, the slot, how many slots ago, and limits or None");
    const Py_ssize_t blocks = PyTuple_Size(given[0]);
    if (blocks < 1 || blocks > MOST_BLOCKS) return refuse("recall: too few or many blocks");
    const double* block[MOST_BLOCKS];
    PyArrayObject* first = nullptr;
    for (Py_ssize_t b = 0; b < blocks; ++b) {
        auto* array = plain_array(PyTuple_GetItem(given[0], b), NPY_ARRAY_CARRAY_RO);
        if (!first) first = array;
        const int axes = array ? PyArray_NDIM(array) : 0;
        if (axes < 2 || axes > MOST_AXES || axes != PyArray_NDIM(first) ||
            !PyArray_CompareLists(PyArray_DIMS(array), PyArray_DIMS(first), axes))
            return refuse("recall: the blocks are not alike");
        block[b] = static_cast<const double*>(PyArray_DATA(array));
    }
    const int axes = PyArray_NDIM(first);
    npy_intp shape[MOST_AXES], batch = 1, one;
    for (int axis = 0; axis < axes; ++axis) shape[axis] = PyArray_DIMS(first)[axis];
    for (int axis = 0; axis < axes - 2; ++axis) batch *= shape[axis];
    const Blocks all = {given[0], blocks, batch, shape[axes - 2], shape[axes - 1], block};
    auto* back = reinterpret_cast<PyArrayObject*>(given[2]);
    auto* limits = given[3] == Py_None ? nullptr : plain_array(given[3], NPY_ARRAY_CARRAY_RO);
    if (all.length < 1 || PyArray_TYPE(back) != NPY_INTP || PyArray_NDIM(back) != 1 ||
        !PyArray_CHKFLAGS(back, NPY_ARRAY_CARRAY_RO) ||
        (given[3] != Py_None && (!limits || PyArray_SIZE(limits) != batch * all.rows)))
        return refuse("recall: the arrays do not belong together");
    const npy_intp* t = slots_of(given[1], batch, one);
    if (!t) return nullptr;

    bool together = limits && batch > 0;
    for (npy_intp i = 1; i < batch && together; ++i) together = t[i] == t[0];
    PyObject* next = together ? all.with(t[0], static_cast<const double*>(PyArray_DATA(limits)))
                              : Py_NewRef(Py_None);
    shape[axes - 1] = PyArray_SIZE(back);
    PyObject* found = next ? PyArray_SimpleNew(axes, shape, NPY_DOUBLE) : nullptr;
    PyObject* both = found ? PyTuple_New(2) : nullptr;
    if (!both) {
        Py_XDECREF(next);
        Py_XDECREF(found);
        return nullptr;
    }
    all.gather(t, static_cast<const npy_intp*>(PyArray_DATA(back)), shape[axes - 1],
               static_cast<double*>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(found))));
    PyTuple_SetItem(both, 0, next);
    PyTuple_SetItem(both, 1, found);
    return both;
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
    {"recall", function(recall), METH_FASTCALL,
     "Of blocks (..., N, length) with the limits of the last slots: these with the limits of slot "
     "t, and the limits (..., N, count) of the slots `t - back`. Slot t is at place t of all "
     "blocks, modulo their length. None in place of blocks without new limits, or where the "
     "members of a batch are in slots of their own."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace coldq
