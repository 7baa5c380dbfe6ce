// Passes over many matrices of the user at once: threads share them without going back to the interpreter. Only lower
// triangles are read, but for the check.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kernelweave {

using Matrices = std::vector<const double*>;  // each n x n, row by row

// What one reading of a matrix shows of it.
struct GramReport {
    bool minors;       // |K_ij| <= roots_i roots_j for all entries; false where K_ij is NaN
    double asymmetry;  // left'K right - right'K left: 0 up to rounding if K = K', NaN if K has one
};

// Check every matrix; roots have one row per matrix, probes are the two rows left and right.
std::vector<GramReport> check_matrices(const Matrices& K, std::size_t n, const double* roots, const double* probes,
                                       int n_threads);

// out[m] = diagonal of K_m.
void diagonals(const Matrices& K, std::size_t n, double* out, int n_threads);

// out[m] = mean of the chosen rows of K_m, minus half the mean of its chosen entries.
void reference_means(const Matrices& K, std::size_t n, const std::size_t* chosen, std::size_t n_chosen, double* out,
                     int n_threads);

// packed[m] = lower triangle of K_m,ij - shift_i - shift_j, rounded to T; shifts have one row per matrix.
template <class T>
void pack_matrices(const Matrices& K, std::size_t n, const double* shifts, T* packed, int n_threads);

// out_ij = sum_m eta_m K_m,ij - shift_i - shift_j.
template <class T>
void combine_matrices(const Matrices& K, std::size_t n, const double* eta, const double* shift, T* out, int n_threads);

// The rows and columns `chosen`, in ascending order, of every matrix as packed triangles, less shift_i + shift_j of
// theirs; shifts have one row of n_chosen entries per matrix.
template <class T>
void gather_matrices(const Matrices& K, std::size_t n, const std::size_t* chosen, std::size_t n_chosen,
                     const double* shifts, T* packed, int n_threads);

// out[m] = 1/2 tr(V K_m V') for V of shape (n_columns, n); rows of K_m where V is zero are not read.
void energies_of_matrices(const Matrices& K, std::size_t n, const double* V, std::size_t n_columns, double* out,
                          int n_threads);

// out = V (sum_m eta_m K_m) for V of shape (n_columns, n); the sum is never held.
void matvec_of_matrices(const Matrices& K, std::size_t n, const double* eta, const double* V, std::size_t n_columns,
                        double* out, int n_threads);

// out[m] = V K_m for V of shape (n_columns, n). With `needed`, of the shape of V, only entries it marks are computed,
// the others are 0; V has to be 0 there.
void matvecs_of_matrices(const Matrices& K, std::size_t n, const double* V, std::size_t n_columns,
                         const std::uint8_t* needed, double* out, int n_threads);

}  // namespace kernelweave
