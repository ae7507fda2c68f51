//! `pthread_key`s: virtual threads keep the values and run the destructors themselves.

use std::ffi::{CStr, c_int, c_void};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering::SeqCst};
use std::sync::{Barrier, Mutex, OnceLock};

use crate::common::processor::{can_step, set_step_flag};
use crate::common::sys::{self, check};
use crate::common::{child, crowd, crowd_size, migrate, on_virtual, watched};
use libc::pthread_key_t;
use pirn::thread;

type Destructor = Option<unsafe extern "C" fn(*mut c_void)>;

/// `PTHREAD_KEYS_MAX`.
const KEYS_MAX: u32 = 1024;
/// `PTHREAD_DESTRUCTOR_ITERATIONS`.
const ROUNDS_MAX: usize = 4;

fn try_new_key(destructor: Destructor) -> Result<pthread_key_t, c_int> {
    let mut key = 0;
    // SAFETY: `key` is valid for writes, and a function for ever.
    match unsafe { libc::pthread_key_create(&mut key, destructor) } {
        0 => Ok(key),
        error => Err(error),
    }
}

fn new_key(destructor: Destructor) -> pthread_key_t {
    try_new_key(destructor).unwrap()
}

fn delete(key: pthread_key_t) {
    // SAFETY: touches no memory of ours.
    assert_eq!(unsafe { libc::pthread_key_delete(key) }, 0);
}

fn try_set(key: pthread_key_t, value: usize) -> c_int {
    // SAFETY: the values are only compared.
    unsafe { libc::pthread_setspecific(key, ptr::without_provenance(value)) }
}

fn set_value(key: pthread_key_t, value: usize) {
    assert_eq!(try_set(key, value), 0);
}

fn value(key: pthread_key_t) -> usize {
    // SAFETY: touches no memory of ours.
    unsafe { libc::pthread_getspecific(key) }.addr()
}

/// Runs `f` on a virtual thread and then on a platform thread, to its end.
fn on_each_kind(f: fn()) {
    thread::spawn(f).join().unwrap();
    std::thread::spawn(f).join().unwrap();
}

static KEY_VALUES: Mutex<Vec<usize>> = Mutex::new(Vec::new());

unsafe extern "C" fn note_value(value: *mut c_void) {
    thread::yield_now(); // a destructor may block
    KEY_VALUES.lock().unwrap().push(value.addr());
}

#[watched]
fn keys_are_per_thread_and_their_destructors_run() {
    let key = new_key(Some(note_value));
    crowd(|i| {
        assert_eq!(value(key), 0); // nothing is left from the slot's last thread
        set_value(key, i + 1);
        migrate();
        assert_eq!(value(key), i + 1);
    });
    // A scope ends slightly before its platform threads.
    while KEY_VALUES.lock().unwrap().len() < crowd_size() {
        thread::yield_now();
    }
    let mut values = std::mem::take(&mut *KEY_VALUES.lock().unwrap());
    values.sort_unstable();
    assert!(values.into_iter().eq(1..=crowd_size()));
}

static ROUNDS: AtomicUsize = AtomicUsize::new(0);
static AGAIN: OnceLock<pthread_key_t> = OnceLock::new();

unsafe extern "C" fn set_again(value: *mut c_void) {
    ROUNDS.fetch_add(1, SeqCst);
    if value.addr() > 1 {
        set_value(*AGAIN.get().unwrap(), value.addr() - 1);
    }
}

#[watched]
fn destructors_that_set_keys_are_called_again_but_not_for_ever() {
    AGAIN.set(new_key(Some(set_again))).unwrap();
    for (set, rounds) in [(0, 0), (1, 1), (3, 3), (100, ROUNDS_MAX)] {
        let body = move || set_value(*AGAIN.get().unwrap(), set);
        thread::spawn(body).join().unwrap();
        assert_eq!(ROUNDS.swap(0, SeqCst), rounds);
        std::thread::spawn(body).join().unwrap();
        assert_eq!(ROUNDS.swap(0, SeqCst), rounds);
    }
}

