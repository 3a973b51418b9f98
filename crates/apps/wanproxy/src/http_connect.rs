//! HTTP CONNECT (RFC 9110, section 9.3.6): a request for a tunnel, and no other part of HTTP.

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::{Error, Refusal, Result, Target};

/// The most bytes of a request's head.
const HEAD_BYTES_MAX: usize = 8 << 10;

/// The end of a head.
const END: &[u8] = b"\r\n\r\n";

/// Reads the target of a program, and the bytes that follow the request. Tells the program about an invalid request.
///
/// # Errors
/// Another method, a head that is too long or incomplete, no target.
pub(crate) async fn request<S>(stream: &mut S) -> Result<(Target, Vec<u8>)>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(END.len()).position(|it| it == END) {
            break at + END.len();
        }
        if bytes.len() >= HEAD_BYTES_MAX {
            answer(stream, "431 Request Header Fields Too Large").await?;
            return Err(Error::request(format!(
                "expected a head of at most {HEAD_BYTES_MAX} bytes"
            )));
        }
        let mut part = [0; 2048];
        let most = part.len().min(HEAD_BYTES_MAX - bytes.len());
        match stream.read(&mut part[..most]).await.map_err(Error::Local)? {
            0 => return Err(Error::request("it ended before its head did")),
            read => bytes.extend_from_slice(&part[..read]),
        }
    };
    let early = bytes.split_off(end);
    match target(&bytes) {
        Ok(target) => Ok((target, early)),
        Err((status, error)) => {
            answer(stream, status).await?;
            Err(error)
        }
    }
}

fn target(head: &[u8]) -> std::result::Result<Target, (&'static str, Error)> {
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let words: Vec<&str> = std::str::from_utf8(line).unwrap_or_default().split(' ').collect();
    let [method, authority, version] = words[..] else {
        return Err(("400 Bad Request", Error::request("expected a request line of three words")));
    };
    if !version.starts_with("HTTP/1.") {
        let error = Error::request(format!("expected HTTP/1.1, found {}", version.escape_debug()));
        return Err(("505 HTTP Version Not Supported", error));
    }
    if method != "CONNECT" {
        let error = Error::request(format!("expected CONNECT, found {}", method.escape_debug()));
        return Err(("405 Method Not Allowed", error));
    }
    authority.parse().map_err(|reason: String| {
        ("400 Bad Request", Error::request(reason.escape_debug().to_string()))
    })
}

/// Sends the result of the request.
pub(crate) async fn answer<S: AsyncWrite + Unpin>(stream: &mut S, status: &str) -> Result<()> {
    let is_done = status.starts_with('2');
    let more = if is_done { "" } else { "Content-Length: 0\r\nConnection: close\r\n" };
    let text = format!("HTTP/1.1 {status}\r\n{more}\r\n");
    stream.write_all(text.as_bytes()).await.map_err(Error::Local)
}

/// Returns the status line of an error.
pub(crate) fn status_of(error: &Error) -> &'static str {
    match error {
        Error::Refused { why: Refusal::NotAllowed, .. } => "403 Forbidden",
        Error::Full { .. } | Error::Refused { why: Refusal::Full, .. } => "503 Service Unavailable",
        Error::Timeout { .. } => "504 Gateway Timeout",
        _ => "502 Bad Gateway",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_of_a_head_is_found_and_anything_else_has_its_status() {
        let found = |head: &str| {
            target(head.as_bytes()).map(|it| it.to_string()).map_err(|(status, _)| status)
        };
        assert_eq!(found("CONNECT a.b:443 HTTP/1.1\r\nHost: a.b\r\n\r\n"), Ok("a.b:443".into()));
        assert_eq!(found("CONNECT [::1]:443 HTTP/1.0\r\n\r\n"), Ok("[::1]:443".into()));
        assert_eq!(found("GET / HTTP/1.1\r\n\r\n"), Err("405 Method Not Allowed"));
        for head in [
            "\r\n\r\n",
            "CONNECT\r\n\r\n",
            "CONNECT a HTTP/1.1\r\n\r\n",
            "CONNECT  a:1 HTTP/1.1\r\n\r\n",
        ] {
            assert_eq!(found(head), Err("400 Bad Request"), "{head}");
        }
        assert_eq!(found("CONNECT a:1 SPDY\r\n\r\n"), Err("505 HTTP Version Not Supported"));
    }
}
