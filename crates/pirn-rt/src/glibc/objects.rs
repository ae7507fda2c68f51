//! The loaded objects: the program and its libraries.

use crate::sys::page_size;
use core::ffi::{CStr, c_int, c_void};
use core::ops::Range;

/// A loaded object, while the dynamic linker's lock is held.
pub struct Object<'a>(&'a libc::dl_phdr_info);

/// The thread-local data of an object.
pub(super) struct ObjectTls {
    /// The linker's number of the module.
    pub(super) module: usize,
    pub(super) size: usize,
    /// The calling thread's block; null if it has none yet.
    pub(super) block: *mut c_void,
}

impl Object<'_> {
    /// Returns its path, as the dynamic linker found it; empty for the program itself.
    pub fn name(&self) -> &CStr {
        if self.0.dlpi_name.is_null() {
            return c"";
        }
        // SAFETY: a C string of the dynamic linker, which keeps it as long as the object.
        unsafe { CStr::from_ptr(self.0.dlpi_name) }
    }

    /// Returns its load address.
    pub fn base(&self) -> usize {
        self.0.dlpi_addr as usize
    }

    /// Returns the last component of its path.
    pub(super) fn file_name(&self) -> &[u8] {
        let path = self.name().to_bytes();
        path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
    }

    /// Returns its segments that have all these flags (`PF_…`): the address ranges of the parts
    /// that come from the file.
    pub fn segments(&self, flags: u32) -> impl Iterator<Item = Range<usize>> {
        let loaded = self.headers().iter().filter(|h| h.p_type == libc::PT_LOAD);
        loaded.filter(move |h| h.p_flags & flags == flags).map(|h| {
            let start = self.base() + h.p_vaddr as usize;
            start..start + h.p_filesz as usize
        })
    }

    /// Returns its segment of code that an address is in, if there is one.
    pub fn code_at(&self, address: usize) -> Option<Range<usize>> {
        self.segments(libc::PF_X)
            .find(|code| code.contains(&address))
    }

    /// Returns the part of its data that the linker has made read-only after its start.
    pub(super) fn read_only_after_start(&self) -> Range<usize> {
        let within = !(page_size() - 1);
        let mut headers = self.headers().iter();
        headers
            .find(|h| h.p_type == libc::PT_GNU_RELRO)
            .map_or(0..0, |h| {
                let start = self.base() + h.p_vaddr as usize;
                start & within..(start + h.p_memsz as usize) & within
            })
    }

    /// Returns the parts of it that are code: their addresses, and where each is in the file.
    #[cfg(feature = "dump")]
    pub fn code(&self) -> impl Iterator<Item = (Range<usize>, u64)> {
        let loaded = self.headers().iter().filter(|h| h.p_type == libc::PT_LOAD);
        loaded.filter(|h| h.p_flags & libc::PF_X != 0).map(|h| {
            let start = self.base() + h.p_vaddr as usize;
            (start..start + h.p_filesz as usize, h.p_offset)
        })
    }

    /// Returns the memory of its index of unwind information (`.eh_frame_hdr`).
    #[cfg(feature = "dump")]
    pub fn unwind_index_bytes(&self) -> Option<&[u8]> {
        self.bytes_of(libc::PT_GNU_EH_FRAME).next()
    }

    /// Returns its GNU build id.
    #[cfg(feature = "dump")]
    pub fn build_id(&self) -> Option<&[u8]> {
        self.bytes_of(libc::PT_NOTE).find_map(build_id_in)
    }

    /// Returns the memory from `address` to the end of the part of the file around it.
    #[cfg(feature = "dump")]
    pub fn bytes_from(&self, address: usize) -> Option<&[u8]> {
        let range = self.segments(libc::PF_R).find(|r| r.contains(&address))?;
        // SAFETY: loaded, readable, and kept by the linker's lock.
        Some(unsafe { core::slice::from_raw_parts(address as *const u8, range.end - address) })
    }

    #[cfg(feature = "dump")]
    fn bytes_of(&self, kind: u32) -> impl Iterator<Item = &[u8]> {
        let headers = self.headers().iter().filter(move |h| h.p_type == kind);
        headers.filter_map(|h| {
            let bytes = self.bytes_from(self.base() + h.p_vaddr as usize)?;
            bytes.get(..h.p_memsz as usize)
        })
    }

    /// Returns its thread-local data, if it has any.
    pub(super) fn tls(&self) -> Option<ObjectTls> {
        let header = self.headers().iter().find(|h| h.p_type == libc::PT_TLS)?;
        (self.0.dlpi_tls_modid != 0).then_some(ObjectTls {
            module: self.0.dlpi_tls_modid,
            size: header.p_memsz as usize,
            block: self.0.dlpi_tls_data,
        })
    }

    /// Returns the number of objects that have been loaded in this process so far.
    pub fn additions(&self) -> u64 {
        self.0.dlpi_adds // since glibc 2.4
    }

    /// Returns the number of objects that have been loaded and unloaded in this process so far.
    pub fn changes(&self) -> u64 {
        self.0.dlpi_adds + self.0.dlpi_subs // since glibc 2.4
    }

    fn headers(&self) -> &[libc::Elf64_Phdr] {
        // SAFETY: the program headers of a loaded object; the linker's lock keeps it.
        unsafe { core::slice::from_raw_parts(self.0.dlpi_phdr, self.0.dlpi_phnum.into()) }
    }
}

