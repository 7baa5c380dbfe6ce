// The steps of products with a symmetric matrix of which one triangle is read, for every file that walks its rows.
#pragma once

#include <cstddef>

#include "dispatch.hpp"
#include "lanes.hpp"

namespace kernelweave {
namespace {

template <class T>
inline double dot(const T* row, const double* v, std::size_t length) {
    double sum = 0.0;
    for (std::size_t j = 0; j < length; ++j) sum += static_cast<double>(row[j]) * v[j];
    return sum;
}

[[maybe_unused]] KERNELWEAVE_CLONES double dot_row(const float* row, const double* v, std::size_t length) {
    return dot(row, v, length);
}
[[maybe_unused]] KERNELWEAVE_CLONES double dot_row(const double* row, const double* v, std::size_t length) {
    return dot(row, v, length);
}

// The products of four rows with one vector: four streams keep memory busier than one.
[[maybe_unused]] KERNELWEAVE_CLONES void dot_four_rows(const double* const* rows, const double* v, std::size_t length, double* out) {
    const double *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
    double w = 0.0, x = 0.0, y = 0.0, z = 0.0;
    for (std::size_t j = 0; j < length; ++j) {
        w += a[j] * v[j];
        x += b[j] * v[j];
        y += c[j] * v[j];
        z += d[j] * v[j];
    }
    out[0] = w;
    out[1] = x;
    out[2] = y;
    out[3] = z;
}

// The same, asking for the rows that are `next`, of as many entries, on the way.
[[maybe_unused]] KERNELWEAVE_CLONES void dot_four_rows(const double* const* rows, const double* const* next, const double* v,
                                      std::size_t length, double* out) {
    const double *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
    const double *p = next[0], *q = next[1], *r = next[2], *s = next[3];
    Lanes w, x, y, z;
    const std::size_t whole = length - length % kLine;
    for (std::size_t j = 0; j < whole; j += kLine) {
        fetch(p + j);
        fetch(q + j);
        fetch(r + j);
        fetch(s + j);
        const Lanes own(v + j);
        w.add_products(Lanes(a + j), own);
        x.add_products(Lanes(b + j), own);
        y.add_products(Lanes(c + j), own);
        z.add_products(Lanes(d + j), own);
    }
    const double sums[4] = {w.sum(), x.sum(), y.sum(), z.sum()};
    for (std::size_t k = 0; k < 4; ++k) out[k] = sums[k] + dot(rows[k] + whole, v + whole, length - whole);
}

// One read of the row serves both triangles: returns row . v and adds scale * row to out.
template <class T>
inline double dot_and_add(const T* row, const double* v, double scale, double* out, std::size_t length) {
    double sum = 0.0;
    for (std::size_t j = 0; j < length; ++j) {
        const double k = static_cast<double>(row[j]);
        sum += k * v[j];
        out[j] += scale * k;
    }
    return sum;
}

[[maybe_unused]] KERNELWEAVE_CLONES double dot_and_add_row(const float* row, const double* v, double scale, double* out,
                                          std::size_t length) {
    return dot_and_add(row, v, scale, out, length);
}
[[maybe_unused]] KERNELWEAVE_CLONES double dot_and_add_row(const double* row, const double* v, double scale, double* out,
                                          std::size_t length) {
    return dot_and_add(row, v, scale, out, length);
}

// The same for four rows at a time: `out` is read and written once for all of them.
[[maybe_unused]] KERNELWEAVE_CLONES void dot_and_add_four_rows(const double* const* rows, const double* v, const double* scale,
                                              double* out, std::size_t length, double* dots) {
    const double *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
    const double p = scale[0], q = scale[1], r = scale[2], s = scale[3];
    double w = 0.0, x = 0.0, y = 0.0, z = 0.0;
    for (std::size_t j = 0; j < length; ++j) {
        w += a[j] * v[j];
        x += b[j] * v[j];
        y += c[j] * v[j];
        z += d[j] * v[j];
        out[j] += (p * a[j] + q * b[j]) + (r * c[j] + s * d[j]);
    }
    dots[0] = w;
    dots[1] = x;
    dots[2] = y;
    dots[3] = z;
}

}  // namespace
}  // namespace kernelweave
