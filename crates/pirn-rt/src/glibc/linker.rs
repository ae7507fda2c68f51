//! Queries of the dynamic linker: which libraries have TLS, and the contents of a TLS block that it
//! fills in.
//!
//! glibc exports the linker's functions `_dl_allocate_tls` and `_dl_deallocate_tls` for its own
//! `pthread_create`.

use super::objects;
use super::symbols::find;
use super::tls::{DTV_POINTER, DtvEntry, TCB_ALIGN};
use core::ffi::c_void;

/// Returns size and alignment of static TLS plus `struct pthread` (`_dl_get_tls_static_info`).
pub(super) fn static_info() -> Result<(usize, usize), String> {
    type StaticInfo = unsafe extern "C" fn(*mut usize, *mut usize);
    let (mut size, mut align) = (0, 0);
    // SAFETY: the signature is that of glibc 2.31 and later on x86-64.
    unsafe {
        let f: StaticInfo = core::mem::transmute(find(c"_dl_get_tls_static_info")?);
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
    /// The distance of its data below the thread pointer, and their size.
    pub(super) below: usize,
    pub(super) size: usize,
}

impl StaticModule {
    /// Returns whether these are the data of `module`.
    pub(super) fn is_of(&self, module: &Module) -> bool {
        (self.base, self.id) == (module.base, module.id)
    }
}

type AllocateTls = unsafe extern "C" fn(*mut c_void) -> *mut c_void;
type DeallocateTls = unsafe extern "C" fn(*mut c_void, bool);

/// The dynamic linker's functions, looked up once, because `dlsym` waits for a `dlopen` under way.
#[derive(Clone, Copy)]
pub(super) struct Linker {
    allocate: AllocateTls,
    deallocate: DeallocateTls,
}

impl Linker {
    pub(super) fn find() -> Result<Linker, String> {
        // SAFETY: the signatures are glibc's since 2.0.
        unsafe {
            Ok(Linker {
                allocate: core::mem::transmute::<*mut c_void, AllocateTls>(find(
                    c"_dl_allocate_tls",
                )?),
                deallocate: core::mem::transmute::<*mut c_void, DeallocateTls>(find(
                    c"_dl_deallocate_tls",
                )?),
            })
        }
    }
}

/// A block that the dynamic linker itself has filled in, for inspection.
pub(super) struct Scratch {
    memory: *mut u8,
    tp: usize,
    below: usize,
    linker: Linker,
}

/// A loaded library that has TLS.
pub(super) struct Module {
    pub(super) id: usize,
    pub(super) path: String,
    base: usize,
    size: usize,
}

impl Scratch {
    /// Makes a block of `below` and `above` bytes on the two sides of the thread pointer.
    pub(super) fn new(below: usize, above: usize, linker: Linker) -> Result<Scratch, String> {
        let size = (below + above).next_multiple_of(TCB_ALIGN);
        // SAFETY: the memory is zeroed, aligned and large enough for static TLS and a struct
        // pthread, as `pthread_create` would supply it.
        unsafe {
            let memory = libc::aligned_alloc(TCB_ALIGN, size);
            if memory.is_null() {
                return Err("out of memory".into());
            }
            libc::memset(memory, 0, size);
            let tp = memory as usize + below;
            if (linker.allocate)(tp as *mut c_void).is_null() {
                libc::free(memory);
                return Err("the dynamic linker could not allocate a TLS block".into());
            }
            Ok(Scratch {
                memory: memory.cast(),
                tp,
                below,
                linker,
            })
        }
    }

    /// Returns the linker's dtv, from its generation on.
    fn linkers_dtv(&self) -> *const DtvEntry {
        // SAFETY: `_dl_allocate_tls` has stored it there.
        unsafe {
            (self.tp as *const u8)
                .add(DTV_POINTER)
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
        (self.tp - self.below..self.tp)
            .contains(&value)
            .then(|| StaticModule {
                base: module.base,
                id: module.id,
                below: self.tp - value,
                size: module.size,
            })
    }

    /// Returns the last `used` bytes below the thread pointer.
    pub(super) fn image(&self, used: usize) -> Box<[u8]> {
        // SAFETY: `used` bytes below tp are inside the scratch block.
        unsafe { core::slice::from_raw_parts((self.tp - used) as *const u8, used).into() }
    }

    /// Returns the words among the last `used` bytes below the thread pointer that a thread's start
    /// fills in, each as distance below the thread pointer and value.
    pub(super) fn start_words(&self, used: usize) -> Result<Vec<(usize, usize)>, String> {
        unsafe extern "C" fn start(init: *mut u8) {
            // SAFETY: glibc's function, without arguments.
            unsafe { core::mem::transmute::<*mut u8, unsafe extern "C" fn()>(init)() };
        }
        let init = find(c"__ctype_init")?;
        let before = self.image(used);
        // SAFETY: the TLS of a thread that does not exist; the function only writes to its
        // thread-locals. It may find them by the thread pointer in the first word.
        unsafe {
            (self.tp as *mut usize).write(self.tp);
            crate::arch::call_with_tp(self.tp, start, init.cast());
        }
        let after = self.image(used);
        let words = before
            .chunks_exact(8)
            .zip(after.chunks_exact(8))
            .enumerate();
        let changed = words.filter(|(_, (old, new))| old != new);
        Ok(changed
            .map(|(i, (_, new))| {
                (
                    used - 8 * i,
                    usize::from_ne_bytes(new.try_into().unwrap_or_default()),
                )
            })
            .collect())
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
                if (self.tp - self.below..self.tp).contains(&copy[i + 1].value) {
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
            (self.linker.deallocate)(self.tp as *mut c_void, false);
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
                path: object.path().to_string_lossy().into_owned(),
                base: object.base(),
                size: tls.size,
            });
        }
        None
    });
}
