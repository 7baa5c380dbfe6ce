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

}  // namespace

template <class T>
AdmitReport admit(const double* K, std::size_t n, std::size_t start, std::size_t stop, const double* roots,
                  const double* left, const double* right, const double* shift, T* out) {
    std::int64_t broken = 0;
    double asymmetry = 0.0;
    for (std::size_t i = start; i < stop; ++i) {
        const double* row = K + i * n;
        if (out != nullptr && i + 1 < stop) fetch_ahead(row + n, n);
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
