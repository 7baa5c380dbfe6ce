// What the bindings share: arrays as they come from Python, and the complaint when they do not fit.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <cstdint>
#include <optional>
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

// An argument that is taken as it is or not at all: of a converted output nothing would be seen.
inline auto array(const char* name) { return nb::arg(name).noconvert(); }
inline auto threads() { return nb::arg("n_threads") = 1; }

// Which entries of an array are asked for; without it, all.
using Needed = std::optional<Input<std::uint8_t, 2>>;

inline const std::uint8_t* marks(const Needed& needed, const Input<double, 2>& V) {
    if (!needed) return nullptr;
    require(needed->shape(0) == V.shape(0) && needed->shape(1) == V.shape(1), "needed must have the shape of V");
    return needed->data();
}
