// The product of a weighted sum of symmetric matrices with a few vectors, for every way the matrices are held.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "add_scaled.hpp"
#include "dot_and_add.hpp"
#include "parallel.hpp"

namespace kernelweave {
namespace {

// Add what entries [start, start + length) of row i of a symmetric matrix, up to its diagonal, have to do with V K.
inline void add_row(const double* row, std::size_t i, std::size_t start, std::size_t length, const double* V,
                    std::size_t n_columns, std::size_t n, double* out) {
    const bool at_diagonal = start + length == i + 1;
    const std::size_t below = at_diagonal ? length - 1 : length;
    for (std::size_t c = 0; c < n_columns; ++c) {
        const double* v = V + c * n;
        double* image = out + c * n;
        image[i] += dot_and_add_row(row, v + start, v[i], image + start, below);
        if (at_diagonal) image[i] += row[below] * v[i];
    }
}

// Walk the lower triangle in chunks of rows, visit(share, i, start, length): the rows of a share one after the other,
// shares side by side. There are always as many, so that digits do not depend on the number of threads.
constexpr std::size_t kShares = 16;

template <class Visit>
void walk_triangle(std::size_t n, int n_threads, const Visit& visit) {
    constexpr std::size_t kRows = 8;  // rows at a time: small enough to balance the triangle's growing rows
    parallel_for(kShares, n_threads, [&](std::size_t share) {
        for (std::size_t block = share * kRows; block < n; block += kShares * kRows)
            for (std::size_t i = block; i < std::min(n, block + kRows); ++i)
                for (std::size_t start = 0; start <= i; start += kChunk)
                    visit(share, i, start, std::min(kChunk, i + 1 - start));
    });
}

inline void add_up(const std::vector<double>& parts, std::size_t size, double* out) {
    std::fill(out, out + size, 0.0);
    for (std::size_t share = 0; share < kShares; ++share)
        for (std::size_t j = 0; j < size; ++j) out[j] += parts[share * size + j];
}

// out = V (sum_m eta_m K_m) for V of shape (n_columns, n), from the lower triangles alone; the sum is never held.
// place(i) is where row i begins.
template <class T, class Place>
void weighted_image(const WeightedSum<T>& sum, std::size_t n, const Place& place, const double* V,
                    std::size_t n_columns, double* out, int n_threads) {
    const std::size_t size = n_columns * n;
    std::vector<double> parts(kShares * size, 0.0);
    walk_triangle(n, n_threads, [&](std::size_t share, std::size_t i, std::size_t start, std::size_t length) {
        double acc[kChunk];
        std::fill(acc, acc + length, 0.0);
        sum.add(acc, place(i) + start, length, place(i) + (start + length <= i ? start + length : 0));
        add_row(acc, i, start, length, V, n_columns, n, parts.data() + share * size);
    });
    add_up(parts, size, out);
}

}  // namespace
}  // namespace kernelweave
