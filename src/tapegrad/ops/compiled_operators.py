"""Compiled operators as attributes of `Tensor`: method descriptors around the C functions of `tapegrad.engine`.

Nothing here happens at import: the engine is loaded when the first row is recorded, and then the Python forms of the operators
give way to descriptors. A Python form costs half a microsecond a scalar, a descriptor a quarter of that; it calls the Python form
itself for all but the common cases.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from itertools import count
from operator import itemgetter
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from tapegrad.arrays import numpy_api
from tapegrad.arrays.floating_point_warnings import IGNORING, enter, leave
from tapegrad.arrays.memory_pool import Block, large_like
from tapegrad.arrays.slots import offset_of
from tapegrad.compilation.jit import Lazy
from tapegrad.deferred import Deferred, MadeOnDemand
from tapegrad.engine import layout as at
from tapegrad.engine.layout import BLOCK, ROOM_BLOCKS
from tapegrad.kernels.opcodes import OPCODES
from tapegrad.ops import views
from tapegrad.ops.elementwise import FORMS, REFLECTED, doc, use_compiled
from tapegrad.recording import strided_maps, structural
from tapegrad.recording.primal_values import forward, long_way, own_way
from tapegrad.rules.table import COMMON, POWERS, RULES
from tapegrad.tape.library_loops import loop_of, use_in_rule
from tapegrad.tape.locks import leaves
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.modes import is_recording_on
from tapegrad.tensors.operator_dispatch import operand_type
from tapegrad.tensors.tensor import LeafLink, Meta, Tensor, make
from tapegrad.tensors.version_counters import VersionCounter

__all__ = [
    "builtin", "descriptor", "hosted_function", "install", "keep", "method_sum", "plain_function", "prepare_views", "when_compiled",
]  # fmt: skip

METH_NOARGS, METH_O, METH_VARARGS_KEYWORDS, METH_FASTCALL, METH_FASTCALL_KEYWORDS = 0x0004, 0x0008, 0x0003, 0x0080, 0x0082

# Backward passes after which operators are compiled, where the engine was not built, and after which all else is: the Python forms
# do the same, and a process with few passes is done before the seconds that compiling takes.
WORTHWHILE, ALL_WORTHWHILE = 32, 1024


class _MethodDefinition(ctypes.Structure):
    """The C API's ``PyMethodDef``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_new_function = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)
_new_method = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.c_void_p)(("PyDescr_NewMethod", ctypes.pythonapi))
_fallbacks, _loops = np.zeros((2, len(RULES), 2), np.int64)  # by opcode, once there is an operator
_long_ways = np.zeros(len(RULES), np.int64)
_plain_forms = np.zeros(at.PLAIN_COUNT, np.int64)
_last = -1, -2
_last_axes = np.array([id(axis) for axis in _last])
_asked: list[tuple[type | ModuleType, Any, Callable[[], Any]]] = []  # methods for which there was only a Python form yet
_value_room = np.empty(BLOCK * (ROOM_BLOCKS + 3))
# Memory that the interpreter and the compiled code point to.
_kept: list[Any] = [_fallbacks, _loops, _long_ways, _plain_forms, _last, _last_axes, _value_room]


def _outlive_the_modules() -> None:
    """Keep everything that a tensor's destructor needs: tensors may die after the interpreter has cleared all modules."""
    _kept.extend([TAPE, *(value for value in vars(TAPE.kernels).values() if isinstance(value, Lazy))])
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_kept))


def descriptor(name: str, function: int, flags: int, doc: str | None) -> Any:
    """A method of `Tensor` that calls a C function by address."""
    definition = _MethodDefinition(name.encode(), function, flags, doc.encode() if doc else None)
    _kept.append(definition)
    return _new_method(Tensor, ctypes.addressof(definition))


def builtin(name: str, function: int, doc: str | None) -> Any:
    """A function of operands by position that calls a C function by address."""
    definition = _MethodDefinition(name.encode(), function, METH_FASTCALL, doc.encode() if doc else None)
    _kept.append(definition)
    return _new_function(ctypes.addressof(definition), None, "tapegrad")


