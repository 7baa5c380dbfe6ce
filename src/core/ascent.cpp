#include "ascent.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "dispatch.hpp"

namespace kernelweave {
namespace {

// Coefficients that would move by less than this share of their cap stay: a row of every kernel would be spent on it.
constexpr double kStill = 1e-12;
constexpr int kSearch = 40;
constexpr double kExact = 1e-6;

template <class T>
KERNELWEAVE_CLONES void add_scaled(const T* KERNELWEAVE_RESTRICT row, T factor, T* KERNELWEAVE_RESTRICT out, std::size_t n) {
    for (std::size_t l = 0; l < n; ++l) out[l] += factor * row[l];
}

// (sum_j s_j^{q/2})^{2/q}, and into sigma its slopes (s_j / that)^{q/2 - 1}; powers of shares of the largest, because
// q may be a hundred.
double norm_and_slopes(const std::vector<double>& s, double q, std::vector<double>& sigma) {
    double largest = 0.0;
    for (const double v : s) largest = std::max(largest, v);
    if (largest <= 0.0) {
        std::fill(sigma.begin(), sigma.end(), 0.0);
        return 0.0;
    }
    if (q == 2.0) {
        double sum = 0.0;
        for (const double v : s) sum += std::max(v, 0.0);
        std::fill(sigma.begin(), sigma.end(), 1.0);
        return sum;
    }
    double sum = 0.0;
    for (std::size_t j = 0; j < s.size(); ++j) {
        const double share = std::max(s[j], 0.0) / largest;
        // q = 3, p = 1.5, is the default, and roots are fast.
        sigma[j] = share > 0.0 ? (q == 3.0 ? std::sqrt(share) : std::pow(share, 0.5 * q - 1.0)) : 0.0;
        sum += sigma[j] * share;
    }
    const double factor = std::pow(sum, 2.0 / q - 1.0);
    for (double& v : sigma) v *= factor;
    return largest * factor * sum;
}

// The line t -> s + 2ta + t^2 b, and the slope of N D along it.
struct Line {
    const std::vector<double>&s, &a, &b;
    double gain, scale, q;
    std::vector<double>&point, &sigma;

    double slope(double t) {
        for (std::size_t j = 0; j < s.size(); ++j) point[j] = s[j] + 2.0 * t * a[j] + t * t * b[j];
        norm_and_slopes(point, q, sigma);
        double sum = 0.0;
        for (std::size_t j = 0; j < s.size(); ++j) sum += sigma[j] * (a[j] + t * b[j]);
        return gain - sum / scale;
    }

    // The best t in [0, 1], from the side where D has risen: regula falsi with the Illinois rule on the falling slope.
    double best() {
        double high = slope(1.0);
        if (high >= 0.0) return 1.0;
        double low = slope(0.0), left = 0.0, right = 1.0;
        if (low <= 0.0) return 0.0;
        const double exact = kExact * low;
        for (int k = 0; k < kSearch && right - left > 1e-14; ++k) {
            double t = left + (right - left) * low / (low - high);
            t = std::min(std::max(t, left + 1e-3 * (right - left)), right - 1e-3 * (right - left));
            const double value = slope(t);
            if (value >= 0.0) {
                left = t;
                low = value;
                high *= 0.5;
                if (value <= exact) break;
            } else {
                right = t;
                high = value;
                low *= 0.5;
            }
        }
        return left;
    }
};

}  // namespace

template <class T>
std::int64_t ascend(const AscentBlock<T>& block, const std::int64_t* order, std::size_t n_visits) {
    const std::size_t n = block.n, F = block.n_kernels, C = block.n_classes;
    std::vector<double> s(block.s, block.s + F), a(F), b(F), point(F), sigma(F), slopes(F), at_zero(F);
    const std::vector<double> share(block.share, block.share + F);
    std::vector<double> g(C), D(C), sorted(C), step(C);
    std::int64_t moved = 0;
    norm_and_slopes(share, block.q, at_zero);
    if (norm_and_slopes(s, block.q, sigma) <= 0.0) sigma = at_zero;
    for (std::size_t visit = 0; visit < n_visits; ++visit) {
        const std::size_t i = static_cast<std::size_t>(order[visit]);
        const std::size_t y = static_cast<std::size_t>(block.y[i]);
        const double cap = block.weight[i], diagonal = static_cast<double>(block.K[i * n + i]);
        double* A = block.A + i * C;
        double whole = 0.0;
        for (std::size_t j = 0; j < F; ++j) whole += sigma[j] * share[j];
        // Where the kernels in use say nothing about this sample, the others decide.
        const double kappa = std::max(whole * diagonal, block.least_curvature[i]) / block.scale;
        if (!(kappa > 0.0) || !(cap > 0.0)) continue;

        for (std::size_t c = 0; c < C; ++c) g[c] = whole * static_cast<double>(block.H[c * n + i]);
        for (std::size_t j = 0; j < F; ++j) {
            const double* scores = block.G + (j * n + i) * C;
            for (std::size_t c = 0; c < C; ++c) g[c] += sigma[j] * scores[c];
        }
        for (std::size_t c = 0; c < C; ++c) {
            g[c] = g[c] / block.scale - kappa * A[c] - (c == y ? 1.0 : 0.0);
            D[c] = sorted[c] = g[c] + (c == y ? kappa * cap : 0.0);
        }
        std::sort(sorted.begin(), sorted.end(), std::greater<double>());
        double head = sorted[0] - kappa * cap, beta = head;
        for (std::size_t c = 1; c < C && sorted[c] > beta; ++c) {
            head += sorted[c];
            beta = head / static_cast<double>(c + 1);
        }
        double length = 0.0, largest = 0.0, along = 0.0;
        for (std::size_t c = 0; c < C; ++c) {
            step[c] = std::min(c == y ? cap : 0.0, (beta - g[c]) / kappa) - A[c];
            length += step[c] * step[c];
            largest = std::max(largest, std::abs(step[c]));
            along += step[c] * static_cast<double>(block.H[c * n + i]);
        }
        if (largest <= kStill * cap) continue;
        for (std::size_t j = 0; j < F; ++j) {
            const double* scores = block.G + (j * n + i) * C;
            a[j] = share[j] * along;
            for (std::size_t c = 0; c < C; ++c) a[j] += step[c] * scores[c];
            b[j] = share[j] * diagonal * length;
        }
        Line line{s, a, b, step[y], block.scale, block.q, point, slopes};
        const double t = line.best();
        if (!(t > 0.0)) continue;
        ++moved;
        for (std::size_t j = 0; j < F; ++j) s[j] += 2.0 * t * a[j] + t * t * b[j];
        if (norm_and_slopes(s, block.q, sigma) <= 0.0) sigma = at_zero;
        double others = 0.0;
        for (std::size_t c = 0; c < C; ++c) {
            const double before = A[c];
            if (c != y) {
                A[c] = std::min(before + t * step[c], 0.0);
                others += A[c];
            }
            step[c] = A[c] - before;
        }
        const double before = A[y];
        A[y] = -others;  // exactly: rows sum to zero
        step[y] = A[y] - before;
        for (std::size_t c = 0; c < C; ++c)
            if (step[c] != 0.0) add_scaled(block.K + i * n, static_cast<T>(step[c]), block.H + c * n, n);
    }
    std::copy(s.begin(), s.end(), block.s);
    return moved;
}

template std::int64_t ascend<float>(const AscentBlock<float>&, const std::int64_t*, std::size_t);
template std::int64_t ascend<double>(const AscentBlock<double>&, const std::int64_t*, std::size_t);

}  // namespace kernelweave
