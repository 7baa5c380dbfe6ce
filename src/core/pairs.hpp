// Kernels of pairs of rows, computed when they are needed and never stored: a pass over all pairs.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kernelweave {

// What kernels are functions of: the squared distance t = ||x - z||^2 of two rows, or their inner product t = x'z.
enum class Argument : std::int64_t { kDistance = 0, kInner = 1 };

// Radial functions are 1 at distance zero. They are computed and added up as phi - 1, which keeps its digits where wide
// kernels are all but constant; what the ones add to a sum is added at its end, from coefficients in double precision.
enum class Shape : std::int64_t {
    kExp = 0,          // exp(-gamma t)
    kExpRoot = 1,      // exp(-sqrt(gamma t))
    kInverse = 2,      // 1 / (1 + gamma t)
    kInverseRoot = 3,  // 1 / (1 + sqrt(gamma t))
    kPower = 4,        // (gamma t + offset)^degree
};

// `count` kernels of one argument.
struct Functions {
    Argument argument;
    std::size_t count;
    const std::int64_t *shape, *degree;
    const double *gamma, *offset;
};

// `count` rows of `width` columns, one after the other.
template <class T>
struct RowSet {
    const T* rows;
    std::size_t count, width;
};

// out[a, i, j] = k_a(left_i, right_j)
template <class T>
void kernel_values(RowSet<T> left, RowSet<T> right, const Functions& kernels, T* out, int n_threads);

// out[i, j] += sum_a weights_a k_a(left_i, right_j)
template <class T>
void add_weighted_values(RowSet<T> left, RowSet<T> right, const Functions& kernels, const double* weights, T* out,
                         int n_threads);

// The same for left = right, of which the lower triangle is computed (and entries near the diagonal above it).
template <class T>
void add_weighted_gram(RowSet<T> rows, const Functions& kernels, const double* weights, T* out, int n_threads);

// out[a, c, i] += sum_j k_a(left_i, right_j) coef[c, j]
template <class T>
void add_products(RowSet<T> left, RowSet<T> right, const double* coef, std::size_t n_columns, const Functions& kernels,
                  double* out, int n_threads);

// out[c, i] += sum_a weights_a sum_j k_a(left_i, right_j) coef[c, j]
template <class T>
void add_weighted_products(RowSet<T> left, RowSet<T> right, const double* coef, std::size_t n_columns,
                           const Functions& kernels, const double* weights, double* out, int n_threads);

// out[a] = 1/2 sum_c sum_ij coef[c, i] coef[c, j] k_a(rows_i, rows_j)
template <class T>
void pair_energies(RowSet<T> rows, const double* coef, std::size_t n_columns, const Functions& kernels, double* out,
                   int n_threads);

}  // namespace kernelweave
