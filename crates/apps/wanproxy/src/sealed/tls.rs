//! Certificates: TLS 1.3 in which each side shows one, and accepts only those of its given authorities.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nandex_wan::Owner;
use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

use super::{RECORD_BYTES_MAX, Sealed, SealedReader, SealedWriter};
use crate::key::check_private;
use crate::{Error, Result};

/// The protocol that both sides must announce: the version of the proxy.
const PROTOCOL: &[u8] = b"nandex-wan-proxy/1";

/// Files of certificates, in PEM.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsFiles {
    /// The half's own certificate, and its chain to its authority.
    pub certificates: PathBuf,
    /// Its secret key, which only its owner may read.
    pub key: PathBuf,
    /// The authorities of the other half's certificates.
    pub authorities: PathBuf,
}

/// The files' content.
struct Material {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    roots: Arc<RootCertStore>,
}

impl Material {
    fn read(files: &TlsFiles) -> Result<Self> {
        check_private(&files.key)?;
        let key = PrivateKeyDer::from_pem_file(&files.key);
        let key =
            key.map_err(|error| refuse(&files.key, format!("expected a secret key: {error}")))?;
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&files.authorities)? {
            roots
                .add(certificate)
                .map_err(|error| refuse(&files.authorities, error.to_string()))?;
        }
        Ok(Self { chain: certificates(&files.certificates)?, key, roots: Arc::new(roots) })
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let text = fs::read(path).map_err(|error| refuse(path, error.to_string()))?;
    let found: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(refuse(path, "expected certificates in PEM, found none".into())),
        Err(error) => Err(refuse(path, format!("expected certificates in PEM: {error}"))),
    }
}

fn refuse(path: &Path, reason: String) -> Error {
    Error::File { path: path.to_owned(), reason }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// The connecting side.
pub(crate) struct TlsClient {
    connector: TlsConnector,
    name: ServerName<'static>,
    certificate: CertificateDer<'static>,
}

impl fmt::Debug for TlsClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsClient").field("name", &self.name).finish_non_exhaustive()
    }
}

impl TlsClient {
    /// Reads the files. The other half's certificate must be for `name`.
    pub(crate) fn new(files: &TlsFiles, name: &str) -> Result<Self> {
        let Material { chain, key, roots } = Material::read(files)?;
        let certificate = first(&chain, &files.certificates)?;
        let name = ServerName::try_from(name.to_owned()).map_err(|_| Error::Options {
            field: "tls name",
            reason: format!(
                "`{name}`; expected the name or address in the other half's certificate"
            ),
        })?;
        let config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| refuse(&files.certificates, error.to_string()))?;
        let config = config.with_root_certificates(roots).with_client_auth_cert(chain, key);
        let mut config = config.map_err(|error| refuse(&files.key, error.to_string()))?;
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        // Each connection verifies the certificates again.
        config.resumption = Resumption::disabled();
        Ok(Self { connector: TlsConnector::from(Arc::new(config)), name, certificate })
    }

    pub(super) async fn connect(&self, stream: TcpStream) -> Result<Sealed> {
        let connected = self.connector.connect(self.name.clone(), stream).await;
        let stream = TlsStream::Client(connected.map_err(failed)?);
        let theirs = peer_of(&stream)?;
        let owner = owner(&self.certificate, &theirs);
        sealed(stream, owner, &theirs)
    }
}

/// The accepting side.
pub(crate) struct TlsServer {
    acceptor: TlsAcceptor,
    certificate: CertificateDer<'static>,
}

impl fmt::Debug for TlsServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsServer").finish_non_exhaustive()
    }
}

impl TlsServer {
    /// Reads the files.
    pub(crate) fn new(files: &TlsFiles) -> Result<Self> {
        let Material { chain, key, roots } = Material::read(files)?;
        let certificate = first(&chain, &files.certificates)?;
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider()).build();
        let verifier = verifier.map_err(|error| refuse(&files.authorities, error.to_string()))?;
        let config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| refuse(&files.certificates, error.to_string()))?;
        let config = config.with_client_cert_verifier(verifier).with_single_cert(chain, key);
        let mut config = config.map_err(|error| refuse(&files.key, error.to_string()))?;
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        // Each connection verifies the certificates again.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), certificate })
    }

    pub(super) async fn accept(&self, stream: TcpStream) -> Result<Sealed> {
        let stream = TlsStream::Server(self.acceptor.accept(stream).await.map_err(failed)?);
        let theirs = peer_of(&stream)?;
        let owner = owner(&theirs, &self.certificate);
        sealed(stream, owner, &theirs)
    }
}

fn first(chain: &[CertificateDer<'static>], path: &Path) -> Result<CertificateDer<'static>> {
    chain.first().cloned().ok_or_else(|| refuse(path, "expected a certificate, found none".into()))
}

/// Returns the certificate of the other side, if it has the same version.
fn peer_of(stream: &TlsStream<TcpStream>) -> Result<CertificateDer<'static>> {
    let (_, connection) = stream.get_ref();
    if connection.alpn_protocol() != Some(PROTOCOL) {
        let expected = String::from_utf8_lossy(PROTOCOL);
        return Err(Error::handshake(format!(
            "expected the protocol {expected}, found another one; use programs of one version"
        )));
    }
    let shown = connection.peer_certificates().and_then(|chain| chain.first());
    let shown = shown.ok_or_else(|| Error::handshake("the other side shows no certificate"))?;
    Ok(shown.clone().into_owned())
}

/// Returns the owner of the content transferred between these two. It is the same on both sides.
fn owner(client: &CertificateDer<'_>, server: &CertificateDer<'_>) -> Owner {
    let both = [blake3::hash(client), blake3::hash(server)].map(|digest| *digest.as_bytes());
    Owner::of(&blake3::derive_key("nandex wan proxy 1 owner of certificates", &both.concat()))
}

fn sealed(
    stream: TlsStream<TcpStream>,
    owner: Owner,
    theirs: &CertificateDer<'_>,
) -> Result<Sealed> {
    let digest = blake3::hash(theirs);
    let peer = digest.to_hex().chars().take(8).collect();
    let (from, to) = split(stream);
    let reader = SealedReader::Tls(TlsReader(from));
    Ok(Sealed { reader, writer: SealedWriter::Tls(TlsWriter(to)), owner, peer })
}

fn failed(error: io::Error) -> Error {
    Error::handshake(format!(
        "TLS says {error}; see the certificates of both halves, and their authorities"
    ))
}

/// The receiving side.
pub(crate) struct TlsReader(ReadHalf<TlsStream<TcpStream>>);

impl TlsReader {
    pub(super) async fn read(&mut self, out: &mut Vec<u8>) -> io::Result<usize> {
        let before = out.len();
        out.resize(before + RECORD_BYTES_MAX, 0);
        let read = self.0.read(&mut out[before..]).await;
        out.truncate(before + *read.as_ref().unwrap_or(&0));
        read
    }
}

/// The sending side.
pub(crate) struct TlsWriter(WriteHalf<TlsStream<TcpStream>>);

impl TlsWriter {
    pub(super) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes).await?;
        self.0.flush().await
    }

    pub(super) async fn shutdown(&mut self) -> io::Result<()> {
        self.0.shutdown().await
    }
}
