//! Messages over a sealed connection.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use nandex_wan::live::{LIVE_BODY_BYTES_MAX, Message, MessageKind};
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::timeout;

use crate::sealed::{RECORD_BYTES_MAX, SealedReader, SealedWriter};
use crate::{Error, Result};

/// The bytes of the buffer that an idle connection keeps.
const KEPT_BYTES: usize = 32 << 10;

/// A reader of messages.
pub(crate) struct WireReader {
    sealed: SealedReader,
    buffer: Vec<u8>,
    /// The bytes of the buffer that were already read.
    used: usize,
    /// The bytes of messages received.
    pub(crate) bytes: Arc<AtomicU64>,
    /// All bytes received: a long message takes its time on a slow link, and the other half is alive during that.
    pub(crate) heard: Arc<AtomicU64>,
}

impl WireReader {
    pub(crate) fn new(sealed: SealedReader) -> Self {
        let (bytes, heard) = (Arc::default(), Arc::default());
        Self { sealed, buffer: Vec::new(), used: 0, bytes, heard }
    }

    /// Returns the next message; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Message>> {
        loop {
            let found = Message::decode(&self.buffer[self.used..]);
            let found = found.map_err(|error| Error::peer(error.to_string()))?;
            if let Some((message, bytes)) = found {
                self.used += bytes;
                self.bytes.fetch_add(bytes as u64, Relaxed);
                return Ok(Some(message));
            }
            self.forget_used();
            // The head of a longer message was rejected.
            debug_assert!(self.buffer.len() <= LIVE_BODY_BYTES_MAX + RECORD_BYTES_MAX);
            let read = self.sealed.read(&mut self.buffer).await.map_err(Error::Link)?;
            self.heard.fetch_add(read as u64, Relaxed);
            if read == 0 {
                let left = self.buffer.len();
                return match left {
                    0 => Ok(None),
                    _ => {
                        Err(Error::peer(format!("it ended in a message, after {left} bytes of it")))
                    }
                };
            }
        }
    }

    fn forget_used(&mut self) {
        self.buffer.drain(..self.used);
        self.used = 0;
        if self.buffer.is_empty() && self.buffer.capacity() > KEPT_BYTES {
            self.buffer = Vec::new();
        }
    }
}

/// A writer of messages, for all loops of a connection.
pub(crate) struct WireWriter {
    sealed: Mutex<Sealing>,
    timeout: Duration,
    /// The bytes of messages sent.
    pub(crate) bytes: Arc<AtomicU64>,
}

/// A writer, and whether it has stopped within a message.
struct Sealing {
    writer: SealedWriter,
    /// Whether the next bytes would be taken for the rest of that message.
    is_torn: bool,
}

impl WireWriter {
    /// Creates a writer that waits that long for each record to be sent.
    pub(crate) fn new(writer: SealedWriter, timeout: Duration) -> Self {
        let sealed = Mutex::new(Sealing { writer, is_torn: false });
        Self { sealed, timeout, bytes: Arc::default() }
    }

    /// Writes a message immediately.
    ///
    /// # Errors
    /// A link that fails, or accepts nothing. After that, or after a cancellation, no other message is sent.
    pub(crate) async fn put(&self, message: &Message) -> Result<()> {
        let sealing = self.sealed.lock().await;
        self.put_by(sealing, message).await
    }

    /// Pings the other half, unless a message is being sent, which has the same effect.
    pub(crate) async fn ping(&self) -> Result<()> {
        match self.sealed.try_lock() {
            Ok(sealing) => self.put_by(sealing, &Message::of(MessageKind::Ping, &[])).await,
            Err(_) => Ok(()),
        }
    }

    async fn put_by(&self, mut sealing: MutexGuard<'_, Sealing>, message: &Message) -> Result<()> {
        if sealing.is_torn {
            let reason = "a message before this one did not go out whole";
            return Err(Error::Link(io::Error::new(ErrorKind::BrokenPipe, reason)));
        }
        // The first record has the head; the body is not copied for the others.
        let mut first = Vec::new();
        message.encode_head(&mut first);
        let of_first = (RECORD_BYTES_MAX - first.len()).min(message.body.len());
        let (body, rest) = message.body.split_at(of_first);
        first.extend_from_slice(body);
        sealing.is_torn = true;
        for record in [&first[..]].into_iter().chain(rest.chunks(RECORD_BYTES_MAX)) {
            let written = timeout(self.timeout, sealing.writer.write(record)).await;
            written.map_err(|_| self.late())?.map_err(Error::Link)?;
        }
        sealing.is_torn = false;
        self.bytes.fetch_add((first.len() + rest.len()) as u64, Relaxed);
        Ok(())
    }

    fn late(&self) -> Error {
        Error::Timeout { what: "the other half took nothing", after: self.timeout }
    }

    /// Writes a message without a segment.
    pub(crate) async fn say(&self, kind: MessageKind, body: &[u8]) -> Result<()> {
        self.put(&Message::of(kind, body)).await
    }

    /// Sends the end.
    pub(crate) async fn shutdown(&self) -> Result<()> {
        let mut sealing = self.sealed.lock().await;
        let shut = timeout(self.timeout, sealing.writer.shutdown()).await;
        shut.map_err(|_| self.late())?.map_err(Error::Link)
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::SharedKey;
    use crate::sealed::{ClientSeal, Sealed, ServerSeal};

    async fn sealed() -> (Sealed, Sealed) {
        let key = SharedKey::of(&SharedKey::generate().unwrap()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let here = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (there, _) = listener.accept().await.unwrap();
        let (client, server) = (ClientSeal::Key(key.clone()), ServerSeal::Keys(vec![key]));
        let (here, there) = tokio::join!(client.seal(here), server.seal(there));
        (here.unwrap(), there.unwrap())
    }

    /// The next bytes would be taken for the rest of an abandoned message.
    #[tokio::test]
    async fn nothing_goes_out_after_a_message_that_did_not_go_out_whole() {
        let (here, there) = sealed().await;
        let writer = WireWriter::new(here.writer, Duration::from_secs(60));
        let message = Message::of(MessageKind::Plain, &vec![7; 1 << 20]);
        let mut whole = 0;
        // Without a reader, the sockets fill up.
        while timeout(Duration::from_millis(200), writer.put(&message)).await.is_ok() {
            whole += 1;
        }
        let error = writer.say(MessageKind::Reset, b"words").await.unwrap_err().to_string();
        assert!(error.contains("did not go out whole"), "{error}");
        assert!(writer.ping().await.is_err());
        drop(writer);
        let mut reader = WireReader::new(there.reader);
        for _ in 0..whole {
            assert!(reader.next().await.unwrap() == Some(message.clone()));
        }
        assert!(reader.next().await.is_err(), "a part of a message is taken for one");
    }

    #[tokio::test]
    async fn bytes_of_a_message_are_heard_before_it_is_whole() {
        let (here, there) = sealed().await;
        let mut writer = here.writer;
        let mut bytes = Vec::new();
        Message::of(MessageKind::Plain, &[7; 1000]).encode(&mut bytes);
        writer.write(&bytes[..500]).await.unwrap();
        let mut reader = WireReader::new(there.reader);
        let waited = timeout(Duration::from_millis(200), reader.next()).await;
        assert!(waited.is_err());
        assert_eq!((reader.heard.load(Relaxed), reader.bytes.load(Relaxed)), (500, 0));
    }
}
