"""Virtual threads of pirn in gdb: finding them, and showing their stacks.

The commands are in commands.py, which may be loaded before or after this file.

The script reads the process's memory through the table PIRN_DEBUG of crates/pirn-observe,
so it works without debug information, on live processes and on core files. It calls no function of
the process and changes none of its registers: an unwinder shows a thread that is off its stack. It
continues the frames of some platform thread with the frames of the virtual one.
"""

import fnmatch
import itertools
import re
import struct

import gdb
import gdb.unwinder

# By the kinds of pirn-rt/src/vthread/wait_reason.rs, each with its argument.
PIRN_WAITS = [
    None, "futex 0x%x", "mutex 0x%x", "rwlock 0x%x to read", "rwlock 0x%x to write",
    "condvar 0x%x", "semaphore 0x%x", "barrier 0x%x", "once 0x%x", "file lock, fd %d",
    "read fd %d", "write fd %d", "%d descriptors", "sleep", "park", "thread #%d", "scope #%d",
    "child %d", "call",
]

# By the processor, as gdb names it: the registers for the next instruction, the stack and the
# thread's block of thread-locals; on which side of the last a program's own thread-locals are.
PIRN_PROCESSORS = {
    "i386:x86-64": ("rip", "rsp", "fs_base", -1),
    "aarch64": ("pc", "sp", "tpidr", 1),
}


def pirn_processor():
    """Returns what PIRN_PROCESSORS says of the inferior's processor."""
    name = gdb.selected_inferior().architecture().name()
    if name not in PIRN_PROCESSORS:
        raise gdb.GdbError("pirn does not run on %s" % name)
    return PIRN_PROCESSORS[name]


def pirn_read(address, size):
    """Returns bytes of the process's memory."""
    return bytes(gdb.selected_inferior().read_memory(address, size))


def pirn_word(address):
    """Returns the word at an address."""
    return struct.unpack("<Q", pirn_read(address, 8))[0]


def pirn_address(symbol):
    """Returns a match whose group is the address of a symbol, or None."""
    try:
        return re.search(r" (0x[0-9a-f]+)", gdb.execute("info address " + symbol, False, True))
    except gdb.error:
        return None


class PirnLayout:
    """The names and values of PIRN_DEBUG, and the regions of slots."""

    current = None  # of the inferior that was asked last

    def __init__(self, address):
        head = pirn_read(address, 24)
        magic, version, stride, count = struct.unpack("<8sIIQ", head)
        if magic != b"PIRNDBG\0" or version != 1 or not 32 <= stride <= 4096 or count > 4096:
            raise gdb.GdbError("PIRN_DEBUG is not what this script knows")
        table = pirn_read(address + 24, stride * count)
        self.values = {}
        for at in range(0, stride * count, stride):
            name = table[at:at + 24].rstrip(b"\0").decode()
            self.values[name] = struct.unpack_from("<Q", table, at + 24)[0]
        self.regions = {}

    def __getitem__(self, name):
        if name not in self.values:
            raise gdb.GdbError("this program's version of pirn does not say `%s`" % name)
        return self.values[name]

    @staticmethod
    def get():
        """Returns the layout of the selected inferior."""
        inferior = gdb.selected_inferior()
        key = (inferior.num, inferior.pid)
        if PirnLayout.current is None or PirnLayout.current[0] != key:
            PirnLayout.current = key, PirnLayout(PirnLayout.find())
        return PirnLayout.current[1]

    @staticmethod
    def find():
        """Returns the address of PIRN_DEBUG: of the symbol, else, in a stripped program, of the
        section."""
        found = pirn_address("PIRN_DEBUG")
        if not found:
            files = gdb.execute("info files", False, True)
            found = re.search(r"(0x[0-9a-f]+) - 0x[0-9a-f]+ is \.pirn_debug\b", files)
        if not found:
            raise gdb.GdbError("no pirn in this program: neither PIRN_DEBUG nor .pirn_debug")
        return int(found.group(1), 16)

    @staticmethod
    def forget(_event=None):
        PirnLayout.current = None
        pirn_symbols.clear()

    def region(self, number):
        """Returns base, stride and capacity of a region, or None."""
        if number not in self.regions:
            region = pirn_word(self["regions"] + 8 * number)
            if not region:
                return None
            fields = ("region.base", "region.stride", "region.capacity")
            self.regions[number] = tuple(pirn_word(region + self[field]) for field in fields)
        return self.regions[number]

    def region_count(self):
        if not pirn_word(self["runtime"]):
            return 0  # not started, or the child of a fork
        return min(pirn_word(self["regions.count"]), self["regions.most"])

    def entries(self, number):
        """Returns the records of the threads in a region, with the ends of their slots."""
        region = self.region(number)
        table = pirn_word(self["threads"] + 8 * number)
        if not region or not table:
            return
        base, stride, capacity = region
        words = struct.unpack("<%dQ" % capacity, pirn_read(table, 8 * capacity))
        for index, record in enumerate(words):
            if record:
                yield record & ~self["threads.flags"], base + (index + 1) * stride

    def thread_at(self, address):
        """Returns the thread in whose slot an address is, or None."""
        for number in range(self.region_count()):
            base, stride, capacity = self.region(number) or (0, 1, 0)
            if base <= address < base + stride * capacity:
                index = (address - base) // stride
                table = pirn_word(self["threads"] + 8 * number)
                record = table and pirn_word(table + 8 * index) & ~self["threads.flags"]
                return PirnThread(self, record, base + (index + 1) * stride) if record else None
        return None