static ORDER: Mutex<Vec<usize>> = Mutex::new(Vec::new());
static ORDERED: OnceLock<[pthread_key_t; 40]> = OnceLock::new();

unsafe extern "C" fn note_order(number: *mut c_void) {
    let (number, keys) = (number.addr(), ORDERED.get().unwrap());
    assert_eq!(value(keys[number]), 0);
    ORDER.lock().unwrap().push(number);
    if number == 20 {
        set_value(keys[10], 10); // has had its turn
        set_value(keys[30], 0); // will have none
        delete(keys[35]); // neither
    }
}

#[watched]
fn destructors_run_in_the_order_of_keys_and_find_them_unset() {
    child::isolated(&[], || {
        for spawn in [
            |f: fn()| thread::spawn(f).join().unwrap(),
            |f: fn()| std::thread::spawn(f).join().unwrap(),
        ] {
            let keys = ORDERED.get_or_init(|| {
                let mut keys = [(); 40].map(|()| new_key(Some(note_order)));
                keys.sort_unstable();
                keys
            });
            spawn(|| {
                for (number, key) in ORDERED.get().unwrap().iter().enumerate().skip(1) {
                    set_value(*key, number);
                }
            });
            let mut expected: Vec<_> = (1..40).filter(|i| ![30, 35].contains(i)).collect();
            expected.push(10);
            assert_eq!(std::mem::take(&mut *ORDER.lock().unwrap()), expected);
            while new_key(Some(note_order)) != keys[35] {}
        }
    });
}

#[watched]
fn a_key_made_anew_is_unset_in_every_thread() {
    child::isolated(&[], || {
        let key = new_key(Some(note_value));
        let steps = [(); 4].map(|()| Barrier::new(crowd_size() + 1));
        let [set, deleted, refused, again] = &steps;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                set.wait();
                delete(key);
                deleted.wait();
                refused.wait();
                while new_key(Some(note_value)) != key {}
                again.wait();
            });
            crowd(|i| {
                set_value(key, i + 1);
                set.wait();
                deleted.wait();
                assert_eq!(try_set(key, 1), libc::EINVAL);
                refused.wait();
                again.wait();
                assert_eq!(value(key), 0);
                if i % 2 == 0 {
                    set_value(key, 5000 + i);
                    assert_eq!(value(key), 5000 + i);
                }
            });
        });
        // No destructor was called with a value of the old key's.
        assert!(
            KEY_VALUES
                .lock()
                .unwrap()
                .iter()
                .all(|value| *value >= 5000)
        );
    });
}

#[watched]
fn keys_that_do_not_exist_are_refused() {
    child::isolated(&[], || {
        on_each_kind(|| {
            let gone = new_key(None);
            set_value(gone, 1);
            delete(gone);
            for key in [gone, 1000, KEYS_MAX, 5000, u32::MAX] {
                assert_eq!(try_set(key, 1), libc::EINVAL);
                assert_eq!(try_set(key, 0), libc::EINVAL);
                assert_eq!(value(key), 0);
                // SAFETY: touches no memory of ours.
                assert_eq!(unsafe { libc::pthread_key_delete(key) }, libc::EINVAL);
            }
        });
    });
}

static DESTROYED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn count_destroyed(_: *mut c_void) {
    DESTROYED.fetch_add(1, SeqCst);
}

#[watched]
fn all_keys_can_be_used() {
    child::isolated(&[], || {
        let _ = std::thread::current(); // std uses one itself
        let mut keys = Vec::new();
        loop {
            match try_new_key(Some(count_destroyed)) {
                Ok(key) => keys.push(key),
                Err(error) => break assert_eq!(error, libc::EAGAIN),
            }
        }
        assert!(keys.contains(&(KEYS_MAX - 1)) && keys.len() > 1000);
        crowd(|i| {
            let each = || {
                keys.iter()
                    .map(move |key| (*key, 10_000 * i + *key as usize + 1))
            };
            if i % 2 == 0 {
                each().for_each(|(key, value)| set_value(key, value));
            } else {
                each().rev().for_each(|(key, value)| set_value(key, value));
            }
            migrate();
            each().for_each(|(key, set)| assert_eq!(value(key), set));
        });
        while DESTROYED.load(SeqCst) < keys.len() * crowd_size() {
            thread::yield_now(); // destructors run after `f`
        }
        assert_eq!(DESTROYED.load(SeqCst), keys.len() * crowd_size());
    });
}

