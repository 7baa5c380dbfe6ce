#include "local.hpp"

#include <algorithm>
#include <vector>

#include "packed.hpp"
#include "parallel.hpp"
#include "row_loops.hpp"

namespace kernelweave {
namespace {

template <class T>
inline void add_weighted(T* acc, const T* row, const T* local, T weight, std::size_t length) {
    for (std::size_t j = 0; j < length; ++j) acc[j] += weight * local[j] * row[j];
}

KERNELWEAVE_CLONES void add_weighted_row(float* acc, const float* row, const float* local, float weight,
                                         std::size_t length) {
    add_weighted(acc, row, local, weight, length);
}
KERNELWEAVE_CLONES void add_weighted_row(double* acc, const double* row, const double* local, double weight,
                                         std::size_t length) {
    add_weighted(acc, row, local, weight, length);
}

}  // namespace

template <class T>
void combine_local(const T* packed, std::size_t n_kernels, std::size_t n, const double* eta, const double* local,
                   T* out, int n_threads) {
    const std::size_t stride = triangle(n);
    const std::vector<T> weights(local, local + n_kernels * n);  // in the precision of the storage
    constexpr std::size_t kRows = 8;  // rows per task: small enough to balance the triangle's growing rows
    const std::size_t tasks = (n + kRows - 1) / kRows;
    parallel_for(tasks, n_threads, [&](std::size_t task) {
        T acc[kChunk];
        const std::size_t block = tasks - 1 - task;  // longest rows first
        for (std::size_t i = block * kRows; i < std::min(n, (block + 1) * kRows); ++i) {
            for (std::size_t start = 0; start <= i; start += kChunk) {
                const std::size_t length = std::min(kChunk, i + 1 - start);
                std::fill(acc, acc + length, T{0});
                for (std::size_t m = 0; m < n_kernels; ++m) {
                    const double own = eta[m] * local[m * n + i];
                    if (own == 0.0) continue;  // the sample does without this kernel
                    add_weighted_row(acc, packed + m * stride + triangle(i) + start, weights.data() + m * n + start,
                                     static_cast<T>(own), length);
                }
                std::copy(acc, acc + length, out + i * n + start);
            }
        }
    });
    mirror(out, n, n_threads);
}

template <class T>
void column_weighted_matvecs(const T* packed, std::size_t n_kernels, std::size_t n, const double* V,
                             std::size_t n_columns, const double* local, double* out, int n_threads) {
    const std::size_t stride = triangle(n);
    parallel_for(n_kernels, n_threads, [&](std::size_t m) {
        std::vector<double> v(n);
        for (std::size_t c = 0; c < n_columns; ++c) {
            for (std::size_t i = 0; i < n; ++i) v[i] = local[m * n + i] * V[c * n + i];
            double* product = out + (m * n_columns + c) * n;
            std::fill(product, product + n, 0.0);
            const T* row = packed + m * stride;
            for (std::size_t i = 0; i < n; row += ++i) {
                const double below = dot_and_add_row(Row<T>{row, row}, v.data(), v[i], product, i);
                product[i] += below + static_cast<double>(row[i]) * v[i];
            }
        }
    });
}

template void combine_local<float>(const float*, std::size_t, std::size_t, const double*, const double*, float*, int);
template void combine_local<double>(const double*, std::size_t, std::size_t, const double*, const double*, double*,
                                    int);
template void column_weighted_matvecs<float>(const float*, std::size_t, std::size_t, const double*, std::size_t,
                                             const double*, double*, int);
template void column_weighted_matvecs<double>(const double*, std::size_t, std::size_t, const double*, std::size_t,
                                              const double*, double*, int);

}  // namespace kernelweave
