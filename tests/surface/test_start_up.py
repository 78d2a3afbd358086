"""What `import tapegrad` and a first gradient import, and names that are imported when they are first asked for."""

import importlib
import inspect
import pickle
import pkgutil
import pydoc
import threading
from types import ModuleType

import fresh_processes
import pytest

import tapegrad as tg
from tapegrad.deferred import Deferred, NamesOnDemand
from tapegrad.surface import public_names
from tapegrad.surface.tensor_methods import PUBLIC

# What tensors, their operators and the plain backward pass are made of.
IMPORTED = [
    "tapegrad",
    "absent_names",
    "archived_modules",
    "arrays",
    "arrays.addresses",
    "arrays.dtypes",
    "arrays.floating_point_warnings",
    "arrays.foreign_arrays",
    "arrays.memory_pool",
    "arrays.numpy_api",
    "arrays.sizes",
    "arrays.slots",
    "autograd",
    "autograd.decoded_rows",
    "autograd.forking",
    "autograd.gradcheck",
    "autograd.gradient_delivery",
    "autograd.messages",
    "autograd.pass_state",
    "autograd.plain_context",
    "autograd.row_walk",
    "autograd.sweep",
    "autograd.sweep_memory",
    "autograd.tensor_backward",
    "compilation",
    "compilation.jit",
    "deferred",
    "engine",
    "engine.layout",
    "errors",
    "frames",
    "interrupts",
    "kernels",
    "kernels.entries",
    "kernels.file_states",
    "kernels.library",
    "kernels.opcodes",
    "named_tuples",
    "ops",
    "ops.compiled_operators",
    "ops.elementwise",
    "ops.namespaces",
    "ops.operators",
    "ops.views",
    "recording",
    "recording.apply_rule",
    "recording.axis_names",
    "recording.casting",
    "recording.parameter_names",
    "recording.primal_values",
    "recording.strided_maps",
    "recording.stretched_operands",
    "recording.structural",
    "recording.whole_operands",
    "rules",
    "rules.binary_exponents",
    "rules.error_functions",
    "rules.gamma_functions",
    "rules.special",
    "rules.table",
    "surface",
    "surface.array_attributes",
    "surface.public_names",
    "surface.tensor_methods",
    "tape",
    "tape.array_kernels",
    "tape.column_memory",
    "tape.function_table",
    "tape.library_loops",
    "tape.locks",
    "tape.magnitudes",
    "tape.row_objects",
    "tape.tape",
    "tensors",
    "tensors.factories",
    "tensors.foreign_operands",
    "tensors.grad_mode",
    "tensors.inference_tensors",
    "tensors.modes",
    "tensors.nested_sequences",
    "tensors.operator_dispatch",
    "tensors.retained_gradients",
    "tensors.saved_value_packing",
    "tensors.tensor",
    "tensors.tracers",
    "tensors.version_counters",
    "tensors.untracked_values",
]

# From Python's library, beside what NumPy imports: what they need.
STANDARD = {"__future__", "array", "mmap"}

# What compiles the engine, where none was built.
COMPILING = {
    "compilation.engine_compiler",
    "compilation.memory_types",
    "compilation.notice",
    "compilation.vector_types",
    "kernels.generated_text",
    "kernels.kernel_files",
    "kernels.second_partials",
}

# What `requires_grad=True`, `grad` and `item` are made of.
ASKED = {
    "ops.cloning",
    "surface.attributes",
    "surface.conversions",
    "tensors.constant_warnings",
    "tensors.devices",
    "tensors.number_entries",
}

SCALAR = "x = tg.tensor(2.0, requires_grad=True); (x * x + 3.0 / x).backward(); x.grad.item()"
ARRAY = "a = tg.tensor([1.0, 2.0], requires_grad=True); (tg.exp(a * a) - a[0]).sum().backward(); a.grad.numpy()"


def imported_by(code: str, besides: str = "import numpy") -> set[str]:
    """Modules that code imports, besides those that other code imports."""
    text = f"import sys\n{besides}\nbefore = set(sys.modules)\n{code}\nprint(*(set(sys.modules) - before))"
    return set(fresh_processes.run(text, fresh_processes.environment()).stdout.split())


