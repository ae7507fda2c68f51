//! Time limits of connections.
//!
//! A connection's thread says in its [`Seat`] until when it has to be further; that is one store.
//! One thread per server, the watch, looks at all seats every [`TICK`], and interrupts the threads
//! that are late, whatever they wait for. So a limit costs neither a timer nor a system call per
//! request, holds for any number of reads and writes together, and is late by at most a tick.
//!
//! The time is counted by the watch, in ticks, so that nobody else asks the system for it. Time in
//! which the watch does not run, because the machine is overloaded, does not count against clients.
//!
//! ```text
//!   due   0           nothing is limited
//!         tick << 2   until this tick   --the watch--> EXPIRED, and an interrupt
//!         ... | IDLE  the same, of a thread that waits for a request: shutting down ends that
//!         ... | FIRST the same, for its first one: that may be on its way
//! ```
//!
//! Rejected: `SO_RCVTIMEO`, which a byte now and then defeats; a timer per connection, which is
//! armed and disarmed with each request.

mod waiting;

use super::hangups::{Client, HangUps};
use super::pace::Pace;
use super::timeouts::Timeouts;
use crate::poison::locked;
use crate::stream::Stream;
use pirn::thread::{self, Thread};
use std::cell::Cell;
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, SeqCst},
};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

pub(crate) use waiting::Waiting;

/// How often the watch looks.
const TICK: Duration = Duration::from_millis(100);
/// The most ticks that pass between two looks.
const MOST_TICKS: u64 = 2;
/// How long a client has to see the last answer, and for a first request that is on its way when
/// the server is shut down or other clients wait for their turn.
pub(crate) const LINGERING: Duration = Duration::from_secs(1);
const EXPIRED: u64 = u64::MAX;
/// A tick that never comes.
const FOREVER: u64 = u64::MAX >> 3;
const IDLE: u64 = 1;
const FIRST: u64 = 2;

/// What a connection's thread does, as far as it is limited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Limit {
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "there is no TLS"))]
    Handshake,
    Idle,
    /// As `Idle`, before the first request.
    First,
    Head,
    Body,
    Write,
    /// The rest of a body that the handler has not read.
    Drain,
    /// The end of the connection.
    Linger,
    /// Nothing but that the server is shut down.
    #[cfg(feature = "http2")]
    Dismissal,
}

/// The place of a connection's thread at the watch.
pub(crate) struct Seat {
    watch: Arc<Watch>,
    number: u64,
    /// A stream has it; the stream's connection has another seat.
    is_stream: bool,
    state: Arc<State>,
    /// When the handler that runs is due; 0: whenever it likes.
    handler_due: Cell<u64>,
    /// The tick by which the client must have sent all of the body; 0: no read has begun.
    upload_due: Cell<u64>,
    pace: Pace,
}

/// The part of a seat that the watch's thread reads.
#[derive(Default)]
pub(crate) struct State {
    due: AtomicU64,
    pub(super) client: Client,
    thread: OnceLock<Thread>,
}

impl Seat {
    /// Notes what the thread does from now on.
    pub(crate) fn limit(&self, limit: Limit) {
        let timeouts = &self.watch.timeouts;
        let body_due = || self.pace.begin_wait(self.watch.now(), timeouts);
        let due = match limit {
            Limit::Handshake => self.watch.tick_after(timeouts.handshake) << 2,
            Limit::Idle => self.watch.tick_after(timeouts.idle) << 2 | IDLE,
            Limit::First => self.watch.tick_after(timeouts.idle) << 2 | IDLE | FIRST,
            Limit::Head => self.watch.tick_after(timeouts.head) << 2,
            Limit::Drain => self.watch.tick_after(timeouts.start) << 2,
            Limit::Linger => self.watch.tick_after(LINGERING) << 2,
            Limit::Body => self.or_handler(body_due().min(self.begin_upload())),
            Limit::Write => self.or_handler(body_due()),
            #[cfg(feature = "http2")]
            Limit::Dismissal => FOREVER << 2 | IDLE,
        };
        self.set(due);
    }

