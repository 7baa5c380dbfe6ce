// The steps of passes over symmetric matrices of which one triangle is read, for every file that visits its rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "dispatch.hpp"

namespace kernelweave {
namespace {

constexpr std::size_t kChunk = 1024;  // entries of one accumulator: well within a 32 KB first-level cache
constexpr std::size_t kTogether = 4;  // matrices that are added up together

// Ask for the entries of a row that is read soon. Rows of a triangle are short and the processor only guesses the
// continuation of long reads: without it passes over the matrices take 1.5 to 2 times as long.
template <class T>
KERNELWEAVE_INLINE void prefetch(const T* row, std::size_t length) {
#if defined(__GNUC__)
    for (std::size_t j = 0; j < length; j += 64 / sizeof(T)) __builtin_prefetch(row + j, 0, 2);
#else
    (void)row;
    (void)length;
#endif
}

constexpr std::size_t kSegment = 128;  // entries between requests for those that follow

// A row, and another of as many entries that is read soon: it is asked for while this one is read.
template <class T>
struct Row {
    const T *entries, *next;

    // visit(j, entry j) for the first `length` entries.
    template <class Visit>
    KERNELWEAVE_INLINE void each(std::size_t length, const Visit& visit) const {
        const T *here = entries, *soon = next;
        for (std::size_t start = 0; start < length; start += kSegment) {
            const std::size_t stop = std::min(length, start + kSegment);
            prefetch(soon + start, stop - start);
            for (std::size_t j = start; j < stop; ++j) visit(j, here[j]);
        }
    }
};

// row . v
template <class T>
inline double dot(Row<T> row, const double* v, std::size_t length) {
    double sum = 0.0;
    row.each(length, [&](std::size_t j, T entry) { sum += static_cast<double>(entry) * v[j]; });
    return sum;
}

[[maybe_unused]] KERNELWEAVE_CLONES double dot_row(Row<float> row, const double* v, std::size_t length) {
    return dot(row, v, length);
}
[[maybe_unused]] KERNELWEAVE_CLONES double dot_row(Row<double> row, const double* v, std::size_t length) {
    return dot(row, v, length);
}

// One read of the row serves both triangles: returns row . v and adds scale * row to out.
template <class T>
inline double dot_and_add(Row<T> row, const double* v, double scale, double* KERNELWEAVE_RESTRICT out,
                          std::size_t length) {
    double sum = 0.0;
    row.each(length, [&](std::size_t j, T entry) {
        const double k = static_cast<double>(entry);
        sum += k * v[j];
        out[j] += scale * k;
    });
    return sum;
}

[[maybe_unused]] KERNELWEAVE_CLONES double dot_and_add_row(Row<float> row, const double* v, double scale, double* out,
                                                           std::size_t length) {
    return dot_and_add(row, v, scale, out, length);
}
[[maybe_unused]] KERNELWEAVE_CLONES double dot_and_add_row(Row<double> row, const double* v, double scale, double* out,
                                                           std::size_t length) {
    return dot_and_add(row, v, scale, out, length);
}

// acc += sum_r weights_r rows_r over four rows: the accumulator is read and written once for all of them.
template <class T>
inline void add_scaled(double* KERNELWEAVE_RESTRICT acc, const Row<T>* rows, const double* weights,
                       std::size_t length) {
    const T *a = rows[0].entries, *b = rows[1].entries, *c = rows[2].entries, *d = rows[3].entries;
    const double u = weights[0], v = weights[1], w = weights[2], x = weights[3];
    for (std::size_t start = 0; start < length; start += kSegment) {
        const std::size_t stop = std::min(length, start + kSegment);
        for (std::size_t r = 0; r < kTogether; ++r) prefetch(rows[r].next + start, stop - start);
        for (std::size_t j = start; j < stop; ++j) acc[j] += (u * a[j] + v * b[j]) + (w * c[j] + x * d[j]);
    }
}

[[maybe_unused]] KERNELWEAVE_CLONES void add_scaled_rows(double* acc, const Row<float>* rows, const double* weights,
                                                         std::size_t length) {
    add_scaled(acc, rows, weights, length);
}
[[maybe_unused]] KERNELWEAVE_CLONES void add_scaled_rows(double* acc, const Row<double>* rows, const double* weights,
                                                         std::size_t length) {
    add_scaled(acc, rows, weights, length);
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

    // acc += the sum of the entries [place, place + length) of all matrices; those at `later` are read next.
    void add(double* acc, std::size_t place, std::size_t length, std::size_t later) const {
        for (std::size_t m = 0; m < matrices_.size(); m += kTogether) {
            const bool last = m + kTogether == matrices_.size();
            Row<T> rows[kTogether];
            for (std::size_t r = 0; r < kTogether; ++r)
                rows[r] = {matrices_[m + r] + place,
                           last ? matrices_[r] + later : matrices_[m + kTogether + r] + place};
            add_scaled_rows(acc, rows, weights_.data() + m, length);
        }
    }

    const std::vector<const T*>& matrices() const { return matrices_; }
    const std::vector<double>& weights() const { return weights_; }

private:
    std::vector<const T*> matrices_;
    std::vector<double> weights_;
};

// Add what entries [start, start + length) of row i of a symmetric matrix, up to its diagonal, contribute to V K.
inline void add_row(const double* row, std::size_t i, std::size_t start, std::size_t length, const double* V,
                    std::size_t n_columns, std::size_t n, double* out) {
    const bool at_diagonal = start + length == i + 1;
    const std::size_t below = at_diagonal ? length - 1 : length;
    for (std::size_t c = 0; c < n_columns; ++c) {
        const double* v = V + c * n;
        double* product = out + c * n;
        product[i] += dot_and_add_row(Row<double>{row, row}, v + start, v[i], product + start, below);
        if (at_diagonal) product[i] += row[below] * v[i];
    }
}

// Rows of the lower triangle are shared out in this many shares, whatever the number of threads, so that digits do
// not depend on it.
constexpr std::size_t kShares = 16;

inline void add_up(const std::vector<double>& parts, std::size_t size, double* out) {
    std::fill(out, out + size, 0.0);
    for (std::size_t share = 0; share < kShares; ++share)
        for (std::size_t j = 0; j < size; ++j) out[j] += parts[share * size + j];
}

}  // namespace
}  // namespace kernelweave
