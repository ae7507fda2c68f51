//! What a platform thread is doing, according to the kernel: it computes, waits for a CPU, or is
//! blocked.
//!
//! On a busy machine a carrier that stands still may only be waiting for its turn. One more carrier
//! would make all of them wait longer.

use crate::sys::{self, Errno, call};
use core::cell::Cell;
use core::ffi::CStr;

thread_local! {
    static ID: Cell<u32> = const { Cell::new(0) };
}

/// Returns the calling platform thread's id. Runs on the platform thread's own stack.
pub fn id() -> u32 {
    if ID.get() == 0 {
        ID.set(sys::os_thread_id());
    }
    ID.get()
}

/// Forgets the calling thread's id: in the child of a fork it is another one.
pub(crate) fn after_fork() {
    ID.set(0);
}

/// Asks the kernel to let the calling platform thread run soon after it wakes: it works for short
/// moments only. The kernel may decline.
pub(crate) fn prefer_punctuality() {
    /// The kernel's `struct sched_attr`, as of its first version.
    #[repr(C)]
    #[derive(Default)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        /// For ordinary threads the length of a time slice, since Linux 6.12.
        runtime: u64,
        deadline: u64,
        period: u64,
    }
    const SLICE_NS: u64 = 100_000;
    let mut attributes = Attributes::default();
    let (place, size) = (&raw mut attributes, size_of::<Attributes>());
    // SAFETY: the kernel writes at most `size` bytes of the attributes, and reads them.
    unsafe {
        let _ = call!(libc::SYS_prctl, libc::PR_SET_TIMERSLACK, 1);
        // The nice value must be kept, so the attributes are read first.
        if call!(libc::SYS_sched_getattr, 0, place, size, 0).is_ok()
            && (*place).policy == libc::SCHED_OTHER as u32
        {
            (*place).runtime = SLICE_NS;
            let _ = call!(libc::SYS_sched_setattr, 0, place, 0);
        }
    }
}

/// Returns the CPU time that a thread of this process has used; 0 if no thread has this id.
pub(crate) fn cpu_time(id: u32) -> u64 {
    sys::clock(clock_of(id))
}

/// Returns the kernel's clock of the CPU time of a thread of this process
/// (`MAKE_THREAD_CPUCLOCK`).
pub(super) fn clock_of(id: u32) -> libc::clockid_t {
    const SCHEDULED: i32 = 2;
    const OF_A_THREAD: i32 = 4;
    !id.cast_signed() << 3 | OF_A_THREAD | SCHEDULED
}

/// Returns whether a thread neither runs nor waits for a CPU; also `true` if the kernel does not
/// say.
pub(crate) fn is_blocked(id: u32) -> bool {
    state_of(id) != Some(b'R')
}

/// Returns the kernel's letter for what a thread does; `None` if it does not say.
pub fn state_of(id: u32) -> Option<u8> {
    let mut text = [0; 64];
    state(read(id, b"/stat", &mut text))
}

/// Returns the letter for the state in the text of a `stat` file.
fn state(text: &[u8]) -> Option<u8> {
    // It is the field after the name, which is in parentheses and may contain any.
    let mut places = text.windows(3).rev();
    places.find(|w| w.starts_with(b") ")).map(|w| w[2])
}

/// The kernel's file about the state of a thread of this process, which is kept open.
#[derive(Default)]
pub(crate) struct StateFile {
    /// The thread's id; 0: none is open.
    id: u32,
    fd: i32,
}

impl StateFile {
    /// Returns whether a thread runs or waits for a CPU; `false` if the kernel does not say.
    pub(crate) fn runs(&mut self, id: u32) -> bool {
        let mut text = [0; 64];
        if self.id != 0 && self.id != id {
            let _ = self.read(&mut text); // Its number may be another file's.
            if self.id != 0 {
                sys::close_file(self.fd);
            }
            self.id = 0;
        }
        if self.id == 0 && !self.open(id) {
            return false;
        }
        match self.read(&mut text) {
            Some(text) => state(text) == Some(b'R'),
            None => !is_blocked(id),
        }
    }

