// The step of a product with a packed symmetric matrix, for every file that walks its rows.
#pragma once

#include <cstddef>

#include "dispatch.hpp"

namespace kernelweave {
namespace {

// One read of the row serves both triangles: returns row . v and adds scale * row to out.
template <class T>
inline double dot_and_add(const T* row, const double* v, double scale, double* out, std::size_t length) {
    double sum = 0.0;
    for (std::size_t j = 0; j < length; ++j) {
        const double k = static_cast<double>(row[j]);
        sum += k * v[j];
        out[j] += scale * k;
    }
    return sum;
}

KERNELWEAVE_CLONES double dot_and_add_row(const float* row, const double* v, double scale, double* out,
                                          std::size_t length) {
    return dot_and_add(row, v, scale, out, length);
}
KERNELWEAVE_CLONES double dot_and_add_row(const double* row, const double* v, double scale, double* out,
                                          std::size_t length) {
    return dot_and_add(row, v, scale, out, length);
}

}  // namespace
}  // namespace kernelweave
