// Compiled without reassociation: rounding to whole numbers in exp2_minus_1 works by adding a large number.
#include "pairs.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "dispatch.hpp"
#include "lanes.hpp"
#include "parallel.hpp"

namespace kernelweave {
namespace {

constexpr std::size_t kTile = 8;     // rows that meet the same panel at a time: their values stay in registers
constexpr std::size_t kRows = 512;   // rows whose products are added up in T before they are added to a double
constexpr double kLog2E = 1.4426950408889634;

// A function with its number ready for use: y = -rate t or -rate sqrt(t) is the exponent to the base 2, or u = rate t.
template <class T>
struct Function {
    Shape shape;
    T rate, offset;
    std::int64_t degree;

    double at_zero() const { return shape == Shape::kPower ? 0.0 : 1.0; }  // what `values` leaves out
};

// The functions of one argument that are evaluated together.
template <class T>
struct KernelSet {
    Argument argument;
    std::vector<Function<T>> functions;
    bool roots = false;  // whether one of them is a function of the distance rather than of its square

    explicit KernelSet(const Functions& kernels) : argument(kernels.argument) {
        for (std::size_t a = 0; a < kernels.count; ++a) {
            const auto shape = static_cast<Shape>(kernels.shape[a]);
            const bool root = shape == Shape::kExpRoot || shape == Shape::kInverseRoot;
            const bool exponential = shape == Shape::kExp || shape == Shape::kExpRoot;
            const double rate = (root ? std::sqrt(kernels.gamma[a]) : kernels.gamma[a]) * (exponential ? kLog2E : 1.0);
            functions.push_back({shape, static_cast<T>(rate), static_cast<T>(kernels.offset[a]), kernels.degree[a]});
            roots = roots || root;
        }
    }

    // What sum_a weights_a k_a has of the ones that `values` leaves out.
    double at_zero(const double* weights) const {
        double sum = 0.0;
        for (std::size_t a = 0; a < functions.size(); ++a) sum += weights[a] * functions[a].at_zero();
        return sum;
    }
};

// Rows [start, start + lanes) of a set, column by column: panel[k, l]. Lanes beyond the last row repeat it.
template <class T>
void fill_panel(RowSet<T> set, std::size_t start, T* panel) {
    for (std::size_t l = 0; l < kLanes<T>; ++l) {
        const T* row = set.rows + std::min(start + l, set.count - 1) * set.width;
        for (std::size_t k = 0; k < set.width; ++k) panel[k * kLanes<T> + l] = row[k];
    }
}

// The arguments t of kTile rows and one panel.
template <class T>
KERNELWEAVE_INLINE void arguments(Argument argument, const T* rows, std::size_t width, const T* panel, Lanes<T>* t) {
    Lanes<T> sum[kTile];
    for (std::size_t r = 0; r < kTile; ++r) sum[r] = Lanes<T>{};
    if (argument == Argument::kDistance) {
        for (std::size_t k = 0; k < width; ++k) {
            const Lanes<T> column = load(panel + k * kLanes<T>);
            for (std::size_t r = 0; r < kTile; ++r) {
                const Lanes<T> difference = column - rows[r * width + k];
                sum[r] = sum[r] + difference * difference;
            }
        }
    } else {
        for (std::size_t k = 0; k < width; ++k) {
            const Lanes<T> column = load(panel + k * kLanes<T>);
            for (std::size_t r = 0; r < kTile; ++r) sum[r] = sum[r] + column * rows[r * width + k];
        }
    }
    for (std::size_t r = 0; r < kTile; ++r) t[r] = sum[r];
}

// The values of one function, of a radial one less 1: wide kernels are all but constant, and so keep their digits.
template <class T>
KERNELWEAVE_INLINE void values(const Function<T>& f, const Lanes<T>* t, const Lanes<T>* root, Lanes<T>* out) {
    switch (f.shape) {
        case Shape::kExp:
            for (std::size_t r = 0; r < kTile; ++r) out[r] = exp2_minus_1<T>(t[r] * -f.rate);
            break;
        case Shape::kExpRoot:
            for (std::size_t r = 0; r < kTile; ++r) out[r] = exp2_minus_1<T>(root[r] * -f.rate);
            break;
        case Shape::kInverse:
            for (std::size_t r = 0; r < kTile; ++r) out[r] = (t[r] * -f.rate) / (t[r] * f.rate + T(1));
            break;
        case Shape::kInverseRoot:
            for (std::size_t r = 0; r < kTile; ++r) out[r] = (root[r] * -f.rate) / (root[r] * f.rate + T(1));
            break;
        case Shape::kPower:
            for (std::size_t r = 0; r < kTile; ++r) {
                const Lanes<T> base = t[r] * f.rate + f.offset;
                Lanes<T> value = base;
                for (std::int64_t k = 1; k < f.degree; ++k) value = value * base;
                out[r] = value;
            }
            break;
    }
}

// Arguments of one tile, and the values of any function of them.
template <class T>
struct Tile {
    Lanes<T> t[kTile], root[kTile], value[kTile];