    /// Returns when the thread is due, if it is so at a tick, and its handler when that is.
    fn or_handler(&self, tick: u64) -> u64 {
        match self.handler_due.get() {
            0 => tick << 2,
            handler_due => handler_due.min(tick << 2),
        }
    }

    /// Returns by which tick all of the request's body has to be there.
    fn begin_upload(&self) -> u64 {
        let Some(upload) = self.watch.timeouts.upload else {
            return FOREVER;
        };
        if self.upload_due.get() == 0 {
            self.upload_due.set(self.watch.tick_after(upload));
        }
        self.upload_due.get()
    }

    /// Returns whether the request's body has had its time.
    pub(crate) fn is_upload_late(&self) -> bool {
        let due = self.upload_due.get();
        due != 0 && due <= self.watch.now()
    }

    /// Returns how much of the present body has moved, and how fast it has to.
    #[cfg(feature = "http2")]
    pub(crate) fn pace(&self) -> (&Pace, &Timeouts) {
        (&self.pace, &self.watch.timeouts)
    }

    /// Notes that a body has moved by so many bytes, and that nothing is limited until the next
    /// piece.
    pub(crate) fn progress(&self, bytes: usize) {
        self.note(bytes);
        self.no_limit();
    }

    /// Notes that so many bytes of a body have moved without a wait.
    pub(crate) fn note(&self, bytes: usize) {
        self.pace.note(bytes);
    }

    /// Notes that nothing is limited but the handler, if one runs.
    pub(crate) fn no_limit(&self) {
        self.pace.end_wait(self.watch.now());
        self.set(self.handler_due.get());
    }

    /// Notes that the time of a body begins, or begins anew.
    pub(crate) fn begin_body(&self) {
        self.pace.begin_anew();
    }

    /// Notes that a handler begins.
    pub(crate) fn begin_handler(&self) {
        self.begin_body();
        self.upload_due.set(0);
        if let Some(handler) = self.watch.timeouts.handler {
            self.handler_due.set(self.watch.tick_after(handler) << 2);
            self.no_limit();
        }
        self.state.client.begin();
    }

    /// Notes that the handler has ended. Returns whether it was late, and not its client.
    pub(crate) fn end_handler(&self) -> bool {
        let is_late = self.is_handler_late() && self.has_expired();
        let was_due = self.handler_due.replace(0) != 0;
        if is_late {
            self.absorb();
        } else if was_due {
            self.no_limit();
        }
        if self.state.client.end() {
            take_interrupt();
        }
        is_late
    }

    /// Returns whether a handler runs, and has had its time.
    pub(crate) fn is_handler_late(&self) -> bool {
        let due = self.handler_due.get();
        due != 0 && due >> 2 <= self.watch.now()
    }

    /// Returns whether the client has hung up.
    pub(crate) fn is_client_gone(&self) -> bool {
        self.state.client.is_gone()
    }

    /// Has the handlers of this connection interrupted when the client hangs up.
    pub(crate) fn follow(&self, stream: &Stream) {
        if let Some(hang_ups) = self.watch.hang_ups.get() {
            hang_ups.add(stream, self.number);
        }
    }

    fn set(&self, due: u64) {
        self.state.set(due);
    }

    /// Returns whether the thread was late, and so has been or will be interrupted.
    pub(crate) fn has_expired(&self) -> bool {
        self.state.due.load(Acquire) == EXPIRED // Acquire: as in `set`.
    }

    /// Takes the interrupt of an expired seat, which may be on its way, so that the client can be
    /// told.
    pub(crate) fn absorb(&self) {
        if self.has_expired() {
            take_interrupt();
        }
        self.state.due.store(0, SeqCst);
    }

    /// Takes back the interrupt of a wait that ended well just when its time was up, so that it
    /// does not end the handler's next wait, which has a time limit of its own.
    pub(crate) fn forgive(&self) {
        if !self.is_handler_late() {
            self.absorb();
            self.no_limit();
        }
    }

    /// Returns a handle for the waits of a connection that has left HTTP.
    pub(crate) fn waiting(&self) -> Waiting {
        Waiting::new(&self.watch, &self.state)
    }

