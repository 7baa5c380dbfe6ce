// Compiled without reassociation, as radial.cpp: rounding by adding a large number relies on it.
#include "rows.hpp"

#include <cstring>

#include "dispatch.hpp"

namespace kernelweave {
namespace {

constexpr float kShift = 12582912.0f;  // 1.5 * 2^23: x + kShift has round(x) in its last bits
constexpr float kLog2e = 1.44269504f;
constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
constexpr float kLowest = -87.0f;

// exp(x) for x <= 0 to about 1e-7, 0 below the smallest normal number.
inline float exp_one(float x) {
    const float clipped = x < kLowest ? kLowest : x;
    const float shifted = clipped * kLog2e + kShift;
    const float k = shifted - kShift;
    const float r = (clipped - k * kLn2High) - k * kLn2Low;
    float p = 1.9875691e-4f;
    p = p * r + 1.3981999e-3f;
    p = p * r + 8.3334519e-3f;
    p = p * r + 4.1665796e-2f;
    p = p * r + 1.6666665e-1f;
    p = p * r + 5.0000001e-1f;
    p = 1.0f + (r + r * r * p);
    std::uint32_t bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    bits = (bits << 23) + (std::uint32_t{127} << 23);
    float power;
    std::memcpy(&power, &bits, sizeof power);
    return x < kLowest ? 0.0f : p * power;
}

KERNELWEAVE_CLONES void linear(const float* g, float row, const float* column, float factor, float* out,
                               std::size_t n) {
    for (std::size_t l = 0; l < n; ++l) out[l] = factor * (g[l] + row + column[l]);
}

KERNELWEAVE_CLONES void polynomial(const float* g, float row, const float* column, float gamma, float offset,
                                   std::int64_t degree, float factor, float* out, std::size_t n) {
    for (std::size_t l = 0; l < n; ++l) {
        const float base = gamma * (g[l] + row + column[l]) + offset;
        float value = factor * base;
        for (std::int64_t k = 1; k < degree; ++k) value *= base;
        out[l] = value;
    }
}

KERNELWEAVE_CLONES void square(const float* g, float row, const float* column, float gamma, float offset,
                               float factor, float* out, std::size_t n) {
    for (std::size_t l = 0; l < n; ++l) {
        const float base = gamma * (g[l] + row + column[l]) + offset;
        out[l] = factor * base * base;
    }
}

KERNELWEAVE_CLONES void cube(const float* g, float row, const float* column, float gamma, float offset, float factor,
                             float* out, std::size_t n) {
    for (std::size_t l = 0; l < n; ++l) {
        const float base = gamma * (g[l] + row + column[l]) + offset;
        out[l] = factor * base * base * base;
    }
}

KERNELWEAVE_CLONES void gaussian(const float* g, float row, const float* column, float rate, float factor, float* out,
                                 std::size_t n) {
    for (std::size_t l = 0; l < n; ++l) {
        const float distance = row + column[l] - 2.0f * g[l];
        out[l] = factor * exp_one(-rate * (distance > 0.0f ? distance : 0.0f));
    }
}

void one_kernel(const Products& block, const KernelFamily& family, std::size_t k, std::size_t i, std::size_t first,
                std::size_t n, float* out) {
    const float* g = block.products + i * block.columns + first;
    const float gamma = static_cast<float>(family.gamma[k]), offset = static_cast<float>(family.offset[k]);
    const float factor = static_cast<float>(family.factor[k]);
    if (family.kind[k] == 2)
        gaussian(g, block.row_norm[i], block.column_norm + first, gamma, factor, out, n);
    else if (family.kind[k] == 0)
        linear(g, block.row_part[i], block.column_part + first, factor, out, n);
    else if (family.degree[k] == 2)
        square(g, block.row_part[i], block.column_part + first, gamma, offset, factor, out, n);
    else if (family.degree[k] == 3)
        cube(g, block.row_part[i], block.column_part + first, gamma, offset, factor, out, n);
    else
        polynomial(g, block.row_part[i], block.column_part + first, gamma, offset, family.degree[k], factor, out, n);
}

}  // namespace

void kernel_block(const Products& block, const KernelFamily& family, float* out, std::size_t stride,
                  std::size_t row_stride) {
    for (std::size_t i = 0; i < block.rows; ++i)
        for (std::size_t k = 0; k < family.count; ++k)
            one_kernel(block, family, k, i, 0, block.columns, out + k * stride + i * row_stride);
}

}  // namespace kernelweave
