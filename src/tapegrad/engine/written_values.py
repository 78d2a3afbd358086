"""Writing into a tensor what another operation has computed, and going on from that one's row: in-place forms of functions."""

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.handles import slot_of
from tapegrad.engine.layout import *
from tapegrad.engine.memory import release, retain
from tapegrad.engine.objects import data_of, handle_of, type_of
from tapegrad.engine.operator_results import is_block, same_shape
from tapegrad.engine.whole_writes import is_copied
from tapegrad.engine.write_operands import adopt_value, is_same_target, way_payload, written_and_followed
from tapegrad.engine.written_targets import base_of, counts_writes, has_room_for, is_target, next_count, views_that_follow


@inline
def value_written_now(tape, t, base, data, source, way, y_handle):
    """Write the elements when all objects are there; 1, or 0 if this is left to Python."""
    tracked = y_handle > 0
    views = views_that_follow(tape, base, tracked)
    if views < 0 or (tracked and not has_room_for(tape, views)):
        return 0
    number, clock = next_count(tape, t), tape.clock
    if number == 0:
        return 0
    if tracked and not adopt_value(tape, t, base, slot_of(tape, y_handle), way):
        release(number)
        return 0
    return written_and_followed(tape, t, base, views, number, clock, source, data, tracked)


@inline
def value_of_result_written(tape, t, base, data, result, source):
    """The same with references to what it is about."""
    x_handle, y_handle, done = handle_of(tape, t), handle_of(tape, result), 0
    tracked = y_handle > 0
    if y_handle < 0 or (x_handle != 0 and not tracked) or not counts_writes(tape, t):
        return 0
    way = way_payload(tape, t, base, data, tracked)
    if way == 0:
        return 0
    same = data_of(tape, result) == source and handle_of(tape, result) == y_handle
    if same and is_same_target(tape, t, 1, data, base, x_handle, tracked):
        done = value_written_now(tape, t, base, data, source, way, y_handle)
    release(way)
    return done


@entry("int64(Tape,int64,int64)")
def write_value(tape, t, result):
    """Let a tensor have the elements and the row of a result that nobody else has: 1, or 0 if this is left to Python."""
    if tape.tensor_type != tape.plain_tensor or type_of(t) != tape.plain_tensor or type_of(result) != tape.plain_tensor:
        return 0
    if tape.recording_off != 0 or not is_target(tape, t, 1):
        return 0
    data, base, source = data_of(tape, t), base_of(tape, t), data_of(tape, result)
    if source == 0 or not is_block(tape, data) or not is_copied(tape, data, source):
        return 0
    if base != t and tape.hosts_ready == 0:
        return 0
    retain(data)
    retain(base)
    retain(source)
    done = value_of_result_written(tape, t, base, data, result, source)
    release(source)
    release(base)
    release(data)
    return done