unsafe extern "C" {
    fn tss_create(key: *mut pthread_key_t, destructor: Destructor) -> c_int;
    fn tss_delete(key: pthread_key_t);
    fn tss_set(key: pthread_key_t, value: *mut c_void) -> c_int;
    fn tss_get(key: pthread_key_t) -> *mut c_void;
}

static TSS_VALUES: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn sum_up(value: *mut c_void) {
    TSS_VALUES.fetch_add(value.addr(), SeqCst);
}

#[watched]
fn c11_names_are_for_the_same_keys() {
    on_each_kind(|| {
        let mut key = 0;
        // SAFETY: `key` is valid for writes; the values are only compared.
        unsafe {
            assert_eq!(tss_create(&mut key, Some(sum_up)), 0);
            assert!(tss_get(key).is_null());
            assert_eq!(tss_set(key, ptr::without_provenance_mut(5)), 0);
            migrate();
            assert_eq!((tss_get(key).addr(), value(key)), (5, 5));
            set_value(key, 6);
            assert_eq!(tss_get(key).addr(), 6);
        }
    });
    assert_eq!(TSS_VALUES.load(SeqCst), 12);
    on_each_kind(|| {
        const ERROR: c_int = 2; // thrd_error
        let mut key = 0;
        // SAFETY: `key` is valid for writes; the values are only compared.
        unsafe {
            assert_eq!(tss_create(&mut key, None), 0);
            tss_delete(key);
            assert_eq!(tss_set(u32::MAX, ptr::null_mut()), ERROR);
            assert!(tss_get(u32::MAX).is_null());
        }
    });
}

/// Returns libc's own function of that name.
fn behind(name: &CStr) -> *mut c_void {
    // SAFETY: C strings; libc is loaded, and stays.
    unsafe {
        let libc = libc::dlopen(c"libc.so.6".as_ptr(), libc::RTLD_NOW);
        assert!(!libc.is_null());
        let address = libc::dlsym(libc, name.as_ptr());
        assert!(!address.is_null());
        address
    }
}

#[watched]
fn keys_made_behind_our_back_are_per_thread_too() {
    type Create = unsafe extern "C" fn(*mut pthread_key_t, Destructor) -> c_int;
    let keys = [(); 40].map(|()| {
        let mut key = 0;
        // SAFETY: the function's type, and as in `new_key`.
        let error = unsafe {
            std::mem::transmute::<*mut c_void, Create>(behind(c"pthread_key_create"))(
                &mut key, None,
            )
        };
        assert_eq!(error, 0);
        key
    });
    for _ in 0..2 {
        crowd(|i| {
            for key in keys {
                assert_eq!(value(key), 0);
                set_value(key, i + 1);
            }
            migrate();
            assert!(keys.iter().all(|key| value(*key) == i + 1));
        });
    }
    keys.into_iter().for_each(delete);
}

static CHILD_SAYS: AtomicI32 = AtomicI32::new(-1);

unsafe extern "C" fn say_value(value: *mut c_void) {
    let fd = CHILD_SAYS.load(SeqCst);
    if fd >= 0 {
        sys::write(fd, &[value.addr() as u8]).unwrap();
    }
}

/// Forks. In the child: runs `child` and returns true. In the parent: waits until the child has
/// ended well.
fn fork(child: impl FnOnce()) -> bool {
    // SAFETY: the children use only what glibc keeps usable after a fork.
    let pid = check(unsafe { libc::fork() }).unwrap();
    if pid == 0 {
        pirn_testing::end_if_it_hangs();
        child();
        return true;
    }
    assert_eq!(sys::waitpid(pid).unwrap(), 0, "status of the child");
    false
}

