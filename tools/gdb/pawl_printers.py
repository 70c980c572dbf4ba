# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0

"""Pretty-printers of gdb for Pawl, and the function $pawl_shard(TIMER). See doc/seeing-your-timers.md.

    (gdb) source tools/gdb/pawl_printers.py

They only read memory and call no function of the program, so they also work on a core dump. If a
value cannot be read, because it was optimised out or a member was renamed, a message takes its
place. member() looks up all members; the functions below it read types of the standard library.
"""

from fractions import Fraction
from itertools import islice
import re
import sys

import gdb
import gdb.printing

NEVER = 2**64 - 1
WALK = 10_000  # maximum number of nodes, waits or slots to count one by one
ALARM = "(basic_|coarse_|manual_)?alarm<.*>"


class Unreadable(Exception):
    pass


# --- reading -------------------------------------------------------------------------------------


def member(value, path):
    """The member of a member ... of a value, as in "time_.shape_"."""
    for name in path.split("."):
        try:
            value = value[name]
        except gdb.error as error:
            if "no member" not in str(error):
                raise
            raise Unreadable(f"{value.type.strip_typedefs()} has no member {name}") from None
    return value


def number(value, path):
    return int(member(value, path))


def innermost(value):
    """The first member, and its first member, and so on: the one number or array in a
    std::chrono::time_point, a std::atomic or a std::array."""
    while value.type.strip_typedefs().code == gdb.TYPE_CODE_STRUCT:
        fields = value.type.strip_typedefs().fields()
        value = value[next(field for field in fields if hasattr(field, "bitpos"))]
    return value


def number_in(value, path):
    """The number in a std::atomic."""
    return int(innermost(member(value, path)))


def as_type(value, wanted):
    """The object at the address of a value as one of another type."""
    if value.address is None:
        raise Unreadable("it is not in memory")
    return value.address.reinterpret_cast(wanted.pointer()).dereference()


def pointer_in(value):
    """The pointer in a std::unique_ptr, which begins with it."""
    return as_type(value, value.type.strip_typedefs().template_argument(0).pointer())


def held(value):
    """The object of a std::unique_ptr or of a non-empty std::optional."""
    kind = value.type.strip_typedefs()
    if kind.name.startswith("std::unique_ptr<"):
        return pointer_in(value).dereference()
    return as_type(value, kind.template_argument(0))  # its first member


def vector(value):
    """The elements of a std::vector of libstdc++."""
    first = member(value, "_M_impl._M_start")
    for i in range(int(member(value, "_M_impl._M_finish") - first)):
        yield first[i]


def fixed_array(value):
    """The elements of a time::detail::fixed_array."""
    first = member(value, "data_")
    for i in range(number(value, "size_")):
        yield first[i]


def entries(value):
    """The keys and values of a std::map of libstdc++."""
    end = member(value, "_M_t._M_impl._M_header").address
    pair = value.type.strip_typedefs()
    wanted = gdb.lookup_type(f"std::_Rb_tree_node<{pair.template_argument(3).strip_typedefs().template_argument(0)}>")
    waiting = [member(value, "_M_t._M_impl._M_header._M_parent")]
    while waiting:
        node = waiting.pop()
        if int(node):
            waiting += [member(node.dereference(), "_M_left"), member(node.dereference(), "_M_right")]
            storage = member(node.cast(wanted.pointer()).dereference(), "_M_storage._M_storage")
            entry = as_type(storage, pair.template_argument(3).strip_typedefs().template_argument(0))
            yield member(entry, "first"), member(entry, "second")


def units_of(duration):
    """Seconds in one unit of a type std::chrono::duration."""
    period = duration.strip_typedefs().template_argument(1).strip_typedefs()
    return Fraction(int(period.template_argument(0)), int(period.template_argument(1)))


