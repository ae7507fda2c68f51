//! TLS blocks: what `__thread` data and `struct pthread` a virtual thread gets, and how.
//!
//! x86-64 puts static TLS below the thread pointer and glibc's `struct pthread` above it:
//!
//! ```text
//!        tp - below        tp - used          tp (FS base)        tp + HEAD       tp + sizeof
//!             |  reserve       |  TLS images      |  struct pthread    |   (rarely     |
//!             |  for dlopen    |  of the program, |  header, list,     |    touched    |
//!             |  (untouched)   |  libc, …         |  tid, robust list  |    tail)      |
//! ```
//!
//! Once, at start, a fresh platform thread lets `_dl_allocate_tls` fill in a scratch block, and
//! keeps what came out as a [`Template`]. From then on a block is made by copying the template and
//! moving the few pointers that point into the block: two short `memcpy`s, no lock, no call into
//! the dynamic linker. The dtv (the table of TLS modules that `__tls_get_addr` reads) is copied as
//! well and lives in the virtual thread's own memory; it has [`SPARE_MODULES`] spare entries, and
//! [`refresh`](Template::refresh) is called when a `dlopen` may have used them.
//!
//! Sources: glibc `elf/dl-tls.c`, `nptl/descr.h`, `sysdeps/x86_64/nptl/tls.h`; Ulrich Drepper,
//! "ELF Handling For Thread-Local Storage".

use super::symbols::{field_offset, find};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};

/// How much of `struct pthread` glibc touches in normal life. A slot puts a page boundary here.
pub(crate) const HEAD: usize = 832;
/// Room in a virtual thread's own dtv for TLS modules loaded after the program started.
const SPARE_MODULES: usize = 4;
/// Alignment of the thread pointer.
pub(crate) const TCB_ALIGN: usize = 64;

/// One dtv entry: a module's block and what to free for it; the first two entries of the raw
/// array hold the array's length and its generation.
#[derive(Clone, Copy)]
#[repr(C)]
struct DtvEntry {
    value: usize,
    to_free: *mut c_void,
}

/// What a fresh TLS block contains.
pub(crate) struct Template {
    /// Bytes of static TLS below the thread pointer, reserve included.
    pub(crate) below: usize,
    /// Size of `struct pthread`.
    pub(crate) sizeof_pthread: usize,
    /// Offset of the thread id in `struct pthread`.
    pub(crate) tid_offset: usize,
    /// Initial content of the `image.len()` bytes below the thread pointer.
    image: Box<[u8]>,
    /// Initial content of the first [`HEAD`] bytes above it.
    head: Box<[u8; HEAD]>,
    /// Offsets in `head` of words that hold a pointer into `head`, and where they point.
    self_pointers: Vec<(usize, usize)>,
    /// The dtv, its length and generation first; block addresses as offsets from tp.
    dtv: Box<[DtvEntry]>,
    /// Offset of the glibc thread list links in `struct pthread`.
    list_offset: usize,
}

static CURRENT: AtomicPtr<Template> = AtomicPtr::new(core::ptr::null_mut());

/// The template in force.
///
/// # Panics
/// Never: the runtime starts by capturing one.
#[inline]
pub(crate) fn template() -> &'static Template {
    // Acquire: pairs with the Release in `install`. Templates are never freed.
    // SAFETY: non-null after `install`, which precedes the first virtual thread.
    unsafe { &*CURRENT.load(Ordering::Acquire) }
}

/// Makes `template` the one in force. The old one is kept: blocks made from it are alive.
pub(crate) fn install(template: Template) {
    // Release: pairs with the Acquire in `template`.
    CURRENT.store(Box::into_raw(Box::new(template)), Ordering::Release);
}

/// Offset of the dtv pointer in the TCB (`tcbhead_t.dtv`, x86-64 ABI).
const DTV_POINTER: usize = 8;

