#include "smo_plus.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "dispatch.hpp"

namespace kernelweave {
namespace {

constexpr double kNone = 1e300;   // slope where nothing can move
constexpr double kFlat = 1e-12;   // least curvature, relative: a long step, cut by the bounds

struct Extreme {
    double value = -kNone;
    std::size_t place = 0;

    void take(double score, std::size_t t) {
        if (score > value) {
            value = score;
            place = t;
        }
    }
    bool exists() const { return value > -0.5 * kNone; }
};

// The steepest ways to move: [0] is the negative class, [1] the positive.
struct Ways {
    Extreme alpha_up[2], alpha_down[2], beta_up, beta_down, v_up, v_down;
};

// target += s * (a - b)
KERNELWEAVE_CLONES void add_difference(const double* a, const double* b, double s, double* target, std::size_t n) {
    for (std::size_t t = 0; t < n; ++t) target[t] += s * (a[t] - b[t]);
}

// target += s * (a + b - 2 c)
KERNELWEAVE_CLONES void add_triple(const double* a, const double* b, const double* c, double s, double* target,
                                   std::size_t n) {
    for (std::size_t t = 0; t < n; ++t) target[t] += s * (a[t] + b[t] - 2.0 * c[t]);
}

enum class Kind { same_class, betas, raise_both, lower_both, exchange, none };

struct Direction {
    Kind kind = Kind::none;
    std::size_t i = 0, j = 0, k = 0;
    double slope = 0.0, gain = 0.0;
};

class SmoPlus {
public:
    SmoPlus(const SmoPlusProblem& problem, double* alpha, double* beta, double* f, double* g)
        : p_(problem), n_(problem.n), alpha_(alpha), beta_(beta), f_(f), g_(g) {
        double largest = 0.0;
        for (std::size_t t = 0; t < n_; ++t) largest = std::max(largest, K(t, t) + G(t, t));
        flat_ = kFlat * std::max(largest, 1e-300);
    }

    SmoPlusReport run(double tolerance, std::int64_t max_iterations) {
        SmoPlusReport report{0, 0.0};
        while (true) {
            const Ways ways = look();
            report.violation = violation(ways);
            if (report.violation <= tolerance || report.iterations >= max_iterations) return report;
            Direction best = choose(ways);
            if (best.kind == Kind::none) return report;
            if (!step(best)) return report;
            ++report.iterations;
        }
    }

private:
    double K(std::size_t i, std::size_t j) const { return p_.K[i * n_ + j]; }
    double G(std::size_t i, std::size_t j) const { return p_.G[i * n_ + j]; }
    // Slope of the objective in alpha_t; in beta_t it is g_t, and in alpha_t against beta_t margin(t).
    double slope(std::size_t t) const { return margin(t) + g_[t]; }
    double margin(std::size_t t) const { return p_.y[t] * f_[t] - 1.0; }

    Ways look() const {
        Ways w;
        for (std::size_t t = 0; t < n_; ++t) {
            const bool positive = p_.y[t] > 0.0, has_alpha = alpha_[t] > 0.0, has_beta = beta_[t] > 0.0;
            const double a = slope(t), signed_margin = p_.y[t] * margin(t);
            w.alpha_up[positive].take(-a, t);
            if (has_alpha) w.alpha_down[positive].take(a, t);
            w.beta_up.take(-g_[t], t);
            if (has_beta) w.beta_down.take(g_[t], t);
            if (positive ? has_beta : has_alpha) w.v_up.take(-signed_margin, t);
            if (positive ? has_alpha : has_beta) w.v_down.take(signed_margin, t);
        }
        return w;
    }

