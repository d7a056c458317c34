#include "arrays.hpp"

#include <cstdint>
#include <cstring>
#include <ctime>

namespace coldq {
namespace {

constexpr int MOST_BATCH_AXES = 16;
constexpr Size SMALL_SCRATCH = 1024;  // numbers, which are taken from the stack
constexpr Size SERIAL_WORK = 10000;   // numbers that are gone through without letting others run
constexpr Size MOST_WORK = PTRDIFF_MAX / 2;  // as what more counts
constexpr Size CHUNK_WORK = 50000;           // numbers between two looks at the clock
constexpr double SIGNAL_INTERVAL = 0.1;      // seconds between two looks for Ctrl-C

// A call's arrays, batch and operands.
struct Call {
    const Door& door;
    PyObject* arrays[MOST_OPERANDS];  // null where there is none
    double numbers[MOST_OPERANDS];    // that are Python's, or will be
    Size sizes[MOST_SIZES];           // -1 where not known yet
    Operand operands[MOST_OPERANDS];
    int batch_axes = 0;
    Size batch[MOST_BATCH_AXES];                // from the last axis to the first
    Size step[MOST_OPERANDS][MOST_BATCH_AXES];  // the same
    Size count = 1;                             // of instances
    Size work = 0;                              // numbers that an instance consists of

    explicit Call(const Door& given) : door(given) {}  // the arrays are filled as far as they go

    const char* name() const { return door.entry->name; }

    bool take_input(int which, PyObject* given);
    bool take_output(int which, PyObject* given);
    bool make_output(int which);
    bool take_nothing(int which);
    bool take_core(int which, PyArrayObject* array);
    bool take_batch(int which, PyArrayObject* array);
    bool count_work();
    bool outputs_stand_alone();
    bool compute();
    bool run_all(double* scratch);
    PyObject* result();
};

bool refuse(const char* sentence, const char* name, int which) {
    PyErr_Format(PyExc_TypeError, sentence, name, which + 1);
    return false;
}

bool is_native_double(PyArrayObject* array) {
    return PyArray_TYPE(array) == NPY_DOUBLE && PyArray_ISNOTSWAPPED(array) &&
           PyArray_CHKFLAGS(array, NPY_ARRAY_ALIGNED);
}

bool Call::take_core(int which, PyArrayObject* array) {
    const Door::Core& core = door.core[which];
    const int first = PyArray_NDIM(array) - core.axes;
    if (first < 0) return refuse("%s: argument %d has too few axes", name(), which);
    const npy_intp* length = PyArray_DIMS(array) + first;
    const npy_intp* stride = PyArray_STRIDES(array) + first;
    Operand& operand = operands[which];
    operand.at = static_cast<double*>(PyArray_DATA(array));
    bool empty = false;  // strides of no entries mean nothing
    for (int axis = -first; axis < core.axes; ++axis) empty = empty || length[axis] == 0;
    Size contiguous = 1;
    for (int axis = core.axes - 1; axis >= 0; --axis) {
        Size& size = sizes[core.size[axis]];
        if (size < 0) size = length[axis];
        if (size != length[axis]) {
            PyErr_Format(PyExc_TypeError, "%s: argument %d has length %zd where %zd is needed",
                         name(), which + 1, Py_ssize_t(length[axis]), Py_ssize_t(size));
            return false;
        }
        const Size step = stride[axis] / Size(sizeof(double));
        operand.length[axis] = size;
        const bool free = axis == 0 && core.any_step;
        if (axis == 0) operand.lead = free && size > 1 ? step : contiguous;
        if (size > 1 && step != contiguous && !free && !empty)
            return refuse("%s: argument %d is not contiguous", name(), which);
        contiguous *= size;
    }
    return true;
}

bool Call::take_batch(int which, PyArrayObject* array) {
    const int axes = PyArray_NDIM(array) - door.core[which].axes;
    if (axes > MOST_BATCH_AXES) return refuse("%s: argument %d has too many axes", name(), which);
    for (; batch_axes < axes; ++batch_axes) {
        batch[batch_axes] = 1;
        for (int other = 0; other < which; ++other) step[other][batch_axes] = 0;
    }
    for (int axis = 0; axis < batch_axes; ++axis) {
        step[which][axis] = 0;
        if (axis >= axes) continue;
        const Size length = PyArray_DIMS(array)[axes - 1 - axis];
        if (length == 1) continue;
        if (batch[axis] == 1) batch[axis] = length;
        if (batch[axis] != length)
            return refuse("%s: argument %d does not broadcast with those before", name(), which);
        step[which][axis] = PyArray_STRIDES(array)[axes - 1 - axis] / Size(sizeof(double));
    }
    return true;
}

bool Call::take_nothing(int which) {
    operands[which] = {};
    for (int axis = 0; axis < batch_axes; ++axis) step[which][axis] = 0;
    return true;
}

bool Call::take_input(int which, PyObject* given) {
    arrays[which] = given;
    if (given == Py_None && door.core[which].optional) return take_nothing(which);
    if (!PyArray_Check(given)) {
        // One number for all entries of an axis that may have any step.
        const Door::Core& core = door.core[which];
        if (!PyFloat_Check(given) || core.axes > core.any_step)
            return refuse("%s: argument %d is not an array", name(), which);
        numbers[which] = PyFloat_AsDouble(given);
        take_nothing(which);
        operands[which].at = &numbers[which];
        return true;
    }
    auto* array = reinterpret_cast<PyArrayObject*>(given);
    if (!is_native_double(array))
        return refuse("%s: argument %d is not of aligned float64", name(), which);
    if (PyArray_NDIM(array) == 0 && door.core[which].axes == 1 && door.core[which].any_step) {
        take_nothing(which);
        operands[which].at = static_cast<double*>(PyArray_DATA(array));
        return true;
    }
    return take_core(which, array) && take_batch(which, array);
}

bool Call::take_output(int which, PyObject* given) {
    arrays[which] = given;
    if (!PyArray_Check(given)) return refuse("%s: argument %d is not an array", name(), which);
    auto* array = reinterpret_cast<PyArrayObject*>(given);
    if (!is_native_double(array) || !PyArray_ISWRITEABLE(array))
        return refuse("%s: argument %d is not of aligned, writeable float64", name(), which);
    if (!take_core(which, array)) return false;
    const int axes = PyArray_NDIM(array) - door.core[which].axes;
    const bool empty = PyArray_Size(given) == 0;
    bool fits = axes == batch_axes;
    for (int axis = 0; fits && axis < axes; ++axis) {
        const Size stride = PyArray_STRIDES(array)[axes - 1 - axis];
        fits = PyArray_DIMS(array)[axes - 1 - axis] == batch[axis];
        if (batch[axis] > 1 && stride == 0 && !empty) fits = false;
        step[which][axis] = stride / Size(sizeof(double));
    }
    return fits || refuse("%s: argument %d has not the batch of the others", name(), which);
}

bool Call::make_output(int which) {
    const Door::Core& core = door.core[which];
    arrays[which] = nullptr;
    if (batch_axes + core.axes == 0) {  // a number, made of this when it is known
        take_nothing(which);
        operands[which].at = &numbers[which];
        return true;
    }
    npy_intp shape[MOST_BATCH_AXES + MOST_CORE_AXES];
    for (int axis = 0; axis < batch_axes; ++axis) shape[axis] = batch[batch_axes - 1 - axis];
    for (int axis = 0; axis < core.axes; ++axis) shape[batch_axes + axis] = sizes[core.size[axis]];
    arrays[which] = PyArray_SimpleNew(batch_axes + core.axes, shape, NPY_DOUBLE);
    if (!arrays[which]) return false;
    auto* array = reinterpret_cast<PyArrayObject*>(arrays[which]);
    return take_core(which, array) && take_batch(which, array);
}

bool Call::count_work() {
    for (int axis = 0; axis < batch_axes; ++axis)
        if (__builtin_mul_overflow(count, batch[axis], &count)) {
            PyErr_Format(PyExc_MemoryError, "%s: the batch is too large", name());
            return false;
        }
    for (int which = 0; which < door.operands; ++which) {
        Size size = 1;
        for (int axis = 0; axis < door.core[which].axes; ++axis)
            if (__builtin_mul_overflow(size, operands[which].length[axis], &size)) size = MOST_WORK;
        if (__builtin_add_overflow(work, size, &work)) work = MOST_WORK;
    }
    return true;
}

// The first byte of an operand's memory and that after its last.
struct Extent {
    std::uintptr_t first, end;

