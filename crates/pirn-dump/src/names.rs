//! Names of a dump's frames: a table from program counters to functions and lines.

use crate::model::{Dump, End, Module, Stack, Wait};
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
    ///
    /// In optimized code `read` ends with a jump to the runtime's `read_here`, which alone is on
    /// the stack then. Its name is `read`, as this is what the program has called.
    pub fn name(&self) -> String {
        match (&self.function, &self.module) {
            (Some(function), _) => match interposed_part(function) {
                Some(called) => called.to_string(),
                None => function.clone(),
            },
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

    /// Returns whether its source file is known, and one of the runtime's.
    pub fn is_of_runtime(&self) -> bool {
        self.file.as_deref().is_some_and(is_of_runtime)
    }

    /// Whether it is a function of the runtime.
    pub(crate) fn is_runtime(&self) -> bool {
        let name = self
            .function
            .as_deref()
            .unwrap_or("")
            .trim_start_matches(['<', '&']);
        // The command `pirn` is a program with functions of the same beginning.
        PATHS.iter().any(|start| name.starts_with(start))
            && self.file.as_deref().is_none_or(is_of_runtime)
            || name == "start_of_stack"
            || self.is_inner_part()
    }

    /// Whether it is a function of the runtime that line tables of optimized code have without its
    /// path: part of another one, or generic. Neither is a function of libc.
    fn is_inner_part(&self) -> bool {
        let name = self.function.as_deref().unwrap_or("");
        let path = without_types(name);
        (self.inlined || path.len() < name.len())
            && !path.is_empty()
            && !path.contains("::")
            && self.is_of_runtime()
    }

    /// Whether it is a function of `std` by which the runtime calls closures.
    fn is_glue(&self) -> bool {
        const STARTS: [&str; 7] = [
            "core::ops::function::",
            "core::panic::",
            "std::panic::",
            "std::panicking::",
            "std::sys::backtrace::",
            "std::thread::lifecycle::",
            "std::thread::local::",
        ];
        let name = self
            .function
            .as_deref()
            .unwrap_or("")
            .trim_start_matches('<');
        STARTS.iter().any(|start| name.starts_with(start))
            // The names that line tables have.
            || ["__rust_try", "call_once", "catch_unwind", "do_call"].contains(&without_types(name))
            || name.contains(" as core::ops::function::FnOnce<") && name.ends_with(">::call_once")
            || name.ends_with("::new::thread_start")
    }

    /// Whether it is a function of libc that the runtime defines, as far as one can see: without
    /// debug information any function of C may be.
    fn is_interposed(&self) -> bool {
        let name = self.function.as_deref().unwrap_or("");
        let may_be = self.file.as_deref().is_none_or(is_of_runtime);
        !name.is_empty() && !name.contains(['<', ':']) && may_be && !self.is_inner_part()
    }
}

/// Returns a name up to the types of a generic function.
fn without_types(name: &str) -> &str {
    name.split('<').next().unwrap_or(name)
}

/// Returns the name of libc's function whose work a function of the runtime does: `read` for
/// `pirn_libc::io::rw::read_here`.
fn interposed_part(function: &str) -> Option<&str> {
    let path = function.strip_prefix("pirn_libc::")?;
    path.rsplit("::").next()?.strip_suffix("_here")
}

/// The crates that make up the runtime, and the first parts of their functions' paths.
const CRATES: [&str; 5] = ["pirn", "pirn-libc", "pirn-observe", "pirn-posix", "pirn-rt"];
pub(crate) const PATHS: [&str; CRATES.len()] = [
    "pirn::",
    "pirn_libc::",
    "pirn_observe::",
    "pirn_posix::",
    "pirn_rt::",
];

/// Whether a source file is one of the runtime's: below `pirn/src` or `pirn-rt/src` or, from a
/// registry, `pirn-0.1.0/src`.
fn is_of_runtime(file: &str) -> bool {
    let is_crate = |folder: &str| {
        CRATES.iter().any(|name| {
            let version = folder
                .strip_prefix(name)
                .map(|rest| rest.strip_prefix('-').unwrap_or(rest));
            version.is_some_and(|it| it.is_empty() || it.starts_with(|c: char| c.is_ascii_digit()))
        })
    };
    let folders: Vec<_> = file.split('/').collect();
    folders
        .windows(2)
        .any(|pair| is_crate(pair[0]) && pair[1] == "src")
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
    /// Variables of the program that threads wait at, by address.
    variables: HashMap<u64, String>,
    /// By program counter, and whether it is the next instruction's address. Innermost first.
    table: HashMap<(u64, bool), Vec<Frame>>,
}

impl Names {
    /// Names frames by their modules alone: `server+0x1234`.
    pub fn plain(dump: &Dump) -> Names {
        Names::by(dump, |_, _| Vec::new())
    }

    /// Names frames by what a function finds in a module: frames without module and address, which
    /// are filled in. It is given the address in the module's symbol table; in place of an address
    /// that a call returns to, the address of the call's last byte.
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
        Names {
            table,
            variables: HashMap::new(),
        }
    }

    /// Adds the names of the locks that are variables of the program, by what a function finds in a
    /// module. It is given the address in the module's symbol table.
    pub fn add_variables(
        &mut self,
        dump: &Dump,
        mut find: impl FnMut(&Module, u64) -> Option<String>,
    ) {
        let modules = Modules::of(dump);
        let of_threads = dump.threads.iter().filter_map(|thread| match thread.wait {
            Wait::Lock { address, .. } => Some(address),
            _ => None,
        });
        // Locks on the heap are as many as threads. They are in no module.
        for address in of_threads {
            if self.variables.contains_key(&address) {
                continue;
            }
            // Variables come after the code.
            let Some(module) = modules.before(address) else {
                continue;
            };
            if let Some(name) = find(module, address.wrapping_sub(module.bias)) {
                self.variables.insert(address, name);
            }
        }
    }

    /// Returns the name of the variable at an address at which threads wait.
    pub fn variable(&self, address: u64) -> Option<&str> {
        self.variables.get(&address).map(String::as_str)
    }

    fn frames_at(&self, counter: (u64, bool)) -> &[Frame] {
        self.table.get(&counter).map_or(&[], Vec::as_slice)
    }

    /// Returns all frames of a stack, innermost first, including the runtime's.
    pub fn all(&self, stack: &Stack) -> Vec<&Frame> {
        counters(stack)
            .flat_map(|counter| self.frames_at(counter))
            .collect()
    }

    /// Returns the frames of a stack, innermost first, without the runtime's: from the function
    /// that the program called to the one that the thread was started with.
    pub fn shown(&self, stack: &Stack) -> Vec<&Frame> {
        let first = stack.runtime_frames as usize;
        let first = if first < stack.frames.len() { first } else { 0 };
        let frames = counters(stack)
            .skip(first)
            .flat_map(|counter| self.frames_at(counter));
        without_runtime(frames.collect(), stack.end == End::Complete)
    }
}

