//! Builders that are given a text of a client's: none panics, none lets it say more than a value.

use pirn_http::cookies::Cookie;
use pirn_http::files::File;
use pirn_http::{Event, Handler, Redirect, Request, Response, Server};
use std::io::{self, Write};
use std::sync::mpsc;

/// The texts are `a`, one of these, and what would be a field of its own after a line's end.
const PIECES: [&str; 7] = ["\r", "\n", "\r\n", "\0", ";", ",", "ä"];

type Build = fn(&mut Request, String) -> io::Result<Response>;

fn event(request: &mut Request, event: Event) -> io::Result<Response> {
    request.events()?.send(&event)?;
    Ok(Response::ok())
}

/// Builders, and the pieces that they refuse.
const BUILDERS: [(&str, Build, &[&str]); 11] = [
    (
        "the value of a field",
        |_, text| Ok(Response::ok().header("x-text", text)),
        &["\r", "\n", "\r\n", "\0"],
    ),
    (
        "the name of a field",
        |_, text| Ok(Response::ok().header(text, "1")),
        &PIECES,
    ),
    (
        "the field of a response that is pushed",
        |request, text| {
            let response = Response::ok().header("x-text", text);
            request.respond(response)?.write_all(b"hello")?;
            Ok(Response::ok())
        },
        &["\r", "\n", "\r\n", "\0"],
    ),
    (
        "the name of a cookie",
        |_, text| Ok(Response::ok().cookie((text, "1"))),
        &[],
    ),
    (
        "the value of a cookie",
        |_, text| Ok(Response::ok().cookie(("a", text))),
        &[],
    ),
    (
        "the path of a cookie",
        |_, text| Ok(Response::ok().cookie(Cookie::build(("a", "1")).path(text))),
        &["\r", "\n", "\r\n", "\0", ";"],
    ),
    (
        "the domain of a cookie",
        |_, text| Ok(Response::ok().cookie(Cookie::build(("a", "1")).domain(text))),
        &["\r", "\n", "\r\n", "\0", ";"],
    ),
    (
        "the place of a redirect",
        |_, text| Ok(pirn_http::IntoResponse::into_response(Redirect::to(&text))),
        &[],
    ),
    (
        "the name of a download",
        |request, text| {
            let file = tempfile::NamedTempFile::new()?;
            Ok(File::open(file.path())?
                .download_as(&text)
                .response_to(request))
        },
        &[],
    ),
    (
        "the name of an event",
        |request, text| event(request, Event::new("x").name(text)),
        &["\r", "\n", "\r\n"],
    ),
    (
        "the id of an event",
        |request, text| event(request, Event::new("x").id(text)),
        &["\r", "\n", "\r\n", "\0"],
    ),
];

#[test]
fn no_text_of_a_client_makes_a_builder_panic_or_says_more_than_a_value() {
    for (what, build, refused) in BUILDERS {
        for piece in PIECES {
            let (seen, sees) = mpsc::channel();
            let text = format!("a{piece}evil: 1");
            let client = Server::new()
                .get("/", move |request: &mut Request| {
                    build(request, text.clone())
                })
                .with(move |request: &mut Request, inner: &Handler| {
                    let response = inner(request);
                    let why = response.error().map(|error| error.to_string());
                    seen.send((response.status, why)).unwrap();
                    response
                })
                .client();
            let answer = client.send(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
            let answer = String::from_utf8_lossy(&answer);
            let case = format!("{what}, {piece:?}: {answer:?}");
            let (status, why) = sees.try_recv().expect("the builder has panicked");
            assert!(
                !answer.contains("\nevil") && !answer.contains("\revil"),
                "{case}"
            );
            assert_eq!(why.is_some(), refused.contains(&piece), "{case}, {why:?}");
            assert_eq!(status.is_server_error(), why.is_some(), "{case}");
            let is_begun = what.ends_with("event");
            let failed = answer.starts_with("HTTP/1.1 500 ");
            assert_eq!(failed, why.is_some() && !is_begun, "{case}");
            let is_whole = !is_begun || answer.ends_with("\r\n0\r\n\r\n");
            assert_eq!(is_whole, why.is_none() || !is_begun, "{case}");
        }
    }
}