    /// Reads the file. `None`: the thread has ended; or the program has closed the file, and its
    /// number may be another file's by now: then this forgets it.
    fn read<'a>(&mut self, text: &'a mut [u8]) -> Option<&'a [u8]> {
        match sys::read_at_start(self.fd, text) {
            Ok(text) if begins_with_number(text, self.id) => Some(text),
            Err(Errno(libc::ESRCH)) => None,
            _ => {
                self.id = 0;
                None
            }
        }
    }

    fn open(&mut self, id: u32) -> bool {
        let mut path = [0; 48];
        path_of(id, b"/stat", &mut path);
        let path = CStr::from_bytes_until_nul(&path);
        match path.map(sys::open_file) {
            Ok(Ok(fd)) => *self = StateFile { id, fd },
            _ => return false,
        }
        true
    }
}

/// Returns whether a text begins with this number and a space.
fn begins_with_number(text: &[u8], number: u32) -> bool {
    let digits = text.split(|&byte| byte == b' ').next().unwrap_or(text);
    let value = core::str::from_utf8(digits)
        .ok()
        .and_then(|d| d.parse().ok());
    value == Some(number)
}

/// Returns the name of a thread of this process.
pub fn name(id: u32) -> Option<String> {
    let mut text = [0; 64];
    let name = String::from_utf8_lossy(read(id, b"/comm", &mut text));
    let name = name.trim_end();
    (!name.is_empty()).then(|| name.to_owned())
}

/// What the kernel says that a thread is doing.
#[derive(Debug, PartialEq, Eq)]
pub enum InKernel {
    Running,
    Blocked(Blocked),
}

/// Where a thread is blocked in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The system call; `None` for a page fault.
    pub call: Option<i64>,
    /// Its first argument.
    pub first: usize,
    pub stack_pointer: usize,
    /// The address after the instruction that made it.
    pub from: usize,
}

/// Returns what a thread of this process is doing; `None`: it is gone, or the kernel does not say.
pub fn in_kernel(id: u32) -> Option<InKernel> {
    let mut line = [0; 256];
    in_line(core::str::from_utf8(read(id, b"/syscall", &mut line)).ok()?)
}

/// Parses a line of `/proc/.../syscall`: `running`; or the number of the call, six arguments, stack
/// pointer and address; or -1 and the last two.
fn in_line(line: &str) -> Option<InKernel> {
    let mut words = line.split_whitespace();
    let first = words.next()?;
    if first == "running" {
        return Some(InKernel::Running);
    }
    let call: i64 = first.parse().ok()?;
    let mut words = words.map(|word| usize::from_str_radix(word.strip_prefix("0x")?, 16).ok());
    let (first, stack_pointer, from) = match call {
        0.. => (words.next()??, words.nth(5)??, words.next()??),
        _ => (0, words.next()??, words.next()??),
    };
    Some(InKernel::Blocked(Blocked {
        call: (call >= 0).then_some(call),
        first,
        stack_pointer,
        from,
    }))
}

/// Returns the contents of the kernel's `file` about a thread of this process, as far as they fit:
/// nothing if no thread has this id.
pub(crate) fn read<'a>(id: u32, file: &[u8], text: &'a mut [u8]) -> &'a [u8] {
    let mut path = [0; 48];
    path_of(id, file, &mut path);
    match CStr::from_bytes_until_nul(&path) {
        Ok(path) => sys::read_file(path, text).unwrap_or(&[]),
        Err(_) => &[],
    }
}

/// Writes the path of the kernel's `file` about a thread of this process. `file` has at most 9
/// bytes.
fn path_of(id: u32, file: &[u8], path: &mut [u8; 48]) {
    const FOLDER: &[u8] = b"/proc/self/task/";
    let digits = 1 + id.checked_ilog10().unwrap_or(0) as usize;
    let (name, end) = (FOLDER.len(), FOLDER.len() + digits);
    path[..name].copy_from_slice(FOLDER);
    let mut rest = id;
    for digit in path[name..end].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    path[end..end + file.len()].copy_from_slice(file);
}

#[cfg(test)]
mod tests;
