// Rows of several kernels of one block of features, made from one matrix of inner products.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kernelweave {

// Kernel k is factor_k * inner (kind 0), factor_k * (gamma_k inner + offset_k)^degree_k (kind 1) or
// factor_k * exp(-gamma_k distance) (kind 2).
struct KernelFamily {
    std::size_t count;
    const std::int64_t *kind, *degree;
    const double *gamma, *offset, *factor;
};

// Inner products of centred float32 rows: x'z = products + row_part_i + column_part_l, and
// ||x - z||^2 = row_norm_i + column_norm_l - 2 products.
struct Products {
    std::size_t rows, columns;
    const float* products;  // (rows, columns)
    const float *row_part, *column_part, *row_norm, *column_norm;
};

// out[k, i, l] = kernel_k(i, l); `stride` is the distance between kernels, `row_stride` that between rows of out.
void kernel_block(const Products& block, const KernelFamily& family, float* out, std::size_t stride,
                  std::size_t row_stride);

}  // namespace kernelweave