/// Returns the build id in the notes of an object. Each note has three lengths (name, contents, and
/// type), and two texts that are padded to four bytes.
#[cfg(feature = "dump")]
fn build_id_in(mut notes: &[u8]) -> Option<&[u8]> {
    const GNU_BUILD_ID: u32 = 3;
    loop {
        let (head, rest) = notes.split_first_chunk::<12>()?;
        let word = |i: usize| u32::from_le_bytes([head[i], head[i + 1], head[i + 2], head[i + 3]]);
        let (name, contents) = (word(0) as usize, word(4) as usize);
        let (name, rest) = rest.split_at_checked(name.next_multiple_of(4))?;
        if word(8) == GNU_BUILD_ID && name == b"GNU\0" {
            return rest.get(..contents);
        }
        notes = rest.get(contents.next_multiple_of(4)..)?;
    }
}

/// Calls `visit` with each loaded object until it returns `Some`, and returns that value.
///
/// `visit` runs under the linker's lock: it must not open or close libraries.
pub fn find_in<R, F>(visit: F) -> Option<R>
where
    F: FnMut(Object<'_>) -> Option<R>,
{
    unsafe extern "C" fn one<R, F>(
        info: *mut libc::dl_phdr_info,
        _: usize,
        search: *mut c_void,
    ) -> c_int
    where
        F: FnMut(Object<'_>) -> Option<R>,
    {
        // SAFETY: `dl_iterate_phdr` passes a valid description, and our own pointer.
        let (info, (visit, found)) = unsafe { (&*info, &mut *search.cast::<(F, Option<R>)>()) };
        *found = visit(Object(info));
        found.is_some().into()
    }
    let mut search = (visit, None);
    // SAFETY: `search` outlives the call, and is what `one` expects.
    unsafe { libc::dl_iterate_phdr(Some(one::<R, F>), (&raw mut search).cast()) };
    search.1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_in_an_executable_segment_of_one_object() {
        let code = code_is_in_an_executable_segment_of_one_object as *const () as usize;
        let mut found = 0;
        let none: Option<()> = find_in(|object| {
            found += object
                .segments(libc::PF_X)
                .filter(|range| range.contains(&code))
                .count();
            None
        });
        assert_eq!((found, none), (1, None));
    }

    #[test]
    fn the_walk_ends_with_what_was_found() {
        let mut visited = 0;
        let base = find_in(|object| {
            visited += 1;
            Some(object.base())
        });
        assert!(base.is_some());
        assert_eq!(visited, 1);
    }
}
