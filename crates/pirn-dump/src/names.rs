//! Names of a dump's frames: a table from program counters to functions and lines.

use crate::model::{Dump, End, Module, Stack};
use std::collections::HashMap;
use std::fmt;

/// A function call: one frame of a stack, or a call that the compiler put into its caller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The program counter in the process.
    pub address: u64,
    /// The function's name, demangled.
    pub function: Option<String>,
    /// How many bytes after the function's beginning the address is.
    pub offset: Option<u64>,
    /// The path of the source file.
    pub file: Option<String>,
    /// The line in it, from 1.
    pub line: Option<u32>,
    /// The column, from 1.
    pub column: Option<u32>,
    /// Whether the compiler put the call into its caller, which is the next frame.
    pub inlined: bool,
    /// The file name of the program or library, without its folder.
    pub module: Option<String>,
    /// The address in the file's symbol table.
    pub module_offset: u64,
}

impl Frame {
    /// Describes an address by its module.
    fn plain(address: u64, module: Option<&Module>) -> Frame {
        Frame {
            address,
            module: module.map(Module::file_name),
            module_offset: module.map_or(address, |module| address.wrapping_sub(module.bias)),
            ..Frame::default()
        }
    }

    /// Returns the function's name, or `module+0x1234`, or the address.
    pub fn name(&self) -> String {
        match (&self.function, &self.module) {
            (Some(function), _) => function.clone(),
            (None, Some(module)) => format!("{module}+{:#x}", self.module_offset),
            (None, None) => format!("{:#x}", self.address),
        }
    }

    /// Returns the name of the source file without its folder.
    pub fn file_name(&self) -> Option<&str> {
        self.file
            .as_deref()
            .map(|file| file.rsplit('/').next().unwrap_or(file))
    }

    /// Whether the name, if it is one of Rust, is in the crate or in one of its modules.
    fn is_in(&self, krate: &str) -> bool {
        let name = self.function.as_deref().unwrap_or("");
        let name = name.trim_start_matches(['<', '&']);
        name.strip_prefix(krate)
            .is_some_and(|rest| rest.starts_with("::"))
    }
}

/// The frame as the JDK writes it: `server::handle(main.rs:12)`.
impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())?;
        match (self.file_name(), self.line) {
            (Some(file), Some(line)) => write!(f, "({file}:{line})"),
            (Some(file), None) => write!(f, "({file})"),
            (None, _) if self.function.is_some() => f.write_str("(Native Method)"),
            (None, _) => f.write_str("(Unknown Source)"),
        }
    }
}

impl Module {
    /// Returns the name of its file, without its folder, for people.
    pub fn file_name(&self) -> String {
        let name = self
            .path
            .rsplit(|byte| *byte == b'/')
            .next()
            .unwrap_or(&self.path);
        String::from_utf8_lossy(name).into_owned()
    }
}

/// The names of all frames of a dump.
///
/// # Examples
/// ```
/// use pirn_dump::{Dump, Module, Names, Stack};
/// let stack = Stack { frames: vec![0x5010], ..Stack::default() };
/// let module = Module { path: b"/bin/x".into(), start: 0x5000, end: 0x6000, bias: 0x5000, ..Module::default() };
/// let dump = Dump { stacks: vec![stack], modules: vec![module], ..Dump::default() };
/// let names = Names::plain(&dump);
/// assert_eq!(names.all(&dump.stacks[0])[0].name(), "x+0x10");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// By program counter, and whether it is that of the next instruction. Innermost first.
    table: HashMap<(u64, bool), Vec<Frame>>,
}

impl Names {
    /// Names frames by their modules alone: `server+0x1234`.
    pub fn plain(dump: &Dump) -> Names {
        Names::by(dump, |_, _| Vec::new())
    }

    /// Names frames by what a function finds in a module: frames without module and address, which
    /// are filled in. It is given the address in the module's symbol table, which for an address
    /// that a call returns to is that of the call's last byte.
    pub fn by(dump: &Dump, mut find: impl FnMut(&Module, u64) -> Vec<Frame>) -> Names {
        let modules = Modules::of(dump);
        let mut table = HashMap::new();
        for (address, exact) in dump.stacks.iter().flat_map(counters) {
            table.entry((address, exact)).or_insert_with(|| {
                // The return address may be in the next line, or in the next function.
                let inside = if exact {
                    address
                } else {
                    address.wrapping_sub(1)
                };
                let module = modules.containing(inside);
                let found =
                    module.map_or_else(Vec::new, |it| find(it, inside.wrapping_sub(it.bias)));
                let plain = Frame::plain(address, module);
                let fill = |it| Frame {
                    address,
                    module: plain.module.clone(),
                    module_offset: plain.module_offset,
                    ..it
                };
                if found.is_empty() {
                    vec![plain]
                } else {
                    found.into_iter().map(fill).collect()
                }
            });
        }
        Names { table }
    }

