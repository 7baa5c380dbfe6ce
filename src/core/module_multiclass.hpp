#pragma once

#include <nanobind/nanobind.h>

// Adds the loops of the multiclass p-norm problem to the module.
void bind_multiclass(nanobind::module_& m);
