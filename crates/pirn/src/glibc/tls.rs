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
//! well and lives in the virtual thread's own memory, below the reserve. It says of itself that it is
//! as long as all of that: when libraries come, the dtv grows up into the reserve and the images grow
//! down into it, and glibc never finds the dtv too short. (It would `realloc` one that is, which ours
//! cannot be.) [`late`](super::late) says what else there is to do when libraries come.
//!
//! Sources: glibc `elf/dl-tls.c`, `nptl/descr.h`, `sysdeps/x86_64/nptl/tls.h`; Ulrich Drepper,
//! "ELF Handling For Thread-Local Storage".

use super::late::Block;
use super::symbols::{field_offset, find};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// How much of `struct pthread` glibc touches in normal life. A slot puts a page boundary here.
pub(crate) const HEAD: usize = 832;
/// Alignment of the thread pointer.
pub(crate) const TCB_ALIGN: usize = 64;

/// One dtv entry: a module's block and what to free for it; the first two entries of the raw
/// array hold the array's length and its generation, and their second words nothing: we keep a
/// [`Block`]'s state there.
#[derive(Clone, Copy)]
#[repr(C)]
struct DtvEntry {
    value: usize,
    to_free: *mut c_void,
}

/// A module whose data lie in the static block.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct StaticModule {
    /// Where the library was loaded: two libraries may get the same id and place one after the other.
    base: usize,
    id: usize,
    /// How far below the thread pointer its data start, and their size.
    pub(super) below: usize,
    pub(super) size: usize,
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
    pub(super) image: Box<[u8]>,
    /// The modules in there.
    pub(super) statics: Vec<StaticModule>,
    /// Initial content of the first [`HEAD`] bytes above it.
    head: Box<[u8; HEAD]>,
    /// Offsets in `head` of words that hold a pointer into `head`, and where they point.
    self_pointers: Vec<(usize, usize)>,
    /// The dtv as far as it is used, its length and generation first; block addresses as offsets
    /// from tp.
    dtv: Box<[DtvEntry]>,
    /// Bytes below the reserve that are the dtv's. The same in all templates of a process.
    dtv_bytes: usize,
    linker: Linker,
}

static CURRENT: AtomicPtr<Template> = AtomicPtr::new(core::ptr::null_mut());
/// The highest id that a module with TLS has had.
static HIGHEST_MODULE: AtomicUsize = AtomicUsize::new(0);

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

