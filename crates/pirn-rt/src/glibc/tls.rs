//! TLS blocks: the `__thread` data and the `struct pthread` of a virtual thread, and how they are
//! made.
//!
//! Which part is where depends on the processor: `layout` has the drawings.
//!
//! Once, at start, a fresh platform thread lets `_dl_allocate_tls` fill in a scratch block, and
//! keeps its contents as a [`Template`]. From then on a block is made by copying the template and
//! moving the few pointers that point into the block: two short `memcpy`s, no lock, no call into
//! the dynamic linker. The dtv (the table of TLS modules that `__tls_get_addr` reads) is copied as
//! well and lives in the virtual thread's own memory. Its length field covers all its room, so that
//! glibc never finds the dtv too short when libraries are loaded. (It would `realloc` a short dtv,
//! which is impossible for ours.) [`late`](super::late) describes the rest of the work when
//! libraries are loaded.
//!
//! glibc itself keeps some 1,700 bytes of each thread for libraries to come. That would be 40 % of
//! a parked thread's only page, so the reserve is a setting and much smaller by default: a library
//! that does not fit is an error of `dlopen`.
//!
//! Sources: glibc `elf/dl-tls.c`, `nptl/descr.h`, `sysdeps/x86_64/nptl/tls.h`; Ulrich Drepper,
//! "ELF Handling For Thread-Local Storage".

use super::late::Block;
use super::layout::{self, Room, Sizes};
use super::linker::{self, Module, Scratch, StaticModule};
use super::symbols::{field_offset, find};
use crate::arch;
use core::ffi::c_void;
use core::ops::Range;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::thread::LocalKey;

pub(crate) use super::layout::NEAREST;

/// Bytes for the thread-local data of libraries to come, unless the program says how many. Room for
/// 20 libraries leaves a parked thread with one page.
pub const RESERVE: usize = 320;
pub use super::layout::HEAD;

/// Alignment of the thread pointer.
pub(crate) const TCB_ALIGN: usize = 64;

/// Alignment of the dtv, and of the ends of the images.
const DTV_ALIGN: usize = 16;

/// Returns where the thread with this thread pointer has a thread-local of the program's own TLS:
/// at the same distance from the thread pointer in every thread's block.
#[inline]
pub fn place_of<T>(local: &'static LocalKey<T>, tp: usize) -> *const T {
    let own = local.with(|own| ptr::from_ref(own).addr());
    let distance = own.wrapping_sub(arch::thread_pointer());
    ptr::with_exposed_provenance(tp.wrapping_add(distance))
}

/// One dtv entry: a module's block and the pointer to free for it. The first two entries of the raw
/// array hold the array's length and its generation. Their second words are unused by glibc: we
/// keep a [`Block`]'s state in the first.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct DtvEntry {
    pub(super) value: usize,
    pub(super) to_free: *mut c_void,
}

/// The contents of a fresh TLS block.
pub struct Template {
    /// How the parts of a block lie around the thread pointer. The same in all templates of a
    /// process.
    room: Room,
    /// Bytes of images when the runtime started, and of the reserve that was asked for.
    first_images: usize,
    reserve: usize,
    /// Bytes of static TLS in a block that the dynamic linker fills in.
    full_images: usize,
    /// Size of `struct pthread`.
    pub(crate) sizeof_pthread: usize,
    /// Offset of the thread id in `struct pthread`.
    pub tid_offset: usize,
    /// Initial content of the `image.len()` bytes of static TLS next to the thread pointer.
    pub(super) image: Box<[u8]>,
    /// The modules in the image.
    pub(super) statics: Vec<StaticModule>,
    /// Words of the image that a thread's start fills in (glibc's tables of character classes):
    /// distance from the thread pointer, and value.
    start_words: Vec<(isize, usize)>,
    /// Words of the image that point into `struct pthread` (glibc's resolver state): distances of
    /// the word and of the target from the thread pointer.
    image_pointers: Vec<(isize, isize)>,
    /// Initial content of the first [`HEAD`] bytes of `struct pthread`.
    head: Box<[u8; HEAD]>,
    /// Offsets in `head` of words that hold a pointer into `head`, and the offsets of their
    /// targets.
    self_pointers: Vec<(usize, usize)>,
    /// The used part of the dtv, its length and generation first; block addresses as offsets from
    /// tp.
    dtv: Box<[DtvEntry]>,
    /// Bytes of the dtv, and of the part of it that the first modules take. These and the next two
    /// are the same in all templates of a process.
    dtv_bytes: usize,
    first_dtv: usize,
    /// How far below the thread pointer the dtv begins, and the frames end.
    dtv_below: usize,
    frames_below: usize,
    /// The template that was in force before, kept here so that leak checkers find it.
    earlier: Option<&'static Template>,
}

