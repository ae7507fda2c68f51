//! The runtime's data structures and protocols on real atomics: unit tests, property tests
//! against a simple reference, and stress by real threads.

/// Messages of actors; its unit tests run here, too.
#[path = "../../../pirn-actor/src/envelope.rs"]
#[allow(dead_code)] // Actors use more of it than its tests do.
mod envelope;
mod error {
    pub(crate) fn short_name<T: ?Sized>() -> &'static str {
        let name = core::any::type_name::<T>();
        name.rsplit("::").next().unwrap_or(name)
    }
}
#[path = "../common/glibc.rs"]
mod glibc;
#[path = "../../../pirn-rt/src/sched/local_queue.rs"]
mod local_queue;
#[path = "../../../pirn-rt/src/own_vec.rs"]
mod own_vec;
#[path = "../../../pirn-rt/src/primitives.rs"]
#[allow(dead_code, unused_imports)] // The runtime uses more of them than the files above do.
mod primitives;
#[path = "../../../pirn-rt/src/vthread/state.rs"]
#[allow(dead_code)] // What the runtime does with threads that are looked at.
mod state;
#[path = "../../../pirn-rt/src/reactor/heap.rs"]
mod timer_heap;
#[path = "../../../pirn-rt/src/vthread/wait_word.rs"]
#[allow(dead_code)] // The word itself is for the kernel.
mod wait_word;

mod local_queue_properties;
mod local_queue_stress;
mod mount_flags_words;
mod timer_heap_properties;
mod transitions;

/// Returns the number of cases that a property test tries: few under Miri, which is some hundred
/// times slower.
fn proptest_config() -> proptest::test_runner::Config {
    proptest::test_runner::Config {
        cases: if cfg!(miri) { 8 } else { 500 },
        failure_persistence: None,
        ..Default::default()
    }
}
