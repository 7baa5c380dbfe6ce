// Compiled with the finite-math flag, which maxima need: NaN is passed over by them, and found in the sums.
#include "admit.hpp"
#include "dispatch.hpp"
#include "lanes.hpp"

namespace kernelweave {
namespace {

constexpr std::size_t kFour = 4;

// What is done with the entries besides: those of a line, four rows of them, or a single one.
struct Nothing {
    KERNELWEAVE_INLINE void line(std::size_t, const Lanes&, const Lanes&, const Lanes&, const Lanes&) const {}
    KERNELWEAVE_INLINE void entry(std::size_t) const {}
};

class Adding {
public:
    KERNELWEAVE_INLINE Adding(const FourRows& rows, double* acc)
        : rows_(rows), u_(rows.weight[0]), v_(rows.weight[1]), w_(rows.weight[2]), x_(rows.weight[3]), acc_(acc) {}

    KERNELWEAVE_INLINE void line(std::size_t j, const Lanes& a, const Lanes& b, const Lanes& c, const Lanes& d) const {
        Lanes sum(acc_ + j);
        sum.add_scaled(a, u_);
        sum.add_scaled(b, v_);
        sum.add_scaled(c, w_);
        sum.add_scaled(d, x_);
        sum.write(acc_ + j);
    }
    KERNELWEAVE_INLINE void entry(std::size_t j) const {
        for (std::size_t r = 0; r < kFour; ++r) acc_[j] += rows_.weight[r] * rows_.row[r][j];
    }

private:
    const FourRows& rows_;
    const double u_, v_, w_, x_;  // in registers: acc might be where the rows keep them
    double* const acc_;
};

template <class T>
class Packing {
public:
    KERNELWEAVE_INLINE Packing(const FourRows& rows, const FourPlaces<T>& to) : rows_(rows), to_(to) {}

    KERNELWEAVE_INLINE void line(std::size_t j, const Lanes& a, const Lanes& b, const Lanes& c, const Lanes& d) const {
        Lanes sum(to_.sum + j);
        pack(j, 0, a, sum);
        pack(j, 1, b, sum);
        pack(j, 2, c, sum);
        pack(j, 3, d, sum);
        sum.write(to_.sum + j);
    }
    KERNELWEAVE_INLINE void entry(std::size_t j) const {
        for (std::size_t r = 0; r < kFour; ++r) {
            const double shifted = rows_.row[r][j] - to_.own[r] - to_.shift[r][j];
            to_.out[r][j] = static_cast<T>(shifted);
            to_.sum[j] += to_.weight[r] * shifted;
        }
    }

private:
    KERNELWEAVE_INLINE void pack(std::size_t j, std::size_t r, const Lanes& entries, Lanes& sum) const {
        Lanes shifted = entries;
        shifted.take_away(Lanes(to_.shift[r] + j), to_.own[r]);
        shifted.write(to_.out[r] + j);
        sum.add_scaled(shifted, to_.weight[r]);
    }

    const FourRows& rows_;
    const FourPlaces<T>& to_;
};

template <class Keep>
KERNELWEAVE_INLINE void read_four(FourRows& rows, const double* tilt, std::size_t length, const Keep& keep) {
    const double *a = rows.row[0], *b = rows.row[1], *c = rows.row[2], *d = rows.row[3];
    const double *p = rows.next[0], *q = rows.next[1], *r = rows.next[2], *s = rows.next[3];
    Lanes sa, sb, sc, sd, ta, tb, tc, td;
    const std::size_t whole = length - length % kLine;
    for (std::size_t j = 0; j < whole; j += kLine) {
        fetch(p + j);
        fetch(q + j);
        fetch(r + j);
        fetch(s + j);
        const Lanes t(tilt + j), e(a + j), f(b + j), g(c + j), h(d + j);
        sa.add_products(e, t);
        sb.add_products(f, t);
        sc.add_products(g, t);
        sd.add_products(h, t);
        ta.keep_larger(e);
        tb.keep_larger(f);
        tc.keep_larger(g);
        td.keep_larger(h);
        keep.line(j, e, f, g, h);
    }
    const double sums[kFour] = {sa.sum(), sb.sum(), sc.sum(), sd.sum()};
    const double tops[kFour] = {ta.largest(), tb.largest(), tc.largest(), td.largest()};
    for (std::size_t k = 0; k < kFour; ++k) {
        rows.asymmetry[k] = sums[k];
        rows.largest[k] = tops[k];
    }
    for (std::size_t j = whole; j < length; ++j) {
        for (std::size_t k = 0; k < kFour; ++k) {
            const double entry = rows.row[k][j], size = entry < 0.0 ? -entry : entry;
            rows.asymmetry[k] += entry * tilt[j];
            rows.largest[k] = size > rows.largest[k] ? size : rows.largest[k];
        }
        keep.entry(j);
    }
}

KERNELWEAVE_CLONES void pack_rows(FourRows& rows, const double* tilt, const FourPlaces<float>& to, std::size_t length) {
    read_four(rows, tilt, length, Packing<float>(rows, to));
}
KERNELWEAVE_CLONES void pack_rows(FourRows& rows, const double* tilt, const FourPlaces<double>& to, std::size_t length) {
    read_four(rows, tilt, length, Packing<double>(rows, to));
}

}  // namespace

KERNELWEAVE_CLONES void inspect_and_add(FourRows& rows, const double* tilt, double* acc, std::size_t length) {
    read_four(rows, tilt, length, Adding(rows, acc));
}

KERNELWEAVE_CLONES void inspect_rows(FourRows& rows, const double* tilt, std::size_t length) {
    read_four(rows, tilt, length, Nothing{});
}

template <class T>
void inspect_and_pack(FourRows& rows, const double* tilt, const FourPlaces<T>& places, std::size_t length) {
    pack_rows(rows, tilt, places, length);
}

template void inspect_and_pack<float>(FourRows&, const double*, const FourPlaces<float>&, std::size_t);
template void inspect_and_pack<double>(FourRows&, const double*, const FourPlaces<double>&, std::size_t);

}  // namespace kernelweave