def _prepare_header() -> None:
    """Tell the compiled operators where everything is."""
    header, kernels = TAPE.header, TAPE.kernels
    header[at.TENSOR_TYPE], header[at.INT_TYPE] = operand_type(TAPE.inferring), id(int)
    for word, slot in ((at.DATA_AT, "_data"), (at.ROW_AT, "_row"), (at.META_AT, "_meta")):
        header[word] = offset_of(make(0.0, 0), slot)
    header[at.IS_RECORDING] = id(is_recording_on)
    _refer({at.META_CLASS: Meta, at.LEAF_LINK: LeafLink, at.LOCK_LEAVES: leaves.acquire, at.UNLOCK_LEAVES: leaves.release})
    for which, slot in ((at.META_LEAF, "leaf"), (at.META_HOOKS, "hooks")):
        header[at.OFFSETS + which] = offset_of(Meta(), slot)
    header[at.OFFSETS + at.LINK_DATA] = offset_of(LeafLink(make(0.0, 0)), "data")
    header[at.NEW_ARRAY] = numpy_api.c_function(numpy_api.NEW_ARRAY)
    header[at.FALLBACKS], header[at.LOOPS], header[at.LONG_WAYS] = (table.ctypes.data for table in (_fallbacks, _loops, _long_ways))
    header[at.LARGE_LIKE], header[at.BLOCK_CLASS] = keep(large_like), id(Block)
    header[at.FINALIZE], header[at.GIVE_BACK] = kernels.finalize.get(), kernels.give_back.get()


def _refer(things: dict[int, object]) -> None:
    for word, thing in things.items():
        TAPE.header[word] = keep(thing)


def _use_own_loop(opcode: int) -> None:
    """Let a rule have its values on small arrays by a loop of ours, where that has the bits of its Python form."""
    way = own_way(opcode)
    if way:
        _load_value_loops(opcode)
        _loops[opcode] = 0, way


def _load_value_loops(opcode: int) -> None:
    if opcode < COMMON and not isinstance(TAPE.kernels, ModuleType):  # else it would be compiled for this alone
        TAPE.need("value_block")


def _operators(table: np.ndarray) -> Callable[..., Any]:
    """What gives the compiled operator of a rule, or its reflected form, which is made when it is first asked for."""

    def make_operator(key: tuple[int, bool]) -> Any:
        opcode, exchanged = key
        function = int(table[2 * opcode + exchanged])
        if not function:
            return None
        form, array, rule = (REFLECTED if exchanged else FORMS)[opcode], forward[opcode], RULES[opcode]
        _kept.append(form)
        use_in_rule(rule)
        _fallbacks[opcode, int(exchanged)] = id(form)
        if isinstance(array, np.ufunc) or array is np.round:
            _loops[opcode] = loop_of(np.rint if array is np.round else array)
        else:
            _use_own_loop(opcode)
        _long_ways[opcode] = way = long_way(opcode)
        if way == at.BY_OWN_LOOP:
            _load_value_loops(opcode)
        return descriptor(rule.name, function, (METH_NOARGS, METH_O, METH_FASTCALL)[len(rule.args) - 1], doc(rule))

    made = MadeOnDemand(make_operator)

    def operator_of(opcode: int, exchanged: bool = False) -> Any:
        return made[opcode, exchanged]

    return operator_of


def _use_operators(table: np.ndarray) -> None:
    """Put the compiled operators in the place of their Python forms."""
    header, kernels = TAPE.header, TAPE.kernels
    TAPE.need("scalar_partials")
    compiled = _operators(table)
    for name in POWERS.values():  # which the operator of powers calls by itself
        compiled(OPCODES[name])
    header[at.OPERATE_THREE], header[at.VALUE_ROOM] = kernels.operate_three.get(), _value_room.ctypes.data
    header[at.PRIMAL], header[at.OPERATE] = kernels.primal.get(), kernels.operate.get()
    use_compiled(compiled)
    plain = {form: (opcode, exchanged) for exchanged, forms in enumerate((FORMS, REFLECTED)) for opcode, form in forms.items()}
    for name, attribute in list(vars(Tensor).items()):
        key = plain.get(attribute) if type(attribute) is FunctionType else None
        if key is not None and table[2 * key[0] + key[1]]:  # each is made for who asks for it: of 35 a script uses ten
            setattr(Tensor, name, Deferred(Tensor, name, lambda key: compiled(*key), key))