    /// Returns a handle for the connection's driver, which notices that the client is gone.
    #[cfg(feature = "http2")]
    pub(crate) fn line(&self) -> Line {
        Line(Arc::clone(&self.state))
    }

    /// Notes which thread has this seat.
    pub(crate) fn sit_down(&self) {
        let _ = self.state.thread.set(thread::current());
    }
}

/// The line to a client.
#[cfg(feature = "http2")]
pub(crate) struct Line(Arc<State>);

#[cfg(feature = "http2")]
impl Line {
    /// Notes that the client is gone, and interrupts the handler.
    pub(crate) fn hang_up(&self) {
        if self.0.client.hang_up() {
            self.0.interrupt();
        }
    }
}

/// Takes an interrupt that has come, or is on its way.
pub(crate) fn take_interrupt() {
    let patience = Instant::now() + TICK;
    while !thread::take_interrupt() && Instant::now() < patience {
        thread::yield_now();
    }
}

impl State {
    fn set(&self, due: u64) {
        // Acquire: pairs with the exchange in `expire`. An expired seat stays expired.
        if self.due.swap(due, Acquire) == EXPIRED {
            self.due.store(EXPIRED, Relaxed); // Relaxed: the watch has done with it.
        }
    }

    /// Interrupts the thread, unless it has gone on meanwhile.
    fn expire(&self, due: u64) {
        let expired = self.due.compare_exchange(due, EXPIRED, SeqCst, Relaxed);
        if expired.is_ok() {
            self.interrupt();
        }
    }

    pub(crate) fn interrupt(&self) {
        if let Some(thread) = self.thread.get() {
            thread.interrupt();
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.watch.remove(self.number, self.is_stream);
    }
}

/// All seats of a server.
pub(crate) struct Watch {
    pub(crate) timeouts: Timeouts,
    /// `None` while there are no sockets.
    hang_ups: OnceLock<HangUps>,
    /// The present tick.
    now: AtomicU64,
    seats: Mutex<Seats>,
    changed: Condvar,
    ended: AtomicBool,
}

#[derive(Default)]
struct Seats {
    next: u64,
    connections: usize,
    taken: HashMap<u64, Arc<State>>,
    /// The one that was last ended for another client, and the tick of that.
    dismissed: (u64, u64),
}

impl Watch {
    pub(crate) fn new(timeouts: Timeouts) -> Arc<Watch> {
        Arc::new(Watch {
            timeouts,
            hang_ups: OnceLock::new(),
            now: AtomicU64::new(0),
            seats: Mutex::default(),
            changed: Condvar::new(),
            ended: AtomicBool::new(false),
        })
    }

    fn now(&self) -> u64 {
        self.now.load(Relaxed) // Relaxed: a number that stands for itself.
    }

    fn tick_after(&self, duration: Duration) -> u64 {
        self.now() + ticks(duration) + 1
    }

    fn lock(&self) -> MutexGuard<'_, Seats> {
        locked(&self.seats)
    }

    /// Returns a seat for a new connection.
    pub(crate) fn seat(self: &Arc<Self>) -> Seat {
        self.take_seat(false)
    }

    /// Returns a seat for a new stream of a connection, or for the answer to a request, if another
    /// thread than the handler's sends it.
    pub(crate) fn stream_seat(self: &Arc<Self>) -> Seat {
        self.take_seat(true)
    }

    fn take_seat(self: &Arc<Self>, is_stream: bool) -> Seat {
        let state = Arc::<State>::default();
        let mut seats = self.lock();
        seats.connections += usize::from(!is_stream);
        seats.next += 1; // There is none with the number 0.
        let number = seats.next;
        seats.taken.insert(number, Arc::clone(&state));
        let watch = Arc::clone(self);
        Seat {
            watch,
            number,
            is_stream,
            state,
            handler_due: Cell::new(0),
            upload_due: Cell::new(0),
            pace: Pace::default(),
        }
    }

    fn remove(&self, number: u64, is_stream: bool) {
        let mut seats = self.lock();
        seats.taken.remove(&number);
        if !is_stream {
            seats.connections -= 1;
            drop(seats);
            self.changed.notify_all();
        }
    }

