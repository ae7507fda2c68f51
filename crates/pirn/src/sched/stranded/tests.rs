use super::*;

fn at(call: i64, from: usize) -> Place {
    let call = Some(call);
    Place { call, from }
}

#[test]
fn lines_of_the_kernel_are_read() {
    let line = "232 0x5 0x7f 0x80 0xffffffffffffffff 0x0 0x0 0x7ffd 0x7f12ab\n";
    assert_eq!(parse(line), Some(at(232, 0x7f12ab)));
    let fault = Place {
        call: None,
        from: 0x55,
    };
    assert_eq!(parse("-1 0x7ffd 0x55\n"), Some(fault));
    for none in ["running\n", "", "0\n", "0 7"] {
        assert_eq!(parse(none), None, "{none:?}");
    }
}

#[test]
fn the_place_of_most_is_named() {
    let places = [
        at(libc::SYS_read, 8),
        at(libc::SYS_epoll_wait, 16),
        at(libc::SYS_epoll_wait, 16),
    ];
    let text = text(3, &places);
    assert!(text.starts_with("all 3 carriers"), "{text}");
    assert!(
        text.contains("2 of them in epoll_wait, called from 0x10"),
        "{text}"
    );
    assert!(super::text(2, &[]).contains("all 2 carriers"));
}

#[test]
fn places_have_an_object_and_a_function_if_one_is_known() {
    // SAFETY: a valid name.
    let puts = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"puts".as_ptr()) } as usize;
    let text = origin(puts + 1);
    assert!(
        text.contains("puts in ") && text.contains("libc.so"),
        "{text}"
    );
    assert_eq!(origin(3), "0x3");
    assert_eq!(name(Some(9999)), "the system call 9999");
}

#[test]
fn a_waiting_thread_is_found() {
    let (tell, told) = std::sync::mpsc::channel();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        tell.send(os_thread::id()).unwrap();
        let _ = ended.recv();
    });
    let id = told.recv().unwrap();
    while place(id).is_none_or(|place| place.call != Some(libc::SYS_futex)) {
        std::thread::yield_now();
    }
    drop(end);
    thread.join().unwrap();
}
