#include "smo_plus.hpp"

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "smo_loops.hpp"

namespace kernelweave {
namespace {

// The steepest ways to move: [0] is the negative class, [1] the positive.
struct Ways {
    Way alpha_up[2], alpha_down[2], beta_up, beta_down, v_up, v_down;
};

// target += s * (a + b - 2 c)
KERNELWEAVE_CLONES void add_triple(const double* a, const double* b, const double* c, double s, double* target,
                                   std::size_t n) {
    for (std::size_t t = 0; t < n; ++t) target[t] += s * (a[t] + b[t] - 2.0 * c[t]);
}

// slope_v = f - y, that of v, and slope_a = y slope_v + g, that of alpha; the slope of beta is g.
KERNELWEAVE_CLONES void slopes(const double* f, const double* g, const double* y, double* slope_v, double* slope_a,
                               std::size_t n) {
    for (std::size_t t = 0; t < n; ++t) {
        slope_v[t] = f[t] - y[t];
        slope_a[t] = y[t] * slope_v[t] + g[t];
    }
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
        : p_(problem), n_(problem.n), alpha_(alpha), beta_(beta), f_(f), g_(g), slope_v_(n_), slope_a_(n_),
          free_(n_, 0.0), fall_b_(n_), rise_v_(n_), fall_v_(n_), diagonal_K_(n_), diagonal_G_(n_), distance_(n_),
          gain_(n_), best_((n_ + kBlock - 1) / kBlock) {
        for (int c : {0, 1}) rise_a_[c] = fall_a_[c] = std::vector<double>(n_, kCannotMove);
        double largest = 0.0;
        for (std::size_t t = 0; t < n_; ++t) {
            diagonal_K_[t] = K(t, t);
            diagonal_G_[t] = G(t, t);
            largest = std::max(largest, K(t, t) + G(t, t));
            rise_a_[p_.y[t] > 0.0][t] = 0.0;
            update(t);
        }
        flat_ = kFlat * std::max(largest, 1e-300);
        slopes(f_, g_, p_.y, slope_v_.data(), slope_a_.data(), n_);
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
    // Which ways alpha_t and beta_t, which have changed, can move: 0 where they can.
    void update(std::size_t t) {
        const bool positive = p_.y[t] > 0.0;
        const double alpha = alpha_[t] > 0.0 ? 0.0 : kCannotMove, beta = beta_[t] > 0.0 ? 0.0 : kCannotMove;
        fall_a_[positive][t] = alpha;
        fall_b_[t] = beta;
        rise_v_[t] = positive ? beta : alpha;
        fall_v_[t] = positive ? alpha : beta;
    }

    Ways look() {
        const auto way = [&](const std::vector<double>& bound, double sign, const double* slope) {
            return steepest(bound.data(), sign, slope, best_, n_);
        };
        Ways w;
        for (int c : {0, 1}) {
            w.alpha_up[c] = way(rise_a_[c], 1.0, slope_a_.data());
            w.alpha_down[c] = way(fall_a_[c], -1.0, slope_a_.data());
        }
        w.beta_up = way(free_, 1.0, g_);
        w.beta_down = way(fall_b_, -1.0, g_);
        w.v_up = way(rise_v_, 1.0, slope_v_.data());
        w.v_down = way(fall_v_, -1.0, slope_v_.data());
        return w;
    }

    // The exchanges are sums of the other directions: where those are flat, so are they.
    static double violation(const Ways& w) {
        double worst = 0.0;
        const auto pair = [&](const Way& a, const Way& b) {
            if (a.exists() && b.exists()) worst = std::max(worst, a.score + b.score);
        };
        for (int c : {0, 1}) pair(w.alpha_up[c], w.alpha_down[c]);
        pair(w.beta_up, w.beta_down);
        if (w.beta_down.exists())
            worst = std::max(worst, 0.5 * (w.alpha_up[0].score + w.alpha_up[1].score) + w.beta_down.score);
        if (w.alpha_down[0].exists() && w.alpha_down[1].exists())
            worst = std::max(worst, 0.5 * (w.alpha_down[0].score + w.alpha_down[1].score) + w.beta_up.score);
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

    Direction choose(const Ways& w) {
        Direction best;
        const auto consider = [&](Kind kind, const Way& i, const Way& j, std::size_t k, double slope) {
            if (!(slope > 0.0) || i.place == j.place) return;
            Direction d{kind, i.place, j.place, k, slope, 0.0};
            d.gain = slope * slope / curvature(d);
            if (d.gain > best.gain) best = d;
        };
        for (int c : {0, 1})
            if (w.alpha_up[c].exists() && w.alpha_down[c].exists())
                consider(Kind::same_class, w.alpha_up[c], w.alpha_down[c], 0,
                         w.alpha_up[c].score + w.alpha_down[c].score);
        if (w.beta_down.exists()) {
            consider(Kind::betas, w.beta_up, w.beta_down, 0, w.beta_up.score + w.beta_down.score);
            consider(Kind::raise_both, w.alpha_up[1], w.alpha_up[0], w.beta_down.place,
                     w.alpha_up[0].score + w.alpha_up[1].score + 2.0 * w.beta_down.score);
        }
        if (w.alpha_down[0].exists() && w.alpha_down[1].exists())
            consider(Kind::lower_both, w.alpha_down[1], w.alpha_down[0], w.beta_up.place,
                     w.alpha_down[0].score + w.alpha_down[1].score + 2.0 * w.beta_up.score);
        if (w.v_up.exists() && w.v_down.exists())
            consider(Kind::exchange, w.v_up, w.v_down, 0, w.v_up.score + w.v_down.score);
        refine(best);
        return best;
    }

    // Replace the partner j by the one that promises most, slope^2 / curvature [Fan05].
    void refine(Direction& d) {
        const double *K_i = p_.K + d.i * n_, *G_i = p_.G + d.i * n_;
        double* out = distance_.data();
        const std::vector<double>* fall = nullptr;
        const double* slope = nullptr;
        switch (d.kind) {
            case Kind::same_class:
                fall = &fall_a_[p_.y[d.i] > 0.0];
                slope = slope_a_.data();
                squared_distances(K_i, diagonal_K_.data(), diagonal_K_[d.i], out, n_);
                add_squared_distances(G_i, diagonal_G_.data(), diagonal_G_[d.i], out, n_);
                break;
            case Kind::betas:
                fall = &fall_b_;
                slope = g_;
                squared_distances(G_i, diagonal_G_.data(), diagonal_G_[d.i], out, n_);
                break;
            case Kind::exchange:
                fall = &fall_v_;
                slope = slope_v_.data();
                squared_distances(K_i, diagonal_K_.data(), diagonal_K_[d.i], out, n_);
                break;
            default: return;
        }
        const double up = -slope[d.i];
        partner_gains(up, fall->data(), slope, out, flat_, gain_.data(), best_.data(), n_);
        const std::size_t j = best_partner(gain_, best_);
        if (!(gain_[j] > d.gain)) return;
        d.j = j;
        d.gain = gain_[j];
        d.slope = up + slope[j];
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
        for (const std::size_t t : {i, j, k}) update(t);
        slopes(f_, g_, p_.y, slope_v_.data(), slope_a_.data(), n_);
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
    std::vector<double> slope_v_, slope_a_;
    // 0 where a variable can move this way, by class for alpha; beta can always grow, and v moves by exchange.
    std::vector<double> rise_a_[2], fall_a_[2], free_, fall_b_, rise_v_, fall_v_;
    std::vector<double> diagonal_K_, diagonal_G_, distance_, gain_, best_;
    double flat_ = 0.0;
};

}  // namespace

SmoPlusReport smo_plus(const SmoPlusProblem& problem, double tolerance, std::int64_t max_iterations, double* alpha,
                       double* beta, double* f, double* g) {
    if (problem.n == 0) return {0, 0.0};
    return SmoPlus(problem, alpha, beta, f, g).run(tolerance, max_iterations);
}

}  // namespace kernelweave