#[watched]
fn the_child_of_a_fork_has_the_values_and_their_destructors() {
    child::isolated(&[], || {
        let (mut reader, writer) = io::pipe().unwrap();
        let (kept, changed) = (new_key(Some(say_value)), new_key(Some(say_value)));
        let fd = writer.as_raw_fd();
        on_virtual(move || {
            set_value(kept, 1);
            set_value(changed, 2);
            let is_child = fork(|| {
                CHILD_SAYS.store(fd, SeqCst);
                assert_eq!((value(kept), value(changed)), (1, 2));
                set_value(changed, 3);
                set_value(new_key(Some(say_value)), 4);
                std::thread::spawn(move || {
                    assert_eq!((value(kept), value(changed)), (0, 0));
                    set_value(kept, 5);
                    assert_eq!(value(kept), 5);
                })
                .join()
                .unwrap();
                assert_eq!((value(kept), value(changed)), (1, 3));
            });
            if !is_child {
                assert_eq!((value(kept), value(changed)), (1, 2));
            }
            // The child ends here as well, and the process with it.
        });
        drop(writer);
        let mut said = Vec::new();
        reader.read_to_end(&mut said).unwrap();
        assert_eq!(said, [5, 1, 3, 4]);
    });
}

#[watched]
fn a_child_can_begin_to_use_keys() {
    on_virtual(|| {
        let child = fork(|| {
            let key = new_key(None);
            assert_eq!(value(key), 0);
            set_value(key, 1);
            assert_eq!(value(key), 1);
            delete(key);
            assert_eq!(try_set(key, 1), libc::EINVAL);
        });
        if child {
            // SAFETY: ends the child without the parent's exit handlers.
            unsafe { libc::_exit(0) };
        }
    });
}

/// Runs `f` with a `SIGTRAP` after each instruction.
fn stepping(f: impl FnOnce()) {
    set_step_flag(true);
    f();
    set_step_flag(false);
}

/// A key that is always 7, and one that was 8, was made again, and becomes 9.
static WATCHED: OnceLock<[pthread_key_t; 2]> = OnceLock::new();
static STEPS: AtomicUsize = AtomicUsize::new(0);
static WRONG: AtomicUsize = AtomicUsize::new(0);

extern "C" fn look_at_keys(_: c_int) {
    STEPS.fetch_add(1, SeqCst);
    let [kept, anew] = *WATCHED.get().unwrap();
    if value(kept) != 7 || ![0, 9].contains(&value(anew)) {
        WRONG.fetch_add(1, SeqCst);
    }
}

#[watched]
fn signal_handlers_can_read_keys_amid_the_setting_of_others() {
    // Memory that was freed is overwritten at once.
    let tunables = "glibc.malloc.perturb=165:glibc.malloc.tcache_count=0";
    if !can_step() {
        return;
    }
    child::isolated(&[("GLIBC_TUNABLES", tunables)], || {
        // SAFETY: the handler touches only atomics and keys.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = look_at_keys as *const () as usize;
            action.sa_flags = libc::SA_ONSTACK;
            check(libc::sigaction(libc::SIGTRAP, &action, ptr::null_mut())).unwrap();
        }
        on_virtual(|| {
            let keys = [(); 100].map(|()| new_key(None));
            let [kept, anew] = *WATCHED.get_or_init(|| [keys[0], keys[1]]);
            set_value(kept, 7);
            set_value(anew, 8);
            delete(anew);
            while new_key(None) != anew {}
            stepping(|| {
                set_value(anew, 9);
                // Far enough apart for the storage to grow each time.
                for i in [5, 11, 23, 47, 95] {
                    set_value(keys[i], i);
                }
            });
            assert_eq!(value(anew), 9);
        });
        assert!(STEPS.load(SeqCst) > 500, "the trap flag has no effect");
        assert_eq!(WRONG.load(SeqCst), 0, "of {} steps", STEPS.load(SeqCst));
    });
}