static TEMPLATE: AtomicPtr<Template> = AtomicPtr::new(core::ptr::null_mut());
/// The highest id that a module with TLS has had.
static HIGHEST_MODULE: AtomicUsize = AtomicUsize::new(0);

/// Returns the bytes of a slot above the thread pointer.
#[inline(always)]
pub(crate) fn above() -> usize {
    layout::ABOVE.unwrap_or_else(|| template().room.above)
}

/// Returns the template in force.
///
/// # Panics
/// Never: the runtime starts by capturing one.
#[inline]
pub fn template() -> &'static Template {
    // Acquire: pairs with the Release in `install`. Templates are never freed.
    // SAFETY: non-null after `install`, which precedes the first virtual thread.
    unsafe { &*TEMPLATE.load(Ordering::Acquire) }
}

/// Returns the template in force, if the start of the runtime has installed one.
#[inline]
pub fn installed() -> Option<&'static Template> {
    // Acquire, SAFETY: as in `template`.
    unsafe { TEMPLATE.load(Ordering::Acquire).as_ref() }
}

/// Puts `template` in force. The old one is kept, because blocks made from it are alive.
#[inline]
pub(crate) fn install(mut template: Template) {
    template.earlier = installed();
    // Release: pairs with the Acquire in `template`.
    TEMPLATE.store(Box::into_raw(Box::new(template)), Ordering::Release);
}

/// Returns the address at which glibc has allocated the running platform thread's dtv.
#[inline]
pub(crate) fn own_dtv_memory() -> usize {
    let place = crate::arch::thread_pointer() + layout::DTV_POINTER;
    // SAFETY: the TCB of the running thread.
    let dtv = unsafe { (place as *const *const DtvEntry).read() };
    // One entry before the first: the array's length.
    dtv as usize - size_of::<DtvEntry>()
}

impl Template {
    /// Captures a template with `reserve` bytes for libraries to come. Must run on a *fresh
    /// platform thread*, whose TCB header is still as `pthread_create` left it.
    pub(crate) fn capture(reserve: usize) -> Result<Template, String> {
        let tp = crate::arch::thread_pointer();
        let (total, align) = linker::static_info()?;
        let size = find!(c"_thread_db_sizeof_pthread")?.cast::<u32>();
        let [list, tid, dtv] = [
            find!(c"_thread_db_pthread_list")?,
            find!(c"_thread_db_pthread_tid")?,
            find!(c"_thread_db_pthread_dtvp")?,
        ];
        // SAFETY: a size of 32 bits, and descriptions of fields.
        let (sizeof_pthread, [list_offset, tid_offset, dtv_offset]) = unsafe {
            let offsets = [list, tid, dtv].map(|field| field_offset(field));
            (size.read() as usize, offsets)
        };
        let sizes = Sizes {
            total,
            pthread: sizeof_pthread,
            dtv: dtv_offset,
        };
        let descriptor = layout::descriptor(tp, sizeof_pthread);
        let home = descriptor + layout::DTV_HOME.start..descriptor + layout::DTV_HOME.end;
        let is_unused = |at: usize| {
            // SAFETY: inside the calling thread's own struct pthread.
            unsafe { (at as *const usize).read() == 0 }
        };
        let sane = align <= TCB_ALIGN
            && sizeof_pthread <= HEAD + 4096
            && list_offset + 16 <= tid_offset
            && tid_offset + 64 <= HEAD
            && home.step_by(8).all(is_unused);
        let Some(images) = sizes.images().filter(|_| sane) else {
            return Err(format!(
                "this glibc lays out its thread descriptor in a way pirn does not know \
                 (TLS {total} bytes aligned to {align}, struct pthread {sizeof_pthread}, list at \
                 {list_offset}, tid at {tid_offset}, dtv at {dtv_offset})"
            ));
        };
        let full_images = images.next_multiple_of(TCB_ALIGN);
        let (head, self_pointers) = clean_head(tp, descriptor, list_offset, tid_offset);
        let empty = Template {
            earlier: None,
            room: layout::room(full_images, 0, sizeof_pthread),
            first_images: full_images,
            reserve,
            full_images,
            sizeof_pthread,
            tid_offset,
            image: Box::new([]),
            statics: Vec::new(),
            start_words: Vec::new(),
            image_pointers: Vec::new(),
            head,
            self_pointers,
            dtv: Box::new([]),
            dtv_bytes: 0,
            first_dtv: 0,
            dtv_below: 0,
            frames_below: 0,
        };
        let mut template = empty.recapture()?;
        let scratch = Scratch::new(full_images, sizeof_pthread)?;
        template.start_words = scratch.start_words(template.image.len());
        template.image_pointers = template.find_image_pointers(tp);
        let (images, reserve) = (template.image.len(), reserve.next_multiple_of(DTV_ALIGN));
        template.first_images = images;
        template.room = layout::room(images, reserve, sizeof_pthread);
        let dtv = match template.is_dtv_at_home() {
            true => descriptor + layout::DTV_HOME.start,
            false => tp - template.room.below - template.dtv_bytes,
        };
        template.dtv_below = tp - dtv;
        template.frames_below = template.dtv_below.max(template.room.below);
        template.dtv = Box::new([]); // its length depends on the room
        template.recapture()
    }

