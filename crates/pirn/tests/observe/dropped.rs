//! Events that are lost: a recording and the metric say the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use crate::common::watched;
use pirn::events::{self, Recorder};
use pirn::thread::{self, JoinHandle};
use pirn_events::Recording;

/// Keeps the least that can be kept, and has threads yield until the result says that it is over.
fn overflow() -> (Arc<AtomicBool>, Vec<JoinHandle<()>>) {
    Recorder::new().memory(0).start().unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let yields = |_| {
        let over = Arc::clone(&over);
        thread::spawn(move || {
            while !over.load(SeqCst) {
                thread::yield_now();
            }
        })
    };
    (Arc::clone(&over), (0..3).map(yields).collect())
}

fn end((over, threads): (Arc<AtomicBool>, Vec<JoinHandle<()>>)) {
    over.store(true, SeqCst);
    threads.into_iter().for_each(|it| it.join().unwrap());
}

fn read(bytes: &[u8]) -> Recording {
    let recording = Recording::read(&mut &bytes[..]).unwrap();
    assert!(recording.complete);
    recording
}

#[watched(alone)]
fn events_that_a_recording_loses_are_counted() {
    let before = pirn::metrics::snapshot()["events_dropped"];
    let threads = overflow();
    let mut lost = 0;
    while lost < 1000 {
        let mut bytes = Vec::new();
        events::record(Duration::from_millis(20), &mut bytes).unwrap();
        lost += read(&bytes).lost;
        assert_eq!(pirn::metrics::snapshot()["events_dropped"], before + lost);
    }
    end(threads);
    let text = pirn::metrics::snapshot().to_prometheus();
    let line = format!("\npirn_events_dropped_total {}\n", before + lost);
    assert!(text.contains(&line), "{text}");
}

/// Older events make way for newer ones: that is no loss, however often the last ones are written.
#[watched(alone)]
fn keeping_the_last_events_loses_none() {
    let threads = overflow();
    let kept = || {
        let mut bytes = Vec::new();
        events::write(&mut bytes).unwrap();
        read(&bytes)
    };
    while kept().lost < 10_000 {
        thread::yield_now();
    }
    end(threads);
    // While nothing is written, nothing can be lost.
    let before = pirn::metrics::snapshot()["events_dropped"];
    for _ in 0..3 {
        assert!(
            kept().lost >= 10_000,
            "what is not there any more is told to the reader"
        );
    }
    assert_eq!(pirn::metrics::snapshot()["events_dropped"], before);
}

/// To ask for what is kept, where nothing is, does not keep events from being recorded later.
#[watched(alone)]
fn a_recording_after_none_were_kept_has_events() {
    let mut bytes = Vec::new();
    events::write(&mut bytes).unwrap();
    thread::spawn(|| ()).join().unwrap();
    events::write(&mut bytes).unwrap();
    let over = AtomicBool::new(false);
    let record = || {
        let mut bytes = Vec::new();
        events::record(Duration::from_millis(20), &mut bytes).unwrap();
        read(&bytes)
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(SeqCst) {
                thread::yield_now();
            }
        });
        // On a busy machine no carrier may run for so short a time.
        while record().carriers.is_empty() {}
        over.store(true, SeqCst);
    });
}
