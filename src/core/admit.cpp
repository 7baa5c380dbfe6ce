// Compiled without the finite-math flag of the other loops: NaN has to be seen here.
#include "admit.hpp"

#include <cmath>
#include <cstdint>

#include "dispatch.hpp"
#include "packed.hpp"

namespace kernelweave {
namespace {

struct Sums {
    double left, right;
};

KERNELWEAVE_CLONES Sums sum_row(const double* row, const double* left, const double* right, std::size_t n) {
    double with_left = 0.0, with_right = 0.0;
    for (std::size_t j = 0; j < n; ++j) {
        with_left += row[j] * left[j];
        with_right += row[j] * right[j];
    }
    return {with_left, with_right};
}

KERNELWEAVE_CLONES std::int64_t broken_minors(const double* row, const double* roots, double root, std::size_t n) {
    std::int64_t broken = 0;
    for (std::size_t j = 0; j < n; ++j) broken |= std::abs(row[j]) <= root * roots[j] ? 0 : 1;
    return broken;
}

struct Four {
    double sum[4];
    std::int64_t above[4];
};

KERNELWEAVE_CLONES Four add_four(const FourRows& r, const double* tilt, double* acc, std::size_t n) {
    const double *a = r.row[0], *b = r.row[1], *c = r.row[2], *d = r.row[3];
    const double u = r.weight[0], v = r.weight[1], w = r.weight[2], x = r.weight[3];
    double sa = 0.0, sb = 0.0, sc = 0.0, sd = 0.0;
    std::int64_t ta = 0, tb = 0, tc = 0, td = 0;
    for (std::size_t j = 0; j < n; ++j) {
        sa += a[j] * tilt[j];
        sb += b[j] * tilt[j];
        sc += c[j] * tilt[j];
        sd += d[j] * tilt[j];
        ta |= std::abs(a[j]) <= r.bound[0] ? 0 : 1;
        tb |= std::abs(b[j]) <= r.bound[1] ? 0 : 1;
        tc |= std::abs(c[j]) <= r.bound[2] ? 0 : 1;
        td |= std::abs(d[j]) <= r.bound[3] ? 0 : 1;
        acc[j] += (u * a[j] + v * b[j]) + (w * c[j] + x * d[j]);
    }
    return {{sa, sb, sc, sd}, {ta, tb, tc, td}};
}

KERNELWEAVE_CLONES Four sum_four(const FourRows& r, const double* tilt, std::size_t n) {
    const double *a = r.row[0], *b = r.row[1], *c = r.row[2], *d = r.row[3];
    double sa = 0.0, sb = 0.0, sc = 0.0, sd = 0.0;
    for (std::size_t j = 0; j < n; ++j) {
        sa += a[j] * tilt[j];
        sb += b[j] * tilt[j];
        sc += c[j] * tilt[j];
        sd += d[j] * tilt[j];
    }
    return {{sa, sb, sc, sd}, {0, 0, 0, 0}};
}

void take_note(FourRows& rows, const Four& found) {
    for (std::size_t r = 0; r < 4; ++r) {
        rows.asymmetry[r] += found.sum[r];
        rows.above[r] = rows.above[r] || found.above[r] != 0;
    }
}

}  // namespace

void inspect_and_add(FourRows& rows, const double* tilt, double* acc, std::size_t length) {
    take_note(rows, add_four(rows, tilt, acc, length));
}

void inspect_rows(FourRows& rows, const double* tilt, std::size_t length) {
    take_note(rows, sum_four(rows, tilt, length));
}

bool within_minors(const double* row, const double* roots, double root, std::size_t length) {
    return broken_minors(row, roots, root, length) == 0;
}

template <class T>
AdmitReport admit(const double* K, std::size_t n, std::size_t start, std::size_t stop, const double* roots,
                  const double* left, const double* right, const double* shift, T* out) {
    std::int64_t broken = 0;
    double asymmetry = 0.0;
    for (std::size_t i = start; i < stop; ++i) {
        const double* row = K + i * n;
        if (out != nullptr && i + 4 < stop) fetch_ahead(row + 4*n, n);
        const Sums sums = sum_row(row, left, right, n);
        asymmetry += left[i] * sums.right - right[i] * sums.left;
        broken |= broken_minors(row, roots, roots[i], i + 1);
        if (out != nullptr) pack<T>(row, 0, i, i + 1, shift, out);
    }
    return {broken == 0, asymmetry};
}

template AdmitReport admit<float>(const double*, std::size_t, std::size_t, std::size_t, const double*, const double*,
                                  const double*, const double*, float*);
template AdmitReport admit<double>(const double*, std::size_t, std::size_t, std::size_t, const double*,
                                   const double*, const double*, const double*, double*);

}  // namespace kernelweave