def _use_methods(table: np.ndarray) -> None:
    """Put what else is compiled in the place of its Python forms: methods, writes, products, what vjps are written with."""
    header, kernels = TAPE.header, TAPE.kernels
    _use_sum(int(table[2 * len(RULES) + 1]))
    _use_backward(int(table[2 * len(RULES) + 2]))
    header[at.ITEM_THUNK], header[at.ITEM] = int(table[2 * len(RULES) + 3]), kernels.item_method.get()
    header[at.WRITING_THUNKS] = table.ctypes.data + 8 * (2 * len(RULES) + 4)
    header[at.WRITE_RULE], header[at.WRITE_WHOLE] = kernels.write_rule.get(), kernels.write_whole.get()
    header[at.WRITE_ITEM] = kernels.write_item.get()
    _use_hosted(table.ctypes.data + 8 * (3 * len(RULES) + 5 + at.WHOLE_WRITES))
    while _asked:
        owner, form, make = _asked.pop()
        for name in [name for name, attribute in vars(owner).items() if attribute is form]:
            setattr(owner, name, make())


def when_compiled(owner: type | ModuleType, form: Any, make: Callable[[], Any]) -> Any:
    """What `make` gives, as an attribute of a class or a module; while there are no compiled methods, a Python form.

    That gives way to it later.
    """
    if TAPE.header[at.OUTPUTS]:
        return make()
    _asked.append((owner, form, make))
    return form


def keep(thing: object) -> int:
    """Address of an object that compiled code refers to, which lives for ever."""
    _kept.append(thing)
    return id(thing)


def _method(name: str, parameters: str, form: Callable[..., Any], thunk: int) -> Any:
    """A compiled method around its Python form."""
    return descriptor(name, thunk, METH_VARARGS_KEYWORDS, f"{name}({parameters})\n--\n\n{form.__doc__ or ''}")


def method_sum(form: Callable[..., Any]) -> Any:
    """The compiled method `sum` around its Python form; while there is none, that itself."""
    header = TAPE.header
    if not header[at.SUM]:
        return form
    header[at.SUM_FORM] = keep(form)
    return _method("sum", "$self, /, dim=None, keepdim=False, *, dtype=None", form, int(header[at.SUM_THUNK]))


def _use_sum(thunk: int) -> None:
    """Put the compiled method `sum` in the place of its Python form, where that was asked for by now."""
    header = TAPE.header
    header[at.SUM_LOOP], header[at.SUM_LOOP_DATA] = numpy_api.inner_loop(np.add)
    if not header[at.SUM_LOOP]:
        return
    header[at.SUM_THUNK], header[at.SUM] = thunk, TAPE.kernels.sum_method.get()
    header[at.SUM_START] = np.add.reduce(np.array([-0.0])).view(np.int64)  # NumPy's newer versions start with -0.0
    header[at.SUM_NAME] = TAPE.name_number("SumBackward0")
    header[at.SUMS_ROWS_BY_TWO], header[at.SUMS_BY_BUFFER] = int(_sums_rows_by_two()), int(_sums_by_buffer())
    header[at.SUMS_BY_HALVES] = int(_sums_by_halves())
    if _sums_in_memory_order():
        _kept.append(room := np.empty(at.LARGEST_BLOCK))
        header[at.SUM_ROOM] = room.ctypes.data
    form = vars(Tensor)["sum"]
    if not isinstance(form, Deferred):
        setattr(Tensor, "sum", method_sum(form))  # noqa: B010 - mypy does not know it


