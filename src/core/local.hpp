// Packed kernels in which every sample has a weight of its own: entry (i, j) of kernel m times local_mi local_mj.
#pragma once

#include <cstddef>

namespace kernelweave {

// sum_m eta_m diag(local_m) K_m diag(local_m) as a full symmetric matrix, in the precision of the storage.
template <class T>
void combine_local(const T* packed, std::size_t n_kernels, std::size_t n, const double* eta, const double* local,
                   T* out, int n_threads);

// out[m] = (V local_m) K_m for V of shape (n_columns, n), all in double: the entries of products are not weighted.
template <class T>
void column_weighted_matvecs(const T* packed, std::size_t n_kernels, std::size_t n, const double* V,
                             std::size_t n_columns, const double* local, double* out, int n_threads);

}  // namespace kernelweave
