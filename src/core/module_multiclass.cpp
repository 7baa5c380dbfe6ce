// Python bindings of the loops of the multiclass p-norm problem.

#include "ascent.hpp"
#include "online.hpp"
#include "arrays.hpp"

namespace {

using Labels = Input<std::int64_t, 1>;

void require_labels(Labels y, std::size_t n, std::size_t classes, const char* message) {
    require(y.shape(0) == n && classes >= 2, message);
    for (std::size_t i = 0; i < n; ++i)
        require(y.data()[i] >= 0 && static_cast<std::size_t>(y.data()[i]) < classes, message);
}

template <class T>
std::int64_t ascend(Input<T, 2> K, Input<double, 3> G, Input<double, 1> share, Input<double, 1> least_curvature,
                    Labels y, Input<double, 1> weight, double scale, double q, Labels order, Output<double, 2> A,
                    Output<T, 2> H, Output<double, 1> s) {
    const std::size_t F = G.shape(0), n = K.shape(0), C = A.shape(1);
    require(K.shape(1) == n, "ascend: K must be square");
    require(A.shape(0) == n && weight.shape(0) == n && least_curvature.shape(0) == n,
            "ascend: A, weight and least_curvature need one entry per row of K");
    require(G.shape(1) == n && G.shape(2) == C, "ascend: G must have shape (kernels, n, classes)");
    require(H.shape(0) == C && H.shape(1) == n, "ascend: H must have shape (classes, n)");
    require(s.shape(0) == F && share.shape(0) == F, "ascend: s and share need one entry per kernel");
    require(scale > 0.0 && q >= 2.0, "ascend: scale must be positive and q at least 2");
    require_labels(y, n, C, "ascend: y needs one class from 0 on per row of K");
    for (std::size_t k = 0; k < order.shape(0); ++k)
        require(order.data()[k] >= 0 && static_cast<std::size_t>(order.data()[k]) < n,
                "ascend: order must name rows of K");
    const kw::AscentBlock<T> block{n,        F,           C,     K.data(), G.data(), share.data(), least_curvature.data(),
                                   y.data(), weight.data(), scale, q,        A.data(), H.data(),     s.data()};
    nb::gil_scoped_release release;
    return kw::ascend<T>(block, order.data(), order.shape(0));
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
    m.def("ascend", &ascend<T>, array("K"), array("G"), array("share"), array("least_curvature"), array("y"),
          array("weight"), nb::arg("scale"), nb::arg("q"), array("order"), array("A"), array("H"), array("s"));
}

}  // namespace

void bind_multiclass(nb::module_& m) {
    bind_ascend<float>(m);
    bind_ascend<double>(m);
    m.def("online_steps", &online_steps, array("phi"), array("y"), array("weight"), array("offset"), nb::arg("q"),
          nb::arg("eta"), array("theta"), array("s"));
}
