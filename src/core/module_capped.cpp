// Python bindings of the steps over a capped simplex.
#include <cstdint>

#include "arrays.hpp"
#include "capped.hpp"

namespace {

kw::CappedQuadratic program(Input<double, 2> A, Input<double, 1> b, double cap, std::size_t n) {
    require(A.shape(0) == n && A.shape(1) == n && b.shape(0) == n, "A, b and x must have one row per weight");
    return {A.data(), b.data(), n, cap};
}

bool stationary(Input<double, 2> A, Input<double, 1> b, double cap, Input<std::int8_t, 1> state, Output<double, 1> x,
                Output<double, 1> surplus) {
    const std::size_t n = x.shape(0);
    require(state.shape(0) == n && surplus.shape(0) == n,
            "stationary: state and surplus must have one entry per weight");
    kw::CappedQuadratic problem = program(A, b, cap, n);
    nb::gil_scoped_release release;
    return problem.stationary(state.data(), x.data(), surplus.data());
}

int exchange(Input<double, 2> A, Input<double, 1> b, double cap, Output<std::int8_t, 1> state, Output<double, 1> x,
             double noise, std::size_t most, int max_rounds, int patience) {
    const std::size_t n = x.shape(0);
    require(state.shape(0) == n, "exchange: state must have one entry per weight");
    kw::CappedQuadratic problem = program(A, b, cap, n);
    nb::gil_scoped_release release;
    return static_cast<int>(problem.exchange(state.data(), x.data(), noise, most, max_rounds, patience));
}

}  // namespace

void bind_capped(nb::module_& m) {
    m.def("stationary", &stationary, nb::arg("A").noconvert(), nb::arg("b").noconvert(), nb::arg("cap"),
          nb::arg("state").noconvert(), nb::arg("x").noconvert(), nb::arg("surplus").noconvert());
    m.def("exchange", &exchange, nb::arg("A").noconvert(), nb::arg("b").noconvert(), nb::arg("cap"),
          nb::arg("state").noconvert(), nb::arg("x").noconvert(), nb::arg("noise"), nb::arg("most"),
          nb::arg("max_rounds"), nb::arg("patience"));
}