    // The exchanges are sums of the other directions: where those are flat, so are they.
    static double violation(const Ways& w) {
        double worst = 0.0;
        const auto pair = [&](const Extreme& a, const Extreme& b) {
            if (a.exists() && b.exists()) worst = std::max(worst, a.value + b.value);
        };
        for (int c : {0, 1}) pair(w.alpha_up[c], w.alpha_down[c]);
        pair(w.beta_up, w.beta_down);
        if (w.beta_down.exists())
            worst = std::max(worst, 0.5 * (w.alpha_up[0].value + w.alpha_up[1].value) + w.beta_down.value);
        if (w.alpha_down[0].exists() && w.alpha_down[1].exists())
            worst = std::max(worst, 0.5 * (w.alpha_down[0].value + w.alpha_down[1].value) + w.beta_up.value);
        return worst;
    }

    double curvature(const Direction& d) const {
        const double in_v = K(d.i, d.i) + K(d.j, d.j) - 2.0 * K(d.i, d.j);
        const double in_e = G(d.i, d.i) + G(d.j, d.j) - 2.0 * G(d.i, d.j);
        double total = 0.0;
        switch (d.kind) {
            case Kind::same_class: total = in_v + in_e; break;
            case Kind::betas: total = in_e; break;
            case Kind::exchange: total = in_v; break;
            default:
                total = in_v + G(d.i, d.i) + G(d.j, d.j) + 2.0 * G(d.i, d.j) + 4.0 * G(d.k, d.k) -
                        4.0 * (G(d.i, d.k) + G(d.j, d.k));
        }
        return std::max(total, flat_);
    }

    Direction choose(const Ways& w) const {
        Direction best;
        const auto consider = [&](Kind kind, const Extreme& i, const Extreme& j, std::size_t k, double slope) {
            if (!(slope > 0.0) || i.place == j.place) return;
            Direction d{kind, i.place, j.place, k, slope, 0.0};
            d.gain = slope * slope / curvature(d);
            if (d.gain > best.gain) best = d;
        };
        for (int c : {0, 1})
            if (w.alpha_up[c].exists() && w.alpha_down[c].exists())
                consider(Kind::same_class, w.alpha_up[c], w.alpha_down[c], 0,
                         w.alpha_up[c].value + w.alpha_down[c].value);
        if (w.beta_down.exists()) {
            consider(Kind::betas, w.beta_up, w.beta_down, 0, w.beta_up.value + w.beta_down.value);
            consider(Kind::raise_both, w.alpha_up[1], w.alpha_up[0], w.beta_down.place,
                     w.alpha_up[0].value + w.alpha_up[1].value + 2.0 * w.beta_down.value);
        }
        if (w.alpha_down[0].exists() && w.alpha_down[1].exists())
            consider(Kind::lower_both, w.alpha_down[1], w.alpha_down[0], w.beta_up.place,
                     w.alpha_down[0].value + w.alpha_down[1].value + 2.0 * w.beta_up.value);
        if (w.v_up.exists() && w.v_down.exists())
            consider(Kind::exchange, w.v_up, w.v_down, 0, w.v_up.value + w.v_down.value);
        refine(best);
        return best;
    }

    // Replace the partner j by the one that promises most, slope^2 / curvature [Fan05].
    void refine(Direction& d) const {
        const double* row_K = p_.K + d.i * n_;
        const double* row_G = p_.G + d.i * n_;
        const double k_ii = row_K[d.i], g_ii = row_G[d.i];
        const auto scan = [&](auto allowed, auto way_down, auto bend, double up) {
            for (std::size_t t = 0; t < n_; ++t) {
                if (!allowed(t)) continue;
                const double slope = up + way_down(t);
                if (!(slope > 0.0)) continue;
                const double gain = slope * slope / std::max(bend(t), flat_);
                if (gain > d.gain) {
                    d.gain = gain;
                    d.j = t;
                    d.slope = slope;
                }
            }
        };
        const auto in_v = [&](std::size_t t) { return k_ii + K(t, t) - 2.0 * row_K[t]; };
        const auto in_e = [&](std::size_t t) { return g_ii + G(t, t) - 2.0 * row_G[t]; };
        if (d.kind == Kind::same_class) {
            const double own = p_.y[d.i];
            scan([&](std::size_t t) { return p_.y[t] == own && alpha_[t] > 0.0 && t != d.i; },
                 [&](std::size_t t) { return slope(t); }, [&](std::size_t t) { return in_v(t) + in_e(t); },
                 -slope(d.i));
        } else if (d.kind == Kind::betas) {
            scan([&](std::size_t t) { return beta_[t] > 0.0 && t != d.i; }, [&](std::size_t t) { return g_[t]; },
                 in_e, -g_[d.i]);
        } else if (d.kind == Kind::exchange) {
            scan([&](std::size_t t) { return (p_.y[t] > 0.0 ? alpha_[t] : beta_[t]) > 0.0 && t != d.i; },
                 [&](std::size_t t) { return p_.y[t] * margin(t); }, in_v, -p_.y[d.i] * margin(d.i));
        }
    }

