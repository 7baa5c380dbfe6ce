#include "given.hpp"

#include <algorithm>

#include "add_scaled.hpp"
#include "packed.hpp"
#include "parallel.hpp"
#include "weighted_image.hpp"

namespace kernelweave {
namespace {

constexpr std::size_t kFour = 4;  // matrices, or rows of one, that are read together
constexpr std::size_t kRows = 256;  // rows read at a time
// Threads write to regions of this many bytes: in one large page of fresh memory they would both clear it.
constexpr std::size_t kRegion = std::size_t{6} << 20;
constexpr std::size_t kBlock = 8;  // rows per task: small enough to balance the triangle's growing rows

std::size_t row_blocks(std::size_t n) { return (n + kBlock - 1) / kBlock; }

// visit(block, i) for all rows, those of a block one after the other, blocks side by side.
template <class Visit>
void walk_rows(std::size_t n, int n_threads, const Visit& visit) {
    parallel_for(row_blocks(n), n_threads, [&](std::size_t task) {
        const std::size_t block = row_blocks(n) - 1 - task;  // longest rows first: no thread is left with a long tail
        for (std::size_t i = block * kBlock; i < std::min(n, (block + 1) * kBlock); ++i) visit(block, i);
    });
}

// image += K v from columns [start, i) of row i.
void add_stretch(const double* row, std::size_t i, std::size_t start, const double* v, double* image) {
    image[i] += dot_and_add_row(row + start, v + start, v[i], image + start, i - start);
}

// out += V K for V of shape (n_columns, n) from some rows of the lower triangle, among them all where V is not zero;
// right in these rows alone. Four of them are read together as far as the first goes.
void add_images_at(const double* K, std::size_t n, const std::vector<std::size_t>& rows, const double* V,
                   std::size_t n_columns, double* out) {
    std::size_t a = 0;
    for (; a + kFour <= rows.size(); a += kFour) {
        const double* four[kFour];
        for (std::size_t r = 0; r < kFour; ++r) four[r] = K + rows[a + r] * n;
        for (std::size_t c = 0; c < n_columns; ++c) {
            const double* v = V + c * n;
            double* image = out + c * n;
            double scale[kFour], dots[kFour];
            for (std::size_t r = 0; r < kFour; ++r) scale[r] = v[rows[a + r]];
            dot_and_add_four_rows(four, v, scale, image, rows[a], dots);
            for (std::size_t r = 0; r < kFour; ++r) {
                const std::size_t i = rows[a + r];
                image[i] += dots[r] + four[r][i] * v[i];
                add_stretch(four[r], i, rows[a], v, image);
            }
        }
    }
    for (; a < rows.size(); ++a) {
        const std::size_t i = rows[a];
        for (std::size_t c = 0; c < n_columns; ++c) {
            out[c * n + i] += K[i * n + i] * V[c * n + i];
            add_stretch(K + i * n, i, 0, V + c * n, out + c * n);
        }
    }
}

// What the parts of each matrix show together; part p is one of matrix owner(p).
template <class Owner>
std::vector<AdmitReport> added_up(const std::vector<AdmitReport>& parts, std::size_t n_matrices, const Owner& owner) {
    std::vector<AdmitReport> reports(n_matrices, AdmitReport{true, 0.0});
    for (std::size_t p = 0; p < parts.size(); ++p) {
        AdmitReport& report = reports[owner(p)];
        report.minors = report.minors && parts[p].minors;
        report.asymmetry += parts[p].asymmetry;
    }
    return reports;
}

}  // namespace

void diagonals(const Matrices& K, std::size_t n, double* out, int n_threads) {
    parallel_for(K.size(), n_threads, [&](std::size_t m) {
        for (std::size_t i = 0; i < n; ++i) out[m * n + i] = K[m][i * n + i];
    });
}

void reference_means(const Matrices& K, std::size_t n, const std::size_t* chosen, std::size_t n_chosen, double* out,
                     int n_threads) {
    const double share = 1.0 / static_cast<double>(n_chosen);
    parallel_for(K.size(), n_threads, [&](std::size_t m) {
        double* means = out + m * n;
        std::fill(means, means + n, 0.0);
        for (std::size_t c = 0; c < n_chosen; ++c) {
            const double* row = K[m] + chosen[c] * n;
            for (std::size_t j = 0; j < n; ++j) means[j] += share * row[j];
        }
        double grand = 0.0;
        for (std::size_t c = 0; c < n_chosen; ++c) grand += share * means[chosen[c]];
        for (std::size_t j = 0; j < n; ++j) means[j] -= 0.5 * grand;
    });
}

template <class T>
std::vector<AdmitReport> admit_all(const Matrices& K, std::size_t n, const double* roots, const double* probes,
                                   const double* shifts, T* packed, int n_threads) {
    const std::size_t per_matrix = (n + kRows - 1) / kRows;
    std::vector<AdmitReport> parts(K.size() * per_matrix);
    const std::size_t together = std::max<std::size_t>(1, kRegion / (triangle(n) * sizeof(T))) * per_matrix;
    parallel_for((parts.size() + together - 1) / together, n_threads, [&](std::size_t region) {
        for (std::size_t task = region * together; task < std::min(parts.size(), (region + 1) * together); ++task) {
            const std::size_t m = task / per_matrix, start = (task % per_matrix) * kRows;
            parts[task] = admit<T>(K[m], n, start, std::min(n, start + kRows), roots + m * n, probes,
                                   probes + n, shifts + m * n, packed + m * triangle(n));
        }
    });
    return added_up(parts, K.size(), [&](std::size_t part) { return part / per_matrix; });
}

template <class T>
void combine_all(const Matrices& K, std::size_t n, const double* eta, const double* shift, T* out, int n_threads) {
    const WeightedSum<double> sum(K, eta);
    walk_rows(n, n_threads, [&](std::size_t, std::size_t i) {
        double acc[kChunk];
        for (std::size_t start = 0; start <= i; start += kChunk) {
            const std::size_t length = std::min(kChunk, i + 1 - start);
            for (std::size_t j = 0; j < length; ++j) acc[j] = -(shift[i] + shift[start + j]);
            sum.add(acc, i * n + start, length);
            T* row = out + i * n + start;
            for (std::size_t j = 0; j < length; ++j) row[j] = static_cast<T>(acc[j]);
        }
    });
}

template <class T>
std::vector<AdmitReport> admit_and_combine(const Matrices& K, std::size_t n, const double* roots, const double* probes,
                                       const double* eta, const double* shift, T* out, int n_threads) {
    const double *left = probes, *right = probes + n;
    std::vector<double> least(K.size());  // root of the least diagonal entry: entries it covers need no other look
    for (std::size_t m = 0; m < K.size(); ++m) least[m] = *std::min_element(roots + m * n, roots + (m + 1) * n);
    std::vector<AdmitReport> parts(row_blocks(n) * K.size(), AdmitReport{true, 0.0});
    walk_rows(n, n_threads, [&](std::size_t block, std::size_t i) {
        double acc[kChunk], tilt[kChunk];
        for (std::size_t start = 0; start < n; start += kChunk) {
            const std::size_t length = std::min(kChunk, n - start);
            const std::size_t below = i < start ? 0 : std::min(length, i + 1 - start);
            for (std::size_t j = 0; j < length; ++j) tilt[j] = left[i] * right[start + j] - right[i] * left[start + j];
            for (std::size_t j = 0; j < below; ++j) acc[j] = -(shift[i] + shift[start + j]);
            for (std::size_t m = 0; m < K.size(); m += kFour) {
                const std::size_t several = std::min(kFour, K.size() - m);
                FourRows rows{};
                for (std::size_t r = 0; r < kFour; ++r) {  // filled up with one of weight zero
                    const std::size_t k = r < several ? m + r : m;
                    rows.row[r] = K[k] + i * n + start;
                    rows.bound[r] = roots[k * n + i] * least[k];
                    rows.weight[r] = r < several ? eta[k] : 0.0;
                }
                inspect_and_add(rows, tilt, acc, below);
                for (std::size_t r = 0; r < several; ++r) {
                    const double* own = roots + (m + r) * n;
                    AdmitReport& part = parts[block * K.size() + m + r];
                    if (rows.above[r] && !within_minors(rows.row[r], own + start, own[i], below)) part.minors = false;
                }
                for (const double*& row : rows.row) row += below;
                inspect_rows(rows, tilt + below, length - below);
                for (std::size_t r = 0; r < several; ++r)
                    parts[block * K.size() + m + r].asymmetry += rows.asymmetry[r];
            }
            for (std::size_t j = 0; j < below; ++j) out[i * n + start + j] = static_cast<T>(acc[j]);
        }
    });
    return added_up(parts, K.size(), [&](std::size_t part) { return part % K.size(); });
}

template <class T>
void take_all(const Matrices& K, std::size_t n, const std::size_t* chosen, std::size_t n_chosen, const double* shifts,
              T* packed, int n_threads) {
    parallel_for(K.size(), n_threads, [&](std::size_t m) {
        const double* shift = shifts + m * n_chosen;
        T* place = packed + m * triangle(n_chosen);
        for (std::size_t a = 0; a < n_chosen; ++a) {
            const double* row = K[m] + chosen[a] * n;
            for (std::size_t b = 0; b <= a; ++b) *place++ = static_cast<T>(row[chosen[b]] - shift[a] - shift[b]);
        }
    });
}

void energies_all(const Matrices& K, std::size_t n, const double* V, std::size_t n_columns, double* out,
                  int n_threads) {
    std::vector<double> parts(row_blocks(n) * K.size(), 0.0);
    walk_rows(n, n_threads, [&](std::size_t block, std::size_t i) {
        double* part = parts.data() + block * K.size();
        for (std::size_t c = 0; c < n_columns; ++c) {
            const double* v = V + c * n;
            if (v[i] == 0.0) continue;
            for (std::size_t start = 0; start < i; start += kChunk) {
                const std::size_t length = std::min(kChunk, i - start);
                for (std::size_t m = 0; m < K.size(); m += kFour) {
                    const std::size_t several = std::min(kFour, K.size() - m);
                    const double* rows[kFour];
                    for (std::size_t r = 0; r < kFour; ++r)
                        rows[r] = K[r < several ? m + r : m] + i * n + start;
                    double dots[kFour];
                    dot_four_rows(rows, v + start, length, dots);
                    for (std::size_t r = 0; r < several; ++r) part[m + r] += v[i] * dots[r];
                }
            }
            for (std::size_t m = 0; m < K.size(); ++m) part[m] += 0.5 * v[i] * v[i] * K[m][i * n + i];
        }
    });
    std::fill(out, out + K.size(), 0.0);
    for (std::size_t p = 0; p < parts.size(); ++p) out[p % K.size()] += parts[p];
}

void image_all(const Matrices& K, std::size_t n, const double* eta, const double* V, std::size_t n_columns,
               double* out, int n_threads) {
    const auto place = [n](std::size_t i) { return i * n; };
    weighted_image(WeightedSum<double>(K, eta), n, place, V, n_columns, out, n_threads);
}

void images_all(const Matrices& K, std::size_t n, const double* V, std::size_t n_columns, const std::uint8_t* where,
                double* out, int n_threads) {
    const std::size_t size = n_columns * n;
    std::vector<std::size_t> rows;  // that any column asks for
    for (std::size_t i = 0; i < n; ++i) {
        bool asked = where == nullptr;
        for (std::size_t c = 0; c < n_columns && !asked; ++c) asked = where[c * n + i] != 0;
        if (asked) rows.push_back(i);
    }
    parallel_for(K.size(), n_threads, [&](std::size_t m) {
        double* image = out + m * size;
        std::fill(image, image + size, 0.0);
        add_images_at(K[m], n, rows, V, n_columns, image);
        if (where == nullptr) return;
        for (std::size_t j = 0; j < size; ++j)
            if (where[j] == 0) image[j] = 0.0;
    });
}

template std::vector<AdmitReport> admit_all<float>(const Matrices&, std::size_t, const double*, const double*,
                                                   const double*, float*, int);
template std::vector<AdmitReport> admit_all<double>(const Matrices&, std::size_t, const double*, const double*,
                                                    const double*, double*, int);

template std::vector<AdmitReport> admit_and_combine<float>(const Matrices&, std::size_t, const double*, const double*,
                                                       const double*, const double*, float*, int);
template std::vector<AdmitReport> admit_and_combine<double>(const Matrices&, std::size_t, const double*, const double*,
                                                        const double*, const double*, double*, int);
template void take_all<float>(const Matrices&, std::size_t, const std::size_t*, std::size_t, const double*, float*,
                              int);
template void take_all<double>(const Matrices&, std::size_t, const std::size_t*, std::size_t, const double*, double*,
                               int);
template void combine_all<float>(const Matrices&, std::size_t, const double*, const double*, float*, int);
template void combine_all<double>(const Matrices&, std::size_t, const double*, const double*, double*, int);

}  // namespace kernelweave