class PirnThread:
    """A virtual thread: its record, as it was when this object was made."""

    def __init__(self, layout, record, end):
        self.layout, self.record, self.end = layout, record, end
        self.bytes = pirn_read(record, layout["thread.bytes"])
        self.id, self.sp, self.tp = (self.field(name) for name in ("id", "sp", "tp"))
        self.host = None  # the platform thread that it is mounted on

    def field(self, name):
        return struct.unpack_from("<Q", self.bytes, self.layout["thread." + name])[0]

    @property
    def name(self):
        at = self.layout["thread.name"]
        address, size = struct.unpack_from("<QQ", self.bytes, at)
        return pirn_read(address, min(size, 256)).decode(errors="replace") if address else ""

    @property
    def state(self):
        if self.host:
            return "running"
        return "waiting" if self.field("handshake") & 0xffffffff in (1, 3) else "runnable"

    def wait(self):
        """Returns what it waits for, or an empty text."""
        if self.state != "waiting" or "thread.awaits" not in self.layout.values:
            return ""
        word = self.field("awaits")
        kind, argument = word & 0xff, word >> 16
        text = PIRN_WAITS[kind] if kind < len(PIRN_WAITS) else None
        if kind == 18:  # the address of a name
            name = pirn_read(argument, min(32, 4096 - argument % 4096)).split(b"\0")[0]
            return "call " + name.decode(errors="replace")
        return text % argument if text and "%" in text else text or ""

    def title(self):
        on = " on LWP %d" % self.host.ptid[1] if self.host else ""
        wait = self.wait()
        return '#%d "%s" %s%s%s' % (self.id, self.name, self.state, on, wait and " (%s)" % wait)


class PirnView:
    """While it lasts, the frames of a virtual thread follow the newest frame's."""

    shown = None  # the view that is in force
    hides = False  # whether the frame filter hides frames of the runtime

    def __init__(self, thread):
        self.thread, self.before, self.outer = thread, gdb.selected_thread(), None

    def __enter__(self):
        thread = self.thread
        if thread.host:
            thread.host.switch()
            return self
        frame = gdb.newest_frame()
        pc, sp = pirn_processor()[:2]
        self.host_sp = int(frame.read_register(sp))
        self.host_pc = frame.pc()
        layout = thread.layout
        saved = pirn_read(thread.sp, layout["saved.bytes"])
        self.registers = {
            pc if name == "saved.pc" else name[6:]: struct.unpack_from("<Q", saved, at)[0]
            for name, at in layout.values.items()
            if name.startswith("saved.") and name != "saved.bytes"
        }
        self.registers[sp] = thread.sp + layout["saved.bytes"]
        if not self.registers[pc]:
            raise gdb.GdbError("#%d: its stack is not there: gcore leaves stacks out" % thread.id)
        self.outer, PirnView.shown = PirnView.shown, self
        gdb.invalidate_cached_frames()
        return self

    def __exit__(self, *_):
        PirnView.shown = self.outer
        gdb.invalidate_cached_frames()
        if self.before and self.before.is_valid():
            self.before.switch()

    def is_host(self, frame):
        """Returns whether a frame is the platform thread's, not the virtual thread's."""
        return not self.thread.host and frame.pc() == self.host_pc

    def select(self):
        """Selects the newest frame that is not the runtime's."""
        pirn_own(list(itertools.islice(self.frames(), 64)))[0].select()

    def frames(self):
        """Returns the virtual thread's frames."""
        frame = gdb.newest_frame()
        while frame is not None and self.is_host(frame):
            frame = frame.older()
        while frame is not None:
            yield frame
            frame = frame.older()


class PirnUnwinder(gdb.unwinder.Unwinder):
    """Gives the registers of a suspended virtual thread to the newest frame's caller."""

    class FrameId:
        def __init__(self, sp, pc):
            self.sp, self.pc = gdb.Value(sp), gdb.Value(pc)

    def __init__(self):
        super().__init__("pirn")

    def __call__(self, pending):
        view = PirnView.shown
        if view is None:
            return None
        pc, sp = (int(pending.read_register(name)) for name in pirn_processor()[:2])
        if (pc, sp) != (view.host_pc, view.host_sp):
            return None
        # Below the caller's frames: gdb stops where stack addresses do not rise.
        info = pending.create_unwind_info(PirnUnwinder.FrameId(view.thread.sp, view.host_pc))
        for name, value in view.registers.items():
            info.add_saved_register(name, gdb.Value(value))
        return info