    /// Returns the number of connections.
    pub(crate) fn count(&self) -> usize {
        self.lock().connections
    }

    /// Expires the seats whose time meets a condition. Wakes threads, so not under the lock.
    fn expire_where(&self, condition: impl Fn(u64) -> bool) {
        let seats = self.lock();
        let dues = seats
            .taken
            .values()
            .map(|seat| (seat.due.load(SeqCst), seat));
        let late = dues.filter(|&(due, _)| due != 0 && due != EXPIRED && condition(due));
        let late = Vec::from_iter(late.map(|(due, seat)| (due, Arc::clone(seat))));
        drop(seats);
        late.into_iter().for_each(|(due, seat)| seat.expire(due));
    }

    /// Waits until a connection has ended, or for up to `most`.
    pub(crate) fn wait_for_end(&self, most: Duration) {
        let seats = self.lock();
        drop(
            self.changed
                .wait_timeout(seats, most)
                .unwrap_or_else(PoisonError::into_inner),
        );
    }

    /// Looks at all seats until the server has ended.
    pub(crate) fn run(&self) {
        let mut last = Instant::now();
        while !self.ended.load(SeqCst) {
            thread::sleep(TICK);
            // What is left of the last tick counts towards the next one.
            let passed = ticks(last.elapsed());
            last += TICK * u32::try_from(passed).unwrap_or(0);
            let now = self.now() + passed.min(MOST_TICKS);
            self.now.store(now, Relaxed); // As in `now`.
            self.expire_where(|due| due >> 2 <= now);
        }
    }

    /// Begins to notice clients that hang up: see [`HangUps::new`].
    ///
    /// # Errors
    /// If there are no descriptors left.
    pub(crate) fn notice_hang_ups(&self, half_close: bool) -> io::Result<()> {
        let _ = self.hang_ups.set(HangUps::new(half_close)?); // It is set once only.
        Ok(())
    }

    /// Interrupts handlers whose clients hang up, until the server has ended and this thread is
    /// interrupted.
    pub(crate) fn follow_clients(&self) {
        let find = |number| self.lock().taken.get(&number).cloned();
        if let Some(hang_ups) = self.hang_ups.get() {
            hang_ups.run(find, || self.ended.load(SeqCst));
        }
    }

    /// Has [`run`](Self::run) return soon, and [`follow_clients`](Self::follow_clients) when it is
    /// interrupted next.
    pub(crate) fn end(&self) {
        self.ended.store(true, SeqCst);
    }

    /// Ends the connections that wait for a request; `all`: also for their first one.
    pub(crate) fn dismiss_idle(&self, all: bool) {
        self.expire_where(|due| due & IDLE != 0 && (all || due & FIRST == 0));
    }

    /// Ends the connection that has waited for a request for longest, if that is longer than a
    /// second: for another client. Not while the last one that was ended so is still about to.
    pub(crate) fn dismiss_longest_idle(&self) {
        let now = self.now();
        let mut seats = self.lock();
        let (last, since) = seats.dismissed;
        if seats.taken.contains_key(&last) && now < since + ticks(self.timeouts.idle) {
            return;
        }
        let recent = self.tick_after(self.timeouts.idle.saturating_sub(LINGERING));
        let dues = seats.taken.iter();
        let dues = dues.map(|(number, seat)| (seat.due.load(SeqCst), *number));
        let idle = dues.filter(|&(due, _)| due & IDLE != 0 && due != EXPIRED && due >> 2 < recent);
        if let Some((due, number)) = idle.min_by_key(|&(due, number)| (due >> 2, number)) {
            let seat = Arc::clone(&seats.taken[&number]);
            seats.dismissed = (number, now);
            drop(seats);
            seat.expire(due);
        }
    }

    /// Interrupts all threads.
    pub(crate) fn interrupt_all(&self) {
        let threads = Vec::from_iter(self.lock().taken.values().cloned());
        threads.iter().for_each(|seat| seat.interrupt());
    }
}

/// Returns how many ticks a duration has.
pub(crate) fn ticks(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis() / TICK.as_millis()).unwrap_or(u64::MAX >> 3)
}
