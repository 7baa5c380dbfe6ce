// Compiled without reassociation: rounding to whole numbers in exp2_minus_1 works by adding a large number.
#include "pairs.hpp"

#include <algorithm>
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

    bool needs_root() const { return shape == Shape::kExpRoot || shape == Shape::kInverseRoot; }
    bool is_radial() const { return shape != Shape::kPower; }
};

template <class T>
std::vector<Function<T>> prepared(const Functions& kernels) {
    std::vector<Function<T>> out;
    for (std::size_t a = 0; a < kernels.count; ++a) {
        const auto shape = static_cast<Shape>(kernels.shape[a]);
        const bool root = shape == Shape::kExpRoot || shape == Shape::kInverseRoot;
        const bool exponential = shape == Shape::kExp || shape == Shape::kExpRoot;
        const double rate = (root ? std::sqrt(kernels.gamma[a]) : kernels.gamma[a]) * (exponential ? kLog2E : 1.0);
        out.push_back({shape, static_cast<T>(rate), static_cast<T>(kernels.offset[a]), kernels.degree[a]});
    }
    return out;
}

template <class T>
bool any_root(const std::vector<Function<T>>& functions) {
    return std::any_of(functions.begin(), functions.end(), [](const Function<T>& f) { return f.needs_root(); });
}

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

// The values of one function, of a radial one without its 1.
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

    KERNELWEAVE_INLINE void read(Argument argument, const T* rows, std::size_t width, const T* panel, bool roots) {
        arguments<T>(argument, rows, width, panel, t);
        if (roots)
            for (std::size_t r = 0; r < kTile; ++r) root[r] = square_root<T>(t[r]);
    }
    KERNELWEAVE_INLINE void evaluate(const Function<T>& f) { values<T>(f, t, root, value); }
};

// Sums over j of k_a(panel, right_j) coef[c, j], for rows [start, stop) of right: sums[a * n_columns + c] are lanes. With
// weights the kernels are added up first, and there is one sum per column.
template <class T>
KERNELWEAVE_INLINE void panel_products(const T* panel, RowSet<T> right, std::size_t start, std::size_t stop,
                                       const T* coef, std::size_t n_columns, Argument argument,
                                       const Function<T>* functions, std::size_t count, bool roots, const T* weights,
                                       T* sums) {
    T tail_coef[kTile];
    std::vector<T> tail;
    for (std::size_t j = start; j < stop; j += kTile) {
        const T* rows = right.rows + j * right.width;
        const std::size_t here = std::min(kTile, stop - j);
        if (here < kTile) {  // repeat the last row, with a coefficient of zero
            tail.resize(kTile * right.width);
            for (std::size_t r = 0; r < kTile; ++r)
                std::memcpy(tail.data() + r * right.width, rows + std::min(r, here - 1) * right.width,
                            right.width * sizeof(T));
            rows = tail.data();
        }
        Tile<T> tile;
        tile.read(argument, rows, right.width, panel, roots);
        Lanes<T> total[kTile];
        for (std::size_t r = 0; r < kTile; ++r) total[r] = Lanes<T>{};
        for (std::size_t a = 0; a < count; ++a) {
            tile.evaluate(functions[a]);
            if (weights) {
                for (std::size_t r = 0; r < kTile; ++r) total[r] = total[r] + tile.value[r] * weights[a];
                if (a + 1 < count) continue;
                for (std::size_t r = 0; r < kTile; ++r) tile.value[r] = total[r];
            }
            T* sum_of = sums + (weights ? 0 : a * n_columns) * kLanes<T>;
            for (std::size_t c = 0; c < n_columns; ++c) {
                const T* factors = coef + c * right.count + j;
                if (here < kTile) {
                    for (std::size_t r = 0; r < kTile; ++r) tail_coef[r] = r < here ? factors[r] : T(0);
                    factors = tail_coef;
                }
                Lanes<T> sum = load(sum_of + c * kLanes<T>);
                for (std::size_t r = 0; r < kTile; ++r) sum = sum + tile.value[r] * factors[r];
                store<T>(sum, sum_of + c * kLanes<T>);
            }
        }
    }
}

#define KERNELWEAVE_PANEL_PRODUCTS(T)                                                                                \
    KERNELWEAVE_CLONES void panel_products_of(const T* panel, RowSet<T> right, std::size_t start, std::size_t stop, \
                                              const T* coef, std::size_t n_columns, Argument argument,               \
                                              const Function<T>* functions, std::size_t count, bool roots,           \
                                              const T* weights, T* sums) {                                           \
        panel_products<T>(panel, right, start, stop, coef, n_columns, argument, functions, count, roots, weights,    \
                          sums);                                                                                     \
    }
