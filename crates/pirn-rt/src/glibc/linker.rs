//! The dynamic linker: which libraries have TLS, the contents of a TLS block that it fills in, and
//! words in its data: its locks, and the addresses of libc's functions that it calls.
//!
//! glibc exports the linker's functions `_dl_allocate_tls` and `_dl_deallocate_tls` for its own
//! `pthread_create`. The linker locks by libc's `pthread_mutex_lock`, whose address it keeps in a
//! word of its own. Neither such words nor the locks have names; they are found by their contents.

use super::layout;
use super::objects;
use super::symbols::{find, real};
use super::tls::{DtvEntry, TCB_ALIGN};
use crate::sys::{Errno, SysResult, call, page_size};
use core::ffi::c_void;
use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Returns the linker's function that tells size and alignment of static TLS plus `struct pthread`.
fn find_static_info() -> Result<*mut c_void, String> {
    find!(c"_dl_get_tls_static_info")
}

/// Returns size and alignment of static TLS plus `struct pthread`.
pub(super) fn static_info() -> Result<(usize, usize), String> {
    type StaticInfo = unsafe extern "C" fn(*mut usize, *mut usize);
    let (mut size, mut align) = (0, 0);
    // SAFETY: the signature in glibc 2.34 and later on x86-64.
    unsafe {
        let f: StaticInfo = core::mem::transmute(find_static_info()?);
        f(&mut size, &mut align);
    }
    Ok((size, align))
}

/// Returns a number that changes whenever a library is loaded or unloaded: the linker counts both.
pub(super) fn libraries_counted() -> u64 {
    objects::find_in(|object| Some(object.changes())).unwrap_or(0)
}

/// A module whose data lie in the static block.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct StaticModule {
    /// The library's load address: two libraries may get the same id and place one after the other.
    base: usize,
    id: usize,
    /// The distance of its data from the thread pointer, and their size.
    pub(super) at: isize,
    pub(super) size: usize,
}

impl StaticModule {
    /// Returns whether these are the data of `module`.
    pub(super) fn is_of(&self, module: &Module) -> bool {
        (self.base, self.id) == (module.base, module.id)
    }
}

/// A block that the dynamic linker itself has filled in, for inspection.
pub(super) struct Scratch {
    memory: *mut u8,
    tp: usize,
    /// Bytes of static TLS.
    images: usize,
}

/// A loaded library that has TLS.
pub(super) struct Module {
    pub(super) id: usize,
    pub(super) path: String,
    base: usize,
    size: usize,
}

impl Scratch {
    /// Makes a block with a `struct pthread` and `images` bytes of static TLS.
    pub(super) fn new(images: usize, pthread: usize) -> Result<Scratch, String> {
        let size = (images + pthread.next_multiple_of(TCB_ALIGN)).next_multiple_of(TCB_ALIGN);
        let below = layout::room(images, 0, pthread)
            .below
            .next_multiple_of(TCB_ALIGN);
        // SAFETY: the memory is zeroed, aligned and large enough for static TLS and a struct
        // pthread, as `pthread_create` would supply it.
        unsafe {
            let memory = libc::aligned_alloc(TCB_ALIGN, size);
            if memory.is_null() {
                return Err("out of memory".into());
            }
            libc::memset(memory, 0, size);
            let tp = memory as usize + below;
            if real!(fn _dl_allocate_tls(tp: usize) -> *mut c_void).is_null() {
                libc::free(memory);
                return Err("the dynamic linker could not allocate a TLS block".into());
            }
            Ok(Scratch {
                memory: memory.cast(),
                tp,
                images,
            })
        }
    }

    /// Returns the linker's dtv, from its generation on.
    fn linkers_dtv(&self) -> *const DtvEntry {
        // SAFETY: `_dl_allocate_tls` has stored it there.
        unsafe {
            (self.tp as *const u8)
                .add(layout::DTV_POINTER)
                .cast::<*const DtvEntry>()
                .read()
        }
    }

    /// Returns the number of modules that the linker's dtv has room for: a library may have been
    /// loaded since.
    fn length(&self) -> usize {
        // SAFETY: the length precedes the generation.
        unsafe { (*self.linkers_dtv().sub(1)).value }
    }

    /// Returns the libraries with TLS that this block knows.
    pub(super) fn modules(&self) -> Vec<Module> {
        let mut modules = Vec::new();
        for_each_module(|module| {
            if module.id <= self.length() {
                modules.push(module);
            }
        });
        modules
    }

    /// Returns the place of a module's data, if they are in the static block.
    pub(super) fn find_static(&self, module: &Module) -> Option<StaticModule> {
        // SAFETY: `modules` has checked the id.
        let value = unsafe { (*self.linkers_dtv().add(module.id)).value };
        self.statics().contains(&value).then(|| StaticModule {
            base: module.base,
            id: module.id,
            at: value.wrapping_sub(self.tp) as isize,
            size: module.size,
        })
    }

    /// Returns where static TLS is.
    fn statics(&self) -> Range<usize> {
        let start = layout::images(self.tp, self.images);
        start..start + self.images
    }

    /// Returns the `used` bytes of static TLS next to the thread pointer.
    pub(super) fn image(&self, used: usize) -> Box<[u8]> {
        let start = layout::images(self.tp, used) as *const u8;
        // SAFETY: `used` bytes are inside the scratch block.
        unsafe { core::slice::from_raw_parts(start, used).into() }
    }

