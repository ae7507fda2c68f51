//! The smallest server: `cargo run --release -p pirn-http --example smallest [ADDRESS]`.

use pirn_http::{Error, Request, Server};

#[pirn::main]
fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:8080".into());
    Server::new()
        .get("/", || "Hello, World!")
        .get(
            "/users/{id}",
            |request: &mut Request| -> Result<String, Error> {
                Ok(format!("Hello, {}!", request.param::<String>("id")?))
            },
        )
        .bind(address)?
        .serve()
}
