//! The worst moments: when nothing else works any more, the server does.

use std::fs;
use std::hint;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use super::target::{Target, ask, be_told, connect, socket_of, until, usual_folder};
#[cfg(feature = "dump")]
use super::target::{dump_of, functions_of};
use crate::common::{child, watched};
use pirn::thread;

fn answers(target: &Target) {
    let answer = ask(target, "version");
    assert!(answer.starts_with("ok text\n"), "{answer}");
    #[cfg(feature = "dump")]
    has_the_parked_thread(target);
}

/// Waits until a dump has the thread that is parked all the time, with its whole stack.
#[cfg(feature = "dump")]
fn has_the_parked_thread(target: &Target) {
    let waits = |it: &pirn_dump::Thread| it.state == pirn_dump::State::Waiting;
    let functions = until(|| functions_of(&dump_of(target.pid()), waits).pop());
    let parks = functions.iter().any(|name| name.contains("park"));
    assert!(parks, "{functions:?}");
}

#[watched]
fn it_works_when_descriptors_have_run_out() {
    if child::is_here() {
        let mut open = Vec::new();
        return be_told(|what| {
            open.clear();
            if what == "exhaust" {
                let limit = libc::rlimit {
                    rlim_cur: 64,
                    rlim_max: 64,
                };
                // SAFETY: a limit.
                assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
                while let Ok(file) = fs::File::open("/dev/null") {
                    open.push(file);
                }
            }
            open.len().to_string()
        });
    }
    let mut target = Target::start(&[], "");
    let opened: usize = target.tell("exhaust").parse().unwrap();
    assert!(opened > 10, "{opened} were opened");
    answers(&target);
    answers(&target);
    target.tell("release");
    target.finish();
}

/// Lets this process have so much more memory to write to than it has.
#[cfg(feature = "dump")]
fn limit_memory(beyond: u64) {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let (_, data) = status.split_once("VmData:").unwrap();
    let kib: u64 = data.split_whitespace().next().unwrap().parse().unwrap();
    let limit = libc::rlimit {
        rlim_cur: (kib << 10) + beyond,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: a limit.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_DATA, &limit) }, 0);
}

/// A process without memory for a dump says so, and lives.
#[watched]
#[cfg(feature = "dump")]
fn memory_that_is_short_is_no_end() {
    if child::is_here() {
        return be_told(|what| {
            // The server's threads need some.
            limit_memory(if what == "short" { 8 << 20 } else { 1 << 40 });
            String::new()
        });
    }
    let mut target = Target::start(&[], "");
    answers(&target);
    target.tell("short");
    for _ in 0..3 {
        let answer = ask(&target, "dump");
        assert!(
            answer.contains("the process has no memory for this dump"),
            "{answer}"
        );
    }
    target.tell("enough");
    answers(&target);
    target.finish();
}

#[watched]
fn it_works_while_all_carriers_compute() {
    for (preempt, spares) in [("10", "16"), ("0", "0")] {
        if child::is_here() {
            let over = Arc::new(AtomicBool::new(false));
            let mut computing = Vec::new();
            return be_told(|_| {
                for _ in 0..4 {
                    let over = Arc::clone(&over);
                    let body = move || {
                        while !over.load(SeqCst) {
                            hint::spin_loop();
                        }
                    };
                    computing.push(thread::spawn(body));
                }
                "".into()
            });
        }
        let settings = [
            ("PIRN_PARALLELISM", "2"),
            ("PIRN_PREEMPT", preempt),
            ("PIRN_SPARE_CARRIERS", spares),
        ];
        let mut target = Target::start(&settings, "");
        target.tell("compute");
        answers(&target);
        // They would compute for ever.
        target.kill();
    }
}

#[watched]
fn it_works_while_threads_fight_for_malloc() {
    if child::is_here() {
        let mut busy = Vec::new();
        return be_told(|_| {
            for _ in 0..3 {
                busy.push(std::thread::spawn(|| {
                    loop {
                        // SAFETY: takes the lock of each arena in turn.
                        unsafe { libc::malloc_trim(0) };
                    }
                }));
            }
            String::new()
        });
    }
    let mut target = Target::start(&[], "");
    target.tell("lock");
    answers(&target);
    answers(&target);
    target.kill();
}

#[watched]
fn a_stopped_process_answers_when_it_goes_on() {
    if child::is_here() {
        return super::target::be_target();
    }
    let target = Target::start(&[], "");
    let signal = |signal| {
        // SAFETY: no pointers.
        assert_eq!(unsafe { libc::kill(target.pid() as i32, signal) }, 0);
    };
    until(|| super::target::monitor_of(target.pid())); // It gives itself its name.
    signal(libc::SIGSTOP);
    super::target::signal(target.pid());
    assert_eq!(socket_of(target.pid()), None);
    signal(libc::SIGCONT);
    until(|| socket_of(target.pid()));
    target.finish();
}

#[watched]
fn a_client_that_says_nothing_holds_up_nobody() {
    if child::is_here() {
        return super::target::be_target();
    }
    let target = Target::start(&[], "");
    // As many as are served at a time. On a busy machine, the first may have been sent away before
    // the last has come: then all come again.
    let silent: Vec<_> = until(|| {
        until(|| (target.threads("pirn-observe") <= 1).then_some(()));
        let mut silent: Vec<_> = (0..3)
            .map(|_| connect(target.pid(), &usual_folder()))
            .collect();
        // Half a request is not answered.
        silent[0].write_all(b"pirn 1 ver").unwrap();
        assert!(ask(&target, "version").starts_with("ok "));
        silent.push(connect(target.pid(), &usual_folder()));
        let begin = Instant::now();
        until(|| {
            let all = target.threads("pirn-observe") == 5;
            (all || begin.elapsed() > Duration::from_secs(2)).then_some(())
        });
        // The next is sent away at once.
        let answer = ask(&target, "version");
        (answer == "error 4 clients are being served already\n").then_some(silent)
    });
    // They are sent away in the end.
    for stream in silent {
        assert_eq!(read_all(stream), "error no request within two seconds\n");
    }
    answers(&target);
    target.finish();
}

fn read_all(mut stream: UnixStream) -> String {
    let mut text = String::new();
    std::io::Read::read_to_string(&mut stream, &mut text).unwrap();
    text
}

#[watched]
fn a_client_that_hangs_up_is_forgotten() {
    if child::is_here() {
        return super::target::be_target();
    }
    let target = Target::start(&[], "");
    for _ in 0..100 {
        drop(connect(target.pid(), &usual_folder()));
    }
    until(|| {
        ask(&target, "version")
            .starts_with("ok text\n")
            .then_some(())
    });
    until(|| (target.threads("pirn-observe") == 1).then_some(()));
    target.finish();
}

#[watched]
fn a_program_that_closes_everything_still_answers() {
    if child::is_here() {
        return be_told(|_| {
            // SAFETY: nothing here needs any of them.
            unsafe { libc::close_range(3, u32::MAX, 0) };
            String::new()
        });
    }
    let mut target = Target::start(&[], "");
    answers(&target);
    target.tell("close");
    answers(&target);
    target.finish();
}
