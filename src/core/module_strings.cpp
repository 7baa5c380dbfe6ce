// Python bindings of the kernels of strings.
#include "arrays.hpp"
#include "strings.hpp"

namespace {

using Letters = Input<std::uint32_t, 1>;
using Starts = Input<std::int64_t, 1>;

kw::Texts texts(const Letters& letters, const Starts& start) {
    require(start.shape(0) >= 1 && start.data()[0] == 0, "texts: start must begin with 0");
    const std::size_t count = start.shape(0) - 1;
    for (std::size_t i = 0; i < count; ++i)
        require(start.data()[i] <= start.data()[i + 1], "texts: start must ascend");
    require(static_cast<std::size_t>(start.data()[count]) == letters.shape(0), "texts: start must end with the letters");
    return {letters.data(), start.data(), count};
}

void subsequence_values(Letters left, Starts left_start, Letters right, Starts right_start, std::int64_t length,
                        double decay, bool symmetric, Output<double, 2> out) {
    const auto rows = texts(left, left_start), columns = texts(right, right_start);
    require(length >= 1, "subsequence_values: length must be at least 1");
    require(out.shape(0) == rows.count && out.shape(1) == columns.count,
            "subsequence_values: out must have one row per left and one column per right text");
    require(!symmetric || rows.count == columns.count, "subsequence_values: symmetric needs the same texts");
    nb::gil_scoped_release release;
    kw::subsequence_values(rows, columns, static_cast<std::size_t>(length), decay, symmetric, out.data());
}

void subsequence_diagonal(Letters letters, Starts start, std::int64_t length, double decay, Output<double, 1> out) {
    const auto rows = texts(letters, start);
    require(length >= 1, "subsequence_diagonal: length must be at least 1");
    require(out.shape(0) == rows.count, "subsequence_diagonal: out must have one entry per text");
    nb::gil_scoped_release release;
    kw::subsequence_diagonal(rows, static_cast<std::size_t>(length), decay, out.data());
}

}  // namespace

void bind_strings(nb::module_& m) {
    m.def("subsequence_values", &subsequence_values, array("left"), array("left_start"), array("right"),
          array("right_start"), nb::arg("length"), nb::arg("decay"), nb::arg("symmetric"), array("out"));
    m.def("subsequence_diagonal", &subsequence_diagonal, array("letters"), array("start"), nb::arg("length"),
          nb::arg("decay"), array("out"));
}