class PirnFilter:
    """Keeps the frames that are not the virtual thread's out of backtraces."""

    name, priority, enabled = "pirn", 1000, True

    def filter(self, frames):
        view = PirnView.shown
        if view:
            frames = itertools.dropwhile(lambda f: view.is_host(f.inferior_frame()), frames)
        if PirnView.hides:
            frames = list(itertools.islice(frames, 4096))
            own = pirn_own([frame.inferior_frame() for frame in frames])
            frames = iter(frames[len(frames) - len(own):])
        return frames


pirn_symbols = {}


def pirn_function(frame):
    """Returns the function of a frame. Debug information of line tables lacks the path, which the
    symbol table has; so inlined frames may lack it."""
    if frame.type() == gdb.INLINE_FRAME:
        return frame.name() or "?"
    name = pirn_symbol(frame.pc() - 1)
    return name or frame.name() or "0x%x" % frame.pc()


def pirn_symbol(address):
    """Returns the name of the symbol at an address, or an empty text."""
    if address not in pirn_symbols:
        text = gdb.execute("info symbol %d" % address, False, True)
        found = re.match(r"(.*?)( \+ \d+)? in section ", text)
        name = found.group(1) if found else ""
        pirn_symbols[address] = re.sub(r"::h[0-9a-f]{16}$|\[[0-9a-f]{16}\]", "", name)
    return pirn_symbols[address]


def pirn_kind(frame):
    """Returns what a frame is: "runtime"; "core", which may be inlined into that; "call", a
    function of libc that the runtime defines; or "own"."""
    function, place = pirn_function(frame), frame.find_sal().symtab
    path = place.fullname() if place else ""
    if re.match(r"<?(dyn )?pirn(_rt)?::", function):
        return "runtime"
    if re.search(r"/pirn(-rt)?(-[0-9][^/]*)?/src/", path):
        return "call" if frame.type() != gdb.INLINE_FRAME else "runtime"
    return "core" if re.match(r"<?core::", function) or "/library/core/src/" in path else "own"


def pirn_own(frames):
    """Returns frames without the first ones, of the runtime."""
    kinds = [pirn_kind(frame) for frame in frames[:64]]
    ahead = len(list(itertools.takewhile(lambda kind: kind in ("runtime", "core"), kinds)))
    while ahead and kinds[ahead - 1] == "core":
        ahead -= 1
    return frames[ahead:] or frames


