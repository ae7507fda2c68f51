//! Pipes, and the standard streams of a child process.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::process::Stdio;
use std::sync::Mutex;

use crate::common::{
    block_then, child, crowd, crowd_size, each_byte_once, many, most_carriers, on_virtual, pattern,
    sys, watched,
};
use pirn::thread;

#[watched]
fn a_pipe_carries_large_data() {
    let data = pattern(8 << 20);
    let (mut reader, mut writer) = io::pipe().unwrap();
    thread::scope(|scope| {
        let data = &data;
        scope.spawn(move || writer.write_all(data).unwrap());
        scope.spawn(move || {
            let mut received = Vec::new();
            reader.read_to_end(&mut received).unwrap();
            assert!(&received == data, "damaged");
        });
    });
}

#[watched]
fn one_write_call_writes_everything() {
    let data = pattern(1 << 20);
    let (mut reader, writer) = io::pipe().unwrap();
    thread::scope(|scope| {
        let data = &data;
        scope.spawn(move || {
            assert_eq!(sys::write(writer.as_raw_fd(), data).unwrap(), data.len());
        });
        scope.spawn(move || {
            let mut received = Vec::new();
            reader.read_to_end(&mut received).unwrap();
            assert!(&received == data, "damaged");
        });
    });
}

#[watched]
fn many_readers_of_one_pipe_get_each_byte_once() {
    let (reader, writer) = io::pipe().unwrap();
    each_byte_once(&reader, writer);
}

#[watched]
fn short_writes_of_many_are_not_mixed() {
    // Up to PIPE_BUF (4096) bytes a write is atomic.
    const LINE: usize = 1000;
    let (reader, writer) = io::pipe().unwrap();
    let reading = thread::spawn(move || {
        let mut counts = vec![0; crowd_size()];
        for line in BufReader::new(reader).lines() {
            let line = line.unwrap();
            let number: usize = line[..8].parse().unwrap();
            assert_eq!(line.len(), LINE - 1);
            assert!(line[8..].bytes().all(|byte| byte == b'.'));
            counts[number] += 1;
        }
        counts
    });
    crowd(|i| {
        let line = format!("{i:08}{:.<rest$}\n", "", rest = LINE - 9);
        for _ in 0..10 {
            assert_eq!((&writer).write(line.as_bytes()).unwrap(), LINE);
        }
    });
    drop(writer);
    assert_eq!(reading.join().unwrap(), vec![10; crowd_size()]);
}

#[watched]
fn blocked_readers_leave_the_carriers_free() {
    let (reader, writer) = io::pipe().unwrap();
    block_then(
        many(),
        |_| assert_eq!((&reader).read(&mut [0]).unwrap(), 1),
        || (&writer).write_all(&vec![1; many()]).unwrap(),
    );
}

#[watched]
fn blocked_writers_leave_the_carriers_free() {
    let (mut reader, writer) = io::pipe().unwrap();
    const CHUNK: usize = 3000;
    block_then(
        many(),
        |_| (&writer).write_all(&[1; CHUNK]).unwrap(),
        || reader.read_exact(&mut vec![0; many() * CHUNK]).unwrap(),
    );
}

#[watched]
fn the_end_comes_when_the_last_writer_closes() {
    let (reader, writer) = io::pipe().unwrap();
    let second = writer.try_clone().unwrap();
    block_then(
        many(),
        |_| assert_eq!((&reader).read(&mut [0]).unwrap(), 0),
        move || {
            drop(writer);
            thread::yield_now();
            drop(second);
        },
    );
}

