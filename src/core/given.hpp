// Passes over many matrices of the user at once: threads share them without going back to the interpreter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "admit.hpp"

namespace kernelweave {

using Matrices = std::vector<const double*>;  // each n x n, row by row

// out[m] = diagonal of K_m.
void diagonals(const Matrices& K, std::size_t n, double* out, int n_threads);

// out[m] = mean of the chosen rows of K_m, minus half the mean of its chosen entries.
void reference_means(const Matrices& K, std::size_t n, const std::size_t* chosen, std::size_t n_chosen, double* out,
                     int n_threads);

// Pack and inspect every lower triangle: roots and shifts have one row per matrix, packed one triangle; probes are two.
// The lower triangle of `even`, unless null, is set to the sum of all matrices less their shifts, before rounding.
template <class T>
std::vector<AdmitReport> admit_all(const Matrices& K, std::size_t n, const double* roots, const double* probes,
                                   const double* shifts, T* packed, double* even, int n_threads);

// out_ij = sum_m eta_m K_m,ij - shift_i - shift_j, from the lower triangles alone.
template <class T>
void combine_all(const Matrices& K, std::size_t n, const double* eta, const double* shift, T* out, int n_threads);

// `combine_all`, and inspect the lower triangles, in one reading.
template <class T>
std::vector<AdmitReport> admit_and_combine(const Matrices& K, std::size_t n, const double* roots, const double* probes,
                                       const double* eta, const double* shift, T* out, int n_threads);

// The rows and columns `chosen`, in ascending order, of every matrix as packed triangles, less shift_i + shift_j of
// theirs; shifts have one row of n_chosen entries per matrix. Returns whether all are finite.
template <class T>
bool take_all(const Matrices& K, std::size_t n, const std::size_t* chosen, std::size_t n_chosen, const double* shifts,
              T* packed, int n_threads);

// out[m] = 1/2 tr(V K_m V') for V of shape (n_columns, n), from the lower triangles alone; rows of K_m where V is zero
// are not read.
void energies_all(const Matrices& K, std::size_t n, const double* V, std::size_t n_columns, double* out,
                  int n_threads);

// out = V (sum_m eta_m K_m) for V of shape (n_columns, n), from the lower triangles alone; the sum is never held.
void image_all(const Matrices& K, std::size_t n, const double* eta, const double* V, std::size_t n_columns,
               double* out, int n_threads);

// out[m] = V K_m for V of shape (n_columns, n), from the lower triangles alone. With `where`, of the shape of V, only
// entries it marks are worked out, the others are 0; V has to be 0 there.
void images_all(const Matrices& K, std::size_t n, const double* V, std::size_t n_columns, const std::uint8_t* where,
                double* out, int n_threads);

}  // namespace kernelweave
