"""Views that a function takes, compiled: of tracked tensors of contiguous float64 while nobody looks at each operation."""

from tapegrad.compilation.jit import inline, kernel
from tapegrad.engine.items import is_taken, view_of
from tapegrad.engine.layout import *
from tapegrad.engine.memory import retain
from tapegrad.engine.new_leaves import register_new
from tapegrad.engine.objects import data_of, handle_of, integer_value, is_common
from tapegrad.engine.structs import words_at


@inline
def view_by(tape, x, name, take):
    """A new view of a tensor that a function takes, under the number of a node's name; as `item` answers."""
    if tape.tensor_type != tape.plain_tensor or tape.recording_off != 0 or tape.items_ready == 0 or not is_common(tape, x):
        return 0
    if handle_of(tape, x) == UNREGISTERED:
        register_new(tape, x)
    data, handle = data_of(tape, x), handle_of(tape, x)
    if handle <= 0 or not is_taken(tape, data):
        return 0
    return view_of(tape, x, handle, data, 0, False, name, take)


@kernel("int64(Tape,int64,int64,int64)")
def view_form(tape, owner, operands, given):
    """Of tensor, number of a node's name, and what takes the view: a new tensor, None if that is left to Python."""
    words = words_at(operands)
    t = view_by(tape, words[0], integer_value(words[1]), words[2]) if given == 3 else 0
    if t == 0:
        retain(tape.none)
        return tape.none
    return 0 if t == -1 else t