impl Template {
    /// Captures a template. Must run on a *fresh platform thread*, whose TCB header is still as
    /// `pthread_create` left it.
    pub(crate) fn capture() -> Result<Template, String> {
        let tp = crate::arch::thread_pointer();
        let (total, align) = static_info()?;
        // SAFETY: the descriptor is one 32-bit size.
        let sizeof_pthread =
            unsafe { find(c"_thread_db_sizeof_pthread")?.cast::<u32>().read() } as usize;
        let list_offset = field_offset(c"_thread_db_pthread_list")?;
        let tid_offset = field_offset(c"_thread_db_pthread_tid")?;
        let dtv_offset = field_offset(c"_thread_db_pthread_dtvp")?;
        let sane = align <= TCB_ALIGN
            && sizeof_pthread < total
            && sizeof_pthread <= HEAD + 4096
            && list_offset + 16 <= tid_offset
            && tid_offset + 64 <= HEAD
            && dtv_offset == DTV_POINTER;
        if !sane {
            return Err(format!(
                "this glibc lays out its thread descriptor in a way pirn does not know \
                 (TLS {total} bytes aligned to {align}, struct pthread {sizeof_pthread}, list at \
                 {list_offset}, tid at {tid_offset}, dtv at {dtv_offset})"
            ));
        }
        let below = (total - sizeof_pthread).next_multiple_of(TCB_ALIGN);
        let scratch = Scratch::new(below, sizeof_pthread)?;
        let (head, self_pointers) = clean_head(tp, list_offset, tid_offset);
        Ok(Template {
            below,
            sizeof_pthread,
            tid_offset,
            image: scratch.image(),
            head,
            self_pointers,
            dtv: scratch.dtv(),
            list_offset,
        })
    }

    /// Bytes that [`init`](Self::init) needs for the dtv.
    pub(crate) fn dtv_bytes(&self) -> usize {
        size_of_val(&*self.dtv).next_multiple_of(16)
    }

    /// Fills in a TLS block.
    ///
    /// # Safety
    /// `tp` is aligned to [`TCB_ALIGN`]; `below` bytes under it, `sizeof_pthread` bytes above it
    /// and `dtv_bytes()` bytes at `dtv` are writable, and the caller's alone. The part of the
    /// block that this leaves out (tail and reserve) is zero or left by an earlier block.
    pub(crate) unsafe fn init(&self, tp: usize, dtv: *mut u8, tid: u32) {
        let tcb = tp as *mut u8;
        let entries = dtv.cast::<DtvEntry>();
        // SAFETY: all inside the areas the caller vouches for.
        unsafe {
            let image = tcb.sub(self.image.len());
            image.copy_from_nonoverlapping(self.image.as_ptr(), self.image.len());
            tcb.copy_from_nonoverlapping(self.head.as_ptr(), HEAD);
            for &(at, to) in &self.self_pointers {
                tcb.add(at).cast::<usize>().write(tp + to);
            }
            tcb.add(self.tid_offset).cast::<u32>().write(tid);
            tcb.add(DTV_POINTER).cast::<*mut DtvEntry>().write(entries.add(1));
            entries.copy_from_nonoverlapping(self.dtv.as_ptr(), self.dtv.len());
            for i in 2..self.dtv.len() {
                let entry = entries.add(i);
                if is_offset((*entry).value) {
                    (*entry).value = tp.wrapping_add((*entry).value);
                }
            }
        }
    }

    /// Frees what `__tls_get_addr` allocated for the block at `tp` (dynamically loaded modules).
    ///
    /// # Safety
    /// `tp` is a block made by [`init`](Self::init) whose thread has ended.
    pub(crate) unsafe fn release(tp: usize) {
        // SAFETY: the dtv belongs to the block; entries 1..=length follow the length and
        // generation words, as `__tls_get_addr` itself assumes.
        unsafe {
            let dtv = (tp as *const u8).add(DTV_POINTER).cast::<*mut DtvEntry>().read();
            let length = (*dtv.sub(1)).value;
            for i in 1..=length {
                let entry = &mut *dtv.add(i);
                if !entry.to_free.is_null() {
                    libc::free(entry.to_free);
                    entry.to_free = core::ptr::null_mut();
                }
            }
        }
    }

    /// The template after a `dlopen`, if modules have come: what [`capture`](Self::capture)
    /// would give now.
    pub(crate) fn recapture(&self) -> Result<Template, String> {
        let scratch = Scratch::new(self.below, self.sizeof_pthread)?;
        Ok(Template {
            below: self.below,
            sizeof_pthread: self.sizeof_pthread,
            tid_offset: self.tid_offset,
            image: scratch.image(),
            head: self.head.clone(),
            self_pointers: self.self_pointers.clone(),
            dtv: scratch.dtv(),
            list_offset: self.list_offset,
        })
    }

