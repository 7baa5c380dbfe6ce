#include "smo_views.hpp"

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "smo_loops.hpp"

namespace kernelweave {
namespace {

KERNELWEAVE_CLONES void subtract(const double* one, const double* other, double* out, std::size_t n) {
    for (std::size_t t = 0; t < n; ++t) out[t] = one[t] - other[t];
}

// One of the three vectors: its box, the slope of the objective in it, and the kink of |.| at zero.
struct Part {
    double* value;
    const double *lo, *hi;
    double kink;
    std::vector<double> slope, rise, fall;  // rise - slope and fall + slope are the scores of the two ways

    Part(double* value, const double* lo, const double* hi, double kink, std::size_t n)
        : value(value), lo(lo), hi(hi), kink(kink), slope(n), rise(n), fall(n) {
        for (std::size_t t = 0; t < n; ++t) update(t);
    }

    void update(std::size_t t) {
        rise[t] = value[t] < hi[t] ? (value[t] < 0.0 ? kink : -kink) : kCannotMove;
        fall[t] = value[t] > lo[t] ? (value[t] > 0.0 ? kink : -kink) : kCannotMove;
    }
    // No step crosses a kink, where the slope changes: it ends there, as at a bound.
    double end(std::size_t t, double sign) const {
        if (kink > 0.0 && value[t] * sign < 0.0) return 0.0;
        return sign > 0.0 ? hi[t] : lo[t];
    }
};

struct Change {
    Part* part;
    std::size_t place;
    double sign;
};

enum class Kind { in_a, in_b, in_c, raise_c, lower_c };

struct Direction {
    Kind kind;
    double slope;                // how steeply the objective falls, per unit of the step
    std::size_t i, j, k;         // i moves up and j down within a part; else places in c, a and b
    double gain = 0.0;
};

class SmoViews {
public:
    SmoViews(const SmoViewsProblem& problem, double* a, double* b, double* c, double* f, double* g)
        : p_(problem), n_(problem.n), f_(f), g_(g), a_(a, p_.lo_a, p_.hi_a, 0.0, n_), b_(b, p_.lo_b, p_.hi_b, 0.0, n_),
          c_(c, p_.lo_c, p_.hi_c, p_.epsilon, n_), diagonal_a_(n_), diagonal_b_(n_), distance_(n_), gain_(n_),
          best_((n_ + kBlock - 1) / kBlock) {
        double largest = 0.0;
        for (std::size_t t = 0; t < n_; ++t) {
            diagonal_a_[t] = p_.A[t * n_ + t];
            diagonal_b_[t] = p_.B[t * n_ + t];
            largest = std::max(largest, diagonal_a_[t] + diagonal_b_[t]);
        }
        flat_ = kFlat * std::max(largest, 1e-300);
        update_slopes();
    }

    SmoViewsReport run(double tolerance, std::int64_t max_iterations) {
        SmoViewsReport report{0, 0.0};
        while (true) {
            const Direction best = choose(tolerance, report.violation);
            if (report.violation <= tolerance || report.iterations >= max_iterations) return report;
            if (!(best.gain > 0.0) || !step(best)) return report;
            ++report.iterations;
        }
    }

private:
    void update_slopes() {
        subtract(f_, p_.y, a_.slope.data(), n_);
        subtract(g_, p_.y, b_.slope.data(), n_);
        subtract(g_, f_, c_.slope.data(), n_);
    }

    Way steepest(const Part& part, double sign) {
        const double* bound = sign > 0.0 ? part.rise.data() : part.fall.data();
        return kernelweave::steepest(bound, sign, part.slope.data(), best_, n_);
    }

    double distance(const double* K, std::size_t i, std::size_t j) const {
        return i == j ? 0.0 : K[i * n_ + i] + K[j * n_ + j] - 2.0 * K[i * n_ + j];
    }

    double curvature(const Direction& d) const {
        double total = 0.0;
        switch (d.kind) {
            case Kind::in_a: total = distance(p_.A, d.i, d.j); break;
            case Kind::in_b: total = distance(p_.B, d.i, d.j); break;
            case Kind::in_c: total = distance(p_.A, d.i, d.j) + distance(p_.B, d.i, d.j); break;
            default: total = distance(p_.A, d.i, d.j) + distance(p_.B, d.i, d.k);
        }
        return std::max(total, flat_);
    }

