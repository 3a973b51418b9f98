//! A "seen" set for lines: prints each line of its input when it first occurs, in bounded RAM.
//!
//! `cargo run --release -p nandex --example seen FILE < urls.txt`
//!
//! A line is identified by 16 bytes of its hash; the set survives, so a second run continues where the first
//! ended. The table evicts the lines not seen for longest when it is full.

use std::io::{BufRead, BufWriter, Write};

use nandex::raw::store::hash::{HashKind, KeyHasher};
use nandex::{Policy, Table};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "seen.nandex".into());
    let db = nandex::open(path)?;
    // Ten million lines, 16 bytes of hash each, and no values.
    let lines = db.table("seen").entries(10_000_000).widths(16, 0);
    let seen = lines.policy(Policy::Lru).create_or_open()?;
    let hasher = KeyHasher::new(HashKind::Xxh3, 0);
    let mut out = BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let hash = hasher.hash(line.as_bytes());
        let mut key = [0; 16];
        key[..8].copy_from_slice(&hash.place.to_le_bytes());
        key[8..].copy_from_slice(&hash.filter.to_le_bytes());
        if !seen.contains(&key)? {
            seen.insert(&key, &[])?;
            writeln!(out, "{line}")?;
        }
    }
    out.flush()?;
    Ok(seen.close()?)
}
