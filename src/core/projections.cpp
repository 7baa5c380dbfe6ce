#include "projections.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "dispatch.hpp"

namespace kernelweave {
namespace {

// out = (M + c u u') x, and M takes the update, if there is one; both in one pass over the lower triangle, four rows at
// a time, so that each entry is loaded once and serves its row and its column.
template <bool kUpdate>
KERNELWEAVE_INLINE void multiply(double* __restrict M, std::size_t n, const double* __restrict u, double c,
                                 const double* __restrict x, double* __restrict out) {
    // Entry (i, j) after the update.
    const auto entry = [&](std::size_t i, std::size_t j) {
        if (kUpdate) M[i * n + j] += c * u[i] * u[j];
        return M[i * n + j];
    };
    std::size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        double* __restrict r0 = M + i * n;
        double* __restrict r1 = r0 + n;
        double* __restrict r2 = r1 + n;
        double* __restrict r3 = r2 + n;
        const double x0 = x[i], x1 = x[i + 1], x2 = x[i + 2], x3 = x[i + 3];
        double c0 = 0.0, c1 = 0.0, c2 = 0.0, c3 = 0.0, s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
        if (kUpdate) c0 = c * u[i], c1 = c * u[i + 1], c2 = c * u[i + 2], c3 = c * u[i + 3];
        for (std::size_t j = 0; j < i; ++j) {
            double m0 = r0[j], m1 = r1[j], m2 = r2[j], m3 = r3[j];
            if constexpr (kUpdate) {
                r0[j] = m0 = m0 + c0 * u[j];
                r1[j] = m1 = m1 + c1 * u[j];
                r2[j] = m2 = m2 + c2 * u[j];
                r3[j] = m3 = m3 + c3 * u[j];
            }
            s0 += m0 * x[j];
            s1 += m1 * x[j];
            s2 += m2 * x[j];
            s3 += m3 * x[j];
            out[j] += (m0 * x0 + m1 * x1) + (m2 * x2 + m3 * x3);
        }
        out[i] = s0;
        out[i + 1] = s1;
        out[i + 2] = s2;
        out[i + 3] = s3;
        for (std::size_t k = i; k < i + 4; ++k) {  // the small triangle on the diagonal
            for (std::size_t j = i; j < k; ++j) {
                const double m = entry(k, j);
                out[k] += m * x[j];
                out[j] += m * x[k];
            }
            out[k] += entry(k, k) * x[k];
        }
    }
    for (; i < n; ++i) {
        out[i] = 0.0;
        for (std::size_t j = 0; j < i; ++j) {
            const double m = entry(i, j);
            out[i] += m * x[j];
            out[j] += m * x[i];
        }
        out[i] += entry(i, i) * x[i];
    }
}

KERNELWEAVE_CLONES void update_product(double* __restrict M, std::size_t n, const double* __restrict u, double c,
                                       const double* __restrict x, double* __restrict out) {
    multiply<true>(M, n, u, c, x, out);
}
KERNELWEAVE_CLONES void product(double* __restrict M, std::size_t n, const double* __restrict x,
                                double* __restrict out) {
    multiply<false>(M, n, nullptr, 0.0, x, out);
}

// A metric M + c u u': the last update waits until the next product passes over M anyway.
class Metric {
   public:
    explicit Metric(const MetricSpace& space)
        : n_(space.dim), X_(space.points), M_(space.metric), x_(n_), image_(n_), u_(n_) {}

    // Return the squared length of the difference of two points, times `factor`.
    double measure(const std::int64_t* ends, double factor) {
        const double* first = X_ + static_cast<std::size_t>(ends[0]) * n_;
        const double* second = X_ + static_cast<std::size_t>(ends[1]) * n_;
        zero_ = true;
        for (std::size_t k = 0; k < n_; ++k) {
            x_[k] = factor * (first[k] - second[k]);
            zero_ = zero_ && x_[k] == 0.0;
        }
        if (c_ != 0.0)
            update_product(M_, n_, u_.data(), c_, x_.data(), image_.data());
        else
            product(M_, n_, x_.data(), image_.data());
        c_ = 0.0;
        double length = 0.0;
        for (std::size_t k = 0; k < n_; ++k) length += x_[k] * image_[k];
        return length;
    }

    bool zero() const { return zero_; }

    // M += c (Mx)(Mx)' for the x measured last.
    void update(double c) {
        std::swap(u_, image_);
        c_ = c;
    }

    void finish() {
        if (c_ == 0.0) return;
        for (std::size_t i = 0; i < n_; ++i)
            for (std::size_t j = 0; j <= i; ++j) M_[i * n_ + j] += c_ * u_[i] * u_[j];
        c_ = 0.0;
    }

   private:
    std::size_t n_;
    const double* X_;
    double* M_;
    std::vector<double> x_, image_, u_;
    double c_ = 0.0;
    bool zero_ = false;
};

bool positive(double value) { return value > 0.0 && std::isfinite(value); }

}  // namespace

std::size_t project_pairs(const MetricSpace& space, const MetricSpace& privileged, const MetricPairs& pairs,
                          const std::int64_t* order, std::size_t n_visits, double lam, bool corrected, double* a,
                          double* b) {
    Metric M(space), P(privileged);
    std::size_t left_out = 0;
    for (std::size_t visit = 0; visit < n_visits; ++visit) {
        const std::size_t c = static_cast<std::size_t>(order[visit]);
        const double sign = pairs.sign[c], gamma = pairs.gamma[c];
        const double slack = 1.0 / pairs.goal[c] + (b[c] - sign * a[c]) / gamma;  // 1 / xi
        const double p = M.measure(pairs.ends + 2 * c, 1.0);
        if (!M.zero() && !positive(p)) {
            ++left_out;
            continue;
        }
        double step = -a[c];
        if (pairs.has_privileged[c]) {
            const double s = P.measure(pairs.privileged_ends + 2 * c, pairs.reach[c]);
            if (!positive(s)) {
                ++left_out;
                continue;
            }
            const double floor = corrected ? -a[c] : 0.0;
            if (!M.zero()) {
                step = sign * (gamma * slack + lam / s - (lam + gamma) / p) / (lam + gamma + 1.0);
                step = std::min(std::max(step, floor), pairs.cap[c] - a[c]);
            }
            const double push = lam / (lam + gamma) * (gamma / s - gamma * slack + sign * step);
            if (push != 0.0) P.update(push / (lam - push * s));
            b[c] += push;
        } else if (!M.zero()) {
            step = std::max(step, sign * gamma / (gamma + 1.0) * (slack - 1.0 / p));
        }
        if (step != 0.0) M.update(-sign * step / (1.0 + sign * step * p));
        a[c] = std::max(a[c] + step, 0.0);
        if (pairs.has_privileged[c]) a[c] = std::min(a[c], pairs.cap[c]);  // the sum may round beyond it
    }
    M.finish();
    P.finish();
    return left_out;
}

}  // namespace kernelweave
