//! The loaded objects: the program and its libraries.

use core::ffi::{CStr, c_int, c_void};
use core::ops::Range;

/// A loaded object, while the dynamic linker's lock is held.
pub(crate) struct Object<'a>(&'a libc::dl_phdr_info);

/// The thread-local data of an object.
pub(super) struct ObjectTls {
    /// The linker's number of the module.
    pub(super) module: usize,
    pub(super) size: usize,
    /// The calling thread's block; null if it has none yet.
    pub(super) block: *mut c_void,
}

impl Object<'_> {
    /// Returns its path; that of the program is empty.
    pub(crate) fn name(&self) -> &CStr {
        // SAFETY: a valid C string of the linker's, whose lock keeps it.
        unsafe { CStr::from_ptr(self.0.dlpi_name) }
    }

    /// Returns its load address.
    pub(super) fn base(&self) -> usize {
        self.0.dlpi_addr as usize
    }

    /// Returns its path, as the dynamic linker found it; empty for the program itself.
    pub(super) fn path(&self) -> &CStr {
        if self.0.dlpi_name.is_null() {
            return c"";
        }
        // SAFETY: a C string of the dynamic linker, which keeps it as long as the object.
        unsafe { CStr::from_ptr(self.0.dlpi_name) }
    }

    /// Returns the last component of its path.
    pub(super) fn file_name(&self) -> &[u8] {
        let path = self.path().to_bytes();
        path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
    }

    /// Returns the address of its index of unwind information (`.eh_frame_hdr`), if it has one.
    pub(super) fn unwind_index(&self) -> Option<usize> {
        let header = self.headers().iter();
        let header = header
            .copied()
            .find(|h| h.p_type == libc::PT_GNU_EH_FRAME)?;
        Some(self.base() + header.p_vaddr as usize)
    }

    /// Returns its segments that have all these flags (`PF_…`): the address ranges of the parts
    /// that come from the file.
    pub(crate) fn segments(&self, flags: u32) -> impl Iterator<Item = Range<usize>> {
        let loaded = self.headers().iter().filter(|h| h.p_type == libc::PT_LOAD);
        loaded.filter(move |h| h.p_flags & flags == flags).map(|h| {
            let start = self.base() + h.p_vaddr as usize;
            start..start + h.p_filesz as usize
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

    /// Returns the number of objects that have been loaded and unloaded in this process so far.
    pub(super) fn changes(&self) -> u64 {
        self.0.dlpi_adds + self.0.dlpi_subs // since glibc 2.4
    }

    fn headers(&self) -> &[libc::Elf64_Phdr] {
        // SAFETY: the program headers of a loaded object; the linker's lock keeps it.
        unsafe { core::slice::from_raw_parts(self.0.dlpi_phdr, self.0.dlpi_phnum.into()) }
    }
}

/// Calls `visit` with each loaded object until it returns `Some`, and returns that value.
///
/// `visit` runs under the linker's lock: it must not open or close libraries.
pub(crate) fn find_in<R>(mut visit: impl FnMut(Object<'_>) -> Option<R>) -> Option<R> {
    struct Search<'a, R> {
        visit: &'a mut dyn FnMut(Object<'_>) -> Option<R>,
        found: Option<R>,
    }
    unsafe extern "C" fn one<R>(
        info: *mut libc::dl_phdr_info,
        _: usize,
        search: *mut c_void,
    ) -> c_int {
        // SAFETY: `dl_iterate_phdr` passes a valid description, and our own pointer.
        let (info, search) = unsafe { (&*info, &mut *search.cast::<Search<R>>()) };
        search.found = (search.visit)(Object(info));
        search.found.is_some().into()
    }
    let mut search = Search {
        visit: &mut visit,
        found: None,
    };
    // SAFETY: `search` outlives the call, and is what `one` expects.
    unsafe { libc::dl_iterate_phdr(Some(one::<R>), (&raw mut search).cast()) };
    search.found
}

#[cfg(test)]
mod tests;
