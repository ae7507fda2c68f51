//! Time limits of connections.
//!
//! A connection's thread says in its [`Seat`] until when it has to be further; that is one store.
//! One thread per server, the watch, looks every [`TICK`] at the [seats](super::seats) that may be
//! due, and interrupts the threads that are late, whatever they wait for. So a limit costs neither
//! a timer nor a system call per request, holds for any number of reads and writes together, and is
//! late by at most a tick.
//!
//! The watch counts the time, in ticks; the other threads never ask the kernel for it. Time in
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

use super::hangups::HangUps;
use super::pace::Pace;
use super::seats::{EXPIRED, FOREVER, Seats, State};
use super::timeouts::Timeouts;
use crate::poison::locked;
use crate::stream::Stream;
use pirn::thread;
use std::cell::Cell;
use std::io;
use std::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

pub(crate) use waiting::Waiting;

/// How often the watch looks.
const TICK: Duration = Duration::from_millis(100);
/// The most ticks that pass between two looks.
const MOST_TICKS: u64 = 2;
/// How long a client has to see the last answer, and for a first request that is on its way when
/// the server is shut down or other clients wait for their turn.
pub(crate) const LINGERING: Duration = Duration::from_secs(1);
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
    /// A stream has it; the stream's connection has another seat.
    is_stream: bool,
    state: Arc<State>,
    /// When the handler that runs is due; 0: whenever it likes.
    handler_due: Cell<u64>,
    /// The tick by which the client must have sent all of the body; 0: no read has begun.
    upload_due: Cell<u64>,
    pace: Pace,
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
    #[inline]
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
            hang_ups.add(stream, self.state.number);
        }
    }

    fn set(&self, due: u64) {
        self.watch.set(&self.state, due);
    }

    /// Returns the number of this seat.
    pub(crate) fn number(&self) -> u64 {
        self.state.number
    }

    /// Returns whether the thread was late, and so has been or will be interrupted.
    pub(crate) fn has_expired(&self) -> bool {
        self.state.has_expired()
    }

    /// Takes the interrupt of an expired seat, which may be on its way, so that the client can be
    /// told.
    pub(crate) fn absorb(&self) {
        if self.has_expired() {
            take_interrupt();
        }
        self.state.absorb();
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

impl Drop for Seat {
    fn drop(&mut self) {
        self.watch.remove(self);
    }
}

/// Looks at the seats of a server.
pub(crate) struct Watch {
    pub(crate) timeouts: Timeouts,
    /// `None` while there are no sockets.
    hang_ups: OnceLock<HangUps>,
    /// The present tick.
    now: AtomicU64,
    seats: Seats,
    connections: AtomicUsize,
    /// How many connections there have been.
    arrived: AtomicU64,
    /// The number of the seat that was last ended for another client, and the tick of that.
    dismissed: Mutex<(u64, u64)>,
    /// How many threads wait for the end of a connection.
    waiting: AtomicUsize,
    left: Mutex<()>,
    changed: Condvar,
    ended: AtomicBool,
}

impl Watch {
    pub(crate) fn new(timeouts: Timeouts) -> Arc<Watch> {
        Arc::new(Watch {
            timeouts,
            hang_ups: OnceLock::new(),
            now: AtomicU64::new(0),
            seats: Seats::default(),
            connections: AtomicUsize::new(0),
            arrived: AtomicU64::new(0),
            dismissed: Mutex::default(),
            waiting: AtomicUsize::new(0),
            left: Mutex::default(),
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

    #[inline]
    fn set(&self, state: &State, due: u64) {
        if state.set(due) {
            self.look_by(state, due >> 2);
        }
    }

    #[cold]
    fn look_by(&self, state: &State, tick: u64) {
        // A due that lies far ahead is moved by the next request: a look at the shortest limit
        // comes early enough for whatever is set until then.
        let soon = self.tick_after(self.timeouts.shortest());
        self.seats.look_by(state, soon.min(tick));
    }

    /// Returns a seat for a new connection, which counts as one until it is dropped; `None` if
    /// there are `most` connections.
    pub(crate) fn seat(self: &Arc<Self>, most: usize) -> Option<Seat> {
        let one_more = |count| (count < most).then_some(count + 1);
        self.connections
            .fetch_update(SeqCst, SeqCst, one_more)
            .ok()?;
        // Relaxed: a number that stands for itself. The shards take turns.
        let shard = self.arrived.fetch_add(1, Relaxed);
        Some(self.take_seat(shard, false))
    }

    /// Returns a seat for a new stream of a connection, or for a thread that sends an answer in the
    /// handler's place. `number` is the number of any seat of the same connection.
    pub(crate) fn stream_seat(self: &Arc<Self>, number: u64) -> Seat {
        self.take_seat(number, true)
    }

    fn take_seat(self: &Arc<Self>, shard: u64, is_stream: bool) -> Seat {
        Seat {
            watch: Arc::clone(self),
            is_stream,
            state: self.seats.take(shard),
            handler_due: Cell::new(0),
            upload_due: Cell::new(0),
            pace: Pace::default(),
        }
    }

    fn remove(&self, seat: &Seat) {
        self.seats.leave(&seat.state);
        if !seat.is_stream {
            self.connections.fetch_sub(1, SeqCst);
            // SeqCst, both: `wait_for_fewer` says that it waits, and then reads the number.
            if self.waiting.load(SeqCst) != 0 {
                drop(locked(&self.left)); // It waits now, or has seen the number.
                self.changed.notify_all();
            }
        }
    }

    /// Returns the number of connections.
    pub(crate) fn count(&self) -> usize {
        self.connections.load(SeqCst)
    }

    /// Expires the seats whose time meets a condition.
    fn expire_where(&self, condition: impl Fn(u64) -> bool) {
        for state in self.seats.all() {
            let due = state.due();
            if due != 0 && due != EXPIRED && condition(due) {
                state.expire(due);
            }
        }
    }

    /// Waits until there are fewer connections than that, or for up to `most`.
    pub(crate) fn wait_for_fewer(&self, than: usize, most: Duration) {
        let left = locked(&self.left);
        self.waiting.fetch_add(1, SeqCst);
        let are_too_many = |(): &mut ()| self.count() >= than;
        let waited = self.changed.wait_timeout_while(left, most, are_too_many);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        self.waiting.fetch_sub(1, SeqCst);
    }

    /// Looks at the seats until the server has ended.
    pub(crate) fn run(&self) {
        let mut last = Instant::now();
        while !self.ended.load(SeqCst) {
            thread::sleep(TICK);
            // What is left of the last tick counts towards the next one.
            let passed = ticks(last.elapsed());
            last += TICK * u32::try_from(passed).unwrap_or(0);
            let now = self.now() + passed.min(MOST_TICKS);
            self.now.store(now, Relaxed); // As in `now`.
            self.seats.expire_late(now);
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
        let find = |number| self.seats.find(number);
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
        let mut dismissed = locked(&self.dismissed);
        let (last, since) = *dismissed;
        if self.seats.find(last).is_some() && now < since + ticks(self.timeouts.idle) {
            return;
        }
        let recent = self.tick_after(self.timeouts.idle.saturating_sub(LINGERING));
        let dues = self.seats.all().map(|state| (state.due(), state));
        let idle = dues.filter(|&(due, _)| due & IDLE != 0 && due != EXPIRED && due >> 2 < recent);
        if let Some((due, state)) = idle.min_by_key(|(due, _)| due >> 2) {
            *dismissed = (state.number, now);
            drop(dismissed);
            state.expire(due);
        }
    }

    /// Interrupts all threads.
    pub(crate) fn interrupt_all(&self) {
        self.seats.all().for_each(|seat| seat.interrupt());
    }
}

/// Returns how many ticks a duration has.
pub(crate) fn ticks(duration: Duration) -> u64 {
    let ticks = u64::try_from(duration.as_millis() / TICK.as_millis());
    ticks.map_or(FOREVER, |ticks| ticks.min(FOREVER))
}
