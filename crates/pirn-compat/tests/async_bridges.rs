//! Virtual threads and the async runtimes `tokio` and `smol`: each waits for the other.
//!
//! The runtimes run on their own platform threads, with their own pollers and timers; virtual
//! threads make futures of theirs and block on them, and tasks of theirs await virtual threads.

use std::future::{IntoFuture, pending};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use pirn::thread::{self, Interrupted, JoinHandle};
use pirn::{block_on, block_on_interruptible};
use pirn_compat::{self as common, Latch, NEVER, THREADS, on_threads, watched};
use smol::Executor;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

/// Shorter than anybody's patience.
const SHORT: Duration = Duration::from_millis(10);

fn tokio() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

/// A thread that ends when the sender is used or dropped.
fn held(value: usize) -> (oneshot::Sender<()>, JoinHandle<usize>) {
    let (release, released) = oneshot::channel::<()>();
    let handle = thread::spawn(move || {
        let _ = block_on(released);
        value
    });
    (release, handle)
}

/// Echoes on the runtime's threads, and gives its address.
fn serve_echoes(runtime: &Runtime) -> std::net::SocketAddr {
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    runtime.spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let (mut reader, mut writer) = stream.split();
                tokio::io::copy(&mut reader, &mut writer).await.unwrap();
            });
        }
    });
    address
}

/// Asks the echo, in three steps with a timer among them.
async fn ask(address: std::net::SocketAddr, number: usize) -> usize {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut bytes = number.to_ne_bytes();
    stream.write_all(&bytes[..3]).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    stream.write_all(&bytes[3..]).await.unwrap();
    bytes.fill(0);
    stream.read_exact(&mut bytes).await.unwrap();
    usize::from_ne_bytes(bytes)
}

#[watched]
fn tokio_sockets_and_timers_in_block_on() {
    let runtime = tokio();
    let address = serve_echoes(&runtime);
    on_threads(THREADS, |index| {
        let _context = runtime.enter();
        assert_eq!(block_on(ask(address, index)), index);
    });
}

#[watched]
fn tokio_tasks_in_block_on() {
    let runtime = tokio();
    let address = serve_echoes(&runtime);
    on_threads(THREADS, |index| {
        let task = runtime.spawn(ask(address, index));
        assert_eq!(block_on(task).unwrap(), index);
        let task: tokio::task::JoinHandle<()> =
            runtime.spawn(async { resume_unwind(Box::new("torn")) });
        assert!(block_on(task).unwrap_err().is_panic());
    });
}

/// Tokio's own way parks virtual threads as well: by a condition variable of `std`'s.
#[watched]
fn tokio_handles_block_on_virtual_threads() {
    let runtime = tokio();
    let address = serve_echoes(&runtime);
    let handle = runtime.handle();
    on_threads(THREADS, |index| {
        assert_eq!(handle.block_on(ask(address, index)), index);
        let task = handle.block_on(async { tokio::spawn(ask(address, index)).await });
        assert_eq!(task.unwrap(), index);
    });
}

#[watched]
fn tokio_channels_wake_parked_threads() {
    let waiting = Latch::new(THREADS);
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| oneshot::channel()).unzip();
    thread::scope(|scope| {
        let handles: Vec<_> = receivers
            .into_iter()
            .map(|receiver| {
                let waiting = &waiting;
                scope.spawn(move || {
                    waiting.arrive();
                    block_on(receiver).unwrap()
                })
            })
            .collect();
        waiting.wait();
        for (index, sender) in senders.into_iter().enumerate() {
            sender.send(index).unwrap();
        }
        for (index, handle) in handles.into_iter().enumerate() {
            assert_eq!(handle.join().unwrap(), index);
        }
    });
}

