//! `pirn-serve`: a folder of files, or another server, behind `pirn-http`.

mod answer;
mod descriptors;
mod forwarded;
mod framing;
mod origin;
mod proxy;
mod retry;
mod sending;
mod upgrade;

use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{self, ExitCode};
use std::thread;
use std::time::Duration;

use clap::{CommandFactory, Parser, ValueEnum};
use clap_complete::Shell;
use pirn_http::files::Files;
use pirn_http::observe::AccessLog;
use pirn_http::{
    Compression, HeaderName, HeaderValue, Limits, Listener, Request, Running, Server, Timeouts,
    Tls, Uri,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use forwarded::Trusted;
use proxy::{Proxy, Settings};

/// The exit code of a program that is ended by Ctrl-C.
const ENDED: i32 = 130;

/// Serves a folder of files, or passes requests on to another server, until Ctrl-C.
///
/// HTTP/1.1 and HTTP/2, with a virtual thread for each request.
#[derive(Parser)]
#[command(name = "pirn-serve", version)]
struct Arguments {
    /// The folder whose files are served.
    #[arg(
        value_name = "DIR",
        required_unless_present = "proxy",
        conflicts_with = "proxy"
    )]
    folder: Option<PathBuf>,
    /// Passes requests on to the server at this address, such as http://127.0.0.1:3000.
    ///
    /// Names and addresses of clients are passed on in Forwarded, X-Forwarded-For, -Host and
    /// -Proto. What clients themselves put into these fields is dropped.
    #[arg(long, value_name = "URL")]
    proxy: Option<Uri>,
    /// Where to listen (port 0: any free port; unix:PATH: a Unix socket). May be given repeatedly.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    listen: Vec<String>,
    /// The certificate chain, in PEM: serves HTTPS in place of HTTP. SIGHUP makes it read anew.
    #[arg(long, value_name = "PEM", requires = "key")]
    certificate: Option<PathBuf>,
    /// The certificate's private key, in PEM.
    #[arg(long, value_name = "PEM", requires = "certificate")]
    key: Option<PathBuf>,
    /// Lists what is in a folder that has no index.html.
    #[arg(long, conflicts_with = "proxy")]
    list: bool,
    /// Compresses answers, with gzip.
    #[arg(long)]
    compress: bool,
    /// Writes a line for each request to standard output.
    #[arg(long)]
    log: bool,
    /// A header field that is set in requests that are passed on, in place of the client's; for
    /// instance "X-Api-Key: 123". May be given repeatedly.
    #[arg(long, value_name = "NAME: VALUE", conflicts_with = "folder", value_parser = field)]
    header: Vec<(HeaderName, HeaderValue)>,
    /// A proxy before this one whose X-Forwarded-For, -Host and -Proto are trusted: an address, a
    /// network such as 10.0.0.0/8, or "unix" for clients that connect by a Unix socket. May be
    /// given repeatedly.
    #[arg(long, value_name = "ADDR", conflicts_with = "folder", value_parser = Trusted::parse)]
    trust: Vec<Trusted>,
    /// How large the body of a request may be, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 100 << 20)]
    max_body: u64,
    /// How many clients may be connected; others wait, and the ones that have been idle for longest
    /// give way. By default half of the files that the process may have open (ulimit -n), and at
    /// most three quarters: the rest is for the files and servers that clients ask for.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_connections: Option<u32>,
    /// How long the other server may take to begin its answer, to go on with it, or to take more of
    /// a request, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, conflicts_with = "folder",
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    /// How long the body of a request may take as a whole, however fast it comes, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 3_600, conflicts_with = "folder",
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    upload_timeout: u64,
    /// Prints the manual page, or the completions for a shell.
    #[arg(long, value_name = "KIND", exclusive = true)]
    generate: Option<Generate>,
}

/// What packages install beside the program.
#[derive(Clone, Copy, ValueEnum)]
enum Generate {
    Man,
    Bash,
    Fish,
    Zsh,
}

impl Generate {
    fn print(self, out: &mut dyn Write) -> io::Result<()> {
        let mut command = Arguments::command();
        let shell = match self {
            Self::Man => return clap_mangen::Man::new(command).render(&mut &mut *out),
            Self::Bash => Shell::Bash,
            Self::Fish => Shell::Fish,
            Self::Zsh => Shell::Zsh,
        };
        clap_complete::generate(shell, &mut command, "pirn-serve", &mut &mut *out);
        Ok(())
    }
}

