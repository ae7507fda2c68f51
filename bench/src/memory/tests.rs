use super::*;

#[test]
fn fields_are_found_by_their_whole_name() {
    let status = "VmRSSX:\t 1 kB\nVmRSS:\t   12345 kB\nVmPTE:\t 4 kB\nThreads:\t7\n";
    assert_eq!(kib_field(status, "VmRSS").unwrap(), 12345);
    assert_eq!(number_field(status, "Threads").unwrap(), 7);
    let missing = kib_field(status, "VmR").unwrap_err().to_string();
    assert!(missing.contains("VmR"), "{missing}");
}

#[test]
fn touched_memory_shows() {
    let before = Footprint::of(std::process::id()).unwrap();
    let touched = black_box(vec![1u8; 64 << 20]);
    let growth = Footprint::of(std::process::id()).unwrap().since(before);
    // Other tests free memory meanwhile, but not as much.
    assert!(growth.resident > 32 << 20, "{growth:?}");
    drop(touched);
}

#[test]
fn what_no_machine_has_is_refused_with_both_numbers() {
    let error = ensure_available(1 << 60).unwrap_err().to_string();
    assert!(
        error.contains("1099511627776 MiB") && error.contains("available"),
        "{error}"
    );
    ensure_available(0).unwrap();
}
