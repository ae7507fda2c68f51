//! `gateway`: an HTTP server that asks another one, with reqwest, the usual client on tokio.
//!
//! reqwest pools connections; its default is to keep as many idle ones as there are, and
//! TCP_NODELAY.

use crate::serve::serve_until_end_of_input;
use anyhow::Result;
use hyper::StatusCode;
use hyper::body::Bytes;
use peer_protocol::{Params, Workload};
use reqwest::{Client, Url};
use tokio::runtime::Runtime;

pub fn gateway(runtime: Runtime, params: &Params) -> Result<Workload> {
    let backend = params.get("backend")?;
    let backend: Url = format!("http://127.0.0.1:{backend}/").parse()?;
    // A proxy named in the environment is not for the loopback interface.
    let client = Client::builder().no_proxy().build()?;
    serve_until_end_of_input(&runtime, move || {
        let (client, backend) = (client.clone(), backend.clone());
        async move {
            match call_thrice(&client, &backend).await {
                Ok(length) => (StatusCode::OK, Bytes::from(length.to_string())),
                Err(error) => {
                    let text = format!("{:#}", anyhow::Error::from(error));
                    (StatusCode::BAD_GATEWAY, Bytes::from(text))
                }
            }
        }
    })
}

/// Calls the backend three times, one after the other. Gives the sum of the lengths of the bodies.
async fn call_thrice(client: &Client, backend: &Url) -> reqwest::Result<usize> {
    let mut length = 0;
    for _ in 0..3 {
        let response = client.get(backend.clone()).send().await?;
        length += response.error_for_status()?.bytes().await?.len();
    }
    Ok(length)
}