/// The template in force, if the runtime has come so far.
pub(crate) fn installed() -> Option<&'static Template> {
    // Acquire, SAFETY: as in `template`.
    unsafe { CURRENT.load(Ordering::Acquire).as_ref() }
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
        let (head, self_pointers) = clean_head(tp, list_offset, tid_offset);
        let empty = Template {
            below,
            sizeof_pthread,
            tid_offset,
            image: Box::new([]),
            statics: Vec::new(),
            head,
            self_pointers,
            dtv: Box::new([]),
            dtv_bytes: 0,
            linker: Linker::find()?,
        };
        empty.recapture()
    }

    /// Bytes that [`init`](Self::init) needs for the dtv.
    pub(crate) fn dtv_bytes(&self) -> usize {
        self.dtv_bytes
    }

    /// Fills in a TLS block.
    ///
    /// # Safety
    /// `tp` is aligned to [`TCB_ALIGN`]; `below` bytes under it, `sizeof_pthread` bytes above it
    /// and `dtv_bytes()` bytes at `dtv` are writable, and the caller's alone. The part of the
    /// block that this leaves out (tail and reserve) is zero or left by an earlier block.
    pub(crate) unsafe fn init(&self, tp: usize, dtv: *mut u8, tid: u32) {
        let entries = dtv.cast::<DtvEntry>();
        // SAFETY: the second word of the first entry; see `DtvEntry`.
        let block = unsafe { Block::at(&raw mut (*entries).to_free) };
        block.begin();
        // Asked again, since `self` may have been replaced before `begin`.
        let newest = installed().unwrap_or(self);
        // SAFETY: the caller's contract; all templates of a process need the same room.
        unsafe { newest.fill(tp, entries, tid) };
        block.finish();
    }

    unsafe fn fill(&self, tp: usize, entries: *mut DtvEntry, tid: u32) {
        let tcb = tp as *mut u8;
        // SAFETY: all inside the areas the caller of `init` vouches for.
        unsafe {
            let image = tcb.sub(self.image.len());
            image.copy_from_nonoverlapping(self.image.as_ptr(), self.image.len());
            tcb.copy_from_nonoverlapping(self.head.as_ptr(), HEAD);
            for &(at, to) in &self.self_pointers {
                tcb.add(at).cast::<usize>().write(tp + to);
            }
            tcb.add(self.tid_offset).cast::<u32>().write(tid);
            tcb.add(DTV_POINTER).cast::<*mut DtvEntry>().write(entries.add(1));
            (*entries).value = self.dtv[0].value; // its other word is the block's state
            entries.add(1).copy_from_nonoverlapping(&raw const self.dtv[1], self.dtv.len() - 1);
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
        // Relaxed: a module that came a moment ago and is missed here will find its entry as this
        // thread left it, and free what it holds.
        let highest = HIGHEST_MODULE.load(Ordering::Relaxed);
        // SAFETY: the dtv belongs to the block; entries 1..=length follow the length and
        // generation words, as `__tls_get_addr` itself assumes.
        unsafe {
            let dtv = (tp as *const u8).add(DTV_POINTER).cast::<*mut DtvEntry>().read();
            let length = (*dtv.sub(1)).value;
            for i in 1..=length.min(highest) {
                let entry = &mut *dtv.add(i);
                if !entry.to_free.is_null() {
                    libc::free(entry.to_free);
                    entry.to_free = core::ptr::null_mut();
                }
            }
        }
    }

    /// The template as it would be captured now, when libraries may have come or gone. On any
    /// thread. Takes the dynamic linker's locks.
    ///
    /// # Errors
    /// There is no room for the libraries' data in the blocks of virtual threads.
    pub(crate) fn recapture(&self) -> Result<Template, String> {
        let scratch = Scratch::new(self)?;
        let modules = scratch.modules();
        let statics: Vec<StaticModule> = modules.iter().filter_map(|module| scratch.find_static(module)).collect();
        // Neither limit ever recedes: what lies beyond may still be in use by an old block.
        let used = statics.iter().map(|module| module.below).max().unwrap_or(0);
        let used = used.next_multiple_of(16).max(self.image.len());
        let highest = modules.iter().map(|module| module.id).max().unwrap_or(0);
        // Relaxed: only the number counts.
        let highest = HIGHEST_MODULE.fetch_max(highest, Ordering::Relaxed).max(highest);
        let dtv_bytes = if self.dtv_bytes == 0 { (highest + 2) * size_of::<DtvEntry>() } else { self.dtv_bytes };
        let room = (dtv_bytes + self.below).saturating_sub(used) / size_of::<DtvEntry>();
        if highest + 2 > room {
            return Err(format!(
                "no room for the thread-local data of another library in virtual threads: {highest} libraries \
                 have some, {used} bytes of it in the static block, which has {}",
                self.below
            ));
        }
        let mut dtv = scratch.dtv(highest);
        dtv[0].value = self.dtv.first().map_or(room - 2, |length| length.value);
        Ok(Template {
            image: scratch.image(used),
            statics,
            head: self.head.clone(),
            self_pointers: self.self_pointers.clone(),
            dtv,
            dtv_bytes,
            ..*self
        })
    }

    /// State of the block at `tp`, which may never have been one.
    ///
    /// # Safety
    /// `tp` is the thread pointer of a slot.
    pub(super) unsafe fn block_at(&self, tp: usize) -> Block<'static> {
        let entries = (tp - self.below - self.dtv_bytes) as *mut DtvEntry;
        // SAFETY: where `init` keeps it; in a slot never used the memory reads as zero.
        unsafe { Block::at(&raw mut (*entries).to_free) }
    }
}