    fn frames_at(&self, counter: (u64, bool)) -> &[Frame] {
        self.table.get(&counter).map_or(&[], Vec::as_slice)
    }

    /// Returns all frames of a stack, innermost first, with those of the runtime.
    pub fn all(&self, stack: &Stack) -> Vec<&Frame> {
        counters(stack)
            .flat_map(|counter| self.frames_at(counter))
            .collect()
    }

    /// Returns the frames of a stack, innermost first, without those of the runtime: from the
    /// function that the program called to the one that the thread was started with.
    pub fn shown(&self, stack: &Stack) -> Vec<&Frame> {
        let first = stack.runtime_frames as usize;
        let first = if first < stack.frames.len() { first } else { 0 };
        let mut counters = counters(stack).skip(first);
        let innermost = counters
            .next()
            .map_or(&[][..], |counter| self.frames_at(counter));
        let innermost = if first > 0 {
            without_insides(innermost)
        } else {
            innermost
        };
        let mut shown: Vec<&Frame> = innermost.iter().collect();
        shown.extend(counters.flat_map(|counter| self.frames_at(counter)));
        if stack.end == End::Complete {
            shown.truncate(shown.len() - beginning(&shown));
        }
        shown
    }
}

/// Returns a stack's program counters, each with whether it is that of the next instruction.
fn counters(stack: &Stack) -> impl Iterator<Item = (u64, bool)> {
    let numbered = stack.frames.iter().enumerate();
    numbered.map(|(number, address)| (*address, number == 0 && stack.exact_first))
}

/// Leaves out what the compiler put into a function of the runtime: of `recvfrom` and the calls in
/// it, only `recvfrom` is shown.
fn without_insides(frames: &[Frame]) -> &[Frame] {
    let inside = frames
        .iter()
        .take_while(|frame| frame.is_in("pirn"))
        .count();
    match frames.get(inside) {
        // A function of C is the one that the program called. The runtime's own name for it is not.
        Some(outer) if !outer.name().contains("::") => &frames[inside..],
        _ => &frames[inside.saturating_sub(1)..],
    }
}

/// Returns how many of the outermost frames belong to the beginning of any thread: from the
/// runtime's first frame to the call of the program's function.
fn beginning(frames: &[&Frame]) -> usize {
    let common = |frame: &&&Frame| {
        let name = frame.function.as_deref().unwrap_or("");
        frame.is_in("pirn")
            || [
                "std::panic",
                "core::ops::function::",
                "core::panic",
                "std::sys::backtrace",
                "std::thread",
            ]
            .iter()
            .any(|start| name.trim_start_matches('<').starts_with(start))
            || [
                "__rust_try",
                "start_of_stack",
                "call_once",
                "catch_unwind",
                "do_call",
            ]
            .contains(&name)
            || name.ends_with("as core::ops::function::FnOnce<()>>::call_once")
    };
    let count = frames.iter().rev().take_while(common).count();
    let of_runtime = frames[frames.len() - count..]
        .iter()
        .any(|frame| frame.is_in("pirn"));
    // A thread whose stack is nothing but these is in the runtime: show it.
    if of_runtime && count < frames.len() {
        count
    } else {
        0
    }
}

/// A dump's modules, sorted by address.
struct Modules<'a>(Vec<&'a Module>);

impl<'a> Modules<'a> {
    fn of(dump: &'a Dump) -> Modules<'a> {
        let mut modules: Vec<&Module> = dump.modules.iter().collect();
        modules.sort_by_key(|module| module.start);
        Modules(modules)
    }

    fn containing(&self, address: u64) -> Option<&'a Module> {
        let after = self.0.partition_point(|module| module.start <= address);
        let module = self.0[..after].last()?;
        (address < module.end).then_some(*module)
    }
}
