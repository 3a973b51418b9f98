//! Runs both halves of `nandex wan proxy` as processes on loopback.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use crate::common::Folder;

/// A running half; it is ended with the test.
struct Half {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
    addresses: Vec<(String, String)>,
}

impl Half {
    /// Starts a half with a small cache.
    fn start(folder: &Folder, words: &str) -> Self {
        Self::start_as(folder, &format!("{words} --size 4MiB"))
    }

    /// Starts any verb that prints its address.
    fn start_as(folder: &Folder, words: &str) -> Self {
        let mut child = folder.start(&format!("wan proxy {words} --json"));
        let mut out = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let mut line = String::new();
        out.read_line(&mut line).expect("it says where it listens");
        let addresses: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let addresses = addresses.as_array().into_iter().flatten();
        let addresses = addresses.map(|it| (text(&it["role"]), text(&it["address"]))).collect();
        let half = Self { child, out, addresses };
        assert!(!half.addresses.is_empty(), "{words}: {line}");
        half
    }

    fn address(&self, role: &str) -> &str {
        let found = self.addresses.iter().find(|(it, _)| it == role);
        &found.unwrap_or_else(|| panic!("{role} in {:?}", self.addresses)).1
    }

    /// Asks it to terminate; returns its figures.
    fn stop(mut self) -> serde_json::Value {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").arg(&id).status().expect("kill can be started").success());
        let mut line = String::new();
        self.out.read_line(&mut line).expect("it shows its figures");
        assert!(self.child.wait().expect("it ends").success(), "{line}");
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"))
    }
}

impl Drop for Half {
    fn drop(&mut self) {
        // It has ended if the test has stopped it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a target that returns what it receives; returns its address.
fn echo() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it has one").to_string();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut back = stream.try_clone().expect("a clone");
                let _ = std::io::copy(&mut stream, &mut back);
                let _ = back.shutdown(Shutdown::Write);
            });
        }
    });
    address
}

fn exchange(address: &str, head: &[u8], bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let mut writer = stream.try_clone().expect("a clone");
    let mut copy = Vec::new();
    thread::scope(|scope| {
        scope.spawn(move || {
            let _ = writer.write_all(&[head, bytes].concat());
            let _ = writer.shutdown(Shutdown::Write);
        });
        let _ = stream.read_to_end(&mut copy);
    });
    copy
}

fn lines(count: u32) -> Vec<u8> {
    let line = |number: u32| format!("{} {}\n", number, number.wrapping_mul(2_654_435_761));
    (0..count).map(line).collect::<String>().into_bytes()
}

fn number(figures: &serde_json::Value, name: &str) -> u64 {
    let value = if figures[name].is_u64() { &figures[name] } else { &figures["traffic"][name] };
    value.as_u64().unwrap_or_else(|| panic!("{name} in {figures}"))
}

#[test]
fn both_halves_carry_connections_and_know_them_after_a_restart() {
    let folder = Folder::new();
    let to = echo();
    assert_eq!(folder.run("wan proxy key key").code, 0);
    let stream = lines(20_000);
    let mut link = Vec::new();
    for _ in 0..2 {
        let server = format!(
            "server --listen 127.0.0.1:0 --target {to} --allow localhost:* --key key --cache there"
        );
        let server = Half::start(&folder, &server);
        let peer = server.address("server");
        let client = format!(
            "client --listen 127.0.0.1:0 --socks5 127.0.0.1:0 --http 127.0.0.1:0 --status 127.0.0.1:0 \
             --peer {peer} --key key --cache here"
        );
        let client = Half::start(&folder, &client);
        assert!(exchange(client.address("forward"), b"", &stream) == stream);
        let head = format!("CONNECT {to} HTTP/1.1\r\n\r\n");
        let copy = exchange(client.address("http"), head.as_bytes(), &stream);
        assert!(copy.starts_with(b"HTTP/1.1 200") && copy.ends_with(&stream));
        let socks = [&[5, 1, 0, 5, 1, 0, 3, 1, b'x'][..], &80_u16.to_be_bytes()].concat();
        assert_eq!(exchange(client.address("socks5"), &socks, b"")[..4], [5, 0, 5, 2]);
        let page = exchange(client.address("status"), b"GET / HTTP/1.1\r\n\r\n", b"");
        assert!(String::from_utf8_lossy(&page).contains("client half"));
        let figures = client.stop();
        assert_eq!((number(&figures, "finished"), number(&figures, "requests_refused")), (2, 1));
        assert_eq!(number(&figures, "local_in_bytes"), 2 * stream.len() as u64);
        assert_eq!(number(&server.stop(), "finished"), 2);
        link.push(number(&figures, "link_out_bytes"));
    }
    assert!(link[1] * 10 < link[0], "{link:?}");
}

