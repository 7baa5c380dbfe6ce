// The step of a weighted sum of matrices, for every file that walks their rows.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "dispatch.hpp"

namespace kernelweave {
namespace {

constexpr std::size_t kChunk = 1024;  // entries of one accumulator: well within a 32 KB first-level cache
constexpr std::size_t kTogether = 4;

// Four kernels at a time: the accumulator is read and written once for all of them. The rows that are `next` are asked
// for line by line, so that memory is never idle.
template <class T>
inline void add_scaled(double* KERNELWEAVE_RESTRICT acc, const T* const* rows, const T* const* next, const double* weights,
                       std::size_t length) {
    constexpr std::size_t kLine = 64 / sizeof(T);
    const T *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
    const double u = weights[0], v = weights[1], w = weights[2], x = weights[3];
    const std::size_t whole = length - length % kLine;
    for (std::size_t start = 0; start < whole; start += kLine) {
        for (std::size_t r = 0; r < kTogether; ++r) fetch(next[r] + start);
        for (std::size_t j = start; j < start + kLine; ++j) acc[j] += (u * a[j] + v * b[j]) + (w * c[j] + x * d[j]);
    }
    for (std::size_t j = whole; j < length; ++j) acc[j] += (u * a[j] + v * b[j]) + (w * c[j] + x * d[j]);
}

// The same sum, and in `size` that of absolute values: what relative errors of the entries are measured by.
[[maybe_unused]] KERNELWEAVE_CLONES void add_scaled_rows_and_sizes(
    double* KERNELWEAVE_RESTRICT acc, double* KERNELWEAVE_RESTRICT size, const float* const* rows, const float* const* next,
    const double* weights, std::size_t length) {
    constexpr std::size_t kLine = 64 / sizeof(float);
    const float *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
    const double u = weights[0], v = weights[1], w = weights[2], x = weights[3];
    const auto add = [&](std::size_t j) {
        const double e = u * static_cast<double>(a[j]), f = v * static_cast<double>(b[j]);
        const double g = w * static_cast<double>(c[j]), h = x * static_cast<double>(d[j]);
        acc[j] += (e + f) + (g + h);
        size[j] += (std::abs(e) + std::abs(f)) + (std::abs(g) + std::abs(h));
    };
    const std::size_t whole = length - length % kLine;
    for (std::size_t start = 0; start < whole; start += kLine) {
        for (std::size_t r = 0; r < kTogether; ++r) fetch(next[r] + start);
        for (std::size_t j = start; j < start + kLine; ++j) add(j);
    }
    for (std::size_t j = whole; j < length; ++j) add(j);
}

[[maybe_unused]] KERNELWEAVE_CLONES void add_scaled_rows(double* acc, const float* const* rows, const float* const* next,
                                        const double* weights, std::size_t length) {
    add_scaled(acc, rows, next, weights, length);
}
[[maybe_unused]] KERNELWEAVE_CLONES void add_scaled_rows(double* acc, const double* const* rows, const double* const* next,
                                        const double* weights, std::size_t length) {
    add_scaled(acc, rows, next, weights, length);
}

// Matrices with their weights, without those of weight zero; entries of type T are added up in double.
template <class T>
class WeightedSum {
public:
    WeightedSum(const std::vector<const T*>& matrices, const double* eta) {
        for (std::size_t m = 0; m < matrices.size(); ++m) {
            if (eta[m] == 0.0) continue;
            matrices_.push_back(matrices[m]);
            weights_.push_back(eta[m]);
        }
        while (matrices_.size() % kTogether != 0) {  // fill up with a matrix of weight zero
            matrices_.push_back(matrices_.front());
            weights_.push_back(0.0);
        }
    }

    // acc += the sum of the entries [place, place + length) of all matrices; `later` is the place to be asked for next.
    void add(double* acc, std::size_t place, std::size_t length, std::size_t later) const {
        const T *rows[kTogether], *next[kTogether];
        for (std::size_t m = 0; m < matrices_.size(); m += kTogether) {
            set_rows(m, place, later, rows, next);
            add_scaled_rows(acc, rows, next, weights_.data() + m, length);
        }
    }

    // The same, and in `size` the sum of their absolute values.
    void add(double* acc, double* size, std::size_t place, std::size_t length, std::size_t later) const {
        const T *rows[kTogether], *next[kTogether];
        for (std::size_t m = 0; m < matrices_.size(); m += kTogether) {
            set_rows(m, place, later, rows, next);
            add_scaled_rows_and_sizes(acc, size, rows, next, weights_.data() + m, length);
        }
    }

private:
    // Where the matrices m, m + 1, .. are to be read, and those that follow.
    void set_rows(std::size_t m, std::size_t place, std::size_t later, const T** rows, const T** next) const {
        const bool last = m + kTogether == matrices_.size();
        for (std::size_t r = 0; r < kTogether; ++r) {
            rows[r] = matrices_[m + r] + place;
            next[r] = last ? matrices_[r] + later : matrices_[m + kTogether + r] + place;
        }
    }

    std::vector<const T*> matrices_;
    std::vector<double> weights_;
};

}  // namespace
}  // namespace kernelweave
