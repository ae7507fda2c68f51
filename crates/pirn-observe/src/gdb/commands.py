"""Commands for the virtual threads of pirn in gdb: `help pirn` lists them, docs/debugging.md
explains them. How threads are found is in threads.py.
"""

import bisect
import itertools

import gdb


class PirnCommand(gdb.Command):
    """Virtual threads. `pirn threads` lists them; `pirn bt N` shows the stack of one."""

    def __init__(self, name="pirn", prefix=True):
        super().__init__(name, gdb.COMMAND_STACK, gdb.COMPLETE_NONE, prefix)

    def invoke(self, text, from_tty):
        gdb.execute("help pirn")


class PirnThreadsCommand(PirnCommand):
    """List virtual threads: pirn threads [FILTER]...
    A filter is name=PATTERN, state=STATE, id=N, frame=TEXT, or a part of a name or a function."""

    def invoke(self, text, from_tty):
        threads, stacks = pirn_threads(gdb.string_to_argv(text))
        for thread in threads:
            function, place = (stacks.of(thread) or [("?", "")])[0]
            gdb.write("%s in %s%s\n" % (thread.title(), function, place and " at " + place))
        gdb.write("%d virtual threads\n" % len(threads))


class PirnBacktraceCommand(PirnCommand):
    """Show the stack of a virtual thread: pirn bt N|all [-runtime] [OPTION OF backtrace]...
    Frames of the runtime are left out unless -runtime is given. `all` shows places only, without
    arguments; `pirn apply all bt` shows these, too, and takes longer."""

    def invoke(self, text, from_tty):
        arguments = gdb.string_to_argv(text)
        hides = "-runtime" not in arguments
        words = [word for word in arguments if word != "-runtime"]
        if not words:
            raise gdb.GdbError("which thread? pirn bt N, or all")
        threads, stacks = pirn_chosen(words[0])
        for thread in threads:
            gdb.write(thread.title() + "\n")
            if words[0] == "all":
                for function, place in stacks.of(thread):
                    gdb.write("    %s%s\n" % (function, place and " at " + place))
            else:
                with PirnView(thread):
                    PirnView.hides = hides
                    try:
                        gdb.execute("backtrace " + " ".join(words[1:]))
                    finally:
                        PirnView.hides = False


class PirnApplyCommand(PirnCommand):
    """Apply a command to virtual threads: pirn apply N,N...|all COMMAND"""

    def invoke(self, text, from_tty):
        which, _, command = text.strip().partition(" ")
        if not command:
            raise gdb.GdbError("pirn apply N,N...|all COMMAND")
        for thread in pirn_chosen(which)[0]:
            gdb.write("\n%s\n" % thread.title())
            with PirnView(thread) as view:
                view.select()
                try:
                    gdb.execute(command)
                except gdb.error as error:
                    gdb.write("%s\n" % error)


class PirnGroupsCommand(PirnCommand):
    """List virtual threads by state and stack, the largest group first: pirn groups [FILTER]..."""

    def invoke(self, text, from_tty):
        threads, stacks = pirn_threads(gdb.string_to_argv(text))
        groups = {}
        for thread in threads:
            groups.setdefault((thread.state, stacks.of(thread)), []).append(thread)
        for (state, stack), members in sorted(groups.items(), key=lambda item: -len(item[1])):
            examples = ", ".join('#%d "%s"' % (t.id, t.name) for t in members[:3])
            gdb.write("%d %s: %s\n" % (len(members), state, examples))
            for function, place in stack:
                gdb.write("    %s%s\n" % (function, place and " at " + place))
        gdb.write("%d virtual threads, %d groups\n" % (len(threads), len(groups)))


class PirnScopesCommand(PirnCommand):
    """List scopes with their members, and the threads that wait for them: pirn scopes"""

    def invoke(self, text, from_tty):
        scopes, waiting = {}, {}
        for thread in pirn_threads()[0]:
            scope, wait = thread.field("scope"), thread.wait()
            if scope:
                scopes.setdefault(scope, []).append(thread)
            if wait.startswith("scope #"):
                waiting[int(wait[7:])] = thread
                scopes.setdefault(int(wait[7:]), [])
        for scope, members in sorted(scopes.items()):
            owner = waiting[scope].title() if scope in waiting else "an owner that does not join yet"
            gdb.write("scope #%d, %d members, of %s\n" % (scope, len(members), owner))
            for thread in members:
                gdb.write("    %s\n" % thread.title())
        gdb.write("%d scopes with members\n" % len(scopes))


class PirnThreadCommand(PirnCommand):
    """Look at a virtual thread until the process goes on: pirn thread N
    Then bt, frame, up, down, info locals and print concern it. Without N: back to the platform
    threads. Commands that run the process (step, finish) are for platform threads only."""

    view = None

    def invoke(self, text, from_tty):
        PirnThreadCommand.leave()
        if text:
            thread = pirn_chosen(text)[0][0]
            PirnThreadCommand.view = PirnView(thread).__enter__()
            PirnThreadCommand.view.select()
            gdb.write(thread.title() + "\n")

    @staticmethod
    def leave(_event=None):
        if PirnThreadCommand.view:
            view, PirnThreadCommand.view = PirnThreadCommand.view, None
            view.__exit__()