/// The future is dropped in the end: its sender sees that.
#[watched]
fn an_interrupt_cancels_a_tokio_future() {
    let runtime = tokio();
    on_threads(THREADS, |_| {
        let (mut sender, receiver) = oneshot::channel::<()>();
        let handle = runtime.handle().clone();
        let waiting = thread::spawn(move || {
            let _context = handle.enter();
            block_on_interruptible(tokio::time::timeout(NEVER, receiver)).map(drop)
        });
        waiting.thread().interrupt();
        block_on(sender.closed());
        assert_eq!(waiting.join().unwrap(), Err(Interrupted));
    });
}

#[watched]
fn tokio_tasks_await_virtual_threads() {
    let runtime = tokio();
    runtime.block_on(async {
        let tasks: Vec<_> = (0..THREADS)
            .map(|index| {
                tokio::spawn(async move {
                    let (release, handle) = held(index);
                    let failing = thread::spawn(move || resume_unwind(Box::new(index)));
                    let result: thread::Result<()> = failing.await;
                    assert_eq!(result.unwrap_err().downcast_ref(), Some(&index));
                    tokio::spawn(async { release.send(()).unwrap() });
                    handle.await.unwrap()
                })
            })
            .collect();
        for (index, task) in tasks.into_iter().enumerate() {
            assert_eq!(task.await.unwrap(), index);
        }
    });
}

#[watched]
fn tokio_tasks_select_among_threads_and_timers() {
    let runtime = tokio();
    let select = |index| async move {
        let (release, handle) = held(index);
        let mut future = handle.into_future();
        let start = Instant::now();
        tokio::select! {
            _ = &mut future => panic!("it has not been released"),
            () = tokio::time::sleep(SHORT) => assert!(start.elapsed() >= SHORT),
        }
        release.send(()).unwrap();
        let result = tokio::select! {
            result = &mut future => result,
            () = tokio::time::sleep(NEVER) => panic!("it has been released"),
        };
        assert_eq!(result.unwrap(), index);
        // Dropped by the timeout, the future detaches the thread.
        let (release, handle) = held(index);
        let thread = handle.thread().clone();
        assert!(tokio::time::timeout(SHORT, handle).await.is_err());
        assert!(!thread.is_interrupted());
        release.send(()).unwrap();
    };
    runtime.block_on(async {
        let tasks: Vec<_> = (0..THREADS)
            .map(|index| tokio::spawn(select(index)))
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
}

#[watched]
fn an_aborted_tokio_task_leaves_the_thread_alone() {
    let runtime = tokio();
    let (sender, receiver) = std::sync::mpsc::channel();
    let (release, released) = oneshot::channel::<()>();
    let handle = thread::spawn(move || {
        let _ = block_on(released);
        sender.send(7).unwrap();
    });
    let task = runtime.spawn(handle.into_future());
    task.abort();
    assert!(block_on(task).unwrap_err().is_cancelled());
    release.send(()).unwrap();
    assert_eq!(receiver.recv(), Ok(7));
}

#[watched]
fn virtual_threads_from_spawn_blocking() {
    let runtime = tokio();
    let handle = runtime.handle().clone();
    let sum = runtime.block_on(async move {
        let blocking = tokio::task::spawn_blocking(move || {
            assert!(!thread::current().is_virtual());
            let numbers = on_threads(THREADS, |index| {
                let task = handle.spawn(async move {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    index
                });
                block_on(task).unwrap()
            });
            let sum: usize = numbers.into_iter().sum();
            thread::spawn(move || sum).join().unwrap()
        });
        blocking.await.unwrap()
    });
    assert_eq!(sum, THREADS * (THREADS - 1) / 2);
}

/// Runs `body` while platform threads run the executor's tasks.
fn with_executor<T>(body: impl FnOnce(&Executor<'static>) -> T) -> T {
    let executor = Executor::new();
    let (stop, stopped) = smol::channel::bounded::<()>(1);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (executor, stopped) = (&executor, stopped.clone());
            scope.spawn(move || smol::block_on(executor.run(stopped.recv())));
        }
        let stop = stop; // Dropped when the body has ended, however it has.
        let result = body(&executor);
        drop(stop);
        result
    })
}

