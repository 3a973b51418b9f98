//! A shared key: the handshake `NNpsk0` of the Noise protocol, and records with a tag each.
//!
//! ```text
//!   client   "NDXP" version, key's name (16), message 1 (48) --->
//!            <--- "NDXP" version, message 2 (48)                     server
//!   both     bytes (2), sealed bytes and their tag (16) ...
//! ```
//!
//! Each message of the handshake has a new public key and is sealed with a secret derived from the shared key and both
//! of these: a challenge to the other side. An attacker who records everything and later gets the key can read nothing.
//! Both sides authenticate the first 21 bytes. An attacker who repeats an old message 1 gets an answer but cannot
//! continue, so the server trusts its client only after the first record.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use snow::{Builder, HandshakeState, StatelessTransportState};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::{RECORD_BYTES_MAX, Sealed, SealedReader, SealedWriter};
use crate::key::{NAME_BYTES, SharedKey};
use crate::{Error, Result};

/// The handshake.
const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";

/// The first bytes of each side, and the version.
const GREETING: [u8; GREETING_BYTES] = *b"NDXP\x01";
const GREETING_BYTES: usize = 5;

/// The bytes of either message: a public key and a tag.
const MESSAGE_BYTES: usize = 48;

/// Bytes of a tag.
const TAG_BYTES: usize = 16;

/// The bytes that the client sends before its message.
type Prologue = [u8; GREETING_BYTES + NAME_BYTES];

/// Begins the handshake, as the connecting side.
pub(super) async fn initiate(mut stream: TcpStream, key: &SharedKey) -> Result<Sealed> {
    let prologue = prologue_of(key);
    let mut state = builder(key, &prologue).and_then(Builder::build_initiator).map_err(noise)?;
    let mut first = [0; MESSAGE_BYTES];
    state.write_message(&[], &mut first).map_err(noise)?;
    stream.write_all(&[&prologue[..], &first].concat()).await.map_err(Error::Link)?;
    read_greeting(&mut stream).await?;
    let mut second = [0; MESSAGE_BYTES];
    fill(&mut stream, &mut second).await?;
    state.read_message(&second, &mut []).map_err(|_| wrong_key())?;
    sealed(stream, state, key)
}

/// Answers a handshake, as the accepting side.
pub(super) async fn respond(mut stream: TcpStream, keys: &[SharedKey]) -> Result<Sealed> {
    // A peer of another version is told this half's version.
    if let Err(error) = read_greeting(&mut stream).await {
        let _ = stream.write_all(&GREETING).await;
        return Err(error);
    }
    let mut name = [0; NAME_BYTES];
    fill(&mut stream, &mut name).await?;
    let mut first = [0; MESSAGE_BYTES];
    fill(&mut stream, &mut first).await?;
    let key = keys
        .iter()
        .find(|key| key.name() == name)
        .ok_or_else(|| Error::handshake("the peer names a key that this half does not have"))?;
    let prologue = prologue_of(key);
    let mut state = builder(key, &prologue).and_then(Builder::build_responder).map_err(noise)?;
    state.read_message(&first, &mut []).map_err(|_| wrong_key())?;
    let mut second = [0; MESSAGE_BYTES];
    state.write_message(&[], &mut second).map_err(noise)?;
    stream.write_all(&[&GREETING[..], &second].concat()).await.map_err(Error::Link)?;
    sealed(stream, state, key)
}

fn prologue_of(key: &SharedKey) -> Prologue {
    let mut prologue = [0; GREETING_BYTES + NAME_BYTES];
    prologue[..GREETING_BYTES].copy_from_slice(&GREETING);
    prologue[GREETING_BYTES..].copy_from_slice(&key.name());
    prologue
}

fn builder<'k>(
    key: &'k SharedKey,
    prologue: &'k Prologue,
) -> std::result::Result<Builder<'k>, snow::Error> {
    Builder::new(PATTERN.parse()?).prologue(prologue)?.psk(0, key.secret())
}