/// Returns a stack's program counters, each with whether it is the next instruction's address.
fn counters(stack: &Stack) -> impl Iterator<Item = (u64, bool)> {
    let numbered = stack.frames.iter().enumerate();
    numbered.map(|(number, address)| (*address, number == 0 && stack.exact_first))
}

/// Leaves out the frames of the runtime.
///
/// ```text
///   pirn_rt::sched::mount::park      recvfrom             <- a function of libc, defined by us
///   pirn::thread::park          <-     server::read
///   server::handle                     server::handle
///   pirn::scope::task_scope::run       pirn_rt::panic::catch   not shown: what calls the
///   std::panic::catch_unwind           std::panic::catch_unwind          thread's function
///   pirn::scope::with           <-     pirn_rt::sched::life::entry
/// ```
///
/// Of frames of the runtime in a row, with what they call of `std`, the outermost is shown: the
/// function that the program called. Those that began the thread are not.
fn without_runtime(frames: Vec<&Frame>, complete: bool) -> Vec<&Frame> {
    let mut shown = Vec::new();
    let mut at = 0;
    while at < frames.len() {
        let count = frames[at..]
            .iter()
            .take_while(|frame| frame.is_runtime() || frame.is_glue())
            .count();
        let run = &frames[at..at + count];
        let called = run.iter().rposition(|frame| frame.is_runtime());
        let (is_first, is_last) = (at == 0, at + count == frames.len());
        match called {
            None => {
                shown.extend(run);
                shown.extend(frames.get(at + count));
                at += 1;
            }
            // All of it: the thread was started with a function of the runtime.
            Some(_) if is_first && is_last => {
                let inner = run.iter().take_while(|frame| frame.is_runtime()).count();
                return if inner > 0 && complete {
                    vec![run[inner - 1]]
                } else {
                    run.to_vec()
                };
            }
            Some(_) if is_last && complete => {}
            Some(_) if is_first && frames[at + count].is_interposed() => {}
            Some(called) => shown.push(run[called]),
        }
        at += count;
    }
    // Some of libc's functions are made of others.
    let interposed = shown
        .iter()
        .take_while(|frame| frame.is_interposed())
        .count();
    shown.drain(..interposed.saturating_sub(1));
    shown
}

/// A dump's modules, sorted by address.
struct Modules<'a>(Vec<&'a Module>);

impl<'a> Modules<'a> {
    fn of(dump: &'a Dump) -> Modules<'a> {
        let mut modules: Vec<&Module> = dump.modules.iter().collect();
        modules.sort_by_key(|module| module.start);
        Modules(modules)
    }

    /// Returns the module with the last code before an address.
    fn before(&self, address: u64) -> Option<&'a Module> {
        let after = self.0.partition_point(|module| module.start <= address);
        self.0[..after].last().copied()
    }

    fn containing(&self, address: u64) -> Option<&'a Module> {
        self.before(address).filter(|module| address < module.end)
    }
}

#[cfg(test)]
mod tests;
