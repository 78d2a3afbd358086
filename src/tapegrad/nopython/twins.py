"""The recording twin of a compiled function."""

from __future__ import annotations

import inspect
import weakref
from typing import Any

import numba
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager
from numba.core.dispatcher import Dispatcher
from numba.core.untyped_passes import TranslateByteCode

from tapegrad.nopython import comparing as comparing
from tapegrad.nopython.folding import AddTape, Fold

__all__ = ["twin"]

# Options of the user's decorator that the twin keeps. `fastmath` would turn the guards against 0 times infinity into nothing.
KEPT = ("boundscheck", "error_model", "nogil", "_nrt")


class RecordingCompiler(CompilerBase):  # type: ignore[misc]
    """Numba's pipeline, with the tape as an argument and folded statements."""

    level = 0

    def define_pipelines(self) -> list[Any]:
        pipeline = PassManager("tapegrad_recording")
        builder = DefaultPassBuilder
        untyped = builder.define_untyped_pipeline(self.state)
        for entry, description in untyped.passes:
            pipeline.add_pass(entry, description)
            if entry is TranslateByteCode:
                pipeline.add_pass(AddTape, "the tape as an argument")
        pipeline.add_pass(Fold, "statements folded into rows")
        pipeline.passes.extend(builder.define_typed_pipeline(self.state).passes)
        pipeline.passes.extend(builder.define_nopython_lowering_pipeline(self.state).passes)
        pipeline.finalize()
        return [pipeline]


class PromotingCompiler(RecordingCompiler):
    """The same, where every new float array may hold variables."""

    level = 1


_twins: weakref.WeakKeyDictionary[Any, dict[int, Any]] = weakref.WeakKeyDictionary()


def twin(dispatcher: Any, level: int = 0) -> Any:
    """The function that does the same and records; it takes the tape as its first argument.

    On level 1, all new arrays of floats may hold variables; on level 0, those that are allocated as work arrays.
    """
    table = _twins.setdefault(dispatcher, {})
    made = table.get(level)
    if made is None:
        options = {name: dispatcher.targetoptions[name] for name in KEPT if name in dispatcher.targetoptions}
        function = numba.njit(pipeline_class=(RecordingCompiler, PromotingCompiler)[level], no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)
        made = function(dispatcher.py_func)
        plain = made._compiler.pysig
        tape = inspect.Parameter("tape_", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        made._compiler.pysig = plain.replace(parameters=[tape, *plain.parameters.values()])
        table[level] = made
    return made