KERNELWEAVE_PANEL_PRODUCTS(float)
KERNELWEAVE_PANEL_PRODUCTS(double)
#undef KERNELWEAVE_PANEL_PRODUCTS

// Products of every panel of `left`; out has one row of left.count entries per kernel (one, with weights) and column.
template <class T>
void products(RowSet<T> left, RowSet<T> right, const T* coef, std::size_t n_columns, const Functions& kernels,
              const double* weights, double* out, int n_threads) {
    if (left.count == 0 || right.count == 0 || kernels.count == 0) return;
    const auto functions = prepared<T>(kernels);
    const bool roots = any_root(functions);
    const std::size_t n_sums = (weights ? 1 : kernels.count) * n_columns;
    const std::vector<T> factors(weights, weights ? weights + kernels.count : nullptr);
    const std::size_t n_panels = (left.count + kLanes<T> - 1) / kLanes<T>;
    parallel_for(n_panels, n_threads, [&](std::size_t p) {
        std::vector<T> panel(left.width * kLanes<T>), sums(n_sums * kLanes<T>);
        std::vector<double> totals(n_sums * kLanes<T>, 0.0);
        fill_panel(left, p * kLanes<T>, panel.data());
        for (std::size_t start = 0; start < right.count; start += kRows) {
            std::fill(sums.begin(), sums.end(), T(0));
            panel_products_of(panel.data(), right, start, std::min(right.count, start + kRows), coef, n_columns,
                              kernels.argument, functions.data(), functions.size(), roots,
                              weights ? factors.data() : nullptr, sums.data());
            for (std::size_t s = 0; s < sums.size(); ++s) totals[s] += static_cast<double>(sums[s]);
        }
        const std::size_t here = std::min(kLanes<T>, left.count - p * kLanes<T>);
        for (std::size_t s = 0; s < n_sums; ++s)
            for (std::size_t l = 0; l < here; ++l)
                out[s * left.count + p * kLanes<T> + l] += totals[s * kLanes<T> + l];
    });
}

// Values of kTile rows (of which `here` count) and one panel. With weights their sum is added to out[r, l], shifted if
// the 1 of radial functions is to be left out; else kernel a goes to out + a * plane.
template <class T>
KERNELWEAVE_INLINE void panel_values(const T* rows, std::size_t here, std::size_t width, const T* panel,
                                     std::size_t lanes, Argument argument, const Function<T>* functions,
                                     std::size_t count, bool roots, const T* weights, T constant, T* out,
                                     std::size_t row_length, std::size_t plane) {
    Tile<T> tile;
    tile.read(argument, rows, width, panel, roots);
    Lanes<T> total[kTile];
    for (std::size_t r = 0; r < kTile; ++r) total[r] = all_lanes<T>(constant);
    alignas(kLaneBytes) T line[kLanes<T>];
    for (std::size_t a = 0; a < count; ++a) {
        tile.evaluate(functions[a]);
        if (weights) {
            for (std::size_t r = 0; r < kTile; ++r) total[r] = total[r] + tile.value[r] * weights[a];
            continue;
        }
        const T one = functions[a].is_radial() ? T(1) : T(0);
        for (std::size_t r = 0; r < here; ++r) {
            store<T>(tile.value[r] + one, line);
            std::copy(line, line + lanes, out + a * plane + r * row_length);
        }
    }
    if (!weights) return;
    for (std::size_t r = 0; r < here; ++r) {
        T* to = out + r * row_length;
        if (lanes == kLanes<T>) {
            store<T>(load<T>(to) + total[r], to);
            continue;
        }
        store<T>(total[r], line);
        for (std::size_t l = 0; l < lanes; ++l) to[l] += line[l];
    }
}

#define KERNELWEAVE_PANEL_VALUES(T)                                                                                 \
    KERNELWEAVE_CLONES void panel_values_of(const T* rows, std::size_t here, std::size_t width, const T* panel,    \
                                            std::size_t lanes, Argument argument, const Function<T>* functions,     \
                                            std::size_t count, bool roots, const T* weights, T constant, T* out,    \
                                            std::size_t row_length, std::size_t plane) {                            \
        panel_values<T>(rows, here, width, panel, lanes, argument, functions, count, roots, weights, constant, out, \
                        row_length, plane);                                                                         \
    }
KERNELWEAVE_PANEL_VALUES(float)
KERNELWEAVE_PANEL_VALUES(double)
#undef KERNELWEAVE_PANEL_VALUES

