// Compiled without reassociation: rounding to whole numbers below works by adding a large number and relies on it.
#include "radial.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "dispatch.hpp"
#include "packed.hpp"

namespace kernelweave {
namespace {

constexpr double kShift = 6755399441055744.0;  // 1.5 * 2^52: x + kShift has round(x) in its last bits
constexpr double kLog2e = 1.4426950408889634;
constexpr double kLn2High = 0.6931471803691238;  // ends in zeros, so that its products are exact
constexpr double kLn2Low = 1.9082149292705877e-10;
constexpr double kLowest = -708.0, kHighest = 709.0;

inline double from_bits(std::uint64_t bits) {
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

inline std::uint64_t to_bits(double value) {
    std::uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

// exp(x) = 2^k exp(r) with |r| <= ln(2)/2. The polynomial meets exp at the Chebyshev points of that interval, which
// leaves 4e-18; it is summed in pairs, so that its terms do not wait for each other.
inline double exp_one(double x) {
    const double clipped = x < kLowest ? kLowest : (x > kHighest ? kHighest : x);
    const double shifted = clipped * kLog2e + kShift;
    const double k = shifted - kShift;
    const double r = (clipped - k * kLn2High) - k * kLn2Low;
    const double r2 = r * r, r4 = r2 * r2;
    const double low = (0.5000000000000019 + 0.1666666666666668 * r) +
                       r2 * (0.0416666666664881 + 0.008333333333319601 * r);
    const double high = (0.0013888888952314775 + 0.00019841269890047113 * r) +
                        r2 * (2.4801485482328494e-05 + 2.755724091857897e-06 * r);
    const double top = 2.763263963904103e-07 + 2.5110037605963777e-08 * r;
    const double p = 1.0 + (r + r2 * (low + r4 * (high + r4 * top)));
    const double power = from_bits((to_bits(shifted) << 52) + (std::uint64_t{1023} << 52));
    return x < kLowest ? 0.0 : p * power;
}

KERNELWEAVE_CLONES void exp_all(const double* d, double factor, double* out, std::size_t length) {
    for (std::size_t i = 0; i < length; ++i) out[i] = exp_one(factor * d[i]);
}

KERNELWEAVE_CLONES void add_weighted(double weight, const double* x, double* out, std::size_t length) {
    for (std::size_t i = 0; i < length; ++i) out[i] += weight * x[i];
}

KERNELWEAVE_CLONES void add_squares(double x, const double* z, double* out, std::size_t width) {
    for (std::size_t j = 0; j < width; ++j) {
        const double difference = x - z[j];
        out[j] += difference * difference;
    }
}

}  // namespace

template <class T>
void exp_pack(const double* d, std::size_t stride, std::size_t start, std::size_t stop, double rate, double factor,
              const double* shift, T* out) {
    std::vector<double> row(stop);
    for (std::size_t i = start; i < stop; ++i) {
        exp_all(d + (i - start) * stride, -rate, row.data(), i + 1);
        for (std::size_t j = 0; j <= i; ++j) row[j] *= factor;
        pack<T>(row.data(), 0, i, i + 1, shift, out);
    }
}

void exp_add_matvecs(const double* d, std::size_t stride, std::size_t start, std::size_t stop, double rate, double factor,
                const double* V, std::size_t n_columns, std::size_t n, double* out) {
    std::vector<double> row(stop);
    for (std::size_t i = start; i < stop; ++i) {
        exp_all(d + (i - start) * stride, -rate, row.data(), i + 1);
        for (std::size_t j = 0; j <= i; ++j) row[j] *= factor;
        add_matvecs(row.data(), 0, i, i + 1, V, n_columns, n, out);
    }
}

void exp_sum(const double* d, std::size_t length, const double* rates, const double* weights, std::size_t n_kernels,
             double* out) {
    constexpr std::size_t kPiece = 512;  // stays in the first cache until all kernels are added
    double piece[kPiece];
    for (std::size_t start = 0; start < length; start += kPiece) {
        const std::size_t width = std::min(kPiece, length - start);
        for (std::size_t k = 0; k < n_kernels; ++k) {
            exp_all(d + start, -rates[k], piece, width);
            add_weighted(weights[k], piece, out + start, width);
        }
    }
}

template void exp_pack<float>(const double*, std::size_t, std::size_t, std::size_t, double, double, const double*,
                              float*);
template void exp_pack<double>(const double*, std::size_t, std::size_t, std::size_t, double, double, const double*,
                               double*);

void exp_scaled(const double* d, double factor, double* out, std::size_t length) {
    exp_all(d, factor, out, length);
}

void squared_distances(const double* x, const double* z, std::size_t rows, std::size_t columns, std::size_t width,
                       double* out) {
    for (std::size_t i = 0; i < rows; ++i) {
        double* row = out + i * width;
        std::memset(row, 0, width * sizeof(double));
        for (std::size_t k = 0; k < columns; ++k) add_squares(x[i * columns + k], z + k * width, row, width);
    }
}

}  // namespace kernelweave