    bool meets(Extent other) const { return first < other.end && other.first < end; }
};

Extent extent(PyObject* given) {
    auto* array = reinterpret_cast<PyArrayObject*>(given);
    const auto at = reinterpret_cast<std::uintptr_t>(PyArray_DATA(array));
    Extent found = {at, at + sizeof(double)};
    for (int axis = 0; axis < PyArray_NDIM(array); ++axis) {
        const Size length = PyArray_DIMS(array)[axis];
        if (length == 0) return {at, at};
        const Size reach = (length - 1) * PyArray_STRIDES(array)[axis];
        (reach < 0 ? found.first : found.end) += std::uintptr_t(reach);
    }
    return found;
}

// Outputs that were given must share no memory with any other array.
bool Call::outputs_stand_alone() {
    for (int out = door.inputs; out < door.operands; ++out) {
        const Extent its = extent(arrays[out]);
        for (int other = 0; other < out; ++other)
            if (PyArray_Check(arrays[other]) && its.meets(extent(arrays[other])))
                return refuse("%s: argument %d overlaps with another", name(), out);
    }
    return true;
}

double seconds() {
    std::timespec now;
    std::timespec_get(&now, TIME_UTC);
    return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

// Goes through the batch, its longest axis innermost. False if a signal ended it.
bool Call::run_all(double* scratch) {
    int inner = 0;
    for (int axis = 1; axis < batch_axes; ++axis)
        if (batch[axis] > batch[inner]) inner = axis;
    Size place[MOST_BATCH_AXES] = {};
    const Size length = batch_axes == 0 ? 1 : batch[inner];
    Size chunk = CHUNK_WORK / (work + 1) + 1;
    if (chunk > length) chunk = length;
    for (int which = 0; which < door.operands; ++which)
        operands[which].step = batch_axes == 0 ? 0 : step[which][inner];

    const bool large = work > SERIAL_WORK || count > SERIAL_WORK / (work + 1);
    PyThreadState* thread = large ? PyEval_SaveThread() : nullptr;
    double looked = large ? seconds() : 0.0;
    bool going = true;
    for (Size done = 0; going;) {
        const Size now = chunk < length - done ? chunk : length - done;
        door.entry->run({now, operands, scratch});
        done += now;
        for (int which = 0; which < door.operands; ++which)
            operands[which].at += now * operands[which].step;
        if (large && seconds() - looked > SIGNAL_INTERVAL) {
            PyEval_RestoreThread(thread);
            going = PyErr_CheckSignals() == 0;
            thread = PyEval_SaveThread();
            looked = seconds();
        }
        if (done < length) continue;
        done = 0;
        for (int which = 0; which < door.operands; ++which)
            operands[which].at -= length * operands[which].step;
        int axis = 0;
        for (; axis < batch_axes; ++axis) {
            if (axis == inner) continue;
            const bool over = ++place[axis] == batch[axis];
            if (over) place[axis] = 0;
            const Size steps = over ? 1 - batch[axis] : 1;
            for (int which = 0; which < door.operands; ++which)
                operands[which].at += steps * step[which][axis];
            if (!over) break;
        }
        if (axis == batch_axes) break;
    }
    if (large) PyEval_RestoreThread(thread);
    return going;
}

bool Call::compute() {
    if (count == 0) return true;
    const auto need = door.entry->scratch;
    const Size size = need ? need(operands) : 0;
    if (size == DO_NOT_FIT) {
        PyErr_Format(PyExc_TypeError, "%s: the arrays do not belong together", name());
        return false;
    }
    if (size <= SMALL_SCRATCH && size >= 0) {
        alignas(64) double small[SMALL_SCRATCH];
        return run_all(small);
    }
    void* block = nullptr;
    if (size > 0 && size <= PTRDIFF_MAX / Size(sizeof(double)))
        block = PyMem_Malloc(size_t(size) * sizeof(double));
    if (!block) {
        PyErr_NoMemory();
        return false;
    }
    const bool done = run_all(static_cast<double*>(block));
    PyMem_Free(block);
    return done;
}

// The new outputs: a number or an array, or a tuple of them.
PyObject* Call::result() {
    auto made = [&](int which) {
        if (arrays[which]) return arrays[which];
        PyArray_Descr* kind = PyArray_DescrFromType(NPY_DOUBLE);
        PyObject* number = PyArray_Scalar(&numbers[which], kind, nullptr);
        Py_DECREF(kind);
        return number;
    };
    const int count = door.operands - door.inputs;
    if (count == 1) return made(door.inputs);
    PyObject* tuple = PyTuple_New(count);
    for (int i = 0; tuple && i < count; ++i) PyTuple_SetItem(tuple, i, made(door.inputs + i));
    return tuple;
}

}  // namespace

Door read_layout(const Entry& entry) {
    Door door = {};
    door.entry = &entry;
    char names[MOST_SIZES] = {};
    Door::Core* core = nullptr;
    for (const char* at = entry.layout; *at; ++at) {
        if (*at == '(') {
            core = &door.core[door.operands++];
        } else if (*at == '*') {
            core->any_step = true;
        } else if (*at == '?') {
            core->optional = true;
        } else if (*at == '>') {
            door.inputs = door.operands;
        } else if (*at >= 'A' && *at != '_') {
            int size = 0;
            while (names[size] && names[size] != *at) ++size;
            names[size] = *at;
            core->size[core->axes++] = size;
        }
    }
    return door;
}

PyObject* call(const Door& door, PyObject* const* arguments, Py_ssize_t count) {
    if (count != door.inputs && count != door.operands)
        return PyErr_Format(PyExc_TypeError,
                            "%s takes %d arrays, or %d with its outputs, but was given %zd",
                            door.entry->name, door.inputs, door.operands, count);
    Call call(door);
    for (Size& size : call.sizes) size = -1;
    for (int which = 0; which < door.inputs; ++which)
        if (!call.take_input(which, arguments[which])) return nullptr;
    for (Size& size : call.sizes) size = size < 0 ? 0 : size;  // those of None alone
    if (count == door.operands) {
        for (int which = door.inputs; which < door.operands; ++which)
            if (!call.take_output(which, arguments[which])) return nullptr;
        if (!call.outputs_stand_alone() || !call.count_work() || !call.compute()) return nullptr;
        return Py_NewRef(Py_None);
    }
    int made = door.inputs;
    while (made < door.operands && call.make_output(made)) ++made;
    if (made == door.operands && call.count_work() && call.compute()) return call.result();
    for (int which = door.inputs; which < made; ++which) Py_XDECREF(call.arrays[which]);
    return nullptr;
}

}  // namespace coldq
