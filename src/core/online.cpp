#include "online.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "dispatch.hpp"

namespace kernelweave {
namespace {

// score_c += sum_d phi_d theta[d, c]; returns sum_d phi_d^2.
KERNELWEAVE_CLONES double scores(const double* phi, const double* theta, std::size_t width, std::size_t classes,
                                 double* score) {
    double length = 0.0;
    for (std::size_t d = 0; d < width; ++d) {
        const double value = phi[d];
        length += value * value;
        for (std::size_t c = 0; c < classes; ++c) score[c] += value * theta[d * classes + c];
    }
    return length;
}

KERNELWEAVE_CLONES void add_pair(const double* phi, double factor, std::size_t up, std::size_t down,
                                 std::size_t width, std::size_t classes, double* theta) {
    for (std::size_t d = 0; d < width; ++d) {
        theta[d * classes + up] += factor * phi[d];
        theta[d * classes + down] -= factor * phi[d];
    }
}

}  // namespace

std::int64_t online_steps(const OnlineState& state, const double* phi, const std::int64_t* y, const double* weight,
                          std::size_t n) {
    const std::size_t F = state.n_kernels, C = state.n_classes;
    const std::size_t width = static_cast<std::size_t>(state.offset[F]);
    std::vector<double> score(F * C), total(C), length(F);
    std::int64_t updates = 0;
    for (std::size_t i = 0; i < n; ++i, phi += width) {
        std::fill(score.begin(), score.end(), 0.0);
        std::fill(total.begin(), total.end(), 0.0);
        double largest = 0.0, sum = 0.0;
        for (std::size_t j = 0; j < F; ++j) largest = std::max(largest, state.s[j]);
        for (std::size_t j = 0; j < F; ++j) {
            const std::size_t first = static_cast<std::size_t>(state.offset[j]);
            const std::size_t count = static_cast<std::size_t>(state.offset[j + 1]) - first;
            length[j] = scores(phi + first, state.theta + first * C, count, C, score.data() + j * C);
            const double share = largest > 0.0 ? std::max(state.s[j], 0.0) / largest : 0.0;
            const double slope = share > 0.0 ? std::pow(share, 0.5 * state.q - 1.0) : 0.0;
            sum += slope * share;
            for (std::size_t c = 0; c < C; ++c) total[c] += slope * score[j * C + c];
        }
        const double factor = sum > 0.0 ? std::pow(sum, 2.0 / state.q - 1.0) / state.q : 0.0;
        const std::size_t label = static_cast<std::size_t>(y[i]);
        std::size_t rival = label == 0 ? 1 : 0;
        for (std::size_t c = 0; c < C; ++c)
            if (c != label && total[c] > total[rival]) rival = c;
        if (1.0 - factor * (total[label] - total[rival]) <= 0.0 || !(weight[i] > 0.0)) continue;
        ++updates;
        const double step = state.eta * weight[i];
        for (std::size_t j = 0; j < F; ++j) {
            const std::size_t first = static_cast<std::size_t>(state.offset[j]);
            const std::size_t count = static_cast<std::size_t>(state.offset[j + 1]) - first;
            const double along = score[j * C + label] - score[j * C + rival];
            state.s[j] = std::max(state.s[j] + 2.0 * step * along + 2.0 * step * step * length[j], 0.0);
            add_pair(phi + first, step, label, rival, count, C, state.theta + first * C);
        }
    }
    return updates;
}

}  // namespace kernelweave
