//! The status port: a page for people at `/`, figures for Prometheus at `/metrics`, and no other part of HTTP.

mod metrics;
mod page;

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};

use crate::shared::Shared;

/// The most bytes of a request's head.
const HEAD_BYTES_MAX: usize = 4 << 10;

/// The longest time of a request and its answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// The most concurrent requests; more wait to be accepted.
const REQUESTS_MAX: usize = 16;

/// A browser may load only the page's own style, and no other page may embed it.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'";

/// The interval at which the page is reloaded.
const REFRESH_S: u64 = 5;

/// Answers requests until it is told to stop.
pub(crate) async fn serve(
    shared: Arc<Shared>,
    half: &'static str,
    listener: TcpListener,
    mut stop: watch::Receiver<bool>,
) {
    let places = Arc::new(Semaphore::new(REQUESTS_MAX));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let accepted = tokio::select! {
            _ = stop.changed() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let shared = Arc::clone(&shared);
                tokio::spawn(async move {
                    // The requester sees that it gets no answer.
                    let _ = timeout(REQUEST_TIMEOUT, answer(&shared, half, stream)).await;
                    drop(place);
                });
            }
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn answer(shared: &Shared, half: &str, mut stream: TcpStream) -> std::io::Result<()> {
    let Some(line) = request_line(&mut stream).await? else { return Ok(()) };
    let words: Vec<&str> = line.split(' ').collect();
    let (status, kind, body) = match words[..] {
        ["GET", "/", _] => {
            ("200 OK", "text/html; charset=utf-8", page::page(half, &shared.snapshot()))
        }
        ["GET", "/metrics", _] => {
            ("200 OK", "text/plain; version=0.0.4", metrics::text(half, &shared.snapshot()))
        }
        ["GET", ..] => ("404 Not Found", "text/plain", "expected / or /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", "text/plain", "expected GET\n".to_owned()),
    };
    let refresh = if kind.starts_with("text/html") {
        format!("Refresh: {REFRESH_S}\r\n")
    } else {
        String::new()
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nContent-Security-Policy: {POLICY}\r\n{refresh}\
         Connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

/// Returns the first line of a request with a complete head; `None` if there is none.
async fn request_line(stream: &mut TcpStream) -> std::io::Result<Option<String>> {
    let mut bytes = Vec::new();
    let mut part = [0; 1024];
    while !bytes.windows(4).any(|it| it == b"\r\n\r\n") {
        let read = stream.read(&mut part).await?;
        if read == 0 || bytes.len() + read > HEAD_BYTES_MAX {
            return Ok(None);
        }
        bytes.extend_from_slice(&part[..read]);
    }
    let line = bytes.split(|byte| *byte == b'\r').next().unwrap_or_default();
    Ok(Some(String::from_utf8_lossy(line).into_owned()))
}
