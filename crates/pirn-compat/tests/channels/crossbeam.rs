//! `crossbeam-channel`: bounded channels, `select!`, timeouts and disconnection.

use std::time::{Duration, Instant};

use crate::shared::{self, Receiving, Sending, each_message_arrives_once};
use crossbeam_channel::{
    RecvTimeoutError, Select, SendTimeoutError, after, bounded, never, select, tick, unbounded,
};
use pirn::thread;
use pirn_compat::{Latch, THREADS, on_threads, watched};

impl Sending for crossbeam_channel::Sender<usize> {
    fn send(&self, message: usize) {
        crossbeam_channel::Sender::send(self, message).unwrap();
    }
}

impl Receiving for crossbeam_channel::Receiver<usize> {
    fn all(&self) -> Vec<usize> {
        self.iter().collect()
    }

    fn within(&self, timeout: Duration) -> usize {
        self.recv_timeout(timeout).unwrap()
    }
}

#[watched]
fn rendezvous_channel_delivers_each_message_once() {
    each_message_arrives_once(bounded(0));
}

#[watched]
fn bounded_channel_delivers_each_message_once() {
    each_message_arrives_once(bounded(8));
}

#[watched]
fn senders_blocked_on_a_full_channel_all_get_through() {
    let (sender, receiver) = bounded(1);
    sender.send(THREADS).unwrap(); // the channel is full
    let sending = Latch::new(THREADS);
    thread::scope(|scope| {
        for message in 0..THREADS {
            let (sender, sending) = (&sender, &sending);
            scope.spawn(move || {
                sending.arrive();
                sender.send(message).unwrap();
            });
        }
        sending.wait();
        let mut messages: Vec<_> = receiver.iter().take(THREADS + 1).collect();
        assert_eq!(messages[0], THREADS);
        messages.sort_unstable();
        assert!(messages.into_iter().eq(0..=THREADS));
    });
}

#[watched]
fn a_token_goes_round_a_ring() {
    const LAPS: usize = 20;
    let ring: Vec<_> = (0..THREADS).map(|_| bounded(0)).collect();
    let (_, first) = &ring[0];
    thread::scope(|scope| {
        for index in 1..THREADS {
            let (input, output) = (&ring[index].1, &ring[(index + 1) % THREADS].0);
            scope.spawn(move || {
                for _ in 0..LAPS {
                    let token: usize = input.recv().unwrap();
                    output.send(token + 1).unwrap();
                }
            });
        }
        scope.spawn(|| {
            for lap in 0..LAPS {
                ring[1].0.send(lap * THREADS + 1).unwrap();
                assert_eq!(first.recv(), Ok((lap + 1) * THREADS));
            }
        });
    });
}

/// What woke a thread of `select_wakes_each_thread_by_the_right_channel`.
#[derive(Debug, PartialEq)]
enum Woken {
    Own(usize),
    Shared(usize),
    Quit,
}

#[watched]
fn select_wakes_each_thread_by_the_right_channel() {
    const OWN: usize = THREADS / 4;
    const SHARED: usize = THREADS / 2;
    let own: Vec<_> = (0..THREADS).map(|_| bounded(0)).collect();
    let (shared_sender, shared) = bounded(0);
    let (quit_sender, quit) = bounded::<()>(0);
    let selecting = Latch::new(THREADS);
    let woken = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|index| {
                let (own, shared, quit) = (&own[index].1, &shared, &quit);
                let selecting = &selecting;
                scope.spawn(move || {
                    selecting.arrive();
                    select! {
                        recv(own) -> message => Woken::Own(message.unwrap()),
                        recv(shared) -> message => Woken::Shared(message.unwrap()),
                        recv(quit) -> message => { message.unwrap_err(); Woken::Quit }
                        recv(never::<()>()) -> _ => unreachable!(),
                    }
                })
            })
            .collect();
        selecting.wait();
        for (index, (sender, _)) in own.iter().enumerate().take(OWN) {
            sender.send(index).unwrap(); // returns when that thread has taken it
        }
        for message in 0..SHARED {
            shared_sender.send(message).unwrap();
        }
        drop(quit_sender);
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect::<Vec<_>>()
    });

    let (first, rest) = woken.split_at(OWN);
    assert!(first.iter().enumerate().all(|(i, w)| *w == Woken::Own(i)));
    let mut shared: Vec<_> = rest
        .iter()
        .filter_map(|woken| match woken {
            Woken::Shared(message) => Some(*message),
            _ => None,
        })
        .collect();
    shared.sort_unstable();
    assert!(shared.into_iter().eq(0..SHARED));
    let quit = rest.iter().filter(|woken| **woken == Woken::Quit).count();
    assert_eq!(quit, THREADS - OWN - SHARED);
}

