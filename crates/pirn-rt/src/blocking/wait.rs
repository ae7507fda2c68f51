//! One episode of waiting.
//!
//! A waiter makes a [`Wait`] on its stack, tells all that may end it (a queue, a timer, a
//! descriptor, several of them at once), and blocks. Of all that want to end the episode, one wins
//! the [`claim`](Wait::claim) and performs the wake; the others find it decided. An interrupter may
//! be among them, if the wait is [interruptible](Wait::interruptible): then the episode is decided
//! in the thread's word ([`WaitWord`]), which interrupters know, otherwise in the wait's own word.
//!
//! Lifetime: a claim is made under the lock of the list in which the `Wait` was found, and the
//! waiter removes itself from every such list, under that lock, before its stack frame goes away.
//! A platform thread goes on as soon as it is claimed: so the claimer takes the `Wait` out of the
//! list first, and does not touch it after the claim. The wake works on the thread ([`Wakeup`]).

use crate::blocking::timer::Timer;
use crate::no_suspend::{self, NoSuspend};
use crate::sched::{self, Cause, Runtime, mount, runtime};
use crate::sys;
use crate::time::Deadline;
use crate::vthread::wait_reason::{WaitInfo, WaitReason};
use crate::vthread::wait_word::{Decided, Interruptible, Refused, WaitWord};
use crate::vthread::{self, Claimed, Core, Current, Ready, identity::Platform};
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicU32, Ordering};

/// How an episode ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Outcome {
    /// The awaited event has happened.
    Ready = 2,
    /// The deadline came first.
    TimedOut = 3,
    /// The awaited object does not exist any more.
    Closed = 4,
    /// The thread was interrupted.
    Interrupted = 5,
    /// A [safe point](crate::sched::safepoint) was requested: the thread runs what is pending
    /// when it has left all lists, and then waits again or not.
    SafePoint = 6,
}

impl From<Refused> for Outcome {
    fn from(refused: Refused) -> Outcome {
        match refused {
            Refused::Interrupted => Outcome::Interrupted,
            Refused::SafePoint => Outcome::SafePoint,
        }
    }
}

/// See the module's documentation.
pub struct Wait {
    own: WaitWord,
    /// The thread's word, which interrupters know; `None`: the wait's own word is used.
    shared: Option<NonNull<WaitWord>>,
    /// The virtual thread that waits; `None`: a platform thread, or a thread in a signal handler.
    thread: Option<NonNull<Core>>,
    /// A virtual thread waits for one thing at a time: a signal handler must not begin another
    /// wait before this one has ended.
    _section: Option<NoSuspend>,
}

// SAFETY: the thread pointer is only used by the winner of the claim; the words are atomics.
unsafe impl Sync for Wait {}

/// A wake that the winner of a claim owes.
#[must_use = "the waiter has been claimed: no other thread will wake it"]
pub enum Wakeup {
    Virtual(Claimed),
    /// A virtual thread that has not started.
    Start(Ready),
    Platform(*const u32),
    /// The waiter is a platform thread that has not gone to sleep.
    Nothing,
}

impl Wakeup {
    /// Returns the wake of a decided wait, of a virtual thread or of the platform thread that has
    /// this word. The section has begun before the decision.
    ///
    /// # Safety
    /// The caller has just got `decided` from the word of a wait of `thread`, if there is one.
    #[inline]
    pub unsafe fn new(
        thread: Option<NonNull<Core>>,
        decided: Decided,
        word: *const u32,
        section: NoSuspend,
    ) -> Wakeup {
        match thread {
            // SAFETY: the caller's contract: it has won the claim.
            Some(thread) => Wakeup::Virtual(unsafe { Claimed::new(thread, section) }),
            None if decided.asleep => Wakeup::Platform(word),
            None => Wakeup::Nothing,
        }
    }

    /// Wakes the waiter. Not to be called under a lock: this may run a user's scheduler.
    #[inline]
    pub fn perform(self) {
        match self {
            Wakeup::Virtual(thread) => sched::wake(thread),
            other => other.perform_otherwise(),
        }
    }

    /// Wakes a waiter that is not a virtual thread, or has not started.
    #[inline(never)]
    fn perform_otherwise(self) {
        match self {
            Wakeup::Virtual(thread) => sched::wake(thread),
            Wakeup::Start(thread) => sched::schedule(thread, Cause::Start),
            Wakeup::Platform(word) => {
                sys::futex_wake_at(word, 1);
            }
            Wakeup::Nothing => {}
        }
    }
}

/// Returns whether a wait that begins now is one of a virtual thread.
fn is_virtual_wait() -> bool {
    vthread::current().is_some() && !no_suspend::in_handler()
}

