/* libFuzzer as a Python module: run(arguments, check) calls check(data) for every input and does not return. An exception
   of `check` is printed, and libFuzzer then writes the input to a file. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>

extern int LLVMFuzzerRunDriver(int *argc, char ***argv, int (*one_input)(const uint8_t *data, size_t size));

static PyObject *check;

static int one_input(const uint8_t *data, size_t size) {
    PyObject *input = PyBytes_FromStringAndSize((const char *)data, (Py_ssize_t)size);
    PyObject *result = input == NULL ? NULL : PyObject_CallOneArg(check, input);
    if (result == NULL) {
        PyErr_Print();
        abort();
    }
    Py_DECREF(result);
    Py_DECREF(input);
    return 0;
}

static PyObject *run(PyObject *module, PyObject *passed) {
    PyObject *list;
    if (!PyArg_ParseTuple(passed, "O!O", &PyList_Type, &list, &check))
        return NULL;
    int count = (int)PyList_GET_SIZE(list);
    char **arguments = calloc((size_t)count + 1, sizeof *arguments);
    if (arguments == NULL)
        return PyErr_NoMemory();
    for (int at = 0; at < count; at++) {
        arguments[at] = (char *)PyUnicode_AsUTF8(PyList_GET_ITEM(list, at));
        if (arguments[at] == NULL)
            return NULL;
    }
    Py_INCREF(list);
    Py_INCREF(check);
    return PyLong_FromLong(LLVMFuzzerRunDriver(&count, &arguments, one_input));
}

static PyMethodDef methods[] = {{"run", run, METH_VARARGS, "run(arguments, check)"}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_libfuzzer", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__libfuzzer(void) { return PyModule_Create(&definition); }