    /// Whether blocks made from `self` are complete under `newer`, too.
    pub(crate) fn same_modules(&self, newer: &Template) -> bool {
        self.image.len() == newer.image.len() && self.dtv[1].value == newer.dtv[1].value
    }

    /// Brings an existing block, made from `self` or an older template, up to `newer`: fills in
    /// the images of modules loaded since, and replaces its dtv by a longer one if need be.
    ///
    /// # Safety
    /// As for [`init`](Self::init); the block's thread is not running.
    pub(crate) unsafe fn refresh(&self, newer: &Template, tp: usize) {
        let tcb = tp as *mut u8;
        let (old, new) = (self.image.len(), newer.image.len());
        // SAFETY: the images lie in the block; the dtv is only ever replaced here.
        unsafe {
            if new > old {
                let image = tcb.sub(new);
                image.copy_from_nonoverlapping(newer.image.as_ptr(), new - old);
            }
            let slot = tcb.add(DTV_POINTER).cast::<*mut DtvEntry>();
            let dtv = *slot;
            if (*dtv.sub(1)).value < newer.dtv[0].value {
                let raw = libc::calloc(newer.dtv.len(), size_of::<DtvEntry>()).cast::<DtvEntry>();
                if raw.is_null() {
                    crate::sys::fatal(&["out of memory while a library with TLS was loaded"]);
                }
                raw.copy_from_nonoverlapping(dtv.sub(1), (*dtv.sub(1)).value + 2);
                (*raw).value = newer.dtv[0].value;
                *slot = raw.add(1);
            }
        }
    }
}

/// Whether a template's dtv value is an offset from tp (a static module: its block lies below tp,
/// so the offset is negative and small) rather than a marker (0, or -1 for "not yet allocated").
fn is_offset(value: usize) -> bool {
    let value = value as isize;
    (-(1 << 20)..-1).contains(&value)
}

/// Size and alignment of static TLS plus `struct pthread` (`_dl_get_tls_static_info`).
fn static_info() -> Result<(usize, usize), String> {
    type StaticInfo = unsafe extern "C" fn(*mut usize, *mut usize);
    let (mut size, mut align) = (0, 0);
    // SAFETY: the signature is that of glibc 2.31 and later on x86-64.
    unsafe {
        let f: StaticInfo = core::mem::transmute(find(c"_dl_get_tls_static_info")?);
        f(&mut size, &mut align);
    }
    Ok((size, align))
}

/// The head of a fresh thread's `struct pthread` with everything removed that is that thread's own.
fn clean_head(
    tp: usize,
    list_offset: usize,
    tid_offset: usize,
) -> (Box<[u8; HEAD]>, Vec<(usize, usize)>) {
    let mut head = Box::new([0u8; HEAD]);
    let mut self_pointers = vec![(list_offset, list_offset), (list_offset + 8, list_offset)];
    let source = tp as *const u8;
    // The TCB header up to the list, then tid, robust list, cancellation state; what follows
    // (the thread's keys) stays zero.
    let own = (0..list_offset).chain(tid_offset + 8..tid_offset + 64).step_by(8);
    for at in own {
        // SAFETY: inside the calling thread's own struct pthread, which is larger than HEAD.
        let word = unsafe { source.add(at).cast::<usize>().read() };
        if (tp..tp + HEAD).contains(&word) {
            self_pointers.push((at, word - tp));
        } else if at < list_offset && at != DTV_POINTER || word as isize > -4096 && (word as isize) < 0 {
            head[at..at + 8].copy_from_slice(&word.to_ne_bytes());
        }
    }
    (head, self_pointers)
}

/// A block filled in by the dynamic linker itself, to look at.
struct Scratch {
    memory: *mut u8,
    tp: usize,
    below: usize,
}

