use super::*;

#[test]
fn a_running_thread_is_not_blocked_and_uses_time() {
    let (me, before) = (id(), cpu_time(id()));
    assert!(before > 0);
    while cpu_time(me) < before + 1_000_000 {}
    assert!(!is_blocked(me));
}

#[test]
fn a_waiting_thread_is_blocked() {
    let (tell, told) = std::sync::mpsc::channel();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        tell.send(id()).unwrap();
        let _ = ended.recv();
    });
    let other = told.recv().unwrap();
    while !is_blocked(other) {
        std::thread::yield_now();
    }
    drop(end);
    thread.join().unwrap();
}

#[test]
fn an_id_without_a_thread_is_blocked_and_uses_no_time() {
    assert!(is_blocked(u32::MAX));
    assert_eq!(cpu_time(1), 0); // another process
}

#[test]
fn threads_have_the_names_they_were_given() {
    let named = std::thread::Builder::new().name("warp beam".into());
    let name = named.spawn(|| name(id())).unwrap().join().unwrap();
    assert_eq!(name.as_deref(), Some("warp beam"));
    assert_eq!(super::name(u32::MAX), None);
}

#[test]
fn paths_have_all_digits() {
    let mut path = [0; 48];
    path_of(4_194_304, b"/stat", &mut path);
    assert!(path.starts_with(b"/proc/self/task/4194304/stat\0"));
}

#[test]
fn lines_of_the_kernel_are_read() {
    let at = |call, first, stack_pointer, from| {
        Some(InKernel::Blocked(Blocked {
            call,
            first,
            stack_pointer,
            from,
        }))
    };
    let wait = "232 0x5 0x7f 0x80 0xffffffffffffffff 0x0 0x0 0x7ffd 0x7f12ab\n";
    let call = Some(232);
    assert_eq!(in_line(wait), at(call, 5, 0x7ffd, 0x7f12ab));
    assert_eq!(in_line("-1 0x7ffd 0x55\n"), at(None, 0, 0x7ffd, 0x55));
    assert_eq!(in_line("running\n"), Some(InKernel::Running));
    for none in ["", "0\n", "0 7", "0 0x1 0x2"] {
        assert_eq!(in_line(none), None, "{none:?}");
    }
}
