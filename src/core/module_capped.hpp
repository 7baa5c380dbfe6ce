#pragma once

#include <nanobind/nanobind.h>

// Adds the active sets of the capped simplex to the module.
void bind_capped(nanobind::module_& m);
