// Compiled without the finite-math flag of the other loops: NaN has to be seen here.
#include "admit.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "dispatch.hpp"
#include "packed.hpp"

namespace kernelweave {
namespace {

struct Sums {
    double left, right;
};

KERNELWEAVE_CLONES Sums sum_row(const double* row, const double* left, const double* right, std::size_t n) {
    double with_left = 0.0, with_right = 0.0;
    for (std::size_t j = 0; j < n; ++j) {
        with_left += row[j] * left[j];
        with_right += row[j] * right[j];
    }
    return {with_left, with_right};
}

KERNELWEAVE_CLONES void set_tilt(double l, double r, const double* left, const double* right,
                                 double* KERNELWEAVE_RESTRICT tilt, std::size_t n) {
    for (std::size_t j = 0; j < n; ++j) tilt[j] = l * right[j] - r * left[j];
}

KERNELWEAVE_CLONES std::int64_t broken_minors(const double* row, const double* roots, double root, std::size_t n) {
    std::int64_t broken = 0;
    for (std::size_t j = 0; j < n; ++j) broken |= std::abs(row[j]) <= root * roots[j] ? 0 : 1;
    return broken;
}

struct Four {
    double sum[4];
    std::int64_t above[4];
};

// Entries [start, stop) of a row.
struct Piece {
    std::size_t start, stop;
};

KERNELWEAVE_CLONES Four add_four(const FourRows& r, const double* tilt, double* acc, Piece p) {
    const double *a = r.row[0], *b = r.row[1], *c = r.row[2], *d = r.row[3];
    const double u = r.weight[0], v = r.weight[1], w = r.weight[2], x = r.weight[3];
    double sa = 0.0, sb = 0.0, sc = 0.0, sd = 0.0;
    std::int64_t ta = 0, tb = 0, tc = 0, td = 0;
    for (std::size_t j = p.start; j < p.stop; ++j) {
        sa += a[j] * tilt[j];
        sb += b[j] * tilt[j];
        sc += c[j] * tilt[j];
        sd += d[j] * tilt[j];
        ta |= std::abs(a[j]) <= r.bound[0] ? 0 : 1;
        tb |= std::abs(b[j]) <= r.bound[1] ? 0 : 1;
        tc |= std::abs(c[j]) <= r.bound[2] ? 0 : 1;
        td |= std::abs(d[j]) <= r.bound[3] ? 0 : 1;
        acc[j] += (u * a[j] + v * b[j]) + (w * c[j] + x * d[j]);
    }
    return {{sa, sb, sc, sd}, {ta, tb, tc, td}};
}

template <class T>
inline Four pack_four(const FourRows& r, const double* tilt, const FourPlaces<T>& to, Piece p) {
    const double *a = r.row[0], *b = r.row[1], *c = r.row[2], *d = r.row[3];
    const double *e = to.shift[0], *f = to.shift[1], *g = to.shift[2], *h = to.shift[3];
    T *KERNELWEAVE_RESTRICT q = to.out[0], *KERNELWEAVE_RESTRICT s = to.out[1], *KERNELWEAVE_RESTRICT t = to.out[2],
                           *KERNELWEAVE_RESTRICT u = to.out[3];
    double sa = 0.0, sb = 0.0, sc = 0.0, sd = 0.0;
    std::int64_t ta = 0, tb = 0, tc = 0, td = 0;
    for (std::size_t j = p.start; j < p.stop; ++j) {
        sa += a[j] * tilt[j];
        sb += b[j] * tilt[j];
        sc += c[j] * tilt[j];
        sd += d[j] * tilt[j];
        ta |= std::abs(a[j]) <= r.bound[0] ? 0 : 1;
        tb |= std::abs(b[j]) <= r.bound[1] ? 0 : 1;
        tc |= std::abs(c[j]) <= r.bound[2] ? 0 : 1;
        td |= std::abs(d[j]) <= r.bound[3] ? 0 : 1;
        q[j] = static_cast<T>(a[j] - to.own[0] - e[j]);
        s[j] = static_cast<T>(b[j] - to.own[1] - f[j]);
        t[j] = static_cast<T>(c[j] - to.own[2] - g[j]);
        u[j] = static_cast<T>(d[j] - to.own[3] - h[j]);
    }
    return {{sa, sb, sc, sd}, {ta, tb, tc, td}};
}

KERNELWEAVE_CLONES Four pack_rows(const FourRows& r, const double* tilt, const FourPlaces<float>& to, Piece p) {
    return pack_four(r, tilt, to, p);
}
KERNELWEAVE_CLONES Four pack_rows(const FourRows& r, const double* tilt, const FourPlaces<double>& to, Piece p) {
    return pack_four(r, tilt, to, p);
}

KERNELWEAVE_CLONES Four sum_four(const FourRows& r, const double* tilt, Piece p) {
    const double *a = r.row[0], *b = r.row[1], *c = r.row[2], *d = r.row[3];
    double sa = 0.0, sb = 0.0, sc = 0.0, sd = 0.0;
    for (std::size_t j = p.start; j < p.stop; ++j) {
        sa += a[j] * tilt[j];
        sb += b[j] * tilt[j];
        sc += c[j] * tilt[j];
        sd += d[j] * tilt[j];
    }
    return {{sa, sb, sc, sd}, {0, 0, 0, 0}};
}

// Read the rows piece by piece, each with look(piece).
template <class Look>
void read_pieces(FourRows& rows, std::size_t length, const Look& look) {
    for (Piece p{0, 0}; p.start < length; p.start = p.stop) {
        p.stop = std::min(p.start + kFetched, length);
        fetch_four(rows.next, p.start, p.stop);
        const Four found = look(p);
        for (std::size_t r = 0; r < 4; ++r) {
            rows.asymmetry[r] += found.sum[r];
            rows.above[r] = rows.above[r] || found.above[r] != 0;
        }
    }
}

}  // namespace

void tilt_row(double l, double r, const double* left, const double* right, double* tilt, std::size_t length) {
    set_tilt(l, r, left, right, tilt, length);
}

void inspect_and_add(FourRows& rows, const double* tilt, double* acc, std::size_t length) {
    read_pieces(rows, length, [&](Piece p) { return add_four(rows, tilt, acc, p); });
}

void inspect_rows(FourRows& rows, const double* tilt, std::size_t length) {
    read_pieces(rows, length, [&](Piece p) { return sum_four(rows, tilt, p); });
}

bool within_minors(const double* row, const double* roots, double root, std::size_t length) {
    return broken_minors(row, roots, root, length) == 0;
}

template <class T>
void inspect_and_pack(FourRows& rows, const double* tilt, const FourPlaces<T>& places, std::size_t length) {
    read_pieces(rows, length, [&](Piece p) { return pack_rows(rows, tilt, places, p); });
}

std::vector<AdmitReport> added_up(const std::vector<AdmitReport>& parts, std::size_t n_matrices) {
    std::vector<AdmitReport> reports(n_matrices, AdmitReport{true, 0.0});
    for (std::size_t p = 0; p < parts.size(); ++p) {
        AdmitReport& report = reports[p % n_matrices];
        report.minors = report.minors && parts[p].minors;
        report.asymmetry += parts[p].asymmetry;
    }
    return reports;
}

AdmitReport inspect(const double* K, std::size_t n, const double* roots, const double* left, const double* right) {
    std::int64_t broken = 0;
    double asymmetry = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
        const double* row = K + i * n;
        const Sums sums = sum_row(row, left, right, n);
        asymmetry += left[i] * sums.right - right[i] * sums.left;
        broken |= broken_minors(row, roots, roots[i], i + 1);
    }
    return {broken == 0, asymmetry};
}

template void inspect_and_pack<float>(FourRows&, const double*, const FourPlaces<float>&, std::size_t);
template void inspect_and_pack<double>(FourRows&, const double*, const FourPlaces<double>&, std::size_t);

}  // namespace kernelweave
