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

// out = V (sum_m eta_m K_m) for V of shape (n_columns, n), from the lower triangles alone; the sum is never held.
// place(i) is where row i begins. Sums are in double, and their digits do not depend on the number of threads.
template <class T, class Place>
void weighted_image(const WeightedSum<T, double>& sum, std::size_t n, const Place& place, const double* V,
                    std::size_t n_columns, double* out, int n_threads) {
    constexpr std::size_t kRows = 8;     // rows at a time: small enough to balance the triangle's growing rows
    constexpr std::size_t kShares = 16;  // partial sums, always as many
    const std::size_t size = n_columns * n;
    std::vector<double> parts(kShares * size, 0.0);
    parallel_for(kShares, n_threads, [&](std::size_t share) {
        double acc[kChunk];
        double* part = parts.data() + share * size;
        for (std::size_t block = share * kRows; block < n; block += kShares * kRows) {
            for (std::size_t i = block; i < std::min(n, block + kRows); ++i) {
                for (std::size_t start = 0; start <= i; start += kChunk) {
                    const std::size_t length = std::min(kChunk, i + 1 - start);
                    std::fill(acc, acc + length, 0.0);
                    sum.add(acc, place(i) + start, length);
                    const bool at_diagonal = start + length == i + 1;
                    const std::size_t below = at_diagonal ? length - 1 : length;
                    for (std::size_t c = 0; c < n_columns; ++c) {
                        const double* v = V + c * n;
                        double* image = part + c * n;
                        image[i] += dot_and_add_row(acc, v + start, v[i], image + start, below);
                        if (at_diagonal) image[i] += acc[below] * v[i];
                    }
                }
            }
        }
    });
    std::fill(out, out + size, 0.0);
    for (std::size_t share = 0; share < kShares; ++share)
        for (std::size_t j = 0; j < size; ++j) out[j] += parts[share * size + j];
}

}  // namespace
}  // namespace kernelweave