fn main() -> ExitCode {
    match run(&Arguments::parse(), &mut io::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If even stderr is gone, nothing can be done.
            let _ = writeln!(io::stderr(), "pirn-serve: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Serves until SIGINT or SIGTERM, and then until all requests have been answered.
fn run(args: &Arguments, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    if let Some(kind) = args.generate {
        return Ok(kind.print(out)?);
    }
    descriptors::raise_limit();
    let tls = match (&args.certificate, &args.key) {
        (Some(certificate), Some(key)) => Some(Tls::from_files(certificate, key)?),
        _ => None,
    };
    let server = args.server()?;
    let mut listeners = Vec::new();
    let mut names = Vec::new();
    for address in &args.listen {
        let listener =
            listen(address).map_err(|error| format!("cannot listen on '{address}': {error}"))?;
        names.push(match (listener.local_addr(), &tls) {
            (Some(address), Some(_)) => format!("https://{address}"),
            (Some(address), None) => format!("http://{address}"),
            (None, _) => address.clone(),
        });
        listeners.push(match &tls {
            Some(tls) => listener.tls(tls),
            None => listener,
        });
    }
    let mut listeners = listeners.into_iter();
    let first = listeners.next().ok_or("there is no address to listen on")?;
    // Before anybody knows that there is a server that could be ended.
    let signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    let running = listeners.fold(server.listen(first), |bound, next| bound.and(next));
    let running = running.start()?;
    for name in names {
        writeln!(out, "listening on {name}")?;
    }
    out.flush()?;
    until_ended(signals, tls.as_ref());
    end(&running);
    Ok(())
}

impl Arguments {
    fn server(&self) -> Result<Server, Box<dyn Error>> {
        let server = match (&self.folder, &self.proxy) {
            (Some(folder), _) => {
                let files = Files::new(folder)?.precompressed();
                let files = match self.list {
                    true => files.listings(),
                    false => files,
                };
                Server::new().files("/", files).with(descriptors::with_file)
            }
            (None, Some(url)) => {
                let settings = Settings {
                    timeout: Duration::from_secs(self.timeout),
                    fields: self.header.clone(),
                    trusted: self.trust.clone(),
                };
                let proxy = Proxy::new(url, settings)?;
                let timeouts = Timeouts::default().upload(Duration::from_secs(self.upload_timeout));
                let pass_on = move |request: &mut Request| proxy.pass_on(request);
                // The route of all paths does not match the root.
                Server::new()
                    .timeouts(timeouts)
                    .any("/", pass_on.clone())
                    .any("/{*path}", pass_on)
            }
            (None, None) => return Err("there is nothing to serve".into()),
        };
        let connections = descriptors::share_out(self.max_connections);
        let limits = Limits::default().body(self.max_body);
        let mut server = server.limits(limits.connections(connections));
        if self.compress {
            server = server.with(Compression::new());
        }
        if self.log {
            server = server.with(AccessLog::new(io::stdout()));
        }
        Ok(server)
    }
}

/// Parses a header field.
fn field(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) = text.split_once(':').ok_or("there is no colon")?;
    let name = HeaderName::try_from(name).map_err(|error| error.to_string())?;
    let value = HeaderValue::try_from(value.trim()).map_err(|error| error.to_string())?;
    Ok((name, value))
}

fn listen(address: &str) -> io::Result<Listener> {
    match address.strip_prefix("unix:") {
        Some(path) => Listener::unix(path),
        None => Listener::tcp(address),
    }
}

/// Returns when the process is told to end. Told so again, it ends at once.
fn until_ended(mut signals: Signals, tls: Option<&Tls>) {
    for signal in signals.forever() {
        if signal != SIGHUP {
            break;
        }
        if let Some(Err(error)) = tls.map(Tls::reload) {
            // The server goes on with what it has; if even stderr is gone, nothing can be done.
            let _ = writeln!(
                io::stderr(),
                "pirn-serve: the certificate is not replaced: {error}"
            );
        }
    }
    thread::spawn(move || {
        if signals.forever().any(|signal| signal != SIGHUP) {
            process::exit(ENDED);
        }
    });
}

fn end(running: &Running) {
    if running.connections() > 0 {
        let _ = writeln!(
            io::stderr(),
            "pirn-serve: waiting for open requests; Ctrl-C ends them"
        );
    }
    running.shutdown();
}