#[test]
fn the_time_that_both_halves_add_is_measured_on_loopback() {
    let folder = Folder::new();
    for (bytes, is_plain) in [(100_u64, true), (4096, false)] {
        let words = format!("wan proxy latency --count 50 --bytes {bytes} --json");
        let report: serde_json::Value =
            serde_json::from_slice(&folder.run_bytes(&words)).expect("it is JSON");
        assert_eq!((number(&report, "round_trips"), number(&report, "bytes")), (50, bytes));
        // Including the warm-up, requests and answers.
        let all = 2 * 70 * bytes;
        assert_eq!(number(&report, "plain_bytes") == all, is_plain, "{report}");
        for kind in ["direct", "through"] {
            let time = |name: &str| report[kind][name].as_f64().expect("a time");
            assert!(time("p50_us") > 0.0 && time("p50_us") <= time("p99_us"), "{report}");
        }
    }
    assert!(folder.run("wan proxy latency --count 3").stdout.contains("added, p99"));
    folder.assert_refused(
        "
2 | wan proxy latency --count 0 | --count: 0; expected 1 to
2 | wan proxy latency --bytes 1GiB | bytes: 1073741824; expected 1 to
",
    );
}

/// Asserts what a slow link must show, whatever its rate: directly all of a stream is sent, through the halves hardly
/// any of a known one. The end of one stream may be counted with the next.
#[track_caller]
fn assert_measured(report: &serde_json::Value, runs: u64, stream_bytes: u64) {
    assert_eq!((number(report, "runs"), number(report, "stream_bytes")), (runs, stream_bytes));
    let streams = report["streams"].as_array().expect("streams");
    let shares: Vec<_> = streams.iter().map(|it| it["redundancy"].as_f64()).collect();
    assert_eq!(shares, [Some(0.0), Some(0.5), Some(1.0)]);
    let median =
        |index: usize, way: &str| streams[index][way]["median"].as_f64().expect("a figure");
    for (index, through_max) in [(0, 0.7), (1, 0.4), (2, 0.1)] {
        let whole = stream_bytes as f64;
        let direct = median(index, "direct_link_bytes") / whole;
        assert!((0.99..1.2).contains(&direct), "{report}");
        assert!(median(index, "through_link_bytes") < through_max * whole, "{report}");
        assert!(median(index, "improvement") > 0.0, "{report}");
    }
    let trips = &report["round_trips"];
    assert_eq!((number(trips, "count"), number(trips, "request_bytes")), (20, 100));
    for way in ["direct", "through"] {
        let time = |name: &str| trips[way][name]["median"].as_f64().expect("a time");
        assert!(time("p50_us") > 0.0 && time("p50_us") <= time("p99_us"), "{report}");
    }
    let added = &trips["added"]["p50_us"];
    assert!(added["min"].as_f64() <= added["median"].as_f64(), "{report}");
}

/// A short measurement, whose figures are those of [`assert_measured`].
const SHORT: &str = "--bytes 1MiB --redundancy 0.5,1 --count 20 --seed 7 --json";

#[test]
fn a_slow_link_on_loopback_is_measured_with_and_without_both_halves() {
    let folder = Folder::new();
    let words = format!("wan proxy measure --rate 200mbit --runs 2 {SHORT}");
    let report = serde_json::from_slice(&folder.run_bytes(&words)).expect("it is JSON");
    assert_measured(&report, 2, 1 << 20);
    assert_eq!(
        (&report["link"], number(&report, "rate_bits_per_s")),
        (&"token-bucket".into(), 200_000_000)
    );
    let text = folder.run("wan proxy measure --rate 1gbit --runs 1 --bytes 64KiB --count 5").stdout;
    for words in ["a token bucket in this process", "of which 90 % is known", "added"] {
        assert!(text.contains(words), "{text}");
    }
    folder.assert_refused(
        "
2 | wan proxy measure --runs 0 | runs: 0; expected 1 to
2 | wan proxy measure --redundancy 2 | --redundancy <SHARES>': expected a share from 0 to 1
2 | wan proxy measure --rate 8kbit | --bytes: a stream takes 8388 s
2 | wan proxy measure --rate 10 | is not a rate; expected one like 10mbit
2 | wan proxy measure --direct 127.0.0.1:1 | --through
2 | wan proxy measure --device lo | --direct
2 | wan proxy target --listen 0.0.0.0:0 | can be reached from other machines
",
    );
}

#[test]
fn a_link_between_a_target_and_running_halves_is_measured() {
    let folder = Folder::new();
    assert_eq!(folder.run("wan proxy key key").code, 0);
    let target = Half::start_as(&folder, "target --listen 127.0.0.1:0");
    let to = target.address("target");
    let server = Half::start(
        &folder,
        &format!("server --listen 127.0.0.1:0 --target {to} --key key --cache there"),
    );
    let peer = server.address("server");
    let client = format!("client --listen 127.0.0.1:0 --peer {peer} --key key --cache here");
    let client = Half::start(&folder, &client);
    let through = client.address("forward");
    let words = format!("wan proxy measure --direct {to} --through {through} --runs 1 {SHORT}");
    let report: serde_json::Value =
        serde_json::from_slice(&folder.run_bytes(&words)).expect("it is JSON");
    assert_eq!((&report["link"], &report["rate_bits_per_s"]), (&"network".into(), &().into()));
    assert!(report["streams"][0]["direct_link_bytes"].is_null(), "{report}");
    // Three streams, and the round trips including the warm-up; each begins with 8 bytes.
    let figures = client.stop();
    assert_eq!(number(&figures, "local_in_bytes"), 3 * ((1 << 20) + 8) + 40 * 100 + 8);
    assert_eq!((number(&figures, "finished"), number(&server.stop(), "finished")), (4, 4));
    let outcome = folder.run(&format!("{words} --device no-such-device"));
    assert!(outcome.stderr.contains("there is no network device no-such-device"), "{outcome:?}");
}

