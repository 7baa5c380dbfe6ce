// Compiled without the finite-math flag of the other loops: NaN has to be seen here.
#include "inspect.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "dispatch.hpp"

namespace kernelweave {
namespace {

// One read of a row: its product with the signs, its share in the transposed product, its minors.
KERNELWEAVE_CLONES double inspect_row(const double* row, const double* signs, double sign, const double* roots,
                                      double root, double* transposed, std::size_t n, std::int64_t& broken) {
    double product = 0.0;
    std::int64_t found = 0;
    for (std::size_t j = 0; j < n; ++j) {
        product += row[j] * signs[j];
        transposed[j] += row[j] * sign;
        found |= std::abs(row[j]) <= root * roots[j] ? 0 : 1;
    }
    broken |= found;
    return product;
}

}  // namespace

InspectReport inspect(const double* K, std::size_t n, const double* roots) {
    std::vector<double> signs(n), products(n), transposed(n, 0.0);
    std::uint32_t state = 2463534242U;  // xorshift: an asymmetric matrix that fools these signs was made to
    for (double& sign : signs) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        sign = (state & 1U) != 0U ? 1.0 : -1.0;
    }
    std::int64_t broken = 0;
    for (std::size_t i = 0; i < n; ++i)
        products[i] = inspect_row(K + i * n, signs.data(), signs[i], roots, roots[i], transposed.data(), n, broken);
    double asymmetry = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
        const double difference = std::abs(products[i] - transposed[i]);
        asymmetry = difference <= asymmetry ? asymmetry : (std::isfinite(difference) ? difference : HUGE_VAL);
    }
    return {broken == 0, asymmetry};
}

}  // namespace kernelweave