def own(names: set[str]) -> set[str]:
    return {name.removeprefix("tapegrad.") for name in names if name.partition(".")[0] == "tapegrad"}


def test_import_imports_of_the_package_only_what_is_named_here() -> None:
    assert own(imported_by("import tapegrad")) == set(IMPORTED)


def test_import_imports_of_pythons_library_only_what_is_named_here() -> None:
    found = {name.partition(".")[0] for name in imported_by("import tapegrad")} - {"tapegrad"}
    assert found <= STANDARD


@pytest.mark.parametrize(
    ("code", "more"),
    [
        (SCALAR, ASKED),
        (
            ARRAY,
            ASKED
            | {
                "ops.compiled_items",
                "ops.flat_places",
                "ops.index_keys",
                "ops.indexing",
                "ops.reductions",
                "ops.shaping",
                "recording.axes",
                "tape.loop_comparison",
            },
        ),
    ],
)
def test_first_gradient_imports_of_the_package_only_what_it_uses(code: str, more: set[str]) -> None:
    assert own(imported_by(code, "import numpy, tapegrad as tg")) - COMPILING == more


def test_first_gradient_through_a_driver_imports_only_the_drivers_files() -> None:
    code = "tg.value_and_grad(lambda x: (x * x).sum())(numpy.array([1.0, 2.0]))"
    found = own(imported_by(code, "import numpy, tapegrad as tg"))
    assert not {name for name in found if name.partition(".")[0] in ("nn", "optim", "optimize", "nopython", "linalg")}


def test_gradient_of_an_array_imports_none_of_numpys_families() -> None:
    code = "x = numpy.arange(3.0); tg.value_and_grad(lambda y: (y * x)[numpy.array([0, 2])].sum())(x); tg.tensor(x)"
    assert not {name for name in imported_by(code, "import numpy, tapegrad as tg") if name.startswith("numpy.")}


def test_numpys_functions_in_a_driver_import_nothing_that_writes_or_rearranges() -> None:
    code = "tg.value_and_grad(lambda w: numpy.logaddexp(0.0, x @ w).sum())(numpy.zeros(2))"
    found = own(imported_by(code, "import numpy, tapegrad as tg; x = numpy.ones((3, 2))"))
    rare = (
        "numpy_arrays.methods numpy_arrays.writing numpy_protocol.functions numpy_protocol.rearranging ops.in_place "
        "ops.overwriting ops.scans"
    )
    assert not found & set(rare.split())


def test_sparse_jacobian_by_products_imports_neither_passes_over_sections_nor_comparisons() -> None:
    code = "tg.sparse.plan(lambda x: numpy.concatenate([row * 2.0 for row in x.reshape(2, 2)]), numpy.zeros(4))"
    found = imported_by(code, "import numpy, tapegrad as tg")
    rare = "linear.section_passes linear.section_steps numpy_arrays.flat_iteration ops.comparing ops.transposing"
    assert not own(found) & set(rare.split())
    assert not {"copy", "threading"} & found


def test_asking_for_the_memory_of_tapes_imports_no_compiler() -> None:
    assert "numba" not in imported_by("import tapegrad as tg\nassert tg.tape_memory() == 0\ntg.free_tape_memory()")


@pytest.mark.parametrize(
    "code",
    [
        "tg.sparse.jacobian(f)(x)",
        "tg.sparse.hessian(g)(x)",
        "tg.optimize.root(f, x, sparse=True)",
        "tg.optimize.least_squares(f, x, sparse=True)",
        "tg.optimize.minimize(g, x, method='trust-constr', sparse=True)",
        "tg.integrate.solve_ivp(lambda t, y: -y, (0.0, 1.0), x)",
        "tg.parallel.sum_over(lambda w, s: (w * s).sum(), [x, x])",
    ],
)
def test_python_functions_are_solved_without_a_compiler(code: str) -> None:
    before = "import numpy as np, tapegrad as tg; x = np.ones(4); f = lambda x: x**3 - x[::-1]; g = lambda x: (f(x) ** 2).sum()"
    assert not {"numba", "llvmlite"} & imported_by(code, before)


