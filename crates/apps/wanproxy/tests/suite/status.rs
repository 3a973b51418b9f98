//! The status port.

use std::io::{Read, Write};
use std::net::SocketAddr;

use crate::common::*;

fn get(address: SocketAddr, request: &str) -> String {
    let mut stream = connect(address);
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}

/// Returns the figure of that name and half.
fn figure(text: &str, name: &str) -> f64 {
    let line = text.lines().find(|line| line.starts_with(&format!("nandex_wan_{name}{{")));
    let line = line.unwrap_or_else(|| panic!("{name} is not in {text}"));
    line.rsplit_once(' ').unwrap().1.parse().unwrap()
}

#[test]
fn a_page_and_figures_show_what_goes_on() {
    let mut plan = Plan::new(echo());
    plan.client.status = Some(ANY);
    plan.server.status = Some(ANY);
    let pair = plan.start();
    let stream = text(200_000, 1);
    for _ in 0..2 {
        assert!(exchange(pair.connect(), &stream).unwrap() == stream);
    }
    let mut open = pair.connect();
    open.write_all(b"x").unwrap();
    open.read_exact(&mut [0]).unwrap();
    let address = pair.client.addresses()[1].address;
    let page = get(address, "GET / HTTP/1.1\r\n\r\n");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    assert!(
        page.contains("client half") && page.contains("400,001") && page.contains("Refresh: 5")
    );
    assert!(page.ends_with("</html>\n"));
    assert!(page.contains("Content-Security-Policy: default-src 'none';"));
    for outside in ["http://", "https://", "<script", "<img", "<link", "@import"] {
        assert!(!page.contains(outside), "{outside}");
    }
    let text = get(address, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(figure(&text, "local_in_bytes_total"), 400_001.0);
    assert_eq!(figure(&text, "connections_open"), 1.0);
    assert!(figure(&text, "known_chunks_total") > 50.0);
    assert!(figure(&text, "ratio") > 3.0, "{text}");
    assert!(figure(&text, "latency_seconds_count") > 0.0);
    assert!(figure(&text, "connection_link_out_bytes") > 0.0);
    assert!(figure(&text, "connection_ratio") > 0.0);
    assert_eq!(figure(&text, "connection_waited_segments"), 1.0);
    assert!(text.contains("le=\"+Inf\"") && text.contains("le=\"0.0025\""));
    assert_metrics_are_well_formed(text.split_once("\r\n\r\n").unwrap().1);
    let server = get(pair.server.addresses()[1].address, "GET /metrics HTTP/1.0\r\n\r\n");
    assert_eq!(figure(&server, "connections_finished_total"), 2.0);
    pair.stop();
}

#[track_caller]
fn assert_metrics_are_well_formed(text: &str) {
    let mut names = std::collections::HashSet::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            assert!(names.insert(rest.split(' ').next().unwrap().to_owned()), "{line} comes twice");
        } else if !line.starts_with("# HELP ") {
            let (name, value) = line.rsplit_once(' ').unwrap();
            value.parse::<f64>().unwrap();
            let name = name.split('{').next().unwrap();
            let name = ["_bucket", "_sum", "_count"]
                .iter()
                .fold(name, |name, end| name.trim_end_matches(end));
            assert!(names.contains(name), "{line} has no type");
        }
    }
    assert!(names.len() > 30, "{}", names.len());
}

#[test]
fn anything_else_has_its_status_and_no_figures() {
    let mut plan = Plan::new(echo());
    plan.client.status = Some(ANY);
    let pair = plan.start();
    let address = pair.client.addresses()[1].address;
    let long = format!("GET / HTTP/1.1\r\n{}", "X: y\r\n".repeat(2000));
    let cases = [
        ("GET /other HTTP/1.1\r\n\r\n", "HTTP/1.1 404"),
        ("GET /../metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 404"),
        ("POST / HTTP/1.1\r\n\r\n", "HTTP/1.1 405"),
        ("\r\n\r\n", "HTTP/1.1 405"),
    ];
    for (request, status) in cases {
        let answer = get(address, request);
        assert!(
            answer.starts_with(status) && !answer.contains("nandex_wan_"),
            "{request}: {answer}"
        );
    }
    assert_eq!(get(address, &long), "");
    // Silent requesters do not hold their places for ever.
    let silent: Vec<_> = (0..15).map(|_| connect(address)).collect();
    assert!(get(address, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200"));
    drop(silent);
    pair.stop();
}
