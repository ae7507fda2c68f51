use super::*;

#[test]
fn this_process_has_threads_and_memory_and_takes_time() {
    let pid = std::process::id();
    let before = processor_time(pid).unwrap();
    let (peak, after) = watched(pid, || {
        loop {
            let now = processor_time(pid).unwrap();
            if now.saturating_sub(before) > Duration::from_millis(100) {
                return now;
            }
        }
    });
    assert!(after > before);
    assert!(peak.threads >= 2 && peak.mib() > 0.1);
}
