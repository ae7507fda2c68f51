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