class PirnIdFunction(gdb.Function):
    """$pirn_id(): the id of the virtual thread that the selected platform thread runs, or 0.
    For conditions of breakpoints: break FUNCTION if $pirn_id() == 7"""

    def __init__(self):
        super().__init__("pirn_id")

    def invoke(self):
        thread = pirn_mounted(PirnLayout.get())
        return thread.id if thread else 0


class PirnTlsFunction(gdb.Function):
    """$pirn_tls(N, "VARIABLE"): the thread-local VARIABLE of virtual thread N.
    In Rust frames use `pirn tls`: there, gdb calls malloc in the process for a string."""

    def __init__(self):
        super().__init__("pirn_tls")

    def invoke(self, number, name):
        return pirn_thread_local(pirn_chosen(str(int(number)))[0][0], name.string())


class PirnTlsCommand(PirnCommand):
    """Print the thread-local VARIABLE of a virtual thread: pirn tls N VARIABLE
    For Rust's thread_local! the path of the key, such as program::module::KEY."""

    def invoke(self, text, from_tty):
        which, _, name = text.strip().partition(" ")
        for thread in pirn_chosen(which)[0]:
            value = pirn_thread_local(thread, name.strip())
            gdb.write("#%d $%d = %s\n" % (thread.id, gdb.add_history(value), value))


class PirnNextCommand(PirnCommand):
    """Go on to the next line of this function in this virtual thread: pirn next [COUNT]
    Unlike next, it does not lose a thread that waits and continues on another carrier."""

    finishes = False

    def invoke(self, text, from_tty):
        for _ in range(int(text or 1)):
            stops = self.stops(gdb.newest_frame())
            try:
                gdb.execute("continue")
                hit = any(stop.hit_count for stop in stops if stop.is_valid())
            finally:
                for stop in stops:
                    if stop.is_valid():
                        stop.delete()
            if not hit:
                return  # another breakpoint, a signal, or the end of the process
        gdb.execute("frame")

    def stops(self, frame):
        """Returns breakpoints at the other lines of a frame's function, and at its caller."""
        thread = pirn_mounted(PirnLayout.get())
        if not thread:
            raise gdb.GdbError("the selected platform thread runs no virtual thread")
        outer = frame
        while outer.type() == gdb.INLINE_FRAME:
            outer = outer.older()
        sal, addresses = frame.find_sal(), set()
        if not self.finishes and sal.symtab:
            lines = pirn_lines(sal.symtab, outer.pc())
            here = set(pc for pc, line in lines if line == sal.line)
            addresses = set(pc for pc, line in lines if line) - here
        if outer.older():
            addresses.add(outer.older().pc())
        depth = int(outer.read_register(pirn_processor()[1]))
        return [PirnStop(address, thread.id, depth) for address in addresses]


def pirn_lines(symtab, pc):
    """Returns the lines of the function at an address, with their addresses. The symbol table says
    which function it is: debug information of line tables has no functions."""
    function = pirn_symbol(pc)
    lines = sorted((entry.pc, entry.line) for entry in symtab.linetable())
    at = bisect.bisect(lines, (pc, 1 << 32))
    same = lambda entry: pirn_symbol(entry[0]) == function
    before = list(itertools.takewhile(same, reversed(lines[:at])))
    return before + list(itertools.takewhile(same, lines[at:]))


class PirnFinishCommand(PirnNextCommand):
    """Go on until this function returns in this virtual thread: pirn finish"""

    finishes = True


class PirnStop(gdb.Breakpoint):
    """A breakpoint for one virtual thread, in a frame or its callers, not in a deeper one."""

    def __init__(self, address, id, depth):
        super().__init__("*%d" % address, internal=True)
        self.id, self.depth = id, depth
        self.silent = True

    def stop(self):
        if int(gdb.newest_frame().read_register(pirn_processor()[1])) < self.depth:
            return False
        thread = pirn_mounted(PirnLayout.get())
        return thread is not None and thread.id == self.id


PirnCommand()
for pirn_name, pirn_command in {
    "threads": PirnThreadsCommand, "bt": PirnBacktraceCommand, "apply": PirnApplyCommand,
    "groups": PirnGroupsCommand, "thread": PirnThreadCommand, "tls": PirnTlsCommand,
    "next": PirnNextCommand, "finish": PirnFinishCommand, "scopes": PirnScopesCommand,
}.items():
    pirn_command("pirn " + pirn_name, False)
PirnIdFunction()
PirnTlsFunction()
gdb.events.cont.connect(PirnThreadCommand.leave)
