// The step of a weighted sum of matrices, for every file that walks their rows.
#pragma once

#include <cstddef>

#include "dispatch.hpp"

namespace kernelweave {
namespace {

constexpr std::size_t kChunk = 1024;  // entries of one accumulator: well within a 32 KB first-level cache
constexpr std::size_t kTogether = 4;

// Four kernels at a time: the accumulator is read and written once for all of them.
template <class T>
inline void add_scaled(T* acc, const T* const* rows, const T* weights, std::size_t length) {
    const T *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
    const T u = weights[0], v = weights[1], w = weights[2], x = weights[3];
    for (std::size_t j = 0; j < length; ++j) acc[j] += (u * a[j] + v * b[j]) + (w * c[j] + x * d[j]);
}

KERNELWEAVE_CLONES void add_scaled_rows(float* acc, const float* const* rows, const float* weights,
                                        std::size_t length) {
    add_scaled(acc, rows, weights, length);
}
KERNELWEAVE_CLONES void add_scaled_rows(double* acc, const double* const* rows, const double* weights,
                                        std::size_t length) {
    add_scaled(acc, rows, weights, length);
}

}  // namespace
}  // namespace kernelweave
