//! The same requests give the same nanoseconds, on every machine and in every release.

use nandex_sim::Fill;

use crate::support::{random, run_mixed, ssd};

fn hash(seed: u64, fill: Fill) -> u64 {
    let mut ssd = ssd(random(seed), fill);
    run_mixed(&mut ssd, 3000, 1 + seed % 40, seed);
    ssd.event_hash()
}

/// The pinned results. A change of these numbers is a change of every simulated result: it belongs in the
/// changelog.
const PINNED: [u64; 20] = [
    0x29e7d1c4587619d9,
    0x6f12223ad08f969e,
    0xd3eebd21440d1960,
    0x882815b2967cb224,
    0x0a39fd8471963351,
    0x2a49c70134560f5b,
    0x1254468bb8647461,
    0x964a1e9ea7561f2d,
    0xd3e3bece3842ed2b,
    0x3f5e412d4dde2c18,
    0x2ae12311d9a6f5c6,
    0xfabeffcb8a65a33d,
    0xbc997e376d44d153,
    0xb94eeb4e77b91937,
    0x34f004edc621202c,
    0x8c3769a3fc5f5445,
    0x3874d4e45dc75b05,
    0xb7486cd8fe7159aa,
    0xedb2a70832627c97,
    0x10f89f88db6aedd6,
];

#[test]
fn the_events_of_twenty_seeds_are_those_they_always_were() {
    let found: Vec<u64> = (0..20).map(|seed| hash(seed, Fill::Sequential)).collect();
    let hex: Vec<String> = found.iter().map(|hash| format!("{hash:#018x}")).collect();
    assert_eq!(found, PINNED, "found [{}]", hex.join(", "));
}

#[test]
fn the_same_seed_gives_the_same_events_whatever_is_on_the_device() {
    for fill in [Fill::Empty, Fill::Sequential, Fill::Steady { seed: 1 }] {
        assert_eq!(hash(3, fill), hash(3, fill));
    }
    assert_ne!(hash(3, Fill::Empty), hash(3, Fill::Sequential));
}
