// Symmetric matrices held as their lower triangle, row by row: entry (i, j), j <= i, at i(i+1)/2 + j.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kernelweave {

inline std::size_t triangle(std::size_t n) { return n * (n + 1) / 2; }

// Rows [start, stop) of the lower triangle of K, each entry K_ij - shift_i - shift_j rounded to T; `K` points to row
// `start`, whose rows are `stride` apart.
template <class T>
void pack(const double* K, std::size_t stride, std::size_t start, std::size_t stop, const double* shift, T* out);

// out = sum_m eta_m K_m as a full symmetric matrix, added up in double and rounded to the precision of the storage.
template <class T>
void combine(const T* packed, std::size_t n_kernels, std::size_t n, const double* eta, T* out, int n_threads);

// The rows and columns `chosen`, in ascending order, of every matrix, which are `stride` apart.
template <class T>
void gather(const T* packed, std::size_t n_kernels, std::size_t stride, const std::size_t* chosen, std::size_t n_chosen,
            T* out, int n_threads);

constexpr std::size_t kMirrored = 32;  // rows that are mirrored together: two lines of the cache, or four, of a column

// Copy the rows [start, stop) of the lower triangle of K, at most kMirrored, to the columns of the upper one.
template <class T>
void mirror_rows(T* K, std::size_t n, std::size_t start, std::size_t stop);

// Copy the lower triangle of the n x n matrix K to its upper one.
template <class T>
void mirror(T* K, std::size_t n, int n_threads);

// Coefficients V have one row of n entries per column of theirs, here and wherever K is multiplied by them.

// out = V K(eta) and sizes = |V| (sum_m |eta_m K_m|), in double.
void matvec_and_size(const float* packed, std::size_t n_kernels, std::size_t n, const double* eta, const double* V,
                     std::size_t n_columns, double* out, double* sizes, int n_threads);

// out[m] = V K_m, all in double. With `needed`, of the shape of V, only entries it marks are computed, the others are
// 0; V has to be 0 there.
template <class T>
void matvecs(const T* packed, std::size_t n_kernels, std::size_t n, const double* V, std::size_t n_columns,
             const std::uint8_t* needed, double* out, int n_threads);

// out[m] = 1/2 tr(V K_m V'), all in double; rows of K_m where V is zero are not read.
template <class T>
void energies(const T* packed, std::size_t n_kernels, std::size_t n, const double* V, std::size_t n_columns,
              double* out, int n_threads);

}  // namespace kernelweave