// Values of all rows of `left` against `right`; only up to the diagonal if `triangle`.
template <class T>
void values_of_pairs(RowSet<T> left, RowSet<T> right, const Functions& kernels, const double* weights, bool shifted,
                     bool triangle, T* out, int n_threads) {
    if (left.count == 0 || right.count == 0) return;
    const auto functions = prepared<T>(kernels);
    const bool roots = any_root(functions);
    const std::vector<T> factors(weights, weights ? weights + kernels.count : nullptr);
    double constant = 0.0;
    if (weights && !shifted)
        for (std::size_t a = 0; a < kernels.count; ++a) constant += functions[a].is_radial() ? weights[a] : 0.0;
    const std::size_t n_panels = (right.count + kLanes<T> - 1) / kLanes<T>;
    std::vector<T> panels(n_panels * right.width * kLanes<T>);
    for (std::size_t p = 0; p < n_panels; ++p)
        fill_panel(right, p * kLanes<T>, panels.data() + p * right.width * kLanes<T>);
    const std::size_t n_tiles = (left.count + kTile - 1) / kTile;
    parallel_for(n_tiles, n_threads, [&](std::size_t tile) {
        const std::size_t i = tile * kTile, here = std::min(kTile, left.count - i);
        std::vector<T> rows(kTile * left.width);
        for (std::size_t r = 0; r < kTile; ++r)
            std::memcpy(rows.data() + r * left.width, left.rows + (i + std::min(r, here - 1)) * left.width,
                        left.width * sizeof(T));
        for (std::size_t p = 0; p < n_panels; ++p) {
            const std::size_t j = p * kLanes<T>;
            if (triangle && j > i + here - 1) break;
            panel_values_of(rows.data(), here, left.width, panels.data() + p * right.width * kLanes<T>,
                            std::min(kLanes<T>, right.count - j), kernels.argument, functions.data(), functions.size(),
                            roots, weights ? factors.data() : nullptr, static_cast<T>(constant),
                            out + i * right.count + j, right.count, left.count * right.count);
        }
    });
}

// 1/2 sum of coef_i coef_j k_a over the pairs of one panel with the rows before its end; each pair of different rows
// counts twice.
template <class T>
KERNELWEAVE_INLINE void panel_energies(const T* panel, std::size_t panel_start, RowSet<T> set, const T* coef,
                                       const T* panel_coef, std::size_t n_columns, std::size_t start, std::size_t stop,
                                       Argument argument, const Function<T>* functions, std::size_t count, bool roots,
                                       T* sums) {
    for (std::size_t i = start; i < stop; i += kTile) {
        Tile<T> tile;
        tile.read(argument, set.rows + i * set.width, set.width, panel, roots);
        // Tiles within the panel meet every pair in both orders.
        const T often = i < panel_start ? T(1) : T(0.5);
        Lanes<T> weight[kTile];
        for (std::size_t r = 0; r < kTile; ++r) weight[r] = Lanes<T>{};
        for (std::size_t c = 0; c < n_columns; ++c) {
            const Lanes<T> other = load(panel_coef + c * kLanes<T>) * often;
            for (std::size_t r = 0; r < kTile; ++r) weight[r] = weight[r] + other * coef[c * set.count + i + r];
        }
        for (std::size_t a = 0; a < count; ++a) {
            tile.evaluate(functions[a]);
            Lanes<T> sum = load(sums + a * kLanes<T>);
            for (std::size_t r = 0; r < kTile; ++r) sum = sum + tile.value[r] * weight[r];
            store<T>(sum, sums + a * kLanes<T>);
        }
    }
}

#define KERNELWEAVE_PANEL_ENERGIES(T)                                                                              \
    KERNELWEAVE_CLONES void panel_energies_of(const T* panel, std::size_t panel_start, RowSet<T> set,             \
                                              const T* coef, const T* panel_coef, std::size_t n_columns,           \
                                              std::size_t start, std::size_t stop, Argument argument,              \
                                              const Function<T>* functions, std::size_t count, bool roots,         \
                                              T* sums) {                                                           \
        panel_energies<T>(panel, panel_start, set, coef, panel_coef, n_columns, start, stop, argument, functions,  \
                          count, roots, sums);                                                                     \
    }
KERNELWEAVE_PANEL_ENERGIES(float)
KERNELWEAVE_PANEL_ENERGIES(double)
#undef KERNELWEAVE_PANEL_ENERGIES

}  // namespace

template <class T>
void kernel_values(RowSet<T> left, RowSet<T> right, const Functions& kernels, T* out, int n_threads) {
    values_of_pairs<T>(left, right, kernels, nullptr, false, false, out, n_threads);
}

