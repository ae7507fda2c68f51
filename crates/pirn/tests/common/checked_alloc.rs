//! An allocator that checks each freed block: the layout, the alignment, that it is live, and that
//! the program has not written beyond either end.
//!
//! ```text
//!   from the system's allocator: aligned as asked for, and to 16 bytes at least
//!   |
//!   | padding | mark, align | size  ||  block ...        || EDGE, 16 bytes |
//!   +---------+---- 16 bytes -------++-------------------++----------------+
//! ```
//!
//! The mark says whether the block is live; a second `dealloc` finds the mark of a dead one unless
//! the memory has been used again. Freed blocks are filled with [`DEAD_BYTE`]. A violation writes
//! one line and aborts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::process::abort;
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};

/// The head of a live block; the shift of its alignment is added to it.
const LIVE: u64 = 0x5049_524e_4c49_5600;
/// The head of a freed block.
const DEAD: u64 = 0x5049_524e_4445_4144;
/// Every byte behind a block.
const EDGE: u8 = 0xED;
/// Bytes watched behind a block.
const EDGE_LEN: usize = 16;
/// The contents of freed blocks.
const DEAD_BYTE: u8 = 0xDF;
/// The mark and the size.
const HEAD_LEN: usize = 16;

/// The number of live blocks.
static BLOCKS: AtomicIsize = AtomicIsize::new(0);
/// The number of their bytes.
static BYTES: AtomicIsize = AtomicIsize::new(0);

/// Checks each block when it is freed. See the head of this file.
pub struct CheckedAlloc;

/// Returns the number of live blocks.
pub fn live_blocks() -> isize {
    BLOCKS.load(Relaxed) // Relaxed: a count for people and conditions, it publishes nothing.
}

/// Returns the number of bytes of the live blocks.
pub fn live_bytes() -> isize {
    BYTES.load(Relaxed) // Relaxed: as in `live_blocks`.
}

/// Where a block's head is.
fn head(block: *mut u8) -> *mut [u64; 2] {
    block.wrapping_sub(HEAD_LEN).cast()
}

/// Distance from the start of the underlying memory to the block; and the layout of that memory.
fn outer(layout: Layout) -> Option<(usize, Layout)> {
    let align = layout.align().max(HEAD_LEN);
    let start = align.max(2 * HEAD_LEN);
    let size = layout.size().checked_add(start + EDGE_LEN)?;
    Some((start, Layout::from_size_align(size, align).ok()?))
}

fn mark(layout: Layout) -> u64 {
    LIVE + u64::from(layout.align().trailing_zeros())
}

/// Reports a violation, without allocating, and aborts.
#[cold]
fn violation(what: &str, block: *mut u8, found: [u64; 2], layout: Layout) -> ! {
    use std::io::Write;
    let mut text = [0; 300];
    let mut rest = &mut text[..];
    let _ = writeln!(
        rest,
        "allocator: {what}: block {block:p}, freed with size {} and alignment {}, its head says \
         {:#x}, {}",
        layout.size(),
        layout.align(),
        found[0],
        found[1]
    );
    let left = rest.len();
    let length = text.len() - left;
    // SAFETY: the buffer is valid for its length. Standard error may fail; then nothing is said.
    unsafe { libc::write(2, text.as_ptr().cast(), length) };
    abort()
}

impl CheckedAlloc {
    /// Writes head and edge of a new block whose memory starts at `memory`.
    ///
    /// # Safety
    /// `memory` is memory of the layout that [`outer`] gives for `layout`, or null.
    unsafe fn dress(memory: *mut u8, start: usize, layout: Layout) -> *mut u8 {
        if memory.is_null() {
            return memory;
        }
        BLOCKS.fetch_add(1, Relaxed); // Relaxed: as in `live_blocks`.
        BYTES.fetch_add(layout.size() as isize, Relaxed);
        // SAFETY: the caller's contract: `start` bytes before the block, EDGE_LEN behind it.
        unsafe {
            let block = memory.add(start);
            head(block).write([mark(layout), layout.size() as u64]);
            block.add(layout.size()).write_bytes(EDGE, EDGE_LEN);
            block
        }
    }
}

// SAFETY: each block is part of one of `System`, disjoint from head and edge, aligned as asked for.
unsafe impl GlobalAlloc for CheckedAlloc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some((start, outer)) = outer(layout) else {
            return std::ptr::null_mut();
        };
        // SAFETY: not empty; `dress` gets memory of the layout that it expects.
        unsafe { Self::dress(System.alloc(outer), start, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let Some((start, outer)) = outer(layout) else {
            return std::ptr::null_mut();
        };
        // SAFETY: as in `alloc`.
        unsafe { Self::dress(System.alloc_zeroed(outer), start, layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let head = head(block);
        // SAFETY: the caller got the block from us, so its head is there, or was there.
        let found = unsafe { head.read() };
        if found[0] == DEAD {
            violation("double free", block, found, layout);
        }
        if found != [mark(layout), layout.size() as u64] {
            violation("freed with another layout", block, found, layout);
        }
        let Some((start, outer)) = outer(layout) else {
            violation("impossible layout", block, found, layout)
        };
        // SAFETY: the head has shown that the block is live and of this layout.
        unsafe {
            let edge = std::slice::from_raw_parts(block.add(layout.size()), EDGE_LEN);
            if edge.iter().any(|&byte| byte != EDGE) {
                violation("written beyond its end", block, found, layout);
            }
            head.write([DEAD, layout.size() as u64]);
            block.write_bytes(DEAD_BYTE, layout.size());
            BLOCKS.fetch_sub(1, Relaxed); // Relaxed: as in `live_blocks`.
            BYTES.fetch_sub(layout.size() as isize, Relaxed);
            System.dealloc(block.sub(start), outer);
        }
    }
}
