// Functions of distances, many at a time.
#pragma once

#include <cstddef>

namespace kernelweave {

// out = exp(factor * d) to about one unit in the last place; 0 where that is below the smallest normal number.
void exp_scaled(const double* d, double factor, double* out, std::size_t length);

// out[i, j] = sum_k (x[i, k] - z[k, j])^2 for x of shape (rows, columns) and z of shape (columns, width): the
// same sum in the same order for (i, j) and (j, i), so symmetric to the last bit.
void squared_distances(const double* x, const double* z, std::size_t rows, std::size_t columns, std::size_t width,
                       double* out);

}  // namespace kernelweave
