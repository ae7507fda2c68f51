//! A page of several parts, one subtask each: one of them takes the fastest of three mirrors, all
//! have a deadline, and another thread prints the tree. The mirrors are small servers on the
//! loopback interface.
use pirn::scope::{self, JoinError, ScopeInfo};
use pirn::thread::{self, Thread};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

pirn::scoped_value! {
    /// The request that is being served, for messages.
    static REQUEST: u64;
}

#[pirn::main]
fn main() -> io::Result<()> {
    let mirrors = [
        broken_mirror()?,
        mirror("the fast mirror", Duration::from_millis(200))?,
        mirror("the slow mirror", Duration::from_secs(3600))?,
    ];
    for (request, timeout) in [
        (1, Duration::from_secs(10)),
        (2, Duration::from_millis(100)),
    ] {
        println!("request {request}, with {timeout:?} to answer:");
        let handler = thread::spawn(move || handle(request, &mirrors, timeout));
        thread::sleep(Duration::from_millis(50));
        let scopes = scope::snapshot();
        print_thread(handler.thread(), &scopes, 1);
        println!("{}\n", handler.join().unwrap()?);
    }
    Ok(())
}

/// The handler of a web server, which runs on one virtual thread per request.
fn handle(request: u64, mirrors: &[SocketAddr], timeout: Duration) -> io::Result<String> {
    let start = Instant::now();
    let page = REQUEST.bind(&request, || page(mirrors, timeout));
    let page = page.map_err(JoinError::flatten)?;
    Ok(format!("{page}, after {:.0?}", start.elapsed()))
}

/// Fetches the parts at once. A part that is not there when the time is up is left out.
fn page(mirrors: &[SocketAddr], timeout: Duration) -> Result<String, JoinError<io::Error>> {
    let names = thread::Builder::new().name_counter("part-", 1);
    let scope = scope::Builder::new().name("page").timeout(timeout);
    scope.threads(names).open(|s| {
        let greeting = s.fork(greeting);
        let article = s.fork(|| article(mirrors));
        let parts = match s.join() {
            Ok(all) => [greeting.get(&all), article.get(&all)],
            Err(late) if matches!(late.error(), JoinError::TimedOut) => [greeting, article]
                .map(|part| part.result(&late).unwrap_or("(left out)".to_string())),
            Err(failed) => return Err(failed.into()),
        };
        Ok(parts.join(" "))
    })
}

fn greeting() -> io::Result<String> {
    Ok(format!("page {}:", REQUEST.get())) // as bound by the owner of the scope
}

/// Fetches the article from the fastest mirror. The others are cancelled.
fn article(mirrors: &[SocketAddr]) -> io::Result<String> {
    let names = thread::Builder::new().name_counter("mirror-", 1);
    let scope = scope::Builder::new().name("article").threads(names);
    let fastest = scope.open_with(scope::any_successful(), |s| {
        for mirror in mirrors {
            s.fork(|| fetch(*mirror));
        }
        Ok(s.join()?.into_output())
    });
    fastest.map_err(JoinError::flatten)
}

/// Plain blocking input. When its scope is cancelled, the read fails.
fn fetch(mirror: SocketAddr) -> io::Result<String> {
    let mut article = String::new();
    TcpStream::connect(mirror)?.read_to_string(&mut article)?;
    Ok(article)
}

/// Starts a server that answers after `delay`.
fn mirror(name: &'static str, delay: Duration) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || {
                thread::sleep(delay);
                write!(&stream, "an article from {name}")
            });
        }
    });
    Ok(address)
}

/// Returns an address on which no server listens.
fn broken_mirror() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// Prints a thread, the scopes that it owns, and the threads in these.
fn print_thread(thread: &Thread, scopes: &[ScopeInfo], depth: usize) {
    let indent = "    ".repeat(depth);
    println!("{indent}{thread:?}");
    for scope in scopes.iter().filter(|s| s.owner.id() == thread.id()) {
        let name = scope.name.as_deref().unwrap_or("a scope");
        println!("{indent}  {name}, with {} subtasks", scope.subtasks.len());
        for subtask in &scope.subtasks {
            print_thread(subtask, scopes, depth + 1);
        }
    }
}
