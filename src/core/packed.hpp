// Symmetric matrices held as their lower triangle, row by row: entry (i, j), j <= i, at i(i+1)/2 + j.
#pragma once

#include <cstddef>

namespace kernelweave {

inline std::size_t triangle(std::size_t n) { return n * (n + 1) / 2; }

// Doubly centre K when asked (in double), round to T, keep the lower triangle; means receives K's row means.
// Only the lower triangle of K is read. Returns the largest change of an entry by rounding.
template <class T>
double pack(const double* K, std::size_t n, bool centre, T* out, double* means);

// K(eta) = sum_m eta_m K_m as a full symmetric matrix, in the precision of the storage.
template <class T>
void combine(const T* packed, std::size_t n_kernels, std::size_t n, const double* eta, T* out, int n_threads);

// out[m, :, c] = K_m V[:, c] for V of shape (n, n_columns), all in double.
template <class T>
void images(const T* packed, std::size_t n_kernels, std::size_t n, const double* V, std::size_t n_columns,
            double* out, int n_threads);

// out[m] = 1/2 tr(V' K_m V), all in double; rows of V that are zero are not read.
template <class T>
void energies(const T* packed, std::size_t n_kernels, std::size_t n, const double* V, std::size_t n_columns,
              double* out, int n_threads);

}  // namespace kernelweave
