use super::*;

#[test]
fn places_have_an_object_and_a_function_if_one_is_known() {
    // SAFETY: a valid name.
    let qsort = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"qsort".as_ptr()) } as usize;
    let text = origin(qsort + 1);
    assert!(
        text.contains("qsort in ") && text.contains("libc.so"),
        "{text}"
    );
    assert_eq!(origin(3), "0x3");
    assert_eq!(name(Some(9999)), "the system call 9999");
}

#[test]
fn a_waiting_thread_is_found() {
    if !pirn_testing::kernel_tells_calls() {
        return println!(
            "skipped: the kernel knows the emulator's system calls, not this program's"
        );
    }
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
    assert_eq!(describe(&place(id).unwrap()), "futex");
    drop(end);
    thread.join().unwrap();
}

#[test]
fn descriptors_are_named_with_their_files() {
    let place = |call, first| Blocked {
        call: Some(call),
        first,
        stack_pointer: 0,
        from: 0,
    };
    let (reader, _writer) = std::io::pipe().unwrap();
    let fd = std::os::fd::AsRawFd::as_raw_fd(&reader);
    let text = describe(&place(libc::SYS_read, fd as usize));
    let head = format!("read on descriptor {fd} (pipe:[");
    assert!(text.starts_with(&head), "{text}");
    let text = describe(&place(libc::SYS_read, usize::MAX));
    assert_eq!(text, "read on descriptor -1");
}

fn at(call: i64, from: usize) -> Blocked {
    Blocked {
        call: Some(call),
        first: 3,
        stack_pointer: 0x7ffd,
        from,
    }
}

const ALL: Spares = Spares { in_use: 1, most: 1 };

#[test]
fn the_place_of_most_is_named() {
    let places = [
        at(libc::SYS_read, 8),
        at(libc::SYS_epoll_pwait, 16),
        at(libc::SYS_epoll_pwait, 16),
    ];
    let text = exhausted_text(3, &places, 1_200_000_000, &ALL);
    let head = "all 3 carriers have been blocked in the kernel for 1.2 s";
    assert!(text.starts_with(head), "{text}");
    assert!(
        text.contains("2 of them in epoll_pwait, called from 0x10"),
        "{text}"
    );
    assert!(text.contains("PIRN_SPARE_CARRIERS=1"), "{text}");
}

#[test]
fn threads_that_compute_are_counted() {
    let text = exhausted_text(3, &[at(libc::SYS_read, 8)], 1_000_000_000, &ALL);
    let counts = "1 blocked in the kernel, 2 computing";
    assert!(text.contains(counts), "{text}");
    let text = super::exhausted_text(2, &[], 1_000_000_000, &ALL);
    assert!(!text.contains("System calls"), "{text}");
}

#[test]
fn lack_of_memory_is_another_reason() {
    let none = Spares { in_use: 0, most: 4 };
    let text = exhausted_text(1, &[], 1_000_000_000, &none);
    assert!(text.contains("could be started"), "{text}");
}
