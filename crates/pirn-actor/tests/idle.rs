//! The memory of actors that have nothing to do.

use pirn_actor as actor;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The bytes that have been allocated and not freed.
static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

struct CountingAllocator;

// SAFETY: it is the system's allocator. `realloc` is the default, in terms of these.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// As many as the tables of all actors have room for before they grow.
const ACTORS: usize = 16 * 7 * 256;

fn bytes_each(before: usize) -> usize {
    (ALLOCATED.load(Ordering::Relaxed) - before) / ACTORS
}

#[test]
fn an_idle_actor_is_some_hundred_bytes() {
    let mut actors = Vec::with_capacity(ACTORS);
    // What the runtime allocates once is no actor's.
    assert_eq!(actor::function(|n: u32| n).ask(7), Ok(7));
    let before = ALLOCATED.load(Ordering::Relaxed);
    actors.extend((0..ACTORS).map(|n| actor::spawn(actor::Function::new(move |()| n))));
    let new = bytes_each(before);
    for (n, actor) in actors.iter().enumerate() {
        assert_eq!(actor.ask(()), Ok(n));
    }
    let used = bytes_each(before);
    println!("{new} bytes before the first message, {used} after it");
    assert!(new <= 248, "{new} bytes");
    assert!(used <= 300, "{used} bytes");
}
