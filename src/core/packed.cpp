#include "packed.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "parallel.hpp"
#include "row_loops.hpp"

namespace kernelweave {
namespace {

constexpr std::size_t kAhead = 6;  // rows from being asked for to being read: some kilobytes
constexpr std::size_t kPiece = 2048;  // entries of all triangles that are added up together
constexpr std::size_t kAlone = 1024;  // rows of a matrix below which one thread is through before another has begun

template <class T>
inline void round_entries(const double* row, const double* shift, double own, T* out, std::size_t length) {
    for (std::size_t j = 0; j < length; ++j) out[j] = static_cast<T>(row[j] - own - shift[j]);
}

KERNELWEAVE_CLONES void round_row(const double* row, const double* shift, double own, float* out,
                                  std::size_t length) {
    round_entries(row, shift, own, out, length);
}
KERNELWEAVE_CLONES void round_row(const double* row, const double* shift, double own, double* out,
                                  std::size_t length) {
    round_entries(row, shift, own, out, length);
}

// acc += weight * row, and in `size` the sum of absolute values: what relative errors of entries are measured by.
KERNELWEAVE_CLONES void add_entry_and_size(double* KERNELWEAVE_RESTRICT acc, double* KERNELWEAVE_RESTRICT size,
                                           const float* row, double weight, std::size_t length) {
    for (std::size_t j = 0; j < length; ++j) {
        const double term = weight * static_cast<double>(row[j]);
        acc[j] += term;
        size[j] += std::abs(term);
    }
}

template <class T>
std::vector<const T*> matrices(const T* packed, std::size_t n_kernels, std::size_t n) {
    std::vector<const T*> found(n_kernels);
    for (std::size_t m = 0; m < n_kernels; ++m) found[m] = packed + m * triangle(n);
    return found;
}

// The row that an entry of a triangle belongs to.
std::size_t row_index(std::size_t place) {
    auto i = static_cast<std::size_t>((std::sqrt(8.0 * static_cast<double>(place) + 1.0) - 1.0) / 2.0);
    while (triangle(i) > place) --i;
    while (triangle(i + 1) <= place) ++i;
    return i;
}

// Row rows[a] of a triangle; of those that are read in turn, the one some places on is asked for.
template <class T>
Row<T> nth_row(const T* K, const std::vector<std::size_t>& rows, std::size_t a) {
    return {K + triangle(rows[a]), K + triangle(rows[std::min(a + kAhead, rows.size() - 1)])};
}

// Stretches of that many entries in a triangle.
std::size_t pieces(std::size_t n, std::size_t size) { return (triangle(n) + size - 1) / size; }

// visit(i, column, place, length) for the rows that begin, lie or end in entries [start, stop) of a triangle: `length`
// entries from `column` on, the first of which is `place` entries behind start.
template <class Visit>
void visit_rows(std::size_t start, std::size_t stop, const Visit& visit) {
    std::size_t i = row_index(start);
    for (std::size_t place = start; place < stop; ++i) {
        const std::size_t end = std::min(stop, triangle(i + 1));
        visit(i, place - triangle(i), place - start, end - place);
        place = end;
    }
}

// 1/2 v'Kv from the rows of a triangle where v is not zero.
template <class T>
double half_energy(const T* K, const double* v, const std::vector<std::size_t>& support) {
    double energy = 0.0;
    for (std::size_t a = 0; a < support.size(); ++a) {
        const std::size_t i = support[a];
        const Row<T> row = nth_row(K, support, a);
        energy += v[i] * (dot_row(row, v, i) + 0.5 * static_cast<double>(row.entries[i]) * v[i]);
    }
    return energy;
}

// product += K v from some rows of a triangle, among them all where v is not zero; right in these rows alone.
template <class T>
void add_matvec(const T* K, const double* v, const std::vector<std::size_t>& rows, double* product) {
    for (std::size_t a = 0; a < rows.size(); ++a) {
        const std::size_t i = rows[a];
        const Row<T> row = nth_row(K, rows, a);
        const double below = v[i] != 0.0 ? dot_and_add_row(row, v, v[i], product, i) : dot_row(row, v, i);
        product[i] += below + static_cast<double>(row.entries[i]) * v[i];
    }
}

}  // namespace

template <class T>
void mirror_rows(T* K, std::size_t n, std::size_t start, std::size_t stop) {
    // Tiles are turned in the first-level cache: entries of a column lie far apart.
    constexpr std::size_t kWide = 64;
    T turned[kWide * kMirrored];
    for (std::size_t left = 0; left < stop; left += kWide) {
        const std::size_t right = std::min(stop, left + kWide);
        for (std::size_t i = start; i < stop; ++i)
            for (std::size_t j = left; j < right; ++j) turned[(j - left) * kMirrored + i - start] = K[i * n + j];
        for (std::size_t j = left; j < right; ++j)
            for (std::size_t i = std::max(start, j + 1); i < stop; ++i)
                K[j * n + i] = turned[(j - left) * kMirrored + i - start];
    }
}

template <class T>
void mirror(T* K, std::size_t n, int n_threads) {
    const std::size_t tiles = (n + kMirrored - 1) / kMirrored;
    parallel_for(tiles, n < kAlone ? 1 : n_threads, [&](std::size_t task) {
        const std::size_t start = (tiles - 1 - task) * kMirrored;
        mirror_rows(K, n, start, std::min(n, start + kMirrored));
    });
}

template <class T>
void pack(const double* K, std::size_t stride, std::size_t start, std::size_t stop, const double* shift, T* out) {
    for (std::size_t i = start; i < stop; ++i) {
        const double* row = K + (i - start) * stride;
        round_row(row, shift, shift[i], out + triangle(i), i + 1);
    }
}

template <class T>
void combine(const T* packed, std::size_t n_kernels, std::size_t n, const double* eta, T* out, int n_threads) {
    const WeightedSum<T> sum(matrices(packed, n_kernels, n), eta);
    parallel_for(pieces(n, kPiece), n_threads, [&](std::size_t piece) {
        double acc[kPiece] = {};
        const std::size_t start = piece * kPiece, stop = std::min(triangle(n), start + kPiece);
        sum.add(acc, start, stop - start, stop < triangle(n) ? stop : start);
        visit_rows(start, stop, [&](std::size_t i, std::size_t column, std::size_t place, std::size_t length) {
            for (std::size_t j = 0; j < length; ++j) out[i * n + column + j] = static_cast<T>(acc[place + j]);
        });
    });
    mirror(out, n, n_threads);
}

template <class T>
void gather(const T* packed, std::size_t n_kernels, std::size_t stride, const std::size_t* chosen, std::size_t n_chosen,
            T* out, int n_threads) {
    parallel_for(n_kernels, n_threads, [&](std::size_t m) {
        T* place = out + m * triangle(n_chosen);
        for (std::size_t a = 0; a < n_chosen; ++a, place += a) {
            const T* row = packed + m * stride + triangle(chosen[a]);
            for (std::size_t b = 0; b <= a; ++b) place[b] = row[chosen[b]];
        }
    });
}

void matvec_and_size(const float* packed, std::size_t n_kernels, std::size_t n, const double* eta, const double* V,
                     std::size_t n_columns, double* out, double* sizes, int n_threads) {
    const WeightedSum<float> sum(matrices(packed, n_kernels, n), eta);
    const std::size_t size = n_columns * n;
    std::vector<double> parts(kShares * size, 0.0), size_parts(kShares * size, 0.0), absolute(V, V + size);
    for (double& v : absolute) v = std::abs(v);
    parallel_for(kShares, n_threads, [&](std::size_t share) {
        std::vector<double> acc(kChunk), magnitude(kChunk);
        for (std::size_t piece = share; piece < pieces(n, kChunk); piece += kShares) {
            const std::size_t start = piece * kChunk, stop = std::min(triangle(n), start + kChunk);
            std::fill(acc.begin(), acc.end(), 0.0);
            std::fill(magnitude.begin(), magnitude.end(), 0.0);
            for (std::size_t m = 0; m < sum.matrices().size(); ++m)
                add_entry_and_size(acc.data(), magnitude.data(), sum.matrices()[m] + start, sum.weights()[m], stop - start);
            visit_rows(start, stop, [&](std::size_t i, std::size_t column, std::size_t place, std::size_t length) {
                add_row(acc.data() + place, i, column, length, V, n_columns, n, parts.data() + share * size);
                add_row(magnitude.data() + place, i, column, length, absolute.data(), n_columns, n,
                        size_parts.data() + share * size);
            });
        }
    });
    add_up(parts, size, out);
    add_up(size_parts, size, sizes);
}

template <class T>
void matvecs(const T* packed, std::size_t n_kernels, std::size_t n, const double* V, std::size_t n_columns,
             const std::uint8_t* needed, double* out, int n_threads) {
    std::vector<std::vector<std::size_t>> asked(n_columns);
    for (std::size_t c = 0; c < n_columns; ++c)
        for (std::size_t i = 0; i < n; ++i)
            if (needed == nullptr || needed[c * n + i] != 0) asked[c].push_back(i);
    parallel_for(n_kernels, n_threads, [&](std::size_t m) {
        std::vector<double> product(n);
        double* own = out + m * n * n_columns;
        std::fill(own, own + n * n_columns, 0.0);
        for (std::size_t c = 0; c < n_columns; ++c) {
            std::fill(product.begin(), product.end(), 0.0);
            add_matvec(packed + m * triangle(n), V + c * n, asked[c], product.data());
            for (const std::size_t i : asked[c]) own[c * n + i] = product[i];
        }
    });
}

template <class T>
void energies(const T* packed, std::size_t n_kernels, std::size_t n, const double* V, std::size_t n_columns,
              double* out, int n_threads) {
    std::vector<std::vector<std::size_t>> support(n_columns);
    for (std::size_t c = 0; c < n_columns; ++c)
        for (std::size_t i = 0; i < n; ++i)
            if (V[c * n + i] != 0.0) support[c].push_back(i);
    parallel_for(n_kernels, n_threads, [&](std::size_t m) {
        const T* K = packed + m * triangle(n);
        out[m] = 0.0;
        for (std::size_t c = 0; c < n_columns; ++c) out[m] += half_energy(K, V + c * n, support[c]);
    });
}

template void pack<float>(const double*, std::size_t, std::size_t, std::size_t, const double*, float*);
template void pack<double>(const double*, std::size_t, std::size_t, std::size_t, const double*, double*);
template void mirror_rows<float>(float*, std::size_t, std::size_t, std::size_t);
template void mirror_rows<double>(double*, std::size_t, std::size_t, std::size_t);
template void mirror<float>(float*, std::size_t, int);
template void mirror<double>(double*, std::size_t, int);
template void gather<float>(const float*, std::size_t, std::size_t, const std::size_t*, std::size_t, float*, int);
template void gather<double>(const double*, std::size_t, std::size_t, const std::size_t*, std::size_t, double*, int);
template void combine<float>(const float*, std::size_t, std::size_t, const double*, float*, int);
template void combine<double>(const double*, std::size_t, std::size_t, const double*, double*, int);
template void matvecs<float>(const float*, std::size_t, std::size_t, const double*, std::size_t, const std::uint8_t*,
                            double*, int);
template void matvecs<double>(const double*, std::size_t, std::size_t, const double*, std::size_t,
                             const std::uint8_t*, double*, int);
template void energies<float>(const float*, std::size_t, std::size_t, const double*, std::size_t, double*, int);
template void energies<double>(const double*, std::size_t, std::size_t, const double*, std::size_t, double*, int);

}  // namespace kernelweave