    KERNELWEAVE_INLINE void read(const KernelSet<T>& kernels, const T* rows, std::size_t width, const T* panel) {
        arguments<T>(kernels.argument, rows, width, panel, t);
        if (kernels.roots)
            for (std::size_t r = 0; r < kTile; ++r) root[r] = square_root<T>(t[r]);
    }
    KERNELWEAVE_INLINE void evaluate(const Function<T>& f) { values<T>(f, t, root, value); }

    // total = constant + sum_a weights_a k_a
    KERNELWEAVE_INLINE void weighted_sum(const KernelSet<T>& kernels, const T* weights, T constant, Lanes<T>* total) {
        Lanes<T> sum[kTile];
        for (std::size_t r = 0; r < kTile; ++r) sum[r] = all_lanes<T>(constant);
        for (std::size_t a = 0; a < kernels.functions.size(); ++a) {
            evaluate(kernels.functions[a]);
            for (std::size_t r = 0; r < kTile; ++r) sum[r] = sum[r] + value[r] * weights[a];
        }
        for (std::size_t r = 0; r < kTile; ++r) total[r] = sum[r];
    }
};

// Some rows of a set, a multiple of kTile, with their coefficients coef[c * stride + row] in n_columns columns c.
template <class T>
struct Strip {
    const T *rows, *coef;
    std::size_t count, width, n_columns, stride;
};

// sums[c] += sum_r value_r coef[c, j + r] for every column c; a sum is one panel of lanes.
template <class T>
KERNELWEAVE_INLINE void add_tile(const Lanes<T>* value, const Strip<T>& strip, std::size_t j, T* sums) {
    for (std::size_t c = 0; c < strip.n_columns; ++c) {
        const T* factors = strip.coef + c * strip.stride + j;
        Lanes<T> sum = load(sums + c * kLanes<T>);
        for (std::size_t r = 0; r < kTile; ++r) sum = sum + value[r] * factors[r];
        store<T>(sum, sums + c * kLanes<T>);
    }
}

// Sums over a strip of k_a(panel, row) coef[c, row], for every kernel a and, after each other, its columns c.
template <class T>
KERNELWEAVE_INLINE void add_products_of(const T* panel, const Strip<T>& strip, const KernelSet<T>& kernels, T* sums) {
    for (std::size_t j = 0; j < strip.count; j += kTile) {
        Tile<T> tile;
        tile.read(kernels, strip.rows + j * strip.width, strip.width, panel);
        for (std::size_t a = 0; a < kernels.functions.size(); ++a) {
            tile.evaluate(kernels.functions[a]);
            add_tile(tile.value, strip, j, sums + a * strip.n_columns * kLanes<T>);
        }
    }
}

KERNELWEAVE_CLONES void panel_products(const float* panel, const Strip<float>& strip,
                                       const KernelSet<float>& kernels, float* sums) {
    add_products_of(panel, strip, kernels, sums);
}
KERNELWEAVE_CLONES void panel_products(const double* panel, const Strip<double>& strip,
                                       const KernelSet<double>& kernels, double* sums) {
    add_products_of(panel, strip, kernels, sums);
}

// The same of sum_a weights_a k_a: one sum per column.
template <class T>
KERNELWEAVE_INLINE void add_weighted_products_of(const T* panel, const Strip<T>& strip, const KernelSet<T>& kernels,
                                                 const T* weights, T* sums) {
    for (std::size_t j = 0; j < strip.count; j += kTile) {
        Tile<T> tile;
        Lanes<T> total[kTile];
        tile.read(kernels, strip.rows + j * strip.width, strip.width, panel);
        tile.weighted_sum(kernels, weights, T(0), total);
        add_tile(total, strip, j, sums);
    }
}

KERNELWEAVE_CLONES void panel_weighted_products(const float* panel, const Strip<float>& strip,
                                                const KernelSet<float>& kernels, const float* weights, float* sums) {
    add_weighted_products_of(panel, strip, kernels, weights, sums);
}
KERNELWEAVE_CLONES void panel_weighted_products(const double* panel, const Strip<double>& strip,
                                                const KernelSet<double>& kernels, const double* weights, double* sums) {
    add_weighted_products_of(panel, strip, kernels, weights, sums);
}

// Coefficients in the precision of the rows, and the sums of what they were before that.
template <class T>
struct Coefficients {
    std::vector<T> rounded;
    std::vector<double> sums;

