use super::*;

#[test]
fn status_is_parsed_by_whole_names() {
    let status =
        "Name:\tpirn\nVmRSSx:\t9 kB\nVmRSS:\t    2048 kB\nVmPTE:\t      52 kB\nThreads:\t7\n";
    let usage = Usage::parse(status).unwrap();
    assert_eq!(
        usage,
        Usage {
            resident: 2048 * 1024,
            page_tables: 52 * 1024,
            threads: 7
        }
    );
    assert_eq!(usage.memory(), 2100 * 1024);
    assert_eq!(Usage::parse("Name:\tpirn\n"), None);
}

#[test]
fn memory_and_threads_of_both_processes_are_seen() {
    let other = std::os::unix::process::parent_id();
    let before = Usage::with(other).unwrap();
    let (ticked, ticks) = mpsc::channel();
    let (go_on, gone_on) = mpsc::channel::<()>();
    let sleeper = std::thread::spawn(move || gone_on.recv());
    let touched = std::hint::black_box(vec![1_u8; 64 << 20]);
    let sampler = Sampler::start(other, move || ticked.send(()).unwrap_or(())).unwrap();
    ticks.recv().unwrap();
    let peak = sampler.finish();
    assert!(peak.resident >= touched.len() as u64, "{peak:?}");
    assert!(
        peak.threads >= 4,
        "{peak:?}: this, the sleeper, the sampler, and the other process's"
    );
    assert!(peak.page_tables > 0 && before.resident > 0);
    drop(go_on);
    let _ = sleeper.join();
}
