#include "given.hpp"

#include <algorithm>

#include "add_scaled.hpp"
#include "packed.hpp"
#include "parallel.hpp"
#include "weighted_image.hpp"

namespace kernelweave {
namespace {

constexpr std::size_t kRows = 256;  // rows read at a time
// Threads write to regions of this many bytes: in one large page of fresh memory they would both clear it.
constexpr std::size_t kRegion = std::size_t{6} << 20;
constexpr std::size_t kBlock = 8;  // rows per task: small enough to balance the triangle's growing rows

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
    std::vector<AdmitReport> reports(K.size(), AdmitReport{true, 0.0});
    for (std::size_t task = 0; task < parts.size(); ++task) {
        AdmitReport& report = reports[task / per_matrix];
        report.minors = report.minors && parts[task].minors;
        report.asymmetry += parts[task].asymmetry;
    }
    return reports;
}

template <class T>
void add_all(const Matrices& K, std::size_t n, const double* eta, const double* shift, T* out, int n_threads) {
    const WeightedSum<double> sum(K, eta);
    const std::size_t blocks = (n + kBlock - 1) / kBlock;
    parallel_for(blocks, n_threads, [&](std::size_t task) {
        double acc[kChunk];
        const std::size_t block = blocks - 1 - task;  // longest rows first: no thread is left with a long tail
        for (std::size_t i = block * kBlock; i < std::min(n, (block + 1) * kBlock); ++i) {
            for (std::size_t start = 0; start <= i; start += kChunk) {
                const std::size_t length = std::min(kChunk, i + 1 - start);
                for (std::size_t j = 0; j < length; ++j) acc[j] = -(shift[i] + shift[start + j]);
                sum.add(acc, i * n + start, length);
                T* row = out + i * n + start;
                for (std::size_t j = 0; j < length; ++j) row[j] += static_cast<T>(acc[j]);
            }
        }
    });
}

void image_all(const Matrices& K, std::size_t n, const double* eta, const double* V, std::size_t n_columns,
               double* out, int n_threads) {
    const auto place = [n](std::size_t i) { return i * n; };
    weighted_image(WeightedSum<double>(K, eta), n, place, V, n_columns, out, n_threads);
}

void images_all(const Matrices& K, std::size_t n, const double* V, std::size_t n_columns, double* out,
                int n_threads) {
    parallel_for(K.size(), n_threads, [&](std::size_t m) {
        double* image = out + m * n_columns * n;
        std::fill(image, image + n_columns * n, 0.0);
        add_images(K[m], n, 0, n, V, n_columns, n, image);
    });
}

template std::vector<AdmitReport> admit_all<float>(const Matrices&, std::size_t, const double*, const double*,
                                                   const double*, float*, int);
template std::vector<AdmitReport> admit_all<double>(const Matrices&, std::size_t, const double*, const double*,
                                                    const double*, double*, int);

template void add_all<float>(const Matrices&, std::size_t, const double*, const double*, float*, int);
template void add_all<double>(const Matrices&, std::size_t, const double*, const double*, double*, int);

}  // namespace kernelweave
