// Python bindings: shapes are checked here, the loops release the GIL, nothing is decided.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>

#include <stdexcept>
#include <string>
#include <tuple>

#include "inspect.hpp"
#include "packed.hpp"
#include "smo.hpp"

namespace nb = nanobind;
namespace kw = kernelweave;

template <class T, int Dim>
using Input = nb::ndarray<const T, nb::ndim<Dim>, nb::c_contig, nb::device::cpu>;
template <class T, int Dim>
using Output = nb::ndarray<T, nb::ndim<Dim>, nb::c_contig, nb::device::cpu>;

namespace {

void require(bool holds, const char* message) {
    if (!holds) throw std::invalid_argument(message);
}

std::tuple<bool, double> inspect(Input<double, 2> K, Input<double, 1> roots) {
    const std::size_t n = K.shape(0);
    require(K.shape(1) == n, "inspect: K must be square");
    require(roots.shape(0) == n, "inspect: roots must hold n entries");
    kw::InspectReport report;
    {
        nb::gil_scoped_release release;
        report = kw::inspect(K.data(), n, roots.data());
    }
    return {report.minors, report.asymmetry};
}

template <class T>
double pack(Input<double, 2> K, bool centre, Output<T, 1> out, Output<double, 1> means) {
    const std::size_t n = K.shape(0);
    require(K.shape(1) == n, "pack: K must be square");
    require(out.shape(0) == kw::triangle(n), "pack: out must hold n(n+1)/2 entries");
    require(means.shape(0) == n, "pack: means must hold n entries");
    nb::gil_scoped_release release;
    return kw::pack<T>(K.data(), n, centre, out.data(), means.data());
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
void images(Input<T, 2> packed, Input<double, 2> V, Output<double, 3> out, int n_threads) {
    const std::size_t n = V.shape(0);
    require(packed.shape(1) == kw::triangle(n), "images: packed rows must hold n(n+1)/2 entries");
    require(out.shape(0) == packed.shape(0) && out.shape(1) == n && out.shape(2) == V.shape(1),
            "images: out must have shape (kernels, n, columns of V)");
    nb::gil_scoped_release release;
    kw::images<T>(packed.data(), packed.shape(0), n, V.data(), V.shape(1), out.data(), n_threads);
}

template <class T>
void energies(Input<T, 2> packed, Input<double, 2> V, Output<double, 1> out, int n_threads) {
    const std::size_t n = V.shape(0);
    require(packed.shape(1) == kw::triangle(n), "energies: packed rows must hold n(n+1)/2 entries");
    require(out.shape(0) == packed.shape(0), "energies: out must hold one entry per kernel");
    nb::gil_scoped_release release;
    kw::energies<T>(packed.data(), packed.shape(0), n, V.data(), V.shape(1), out.data(), n_threads);
}

template <class T>
std::tuple<std::int64_t, double> smo(Input<T, 2> K, Input<double, 1> s, Input<double, 1> d, Input<double, 1> lo,
                                     Input<double, 1> hi, Input<std::int64_t, 1> group, Output<double, 1> v,
                                     Output<double, 1> gradient, double tolerance, std::int64_t max_iterations) {
    const std::size_t n = K.shape(0);
    require(K.shape(1) == n, "smo: K must be square");
    for (const std::size_t length : {s.shape(0), d.shape(0), lo.shape(0), hi.shape(0), group.shape(0), v.shape(0),
                                     gradient.shape(0)})
        require(length == n, "smo: every vector must have one entry per row of K");
    std::int64_t n_groups = 1;
    for (std::size_t t = 0; t < n; ++t) {
        require(group.data()[t] >= 0, "smo: group labels must not be negative");
        n_groups = std::max(n_groups, group.data()[t] + 1);
        require(lo.data()[t] <= v.data()[t] && v.data()[t] <= hi.data()[t], "smo: the start must be feasible");
    }
    const kw::SmoProblem problem{n, s.data(), d.data(), lo.data(), hi.data(), group.data(), n_groups};
    kw::SmoReport report;
    {
        nb::gil_scoped_release release;
        report = kw::smo<T>(K.data(), problem, tolerance, max_iterations, v.data(), gradient.data());
    }
    return {report.iterations, report.violation};
}

template <class T>
void bind(nb::module_& m) {
    m.def("pack", &pack<T>, nb::arg("K").noconvert(), nb::arg("centre"), nb::arg("out").noconvert(),
          nb::arg("means").noconvert());
    m.def("combine", &combine<T>, nb::arg("packed").noconvert(), nb::arg("eta").noconvert(),
          nb::arg("out").noconvert(), nb::arg("n_threads") = 1);
    m.def("images", &images<T>, nb::arg("packed").noconvert(), nb::arg("V").noconvert(),
          nb::arg("out").noconvert(), nb::arg("n_threads") = 1);
    m.def("energies", &energies<T>, nb::arg("packed").noconvert(), nb::arg("V").noconvert(),
          nb::arg("out").noconvert(), nb::arg("n_threads") = 1);
    m.def("smo", &smo<T>, nb::arg("K").noconvert(), nb::arg("s").noconvert(), nb::arg("d").noconvert(),
          nb::arg("lo").noconvert(), nb::arg("hi").noconvert(), nb::arg("group").noconvert(),
          nb::arg("v").noconvert(), nb::arg("gradient").noconvert(), nb::arg("tolerance"),
          nb::arg("max_iterations"));
}

}  // namespace

NB_MODULE(_core, m) {
    m.doc() = "Loops that run at memory speed; each has a numpy twin in the tests.";
    m.def("inspect", &inspect, nb::arg("K").noconvert(), nb::arg("roots").noconvert());
    bind<float>(m);
    bind<double>(m);
}