/// Returns the script of `make wan` with this command.
fn script(words: &str) -> Command {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../apps/wanproxy/wan.sh");
    let mut command = Command::new("/bin/bash");
    command
        .arg(script)
        .args(words.split_whitespace())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.env("NANDEX", env!("CARGO_BIN_EXE_nandex")).env("RATE", "200mbit").env_remove("LINK");
    command
}

/// Returns whether the script of this process has left none of its namespaces, which contain its number.
fn has_left_nothing(process: u32) -> bool {
    let left = |name| Path::new("/run/netns").join(format!("nandex-wan-{name}-{process}")).exists();
    !left("near") && !left("far")
}

#[test]
fn the_script_measures_between_namespaces_or_says_why_not() {
    let child = script(&format!("--runs 1 {SHORT}")).spawn().expect("bash can be started");
    let process = child.id();
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        let report = serde_json::from_slice(&output.stdout).expect("it is JSON");
        assert_measured(&report, 1, 1 << 20);
        assert!(said.contains("tc tbf rate 200mbit"), "{said}");
    } else {
        assert!(said.contains("LINK=loopback") && output.stdout.is_empty(), "{said}");
    }
    assert!(has_left_nothing(process));
}

#[test]
fn a_signal_ends_the_script_with_its_namespaces() {
    // It would take hours.
    let mut child = script("--runs 1000 --bytes 64MiB").spawn().expect("bash can be started");
    let mut said = BufReader::new(child.stderr.take().expect("stderr is piped")).lines();
    let begins = said.find_map(|line| line.ok().filter(|line| line.contains("wan.sh: ")));
    let is_measuring = begins.is_some_and(|line| line.contains("a veth pair"));
    let id = child.id().to_string();
    // Without namespaces it has ended.
    let _ = Command::new("kill").arg(&id).output().expect("kill can be started");
    let code = child.wait().expect("it ends").code();
    assert_eq!(code, Some(if is_measuring { 143 } else { 1 }));
    assert!(has_left_nothing(child.id()));
}

#[test]
fn the_script_refuses_where_a_tool_is_missing() {
    let empty = Folder::new();
    let path = empty.path("").display().to_string();
    let output = script("").env("PATH", path).output().expect("bash can be started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("there is no `ip`: install iproute2") && said.contains("LINK=loopback"));
}

#[test]
fn what_cannot_work_is_refused_before_a_cache_is_made() {
    let folder = Folder::new();
    assert_eq!(folder.run("wan proxy key key").code, 0);
    fs::write(folder.path("text"), "no key").expect("it is writable");
    folder.assert_refused(
        "
1 | wan proxy key key | cannot create key
2 | wan proxy client --listen 127.0.0.1:0 --cache c --key key | --peer
2 | wan proxy client --peer localhost:1 --cache c --key key | there is no entrance for programs
2 | wan proxy client --listen 127.0.0.1:0 --peer localhost:1 --cache c | the halves cannot authenticate each other
1 | wan proxy client --listen 127.0.0.1:0 --peer localhost:1 --cache c --key gone | gone
2 | wan proxy client --listen 127.0.0.1:0 --peer localhost:1 --cache c --key key --key key | 2 keys; expected one
2 | wan proxy client --listen 0.0.0.0:0 --peer localhost:1 --cache c --key key | can be reached from other machines
2 | wan proxy client --listen 127.0.0.1:0 --peer localhost:1 --cache c --key key --bypass | --bypass needs --target
1 | wan proxy client --listen 127.0.0.1:0 --peer localhost:1 --cache c --key key --window 9MiB | window_bytes
2 | wan proxy client --listen 127.0.0.1:0 --peer localhost --cache c --key key | is not a target
2 | wan proxy client --listen 127.0.0.1:0 --peer localhost:1 --cache c --tls-cert x | --tls-key
2 | wan proxy server --listen 127.0.0.1:0 --cache c --key key | --target
2 | wan proxy server --listen 127.0.0.1:0 --cache c --key key --allow x | is not a pattern
1 | wan proxy server --listen 127.0.0.1:0 --cache c --key text --target localhost:1 | this secret
2 | wan proxy server --listen 127.0.0.1:0 --cache c --key key --target localhost:1 --connections 0 | expected 1 to
",
    );
    assert!(!folder.path("c").exists());
}