/// Whether libraries have come or gone since a call with this result: the linker counts both.
pub(crate) fn libraries_counted() -> u64 {
    unsafe extern "C" fn first(info: *mut libc::dl_phdr_info, _: usize, sum: *mut c_void) -> c_int {
        // SAFETY: a valid description (the counters exist since glibc 2.4), and our own variable.
        unsafe { *sum.cast::<u64>() = (*info).dlpi_adds + (*info).dlpi_subs };
        1
    }
    let mut sum = 0u64;
    // SAFETY: `sum` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut sum).cast()) };
    sum
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

type AllocateTls = unsafe extern "C" fn(*mut c_void) -> *mut c_void;
type DeallocateTls = unsafe extern "C" fn(*mut c_void, bool);

/// The dynamic linker's functions, looked up once: `dlsym` waits for a `dlopen` under way.
#[derive(Clone, Copy)]
struct Linker {
    allocate: AllocateTls,
    deallocate: DeallocateTls,
}

impl Linker {
    fn find() -> Result<Linker, String> {
        // SAFETY: the signatures are glibc's since 2.0.
        unsafe {
            Ok(Linker {
                allocate: core::mem::transmute::<*mut c_void, AllocateTls>(find(c"_dl_allocate_tls")?),
                deallocate: core::mem::transmute::<*mut c_void, DeallocateTls>(find(c"_dl_deallocate_tls")?),
            })
        }
    }
}

/// A block filled in by the dynamic linker itself, to look at.
struct Scratch {
    memory: *mut u8,
    tp: usize,
    below: usize,
    linker: Linker,
}

/// A loaded library that has TLS.
struct Module {
    id: usize,
    base: usize,
    size: usize,
}

impl Scratch {
    fn new(template: &Template) -> Result<Scratch, String> {
        let (below, linker) = (template.below, template.linker);
        let size = (below + template.sizeof_pthread).next_multiple_of(TCB_ALIGN);
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
            Ok(Scratch { memory: memory.cast(), tp, below, linker })
        }
    }

    /// The linker's dtv, its generation first.
    fn linkers_dtv(&self) -> *const DtvEntry {
        // SAFETY: `_dl_allocate_tls` has put it there.
        unsafe { (self.tp as *const u8).add(DTV_POINTER).cast::<*const DtvEntry>().read() }
    }

    /// How many modules the linker's dtv has room for: a library may have come since.
    fn length(&self) -> usize {
        // SAFETY: the length precedes the generation.
        unsafe { (*self.linkers_dtv().sub(1)).value }
    }

    /// The libraries with TLS that this block knows.
    fn modules(&self) -> Vec<Module> {
        let mut modules = Vec::new();
        for_each_module(|module| {
            if module.id <= self.length() {
                modules.push(module);
            }
        });
        modules
    }

    /// Where a module's data are, if in the static block.
    fn find_static(&self, module: &Module) -> Option<StaticModule> {
        // SAFETY: `modules` has checked the id.
        let value = unsafe { (*self.linkers_dtv().add(module.id)).value };
        (self.tp - self.below..self.tp).contains(&value).then(|| StaticModule {
            base: module.base,
            id: module.id,
            below: self.tp - value,
            size: module.size,
        })
    }

    fn image(&self, used: usize) -> Box<[u8]> {
        // SAFETY: `used` bytes below tp are inside the scratch block.
        unsafe { core::slice::from_raw_parts((self.tp - used) as *const u8, used).into() }
    }

    /// A copy of the linker's dtv for modules up to `highest`. The length is left to the caller.
    fn dtv(&self, highest: usize) -> Box<[DtvEntry]> {
        let mut copy = vec![DtvEntry { value: 0, to_free: core::ptr::null_mut() }; highest + 2];
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

/// Walks the loaded libraries that have TLS.
fn for_each_module(mut visit: impl FnMut(Module)) {
    unsafe extern "C" fn one<F: FnMut(Module)>(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        visit: *mut c_void,
    ) -> c_int {
        // SAFETY: `dl_iterate_phdr` passes a valid description and our own pointer.
        unsafe {
            let (info, visit) = (&*info, &mut *visit.cast::<F>());
            let headers = core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into());
            if let Some(tls) = headers.iter().find(|h| h.p_type == libc::PT_TLS) {
                if info.dlpi_tls_modid != 0 {
                    let (id, base) = (info.dlpi_tls_modid, info.dlpi_addr as usize);
                    visit(Module { id, base, size: tls.p_memsz as usize });
                }
            }
        }
        0
    }
    fn trampoline<F: FnMut(Module)>(
        _: &F,
    ) -> unsafe extern "C" fn(*mut libc::dl_phdr_info, usize, *mut c_void) -> c_int {
        one::<F>
    }
    let callback = trampoline(&visit);
    // SAFETY: `visit` outlives the call, and is what `one` expects.
    unsafe { libc::dl_iterate_phdr(Some(callback), (&raw mut visit).cast()) };
}
