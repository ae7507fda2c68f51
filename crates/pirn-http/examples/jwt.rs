//! Tokens that say who a client is: `JWT_SECRET=secret cargo run --release -p pirn-http --example
//! jwt [ADDRESS]`.
//!
//! ```text
//! curl -d '{"client_id": "foo", "client_secret": "bar"}' localhost:8080/authorize
//! curl -H "authorization: Bearer TOKEN" localhost:8080/protected
//! ```

use jsonwebtoken::{DecodingKey, EncodingKey, Header, Validation, decode, encode};
use pirn_http::{Error, Json, Request, Server, Status};
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};

struct Keys {
    encoding: EncodingKey,
    decoding: DecodingKey,
}

#[derive(Serialize, Deserialize)]
struct Claims {
    sub: String,
    company: String,
    exp: u64,
}

/// Returns what the client's token says of it.
fn claims(keys: &Keys, request: &Request) -> Result<Claims, Error> {
    let header = request.header("authorization").unwrap_or_default();
    let token = header.strip_prefix("Bearer ").unwrap_or_default();
    decode(token, &keys.decoding, &Validation::default())
        .map(|token| token.claims)
        .map_err(|_| Error::new(Status::UNAUTHORIZED, "the token is not valid"))
}

fn protected(keys: &Keys, request: &mut Request) -> Result<String, Error> {
    let Claims { sub, company, .. } = claims(keys, request)?;
    Ok(format!("Welcome, {sub} of {company}!\n"))
}

#[derive(Deserialize)]
struct Credentials {
    client_id: String,
    client_secret: String,
}

#[derive(Serialize)]
struct Token {
    access_token: String,
    token_type: &'static str,
}

fn authorize(keys: &Keys, request: &mut Request) -> Result<Json<Token>, Error> {
    let given: Credentials = request.json()?;
    // A server asks its database here.
    if (&*given.client_id, &*given.client_secret) != ("foo", "bar") {
        return Err(Error::new(Status::UNAUTHORIZED, "wrong credentials"));
    }
    let end = SystemTime::UNIX_EPOCH.elapsed().map_err(Error::internal)?;
    let claims = Claims {
        sub: "ada@example.org".to_owned(),
        company: "ACME".to_owned(),
        exp: (end + Duration::from_secs(3600)).as_secs(),
    };
    let access_token =
        encode(&Header::default(), &claims, &keys.encoding).map_err(Error::internal)?;
    let token_type = "Bearer";
    Ok(Json(Token {
        access_token,
        token_type,
    }))
}

#[pirn::main]
fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:8080".into());
    let secret = std::env::var("JWT_SECRET").expect("JWT_SECRET must be set");
    let keys = Keys {
        encoding: EncodingKey::from_secret(secret.as_bytes()),
        decoding: DecodingKey::from_secret(secret.as_bytes()),
    };
    Server::with_state(keys)
        .get("/protected", protected)
        .post("/authorize", authorize)
        .bind(address)?
        .serve()
}