async fn read_greeting(stream: &mut TcpStream) -> Result<()> {
    let mut greeting = [0; GREETING_BYTES];
    fill(stream, &mut greeting).await?;
    if greeting == GREETING {
        return Ok(());
    }
    let (expected, found) = (GREETING[GREETING_BYTES - 1], greeting[GREETING_BYTES - 1]);
    Err(Error::handshake(if greeting[..4] == GREETING[..4] {
        format!("expected version {expected}, found {found}; use programs of one version")
    } else {
        format!(
            "expected {:?} first, found {:?}; is it a half of the proxy with a shared key?",
            &GREETING[..4],
            &greeting[..4]
        )
    }))
}

async fn fill(stream: &mut TcpStream, buffer: &mut [u8]) -> Result<()> {
    match stream.read_exact(buffer).await {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(Error::handshake(
            "the other side has closed the connection; have both halves the same key, and has it a free place?",
        )),
        Err(error) => Err(Error::Link(error)),
    }
}

fn sealed(stream: TcpStream, state: HandshakeState, key: &SharedKey) -> Result<Sealed> {
    let state = Arc::new(state.into_stateless_transport_mode().map_err(noise)?);
    let (from, to) = stream.into_split();
    let from = BufReader::with_capacity(RECORD_BYTES_MAX, from);
    let reader = NoiseReader { from, state: Arc::clone(&state), nonce: 0, record: Vec::new() };
    let writer = NoiseWriter { to, state, nonce: 0, record: Vec::new() };
    Ok(Sealed {
        reader: SealedReader::Noise(reader),
        writer: SealedWriter::Noise(writer),
        owner: key.owner().clone(),
        peer: key.shown_name(),
    })
}

/// A reader of records.
pub(crate) struct NoiseReader {
    from: BufReader<OwnedReadHalf>,
    state: Arc<StatelessTransportState>,
    nonce: u64,
    record: Vec<u8>,
}

impl NoiseReader {
    pub(super) async fn read(&mut self, out: &mut Vec<u8>) -> io::Result<usize> {
        // Between two records an end is valid; the messages in them show whether it cuts something off.
        if self.from.buffer().is_empty()
            && tokio::io::AsyncBufReadExt::fill_buf(&mut self.from).await?.is_empty()
        {
            return Ok(0);
        }
        let bytes = usize::from(self.from.read_u16().await?);
        if !(TAG_BYTES + 1..=RECORD_BYTES_MAX + TAG_BYTES).contains(&bytes) {
            let most = RECORD_BYTES_MAX + TAG_BYTES;
            return Err(invalid(format!(
                "expected a record of {} to {most} bytes, found {bytes}",
                TAG_BYTES + 1
            )));
        }
        self.record.resize(bytes, 0);
        self.from.read_exact(&mut self.record).await?;
        let before = out.len();
        out.resize(before + bytes - TAG_BYTES, 0);
        let opened = self.state.read_message(self.nonce, &self.record, &mut out[before..]);
        self.nonce += 1;
        opened.map_err(|_| {
            out.truncate(before);
            invalid("a record was changed on its way, is missing or is repeated".into())
        })
    }
}

/// A writer of records.
pub(crate) struct NoiseWriter {
    to: OwnedWriteHalf,
    state: Arc<StatelessTransportState>,
    nonce: u64,
    record: Vec<u8>,
}

impl NoiseWriter {
    pub(super) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        for part in bytes.chunks(RECORD_BYTES_MAX) {
            let sealed_bytes = part.len() + TAG_BYTES;
            self.record.resize(2 + sealed_bytes, 0);
            let (head, sealed) = self.record.split_at_mut(2);
            head.copy_from_slice(&(sealed_bytes as u16).to_be_bytes());
            let sealed = self.state.write_message(self.nonce, part, sealed);
            sealed.map_err(|error| invalid(format!("a record cannot be sealed: {error}")))?;
            self.nonce += 1;
            self.to.write_all(&self.record).await?;
        }
        Ok(())
    }

    pub(super) async fn shutdown(&mut self) -> io::Result<()> {
        self.to.shutdown().await
    }
}

fn invalid(reason: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, reason)
}

fn noise(error: snow::Error) -> Error {
    Error::handshake(format!("Noise says {error}"))
}

fn wrong_key() -> Error {
    Error::handshake(
        "its key is another one under the same name, or its message was changed on its way",
    )
}
