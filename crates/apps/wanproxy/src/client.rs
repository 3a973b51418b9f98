//! The client half: accepts connections of programs, and forwards them to the server half.

use std::io::ErrorKind;
use std::sync::Arc;

use nandex_wan::live::MessageKind;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::accept::{Admitted, Pending};
use crate::bypass::bypass;
use crate::config::{ClientConfig, Entrance};
use crate::dial::{dial, end, reset, take_leave};
use crate::relay::{Ends, relay};
use crate::sealed::{ClientSeal, Sealed};
use crate::shared::Shared;
use crate::socks::{self, SocksReply};
use crate::wire::{WireReader, WireWriter};
use crate::{Error, Refusal, Result, Target, http_connect};

/// The part of the places for handshakes that is for those with the server half: a quarter.
const HANDSHAKES_SHARE: usize = 4;

/// The shared state of connections of a client half.
pub(crate) struct Client {
    shared: Arc<Shared>,
    seal: ClientSeal,
    pub(crate) config: ClientConfig,
    /// The places for concurrent handshakes with the server half: a part of the server half's places for all of its
    /// clients, so that it does not reset some of a thousand simultaneous connections.
    handshakes: Semaphore,
}

/// The request of a program.
struct Request {
    /// The target; without one, the server half's own.
    target: Option<Target>,
    /// The bytes that it has already sent.
    early: Vec<u8>,
}

impl Request {
    fn shown(&self) -> String {
        self.target.as_ref().map_or("the server's target".into(), Target::to_string)
    }
}

/// A connection to the target.
enum Way {
    Sealed(Box<(WireReader, WireWriter, nandex_wan::Owner, String)>),
    Bypass(TcpStream),
}

/// A program's connection before bytes are moved over it.
struct Opened {
    request: Request,
    place: Admitted,
    way: Way,
}

/// The reason for not serving a program.
struct NotOpened {
    error: Error,
    /// Whether the program was told. Otherwise it sees a reset.
    was_told: bool,
}

/// Serves a connection of a program.
pub(crate) async fn serve(
    client: Arc<Client>,
    entrance: Entrance,
    mut local: TcpStream,
    pending: Pending,
) -> Result<()> {
    // Until everything was moved or the program was told, also if this task is ended.
    reset(&local);
    match client.open(&entrance, &mut local, pending).await {
        Ok(opened) => client.carry(opened, &mut local).await,
        Err(NotOpened { error, was_told }) => {
            if was_told {
                end(&local);
                take_leave(&mut local).await;
            }
            Err(error)
        }
    }
}

impl Client {
    pub(crate) fn new(shared: &Arc<Shared>, seal: ClientSeal, config: ClientConfig) -> Self {
        let handshakes = Semaphore::new((shared.limits.pending_max / HANDSHAKES_SHARE).max(1));
        Self { shared: Arc::clone(shared), seal, config, handshakes }
    }

    /// Reads the program's request, connects to the target, and tells it the result.
    async fn open(
        &self,
        entrance: &Entrance,
        local: &mut TcpStream,
        pending: Pending,
    ) -> std::result::Result<Opened, NotOpened> {
        let request = self.request(entrance, local).await.map_err(|error| NotOpened {
            was_told: matches!(error, Error::Request { .. }),
            error,
        })?;
        let way = match pending.admit() {
            Ok(place) => self.way(&request).await.map(|way| (place, way)),
            Err(error) => Err(error),
        };
        let answered = self.answer(entrance, local, way.as_ref().err()).await;
        match (way, answered) {
            (Ok((place, way)), Ok(_)) => Ok(Opened { request, place, way }),
            (Err(error), Ok(was_told)) => Err(NotOpened { error, was_told }),
            (_, Err(error)) => Err(NotOpened { error, was_told: false }),
        }
    }

    async fn carry(&self, opened: Opened, local: &mut TcpStream) -> Result<()> {
        let Opened { request, place, way } = opened;
        let carried = match way {
            Way::Sealed(way) => self.relay(request, local, *way).await,
            Way::Bypass(target) => self.go_around(request, local, target).await,
        };
        drop(place);
        carried
    }

    async fn request(&self, entrance: &Entrance, local: &mut TcpStream) -> Result<Request> {
        let after = self.shared.limits.handshake_timeout;
        let read = async {
            match entrance {
                Entrance::Forward(target) => {
                    Ok(Request { target: target.clone(), early: Vec::new() })
                }
                Entrance::Socks5 => {
                    let target = Some(socks::request(local).await?);
                    Ok(Request { target, early: Vec::new() })
                }
                Entrance::Http => {
                    let (target, early) = http_connect::request(local).await?;
                    Ok(Request { target: Some(target), early })
                }
            }
        };
        let late = Error::Timeout { what: "the program has sent no request", after };
        timeout(after, read).await.map_err(|_| late)?
    }

