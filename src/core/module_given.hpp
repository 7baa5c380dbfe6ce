#pragma once

#include <nanobind/nanobind.h>

// Adds the passes over matrices of the user to the module.
void bind_given(nanobind::module_& m);