    Coefficients(const double* coef, std::size_t n_columns, std::size_t n) : rounded(n_columns * n) {
        std::transform(coef, coef + n_columns * n, rounded.begin(), [](double c) { return static_cast<T>(c); });
        for (std::size_t c = 0; c < n_columns; ++c)
            sums.push_back(std::accumulate(coef + c * n, coef + (c + 1) * n, 0.0));
    }
};

// The rows of a set with their coefficients as strips. A last tile that is not full repeats the last row, with
// coefficients of zero.
template <class T>
class Strips {
public:
    Strips(RowSet<T> set, const std::vector<T>& coef, std::size_t n_columns)
        : set_(set), coef_(coef.data()), n_columns_(n_columns), whole_(set.count / kTile * kTile) {
        if (whole_ == set.count) return;
        tail_.resize(kTile * set.width);
        tail_coef_.assign(kTile * n_columns, T(0));
        for (std::size_t r = 0; r < kTile; ++r)
            std::copy_n(set.rows + std::min(whole_ + r, set.count - 1) * set.width, set.width,
                        tail_.data() + r * set.width);
        for (std::size_t c = 0; c < n_columns; ++c)
            std::copy(coef_ + c * set.count + whole_, coef_ + (c + 1) * set.count, tail_coef_.data() + c * kTile);
    }