#[watched]
fn blocked_writers_fail_when_the_last_reader_closes() {
    let (reader, writer) = io::pipe().unwrap();
    block_then(
        many(),
        |_| {
            let error = (&writer).write_all(&[0; 1 << 17]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        },
        move || drop(reader),
    );
}

#[watched]
fn non_blocking_pipes_do_not_block() {
    on_virtual(|| {
        let (mut reader, mut writer) = io::pipe().unwrap();
        sys::set_nonblocking(&reader, true);
        sys::set_nonblocking(&writer, true);
        let error = reader.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        let error = loop {
            if let Err(error) = writer.write(&[0; 4096]) {
                break error;
            }
        };
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
    });
}

#[watched]
fn both_kinds_of_thread_share_a_pipe() {
    let data = pattern(1 << 20);
    for virtual_reads in [true, false] {
        let (mut reader, mut writer) = io::pipe().unwrap();
        let (to_send, expected) = (data.clone(), data.clone());
        let send = move || writer.write_all(&to_send).unwrap();
        let receive = move || {
            let mut received = Vec::new();
            reader.read_to_end(&mut received).unwrap();
            assert!(received == expected, "damaged");
        };
        if virtual_reads {
            let platform = std::thread::spawn(send);
            on_virtual(receive);
            platform.join().unwrap();
        } else {
            let platform = std::thread::spawn(receive);
            on_virtual(send);
            platform.join().unwrap();
        }
    }
}

#[watched]
fn io_copy_from_a_pipe_to_a_socket_parks() {
    // `std::io::copy` leaves this to the kernel (`splice`), which blocks on both ends.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let data = pattern(1 << 20);
    let lines: Vec<_> = (0..4 * most_carriers())
        .map(|_| {
            let (reader, writer) = io::pipe().unwrap();
            let client = TcpStream::connect(address).unwrap();
            let (server, _) = listener.accept().unwrap();
            let ends = Mutex::new(Some((writer, server)));
            (Mutex::new(Some((reader, client))), ends)
        })
        .collect();
    block_then(
        lines.len(),
        |i| {
            let (mut reader, mut client) = lines[i].0.lock().unwrap().take().unwrap();
            let count = io::copy(&mut reader, &mut client).unwrap();
            assert_eq!(count, data.len() as u64);
        },
        || {
            for (_, ends) in &lines {
                let (mut writer, mut server) = ends.lock().unwrap().take().unwrap();
                thread::scope(|scope| {
                    let data = &data;
                    scope.spawn(move || writer.write_all(data).unwrap());
                    let mut received = vec![0; data.len()];
                    server.read_exact(&mut received).unwrap();
                    assert!(&received == data, "damaged");
                });
            }
        },
    );
}

#[watched]
fn stdin_parks_its_readers() {
    let count = 4 * most_carriers();
    if child::is_here() {
        return block_then(
            count,
            |_| {
                let mut line = String::new();
                io::stdin().read_line(&mut line).unwrap();
                println!("got {line}");
            },
            || println!("all wait"),
        );
    }
    let mut command = child::command();
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("all wait")));
    for i in 0..count {
        writeln!(stdin, "line {i}").unwrap();
    }
    let mut got: Vec<_> = lines
        .map_while(Result::ok)
        .filter(|line| line.starts_with("got line "))
        .collect();
    assert!(child.wait().unwrap().success());
    got.sort_unstable();
    got.dedup();
    assert_eq!(got.len(), count);
}

#[watched]
fn a_held_stdout_lock_keeps_the_others_out() {
    if child::is_here() {
        return crowd(|i| {
            for _ in 0..10 {
                // Reentrant, so it must tell virtual threads on one carrier apart.
                let mut out = io::stdout().lock();
                write!(out, "\n<{i:08}").unwrap();
                out.flush().unwrap();
                thread::yield_now();
                writeln!(io::stdout(), "{i:08}>").unwrap();
            }
        });
    }
    let output = child::run(&[]);
    assert!(output.status.success(), "{}", child::report(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let marked: Vec<_> = text.lines().filter(|line| line.contains('<')).collect();
    assert_eq!(marked.len(), 10 * crowd_size());
    for line in marked {
        let inner = line
            .strip_prefix('<')
            .and_then(|line| line.strip_suffix('>'));
        let (first, second) = inner.expect(line).split_at(8);
        assert_eq!(first, second);
    }
}
