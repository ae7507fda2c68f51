//! Bytes of a process, or of a core file.

use std::error::Error;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::time::{ClockId, clock_gettime};

use super::core_file::{CoreFile, Registers};

/// See the module's documentation.
pub enum Memory {
    /// `/proc/PID/mem`.
    Process(File),
    CoreFile(CoreFile),
}

impl Memory {
    /// Returns the memory of a process that may be traced by this user.
    pub fn of_process(pid: u32) -> Result<Memory, Box<dyn Error>> {
        let file = File::open(format!("/proc/{pid}/mem"));
        let cannot = |error: io::Error| {
            let hint = match error.kind() {
                io::ErrorKind::PermissionDenied => {
                    "; to read a process from outside takes the right to trace it: be root, or its \
                     user where kernel.yama.ptrace_scope is 0"
                }
                _ => "",
            };
            format!("cannot read the memory of process {pid}: {error}{hint}")
        };
        Ok(Memory::Process(file.map_err(cannot)?))
    }

    /// Returns the memory that a core file has.
    pub fn of_core(core: CoreFile) -> Memory {
        Memory::CoreFile(core)
    }

    /// Returns whether nothing changes while it is read.
    pub fn is_still(&self) -> bool {
        matches!(self, Memory::CoreFile(_))
    }

    /// Returns the time of the monotonic clock, which deadlines go by, in nanoseconds. A core file
    /// does not say it.
    pub fn clock(&self) -> Option<u64> {
        let Memory::Process(_) = self else {
            return None;
        };
        let now = clock_gettime(ClockId::Monotonic);
        Some(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
    }

    /// Returns the registers of the platform threads, if they are known.
    pub fn registers(&self) -> &[Registers] {
        match self {
            Memory::Process(_) => &[],
            Memory::CoreFile(core) => &core.threads,
        }
    }

    /// Fills `bytes` from an address on. Fails if only a part is there.
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> io::Result<()> {
        match self {
            Memory::Process(file) => file.read_exact_at(bytes, address),
            Memory::CoreFile(core) => core.read(address, bytes),
        }
    }

    /// Returns this many bytes from an address on.
    pub fn bytes(&self, address: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        self.read(address, &mut bytes)?;
        Ok(bytes)
    }

    /// Returns the word at an address.
    pub fn word(&self, address: u64) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Returns this many words from an address on.
    pub fn words(&self, address: u64, count: usize) -> io::Result<Vec<u64>> {
        let bytes = self.bytes(address, 8 * count)?;
        let words = bytes.chunks_exact(8);
        Ok(words
            .map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()))
            .collect())
    }

    /// Returns the text of `len` bytes at an address, at most 4096.
    pub fn text(&self, address: u64, len: u64) -> io::Result<Vec<u8>> {
        self.bytes(address, len.min(4096) as usize)
    }

    /// Returns the text at an address up to a zero, at most 64 bytes.
    pub fn text_to_zero(&self, address: u64) -> Option<String> {
        // Within a page, so that the end of a mapping does not matter.
        let len = 64.min(4096 - address % 4096);
        let bytes = self.bytes(address, len as usize).ok()?;
        let end = bytes.iter().position(|byte| *byte == 0)?;
        Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }
}