impl Wait {
    /// Returns an episode of the running thread that neither an interrupt nor a safe point request
    /// ends. Dumps show `reason`.
    #[inline]
    pub fn new(reason: WaitReason) -> Wait {
        // Mostly called in runtime code, under the lock of the list that the wait will be in.
        let thread = vthread::current().filter(|_| !no_suspend::in_handler());
        if let Some(thread) = thread {
            thread.wait_info.begin(reason);
        }
        Wait {
            own: WaitWord::pending(),
            shared: None,
            thread: thread.map(Current::as_ptr),
            _section: thread.map(|_| NoSuspend::new()),
        }
    }

    /// Returns an episode of the running thread that an interrupt or a safe point request ends: but
    /// for a wait in a signal handler, which neither ends.
    ///
    /// The thread must block on it before it begins another one.
    ///
    /// # Errors
    /// The outcome, if the thread is interrupted, or has a safe point request, already.
    #[inline(always)] // 112 bytes would be copied: a futex wait took 30 instructions more.
    pub fn interruptible(
        reason: WaitReason,
        interruptible: Interruptible,
    ) -> Result<Wait, Outcome> {
        let mut wait = Wait::new(reason);
        // The word stays while the running thread does, and so while it waits. In a handler it may
        // be the word of the wait that the handler has interrupted: this one has its own.
        let begin = |word: &WaitWord| (NonNull::from(word), word.begin(interruptible));
        let begun = match wait.thread {
            // SAFETY: the running thread's.
            Some(thread) => Some(begin(unsafe { &(*thread.as_ptr()).wait })),
            None if no_suspend::in_handler() => None,
            None => Platform::with_wait_word(begin),
        };
        wait.shared = begun.map(|(word, _)| word);
        match begun.map(|(_, result)| result) {
            Some(Err(refused)) => Err(refused.into()),
            _ => Ok(wait),
        }
    }

    /// Returns an episode of the running thread that interrupts end as `interruptible` says.
    ///
    /// # Errors
    /// The outcome, if an interrupt or a safe point request has ended it already.
    #[inline]
    pub fn begin(reason: WaitReason, interruptible: Interruptible) -> Result<Wait, Outcome> {
        match interruptible {
            Interruptible::Never if !is_virtual_wait() => Ok(Wait::new(reason)),
            interruptible => Wait::interruptible(reason, interruptible),
        }
    }

    /// Notes that the thread, which waits at an address, waits at another one from now on.
    ///
    /// Called under the locks of both lists. The thread is in one of them.
    #[inline]
    pub(crate) fn moved(&self, address: usize) {
        if let Some(thread) = self.thread {
            // SAFETY: it cannot leave the list, and so not end, while we hold the locks.
            unsafe { thread.as_ref() }.wait_info.moved(address);
        }
    }

    /// Returns whether a virtual thread waits: it goes on when the claimer performs the wake. Any
    /// other waiter may go on as soon as it is claimed.
    #[inline]
    pub fn is_virtual(&self) -> bool {
        self.thread.is_some()
    }

    /// Returns the virtual thread that waits, or null.
    #[inline]
    pub(super) fn waiter(&self) -> *const Core {
        self.thread.map_or(ptr::null(), |thread| thread.as_ptr())
    }

    /// Returns whether the waiting thread has been
    /// [overtaken](crate::vthread::wait_reason::WaitInfo) for so long that it gets its turn now,
    /// and notes that it does.
    ///
    /// Called under the lock of the list in which the wait is.
    #[inline]
    pub(crate) fn take_turn(&self) -> bool {
        // SAFETY: it cannot leave the list, and so not end, while the caller holds the lock.
        let wait_info = self
            .thread
            .map(|thread| unsafe { &thread.as_ref().wait_info });
        let due = wait_info.filter(|wait_info| wait_info.is_due());
        due.map(WaitInfo::hand_over).is_some()
    }

    #[inline]
    fn word(&self) -> &WaitWord {
        match self.shared {
            // SAFETY: it belongs to the thread that runs on this stack.
            Some(word) => unsafe { word.as_ref() },
            None => &self.own,
        }
    }

    /// Decides the episode, if it has not been decided.
    #[inline]
    pub fn claim(&self, outcome: Outcome) -> Option<Wakeup> {
        // Read everything before the state changes: then the waiter may be gone.
        let thread = self.thread;
        let word = self.word();
        let address = word.atomic().as_ptr();
        let section = NoSuspend::new();
        let decided = word.decide(outcome as u32)?;
        // SAFETY: decided by us, in the word in which this thread's wait is decided.
        Some(unsafe { Wakeup::new(thread, decided, address, section) })
    }

    /// Returns how the episode ended, if it has.
    #[inline]
    fn outcome(&self) -> Option<Outcome> {
        self.word().outcome().map(|outcome| match outcome {
            3 => Outcome::TimedOut,
            4 => Outcome::Closed,
            5 => Outcome::Interrupted,
            6 => Outcome::SafePoint,
            _ => Outcome::Ready,
        })
    }