def _sums_rows_by_two() -> bool:
    """Whether NumPy's sums of rows are those of the loop of ours, to the last bit."""
    rows = (np.arange(1.0, 1.0 + 4 * at.ROW_OF_MANY) ** 0.5 - 30.0).reshape(4, -1)
    sums = np.empty(len(rows))
    TAPE.sums_of_rows(rows.ctypes.data, len(rows), sums.ctypes.data)
    return bool((sums == np.einsum("ij->i", rows)).all())


def _sums_by_buffer() -> bool:
    """Whether NumPy sums a large array that is no block by copies of 8192 elements, less what is no whole row, to the last bit."""
    whole = (np.arange(1.0, 12001.0) ** 0.5 - 60.0).reshape(60, 200)
    for columns in (150, 171):
        part, together = whole[:, :columns], 8192 // columns
        total = np.add.reduce(part[:together].reshape(-1)) + np.add.reduce(part[together:].reshape(-1))
        if part.size <= 8192 or total != np.add.reduce(part, None) or total != np.add.reduce(part.T, None):
            return False
    return True


def _sums_by_halves() -> bool:
    """Whether NumPy's sums of neighbours are those of the loop of ours, to the last bit."""
    numbers, total = np.arange(1.0, 3000.0) ** 0.5 - 30.0, np.empty(1)
    for many in (519, 1000, 2998):
        TAPE.sum_by_halves_to(numbers.ctypes.data, many, total.ctypes.data)
        if total[0] != np.add.reduce(numbers[:many]):
            return False
    return True


def _sums_in_memory_order() -> bool:
    """Whether NumPy's sums of arrays that are no block are those of a copy in the order of their memory, to the last bit."""
    whole = (np.arange(1.0, 841.0) ** 0.5 - 20.0).reshape(5, 7, 24)
    parts = whole[:, 1:, ::2], whole[:, 2:, ::3]
    turned = parts[0].transpose(1, 2, 0), parts[1].swapaxes(0, 1)
    sums = [np.add.reduce(np.ascontiguousarray(part), None) for part in parts]
    return sums == [np.add.reduce(part, None) for part in turned]


def _use_hosted(thunks: int) -> None:
    """Let operations whose derivative is Python be applied, and their vjps be written, in compiled code."""
    header, kernels = TAPE.header, TAPE.kernels
    header[at.HOSTED_THUNKS] = thunks
    _refer(
        {
            at.APPLY_FORM: structural.apply_form, at.NUMBER_CLASS: np.float64, at.DOT: np.ndarray.dot, at.ENTER: enter,
            at.LEAVE: leave, at.IGNORING: IGNORING, at.SWAPAXES: np.ndarray.swapaxes, at.NO_TENSORS: (), at.TUPLE_TYPE: tuple,
            at.MATMUL: np.matmul,
        }
    )  # fmt: skip
    header[at.LAST_AXES], header[at.PLAIN_FORMS] = _last_axes.ctypes.data, _plain_forms.ctypes.data
    header[at.APPLY], header[at.PRODUCT] = kernels.apply_operation.get(), kernels.product_form.get()
    header[at.VIEW], header[at.REDUCED] = kernels.view_form.get(), kernels.reduced_form.get()
    header[at.SUMS_BY_ROWS] = int(_sums_by_rows())
    header[at.PLAIN_OPERATION], header[at.OUTPUTS] = kernels.plain_form.get(), kernels.outputs_form.get()
    views.use_compiled(_first_view)
    strided_maps.use_compiled(hosted_function("reduced", 4 + at.PLAIN_COUNT, None))
    structural.use_compiled(hosted_function("apply", 0, structural.apply_form.__doc__))