    /// Returns the words of the image that, on the calling fresh thread, point into its `struct
    /// pthread`.
    fn find_image_pointers(&self, tp: usize) -> Vec<(isize, isize)> {
        let start = layout::images(tp, self.image.len());
        let words = (layout::TCB..self.image.len()).step_by(8).map(|at| {
            // SAFETY: inside the calling thread's own static TLS.
            (start + at, unsafe { ((start + at) as *const usize).read() })
        });
        let descriptor = layout::descriptor(tp, self.sizeof_pthread);
        let own = descriptor..descriptor + self.sizeof_pthread;
        let distance = |address: usize| address.wrapping_sub(tp) as isize;
        words
            .filter(|(_, value)| own.contains(value))
            .map(|(place, value)| (distance(place), distance(value)))
            .collect()
    }

    /// Returns the bytes of a slot that frames cannot use.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.frames_below + self.room.above
    }

    /// Returns the bytes of a block that its making writes.
    #[inline]
    pub fn bytes_touched(&self) -> usize {
        self.image.len() + HEAD + size_of_val(&*self.dtv)
    }

    /// Returns the number of bytes next to the thread pointer that modules use.
    #[inline]
    pub fn image_bytes(&self) -> usize {
        self.image.len()
    }

    /// Returns whether the dtv is in a part of `struct pthread`: then it has all of that.
    #[inline(always)]
    fn is_dtv_at_home(&self) -> bool {
        self.dtv_bytes <= layout::DTV_HOME.len()
    }

    /// Returns the addresses of the images in the block at `tp`.
    pub(crate) fn images_at(&self, tp: usize) -> Range<usize> {
        let start = layout::images(tp, self.image.len());
        start..start + self.image.len()
    }

    /// Returns where the block at `tp` has its dtv.
    #[inline(always)]
    pub(crate) fn dtv_of(&self, tp: usize) -> usize {
        tp - self.dtv_below
    }

    /// Returns where the block at `tp`, in a slot, begins, and the frames end.
    #[inline(always)]
    pub(crate) fn frames_end(&self, tp: usize) -> usize {
        tp - self.frames_below
    }

    /// Returns the address of `struct pthread` in the block at `tp`: what libc calls the thread.
    #[inline]
    pub fn pthread_of(&self, tp: usize) -> usize {
        layout::descriptor(tp, self.sizeof_pthread)
    }

    /// Returns the thread pointer of the block whose `struct pthread` has this address.
    #[inline]
    pub fn tp_of(&self, pthread: usize) -> usize {
        layout::tp_of(pthread, self.sizeof_pthread)
    }

    /// Returns where the block at `tp` has the thread's id.
    #[inline]
    pub fn tid_place(&self, tp: usize) -> *mut u32 {
        (self.pthread_of(tp) + self.tid_offset) as *mut u32
    }

    /// Calls `f` with the thread pointer of a complete block that no thread uses, and that is freed
    /// afterwards.
    pub(crate) fn rehearse<R>(&self, f: impl FnOnce(usize) -> R) -> R {
        /// Above all ids that the kernel allocates.
        const TID: u32 = 1 << 22;
        let mut scratch = vec![0u8; TCB_ALIGN + self.bytes()];
        let begin = scratch.as_mut_ptr() as usize;
        let tp = (begin + self.frames_below).next_multiple_of(TCB_ALIGN);
        // SAFETY: the scratch buffer has room for all of it; no other code uses it.
        unsafe { self.init(tp, TID) };
        f(tp)
    }

    /// Fills in a TLS block.
    ///
    /// # Safety
    /// `tp` is aligned to [`TCB_ALIGN`]; all between [`frames_end`](Self::frames_end) and the end
    /// of the images is writable, and used by the caller alone. The part of the block that this
    /// leaves out (tail and reserve) is zero or left by an earlier block.
    #[inline]
    pub(crate) unsafe fn init(&self, tp: usize, tid: u32) {
        let entries = self.dtv_of(tp) as *mut DtvEntry;
        // SAFETY: the second word of the first entry; see `DtvEntry`.
        let block = unsafe { Block::at(&raw mut (*entries).to_free) };
        block.begin();
        // Loaded again, since `self` may have been replaced before `begin`.
        let newest = installed().unwrap_or(self);
        // SAFETY: the caller's contract; all templates of a process need the same room.
        unsafe { newest.fill(tp, entries, tid) };
        block.finish();
    }

    unsafe fn fill(&self, tp: usize, entries: *mut DtvEntry, tid: u32) {
        let tcb = tp as *mut u8;
        // SAFETY: all inside the areas that the caller of `init` guarantees.
        unsafe {
            let image = layout::images(tp, self.image.len()) as *mut u8;
            image.copy_from_nonoverlapping(self.image.as_ptr(), self.image.len());
            for &(at, to) in &self.image_pointers {
                tcb.offset(at)
                    .cast::<usize>()
                    .write(tp.wrapping_add_signed(to));
            }
            let pthread = self.pthread_of(tp) as *mut u8;
            // Without the block's state, which is in the dtv.
            let dtv = match self.is_dtv_at_home() {
                true => layout::DTV_HOME,
                false => 0..0,
            };
            pthread.copy_from_nonoverlapping(self.head.as_ptr(), dtv.start);
            let (rest, from) = (pthread.add(dtv.end), self.head.as_ptr().add(dtv.end));
            rest.copy_from_nonoverlapping(from, HEAD - dtv.end);
            for &(at, to) in &self.self_pointers {
                pthread.add(at).cast::<usize>().write(pthread as usize + to);
            }
            self.tid_place(tp).write(tid);
            tcb.add(layout::DTV_POINTER)
                .cast::<*mut DtvEntry>()
                .write(entries.add(1));
            (*entries).value = self.dtv[0].value; // its other word is the block's state
            entries
                .add(1)
                .copy_from_nonoverlapping(&raw const self.dtv[1], self.dtv.len() - 1);
            for i in 2..self.dtv.len() {
                let entry = entries.add(i);
                if is_offset((*entry).value) {
                    (*entry).value = tp.wrapping_add((*entry).value);
                }
            }
        }
    }

    /// Frees the memory that `__tls_get_addr` allocated for the block at `tp` (dynamically loaded
    /// modules).
    ///
    /// # Safety
    /// `tp` is a block made by [`init`](Self::init) whose thread has ended.
    pub(crate) unsafe fn release(tp: usize) {
        // Relaxed: a module that was loaded a moment ago and is missed here will find its entry as
        // this thread left it, and free what it holds.
        let highest = HIGHEST_MODULE.load(Ordering::Relaxed);
        // SAFETY: the dtv belongs to the block; entries 1..=length follow the length and
        // generation words, as `__tls_get_addr` itself assumes.
        unsafe {
            let dtv = (tp as *const u8)
                .add(layout::DTV_POINTER)
                .cast::<*mut DtvEntry>()
                .read();
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

    /// Returns the template as it would be captured now, after libraries may have been loaded or
    /// unloaded. Runs on any thread. Takes the dynamic linker's locks.
    ///
    /// # Errors
    /// There is no room for the libraries' data in the blocks of virtual threads.
    pub fn recapture(&self) -> Result<Template, String> {
        let scratch = Scratch::new(self.full_images, self.sizeof_pthread)?;
        let modules = scratch.modules();
        let statics: Vec<StaticModule> = modules
            .iter()
            .filter_map(|module| scratch.find_static(module))
            .collect();
        // Neither limit ever recedes: an old block may still use what lies beyond.
        let reach = |module: &StaticModule| layout::reach(module.at, module.size);
        let used = statics.iter().map(reach).max().unwrap_or(layout::TCB);
        let used = used.next_multiple_of(DTV_ALIGN).max(self.image.len());
        let highest = modules.iter().map(|module| module.id).max().unwrap_or(0);
        // Relaxed, here and below: only the number counts.
        let highest = HIGHEST_MODULE.load(Ordering::Relaxed).max(highest);
        let used_dtv = (highest + 2) * size_of::<DtvEntry>();
        let (dtv_bytes, first_dtv) = match self.dtv_bytes {
            0 => (layout::dtv_bytes(used_dtv, self.reserve), used_dtv),
            bytes => (bytes, self.first_dtv),
        };
        let room = layout::dtv_room(dtv_bytes, self.room.below, used) / size_of::<DtvEntry>();
        if used > self.room.images || highest + 2 > room {
            let more_dtv = (used_dtv - first_dtv) * layout::DTV_SHARE;
            let wanted = used - self.first_images + more_dtv;
            return Err(self.no_room(wanted, &modules, &statics));
        }
        HIGHEST_MODULE.fetch_max(highest, Ordering::Relaxed);
        let mut dtv = scratch.dtv(highest);
        dtv[0].value = self.dtv.first().map_or(room - 2, |length| length.value);
        let mut image = scratch.image(used);
        let start = layout::images(0, used);
        for &(at, value) in &self.start_words {
            let place = 0usize.wrapping_add_signed(at).wrapping_sub(start);
            image[place..][..8].copy_from_slice(&value.to_ne_bytes());
        }
        Ok(Template {
            earlier: None,
            image,
            statics,
            start_words: self.start_words.clone(),
            image_pointers: self.image_pointers.clone(),
            head: self.head.clone(),
            self_pointers: self.self_pointers.clone(),
            dtv,
            dtv_bytes,
            first_dtv,
            ..*self
        })
    }

    /// Returns the error of opening a library with which all libraries that were opened since the
    /// start need `wanted` bytes of each thread's block.
    fn no_room(&self, wanted: usize, modules: &[Module], statics: &[StaticModule]) -> String {
        let reach = |module: &StaticModule| layout::reach(module.at, module.size);
        let farthest = statics.iter().max_by_key(|module| reach(module));
        let grown = farthest.filter(|module| reach(module) > self.image.len());
        let last = modules.iter().max_by_key(|module| module.id);
        let culprit = modules
            .iter()
            .find(|module| grown.is_some_and(|grown| grown.is_of(module)));
        let path = culprit.or(last).map_or("a library", |module| &module.path);
        /// Room for a few more libraries: otherwise the next one would be refused.
        const MORE: usize = 256;
        let advice = (wanted + MORE).next_multiple_of(TCB_ALIGN);
        let reserve = self.reserve;
        format!(
            "{path}: no room for its thread-local data in virtual threads: the libraries opened \
             since the start need {wanted} bytes of each, and {reserve} are reserved; set \
             PIRN_TLS_RESERVE={advice} in the environment, or link the library with the program"
        )
    }

    /// Returns the state of the block at `tp`, which may never have been one.
    ///
    /// # Safety
    /// `tp` is the thread pointer of a slot.
    #[inline]
    pub(super) unsafe fn block_at(&self, tp: usize) -> Block<'static> {
        let entries = self.dtv_of(tp) as *mut DtvEntry;
        // SAFETY: where `init` keeps it; in a slot never used the memory reads as zero.
        unsafe { Block::at(&raw mut (*entries).to_free) }
    }
}

