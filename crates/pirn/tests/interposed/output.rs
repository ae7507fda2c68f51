//! Formatted output, terminals, asynchronous requests.

use std::ffi::CString;
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::{io, mem, ptr};

use libc::{aiocb, c_char, c_int, c_void, sigevent, timespec};

use super::{checked, on_more_than_carriers};
use crate::common::kernel::has_rseq;
use crate::common::processor::Arguments;
use crate::common::{most_carriers, on_virtual, pipes, sys, watched};

unsafe extern "C" {
    fn dprintf(fd: c_int, format: *const c_char, ...) -> c_int;
    fn __dprintf_chk(fd: c_int, flag: c_int, format: *const c_char, ...) -> c_int;
    fn vdprintf(fd: c_int, format: *const c_char, arguments: *mut c_void) -> c_int;
    fn __vdprintf_chk(
        fd: c_int,
        flag: c_int,
        format: *const c_char,
        arguments: *mut c_void,
    ) -> c_int;
    fn aio_suspend64(requests: *const *mut aiocb, count: c_int, time: *const timespec) -> c_int;
    fn lio_listio64(
        mode: c_int,
        requests: *const *mut aiocb,
        count: c_int,
        event: *mut sigevent,
    ) -> c_int;
}

/// Returns the text that `write` writes to its descriptor.
fn text(write: impl FnOnce(RawFd)) -> String {
    let (mut reader, writer) = io::pipe().unwrap();
    write(writer.as_raw_fd());
    drop(writer);
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    text
}

#[watched]
fn formatting_takes_arguments_of_all_kinds() {
    // More integers and more floating-point numbers than there are registers for them.
    const EXPECTED: &str = "1 2 3 4 5 6 7 8 text 0.5 1.5 2.5 3.5 4.5 5.5 6.5 7.5 8.5 9.5\n";
    let format = c"%d %d %d %d %ld %d %d %d %s %.1f %.1f %.1f %.1f %.1f %.1f %.1f %.1f %.1f %.1f\n";
    let f = move || {
        for checks in [false, true] {
            let text = text(|fd| {
                let (format, text) = (format.as_ptr(), c"text".as_ptr());
                macro_rules! print {
                    ($print:path, $($first:expr),*) => {
                        $print($($first,)* format, 1, 2, 3, 4, 5i64, 6, 7, 8, text,
                            0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5)
                    };
                }
                // SAFETY: arguments as the format has them.
                let count = unsafe {
                    if checks {
                        print!(__dprintf_chk, fd, 1)
                    } else {
                        print!(dprintf, fd)
                    }
                };
                assert_eq!(count as usize, EXPECTED.len());
            });
            assert_eq!(text, EXPECTED);
        }
    };
    f();
    on_virtual(f);
}

#[watched]
fn formatting_takes_lists_of_arguments() {
    let f = || {
        let number = 42u64;
        let list = || Arguments::of((&raw const number).cast());
        // SAFETY: an argument as the format has it.
        let text = text(|fd| unsafe {
            assert_eq!(vdprintf(fd, c"%lu".as_ptr(), list().list()), 2);
            assert_eq!(__vdprintf_chk(fd, 1, c"%lu".as_ptr(), list().list()), 2);
        });
        assert_eq!(text, "4242");
        // SAFETY: an argument as the format has it.
        let result = unsafe { vdprintf(-1, c"%lu".as_ptr(), list().list()) };
        assert_eq!(checked(result), Err(libc::EBADF));
    };
    f();
    on_virtual(f);
}

#[watched]
fn formatted_output_to_a_full_pipe_waits() {
    let pipes = full_pipes();
    let (printing, reading) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let long = CString::new(vec![b'x'; 5000]).unwrap();
    let print = || {
        let (_, writer) = &pipes[printing.fetch_add(1, Ordering::SeqCst)];
        // SAFETY: a format with one text.
        let count = unsafe { dprintf(writer.as_raw_fd(), c"%s".as_ptr(), long.as_ptr()) };
        assert_eq!(checked(count), Ok(5000));
    };
    let read = || {
        let (reader, _) = &pipes[reading.fetch_add(1, Ordering::SeqCst)];
        let mut reader = reader;
        reader.read_exact(&mut vec![0; PIPE + 5000]).unwrap();
    };
    on_more_than_carriers(print, read);
}

const PIPE: usize = 64 << 10;

/// Returns a full pipe for each thread of `on_more_than_carriers`.
fn full_pipes() -> Vec<(PipeReader, PipeWriter)> {
    let pipes = pipes(most_carriers() + 5);
    for (_, writer) in &pipes {
        let mut writer = writer;
        writer.write_all(&[0; PIPE]).unwrap();
    }
    pipes
}

