// Compiled without the finite-math flag of the other loops: NaN has to be seen by the check.
#include "matrices.hpp"

#include <algorithm>
#include <cmath>

#include "packed.hpp"
#include "parallel.hpp"
#include "row_loops.hpp"

namespace kernelweave {
namespace {

constexpr std::size_t kRows = 32;  // rows of a task: enough to stream, few enough to balance a triangle's rows

std::size_t row_blocks(std::size_t n) { return (n + kRows - 1) / kRows; }

// Row i of a matrix; the next one follows.
Row<double> row_of(const double* K, std::size_t i, std::size_t n) {
    return {K + i * n, K + std::min(i + 1, n - 1) * n};
}

// Where the chunk begins that follows the one from `start` on in row i of a lower triangle.
std::size_t chunk_after(std::size_t i, std::size_t start, std::size_t n) {
    return start + kChunk <= i ? i * n + start + kChunk : std::min(i + 1, n - 1) * n;
}

// visit(first, stop) for all rows in blocks, longest rows first: no thread is left with a long tail.
template <class Visit>
void visit_row_blocks(std::size_t n, int n_threads, const Visit& visit) {
    parallel_for(row_blocks(n), n_threads, [&](std::size_t task) {
        const std::size_t first = (row_blocks(n) - 1 - task) * kRows;
        visit(first, std::min(n, first + kRows));
    });
}

// row . probe; `broken` is set where |row_j| <= root roots_j does not hold, as for NaN.
KERNELWEAVE_CLONES double check_row(Row<double> row, const double* probe, const double* roots, double root,
                                    std::size_t n, std::int64_t& broken) {
    double sum = 0.0;
    std::int64_t found = 0;
    row.each(n, [&](std::size_t j, double entry) {
        sum += entry * probe[j];
        found |= std::abs(entry) <= root * roots[j] ? 0 : 1;
    });
    broken |= found;
    return sum;
}

KERNELWEAVE_CLONES void antisymmetric_probe(double l, double r, const double* left, const double* right,
                                            double* KERNELWEAVE_RESTRICT probe, std::size_t n) {
    for (std::size_t j = 0; j < n; ++j) probe[j] = l * right[j] - r * left[j];
}

}  // namespace

std::vector<GramReport> check_matrices(const Matrices& K, std::size_t n, const double* roots, const double* probes,
                                       int n_threads) {
    const double *left = probes, *right = probes + n;
    std::vector<GramReport> parts(row_blocks(n) * K.size(), GramReport{true, 0.0});
    visit_row_blocks(n, n_threads, [&](std::size_t first, std::size_t stop) {
        std::vector<double> block((stop - first) * n);
        for (std::size_t i = first; i < stop; ++i)
            antisymmetric_probe(left[i], right[i], left, right, block.data() + (i - first) * n, n);
        for (std::size_t m = 0; m < K.size(); ++m) {
            GramReport& report = parts[first / kRows * K.size() + m];
            const double* own = roots + m * n;
            std::int64_t broken = 0;
            for (std::size_t i = first; i < stop; ++i) {
                const double* probe = block.data() + (i - first) * n;
                report.asymmetry += check_row(row_of(K[m], i, n), probe, own, own[i], n, broken);
            }
            report.minors = broken == 0;
        }
    });
    std::vector<GramReport> reports(K.size(), GramReport{true, 0.0});
    for (std::size_t p = 0; p < parts.size(); ++p) {
        reports[p % K.size()].minors = reports[p % K.size()].minors && parts[p].minors;
        reports[p % K.size()].asymmetry += parts[p].asymmetry;
    }
    return reports;
}

void diagonals(const Matrices& K, std::size_t n, double* out, int n_threads) {
    parallel_for(K.size(), n_threads, [&](std::size_t m) {
        for (std::size_t i = 0; i < n; ++i) out[m * n + i] = K[m][i * (n + 1)];
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
void pack_matrices(const Matrices& K, std::size_t n, const double* shifts, T* packed, int n_threads) {
    visit_row_blocks(n, n_threads, [&](std::size_t first, std::size_t stop) {
        for (std::size_t m = 0; m < K.size(); ++m)
            pack(K[m] + first * n, n, first, stop, shifts + m * n, packed + m * triangle(n));
    });
}

template <class T>
void combine_matrices(const Matrices& K, std::size_t n, const double* eta, const double* shift, T* out, int n_threads) {
    const WeightedSum<double> sum(K, eta);
    static_assert(kRows == kMirrored, "a block of rows is mirrored while it is in the cache");
    visit_row_blocks(n, n_threads, [&](std::size_t first, std::size_t stop) {
        double acc[kChunk];
        for (std::size_t i = first; i < stop; ++i) {
            for (std::size_t start = 0; start <= i; start += kChunk) {
                const std::size_t length = std::min(kChunk, i + 1 - start);
                for (std::size_t j = 0; j < length; ++j) acc[j] = -(shift[i] + shift[start + j]);
                sum.add(acc, i * n + start, length, chunk_after(i, start, n));
                T* row = out + i * n + start;
                for (std::size_t j = 0; j < length; ++j) row[j] = static_cast<T>(acc[j]);
            }
        }
        mirror_rows(out, n, first, stop);
    });
}

template <class T>
void gather_matrices(const Matrices& K, std::size_t n, const std::size_t* chosen, std::size_t n_chosen,
                     const double* shifts, T* packed, int n_threads) {
    parallel_for(K.size(), n_threads, [&](std::size_t m) {
        const double* shift = shifts + m * n_chosen;
        T* place = packed + m * triangle(n_chosen);
        for (std::size_t a = 0; a < n_chosen; ++a, place += a) {
            const double* row = K[m] + chosen[a] * n;
            for (std::size_t b = 0; b <= a; ++b) place[b] = static_cast<T>(row[chosen[b]] - shift[a] - shift[b]);
        }
    });
}

void energies_of_matrices(const Matrices& K, std::size_t n, const double* V, std::size_t n_columns, double* out,
                          int n_threads) {
    std::vector<double> parts(row_blocks(n) * K.size(), 0.0);
    visit_row_blocks(n, n_threads, [&](std::size_t first, std::size_t stop) {
        for (std::size_t m = 0; m < K.size(); ++m) {
            double& part = parts[first / kRows * K.size() + m];
            for (std::size_t i = first; i < stop; ++i) {
                const Row<double> row = row_of(K[m], i, n);
                for (std::size_t c = 0; c < n_columns; ++c) {
                    const double* v = V + c * n;
                    if (v[i] != 0.0) part += v[i] * (dot_row(row, v, i) + 0.5 * row.entries[i] * v[i]);
                }
            }
        }
    });
    std::fill(out, out + K.size(), 0.0);
    for (std::size_t p = 0; p < parts.size(); ++p) out[p % K.size()] += parts[p];
}

void matvec_of_matrices(const Matrices& K, std::size_t n, const double* eta, const double* V, std::size_t n_columns,
                        double* out, int n_threads) {
    const WeightedSum<double> sum(K, eta);
    const std::size_t size = n_columns * n;
    std::vector<double> parts(kShares * size, 0.0);
    parallel_for(kShares, n_threads, [&](std::size_t share) {
        double acc[kChunk];
        for (std::size_t block = share; block < row_blocks(n); block += kShares)
            for (std::size_t i = block * kRows; i < std::min(n, (block + 1) * kRows); ++i)
                for (std::size_t start = 0; start <= i; start += kChunk) {
                    const std::size_t length = std::min(kChunk, i + 1 - start);
                    std::fill(acc, acc + length, 0.0);
                    sum.add(acc, i * n + start, length, chunk_after(i, start, n));
                    add_row(acc, i, start, length, V, n_columns, n, parts.data() + share * size);
                }
    });
    add_up(parts, size, out);
}

void matvecs_of_matrices(const Matrices& K, std::size_t n, const double* V, std::size_t n_columns,
                         const std::uint8_t* needed, double* out, int n_threads) {
    const std::size_t size = n_columns * n;
    parallel_for(K.size(), n_threads, [&](std::size_t m) {
        double* products = out + m * size;
        std::fill(products, products + size, 0.0);
        for (std::size_t i = 0; i < n; ++i) {
            const Row<double> row = row_of(K[m], i, n);
            for (std::size_t c = 0; c < n_columns; ++c) {
                if (needed != nullptr && needed[c * n + i] == 0) continue;
                const double* v = V + c * n;
                double* product = products + c * n;
                product[i] += dot_and_add_row(row, v, v[i], product, i) + row.entries[i] * v[i];
            }
        }
        if (needed == nullptr) return;
        for (std::size_t j = 0; j < size; ++j)
            if (needed[j] == 0) products[j] = 0.0;
    });
}

template void pack_matrices<float>(const Matrices&, std::size_t, const double*, float*, int);
template void pack_matrices<double>(const Matrices&, std::size_t, const double*, double*, int);
template void combine_matrices<float>(const Matrices&, std::size_t, const double*, const double*, float*, int);
template void combine_matrices<double>(const Matrices&, std::size_t, const double*, const double*, double*, int);
template void gather_matrices<float>(const Matrices&, std::size_t, const std::size_t*, std::size_t, const double*, float*,
                                     int);
template void gather_matrices<double>(const Matrices&, std::size_t, const std::size_t*, std::size_t, const double*,
                                      double*, int);

}  // namespace kernelweave