impl Scratch {
    fn new(below: usize, sizeof_pthread: usize) -> Result<Scratch, String> {
        type AllocateTls = unsafe extern "C" fn(*mut c_void) -> *mut c_void;
        // SAFETY: the signature is glibc's since 2.0; the memory is zeroed, aligned and large
        // enough for static TLS and a struct pthread, as `pthread_create` would supply it.
        unsafe {
            let allocate: AllocateTls = core::mem::transmute(find(c"_dl_allocate_tls")?);
            let memory = libc::aligned_alloc(TCB_ALIGN, (below + sizeof_pthread).next_multiple_of(TCB_ALIGN));
            if memory.is_null() {
                return Err("out of memory".into());
            }
            libc::memset(memory, 0, below + sizeof_pthread);
            let tp = memory as usize + below;
            if allocate(tp as *mut c_void).is_null() {
                libc::free(memory);
                return Err("the dynamic linker could not allocate a TLS block".into());
            }
            Ok(Scratch { memory: memory.cast(), tp, below })
        }
    }

    fn image(&self) -> Box<[u8]> {
        let used = used_below_tp().min(self.below);
        // SAFETY: `used` bytes below tp are inside the scratch block.
        unsafe { core::slice::from_raw_parts((self.tp - used) as *const u8, used).into() }
    }

    fn dtv(&self) -> Box<[DtvEntry]> {
        let modules = loaded_tls_modules();
        let mut copy = vec![DtvEntry { value: 0, to_free: core::ptr::null_mut() }; modules + SPARE_MODULES + 2];
        // SAFETY: the linker's dtv has an entry for every loaded module (and 14 to spare).
        unsafe {
            let dtv = (self.tp as *const u8).add(DTV_POINTER).cast::<*const DtvEntry>().read();
            for (i, entry) in copy.iter_mut().enumerate().skip(1).take(modules + 1) {
                *entry = *dtv.add(i - 1);
                if i >= 2 && (self.tp - self.below..self.tp).contains(&entry.value) {
                    entry.value = entry.value.wrapping_sub(self.tp);
                }
            }
        }
        copy[0].value = modules + SPARE_MODULES;
        copy.into()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        type DeallocateTls = unsafe extern "C" fn(*mut c_void, bool);
        if let Ok(deallocate) = find(c"_dl_deallocate_tls") {
            // SAFETY: frees the dtv that `_dl_allocate_tls` made; `false`: the block is ours.
            unsafe {
                let deallocate: DeallocateTls = core::mem::transmute(deallocate);
                deallocate(self.tp as *mut c_void, false);
            }
        }
        // SAFETY: from aligned_alloc in `new`.
        unsafe { libc::free(self.memory.cast()) };
    }
}

/// Walks the loaded objects that have TLS: `visit(module id, the calling thread's block or null)`.
fn for_each_module(mut visit: impl FnMut(usize, usize)) {
    unsafe extern "C" fn one<F: FnMut(usize, usize)>(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        visit: *mut c_void,
    ) -> c_int {
        // SAFETY: `dl_iterate_phdr` passes a valid description and our own pointer.
        unsafe {
            let (info, visit) = (&*info, &mut *visit.cast::<F>());
            if info.dlpi_tls_modid != 0 {
                visit(info.dlpi_tls_modid, info.dlpi_tls_data as usize);
            }
        }
        0
    }
    fn trampoline<F: FnMut(usize, usize)>(
        _: &F,
    ) -> unsafe extern "C" fn(*mut libc::dl_phdr_info, usize, *mut c_void) -> c_int {
        one::<F>
    }
    let callback = trampoline(&visit);
    // SAFETY: `visit` outlives the call, and is what `one` expects.
    unsafe { libc::dl_iterate_phdr(Some(callback), (&raw mut visit).cast()) };
}

/// The largest distance from tp to the start of a module's static block.
fn used_below_tp() -> usize {
    let tp = crate::arch::thread_pointer();
    let mut used = 0;
    for_each_module(|_, data| {
        // Static blocks lie within a few kilobytes below tp; dynamic ones on the heap.
        if data != 0 && data < tp && tp - data <= static_info().map_or(0, |(size, _)| size) {
            used = used.max(tp - data);
        }
    });
    used.next_multiple_of(16)
}

/// The highest TLS module id in use.
fn loaded_tls_modules() -> usize {
    let mut highest = 0;
    for_each_module(|id, _| highest = highest.max(id));
    highest
}