@pytest.mark.parametrize("code", ["tg.load", "tg.save(tg.ones(2), io.BytesIO())", "tg.nn.Parameter(tg.ones(2))"])
def test_files_of_state_and_parameters_import_no_layers(code: str) -> None:
    found = own(imported_by(code, "import io, numpy, tapegrad as tg"))
    assert {name for name in found if name.startswith("nn")} == {"nn", "nn.parameter"}


@pytest.mark.parametrize(
    "place", ["nn.parameter.Parameter", "optim.sgd.SGD", "optim.optimizer.Optimizer", "optim.lr_scheduler.StepLR"]
)
def test_pytorchs_places_are_there_before_anything_was_asked_for(place: str) -> None:
    text = f"import tapegrad as tg\nprint(tg.{place}.__name__)"
    assert fresh_processes.run(text, fresh_processes.environment()).stdout.strip() == place.rpartition(".")[2]


def test_optimiser_imports_no_other_optimiser() -> None:
    found = own(imported_by("tg.optim.SGD", "import numpy, tapegrad as tg"))
    assert {name for name in found if name.startswith("optim")} == {"optim", "optim.optimizer", "optim.sgd", "optim.updating"}


@pytest.mark.parametrize("file", public_names.FILES)
def test_table_has_the_names_that_a_file_offers(file: str) -> None:
    offered = set(importlib.import_module(f"tapegrad.{file}").__all__)
    # Names that a later file of the table, a method, or another module has.
    elsewhere = {
        "ops.affine": {"linear"}, "ops.counting": {"one_hot"}, "ops.covariances": {"correlations", "products_of_deviations"},
        "ops.diagonals": {"diagonal_of_matrices"}, "ops.indexing": {"index_put"}, "ops.powers": {"powers_of_each"},
        "ops.norms": {"norm_of_elements", "without_zeros"}, "ops.products": {"product_row"},
        "ops.subviews": {"storage_offset", "unfold"}, "ops.tiling": {"repeat"}, "ops.transposing": {"H", "T", "mT"},
    }  # fmt: skip
    assert set(public_names.FILES[file].split()) == offered - elsewhere.get(file, set())


def test_no_file_has_the_name_of_something_else_in_its_package() -> None:
    """Importing it would put the module in the place of the name."""
    hidden = {
        f"{package.__name__}.{file.name}"
        for package in (tg, tg.autograd)
        for file in pkgutil.iter_modules(package.__path__)
        if not isinstance(getattr(package, file.name, tg), ModuleType)
    }
    # It is imported before anybody can ask for the function.
    assert hidden == {"tapegrad.autograd.gradcheck"}


TABLES = (*public_names.MORE.values(), *public_names.FAMILIES.values())
ALL_NAMES = sorted({*PUBLIC, *" ".join(TABLES).split()} - {"."})


def test_every_name_of_the_table_is_listed_and_there() -> None:
    assert [name for name in ALL_NAMES if name not in dir(tg) or not hasattr(tg, name)] == []


def test_type_checkers_are_told_of_every_driver() -> None:
    of_table = " ".join(names for file, names in public_names.FAMILIES.items() if file.startswith("drivers."))
    assert sorted(tg.drivers.__all__) == sorted(of_table.split())


def test_names_of_families_are_imported_from_the_package() -> None:
    code = "from tapegrad import grad, hessian, linalg, load, nn, optim, random, sum\nassert callable(hessian) and callable(sum)"
    assert "nn" in own(imported_by(code))


def test_star_gives_functions_and_leaves_families_alone() -> None:
    found = own(imported_by("from tapegrad import *\nassert callable(logsumexp) and callable(rand) and callable(einsum)"))
    assert not found & {"nn", "optim", "optimize", "drivers", "nopython"}


@pytest.mark.parametrize("module", [tg, tg.autograd, tg.nn, tg.optim, tg.utils])
def test_unknown_name_is_said_to_be_no_attribute(module: ModuleType) -> None:
    with pytest.raises(AttributeError, match=rf"module '{module.__name__}' has no attribute 'nothing'"):
        getattr(module, "noth" + "ing")


def in_a_fresh_process(code: str) -> str:
    return fresh_processes.run(f"import tapegrad as tg\n{code}", fresh_processes.environment()).stdout