    /// Returns the words of the [image](Self::image) that a thread's start fills in, each as its
    /// distance from the thread pointer and its value.
    pub(super) fn start_words(&self, used: usize) -> Vec<(isize, usize)> {
        unsafe extern "C" fn start(_: *mut u8) {
            // SAFETY: glibc's function, without arguments.
            unsafe { real!(fn __ctype_init() -> ()) };
        }
        let before = self.image(used);
        // SAFETY: the TLS of a thread that does not exist; the function only writes to its
        // thread-locals. It may find them by the thread pointer in the first word.
        unsafe {
            if layout::SELF_POINTER {
                (self.tp as *mut usize).write(self.tp);
            }
            crate::arch::call_with_tp(self.tp, start, core::ptr::null_mut());
        }
        let after = self.image(used);
        let words = before
            .chunks_exact(8)
            .zip(after.chunks_exact(8))
            .enumerate();
        let changed = words.filter(|(_, (old, new))| old != new);
        let word = |bytes: &[u8]| usize::from_ne_bytes(bytes.try_into().unwrap_or_default());
        changed
            .map(|(i, (_, new))| {
                let place = layout::images(self.tp, used) + 8 * i;
                (place.wrapping_sub(self.tp) as isize, word(new))
            })
            .collect()
    }

    /// Returns a copy of the linker's dtv for modules up to `highest`. The caller must set the
    /// length.
    pub(super) fn dtv(&self, highest: usize) -> Box<[DtvEntry]> {
        let mut copy = vec![
            DtvEntry {
                value: 0,
                to_free: core::ptr::null_mut()
            };
            highest + 2
        ];
        // SAFETY: entries up to the length, and the generation before them.
        unsafe {
            let dtv = self.linkers_dtv();
            copy[1].value = (*dtv).value;
            for i in 1..=highest.min(self.length()) {
                copy[i + 1].value = (*dtv.add(i)).value;
                if self.statics().contains(&copy[i + 1].value) {
                    copy[i + 1].value = copy[i + 1].value.wrapping_sub(self.tp);
                }
            }
        }
        copy.into()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: frees the dtv that `_dl_allocate_tls` made (`false`: the block is ours), then
        // what came from aligned_alloc in `new`.
        unsafe {
            let (tp, free_block) = (self.tp, false);
            real!(fn _dl_deallocate_tls(tp: usize, free_block: bool) -> ());
            libc::free(self.memory.cast());
        }
    }
}

/// Calls `visit` with each loaded library that has TLS.
fn for_each_module(mut visit: impl FnMut(Module)) {
    let _: Option<()> = objects::find_in(|object| {
        if let Some(tls) = object.tls() {
            visit(Module {
                id: tls.module,
                path: object.name().to_string_lossy().into_owned(),
                base: object.base(),
                size: tls.size,
            });
        }
        None
    });
}

/// Where something stands in the linker's data.
#[derive(Clone, Copy)]
struct Datum {
    address: usize,
    /// Whether the linker has made it read-only, since it needed to be written at the start alone.
    read_only: bool,
}

/// Returns the place of `size` bytes for which `is_it` returns `true`, if it does for any. Holds
/// the linker's lock of its list of objects meanwhile.
fn find_datum(size: usize, is_it: impl Fn(usize) -> bool) -> Result<Option<Datum>, String> {
    let linkers = find_static_info()? as usize;
    let found = objects::find_in(|object| {
        object.code_at(linkers)?;
        let read_only = object.read_only_after_start();
        let mut places = object
            .segments(libc::PF_W)
            .flat_map(|data| {
                (data.start.next_multiple_of(8)..data.end.saturating_sub(size)).step_by(8)
            })
            .filter(|&address| is_it(address));
        let datum = places.next().map(|address| Datum {
            address,
            read_only: read_only.contains(&address),
        });
        Some(match places.next() {
            None => Ok(datum),
            Some(_) => Err("this dynamic linker's data have a word twice that must be one".into()),
        })
    });
    found.unwrap_or_else(|| Err("the dynamic linker is not among the loaded objects".into()))
}

/// Returns the address of the `size` bytes in the linker's data for which `is_it` returns true.
/// Meanwhile the running thread has the linker's lock of its list of objects.
pub fn find_bytes(size: usize, is_it: impl Fn(usize) -> bool) -> Result<usize, String> {
    match find_datum(size, is_it)? {
        Some(datum) => Ok(datum.address),
        None => Err("this dynamic linker's locks are not where pirn looks".into()),
    }
}

/// Makes the linker call `to` in place of the function `from` of libc. Returns whether the linker
/// calls that function through a word at all.
///
/// # Errors
/// The kernel refuses to make the word writable, or there are several.
///
/// # Safety
/// `to` does what `from` does.
pub unsafe fn redirect(from: *const c_void, to: *const c_void) -> Result<bool, String> {
    let holds = |address: usize| {
        // SAFETY: an aligned word of the linker's data. Relaxed: written at the start.
        unsafe { AtomicUsize::from_ptr(address as *mut usize) }.load(Ordering::Relaxed)
            == from.addr()
    };
    let Some(datum) = find_datum(size_of::<usize>(), holds)? else {
        return Ok(false);
    };
    let protect = |protection| -> SysResult {
        match datum.read_only {
            // SAFETY: the page of the word, whose contents stay.
            true => unsafe {
                call!(
                    libc::SYS_mprotect,
                    datum.address & !(page_size() - 1),
                    page_size(),
                    protection
                )
            },
            false => Ok(0),
        }
    };
    let failed = |e: Errno| format!("the dynamic linker's data cannot be changed: {e}");
    protect(libc::PROT_READ | libc::PROT_WRITE).map_err(failed)?;
    // SAFETY: inside of the linker's data, and now writable. Release: pairs with the dependency of
    // the linker's call on the address that it reads.
    unsafe { AtomicUsize::from_ptr(datum.address as *mut usize) }
        .store(to.addr(), Ordering::Release);
    protect(libc::PROT_READ).map_err(failed)?;
    Ok(true)
}
