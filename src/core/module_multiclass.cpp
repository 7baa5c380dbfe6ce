// Python bindings of the loops of the multiclass p-norm problem.

#include "ascent.hpp"
#include "online.hpp"
#include "rows.hpp"
#include "arrays.hpp"

namespace {

template <class T, int Dim>
using Strided = nb::ndarray<T, nb::ndim<Dim>, nb::device::cpu>;  // part of a larger array, in one piece along the end
using Labels = Input<std::int64_t, 1>;

void require_labels(Labels y, std::size_t n, std::size_t classes, const char* message) {
    require(y.shape(0) == n && classes >= 2, message);
    for (std::size_t i = 0; i < n; ++i)
        require(y.data()[i] >= 0 && static_cast<std::size_t>(y.data()[i]) < classes, message);
}

template <class T>
std::int64_t ascend(Input<T, 3> K, Labels y, Input<double, 1> weight, double scale, double q, Labels order,
                    Output<double, 2> A, Output<double, 3> G, Output<double, 1> s) {
    const std::size_t F = K.shape(0), n = K.shape(1), C = A.shape(1);
    require(K.shape(2) == n, "ascend: K must hold square matrices");
    require(A.shape(0) == n && weight.shape(0) == n, "ascend: A and weight need one entry per row of K");
    require(G.shape(0) == F && G.shape(1) == C && G.shape(2) == n, "ascend: G must have shape (kernels, classes, n)");
    require(s.shape(0) == F, "ascend: s needs one entry per kernel");
    require(scale > 0.0 && q >= 2.0, "ascend: scale must be positive and q at least 2");
    require_labels(y, n, C, "ascend: y needs one class from 0 on per row of K");
    for (std::size_t k = 0; k < order.shape(0); ++k)
        require(order.data()[k] >= 0 && static_cast<std::size_t>(order.data()[k]) < n,
                "ascend: order must name rows of K");
    const kw::AscentBlock<T> block{n, F, C, K.data(), y.data(), weight.data(), scale, q, A.data(), G.data(), s.data()};
    nb::gil_scoped_release release;
    return kw::ascend<T>(block, order.data(), order.shape(0));
}

using Parts = Input<float, 1>;

kw::Products products_of(Input<float, 2> inner, Parts row_part, Parts column_part, Parts row_norm, Parts column_norm) {
    const std::size_t rows = inner.shape(0), columns = inner.shape(1);
    require(row_part.shape(0) == rows && row_norm.shape(0) == rows, "rows: one part and one norm per row are needed");
    require(column_part.shape(0) == columns && column_norm.shape(0) == columns,
            "rows: one part and one norm per column are needed");
    return {rows, columns, inner.data(), row_part.data(), column_part.data(), row_norm.data(), column_norm.data()};
}

kw::KernelFamily family_of(Labels kind, Labels degree, Input<double, 2> numbers) {
    const std::size_t count = kind.shape(0);
    require(degree.shape(0) == count && numbers.shape(0) == 3 && numbers.shape(1) == count,
            "rows: one degree and three numbers (gamma, offset, factor) per kernel are needed");
    for (std::size_t k = 0; k < count; ++k)
        require(kind.data()[k] >= 0 && kind.data()[k] <= 2 && degree.data()[k] >= 1,
                "rows: kinds are 0, 1 and 2, degrees at least 1");
    return {count, kind.data(), degree.data(), numbers.data(), numbers.data() + count, numbers.data() + 2 * count};
}

void kernel_block(Input<float, 2> inner, Parts row_part, Parts column_part, Parts row_norm, Parts column_norm,
                  Labels kind, Labels degree, Input<double, 2> numbers, Strided<float, 3> out) {
    const kw::Products block = products_of(inner, row_part, column_part, row_norm, column_norm);
    const kw::KernelFamily family = family_of(kind, degree, numbers);
    require(out.shape(0) == family.count && out.shape(1) == block.rows && out.shape(2) == block.columns &&
                out.stride(2) == 1,
            "kernel_block: out must have shape (kernels, rows, columns), rows in one piece");
    nb::gil_scoped_release release;
    kw::kernel_block(block, family, out.data(), static_cast<std::size_t>(out.stride(0)),
                     static_cast<std::size_t>(out.stride(1)));
}

std::int64_t online_steps(Input<double, 2> phi, Labels y, Input<double, 1> weight, Labels offset, double q, double eta,
                          Output<double, 2> theta, Output<double, 1> s) {
    const std::size_t n = phi.shape(0), F = s.shape(0);
    require(offset.shape(0) == F + 1 && offset.data()[0] == 0, "online_steps: offset needs kernels + 1 entries from 0");
    for (std::size_t j = 0; j < F; ++j)
        require(offset.data()[j] <= offset.data()[j + 1], "online_steps: offset must not fall");
    require(static_cast<std::size_t>(offset.data()[F]) == phi.shape(1) && theta.shape(0) == phi.shape(1),
            "online_steps: phi and theta must have the features that offset names");
    require(weight.shape(0) == n && q >= 2.0, "online_steps: one weight per row and q of at least 2 are needed");
    require_labels(y, n, theta.shape(1), "online_steps: y needs one class from 0 on per row of phi");
    const kw::OnlineState state{F, theta.shape(1), offset.data(), q, eta, theta.data(), s.data()};
    nb::gil_scoped_release release;
    return kw::online_steps(state, phi.data(), y.data(), weight.data(), n);
}

template <class T>
void bind_ascend(nb::module_& m) {
    m.def("ascend", &ascend<T>, nb::arg("K").noconvert(), nb::arg("y").noconvert(), nb::arg("weight").noconvert(),
          nb::arg("scale"), nb::arg("q"), nb::arg("order").noconvert(), nb::arg("A").noconvert(),
          nb::arg("G").noconvert(), nb::arg("s").noconvert());
}

}  // namespace

void bind_multiclass(nb::module_& m) {
    bind_ascend<float>(m);
    bind_ascend<double>(m);
    m.def("kernel_block", &kernel_block, nb::arg("inner").noconvert(), nb::arg("row_part").noconvert(),
          nb::arg("column_part").noconvert(), nb::arg("row_norm").noconvert(), nb::arg("column_norm").noconvert(),
          nb::arg("kind").noconvert(), nb::arg("degree").noconvert(), nb::arg("numbers").noconvert(),
          nb::arg("out").noconvert());
    m.def("online_steps", &online_steps, nb::arg("phi").noconvert(), nb::arg("y").noconvert(),
          nb::arg("weight").noconvert(), nb::arg("offset").noconvert(), nb::arg("q"), nb::arg("eta"),
          nb::arg("theta").noconvert(), nb::arg("s").noconvert());
}
