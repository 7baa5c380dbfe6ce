// The passes over all samples that sequential minimal optimisation makes on every step, for smo_plus and smo_views.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "dispatch.hpp"

namespace kernelweave {
namespace {

constexpr std::size_t kBlock = 64;      // maxima are kept per block, so that finding the index is one short scan
constexpr double kCannotMove = -1e300;  // the score of a coordinate that cannot move this way
constexpr double kFlat = 1e-12;         // least curvature, relative: a long step, cut by the bounds

// Block maxima of bound + sign * slope: the steepest ways up (sign -1) or down (sign 1).
[[maybe_unused]] KERNELWEAVE_CLONES void block_maxima(const double* bound, double sign, const double* slope, double* best,
                                     std::size_t n) {
    for (std::size_t b = 0, start = 0; start < n; ++b, start += kBlock) {
        const std::size_t end = std::min(n, start + kBlock);
        double top = kCannotMove;
        for (std::size_t t = start; t < end; ++t) {
            const double score = bound[t] + sign * slope[t];
            top = score > top ? score : top;
        }
        best[b] = top;
    }
}

// gain = violation^2 / curvature of every partner that moves down [Fan05], and its block maxima.
[[maybe_unused]] KERNELWEAVE_CLONES void partner_gains(double up, const double* fall, const double* slope, const double* distance,
                                      double flat, double* gain, double* best, std::size_t n) {
    for (std::size_t b = 0, start = 0; start < n; ++b, start += kBlock) {
        const std::size_t end = std::min(n, start + kBlock);
        double top = 0.0;
        for (std::size_t t = start; t < end; ++t) {
            double violation = up + (fall[t] + slope[t]);
            violation = violation > 0.0 ? violation : 0.0;
            const double curvature = distance[t] > flat ? distance[t] : flat;
            gain[t] = violation * (violation / curvature);
            top = gain[t] > top ? gain[t] : top;
        }
        best[b] = top;
    }
}

// out_t (+)= the squared distance of samples i and t in the space of a kernel, of which row i and the diagonal are given.
[[maybe_unused]] KERNELWEAVE_CLONES void squared_distances(const double* row, const double* diagonal, double own, double* out,
                                          std::size_t n) {
    for (std::size_t t = 0; t < n; ++t) out[t] = own + diagonal[t] - 2.0 * row[t];
}
[[maybe_unused]] KERNELWEAVE_CLONES void add_squared_distances(const double* row, const double* diagonal, double own, double* out,
                                              std::size_t n) {
    for (std::size_t t = 0; t < n; ++t) out[t] += own + diagonal[t] - 2.0 * row[t];
}

// target += s * (one - other)
[[maybe_unused]] KERNELWEAVE_CLONES void add_difference(const double* one, const double* other, double s, double* target,
                                       std::size_t n) {
    for (std::size_t t = 0; t < n; ++t) target[t] += s * (one[t] - other[t]);
}

// A coordinate and how steeply the objective falls as it moves one way.
struct Way {
    double score = kCannotMove;
    std::size_t place = 0;

    bool exists() const { return score > 0.1 * kCannotMove; }
};

// The steepest way up (sign 1) or down (sign -1); best is room for a number per block.
[[maybe_unused]] inline Way steepest(const double* bound, double sign, const double* slope, std::vector<double>& best,
                                     std::size_t n) {
    block_maxima(bound, -sign, slope, best.data(), n);
    const std::size_t block = static_cast<std::size_t>(std::max_element(best.begin(), best.end()) - best.begin());
    Way way{best[block], block * kBlock};
    for (std::size_t t = block * kBlock; t < std::min(n, (block + 1) * kBlock); ++t)
        if (bound[t] - sign * slope[t] == way.score) way.place = t;
    return way;
}

// Where the largest of the gains is.
[[maybe_unused]] inline std::size_t best_partner(const std::vector<double>& gain, const std::vector<double>& best) {
    const std::size_t block = static_cast<std::size_t>(std::max_element(best.begin(), best.end()) - best.begin());
    std::size_t j = block * kBlock;
    while (j + 1 < std::min(gain.size(), (block + 1) * kBlock) && gain[j] != best[block]) ++j;
    return j;
}

}  // namespace
}  // namespace kernelweave