    /// Tells the program the result of its request, if its entrance has messages for that; returns whether it has.
    async fn answer(
        &self,
        entrance: &Entrance,
        local: &mut TcpStream,
        error: Option<&Error>,
    ) -> Result<bool> {
        match entrance {
            Entrance::Forward(_) => return Ok(false),
            Entrance::Socks5 => {
                socks::answer(local, error.map_or(SocksReply::Done, SocksReply::from)).await?;
            }
            Entrance::Http => {
                let status = error.map_or("200 Connection established", http_connect::status_of);
                http_connect::answer(local, status).await?;
            }
        }
        Ok(true)
    }

    /// Connects to the target through the server half, or around it if permitted.
    async fn way(&self, request: &Request) -> Result<Way> {
        match (self.reach_target(request).await, &request.target) {
            (Err(Error::Unreachable { .. }), Some(target)) if self.config.bypasses => {
                self.shared.stats.unreachable.add(1);
                let Shared { resolver, limits, .. } = &*self.shared;
                let stream = dial(resolver, target, limits.connect_timeout).await;
                let stream = stream.map_err(|error| refused_by(target, &error))?;
                self.shared.stats.bypassed.add(1);
                Ok(Way::Bypass(stream))
            }
            (opened, _) => opened,
        }
    }

    /// Connects to the target through the server half.
    async fn reach_target(&self, request: &Request) -> Result<Way> {
        let place = self.handshakes.acquire().await;
        let sealed = self.reach().await?;
        let mut reader = WireReader::new(sealed.reader);
        let writer = WireWriter::new(sealed.writer, self.shared.limits.link_timeout);
        let target = request.target.as_ref().map(Target::to_string).unwrap_or_default();
        writer.say(MessageKind::Open, target.as_bytes()).await.map_err(unsealed)?;
        // The server half frees its place on that message.
        drop(place);
        let limits = &self.shared.limits;
        let after = limits.handshake_timeout + limits.connect_timeout;
        let late = Error::Timeout {
            what: "the other half has not said whether the target is there",
            after,
        };
        let answer = timeout(after, reader.next()).await.map_err(|_| late)?;
        let answer = answer.map_err(unsealed)?;
        let Some(answer) = answer else {
            return Err(Error::handshake(
                "the other side has closed the connection; has it a free place?",
            ));
        };
        match answer.kind {
            MessageKind::Opened => {
                Ok(Way::Sealed(Box::new((reader, writer, sealed.owner, sealed.peer))))
            }
            MessageKind::Refused => Err(refusal(request, &answer.body)),
            kind => {
                Err(Error::peer(format!("expected whether the target is there, found {kind:?}")))
            }
        }
    }

    /// Connects to the server half and does the handshake.
    async fn reach(&self) -> Result<Sealed> {
        let after = self.shared.limits.handshake_timeout;
        let peer = &self.config.peer.address;
        let unreachable = |source| Error::Unreachable { peer: peer.to_string(), source };
        let stream = dial(&self.shared.resolver, peer, after).await.map_err(unreachable)?;
        match timeout(after, self.seal.seal(stream)).await {
            Ok(sealed) => sealed,
            // The peer did not get to show that it lacks the key.
            Err(_) => {
                Err(unreachable(std::io::Error::new(ErrorKind::TimedOut, "no handshake in time")))
            }
        }
    }

    async fn relay(
        &self,
        request: Request,
        local: &mut TcpStream,
        (reader, writer, owner, peer): (WireReader, WireWriter, nandex_wan::Owner, String),
    ) -> Result<()> {
        let open = self.shared.stats.open(&peer, &request.shown());
        let ends = Ends { early: request.early, reader, writer, owner };
        relay(&self.shared, &open, local, ends).await?;
        self.shared.stats.finished.add(1);
        Ok(())
    }

    /// Moves unencoded bytes to the target and back.
    async fn go_around(
        &self,
        request: Request,
        local: &mut TcpStream,
        mut target: TcpStream,
    ) -> Result<()> {
        let open = self.shared.stats.open("bypass", &request.shown());
        bypass(&self.shared.limits, &open, (local, &mut target), &request.early).await?;
        self.shared.stats.finished.add(1);
        Ok(())
    }
}

/// The error of a server half without this key.
fn unsealed(error: Error) -> Error {
    match error {
        Error::Link(error) => Error::handshake(format!(
            "the other side has ended the connection ({error}); have both halves the same key or authorities?"
        )),
        other => other,
    }
}

fn refusal(request: &Request, body: &[u8]) -> Error {
    let (why, reason) = body.split_first().unwrap_or((&0, &[]));
    let reason = String::from_utf8_lossy(reason).into_owned();
    Error::Refused { target: request.shown(), why: Refusal::of(*why), reason }
}

/// The reason that a target of this side is unreachable.
pub(crate) fn refused_by(target: &Target, error: &std::io::Error) -> Error {
    let why = match error.kind() {
        ErrorKind::NotFound => Refusal::UnknownHost,
        ErrorKind::ConnectionRefused => Refusal::TargetRefused,
        _ => Refusal::Unreachable,
    };
    Error::Refused { target: target.to_string(), why, reason: error.to_string() }
}
