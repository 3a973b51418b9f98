//! Keys and certificates, and the information that peers of one server half get about each other.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nandex_wanproxy::{Proxy, Security, Target, TlsFiles};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::common::*;

#[test]
fn another_key_is_refused_on_both_sides() {
    let mut plan = Plan::new(echo());
    plan.client.security = Security::Keys(vec![plan.keys.make("other")]);
    let pair = plan.start();
    assert!(exchange(pair.connect(), b"some words").is_err());
    eventually("it is counted", || {
        pair.client.snapshot().handshakes_failed == 1
            && pair.server.snapshot().handshakes_failed == 1
    });
    let (client, server) = pair.stop();
    assert!(client.last_error.unwrap().contains("the same key"));
    assert!(server.last_error.unwrap().contains("a key that this half does not have"));
}

/// A peer that sends another peer's content cannot detect that it was already cached.
#[test]
fn peers_of_one_server_half_share_its_cache_and_see_nothing_of_each_other() {
    let keys = Keys::new();
    let (one, other) = (keys.make("one"), keys.make("other"));
    let to = echo();
    let mut plan = Plan::new(to);
    plan.server.security = Security::Keys(vec![one.clone(), other.clone()]);
    let server = Proxy::server(cache(), plan.server.clone()).unwrap();
    let stream = text(300_000, 1);
    let bytes = |key: &Path| {
        let mut config = plan.client.clone();
        config.security = Security::Keys(vec![key.to_owned()]);
        config.peer.address = Target::of(server.addresses()[0].address);
        let client = Proxy::client(cache(), config).unwrap();
        let address = client.addresses()[0].address;
        assert!(exchange(connect(address), &stream).unwrap() == stream);
        let traffic = client.stop().unwrap().traffic;
        assert_eq!(traffic.asked_segments + traffic.again_segments, 0);
        (traffic.link_out_bytes, traffic.link_in_bytes)
    };
    let first = bytes(&one);
    let spy = bytes(&other);
    let near = |one: u64, other: u64| one.abs_diff(other) * 10 < one;
    assert!(near(first.0, spy.0), "{first:?} {spy:?}");
    // Its echo is its own content, so it is sent back in as few bytes as the first one's.
    assert!(spy.1 < 60_000 && first.1 < 60_000, "{first:?} {spy:?}");
    server.stop().unwrap();
}

struct Authority {
    folder: tempfile::TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("ca.pem"), issuer.pem()).unwrap();
        Self { folder, issuer }
    }

    fn files(&self, name: &str, host: &str) -> TlsFiles {
        let path = |end: &str| self.folder.path().join(format!("{name}.{end}"));
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        fs::write(path("pem"), certificate.pem()).unwrap();
        fs::write(path("key"), key.serialize_pem()).unwrap();
        fs::set_permissions(path("key"), fs::Permissions::from_mode(0o600)).unwrap();
        TlsFiles { certificates: path("pem"), key: path("key"), authorities: self.ca() }
    }

    fn ca(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }
}

fn plan(client: TlsFiles, server: TlsFiles) -> Plan {
    let mut plan = Plan::new(echo());
    plan.client.security = Security::Tls(client);
    plan.server.security = Security::Tls(server);
    plan
}

#[test]
fn halves_with_certificates_carry_streams_and_references() {
    let authority = Authority::new();
    let plan = plan(authority.files("client", "client"), authority.files("server", "127.0.0.1"));
    let pair = plan.start();
    let stream = [text(200_000, 1), noise(100_000, 1)].concat();
    for _ in 0..2 {
        assert!(exchange(pair.connect(), &stream).unwrap() == stream);
    }
    let (client, server) = pair.stop();
    assert_eq!((client.finished, server.finished), (2, 2));
    assert!(client.traffic.link_out_bytes < 220_000, "{client:?}");
}

#[test]
fn certificates_of_others_are_refused_by_each_side() {
    let (ours, other) = (Authority::new(), Authority::new());
    let server = || ours.files("server", "127.0.0.1");
    // A client of another authority, which trusts this one.
    let client = TlsFiles { authorities: ours.ca(), ..other.files("client", "client") };
    assert_refused(plan(client, server()));
    // A server of another authority.
    let stranger = TlsFiles { authorities: ours.ca(), ..other.files("server", "127.0.0.1") };
    assert_refused(plan(ours.files("client", "client"), stranger));
    // A server of this authority with another name.
    assert_refused(plan(ours.files("client", "client"), ours.files("server", "example.org")));
    // A half with a key, and one with certificates.
    let mut mixed = Plan::new(echo());
    mixed.server.security = Security::Tls(server());
    assert_refused(mixed);
    let mut mixed = Plan::new(echo());
    mixed.client.security = Security::Tls(ours.files("client", "client"));
    assert_refused(mixed);
}

#[track_caller]
fn assert_refused(plan: Plan) {
    let pair = plan.start();
    assert!(exchange(pair.connect(), b"some words").is_err());
    eventually("it is counted", || {
        pair.client.snapshot().handshakes_failed == 1
            && pair.server.snapshot().handshakes_failed == 1
    });
    let (client, server) = pair.stop();
    assert_eq!((client.finished, server.finished), (0, 0));
}

#[test]
fn a_certificate_by_another_name_is_taken_if_that_is_the_one() {
    let authority = Authority::new();
    let mut plan =
        plan(authority.files("client", "client"), authority.files("server", "example.org"));
    plan.client.peer.tls_name = Some("example.org".into());
    let pair = plan.start();
    assert_eq!(exchange(pair.connect(), b"some words").unwrap(), b"some words");
    pair.stop();
}

#[test]
fn files_that_are_of_no_use_are_named() {
    let authority = Authority::new();
    let good = authority.files("client", "client");
    let refusal = |files: TlsFiles| {
        let plan = plan(files, good.clone());
        plan.client.check().unwrap_err().to_string()
    };
    let gone = refusal(TlsFiles { certificates: "gone.pem".into(), ..good.clone() });
    assert!(gone.starts_with("gone.pem: "), "{gone}");
    let none = refusal(TlsFiles { authorities: good.key.clone(), ..good.clone() });
    assert!(none.contains("expected certificates in PEM, found none"), "{none}");
    fs::set_permissions(&good.key, fs::Permissions::from_mode(0o640)).unwrap();
    assert!(refusal(good.clone()).contains("its mode is 640"));
}