class PirnStacks:
    """The stacks of many threads. Equal stacks are unwound once: threads whose stacks have the same
    addresses of code, and the same pointers into themselves, at the same places."""

    def __init__(self):
        files = gdb.execute("info files", False, True)
        found = re.findall(r"(0x[0-9a-f]+) - (0x[0-9a-f]+) is \.text\b", files)
        self.code = []
        for low, high in sorted((int(low, 16), int(high, 16)) for low, high in found):
            if self.code and low - self.code[-1][1] < 1 << 24:
                self.code[-1][1] = high
            else:
                self.code.append([low, high])
        self.known = {}

    def of(self, thread):
        """Returns a stack as pairs of a function and a place, without the runtime's frames."""
        key = self.signature(thread)
        if key is None or key not in self.known:
            self.known[key] = self.unwind(thread)
        return self.known[key]

    def signature(self, thread):
        if thread.host:
            return None
        size = min(thread.tp - thread.sp, 1 << 18)
        words = struct.unpack("<%dQ" % (size // 8), pirn_read(thread.sp, size // 8 * 8))
        low, high = thread.sp, thread.tp
        key = [size]
        for at, word in enumerate(words):
            if word > 0xffff:
                if low <= word < high:
                    key.append((at, word - low))
                elif any(start <= word < end for start, end in self.code):
                    key.append((at, word))
        return tuple(key)

    def unwind(self, thread):
        try:
            with PirnView(thread) as view:
                frames = list(itertools.islice(view.frames(), 256))
                return tuple((pirn_function(f), pirn_place(f)) for f in pirn_own(frames))
        except (gdb.error, gdb.MemoryError, gdb.GdbError) as error:
            return (("(%s)" % error, ""),)


def pirn_place(frame):
    place = frame.find_sal()
    return "%s:%d" % (place.symtab.filename, place.line) if place.symtab else ""


def pirn_threads(arguments=()):
    """Returns the threads, by id, that match all arguments: `name=PATTERN`, `state=waiting`,
    `id=N`, `frame=TEXT`; a bare word is part of the name or of a frame."""
    layout = PirnLayout.get()
    threads, unreadable = {}, 0
    for number in range(layout.region_count()):
        for record, end in layout.entries(number):
            try:
                thread = PirnThread(layout, record, end)
                threads[thread.id] = thread
            except gdb.MemoryError:
                unreadable += 1
    if unreadable:
        gdb.write("pirn: %d records cannot be read\n" % unreadable)
    pirn_find_hosts(layout, threads)
    stacks = PirnStacks()
    chosen = [t for t in threads.values() if all(pirn_matches(t, a, stacks) for a in arguments)]
    return sorted(chosen, key=lambda thread: thread.id), stacks


def pirn_find_hosts(layout, threads):
    """Notes which threads are mounted on the platform threads: by the stack pointer, or, on the
    stack of a signal handler, by the thread pointer."""
    before = gdb.selected_thread()
    for host in gdb.selected_inferior().threads():
        host.switch()
        mounted = pirn_mounted(layout)
        if mounted and mounted.id in threads:
            threads[mounted.id].host = host
    if before and before.is_valid():
        before.switch()


def pirn_mounted(layout):
    """Returns the virtual thread that the selected platform thread runs, or None."""
    frame = gdb.newest_frame()
    for register in pirn_processor()[1:3]:
        try:
            thread = layout.thread_at(int(frame.read_register(register)) & (1 << 64) - 1)
        except (ValueError, gdb.error):
            continue
        if thread:
            return thread
    return None


def pirn_matches(thread, argument, stacks):
    key, equals, value = argument.partition("=")
    functions = lambda: [function for function, _ in stacks.of(thread)]
    if not equals:
        return argument in thread.name or any(argument in f for f in functions())
    if key == "name":
        return fnmatch.fnmatchcase(thread.name, value)
    if key == "state":
        return thread.state == value
    if key == "id":
        return str(thread.id) == value
    if key == "frame":
        return any(value in function for function in functions())
    raise gdb.GdbError("filters are name=PATTERN, state=STATE, id=N, frame=TEXT")


def pirn_chosen(text):
    """Returns the threads that `1,2,3` or `all` names."""
    threads, stacks = pirn_threads()
    if text != "all":
        try:
            wanted = set(int(number) for number in text.split(","))
        except ValueError:
            raise gdb.GdbError("not numbers of threads: %s" % text)
        threads = [thread for thread in threads if thread.id in wanted]
        missing = wanted - set(thread.id for thread in threads)
        if missing:
            raise gdb.GdbError("no thread with a stack: #%s" % ", #".join(map(str, missing)))
    return threads, stacks


def pirn_thread_local(thread, name):
    """Returns a thread-local of a virtual thread: it is as far from the thread pointer as the
    platform thread's is from the thread pointer that gdb takes for that thread."""
    value = pirn_variable(name)
    address = int(value.address)
    register, side = pirn_processor()[2:]
    try:
        base = int.from_bytes(gdb.selected_thread().handle(), "little")
        if side > 0:  # The handle is the address of a struct that ends at the thread pointer.
            size = int(pirn_address("_thread_db_sizeof_pthread").group(1), 16)
            base += struct.unpack("<I", pirn_read(size, 4))[0]
    except (AttributeError, gdb.error):
        base = int(gdb.newest_frame().read_register(register)) & (1 << 64) - 1
    if not 0 < (address - base) * side < 1 << 20:
        raise gdb.GdbError("%s is not in the part of TLS that has a fixed place" % name)
    pointer = gdb.Value(address + thread.tp - base).cast(value.type.pointer())
    return pointer.dereference()


def pirn_variable(name):
    """Returns the variable of this name; of Rust's `thread_local!`, what is in it."""
    # Rust's macro makes several, of which the linker keeps one. Debug information has all.
    inner = ["::{constant#0}::{closure#%d}::__RUST_STD_INTERNAL_VAL" % i for i in range(3)]
    kept = gdb.execute("info variables __RUST_STD_INTERNAL_VAL", False, True)
    for suffix in [""] + inner:
        for find in (gdb.lookup_static_symbol, gdb.lookup_global_symbol):
            symbol = find(name + suffix)
            if symbol and symbol.is_variable:
                unique = re.search(r"17(h[0-9a-f]{16})E$", symbol.linkage_name)
                if not suffix or not unique or unique.group(1) in kept:
                    return symbol.value()
    raise gdb.GdbError("no variable %s in the debug information" % name)


gdb.frame_filters[PirnFilter.name] = PirnFilter()
gdb.unwinder.register_unwinder(None, PirnUnwinder(), True)
for pirn_event in (gdb.events.new_objfile, gdb.events.exited):
    pirn_event.connect(PirnLayout.forget)