    /// Blocks until this episode is claimed.
    #[inline]
    pub fn block(&self) -> Outcome {
        self.block_until(Deadline::NEVER)
    }

    /// Blocks until this episode is claimed or the deadline has come.
    #[inline]
    pub fn block_until(&self, deadline: Deadline) -> Outcome {
        match self.thread {
            // SAFETY: it is the waiting thread that calls this.
            Some(core) => self.block_virtual(unsafe { Current::new(core) }, deadline),
            None => self.block_platform(deadline),
        }
    }

    fn block_virtual(&self, core: Current, deadline: Deadline) -> Outcome {
        if deadline.is_never() {
            mount::park_until_wake(core);
        } else {
            self.park_until(core, deadline);
        }
        match self.outcome() {
            Some(outcome) => outcome,
            None => sys::fatal(&["a virtual thread was woken that no thread had claimed"]),
        }
    }

    /// Not inlined: the timer would enlarge the stack frame of threads without a deadline. The
    /// stack of a parked thread should fit into a page.
    #[inline(never)]
    fn park_until(&self, core: Current, deadline: Deadline) {
        core.wait_info.until(deadline);
        let timer = Timer::for_wait(self);
        // SAFETY: it fires or is disarmed below, and our caller keeps the wait.
        unsafe { timer.arm(Runtime::of(&core), deadline) };
        mount::park_until_wake(core);
        if self.outcome() != Some(Outcome::TimedOut) {
            timer.disarm();
        }
    }

    fn block_platform(&self, deadline: Deadline) -> Outcome {
        let _counted = deadline.is_never().then(Relying::new);
        // Spin while a carrier searches: a sleep and a wake would take longer. But spin only while
        // some processor is idle: otherwise this would keep the carriers from running.
        let mut give_up = None;
        while let Some(runtime) = runtime::get()
            && runtime.idle.count() > 0
            && let now = sys::now()
            && now < *give_up.get_or_insert_with(|| now + runtime.settings.spin_ns)
        {
            for _ in 0..8 {
                if let Some(outcome) = self.outcome() {
                    return outcome;
                }
                core::hint::spin_loop();
            }
        }
        // Failure: decided meanwhile.
        while let Some(expected) = self.word().fall_asleep() {
            let _ = sys::futex_wait(self.word().atomic(), expected, deadline);
            if deadline.has_passed()
                && let Some(_wakeup) = self.claim(Outcome::TimedOut)
            {
                return Outcome::TimedOut;
            }
        }
        match self.outcome() {
            Some(outcome) => outcome,
            None => sys::fatal(&["a platform thread was woken that no thread had claimed"]),
        }
    }
}

/// The number of platform threads that go on only if the runtime wakes them.
static RELYING: AtomicU32 = AtomicU32::new(0);

/// Returns the number of platform threads that go on only if a virtual thread wakes them.
#[cfg(feature = "dump")]
#[inline]
pub fn relying_platform_threads() -> usize {
    RELYING.load(Ordering::Relaxed) as usize // Relaxed: statistics only.
}

/// Counts anew, in the child of a fork that has no runtime yet.
pub(crate) fn after_fork() {
    RELYING.store(0, Ordering::Relaxed); // Relaxed: there is one thread.
}

/// Counts a platform thread while this lives.
struct Relying;

impl Relying {
    fn new() -> Relying {
        RELYING.fetch_add(1, Ordering::Relaxed); // Relaxed: statistics only.
        Relying
    }
}

impl Drop for Relying {
    fn drop(&mut self) {
        RELYING.fetch_sub(1, Ordering::Relaxed); // Relaxed: statistics only.
    }
}

/// Wakes collected under a lock, to be performed after it.
pub struct WakeList {
    /// The first `len` items are initialised.
    items: [MaybeUninit<Wakeup>; WakeList::CAPACITY],
    len: usize,
}

impl WakeList {
    /// The maximum number of wakes. Small, because the list is on the waker's stack: a thread's one
    /// page must be enough for it.
    pub const CAPACITY: usize = 8;

    #[inline]
    pub fn new() -> WakeList {
        WakeList {
            items: [const { MaybeUninit::uninit() }; Self::CAPACITY],
            len: 0,
        }
    }

    /// Returns whether the list is full.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.len == Self::CAPACITY
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds a wake. The list must not be full.
    #[inline]
    pub fn push(&mut self, wakeup: Wakeup) {
        self.items[self.len].write(wakeup);
        self.len += 1;
    }

    /// Performs all wakes in order and empties the list. Returns how many there were.
    #[inline]
    pub fn perform(&mut self) -> usize {
        let count = core::mem::take(&mut self.len);
        for item in &self.items[..count] {
            // SAFETY: initialised, and read once, because `len` is zero now.
            unsafe { item.assume_init_read() }.perform();
        }
        count
    }
}