    // Move as far as the parabola or the bounds say; false where nothing would change.
    bool step(const Direction& d) {
        const std::size_t i = d.i, j = d.j, k = d.k;
        double s = d.slope / curvature(d);
        const double* K_i = p_.K + i * n_;
        const double* K_j = p_.K + j * n_;
        const double* G_i = p_.G + i * n_;
        const double* G_j = p_.G + j * n_;
        switch (d.kind) {
            case Kind::same_class:
                s = take(alpha_[j], s, 1.0);
                alpha_[i] += s;
                add_difference(K_i, K_j, s * p_.y[i], f_, n_);
                add_difference(G_i, G_j, s, g_, n_);
                break;
            case Kind::betas:
                s = take(beta_[j], s, 1.0);
                beta_[i] += s;
                add_difference(G_i, G_j, s, g_, n_);
                break;
            case Kind::raise_both:  // i is positive, j negative
                s = take(beta_[k], s, 2.0);
                alpha_[i] += s;
                alpha_[j] += s;
                add_difference(K_i, K_j, s, f_, n_);
                add_triple(G_i, G_j, p_.G + k * n_, s, g_, n_);
                break;
            case Kind::lower_both: {
                double& smaller = alpha_[i] < alpha_[j] ? alpha_[i] : alpha_[j];
                double& larger = alpha_[i] < alpha_[j] ? alpha_[j] : alpha_[i];
                s = take(smaller, s, 1.0);
                larger = std::max(larger - s, 0.0);
                beta_[k] += 2.0 * s;
                add_difference(K_i, K_j, -s, f_, n_);
                add_triple(G_i, G_j, p_.G + k * n_, -s, g_, n_);
                break;
            }
            case Kind::exchange: {
                double& from_i = p_.y[i] > 0.0 ? beta_[i] : alpha_[i];
                double& to_i = p_.y[i] > 0.0 ? alpha_[i] : beta_[i];
                double& from_j = p_.y[j] > 0.0 ? alpha_[j] : beta_[j];
                double& to_j = p_.y[j] > 0.0 ? beta_[j] : alpha_[j];
                double& smaller = from_i < from_j ? from_i : from_j;
                double& larger = from_i < from_j ? from_j : from_i;
                s = take(smaller, s, 1.0);
                larger = std::max(larger - s, 0.0);
                to_i += s;
                to_j += s;
                add_difference(K_i, K_j, s, f_, n_);
                break;
            }
            case Kind::none: return false;
        }
        return s > 0.0;
    }

    // Take `times` s from a variable, all of it at most, and return the s that was possible; zero is met exactly.
    static double take(double& variable, double s, double times) {
        if (times * s >= variable) {
            s = variable / times;
            variable = 0.0;
        } else {
            variable -= times * s;
        }
        return s;
    }

    const SmoPlusProblem& p_;
    std::size_t n_;
    double *alpha_, *beta_, *f_, *g_;
    double flat_ = 0.0;
};

}  // namespace

SmoPlusReport smo_plus(const SmoPlusProblem& problem, double tolerance, std::int64_t max_iterations, double* alpha,
                       double* beta, double* f, double* g) {
    if (problem.n == 0) return {0, 0.0};
    return SmoPlus(problem, alpha, beta, f, g).run(tolerance, max_iterations);
}

}  // namespace kernelweave