def seconds(time):
    """A std::chrono::time_point or duration as a number of seconds; None for max()."""
    kind = time.type.strip_typedefs()
    if kind.name.startswith("std::chrono::time_point<"):
        kind = kind.template_argument(1).strip_typedefs()
    count = innermost(time)
    rep = count.type.strip_typedefs()
    if rep.code == gdb.TYPE_CODE_FLT:
        never = float(count) >= sys.float_info.max
        return None if never else Fraction(float(count)) * units_of(kind)
    last = 2 ** (8 * rep.sizeof - rep.is_signed) - 1
    return None if int(count) == last else int(count) * units_of(kind)


def duration_text(length):
    """A number of seconds in a fitting unit, to six places."""
    for unit, scale in (("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)):
        if abs(length) * scale >= 1:
            break
    return f"{float(length * scale):.6f}".rstrip("0").rstrip(".") + " " + unit


def tick_text(count):
    return "never" if count == NEVER else str(count)


def counted(count, noun):
    return f"{count} {noun}" + ("" if str(count) == "1" else "s")


def length_of(items):
    """The number of elements as a text; counted one by one, up to a limit."""
    count = sum(1 for _ in islice(items, WALK + 1))
    return str(count) if count <= WALK else f"more than {WALK}"


# --- printers ------------------------------------------------------------------------------------


class Printer:
    """Base class of the printers: a subclass defines text(), and parts() if it has any."""

    def __init__(self, value):
        self.value = value

    # Memory may contain anything, so any error may occur. Without this gdb would print a traceback.
    def to_string(self):
        try:
            return self.text()
        except Exception as error:
            return f"<cannot be shown: {error}>"

    def children(self):
        try:
            yield from self.parts()
        except Exception as error:
            yield "?", f"<cannot be shown: {error}>"

    def parts(self):
        return iter(())


class Tick(Printer):
    """time::tick"""

    def text(self):
        return tick_text(number(self.value, "count_"))


class Node(Printer):
    """time::timer_node"""

    def text(self):
        due = tick_text(number(self.value, "due.count_"))
        return f"due {due}" if int(member(self.value, "link")) else "not filed"


class State(Printer):
    """detail::wait_state"""

    def text(self):
        phase = str(member(self.value, "phase_")).rpartition("::")[2]
        return phase + (" (carried)" if member(self.value, "carried_") else "")


class Operation(Printer):
    """detail::wait_operation"""

    def text(self):
        return State(member(self.value, "state")).text()


class Name(Printer):
    """timer_name"""

    def text(self):
        return name_text(self.value)

    def display_hint(self):
        return "string"


class Deadline(Printer):
    """basic_deadline"""

    def text(self):
        expiry = seconds(member(self.value, "expiry_"))
        clock = self.value.type.strip_typedefs().template_argument(0).strip_typedefs()
        return "never" if expiry is None else f"{duration_text(expiry)} after the epoch of {clock}"


class DueQueue(Printer):
    """detail::due_queue"""

    def text(self):
        return counted(number(self.value, "size_"), "wait")


# --- a timer -------------------------------------------------------------------------------------


def waits_of(core):
    """The waits of a detail::timer_core, the oldest first."""
    newest = member(core, "newest_")
    wait = newest
    while int(newest):
        wait = member(wait.dereference(), "next")
        yield wait.dereference()
        if wait == newest:
            return


def dispatcher_of(handle):
    """The dispatcher of a detail::timer_handle; None if it was destroyed."""
    address = gdb.Value(number(handle, "home_.word_") & ~7)
    arbiter = address.cast(gdb.lookup_type("pawl::detail::wait_arbiter").pointer())
    # When a dispatcher is deleted, timers that have not waited are not updated. Freed memory has lost its
    # virtual table or, if it was not reused yet, has no users.
    try:
        if arbiter.dynamic_type == arbiter.type:
            return None
        dispatcher = arbiter.cast(arbiter.dynamic_type).dereference()
        return dispatcher if number(dispatcher, "shard_.users_") else None
    except gdb.MemoryError:
        return None


def position_of(backend):
    """The current tick of a time structure."""
    name = backend.type.strip_typedefs().name
    if name == "pawl::time::hierarchical_wheel":
        return number(backend, "time_.position_")
    if name == "pawl::time::binary_wheel":
        return number(innermost(member(backend, "words_"))[2], "position")
    return number(backend, "now_.count_")


def handle_of(timer):
    """The detail::timer_handle of a timer of any class, or of an alarm."""
    if timer.type.code in (gdb.TYPE_CODE_PTR, gdb.TYPE_CODE_REF):
        timer = timer.referenced_value()
    name = str(timer.type.strip_typedefs().name)
    if name.startswith("pawl::detail::timer_handle<"):
        return timer
    return member(timer, "handle_")


def name_of(handle):
    """The name that set_name() gave to the timer of a detail::timer_handle; "" if there is none, or it is unreadable."""
    dispatcher = dispatcher_of(handle)
    if dispatcher is None:
        return ""
    observer = member(dispatcher, "shard_.roster_.observers_.observer_")
    if not int(observer):
        return ""
    probe = observer.cast(observer.dynamic_type).dereference()
    core = int(member(handle, "core_").address)
    for timer, name in islice(entries(member(probe, "names_")), WALK):
        if int(timer) == core:
            return name_text(name)
    return ""


def name_text(name):
    """A timer_name."""
    return member(name, "bytes_").string("utf-8", "replace", length=number(name, "size_"))


def last_look(dispatcher, expiry):
    """The time of the current tick of a shard, in seconds since the epoch of the clock of `expiry`, a
    time point."""
    floating = innermost(expiry).type.strip_typedefs().code == gdb.TYPE_CODE_FLT
    duration = expiry.type.strip_typedefs().template_argument(1)
    unit = Fraction(1, 10**9) if floating else units_of(duration)  # as in time::tick_scale
    position = position_of(member(dispatcher, "shard_.roster_.files_.backend_"))
    since_epoch = position - number(dispatcher, "scale_.epoch_")
    return since_epoch * number(dispatcher, "scale_.units_.divisor_") * unit


class Core(Printer):
    """detail::timer_core"""

    def text(self):
        return f"{Node(self.value).text()}, {counted(length_of(waits_of(self.value)), 'wait')}"

    def parts(self):
        return ((str(i), wait) for i, wait in enumerate(islice(waits_of(self.value), WALK)))

    def display_hint(self):
        return "array"


class Timer(Core):
    """basic_waitable_timer, detail::timer_handle"""

    def text(self):
        handle = handle_of(self.value)
        name = name_of(handle)
        return f"{name + ': ' if name else ''}{self.expiry(handle)}, {self.waits(member(handle, 'core_'))}"

    def waits(self, core):
        if int(member(core, "newest_")):
            return counted(length_of(waits_of(core)), "wait")
        return "idle, still filed" if int(member(core, "link")) else "idle"

    def parts(self):
        return Core(member(handle_of(self.value), "core_")).parts()

    def expiry(self, handle):
        expiry = seconds(member(handle, "expiry_"))
        if expiry is None:
            return "never expires"
        if expiry == 0:
            return "no expiry set"
        dispatcher = dispatcher_of(handle)
        if dispatcher is None:
            return f"expiry {duration_text(expiry)} after the clock's epoch, service gone"
        left = expiry - last_look(dispatcher, member(handle, "expiry_"))
        if left == 0:
            return "expires now"
        if left < 0:
            return f"expired {duration_text(-left)} ago"
        return f"expires in {duration_text(left)}"


class Alarm(Timer):
    """basic_alarm"""

    def text(self):
        return super().text() if int(member(self.value, "block_")) else "moved from"

    def waits(self, core):
        newest = member(core, "newest_")
        return Operation(newest.dereference()).text() if int(newest) else "not armed"

    def parts(self):
        return iter(())

    def display_hint(self):
        return None


# --- wheels --------------------------------------------------------------------------------------


def nodes_in(head):
    """The nodes of a list."""
    while int(head):
        yield head.dereference()
        head = member(head.dereference(), "next")


class Wheel(Printer):
    """A subclass defines places(), each a name and a count, and nodes()."""

    def text(self):
        size = number(self.value, "size_")
        where = "".join(f", {name}: {count}" for name, count in self.places())
        return f"{counted(size, 'timer')} at tick {position_of(self.value)}{where}"

    def parts(self):
        for node in self.nodes():
            yield "", node.address.cast(gdb.lookup_type("void").pointer())
            yield "", node

    def display_hint(self):
        return "map"


class HierarchicalWheel(Wheel):
    """time::hierarchical_wheel"""

    def places(self):
        levels = {}
        for place, slot in self.occupied():
            levels[place] = levels.get(place, 0) + self.count(slot)
        return levels.items()

    def nodes(self):
        for _, slot in self.occupied():
            for head in self.heads(slot):
                yield from nodes_in(head)

    def occupied(self):
        """The non-empty places: a name, and a slot."""
        for name, digits in (("staged", "stage_"), ("level", "time_")):
            shape = member(self.value, f"{digits}.shape_")
            firsts = innermost(member(shape, "first_"))
            level = 0
            for i, which in enumerate(fixed_array(member(self.value, f"{digits}.lists_"))):
                while level < 63 and i >= int(firsts[level + 1]):
                    level += 1
                if int(which):
                    yield name if digits == "stage_" else f"level {level}", self.lent(int(which))
        if self.count(member(self.value, "never_")):
            yield "never", member(self.value, "never_")

    def lent(self, which):
        """The list of this number, as list_pool finds it."""
        low = which.bit_length() - 3
        return member(self.value, "pool_.parts_")[(which >> low) + 4 * low - 12][which & ((1 << low) - 1)]

    @staticmethod
    def count(slot):
        return number(slot, "count_and_order_") // 2

    @staticmethod
    def heads(slot):
        heads = innermost(member(slot, "heads_"))
        return (heads[i] for i in range(heads.type.strip_typedefs().range()[1] + 1))


class BinaryWheel(Wheel):
    """time::binary_wheel"""

    def places(self):
        return [(name, length_of(nodes_in(head))) for name, head in self.bins()]

    def nodes(self):
        for _, head in self.bins():
            yield from nodes_in(head)

    def bins(self):
        """The non-empty bins: the present, 64 of the stage, 64 of time, those due never."""
        heads = innermost(member(self.value, "heads_"))
        for i in range(130):
            if int(heads[i]):
                if i in (0, 129):
                    yield ("present" if i == 0 else "never"), heads[i]
                else:
                    yield (f"staged {i - 1}" if i < 65 else f"bin {i - 65}"), heads[i]


class TimingWheel(Printer):
    """time::timing_wheel"""

    def text(self):
        size = number(self.value, "size_")
        in_front = size - number(self.value, "queue_.wheel_.size_")  # the earliest ones
        next_to_fire = f", next to fire: {in_front}" if in_front else ""
        return f"{counted(size, 'alarm')}, interval {number(self.value, 'now_key_')}{next_to_fire}"

    def parts(self):
        slot = member(self.value, "pool_.free_").type.target()
        for node in HierarchicalWheel(member(self.value, "queue_.wheel_")).nodes():
            alarm = as_type(node, slot)
            yield "", number(alarm, "due.count_")
            yield "", held(member(alarm, "value"))

    def display_hint(self):
        return "map"


# --- rings ---------------------------------------------------------------------------------------


class Ring(Printer):
    """time::timeout_ring"""

    NUMBER_BITS = 58
    PHASE_BITS = 2

    def text(self):
        tail = number_in(self.value, "tail_")
        head = number_in(self.value, "head_")
        block = tail >> self.NUMBER_BITS & 31
        used = (tail & ((1 << self.NUMBER_BITS) - 1)) - head
        live = f"{self.live(range(head, head + min(used, WALK)), block)} live"
        if used > WALK:
            live += f" among the oldest {WALK}"
        capacity = number(self.value, "capacity_") << block
        closed = ", closed" if tail >> 63 else ""
        delay = number(self.value, "delay_")
        return f"delay {delay}, {live}, {used} of {capacity} slots used{closed}"

    def live(self, tickets, newest_block):
        """The number of live tickets among these. Each is at its place in one of the blocks."""
        blocks = innermost(member(self.value, "slots_.blocks_"))
        slots = number(self.value, "slots_.first_size_")
        count = 0
        for i in range(newest_block + 1):
            block = innermost(blocks[i])
            for ticket in tickets:
                state = number_in(block[ticket & ((slots << i) - 1)], "state")
                count += state >> self.PHASE_BITS == ticket and state & 1
        return count


class Rings(Printer):
    """time::timeout_rings"""

    def text(self):
        size = number(self.value, "size_")
        return f"{counted(size, 'timer')} at tick {position_of(self.value)}"

    def parts(self):
        for i, ring in enumerate(vector(member(self.value, "rings_"))):
            yield str(i), ring

    def display_hint(self):
        return "array"


class RingOfRings(Printer):
    """time::timeout_rings::ring"""

    def text(self):
        used = number(self.value, "next") - number(self.value, "first")
        *_, newest = vector(member(self.value, "parts"))
        capacity = int(member(newest, "m_end") - member(newest, "m_buff"))
        return f"period {number(self.value, 'length')}, {used} of {capacity} slots used"


# --- a shard -------------------------------------------------------------------------------------


class Shard(Printer):
    """detail::shard"""

    def text(self):
        live = number(self.value, "roster_.ledger_.live_")
        return f"{counted(live, 'wait')}, {number_in(self.value, 'roster_.ledger_.armed_')} armed"

    def parts(self):
        yield "timers", member(self.value, "roster_.files_.backend_")
        yield "due", member(self.value, "roster_.ledger_.due_")


class ShardOf(gdb.Function):
    """$pawl_shard(TIMER): the shard of a Pawl timer, with its time structure."""

    def __init__(self):
        super().__init__("pawl_shard")

    def invoke(self, timer):
        try:
            dispatcher = dispatcher_of(handle_of(timer))
        except Unreadable as error:
            raise gdb.GdbError(f"$pawl_shard: {error}; it takes a timer of Pawl.") from None
        if dispatcher is None:
            raise gdb.GdbError("$pawl_shard: the service of this timer is gone.")
        return member(dispatcher, "shard_")


PRINTERS = {
    "time::tick": Tick,
    "time::timer_node": Node,
    "time::hierarchical_wheel": HierarchicalWheel,
    "time::binary_wheel": BinaryWheel,
    "time::timing_wheel<.*>": TimingWheel,
    "time::timeout_ring<.*>": Ring,
    "time::timeout_rings": Rings,
    "time::timeout_rings::ring": RingOfRings,
    "detail::wait_state": State,
    "detail::wait_operation": Operation,
    "detail::timer_core": Core,
    "detail::due_queue": DueQueue,
    "detail::timer_handle<.*>": Timer,
    "detail::shard<.*>": Shard,
    "basic_waitable_timer<.*>": Timer,
    ALARM: Alarm,
    "basic_deadline<.*>": Deadline,
    "timer_name": Name,
}


def register():
    printers = gdb.printing.RegexpCollectionPrettyPrinter("pawl")
    for name, printer in PRINTERS.items():
        printers.add_printer(name, f"^pawl::{name}$", printer)
    gdb.printing.register_pretty_printer(gdb.current_objfile(), printers, replace=True)
    ShardOf()


register()
