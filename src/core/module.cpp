// Python bindings: shapes are checked here, the loops release the GIL, nothing is decided.
#include <nanobind/stl/tuple.h>

#include <string>
#include <tuple>

#include "local.hpp"
#include "packed.hpp"
#include "projections.hpp"
#include "smo.hpp"
#include "smo_plus.hpp"
#include "smo_views.hpp"
#include "arrays.hpp"

void bind_matrices(nb::module_& m);
void bind_multiclass(nb::module_& m);
void bind_pairs(nb::module_& m);
void bind_strings(nb::module_& m);

using Rows = nb::ndarray<const double, nb::ndim<2>, nb::device::cpu>;  // rows of a larger matrix, perhaps

namespace {

template <class T>
void pack(Rows K, std::size_t start, Input<double, 1> shift, Output<T, 1> out) {
    const std::size_t stop = start + K.shape(0);
    require(K.stride(1) == 1 && K.shape(1) >= stop, "pack: K must hold the rows up to their diagonal, in one piece");
    require(shift.shape(0) >= stop, "pack: shift must hold one entry per column");
    require(out.shape(0) >= kw::triangle(stop), "pack: out must hold the triangle of these rows");
    nb::gil_scoped_release release;
    kw::pack<T>(K.data(), static_cast<std::size_t>(K.stride(0)), start, stop, shift.data(), out.data());
}

template <class T>
void combine(Input<T, 2> packed, Input<double, 1> eta, Output<T, 2> out, int n_threads) {
    const std::size_t n = out.shape(0);
    require(out.shape(1) == n, "combine: out must be square");
    require(packed.shape(1) == kw::triangle(n), "combine: packed rows must hold n(n+1)/2 entries");
    require(eta.shape(0) == packed.shape(0), "combine: one weight per kernel is needed");
    nb::gil_scoped_release release;
    kw::combine<T>(packed.data(), packed.shape(0), n, eta.data(), out.data(), n_threads);
}

template <class T>
void gather(Input<T, 2> packed, Input<std::size_t, 1> chosen, Output<T, 2> out, int n_threads) {
    const std::size_t n_chosen = chosen.shape(0);
    for (std::size_t a = 1; a < n_chosen; ++a)
        require(chosen.data()[a - 1] < chosen.data()[a], "gather: chosen must ascend");
    require(n_chosen == 0 || kw::triangle(chosen.data()[n_chosen - 1] + 1) <= packed.shape(1),
            "gather: chosen must lie within the matrices");
    require(out.shape(0) == packed.shape(0) && out.shape(1) == kw::triangle(n_chosen),
            "gather: out must have one triangle of the chosen rows per kernel");
    nb::gil_scoped_release release;
    kw::gather<T>(packed.data(), packed.shape(0), packed.shape(1), chosen.data(), n_chosen, out.data(), n_threads);
}

template <class T>
void mirror(Output<T, 2> K, int n_threads) {
    require(K.shape(0) == K.shape(1), "mirror: K must be square");
    nb::gil_scoped_release release;
    kw::mirror<T>(K.data(), K.shape(0), n_threads);
}

void matvec_and_size(Input<float, 2> packed, Input<double, 1> eta, Input<double, 2> V, Output<double, 2> out,
                     Output<double, 2> sizes, int n_threads) {
    const std::size_t n = V.shape(1);
    require(packed.shape(1) == kw::triangle(n), "matvec_and_size: packed rows must hold n(n+1)/2 entries");
    require(eta.shape(0) == packed.shape(0), "matvec_and_size: one weight per kernel is needed");
    require(out.shape(0) == V.shape(0) && out.shape(1) == n, "matvec_and_size: out must have the shape of V");
    require(sizes.shape(0) == V.shape(0) && sizes.shape(1) == n, "matvec_and_size: sizes must have the shape of V");
    nb::gil_scoped_release release;
    kw::matvec_and_size(packed.data(), packed.shape(0), n, eta.data(), V.data(), V.shape(0), out.data(), sizes.data(),
                        n_threads);
}

template <class T>
void matvecs(Input<T, 2> packed, Input<double, 2> V, Output<double, 3> out, int n_threads, Needed needed) {
    const std::size_t n = V.shape(1);
    require(packed.shape(1) == kw::triangle(n), "matvecs: packed rows must hold n(n+1)/2 entries");
    require(out.shape(0) == packed.shape(0) && out.shape(1) == V.shape(0) && out.shape(2) == n,
            "matvecs: out must have shape (kernels, rows of V, n)");
    const std::uint8_t* marked = marks(needed, V);
    nb::gil_scoped_release release;
    kw::matvecs<T>(packed.data(), packed.shape(0), n, V.data(), V.shape(0), marked, out.data(), n_threads);
}

template <class T>
void energies(Input<T, 2> packed, Input<double, 2> V, Output<double, 1> out, int n_threads) {
    const std::size_t n = V.shape(1);
    require(packed.shape(1) == kw::triangle(n), "energies: packed rows must hold n(n+1)/2 entries");
    require(out.shape(0) == packed.shape(0), "energies: out must hold one entry per kernel");
    nb::gil_scoped_release release;
    kw::energies<T>(packed.data(), packed.shape(0), n, V.data(), V.shape(0), out.data(), n_threads);
}

void check_local(Input<double, 2> local, std::size_t n_kernels, std::size_t n) {
    require(local.shape(0) == n_kernels && local.shape(1) == n,
            "local: one row of n weights per kernel is needed");
}

template <class T>
void combine_local(Input<T, 2> packed, Input<double, 1> eta, Input<double, 2> local, Output<T, 2> out,
                   int n_threads) {
    const std::size_t n = out.shape(0);
    require(out.shape(1) == n, "combine_local: out must be square");
    require(packed.shape(1) == kw::triangle(n), "combine_local: packed rows must hold n(n+1)/2 entries");
    require(eta.shape(0) == packed.shape(0), "combine_local: one weight per kernel is needed");
    check_local(local, packed.shape(0), n);
    nb::gil_scoped_release release;
    kw::combine_local<T>(packed.data(), packed.shape(0), n, eta.data(), local.data(), out.data(), n_threads);
}

template <class T>
void column_weighted_matvecs(Input<T, 2> packed, Input<double, 2> V, Input<double, 2> local,
                             Output<double, 3> out, int n_threads) {
    const std::size_t n = V.shape(1);
    require(packed.shape(1) == kw::triangle(n), "column_weighted_matvecs: packed rows must hold n(n+1)/2 entries");
    require(out.shape(0) == packed.shape(0) && out.shape(1) == V.shape(0) && out.shape(2) == n,
            "column_weighted_matvecs: out must have shape (kernels, rows of V, n)");
    check_local(local, packed.shape(0), n);
    nb::gil_scoped_release release;
    kw::column_weighted_matvecs<T>(packed.data(), packed.shape(0), n, V.data(), V.shape(0), local.data(), out.data(),
                                   n_threads);
}

template <class T>
std::tuple<std::int64_t, double> smo(Input<T, 2> K, Input<double, 1> s, Input<double, 1> d,
                                     Input<double, 1> kink, Input<double, 1> lo, Input<double, 1> hi,
                                     Input<std::int64_t, 1> group, Output<double, 1> v, Output<double, 1> gradient,
                                     double tolerance, std::int64_t max_iterations, bool gradient_is_known) {
    const std::size_t n = K.shape(0);
    require(K.shape(1) == n, "smo: K must be square");
    for (const std::size_t length : {s.shape(0), d.shape(0), kink.shape(0), lo.shape(0), hi.shape(0), group.shape(0),
                                     v.shape(0), gradient.shape(0)})
        require(length == n, "smo: every vector must have one entry per row of K");
    std::int64_t n_groups = 1;
    for (std::size_t t = 0; t < n; ++t) {
        require(group.data()[t] >= 0, "smo: group labels must not be negative");
        n_groups = std::max(n_groups, group.data()[t] + 1);
        require(kink.data()[t] >= 0.0, "smo: kinks must not be negative");
        require(lo.data()[t] <= v.data()[t] && v.data()[t] <= hi.data()[t], "smo: the start must be feasible");
    }
    const kw::SmoProblem problem{n,         s.data(),  d.data(),     kink.data(),
                                 lo.data(), hi.data(), group.data(), n_groups};
    kw::SmoReport report;
    {
        nb::gil_scoped_release release;
        report = kw::smo<T>(K.data(), problem, tolerance, max_iterations, gradient_is_known, v.data(), gradient.data());
    }
    return {report.iterations, report.violation};
}

std::tuple<std::int64_t, double> smo_plus(Input<double, 2> K, Input<double, 2> G, Input<double, 1> y,
                                          Output<double, 1> alpha, Output<double, 1> beta, Output<double, 1> f,
                                          Output<double, 1> g, double tolerance, std::int64_t max_iterations) {
    const std::size_t n = y.shape(0);
    for (const auto& one : {K, G})
        require(one.shape(0) == n && one.shape(1) == n, "smo_plus: K and G must be square, a row per label");
    for (const std::size_t length : {alpha.shape(0), beta.shape(0), f.shape(0), g.shape(0)})
        require(length == n, "smo_plus: every vector must have one entry per row of K");
    for (std::size_t t = 0; t < n; ++t) {
        require(y.data()[t] == 1.0 || y.data()[t] == -1.0, "smo_plus: labels must be 1 or -1");
        require(alpha.data()[t] >= 0.0 && beta.data()[t] >= 0.0, "smo_plus: the start must be feasible");
    }
    const kw::SmoPlusProblem problem{n, K.data(), G.data(), y.data()};
    kw::SmoPlusReport report;
    {
        nb::gil_scoped_release release;
        report = kw::smo_plus(problem, tolerance, max_iterations, alpha.data(), beta.data(), f.data(), g.data());
    }
    return {report.iterations, report.violation};
}

std::tuple<std::int64_t, double> smo_views(Input<double, 2> A, Input<double, 2> B, Input<double, 1> y,
                                           Input<double, 2> lo, Input<double, 2> hi, double epsilon,
                                           Output<double, 2> values, Output<double, 2> images, double tolerance,
                                           std::int64_t max_iterations) {
    const std::size_t n = y.shape(0);
    for (const auto& one : {A, B})
        require(one.shape(0) == n && one.shape(1) == n, "smo_views: A and B must be square, a row per label");
    for (const auto& one : {lo, hi})
        require(one.shape(0) == 3 && one.shape(1) == n, "smo_views: bounds must have a row for each of a, b and c");
    require(values.shape(0) == 3 && values.shape(1) == n && images.shape(0) == 2 && images.shape(1) == n,
            "smo_views: values must have the rows a, b, c and images the rows f, g, an entry per label");
    require(epsilon >= 0.0, "smo_views: epsilon must not be negative");
    for (std::size_t t = 0; t < 3 * n; ++t)
        require(lo.data()[t] <= values.data()[t] && values.data()[t] <= hi.data()[t],
                "smo_views: the start must be feasible");
    const double *lo_a = lo.data(), *hi_a = hi.data();
    const kw::SmoViewsProblem problem{n,        A.data(), B.data(),     y.data(),     lo_a,   hi_a,
                                      lo_a + n, hi_a + n, lo_a + 2 * n, hi_a + 2 * n, epsilon};
    double *a = values.data(), *f = images.data();
    kw::SmoViewsReport report;
    {
        nb::gil_scoped_release release;
        report = kw::smo_views(problem, tolerance, max_iterations, a, a + n, a + 2 * n, f, f + n);
    }
    return {report.iterations, report.violation};
}

std::size_t project_pairs(Input<double, 2> X, Output<double, 2> M, Input<double, 2> Z, Output<double, 2> P,
                          Input<std::int64_t, 2> ends, Input<std::int64_t, 2> privileged_ends,
                          Input<double, 1> sign, Input<double, 1> goal, Input<double, 1> gamma,
                          Input<double, 1> cap, Input<std::uint8_t, 1> has_privileged, Input<double, 1> reach,
                          Input<std::int64_t, 1> order, double lam, bool corrected, Output<double, 1> a,
                          Output<double, 1> b) {
    const std::size_t n = ends.shape(0);
    require(ends.shape(1) == 2 && privileged_ends.shape(0) == n && privileged_ends.shape(1) == 2,
            "project_pairs: ends must hold two points per pair");
    require(M.shape(0) == X.shape(1) && M.shape(1) == X.shape(1) && P.shape(0) == Z.shape(1) &&
                P.shape(1) == Z.shape(1),
            "project_pairs: a metric must be square, one row per column of its points");
    for (const std::size_t length : {sign.shape(0), goal.shape(0), gamma.shape(0), cap.shape(0), has_privileged.shape(0),
                                     reach.shape(0), a.shape(0), b.shape(0)})
        require(length == n, "project_pairs: every vector must have one entry per pair");
    const auto within = [](std::int64_t index, std::size_t length) {
        return index >= 0 && static_cast<std::size_t>(index) < length;
    };
    for (std::size_t k = 0; k < 2 * n; ++k)
        require(within(ends.data()[k], X.shape(0)) &&
                    (!has_privileged.data()[k / 2] || within(privileged_ends.data()[k], Z.shape(0))),
                "project_pairs: pairs must lie within the points");
    for (std::size_t k = 0; k < order.shape(0); ++k)
        require(within(order.data()[k], n), "project_pairs: order must name pairs");
    const kw::MetricSpace space{X.shape(1), X.data(), M.data()}, privileged{Z.shape(1), Z.data(), P.data()};
    const kw::MetricPairs pairs{ends.data(),  privileged_ends.data(), sign.data(), goal.data(),
                                gamma.data(), cap.data(),             has_privileged.data(), reach.data()};
    nb::gil_scoped_release release;
    return kw::project_pairs(space, privileged, pairs, order.data(), order.shape(0), lam, corrected, a.data(),
                             b.data());
}

template <class T>
void bind(nb::module_& m) {
    m.def("pack", &pack<T>, array("K"), nb::arg("start"), array("shift"), array("out"));
    m.def("combine", &combine<T>, array("packed"), array("eta"), array("out"), threads());
    m.def("gather", &gather<T>, array("packed"), nb::arg("chosen"), array("out"), threads());
    m.def("mirror", &mirror<T>, array("K"), threads());
    m.def("matvecs", &matvecs<T>, array("packed"), array("V"), array("out"), threads(), nb::arg("needed") = nb::none());
    m.def("energies", &energies<T>, array("packed"), array("V"), array("out"), threads());
    m.def("combine_local", &combine_local<T>, array("packed"), array("eta"), array("local"), array("out"), threads());
    m.def("column_weighted_matvecs", &column_weighted_matvecs<T>, array("packed"), array("V"), array("local"),
          array("out"), threads());
    m.def("smo", &smo<T>, array("K"), array("s"), array("d"), array("kink"), array("lo"), array("hi"), array("group"),
          array("v"), array("gradient"), nb::arg("tolerance"), nb::arg("max_iterations"),
          nb::arg("gradient_is_known") = false);
}

}  // namespace

NB_MODULE(_core, m) {
    m.doc() = "Loops that run at memory speed; each has a numpy twin in the tests.";
    m.def("smo_plus", &smo_plus, array("K"), array("G"), array("y"), array("alpha"), array("beta"), array("f"),
          array("g"), nb::arg("tolerance"), nb::arg("max_iterations"));
    m.def("smo_views", &smo_views, array("A"), array("B"), array("y"), array("lo"), array("hi"), nb::arg("epsilon"),
          array("values"), array("images"), nb::arg("tolerance"), nb::arg("max_iterations"));
    m.def("matvec_and_size", &matvec_and_size, array("packed"), nb::arg("eta"), nb::arg("V"), array("out"),
          array("sizes"), threads());
    m.def("project_pairs", &project_pairs, array("X"), array("M"), array("Z"), array("P"), array("ends"),
          array("privileged_ends"), array("sign"), array("goal"), array("gamma"), array("cap"), array("has_privileged"),
          array("reach"), array("order"), nb::arg("lam"), nb::arg("corrected"), array("a"), array("b"));
    bind<float>(m);
    bind<double>(m);
    bind_matrices(m);
    bind_multiclass(m);
    bind_pairs(m);
    bind_strings(m);
}
