// Functions of distances, many at a time.
#pragma once

#include <cstddef>

namespace kernelweave {

// out = exp(factor * d) to about one unit in the last place; 0 where that is below the smallest normal number.
void exp_scaled(const double* d, double factor, double* out, std::size_t length);

// Many kernels factor_m exp(-rate_m d) of the same distances, without ever writing one down: rows [start, stop) of d,
// whose rows are `stride` apart. Each becomes its shifted, rounded triangle as `pack` makes it ...
template <class T>
void exp_pack(const double* d, std::size_t stride, std::size_t start, std::size_t stop, double rate, double factor,
              const double* shift, T* out);

// ... or its share in K V as `add_matvecs` adds it.
void exp_add_matvecs(const double* d, std::size_t stride, std::size_t start, std::size_t stop, double rate, double factor,
                const double* V, std::size_t n_columns, std::size_t n, double* out);

// ... or is added, weighted, to the sum of them all: out += sum_k weights_k exp(-rates_k d) in every entry.
void exp_sum(const double* d, std::size_t length, const double* rates, const double* weights, std::size_t n_kernels,
             double* out);

// out[i, j] = sum_k (x[i, k] - z[k, j])^2 for x of shape (rows, columns) and z of shape (columns, width): the
// same sum in the same order for (i, j) and (j, i), so symmetric to the last bit.
void squared_distances(const double* x, const double* z, std::size_t rows, std::size_t columns, std::size_t width,
                       double* out);

}  // namespace kernelweave
