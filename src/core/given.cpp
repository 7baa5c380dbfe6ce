#include "given.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "add_scaled.hpp"
#include "packed.hpp"
#include "parallel.hpp"
#include "runs.hpp"
#include "weighted_image.hpp"

namespace kernelweave {
namespace {

constexpr std::size_t kFour = 4;  // matrices, or rows of one, that are read together
constexpr std::size_t kAhead = 4;  // rows from being asked for to being read
constexpr std::size_t kFar = 16;  // entries of a diagonal from being asked for to being read: each is in a line of its own
constexpr std::size_t kBlock = 8;  // rows per report: small enough to balance the triangle's growing rows

constexpr std::size_t kTall = 32;  // rows of a matrix that are packed one after the other: streams are the longer for it
constexpr std::size_t kBuffer = 1 << 15;  // entries that a thread adds up before it hands them out: a fraction of its cache

std::size_t row_blocks(std::size_t n) { return (n + kBlock - 1) / kBlock; }

// Where the chunk is that follows the one from `start` on in row i of a lower triangle.
std::size_t place_after(std::size_t i, std::size_t start, std::size_t n) {
    return start + kChunk <= i ? i * n + start + kChunk : std::min(i + 1, n - 1) * n;
}

// visit(block, i) for all rows, those of a block one after the other, blocks side by side.
template <class Visit>
void walk_rows(std::size_t n, int n_threads, const Visit& visit) {
    parallel_for(row_blocks(n), n_threads, [&](std::size_t task) {
        const std::size_t block = row_blocks(n) - 1 - task;  // longest rows first: no thread is left with a long tail
        for (std::size_t i = block * kBlock; i < std::min(n, (block + 1) * kBlock); ++i) visit(block, i);
    });
}

// The same where visits fill the rows of the lower triangle of `out`: they are mirrored while they are in the cache.
template <class T, class Visit>
void fill_rows(T* out, std::size_t n, int n_threads, const Visit& visit) {
    const std::size_t tasks = (n + kMirrored - 1) / kMirrored;
    parallel_for(tasks, n_threads, [&](std::size_t task) {
        const std::size_t start = (tasks - 1 - task) * kMirrored, stop = std::min(n, start + kMirrored);
        for (std::size_t i = start; i < stop; ++i) visit(i / kBlock, i);
        mirror_rows(out, n, start, stop);
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

// Entries of a row in the runs as far as number `last`, less their shifts; returns whether one is not finite.
template <class T>
inline std::int64_t take_runs(const double* row, const Run* runs, std::size_t n_runs, std::size_t last,
                              const double* shift, T* KERNELWEAVE_RESTRICT out) {
    const double own = shift[last];
    std::int64_t found = 0;
    visit_runs(runs, n_runs, last, [&](std::size_t start, std::size_t first, std::size_t length) {
        const double *entries = row + start, *shifts = shift + first;
        T* KERNELWEAVE_RESTRICT place = out + first;
        for (std::size_t j = 0; j < length; ++j) {
            const double entry = entries[j] - own - shifts[j];
            found |= std::abs(entry) <= std::numeric_limits<double>::max() ? 0 : 1;  // also where it is NaN
            place[j] = static_cast<T>(entry);
        }
    });
    return found;
}

KERNELWEAVE_CLONES std::int64_t take_row(const double* row, const Run* runs, std::size_t n_runs, std::size_t last,
                                         const double* shift, float* out) {
    return take_runs(row, runs, n_runs, last, shift, out);
}
KERNELWEAVE_CLONES std::int64_t take_row(const double* row, const Run* runs, std::size_t n_runs, std::size_t last,
                                         const double* shift, double* out) {
    return take_runs(row, runs, n_runs, last, shift, out);
}

// Checks matrices on the way, four rows at a time.
class Inspector {
public:
    Inspector(const Matrices& K, std::size_t n, const double* roots, const double* probes)
        : K_(K), n_(n), roots_(roots), left_(probes), right_(probes + n), least_(K.size()) {
        for (std::size_t m = 0; m < K.size(); ++m) least_[m] = *std::min_element(roots + m * n, roots + (m + 1) * n);
    }

    // Matrix m, or another in its place where there are no more.
    std::size_t filled_up(std::size_t m, std::size_t other) const { return m < K_.size() ? m : other; }

    // The tilt of the entries [start, start + length) of row i.
    void set_tilt(std::size_t i, std::size_t start, std::size_t length, double* tilt) const {
        tilt_row(left_[i], right_[i], left_ + start, right_ + start, tilt, length);
    }

    // Read entries [start, start + length) of row i of the matrices m, m + 1, .., which `look(rows)` does. Afterwards the
    // rows of the matrices `then`, then + 1, .. are read that begin at place `later`.
    template <class Look>
    void read(std::size_t m, std::size_t i, std::size_t start, std::size_t length, std::size_t then, std::size_t later,
              AdmitReport* reports, const Look& look) const {
        const std::size_t several = std::min(kFour, K_.size() - m);
        FourRows rows{};
        for (std::size_t r = 0; r < kFour; ++r) {
            const std::size_t k = filled_up(m + r, m);
            rows.row[r] = K_[k] + i * n_ + start;
            rows.next[r] = K_[filled_up(then + r, then)] + later;
        }
        look(rows);
        for (std::size_t r = 0; r < several; ++r) {
            const double* own = roots_ + (m + r) * n_;
            const bool plain = std::isfinite(rows.asymmetry[r]) && rows.largest[r] <= own[i] * least_[m + r];
            if (!plain && !within_minors(rows.row[r], own + start, own[i], length)) reports[r].minors = false;
            reports[r].asymmetry += rows.asymmetry[r];
        }
    }

private:
    const Matrices& K_;
    std::size_t n_;
    const double *roots_, *left_, *right_;
    std::vector<double> least_;  // root of the least diagonal entry of each matrix
};

}  // namespace

void diagonals(const Matrices& K, std::size_t n, double* out, int n_threads) {
    parallel_for(K.size(), n_threads, [&](std::size_t m) {
        for (std::size_t i = 0; i < n; ++i) {
            if (i + kFar < n) fetch(K[m] + (i + kFar) * (n + 1));
            out[m * n + i] = K[m][i * (n + 1)];
        }
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
            if (c + 1 < n_chosen) fetch_ahead(K[m] + chosen[c + 1] * n, n);
            for (std::size_t j = 0; j < n; ++j) means[j] += share * row[j];
        }
        double grand = 0.0;
        for (std::size_t c = 0; c < n_chosen; ++c) grand += share * means[chosen[c]];
        for (std::size_t j = 0; j < n; ++j) means[j] -= 0.5 * grand;
    });
}

template <class T>
std::vector<AdmitReport> admit_all(const Matrices& K, std::size_t n, const double* roots, const double* probes,
                                   const double* shifts, T* packed, double* even, int n_threads) {
    const Inspector inspector(K, n, roots, probes);
    const std::size_t tall = std::max(kBlock, std::min(kTall, kBuffer / n)), blocks = (n + tall - 1) / tall;
    std::vector<AdmitReport> parts(blocks * K.size(), AdmitReport{true, 0.0});
    parallel_for(blocks, n_threads, [&](std::size_t task) {
        const std::size_t block = blocks - 1 - task, first = block * tall, stop = std::min(n, first + tall);
        std::vector<double> sums(tall * n), tilts(tall * n);
        std::vector<T> nowhere((kFour - 1) * n);  // for matrices that fill up: no two may have one place
        for (std::size_t i = first; i < stop; ++i) inspector.set_tilt(i, 0, i + 1, tilts.data() + (i - first) * n);
        for (std::size_t m = 0; m < K.size(); m += kFour) {
            for (std::size_t i = first; i < stop; ++i) {
                FourPlaces<T> places{};
                places.sum = sums.data() + (i - first) * n;
                for (std::size_t r = 0; r < kFour; ++r) {
                    const bool fills = m + r >= K.size();
                    const std::size_t k = fills ? m : m + r;
                    places.shift[r] = shifts + k * n;
                    places.own[r] = shifts[k * n + i];
                    places.weight[r] = fills ? 0.0 : 1.0;
                    places.out[r] = fills ? nowhere.data() + (r - 1) * n : packed + k * triangle(n) + triangle(i);
                }
                const bool last = i + 1 == stop;
                const std::size_t then = last && m + kFour < K.size() ? m + kFour : m, later = (last ? first : i + 1) * n;
                inspector.read(m, i, 0, i + 1, then, later, parts.data() + block * K.size() + m, [&](FourRows& rows) {
                    inspect_and_pack(rows, tilts.data() + (i - first) * n, places, i + 1);
                });
            }
        }
        if (even == nullptr) return;
        for (std::size_t i = first; i < stop; ++i)
            std::copy_n(sums.data() + (i - first) * n, i + 1, even + i * n);
    });
    return added_up(parts, K.size());
}

template <class T>
void combine_all(const Matrices& K, std::size_t n, const double* eta, const double* shift, T* out, int n_threads) {
    const WeightedSum<double> sum(K, eta);
    fill_rows(out, n, n_threads, [&](std::size_t, std::size_t i) {
        double acc[kChunk];
        for (std::size_t start = 0; start <= i; start += kChunk) {
            const std::size_t length = std::min(kChunk, i + 1 - start);
            T* row = out + i * n + start;
            for (std::size_t j = 0; j < length; ++j) acc[j] = -(shift[i] + shift[start + j]);
            sum.add(acc, i * n + start, length, place_after(i, start, n));
            for (std::size_t j = 0; j < length; ++j) row[j] = static_cast<T>(acc[j]);
        }
    });
}

template <class T>
std::vector<AdmitReport> admit_and_combine(const Matrices& K, std::size_t n, const double* roots, const double* probes,
                                       const double* eta, const double* shift, T* out, int n_threads) {
    const Inspector inspector(K, n, roots, probes);
    std::vector<AdmitReport> parts(row_blocks(n) * K.size(), AdmitReport{true, 0.0});
    fill_rows(out, n, n_threads, [&](std::size_t block, std::size_t i) {
        AdmitReport* reports = parts.data() + block * K.size();
        double acc[kChunk], tilt[kChunk];
        for (std::size_t start = 0; start <= i; start += kChunk) {
            const std::size_t length = std::min(kChunk, i + 1 - start);
            inspector.set_tilt(i, start, length, tilt);
            for (std::size_t j = 0; j < length; ++j) acc[j] = -(shift[i] + shift[start + j]);
            for (std::size_t m = 0; m < K.size(); m += kFour) {
                const bool last = m + kFour >= K.size();
                const std::size_t then = last ? 0 : m + kFour, later = last ? place_after(i, start, n) : i * n + start;
                inspector.read(m, i, start, length, then, later, reports + m, [&](FourRows& rows) {
                    for (std::size_t r = 0; r < kFour; ++r) rows.weight[r] = m + r < K.size() ? eta[m + r] : 0.0;
                    inspect_and_add(rows, tilt, acc, length);
                });
            }
            T* row = out + i * n + start;
            for (std::size_t j = 0; j < length; ++j) row[j] = static_cast<T>(acc[j]);
        }
    });
    return added_up(parts, K.size());
}

template <class T>
bool take_all(const Matrices& K, std::size_t n, const std::size_t* chosen, std::size_t n_chosen, const double* shifts,
              T* packed, int n_threads) {
    const std::vector<Run> runs = runs_of(chosen, n_chosen);
    std::vector<std::int64_t> broken(K.size());
    parallel_for(K.size(), n_threads, [&](std::size_t m) {
        std::int64_t found = 0;
        const double* shift = shifts + m * n_chosen;
        T* place = packed + m * triangle(n_chosen);
        for (std::size_t a = 0; a < n_chosen; ++a) {
            if (a + kAhead < n_chosen) fetch_runs(K[m] + chosen[a + kAhead] * n, runs, a + kAhead);
            found |= take_row(K[m] + chosen[a] * n, runs.data(), runs.size(), a, shift, place + triangle(a));
        }
        broken[m] = found;
    });
    return std::all_of(broken.begin(), broken.end(), [](std::int64_t found) { return found == 0; });
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
                    const bool last = m + kFour >= K.size();
                    const std::size_t then = last ? 0 : m + kFour, later = last ? place_after(i, start, n) : i * n + start;
                    const double *rows[kFour], *next[kFour];
                    for (std::size_t r = 0; r < kFour; ++r) {
                        rows[r] = K[r < several ? m + r : m] + i * n + start;
                        next[r] = K[then + r < K.size() ? then + r : then] + later;
                    }
                    double dots[kFour];
                    dot_four_rows(rows, next, v + start, length, dots);
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
                                                   const double*, float*, double*, int);
template std::vector<AdmitReport> admit_all<double>(const Matrices&, std::size_t, const double*, const double*,
                                                    const double*, double*, double*, int);

template std::vector<AdmitReport> admit_and_combine<float>(const Matrices&, std::size_t, const double*, const double*,
                                                       const double*, const double*, float*, int);
template std::vector<AdmitReport> admit_and_combine<double>(const Matrices&, std::size_t, const double*, const double*,
                                                        const double*, const double*, double*, int);
template bool take_all<float>(const Matrices&, std::size_t, const std::size_t*, std::size_t, const double*, float*,
                              int);
template bool take_all<double>(const Matrices&, std::size_t, const std::size_t*, std::size_t, const double*, double*,
                               int);
template void combine_all<float>(const Matrices&, std::size_t, const double*, const double*, float*, int);
template void combine_all<double>(const Matrices&, std::size_t, const double*, const double*, double*, int);

}  // namespace kernelweave
