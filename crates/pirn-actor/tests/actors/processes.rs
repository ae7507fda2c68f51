//! Processes, and selective receive.

use crate::common::{Gate, watched};
use pirn::thread;
use pirn_actor::process::{Inbox, RecvError};
use pirn_actor::reply::ReplyTo;
use pirn_actor::{self as actor, AskError, Exit, receive};
use std::time::Duration;

#[derive(Debug, PartialEq, Eq)]
enum Message {
    Red(u32),
    Green(u32),
    Stop,
}
use Message::{Green, Red, Stop};

#[watched]
fn a_process_receives_in_order() {
    let process = actor::process::spawn(|inbox: &mut Inbox<u32>| {
        let mut all = Vec::new();
        while let Ok(n) = inbox.recv() {
            all.push(n);
        }
        all
    });
    (0..1000).for_each(|n| process.send(n).unwrap());
    assert!(process.close_and_join().unwrap().into_iter().eq(0..1000));
}

#[watched]
fn what_no_arm_takes_stays_in_order() {
    let process = actor::process::spawn(
        |inbox: &mut Inbox<Message>| -> Result<Vec<u32>, RecvError> {
            let mut taken = Vec::new();
            for _ in 0..3 {
                receive!(inbox => { Green(n) => taken.push(n) });
            }
            while let Ok(message) = inbox.recv() {
                let Red(n) = message else {
                    panic!("{message:?}")
                };
                taken.push(n);
            }
            Ok(taken)
        },
    );
    for n in 0..3 {
        process.send(Red(n)).unwrap();
        process.send(Green(10 + n)).unwrap();
    }
    assert_eq!(
        process.close_and_join().unwrap(),
        Ok(vec![10, 11, 12, 0, 1, 2])
    );
}

#[watched]
fn arms_have_guards_blocks_and_a_time_limit() {
    let process =
        actor::process::spawn(|inbox: &mut Inbox<Message>| -> Result<String, RecvError> {
            let limit = 5;
            let mut seen = String::new();
            'all: loop {
                let n = receive!(inbox => {
                    Red(n) if n > limit => {
                        seen.push('R');
                        n
                    }
                    Green(n) | Red(n) if n == limit => n,
                    Stop => break 'all,
                    after Duration::from_secs(3600) => unreachable!(),
                });
                seen += &n.to_string();
            }
            let late = receive!(inbox => {
                Stop => false,
                after Duration::from_millis(1) => true,
            });
            assert!(late);
            seen += &format!("{:?}", inbox.try_recv());
            Ok(seen)
        });
    for message in [Red(1), Green(5), Red(7), Green(4), Red(5), Stop] {
        process.send(message).unwrap();
    }
    assert_eq!(process.into_result().unwrap().unwrap(), "5R75Ok(Red(1))");
}

#[watched]
fn each_message_is_looked_at_once() {
    const OTHERS: u32 = 10_000;
    let process = actor::process::spawn(|inbox: &mut Inbox<u32>| {
        let mut looks = 0;
        let found = inbox.select(None, |n| {
            looks += 1;
            if n == OTHERS { Ok(n) } else { Err(n) }
        });
        assert_eq!(found, Ok(OTHERS));
        assert_eq!(looks, OTHERS + 1);
        (0..OTHERS).all(|n| inbox.recv() == Ok(n))
    });
    (0..=OTHERS).for_each(|n| process.send(n).unwrap());
    assert_eq!(process.close_and_join(), Ok(true));
}

#[watched]
fn a_stop_is_heard_by_the_next_receive() {
    let begun = Gate::new();
    let begins = begun.clone();
    let process = actor::process::spawn(move |inbox: &mut Inbox<u32>| {
        begins.open();
        loop {
            if let Err(error) = inbox.recv() {
                return error;
            }
        }
    });
    process.send(1).unwrap();
    begun.wait();
    process.stop();
    assert_eq!(process.join(), Exit::Stopped);
    assert_eq!(process.into_result().unwrap(), RecvError::Stopped);
}

#[watched]
fn a_kill_interrupts_whatever_the_process_does() {
    for works_before in [false, true] {
        let begun = Gate::new();
        let begins = begun.clone();
        let process = actor::process::spawn(move |inbox: &mut Inbox<u32>| {
            if works_before {
                inbox.recv().unwrap();
                begins.open();
                assert!(thread::sleep_interruptible(Duration::from_secs(3600)).is_err());
            } else {
                begins.open();
            }
            inbox.recv()
        });
        if works_before {
            // It waits for the message: then it is woken for it.
            thread::sleep(Duration::from_millis(2));
            process.send(1).unwrap();
        }
        begun.wait();
        process.kill();
        assert_eq!(process.join(), Exit::Killed);
        assert_eq!(process.into_result().unwrap(), Err(RecvError::Interrupted));
    }
}

