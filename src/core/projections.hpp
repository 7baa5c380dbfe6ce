// Cyclic Bregman projections of LogDet metric learning: one visit per pair, in a given order.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kernelweave {

// Points and the metric on them; of the metric only the lower triangle is read and written.
struct MetricSpace {
    std::size_t dim;
    const double* points;
    double* metric;
};

// One entry per pair: its two points, +1 similar or -1 dissimilar, the distance asked for, its weights.
struct MetricPairs {
    const std::int64_t* ends;
    const std::int64_t* privileged_ends;
    const double* sign;
    const double* goal;
    const double* gamma;
    const double* cap;         // most that its multiplier may be if it has privileged features; infinity in the hard form
    const std::uint8_t* has_privileged;  // whether it has privileged features
    const double* reach;       // factor on its privileged difference
};

// Visit the pairs named by `order`, one after the other, and keep their multipliers a (of the distance) and b (of
// the privileged distance). Returns how many visits were left out because a distance was not a positive number.
// `corrected` gives multipliers back where a constraint has become slack; without it they only grow.
std::size_t project_pairs(const MetricSpace& space, const MetricSpace& privileged, const MetricPairs& pairs,
                          const std::int64_t* order, std::size_t n_visits, double lam, bool corrected, double* a,
                          double* b);

}  // namespace kernelweave