#[watched]
fn terminals_are_drained_and_set() {
    let f = || {
        // SAFETY: descriptors of our own, and room for settings.
        unsafe {
            let [mut master, mut slave] = [0; 2];
            let none = ptr::null_mut();
            let opened = libc::openpty(&mut master, &mut slave, none, ptr::null(), ptr::null());
            assert_eq!(checked(opened), Ok(0));
            let [_master, slave] = [master, slave].map(|fd| sys::own(fd).unwrap());
            let fd = slave.as_raw_fd();
            let mut settings: libc::termios = mem::zeroed();
            assert_eq!(libc::tcgetattr(fd, &mut settings), 0);
            for when in [libc::TCSANOW, libc::TCSADRAIN, libc::TCSAFLUSH] {
                settings.c_lflag ^= libc::ECHO;
                assert_eq!(checked(libc::tcsetattr(fd, when, &settings)), Ok(0));
                let mut found: libc::termios = mem::zeroed();
                assert_eq!(libc::tcgetattr(fd, &mut found), 0);
                assert_eq!(found.c_lflag, settings.c_lflag);
            }
            assert_eq!(checked(libc::tcdrain(fd)), Ok(0));
            assert_eq!(checked(libc::tcsendbreak(fd, 0)), Ok(0));
            let (reader, _writer) = io::pipe().unwrap();
            assert_eq!(
                checked(libc::tcdrain(reader.as_raw_fd())),
                Err(libc::ENOTTY)
            );
            let refused = libc::tcsetattr(reader.as_raw_fd(), libc::TCSADRAIN, &settings);
            assert_eq!(checked(refused), Err(libc::ENOTTY));
        }
    };
    f();
    on_virtual(f);
}

/// Returns a request to read one byte of a pipe into `byte`.
fn request(reader: &PipeReader, byte: &mut u8) -> aiocb {
    // SAFETY: all zeros is a valid request.
    let mut request: aiocb = unsafe { mem::zeroed() };
    request.aio_fildes = reader.as_raw_fd();
    request.aio_buf = ptr::from_mut(byte).cast();
    request.aio_nbytes = 1;
    request.aio_lio_opcode = libc::LIO_READ;
    request.aio_sigevent.sigev_notify = libc::SIGEV_NONE;
    request
}

#[watched]
fn waiting_for_asynchronous_requests() {
    if !has_rseq() {
        return;
    }
    // libc has 20 threads for them: requests that wait for a thread go on when others are done.
    let pipes = Mutex::new(pipes(4 * (most_carriers() + 5)));
    let (begun, writers) = mpsc::channel();
    let writers = Mutex::new(writers);
    let suspend = |wait: &dyn Fn(*const *mut aiocb) -> c_int| {
        let (reader, writer) = pipes.lock().unwrap().pop().unwrap();
        begun.send(writer).unwrap();
        let mut byte = 0;
        let mut request = request(&reader, &mut byte);
        let list = [&raw mut request];
        assert_eq!(checked(wait(list.as_ptr())), Ok(0));
        // SAFETY: a request that is done.
        unsafe {
            assert_eq!(libc::aio_error(&request), 0);
            assert_eq!(libc::aio_return(&mut request), 1);
        }
        assert_eq!(byte, b'x');
    };
    // SAFETY: a request that stays where it is until it is done; so below.
    let begin = |list: *const *mut aiocb| unsafe { assert_eq!(libc::aio_read(*list), 0) };
    let waits: [&(dyn Fn(*const *mut aiocb) -> c_int + Sync); 4] = [
        &|list| {
            begin(list);
            // SAFETY: a request that stays where it is until it is done; so below.
            unsafe { libc::aio_suspend(list.cast(), 1, ptr::null()) }
        },
        &|list| {
            begin(list);
            // SAFETY: a request that stays where it is until it is done; so below.
            unsafe { aio_suspend64(list, 1, ptr::null()) }
        },
        // SAFETY: a request that stays where it is until it is done; so below.
        &|list| unsafe { libc::lio_listio(libc::LIO_WAIT, list, 1, ptr::null_mut()) },
        // SAFETY: a request that stays where it is until it is done; so below.
        &|list| unsafe { lio_listio64(libc::LIO_WAIT, list, 1, ptr::null_mut()) },
    ];
    for wait in waits {
        let release = || {
            let mut writer = writers.lock().unwrap().recv().unwrap();
            writer.write_all(b"x").unwrap();
        };
        on_more_than_carriers(|| suspend(wait), release);
    }
}
