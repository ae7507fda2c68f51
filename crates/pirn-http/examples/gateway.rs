//! A gateway that asks three services at once, and has half a second for it:
//! `cargo run --release -p pirn-http --example gateway [ADDRESS]`.
//!
//! The services are in the same program here; each takes some time, and `?slow=1` makes one take
//! too much. The gateway's scope ends when all have answered, when one fails, when the time is
//! over, or when the client is gone: then those that still run are interrupted, in the middle of
//! whatever they wait for.

use pirn::scope::{Builder, JoinError};
use pirn_http::{IntoResponse, Request, Response, Server, Status};
use std::io;
use std::time::Duration;

/// How long the gateway may take.
const PATIENCE: Duration = Duration::from_millis(500);

/// Asks a service, by a client that blocks.
fn ask(service: &str) -> Result<String, ureq::Error> {
    ureq::get(service).call()?.into_body().read_to_string()
}

fn page(services: &[String; 3]) -> Result<String, JoinError<ureq::Error>> {
    Builder::new().timeout(PATIENCE).open(|scope| {
        let [user, orders, offers] = services.each_ref().map(|one| scope.fork(|| ask(one)));
        let all = scope.join()?;
        let (user, orders, offers) = (user.get(&all), orders.get(&all), offers.get(&all));
        Ok(format!(
            "user: {user}\norders: {orders}\noffers: {offers}\n"
        ))
    })
}

fn answer(page: Result<String, JoinError<ureq::Error>>) -> Response {
    match page {
        Ok(page) => page.into_response(),
        Err(JoinError::TimedOut) => (Status::GATEWAY_TIMEOUT, "too slow\n").into_response(),
        Err(error) => {
            eprintln!("a service: {error}");
            Status::BAD_GATEWAY.into_response()
        }
    }
}

/// Starts the services, and returns their address.
fn services() -> io::Result<String> {
    let service = |name: &'static str, delay: u64| {
        move |request: &mut Request| {
            let slow = request.query_value("slow").map_or(0, |_| 2000);
            pirn::thread::sleep(Duration::from_millis(delay + slow));
            name
        }
    };
    let server = Server::new()
        .get("/user", service("Ada", 20))
        .get("/orders", service("three", 50))
        .get("/offers", service("none", 80))
        .bind("127.0.0.1:0")?
        .start()?;
    let address = server.local_addr().expect("it listens on TCP");
    Ok(format!("http://{address}"))
}

#[pirn::main]
fn main() -> io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:8080".into());
    let services = services()?;
    Server::new()
        .get("/", move |request: &mut Request| {
            let query = request
                .uri
                .query()
                .map_or(String::new(), |query| format!("?{query}"));
            let paths = ["user", "orders", "offers"];
            answer(page(&paths.map(|path| format!("{services}/{path}{query}"))))
        })
        .bind(address)?
        .serve()
}
