//! A thread that is asked to stand still, while another reads its stack.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use loom::thread;

use crate::stack_request::{Registers, Request};
use crate::{Word, check};

const THREAD: u32 = 7;
/// The state of a request that this thread has answered.
const ANSWERED: u64 = (THREAD as u64) << 2 | 2;

struct World {
    request: Request,
    stack: Word,
    /// What belongs to the one who asks, as long as it does.
    askers: Word,
}

impl World {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            request: Request {
                state: AtomicU64::new(0),
                pc: AtomicUsize::new(0),
                sp: AtomicUsize::new(0),
                bp: AtomicUsize::new(0),
                lr: AtomicUsize::new(0),
            },
            stack: Word::new(),
            askers: Word::new(),
        })
    }

    /// The thread that is asked: it runs, its handler stands still if it was asked, and it runs on.
    fn run(&self, pc: usize) {
        self.stack.write(1);
        let (sp, bp, lr) = (pc + 1, pc + 2, pc + 3);
        let registers = Registers { pc, sp, bp, lr };
        if self.request.answer(THREAD, registers) {
            while !self.request.may_go_on(THREAD) {
                thread::yield_now();
            }
        }
        self.stack.write(2);
    }

    /// Asks, and reads the stack if there is an answer soon.
    fn read(&self) -> bool {
        if !self.request.ask(THREAD) {
            return false;
        }
        self.askers.write(1);
        for _ in 0..2 {
            if let Some(registers) = self.request.registers() {
                let Registers { pc, sp, bp, lr } = registers;
                assert_eq!([sp, bp, lr], [pc + 1, pc + 2, pc + 3]);
                assert_eq!(self.stack.read(), 1);
                assert!(self.request.release());
                return true;
            }
            thread::yield_now();
        }
        if !self.request.withdraw() {
            assert!(self.request.registers().is_some());
            assert_eq!(self.stack.read(), 1);
            assert!(self.request.release());
            return true;
        }
        false
    }

    /// Asks, and looks once. Returns whether the thread has stood still.
    fn ask_once(&self) -> bool {
        if !self.request.ask(THREAD) {
            return false;
        }
        self.askers.write(1);
        thread::yield_now();
        match self.request.registers() {
            Some(_) => {
                self.stack.read();
                self.request.release()
            }
            None => !self.request.withdraw() && self.request.release(),
        }
    }
}

#[test]
fn a_stack_is_read_while_its_thread_stands_still() {
    check(3, || {
        let world = World::new();
        let asked = world.clone();
        let asked = thread::spawn(move || asked.run(10));
        world.read();
        asked.join().unwrap();
        assert!(world.request.is_idle());
    });
}

#[test]
fn one_asks_at_a_time() {
    check(3, || {
        let world = World::new();
        let [asked, other] = [world.clone(), world.clone()];
        let asked = thread::spawn(move || asked.run(10));
        let other = thread::spawn(move || other.read());
        world.read();
        other.join().unwrap();
        asked.join().unwrap();
        assert!(world.request.is_idle());
    });
}

/// A thread that does not wait for the reader is not believed. If the reader was done before, the
/// thread goes on after that. Another may ask then.
#[test]
fn a_thread_that_has_left_is_not_believed() {
    check(3, || {
        let world = World::new();
        let asked = world.clone();
        let asked = thread::spawn(move || {
            let registers = Registers {
                pc: 1,
                sp: 2,
                bp: 3,
                lr: 4,
            };
            let answered = asked.request.answer(THREAD, registers);
            if answered {
                // Relaxed: it is `leave` that is to order what follows.
                let is_done = asked.request.state.load(Relaxed) != ANSWERED;
                asked.request.leave(THREAD);
                if is_done {
                    asked.stack.write(2);
                }
            }
            answered
        });
        let other = world.clone();
        let other = thread::spawn(move || {
            if other.request.ask(THREAD) {
                other.askers.write(2);
                if !other.request.withdraw() {
                    other.request.release();
                }
            }
        });
        let stood = world.ask_once();
        let answered = asked.join().unwrap();
        other.join().unwrap();
        assert!(answered || !stood);
        assert!(world.request.is_idle());
        assert!(world.request.ask(THREAD) && world.request.withdraw());
    });
}