def prepare_views() -> None:
    """Tell compiled code what it needs to know of views."""
    header = TAPE.header
    for which, slot in enumerate(("base", "replay", "views", "made_without_grad", "one_of_many"), at.META_BASE):
        header[at.OFFSETS + which] = offset_of(Meta(), slot)
    header[at.META_VERSION + at.OFFSETS] = offset_of(Meta(), "version")
    template = Meta()
    header[at.META_TEMPLATE], header[at.META_WORDS] = keep(template), (Meta.__basicsize__ - object.__basicsize__) // 8
    header[at.SLICE_TYPE], header[at.NO_TEXT] = id(slice), id(template.one_of_many)
    for word, thing in (
        (at.TUPLE_TYPE, tuple),
        (at.ELLIPSIS, Ellipsis),
        (at.META_CLASS, Meta),
        (at.TAKE_CLASS, itemgetter),
        (at.VERSION_CLASS, VersionCounter),
        (at.REPLAY_CLASS, views.Replay),
        (at.LOOK_THROUGH, views.look_through),
    ):
        header[word] = keep(thing)
    header[at.SLICE_NAME], header[at.SELECT_NAME] = TAPE.name_number("SliceBackward0"), TAPE.name_number("SelectBackward0")
    header[at.ALIAS_NAME] = TAPE.name_number("AliasBackward0")


def _sums_by_rows() -> bool:
    """Whether NumPy's sums over dimensions in front add one row after the other, to the last bit."""
    whole = (np.arange(1.0, 841.0) ** 0.5 - 20.0).reshape(7, 5, 2, 12)
    for over in (1, 2, 3):
        rows = whole.reshape(-1, *whole.shape[over:])
        total = rows[0].copy()
        for row in rows[1:]:
            total += row
        if (np.add.reduce(whole, tuple(range(over)), keepdims=True).reshape(total.shape) != total).any():
            return False
    return True


def _first_view(*given: Any) -> Any:
    """The first view that is taken: compiled code is told what it needs to know of views then."""
    prepare_views()
    function = hosted_function("view", 3 + at.PLAIN_COUNT, None)
    views.use_compiled(function)
    return function(*given)


def hosted_function(name: str, number: int, doc: str | None) -> Any:
    """A compiled function of those for operations whose derivative is Python: `apply`, products, what vjps are written with."""
    return builtin(name, ctypes.c_int64.from_address(int(TAPE.header[at.HOSTED_THUNKS]) + 8 * number).value, doc)


def plain_function(name: str, which: int, form: Any) -> Any:
    """One of those that vjps are written with, around its Python form."""
    _plain_forms[which] = keep(form)
    return hosted_function(name, 2 + which, form.__doc__)


def _use_backward(thunk: int) -> None:
    """Put the compiled method `backward` in the place of its Python form."""
    header, form = TAPE.header, vars(Tensor)["backward"]
    header[at.BACKWARD_FORM], header[at.BACKWARD] = keep(form), TAPE.kernels.backward_method.get()
    parameters = "$self, /, gradient=None, retain_graph=None, create_graph=False, inputs=None"
    setattr(Tensor, "backward", _method("backward", parameters, form, thunk))  # noqa: B010


def _after_some_passes(table: np.ndarray) -> Callable[..., Any]:
    """The entry ``start`` where it is compiled here, which sees the passes go by."""
    start, passes = TAPE.kernels.start.get(), count(1)
    uses = [(WORTHWHILE, _use_operators), (ALL_WORTHWHILE, _use_methods)]

    def start_pass(*arguments: Any) -> Any:
        number, (worthwhile, use) = next(passes), uses[0]
        if number % worthwhile == 0:  # again, if it was interrupted
            use(table)
            del uses[0]
            if not uses:
                TAPE.start = start  # type: ignore[method-assign]
        return start(*arguments)

    return start_pass


def install() -> None:
    """Let tensors have their compiled destructor and, where the engine was built or is used a good deal, operators."""
    _prepare_header()
    table = np.zeros(3 * len(RULES) + 10 + at.WHOLE_WRITES + at.PLAIN_COUNT, np.int64)
    TAPE.operators(TAPE.address, table.ctypes.data)
    _kept.append(table)
    _outlive_the_modules()
    if isinstance(TAPE.kernels, ModuleType):  # of the generated text
        TAPE.start = _after_some_passes(table)  # type: ignore[method-assign]
    else:
        _use_operators(table)
        _use_methods(table)
    Tensor.__del__ = descriptor("__del__", int(table[2 * len(RULES)]), METH_NOARGS, None)  # type: ignore[method-assign]


TAPE.on_load.append(install)
