// api.h - Python.h as every file here must see it: the limited API of 3.10, so that one binary
// serves all later versions. Nothing else includes Python.h.
#pragma once

#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030A0000
#endif
#include <Python.h>  // NOLINT: must come before the standard headers