    // visit(strip) for the rows from `start` on, kRows at most.
    template <class Visit>
    void visit(std::size_t start, const Visit& visit) const {
        const std::size_t stop = std::min(whole_, start + kRows);
        const T *rows = set_.rows + start * set_.width, *coef = coef_ + start;
        visit(Strip<T>{rows, coef, stop - start, set_.width, n_columns_, set_.count});
        if (whole_ < set_.count && start + kRows >= set_.count)
            visit(Strip<T>{tail_.data(), tail_coef_.data(), kTile, set_.width, n_columns_, kTile});
    }

private:
    RowSet<T> set_;
    const T* coef_;
    std::size_t n_columns_;
    std::size_t whole_;  // rows in full tiles
    std::vector<T> tail_, tail_coef_;
};

// out[s, i] += sum s of row i of `left`, as add(panel, strip, sums) adds it up over strips, and from_ones[s].
template <class T, class Add>
void products(RowSet<T> left, RowSet<T> right, const std::vector<T>& coef, std::size_t n_columns,
              const std::vector<double>& from_ones, const Add& add, double* out, int n_threads) {
    if (left.count == 0 || right.count == 0) return;
    const Strips<T> strips(right, coef, n_columns);
    const std::size_t n_sums = from_ones.size(), n_panels = (left.count + kLanes<T> - 1) / kLanes<T>;
    parallel_for(n_panels, n_threads, [&](std::size_t p) {
        std::vector<T> panel(left.width * kLanes<T>), sums(n_sums * kLanes<T>);
        std::vector<double> totals(n_sums * kLanes<T>, 0.0);
        fill_panel(left, p * kLanes<T>, panel.data());
        for (std::size_t start = 0; start < right.count; start += kRows) {
            std::fill(sums.begin(), sums.end(), T(0));
            strips.visit(start, [&](const Strip<T>& strip) { add(panel.data(), strip, sums.data()); });
            for (std::size_t s = 0; s < sums.size(); ++s) totals[s] += static_cast<double>(sums[s]);
        }
        const std::size_t here = std::min(kLanes<T>, left.count - p * kLanes<T>);
        for (std::size_t s = 0; s < n_sums; ++s)
            for (std::size_t l = 0; l < here; ++l)
                out[s * left.count + p * kLanes<T> + l] += totals[s * kLanes<T> + l] + from_ones[s];
    });
}

// kTile rows that meet a panel, and the part of a matrix, or of a stack of them, that values of the first n_rows and of
// the first n_lanes go to.
template <class T>
struct Meeting {
    const T *rows, *panel;
    std::size_t width;
    T* out;
    std::size_t n_rows, n_lanes, row_length;
};

// out[a * plane + ...] = k_a
template <class T>
KERNELWEAVE_INLINE void write_values(Meeting<T> at, const KernelSet<T>& kernels, std::size_t plane) {
    Tile<T> tile;
    tile.read(kernels, at.rows, at.width, at.panel);
    alignas(kLaneBytes) T line[kLanes<T>];
    for (std::size_t a = 0; a < kernels.functions.size(); ++a) {
        tile.evaluate(kernels.functions[a]);
        const T one = static_cast<T>(kernels.functions[a].at_zero());
        for (std::size_t r = 0; r < at.n_rows; ++r) {
            store<T>(tile.value[r] + one, line);
            std::copy(line, line + at.n_lanes, at.out + a * plane + r * at.row_length);
        }
    }
}

KERNELWEAVE_CLONES void panel_values(const Meeting<float>& at, const KernelSet<float>& kernels, std::size_t plane) {
    write_values(at, kernels, plane);
}
KERNELWEAVE_CLONES void panel_values(const Meeting<double>& at, const KernelSet<double>& kernels, std::size_t plane) {
    write_values(at, kernels, plane);
}

// out += sum_a weights_a k_a; `ones` is what the ones of radial functions add to that.
template <class T>
KERNELWEAVE_INLINE void write_weighted_values(Meeting<T> at, const KernelSet<T>& kernels, const T* weights,
                                              T ones) {
    Tile<T> tile;
    Lanes<T> total[kTile];
    tile.read(kernels, at.rows, at.width, at.panel);
    tile.weighted_sum(kernels, weights, ones, total);
    alignas(kLaneBytes) T line[kLanes<T>];
    for (std::size_t r = 0; r < at.n_rows; ++r) {
        T* row = at.out + r * at.row_length;
        if (at.n_lanes == kLanes<T>) {
            store<T>(load<T>(row) + total[r], row);
            continue;
        }
        store<T>(total[r], line);
        for (std::size_t l = 0; l < at.n_lanes; ++l) row[l] += line[l];
    }
}

KERNELWEAVE_CLONES void panel_weighted_values(const Meeting<float>& at, const KernelSet<float>& kernels,
                                              const float* weights, float ones) {
    write_weighted_values(at, kernels, weights, ones);
}
KERNELWEAVE_CLONES void panel_weighted_values(const Meeting<double>& at, const KernelSet<double>& kernels,
                                              const double* weights, double ones) {
    write_weighted_values(at, kernels, weights, ones);
}

// write(meeting) for all tiles of `left` and panels of `right`; only up to the diagonal if `triangle`.
template <class T, class Write>
void visit_meetings(RowSet<T> left, RowSet<T> right, bool triangle, T* out, int n_threads, const Write& write) {
    if (left.count == 0 || right.count == 0) return;
    const std::size_t n_panels = (right.count + kLanes<T> - 1) / kLanes<T>, width = left.width;
    std::vector<T> panels(n_panels * width * kLanes<T>);
    for (std::size_t p = 0; p < n_panels; ++p) fill_panel(right, p * kLanes<T>, panels.data() + p * width * kLanes<T>);
    const std::size_t n_tiles = (left.count + kTile - 1) / kTile;
    parallel_for(n_tiles, n_threads, [&](std::size_t tile) {
        const std::size_t i = tile * kTile, here = std::min(kTile, left.count - i);
        std::vector<T> rows(kTile * width);
        for (std::size_t r = 0; r < kTile; ++r)
            std::copy_n(left.rows + (i + std::min(r, here - 1)) * width, width, rows.data() + r * width);
        for (std::size_t p = 0; p < n_panels; ++p) {
            const std::size_t j = p * kLanes<T>;
            if (triangle && j > i + here - 1) break;
            write(Meeting<T>{rows.data(), panels.data() + p * width * kLanes<T>, width, out + i * right.count + j, here,
                             std::min(kLanes<T>, right.count - j), right.count});
        }
    });
}

template <class T>
void add_weighted(RowSet<T> left, RowSet<T> right, const Functions& given, const double* weights, bool triangle, T* out,
                  int n_threads) {
    const KernelSet<T> kernels(given);
    const std::vector<T> factors(weights, weights + given.count);
    const auto ones = static_cast<T>(kernels.at_zero(weights));
    visit_meetings<T>(left, right, triangle, out, n_threads, [&](const Meeting<T>& at) {
        panel_weighted_values(at, kernels, factors.data(), ones);
    });
}

// 1/2 sum of coef_i coef_j k_a over the pairs of one panel with a strip, whose rows from `own` on are the panel's; each
// pair of different rows counts twice.
template <class T>
KERNELWEAVE_INLINE void add_energies_of(const T* panel, const T* panel_coef, std::size_t own, const Strip<T>& strip,
                                        const KernelSet<T>& kernels, T* sums) {
    for (std::size_t i = 0; i < strip.count; i += kTile) {
        Tile<T> tile;
        tile.read(kernels, strip.rows + i * strip.width, strip.width, panel);
        // Tiles within the panel meet every pair in both orders.
        const T often = i < own ? T(1) : T(0.5);
        Lanes<T> weight[kTile];
        for (std::size_t r = 0; r < kTile; ++r) weight[r] = Lanes<T>{};
        for (std::size_t c = 0; c < strip.n_columns; ++c) {
            const Lanes<T> other = load(panel_coef + c * kLanes<T>) * often;
            const T* factors = strip.coef + c * strip.stride + i;
            for (std::size_t r = 0; r < kTile; ++r) weight[r] = weight[r] + other * factors[r];
        }
        for (std::size_t a = 0; a < kernels.functions.size(); ++a) {
            tile.evaluate(kernels.functions[a]);
            Lanes<T> sum = load(sums + a * kLanes<T>);
            for (std::size_t r = 0; r < kTile; ++r) sum = sum + tile.value[r] * weight[r];
            store<T>(sum, sums + a * kLanes<T>);
        }
    }
}

KERNELWEAVE_CLONES void panel_energies(const float* panel, const float* panel_coef, std::size_t own,
                                       const Strip<float>& strip, const KernelSet<float>& kernels, float* sums) {
    add_energies_of(panel, panel_coef, own, strip, kernels, sums);
}
KERNELWEAVE_CLONES void panel_energies(const double* panel, const double* panel_coef, std::size_t own,
                                       const Strip<double>& strip, const KernelSet<double>& kernels, double* sums) {
    add_energies_of(panel, panel_coef, own, strip, kernels, sums);
}

}  // namespace

template <class T>
void kernel_values(RowSet<T> left, RowSet<T> right, const Functions& given, T* out, int n_threads) {
    const KernelSet<T> kernels(given);
    visit_meetings<T>(left, right, false, out, n_threads,
                      [&](const Meeting<T>& at) { panel_values(at, kernels, left.count * right.count); });
}

template <class T>
void add_weighted_values(RowSet<T> left, RowSet<T> right, const Functions& kernels, const double* weights, T* out,
                         int n_threads) {
    add_weighted<T>(left, right, kernels, weights, false, out, n_threads);
}

template <class T>
void add_weighted_gram(RowSet<T> rows, const Functions& kernels, const double* weights, T* out, int n_threads) {
    add_weighted<T>(rows, rows, kernels, weights, true, out, n_threads);
}

template <class T>
void add_products(RowSet<T> left, RowSet<T> right, const double* coef, std::size_t n_columns, const Functions& given,
                  double* out, int n_threads) {
    const KernelSet<T> kernels(given);
    const Coefficients<T> own(coef, n_columns, right.count);
    std::vector<double> from_ones;
    for (const Function<T>& f : kernels.functions)
        for (const double sum : own.sums) from_ones.push_back(f.at_zero() * sum);
    const auto add = [&](const T* panel, const Strip<T>& strip, T* sums) {
        panel_products(panel, strip, kernels, sums);
    };
    products(left, right, own.rounded, n_columns, from_ones, add, out, n_threads);
}

template <class T>
void add_weighted_products(RowSet<T> left, RowSet<T> right, const double* coef, std::size_t n_columns,
                           const Functions& given, const double* weights, double* out, int n_threads) {
    const KernelSet<T> kernels(given);
    const Coefficients<T> own(coef, n_columns, right.count);
    const std::vector<T> factors(weights, weights + given.count);
    std::vector<double> from_ones;
    for (const double sum : own.sums) from_ones.push_back(kernels.at_zero(weights) * sum);
    const auto add = [&](const T* panel, const Strip<T>& strip, T* sums) {
        panel_weighted_products(panel, strip, kernels, factors.data(), sums);
    };
    products(left, right, own.rounded, n_columns, from_ones, add, out, n_threads);
}

template <class T>
void pair_energies(RowSet<T> given_rows, const double* given_coef, std::size_t n_columns, const Functions& given,
                   double* out, int n_threads) {
    const KernelSet<T> kernels(given);
    const Coefficients<T> own(given_coef, n_columns, given_rows.count);
    std::fill(out, out + given.count, 0.0);
    if (given_rows.count == 0) return;
    // Filled up to whole panels with rows of coefficient zero.
    const std::size_t n_panels = (given_rows.count + kLanes<T> - 1) / kLanes<T>, n = n_panels * kLanes<T>;
    const std::size_t width = given_rows.width;
    std::vector<T> rows(n * width), coef(n * n_columns, T(0));
    for (std::size_t i = 0; i < n; ++i)
        std::copy_n(given_rows.rows + std::min(i, given_rows.count - 1) * width, width, rows.data() + i * width);
    for (std::size_t c = 0; c < n_columns; ++c)
        std::copy_n(own.rounded.data() + c * given_rows.count, given_rows.count, coef.data() + c * n);
    // One row of sums per panel, so that digits do not depend on threads.
    std::vector<double> parts(n_panels * given.count, 0.0);
    parallel_for(n_panels, n_threads, [&](std::size_t task) {
        const std::size_t p = n_panels - 1 - task, first = p * kLanes<T>;  // the longest ones first
        std::vector<T> panel(width * kLanes<T>), panel_coef(n_columns * kLanes<T>), sums(given.count * kLanes<T>);
        fill_panel(RowSet<T>{rows.data(), n, width}, first, panel.data());
        for (std::size_t c = 0; c < n_columns; ++c)
            std::copy_n(coef.data() + c * n + first, kLanes<T>, panel_coef.data() + c * kLanes<T>);
        for (std::size_t start = 0; start < first + kLanes<T>; start += kRows) {
            const std::size_t stop = std::min(first + kLanes<T>, start + kRows);
            std::fill(sums.begin(), sums.end(), T(0));
            const Strip<T> strip{rows.data() + start * width, coef.data() + start, stop - start, width, n_columns, n};
            panel_energies(panel.data(), panel_coef.data(), first - start, strip, kernels, sums.data());
            for (std::size_t a = 0; a < given.count; ++a)
                for (std::size_t l = 0; l < kLanes<T>; ++l)
                    parts[p * given.count + a] += static_cast<double>(sums[a * kLanes<T> + l]);
        }
    });
    for (std::size_t p = 0; p < n_panels; ++p)
        for (std::size_t a = 0; a < given.count; ++a) out[a] += parts[p * given.count + a];
    double from_ones = 0.0;
    for (const double sum : own.sums) from_ones += 0.5 * sum * sum;
    for (std::size_t a = 0; a < given.count; ++a) out[a] += kernels.functions[a].at_zero() * from_ones;
}

#define KERNELWEAVE_INSTANTIATE(T)                                                                                    \
    template void kernel_values<T>(RowSet<T>, RowSet<T>, const Functions&, T*, int);                                  \
    template void add_weighted_values<T>(RowSet<T>, RowSet<T>, const Functions&, const double*, T*, int);             \
    template void add_weighted_gram<T>(RowSet<T>, const Functions&, const double*, T*, int);                          \
    template void add_products<T>(RowSet<T>, RowSet<T>, const double*, std::size_t, const Functions&, double*, int);  \
    template void add_weighted_products<T>(RowSet<T>, RowSet<T>, const double*, std::size_t, const Functions&,        \
                                           const double*, double*, int);                                              \
    template void pair_energies<T>(RowSet<T>, const double*, std::size_t, const Functions&, double*, int);
KERNELWEAVE_INSTANTIATE(float)
KERNELWEAVE_INSTANTIATE(double)
#undef KERNELWEAVE_INSTANTIATE

}  // namespace kernelweave
