//! Programs written in Go, which a process may start as its children.
//!
//! Go's runtime makes its system calls itself, so it would block carriers, and it takes `SIGURG`
//! for its own preemption. Its linker leaves a note in the program.

use core::slice;

/// Returns whether this program has been built by Go's tools.
pub fn made_this() -> bool {
    // SAFETY: the kernel passes the program headers of the program, which are mapped. So are its
    // notes, at their addresses from where the program has been loaded.
    unsafe {
        let headers = libc::getauxval(libc::AT_PHDR) as *const libc::Elf64_Phdr;
        if headers.is_null() {
            return false;
        }
        let count = libc::getauxval(libc::AT_PHNUM) as usize;
        let all = slice::from_raw_parts(headers, count);
        let own = all.iter().find(|header| header.p_type == libc::PT_PHDR);
        let base = own.map_or(0, |own| headers.addr().wrapping_sub(own.p_vaddr as usize));
        let mut notes = all.iter().filter(|header| header.p_type == libc::PT_NOTE);
        notes.any(|note| {
            let start = base.wrapping_add(note.p_vaddr as usize) as *const u8;
            has_note(slice::from_raw_parts(start, note.p_memsz as usize))
        })
    }
}

/// Returns whether one of some notes is Go's. Each has three lengths (name, contents, and a type),
/// and two texts that are padded to four bytes.
fn has_note(mut notes: &[u8]) -> bool {
    loop {
        let Some((head, rest)) = notes.split_first_chunk::<12>() else {
            return false;
        };
        let word =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (name, contents) = (word(0) as usize, word(4) as usize);
        if rest.get(..name) == Some(b"Go\0\0") {
            return true;
        }
        let length = name.next_multiple_of(4) + contents.next_multiple_of(4);
        let Some(next) = rest.get(length..) else {
            return false;
        };
        notes = next;
    }
}

#[cfg(test)]
mod tests;
