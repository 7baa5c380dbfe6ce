// Compiled without finite-math flags: NaN among the decision values has to show in the loss.
#include "hinge.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace kernelweave {
namespace {

constexpr std::size_t kFew = 12;  // kinks that are sorted rather than parted
constexpr double kFlat = 1e-12;  // sums that differ by less, relative to all, are the same

struct Kink {
    double place, weight;
};

using Kinks = std::vector<Kink>;

double median(double a, double b, double c) { return std::max(std::min(a, b), std::min(std::max(a, b), c)); }

// The first place, from the left, up to which weights add up to `level`, or, if `beyond`, to more; the last one if there
// is none. Kinks are reordered: those on the wrong side of a place are never looked at again.
double place_of(Kinks& kinks, double level, bool beyond) {
    const auto reached = [&](double sum) { return beyond ? sum > level : sum >= level; };
    Kink *left = kinks.data(), *right = left + kinks.size();
    double before = 0.0;
    while (right - left > static_cast<std::ptrdiff_t>(kFew)) {
        const double pivot = median(left->place, left[(right - left) / 2].place, right[-1].place);
        double less = 0.0, same = 0.0;
        Kink *below = left, *above = right;
        for (Kink* k = left; k < above;) {
            if (k->place < pivot) {
                less += k->weight;
                std::swap(*below++, *k++);
            } else if (k->place > pivot) {
                std::swap(*--above, *k);
            } else {
                same += (k++)->weight;
            }
        }
        if (below != left && reached(before + less)) {  // where no weight is asked for it is the first
            right = below;
        } else if (reached(before + less + same) || above == right) {
            return pivot;
        } else {
            before += less + same;
            left = above;
        }
    }
    for (Kink* k = left + 1; k < right; ++k)  // the few that are left; unlike std::sort it is at ease with NaN
        for (Kink* l = k; l > left && l->place < l[-1].place; --l) std::swap(*l, l[-1]);
    for (Kink* k = left; k < right; ++k) {
        before += k->weight;
        if (reached(before)) return k->place;
    }
    return right[-1].place;
}

}  // namespace

HingeLoss hinge_loss(const double* f, const double* y, const double* C, std::size_t n) {
    // The sum is piecewise linear in b with kinks at y_i - f_i. Its slope starts at minus the weight of the positive
    // samples, and each kink adds its own: a positive sample stops paying, a negative one starts.
    Kinks kinks(n);
    double level = 0.0, all = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
        kinks[i] = {y[i] - f[i], C[i]};
        all += C[i];
        level += y[i] > 0.0 ? C[i] : 0.0;
    }
    const double first = place_of(kinks, level - kFlat * all, false), last = place_of(kinks, level + kFlat * all, true);
    const double bias = 0.5 * (first + std::max(first, last));
    double value = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
        const double lacking = 1.0 - y[i] * (f[i] + bias);
        value += lacking <= 0.0 ? 0.0 : C[i] * lacking;
    }
    return {bias, value};
}

}  // namespace kernelweave