    // The direction that promises most; violation receives the largest slope of any.
    Direction choose(double tolerance, double& violation) {
        const Way up_a = steepest(a_, 1.0), down_a = steepest(a_, -1.0);
        const Way up_b = steepest(b_, 1.0), down_b = steepest(b_, -1.0);
        const Way up_c = steepest(c_, 1.0), down_c = steepest(c_, -1.0);
        Direction best{Kind::in_a, 0.0, 0, 0, 0};
        violation = 0.0;
        const auto consider = [&](Direction d) {
            violation = std::max(violation, d.slope);
            if (!(d.slope > tolerance)) return;
            d.gain = d.slope * d.slope / curvature(d);
            if (d.gain > best.gain) best = d;
        };
        const auto pair = [&](Kind kind, const Way& up, const Way& down) {
            if (up.exists() && down.exists()) consider({kind, up.score + down.score, up.place, down.place, 0});
        };
        const auto three = [&](Kind kind, const Way& of_c, const Way& of_a, const Way& of_b) {
            if (of_c.exists() && of_a.exists() && of_b.exists())
                consider({kind, of_c.score + of_a.score + of_b.score, of_c.place, of_a.place, of_b.place});
        };
        pair(Kind::in_a, up_a, down_a);
        pair(Kind::in_b, up_b, down_b);
        pair(Kind::in_c, up_c, down_c);
        three(Kind::raise_c, up_c, up_a, down_b);
        three(Kind::lower_c, down_c, down_a, up_b);
        if (best.gain > 0.0 && best.kind == Kind::in_a) refine(best, a_, up_a.score);
        if (best.gain > 0.0 && best.kind == Kind::in_b) refine(best, b_, up_b.score);
        if (best.gain > 0.0 && best.kind == Kind::in_c) refine(best, c_, up_c.score);
        return best;
    }

    // Replace the partner j by the one that promises most, slope^2 / curvature [Fan05].
    void refine(Direction& d, const Part& part, double up) {
        const double *A_i = p_.A + d.i * n_, *B_i = p_.B + d.i * n_;
        double* out = distance_.data();
        if (d.kind == Kind::in_b) squared_distances(B_i, diagonal_b_.data(), diagonal_b_[d.i], out, n_);
        if (d.kind != Kind::in_b) squared_distances(A_i, diagonal_a_.data(), diagonal_a_[d.i], out, n_);
        if (d.kind == Kind::in_c) add_squared_distances(B_i, diagonal_b_.data(), diagonal_b_[d.i], out, n_);
        partner_gains(up, part.fall.data(), part.slope.data(), out, flat_, gain_.data(), best_.data(), n_);
        d.j = best_partner(gain_, best_);
        d.slope = up + (part.fall[d.j] + part.slope[d.j]);
        d.gain = gain_[d.j];
    }

    // Move as far as the parabola or the bounds say; false where nothing would change.
    bool step(const Direction& d) {
        const double *A_i = p_.A + d.i * n_, *A_j = p_.A + d.j * n_, *B_i = p_.B + d.i * n_;
        const double s = d.slope / curvature(d);
        double moved = 0.0;
        switch (d.kind) {
            case Kind::in_a:
                moved = move({{&a_, d.i, 1.0}, {&a_, d.j, -1.0}}, s);
                add_difference(A_i, A_j, moved, f_, n_);
                break;
            case Kind::in_b:
                moved = move({{&b_, d.i, 1.0}, {&b_, d.j, -1.0}}, s);
                add_difference(B_i, p_.B + d.j * n_, moved, g_, n_);
                break;
            case Kind::in_c:
                moved = move({{&c_, d.i, 1.0}, {&c_, d.j, -1.0}}, s);
                add_difference(A_i, A_j, -moved, f_, n_);
                add_difference(B_i, p_.B + d.j * n_, moved, g_, n_);
                break;
            case Kind::raise_c:
            case Kind::lower_c: {
                const double sign = d.kind == Kind::raise_c ? 1.0 : -1.0;
                moved = move({{&c_, d.i, sign}, {&a_, d.j, sign}, {&b_, d.k, -sign}}, s);
                add_difference(A_i, A_j, -sign * moved, f_, n_);
                add_difference(B_i, p_.B + d.k * n_, sign * moved, g_, n_);
            }
        }
        update_slopes();
        return moved > 0.0;
    }

    // Change all of these by s, or by as much as there is room for, and return it; bounds are met exactly.
    static double move(std::initializer_list<Change> changes, double s) {
        for (const Change& change : changes)
            s = std::min(s, change.sign * (change.part->end(change.place, change.sign) - change.part->value[change.place]));
        for (const Change& change : changes) {
            Part& part = *change.part;
            double& value = part.value[change.place];
            const double end = part.end(change.place, change.sign);
            value = s >= change.sign * (end - value) ? end : value + change.sign * s;
            part.update(change.place);
        }
        return s;
    }

    const SmoViewsProblem& p_;
    std::size_t n_;
    double *f_, *g_;
    Part a_, b_, c_;
    std::vector<double> diagonal_a_, diagonal_b_, distance_, gain_, best_;
    double flat_ = 0.0;
};

}  // namespace

SmoViewsReport smo_views(const SmoViewsProblem& problem, double tolerance, std::int64_t max_iterations, double* a,
                         double* b, double* c, double* f, double* g) {
    if (problem.n == 0) return {0, 0.0};
    return SmoViews(problem, a, b, c, f, g).run(tolerance, max_iterations);
}

}  // namespace kernelweave
