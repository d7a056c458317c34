// coldq._native: the entries of the CPU level that was chosen, as functions, and those of values.
#define COLDQ_IMPORTS_NUMPY
#include <cstdlib>
#include <cstring>

#include "arrays.hpp"
#include "cpu.hpp"
#include "values.hpp"

namespace coldq {
namespace {

constexpr int MOST_ENTRIES = 128;
Door doors[MOST_ENTRIES];
PyMethodDef methods[MOST_ENTRIES];

PyObject* enter(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
    return call(*static_cast<const Door*>(PyCapsule_GetPointer(self, nullptr)), arguments, count);
}

// COLDQ_CPU's level, or the richest that was built and that the machine executes; else an error.
const Level* choose() {
    const char* wanted = std::getenv("COLDQ_CPU");
    if (wanted && !*wanted) wanted = nullptr;
    const Level* best = nullptr;
    char choice[64] = "";
    for (const Level* const* next = levels; *next; ++next) {
        if (!machine_has((*next)->name)) continue;
        if (*choice) std::strcat(choice, " or ");
        std::strcat(choice, (*next)->name);
        if (!wanted || std::strcmp(wanted, (*next)->name) == 0) best = *next;
    }
    if (best) return best;
    PyObject* sentence =
        *choice
            ? PyUnicode_FromFormat(
                  "COLDQ_CPU must be %s, the levels that were built and that this processor "
                  "executes, but is '%s'",
                  choice, wanted)
            : PyUnicode_FromFormat("coldq needs a processor of level %s or above", levels[0]->name);
    PyObject* name = PyUnicode_FromString("coldq._native");
    if (sentence && name) PyErr_SetImportError(sentence, name, nullptr);
    Py_XDECREF(sentence);
    Py_XDECREF(name);
    return nullptr;
}

bool add_entry(PyObject* module, const Entry& entry, int number) {
    doors[number] = read_layout(entry);
    // CPython keeps functions of any signature as PyCFunction.
    auto function = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&enter));
    methods[number] = {entry.name, function, METH_FASTCALL, entry.layout};
    PyObject* door = PyCapsule_New(&doors[number], nullptr, nullptr);
    PyObject* made = door ? PyCFunction_NewEx(&methods[number], door, nullptr) : nullptr;
    const bool added = made && PyModule_AddObjectRef(module, entry.name, made) == 0;
    Py_XDECREF(made);
    Py_XDECREF(door);
    return added;
}

// The names of those that were built and that this machine executes.
bool add_levels(PyObject* module) {
    PyObject* names = PyList_New(0);
    bool added = names != nullptr;
    for (const Level* const* next = levels; added && *next; ++next) {
        if (!machine_has((*next)->name)) continue;
        PyObject* name = PyUnicode_FromString((*next)->name);
        added = name && PyList_Append(names, name) == 0;
        Py_XDECREF(name);
    }
    added = added && PyModule_AddObjectRef(module, "levels", names) == 0;
    Py_XDECREF(names);
    return added;
}

bool fill(PyObject* module) {
    const Level* level = choose();
    if (!level || PyModule_AddStringConstant(module, "level", level->name) < 0) return false;
    if (!add_levels(module) || PyModule_AddFunctions(module, value_methods) < 0) return false;
    int number = 0;
    for (const Entry* const* table = level->tables; *table; ++table)
        for (const Entry* entry = *table; entry->name; ++entry)
            if (!add_entry(module, *entry, number++)) return false;
    return true;
}

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    "coldq._native",
    "The compiled core: functions of float64 arrays that broadcast over leading axes.",
    -1,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
};

}  // namespace
}  // namespace coldq

PyMODINIT_FUNC PyInit__native() {
    if (PyArray_ImportNumPyAPI() < 0) return nullptr;
    PyObject* module = PyModule_Create(&coldq::definition);
    if (module && coldq::fill(module)) return module;
    Py_XDECREF(module);
    return nullptr;
}