def test_help_shows_a_function_that_was_not_asked_for_yet() -> None:
    assert "Sum of the elements on the" in in_a_fresh_process("help(tg.trace)")


def test_help_shows_methods_that_were_not_asked_for_yet() -> None:
    assert "logsumexp(x" in in_a_fresh_process("import pydoc; print(pydoc.plain(pydoc.render_doc(tg.Tensor)))")


def test_method_is_the_same_from_class_subclass_and_tensor() -> None:
    code = """
class Own(tg.Tensor):
    __slots__ = ()
    def amax(self, *a):
        return super().amax(*a)
x = tg.nn.Parameter(tg.tensor([1.0, 2.0]))
print(x.amin().item(), tg.Tensor.amin is type(x).amin, type(x).msort(x).tolist(), Own.amax is not tg.Tensor.amax)
"""
    assert in_a_fresh_process(code) == "1.0 True [1.0, 2.0] True\n"


def test_attribute_that_was_put_in_the_place_of_a_method_stays() -> None:
    assert in_a_fresh_process("tg.Tensor.amax = lambda t: 'mine'; print(tg.ones(2).amax())") == "mine\n"


def test_property_that_was_not_asked_for_yet_refuses_to_be_set() -> None:
    code = "x = tg.ones(2, 2)\ntry:\n    x.T = 3\nexcept AttributeError:\n    print('refused', x.T.shape)"
    assert in_a_fresh_process(code) == "refused tapegrad.Size([2, 2])\n"


@pytest.mark.parametrize("name", sorted(public_names.PLACES))
def test_function_is_pickled_by_its_name(name: str) -> None:
    function = getattr(tg, name)
    assert pickle.loads(pickle.dumps(function)) is function


def test_pickled_tensor_is_read_by_a_process_that_imported_nothing_else() -> None:
    data = pickle.dumps(tg.tensor([1.0, 2.0], requires_grad=True))
    assert in_a_fresh_process(f"import pickle; print(pickle.loads({data!r}).tolist())") == "[1.0, 2.0]\n"


def test_numpy_functions_find_tensors_of_a_fresh_process() -> None:
    assert in_a_fresh_process("import numpy as np; print(np.linalg.norm(tg.tensor([3.0, 4.0])).item())") == "5.0\n"


def test_gradient_can_be_deleted_before_it_was_asked_for() -> None:
    assert in_a_fresh_process("x = tg.Tensor.__new__(tg.Tensor); x._data, x._row = 1.0, 0; del x.grad; print(x.grad)") == "None\n"


def test_numpy_function_of_a_late_table_imports_it_and_an_unknown_one_is_refused() -> None:
    code = """
import sys, numpy as np
x = tg.tensor([3.0, 1.0, 2.0])
np.sum(x)
before = "tapegrad.numpy_protocol.statistics" in sys.modules
print(before, np.median(x).item(), np.cbrt(tg.tensor(8.0)).item())
try:
    np.fft.fft(x)
except TypeError as error:
    print("not covered" in str(error))
"""
    assert in_a_fresh_process(code) == "False 2.0 2.0\nTrue\n"


def test_threads_that_ask_at_once_get_the_same_attribute() -> None:
    class Owner:
        pass

    barrier, found = threading.Barrier(4), []
    made = iter(range(100))

    def make(what: str) -> object:
        barrier.wait()
        number = next(made)
        return property(lambda self: number)

    Owner.name = Deferred(Owner, "name", make, "what")  # type: ignore[attr-defined]
    threads = [threading.Thread(target=lambda: found.append(Owner().name)) for _ in range(4)]  # type: ignore[attr-defined]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Owner().name in found  # type: ignore[attr-defined]
    assert isinstance(inspect.getattr_static(Owner, "name"), property)


def test_threads_that_ask_at_once_get_the_same_name() -> None:
    barrier, found = threading.Barrier(4), []

    def make(name: str) -> object:
        barrier.wait()
        return object()

    names = NamesOnDemand({}, {}, ["name"], make)
    threads = [threading.Thread(target=lambda: found.append(names.get("name"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1


def test_every_method_has_documentation_that_can_be_rendered() -> None:
    assert "Deferred" not in pydoc.plain(pydoc.render_doc(tg.Tensor))
