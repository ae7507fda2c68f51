//! Files, in three ways: `cargo run --release -p pirn-http --example
//! static_file_server [ADDRESS [FOLDER]]`.

use pirn_http::files::Files;
use pirn_http::observe::AccessLog;
use pirn_http::{Request, Response, Server, Status};
use std::io;

#[pirn::main]
fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or("127.0.0.1:8080".into());
    let folder = arguments.next().unwrap_or(".".into());
    let files = Files::new(folder)?;
    let (members, pages) = (files.clone(), files.clone());
    Server::new()
        // 1. A folder beneath a path.
        .files("/assets", files.listings())
        // 2. By a handler that decides who gets them.
        .get(
            "/members/{*path}",
            move |request: &mut Request| match request.header("authorization") {
                Some("Bearer secret") => {
                    members.response_to(request, &request.uri.path()["/members/".len()..])
                }
                _ => Response::new(Status::UNAUTHORIZED),
            },
        )
        .get("/foo", || "Hi from /foo")
        // 3. For all that has no route; an application of one page does the rest.
        .fallback(move |request: &mut Request| {
            let path = request.uri.path().strip_prefix('/').unwrap_or_default();
            let page = pages.response_to(request, path);
            match page.status {
                Status::NOT_FOUND => pages.response_to(request, "index.html"),
                _ => page,
            }
        })
        .with(AccessLog::new(io::stdout()))
        .bind(address)?
        .serve()
}
