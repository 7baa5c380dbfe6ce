// What the bindings share: arrays as they come from Python, and the complaint when they do not fit.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <stdexcept>

namespace nb = nanobind;
namespace kernelweave {}
namespace kw = kernelweave;

template <class T, int Dim>
using Input = nb::ndarray<const T, nb::ndim<Dim>, nb::c_contig, nb::device::cpu>;
template <class T, int Dim>
using Output = nb::ndarray<T, nb::ndim<Dim>, nb::c_contig, nb::device::cpu>;

inline void require(bool holds, const char* message) {
    if (!holds) throw std::invalid_argument(message);
}