/// Each thread offers to send its name and to receive another's, whichever comes first.
#[watched]
fn select_pairs_senders_with_receivers() {
    let (sender, receiver) = bounded(0);
    let partners = on_threads(THREADS, |name| {
        select! {
            send(sender, name) -> sent => { sent.unwrap(); None }
            recv(receiver) -> partner => Some(partner.unwrap()),
        }
    });

    let mut senders: Vec<_> = partners.iter().flatten().copied().collect();
    senders.sort_unstable();
    let silent = (0..THREADS).filter(|&name| partners[name].is_none());
    assert_eq!(senders.len(), THREADS / 2);
    assert!(senders.iter().copied().eq(silent));
}

#[watched]
fn one_thread_selects_over_a_channel_from_every_other() {
    const EACH: usize = 5;
    let channels: Vec<_> = (0..THREADS).map(|_| bounded(0)).collect();
    thread::scope(|scope| {
        for (sender, _) in &channels {
            scope.spawn(move || (0..EACH).for_each(|message| sender.send(message).unwrap()));
        }
        let collector = scope.spawn(|| {
            let mut next = vec![0; THREADS];
            let mut select = Select::new();
            for (_, receiver) in &channels {
                select.recv(receiver);
            }
            for _ in 0..THREADS * EACH {
                let operation = select.select();
                let index = operation.index();
                assert_eq!(operation.recv(&channels[index].1), Ok(next[index]));
                next[index] += 1;
            }
            next
        });
        assert_eq!(collector.join().unwrap(), vec![EACH; THREADS]);
    });
}

#[watched]
fn timeouts_fire_for_all_blocked_threads() {
    const TIMEOUT: Duration = Duration::from_millis(50);
    let (_keep_sender, empty) = bounded::<()>(0);
    let (full, _keep_receiver) = bounded(0);
    on_threads(THREADS, |index| {
        let start = Instant::now();
        match index % 4 {
            0 => assert_eq!(empty.recv_timeout(TIMEOUT), Err(RecvTimeoutError::Timeout)),
            1 => assert_eq!(
                full.send_timeout(index, TIMEOUT),
                Err(SendTimeoutError::Timeout(index))
            ),
            2 => select! {
                recv(empty) -> _ => unreachable!(),
                recv(after(TIMEOUT)) -> at => assert!(at.unwrap() >= start + TIMEOUT),
            },
            _ => select! {
                recv(empty) -> _ => unreachable!(),
                send(full, index) -> _ => unreachable!(),
                default(TIMEOUT) => {}
            },
        }
        assert!(start.elapsed() >= TIMEOUT);
    });
}

#[watched]
fn ticks_come_one_period_apart() {
    const PERIOD: Duration = Duration::from_millis(10);
    on_threads(THREADS, |_| {
        let start = Instant::now();
        let ticks: Vec<_> = tick(PERIOD).iter().take(3).collect();
        assert!(ticks.is_sorted());
        assert!(start.elapsed() >= 3 * PERIOD);
    });
}

#[watched]
fn a_message_comes_before_a_long_timeout() {
    shared::a_message_comes_before_a_long_timeout(unbounded());
}

#[watched]
fn disconnection_wakes_all_blocked_threads() {
    let (sender, receiver) = bounded::<usize>(0);
    let (other_sender, other_receiver) = bounded::<usize>(0);
    let blocking = Latch::new(THREADS);
    thread::scope(|scope| {
        for index in 0..THREADS {
            let (receiver, sender) = (receiver.clone(), other_sender.clone());
            let blocking = &blocking;
            scope.spawn(move || {
                blocking.arrive();
                if index % 2 == 0 {
                    receiver.recv().unwrap_err();
                } else {
                    assert_eq!(sender.send(index).unwrap_err().into_inner(), index);
                }
            });
        }
        blocking.wait();
        drop(sender);
        drop(other_receiver);
    });
}