template <class T>
void add_weighted_values(RowSet<T> left, RowSet<T> right, const Functions& kernels, const double* weights, bool shifted,
                         T* out, int n_threads) {
    values_of_pairs<T>(left, right, kernels, weights, shifted, false, out, n_threads);
}

template <class T>
void add_weighted_gram(RowSet<T> rows, const Functions& kernels, const double* weights, bool shifted, T* out,
                       int n_threads) {
    values_of_pairs<T>(rows, rows, kernels, weights, shifted, true, out, n_threads);
}

template <class T>
void add_products(RowSet<T> left, RowSet<T> right, const T* coef, std::size_t n_columns, const Functions& kernels,
                  double* out, int n_threads) {
    products<T>(left, right, coef, n_columns, kernels, nullptr, out, n_threads);
}

template <class T>
void add_weighted_products(RowSet<T> left, RowSet<T> right, const T* coef, std::size_t n_columns,
                           const Functions& kernels, const double* weights, double* out, int n_threads) {
    products<T>(left, right, coef, n_columns, kernels, weights, out, n_threads);
}

template <class T>
void pair_energies(RowSet<T> given, const T* given_coef, std::size_t n_columns, const Functions& kernels, double* out,
                   int n_threads) {
    const auto functions = prepared<T>(kernels);
    const bool roots = any_root(functions);
    std::fill(out, out + kernels.count, 0.0);
    if (given.count == 0) return;
    // Filled up to whole panels with rows of coefficient zero.
    const std::size_t n_panels = (given.count + kLanes<T> - 1) / kLanes<T>, n = n_panels * kLanes<T>;
    std::vector<T> rows(n * given.width), coef(n * n_columns, T(0));
    for (std::size_t i = 0; i < n; ++i)
        std::memcpy(rows.data() + i * given.width, given.rows + std::min(i, given.count - 1) * given.width,
                    given.width * sizeof(T));
    for (std::size_t c = 0; c < n_columns; ++c)
        std::copy(given_coef + c * given.count, given_coef + (c + 1) * given.count, coef.data() + c * n);
    const RowSet<T> set{rows.data(), n, given.width};
    std::vector<double> parts(n_panels * kernels.count, 0.0);  // one row per panel, so that digits do not depend on threads
    parallel_for(n_panels, n_threads, [&](std::size_t task) {
        const std::size_t p = n_panels - 1 - task, first = p * kLanes<T>;  // the longest ones first
        std::vector<T> panel(set.width * kLanes<T>), panel_coef(n_columns * kLanes<T>), sums(kernels.count * kLanes<T>);
        fill_panel(set, first, panel.data());
        for (std::size_t c = 0; c < n_columns; ++c)
            std::copy(coef.data() + c * n + first, coef.data() + c * n + first + kLanes<T>,
                      panel_coef.data() + c * kLanes<T>);
        for (std::size_t start = 0; start < first + kLanes<T>; start += kRows) {
            std::fill(sums.begin(), sums.end(), T(0));
            panel_energies_of(panel.data(), first, set, coef.data(), panel_coef.data(), n_columns, start,
                              std::min(first + kLanes<T>, start + kRows), kernels.argument, functions.data(),
                              functions.size(), roots, sums.data());
            for (std::size_t a = 0; a < kernels.count; ++a)
                for (std::size_t l = 0; l < kLanes<T>; ++l)
                    parts[p * kernels.count + a] += static_cast<double>(sums[a * kLanes<T> + l]);
        }
    });
    for (std::size_t p = 0; p < n_panels; ++p)
        for (std::size_t a = 0; a < kernels.count; ++a) out[a] += parts[p * kernels.count + a];
}

#define KERNELWEAVE_INSTANTIATE(T)                                                                                    \
    template void kernel_values<T>(RowSet<T>, RowSet<T>, const Functions&, T*, int);                                  \
    template void add_weighted_values<T>(RowSet<T>, RowSet<T>, const Functions&, const double*, bool, T*, int);       \
    template void add_weighted_gram<T>(RowSet<T>, const Functions&, const double*, bool, T*, int);                    \
    template void add_products<T>(RowSet<T>, RowSet<T>, const T*, std::size_t, const Functions&, double*, int);       \
    template void add_weighted_products<T>(RowSet<T>, RowSet<T>, const T*, std::size_t, const Functions&,             \
                                           const double*, double*, int);                                              \
    template void pair_energies<T>(RowSet<T>, const T*, std::size_t, const Functions&, double*, int);
KERNELWEAVE_INSTANTIATE(float)
KERNELWEAVE_INSTANTIATE(double)
#undef KERNELWEAVE_INSTANTIATE

}  // namespace kernelweave