#[watched]
fn smol_sockets_and_timers_in_block_on() {
    use smol::io::{AsyncReadExt, AsyncWriteExt};
    on_threads(THREADS, |index| {
        block_on(async {
            let listener = smol::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let mut client = smol::net::TcpStream::connect(address).await.unwrap();
            let (mut server, _) = listener.accept().await.unwrap();
            smol::Timer::after(Duration::from_millis(1)).await;
            client.write_all(&index.to_ne_bytes()).await.unwrap();
            let mut bytes = [0; size_of::<usize>()];
            server.read_exact(&mut bytes).await.unwrap();
            assert_eq!(usize::from_ne_bytes(bytes), index);
        });
    });
}

/// Both sides are one task: if a read waited instead of saying that it would, the task could not go
/// on to write. `async-io` makes its sockets non-blocking by system calls that pirn does not see.
#[watched]
fn a_smol_echo_in_one_task_does_not_wait_for_itself() {
    use smol::io::{AsyncReadExt, AsyncWriteExt};
    const ROUNDS: u8 = 10;
    on_threads(THREADS, |_| {
        let listener = smol::net::TcpListener::bind("127.0.0.1:0");
        let listener = block_on(listener).unwrap();
        let address = listener.local_addr().unwrap();
        let echo = async {
            let (mut server, _) = listener.accept().await.unwrap();
            let mut byte = [0];
            for _ in 0..ROUNDS {
                server.read_exact(&mut byte).await.unwrap();
                server.write_all(&byte).await.unwrap();
            }
        };
        let client = async {
            let mut client = smol::net::TcpStream::connect(address).await.unwrap();
            for round in 0..ROUNDS {
                client.write_all(&[round]).await.unwrap();
                let mut byte = [0];
                client.read_exact(&mut byte).await.unwrap();
                assert_eq!(byte, [round]);
            }
        };
        block_on(smol::future::zip(echo, client));
    });
}

#[watched]
fn smol_tasks_and_virtual_threads_await_each_other() {
    with_executor(|executor| {
        on_threads(THREADS, |index| {
            let (release, handle) = held(index);
            let task = executor.spawn(handle.into_future());
            executor.spawn(async { release.send(()).unwrap() }).detach();
            assert_eq!(block_on(task).unwrap(), index);

            let failing: JoinHandle<()> = thread::spawn(move || resume_unwind(Box::new(index)));
            let task = executor.spawn(failing.into_future());
            assert_eq!(block_on(task).unwrap_err().downcast_ref(), Some(&index));
        });
    });
}

#[watched]
fn smol_races_a_thread_with_a_timer() {
    let race = |index| async move {
        let (release, handle) = held(index);
        let mut future = handle.into_future();
        let timeout = async {
            smol::Timer::after(SHORT).await;
            None
        };
        let first = smol::future::or(async { Some((&mut future).await) }, timeout).await;
        assert!(first.is_none());
        release.send(()).unwrap();
        assert_eq!(future.await.unwrap(), index);
    };
    with_executor(|executor| {
        let tasks: Vec<_> = (0..THREADS).map(|i| executor.spawn(race(i))).collect();
        for task in tasks {
            smol::block_on(task);
        }
    });
}

/// Dropping smol's task cancels it, and with it the future that it waits for.
#[watched]
fn an_interrupt_cancels_a_smol_task() {
    struct OnDrop(Arc<AtomicBool>);
    impl Drop for OnDrop {
        fn drop(&mut self) {
            self.0.store(true, SeqCst);
        }
    }
    with_executor(|executor| {
        on_threads(THREADS, |_| {
            let cancelled = Arc::new(AtomicBool::new(false));
            let guard = OnDrop(Arc::clone(&cancelled));
            let task = executor.spawn(async move {
                let _guard = guard;
                pending::<()>().await;
            });
            let waiting = thread::spawn(|| block_on_interruptible(task));
            waiting.thread().interrupt();
            assert_eq!(waiting.join().unwrap(), Err(Interrupted));
            while !cancelled.load(SeqCst) {
                thread::yield_now(); // The executor drops it.
            }
        });
    });
}
