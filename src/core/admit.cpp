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

KERNELWEAVE_CLONES void set_tilt(double l, double r, const double* left, const double* right,
                                 double* KERNELWEAVE_RESTRICT tilt, std::size_t n) {
    for (std::size_t j = 0; j < n; ++j) tilt[j] = l * right[j] - r * left[j];
}

KERNELWEAVE_CLONES std::int64_t broken_minors(const double* row, const double* roots, double root, std::size_t n) {
    std::int64_t broken = 0;
    for (std::size_t j = 0; j < n; ++j) broken |= std::abs(row[j]) <= root * roots[j] ? 0 : 1;
    return broken;
}

}  // namespace

void tilt_row(double l, double r, const double* left, const double* right, double* tilt, std::size_t length) {
    set_tilt(l, r, left, right, tilt, length);
}

bool within_minors(const double* row, const double* roots, double root, std::size_t length) {
    return broken_minors(row, roots, root, length) == 0;
}

std::vector<AdmitReport> added_up(const std::vector<AdmitReport>& parts, std::size_t n_matrices) {
    std::vector<AdmitReport> reports(n_matrices, AdmitReport{true, 0.0});
    for (std::size_t p = 0; p < parts.size(); ++p) {
        AdmitReport& report = reports[p % n_matrices];
        report.minors = report.minors && parts[p].minors;
        report.asymmetry += parts[p].asymmetry;
    }
    return reports;
}

AdmitReport inspect(const double* K, std::size_t n, const double* roots, const double* left, const double* right) {
    std::int64_t broken = 0;
    double asymmetry = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
        const double* row = K + i * n;
        const Sums sums = sum_row(row, left, right, n);
        asymmetry += left[i] * sums.right - right[i] * sums.left;
        broken |= broken_minors(row, roots, roots[i], i + 1);
    }
    return {broken == 0, asymmetry};
}

}  // namespace kernelweave
