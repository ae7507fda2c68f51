//! A mail server on `mailin-embedded`: it stores each mail in a file of its own.
//!
//!     mail ADDRESS THREADS FOLDER
//!
//! A pause of 100 ms stands for what a mail server asks the DNS about each sender.

use mailin_embedded::{Handler, Response, Server, response};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, fs, io, net::IpAddr, thread, time::Duration};

#[derive(Clone)]
struct Mailbox {
    folder: PathBuf,
    mail: Vec<u8>,
}

impl Handler for Mailbox {
    fn mail(&mut self, _client: IpAddr, _domain: &str, _from: &str) -> Response {
        thread::sleep(Duration::from_millis(100));
        response::OK
    }

    fn data(&mut self, line: &[u8]) -> io::Result<()> {
        self.mail.extend_from_slice(line);
        Ok(())
    }

    fn data_end(&mut self) -> Response {
        static STORED: AtomicU64 = AtomicU64::new(0);
        let name = STORED.fetch_add(1, Ordering::Relaxed).to_string();
        match fs::write(self.folder.join(name), std::mem::take(&mut self.mail)) {
            Ok(()) => response::OK,
            Err(_) => response::INTERNAL_ERROR,
        }
    }
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [address, threads, folder] = arguments.try_into().expect("ADDRESS THREADS FOLDER");
    let mut server = Server::new(Mailbox {
        folder: folder.into(),
        mail: Vec::new(),
    });
    server
        .with_name("mail.example")
        .with_num_threads(threads.parse().expect("a number of threads"));
    server.with_addr(address).expect("an address to listen on");
    server.serve().expect("the server");
}
