// Compiled without the finite-math flags of the other loops: NaN has to be seen here.
#include "inspect.hpp"

#include <algorithm>
#include <cmath>

namespace kernelweave {

InspectReport inspect(const double* K, std::size_t n, const double* roots, double limit) {
    constexpr std::size_t kTile = 32;  // (i, j) and (j, i) of a tile stay in the first-level cache
    unsigned unequal = 0, dirty = 0;
    for (std::size_t i0 = 0; i0 < n; i0 += kTile) {
        const std::size_t i_end = std::min(n, i0 + kTile);
        for (std::size_t j0 = 0; j0 <= i0; j0 += kTile) {
            for (std::size_t i = i0; i < i_end; ++i) {
                const double root = roots[i];
                const std::size_t j_end = std::min(i + 1, j0 + kTile);
                for (std::size_t j = j0; j < j_end; ++j) {
                    const double below = K[i * n + j], above = K[j * n + i];
                    unequal |= static_cast<unsigned>(!(below == above));
                    dirty |= static_cast<unsigned>(!(std::abs(below - above) <= limit));
                    dirty |= static_cast<unsigned>(!(std::abs(below) <= root * roots[j]));
                }
            }
        }
    }
    return {dirty == 0, unequal == 0};
}

}  // namespace kernelweave