#[watched]
fn a_process_that_panics_has_failed() {
    let gate = Gate::new();
    let opened = gate.clone();
    let process = actor::process::spawn(move |inbox: &mut Inbox<ReplyTo<u32>>| {
        let _first = inbox.recv();
        opened.wait();
        panic!("oh no");
    });
    let replies: Vec<_> = (0..2)
        .map(|_| process.ask_later(|reply| reply).unwrap())
        .collect();
    gate.open();
    for reply in replies {
        assert_eq!(reply.recv(), Err(AskError::Gone));
    }
    let Exit::Failed(failure) = process.join() else {
        panic!("it has failed")
    };
    assert_eq!(failure.to_string(), "panicked: oh no");
    let result: Result<(), Exit> = process.into_result();
    assert!(result.is_err());
}

#[watched]
fn replies_may_be_kept_and_given_later() {
    let process = actor::process::spawn(|inbox: &mut Inbox<(u32, ReplyTo<u32>)>| {
        let mut kept: Vec<_> = (0..3).map(|_| inbox.recv().unwrap()).collect();
        while let Some((n, reply)) = kept.pop() {
            reply.send(n * 2);
        }
    });
    let replies: Vec<_> = (0..3)
        .map(|n| process.ask_later(|reply| (n, reply)).unwrap())
        .collect();
    let answers: Vec<_> = replies
        .into_iter()
        .map(|reply| reply.recv().unwrap())
        .collect();
    assert_eq!(answers, [0, 2, 4]);
}

#[watched]
fn an_asker_that_has_given_up_is_seen() {
    let gate = Gate::new();
    let blocked = gate.clone();
    let process = actor::process::spawn(move |inbox: &mut Inbox<ReplyTo<u32>>| {
        let reply = inbox.recv().unwrap();
        blocked.wait();
        reply.is_wanted()
    });
    let late = process.ask_timeout(|reply| reply, Duration::from_millis(2));
    assert_eq!(late, Err(AskError::TimedOut));
    gate.open();
    assert_eq!(process.close_and_join(), Ok(false));
}

#[watched]
fn receives_time_out() {
    let late = Gate::new();
    let was_late = late.clone();
    let process = actor::process::spawn(move |inbox: &mut Inbox<u32>| {
        let soon = Duration::from_millis(2);
        assert_eq!(inbox.try_recv(), Err(RecvError::TimedOut));
        assert_eq!(inbox.recv_timeout(soon), Err(RecvError::TimedOut));
        was_late.open();
        inbox.recv()
    });
    late.wait();
    process.send(1).unwrap();
    assert_eq!(process.close_and_join().unwrap(), Ok(1));
}

#[watched]
fn a_process_is_told_when_nobody_can_send_to_it() {
    let process = actor::process::spawn(|inbox: &mut Inbox<u32>| inbox.recv());
    let monitor = process.monitor();
    drop(process);
    assert_eq!(monitor.recv().unwrap(), Exit::Closed);
}

#[watched]
fn a_full_process_has_its_senders_wait() {
    let gate = Gate::new();
    let blocked = gate.clone();
    let process = actor::Builder::new()
        .capacity(2)
        .process(move |inbox: &mut Inbox<u32>| {
            blocked.wait();
            (0..5).map(|_| inbox.recv().unwrap()).collect::<Vec<_>>()
        })
        .unwrap();
    process.send(0).unwrap();
    process.send(1).unwrap();
    assert!(process.try_send(9).unwrap_err().is_full());
    let sender = {
        let process = process.clone();
        thread::spawn(move || (2..5).for_each(|n| process.send(n).unwrap()))
    };
    gate.open();
    sender.join().unwrap();
    assert_eq!(process.into_result(), Ok(vec![0, 1, 2, 3, 4]));
}

#[watched]
fn urgent_messages_are_received_first() {
    let gate = Gate::new();
    let blocked = gate.clone();
    let process = actor::process::spawn(move |inbox: &mut Inbox<u32>| {
        blocked.wait();
        [inbox.recv(), inbox.recv()]
    });
    process.send(1).unwrap();
    process.send_urgent(2).unwrap();
    gate.open();
    assert_eq!(process.close_and_join(), Ok([Ok(2), Ok(1)]));
}