/// Returns whether a template's dtv value is an offset from tp (a static module, whose block is not
/// far) rather than a marker (0, or -1 for "not yet allocated").
fn is_offset(value: usize) -> bool {
    (2..1 << 20).contains(&value.cast_signed().unsigned_abs())
}

/// Returns the head of a fresh thread's `struct pthread` without the parts that belong to that
/// thread.
fn clean_head(
    tp: usize,
    descriptor: usize,
    list_offset: usize,
    tid_offset: usize,
) -> (Box<[u8; HEAD]>, Vec<(usize, usize)>) {
    let mut head = Box::new([0u8; HEAD]);
    let mut self_pointers = vec![(list_offset, list_offset), (list_offset + 8, list_offset)];
    let source = descriptor as *const u8;
    // The TCB header up to the list, then tid, robust list, cancellation state; the rest (the
    // thread's keys) stays zero.
    let own = (0..list_offset)
        .chain(tid_offset + 8..tid_offset + 64)
        .step_by(8);
    for at in own {
        // SAFETY: inside the calling thread's own struct pthread, which is larger than HEAD.
        let word = unsafe { source.add(at).cast::<usize>().read() };
        if (descriptor..descriptor + HEAD).contains(&word) {
            self_pointers.push((at, word - descriptor));
        } else if at < list_offset && descriptor + at != tp + layout::DTV_POINTER
            || word as isize > -4096 && (word as isize) < 0
        {
            head[at..at + 8].copy_from_slice(&word.to_ne_bytes());
        }
    }
    (head, self_pointers)
}
