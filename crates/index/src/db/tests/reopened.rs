//! Structures that are opened with other requirements than they were created with.

use super::*;

#[test]
fn requirements_that_an_existing_structure_does_not_meet_are_refused_with_both_values() {
    let (_folder, path) = file();
    let db = open(&path).unwrap();
    let filter = || db.filter("f");
    drop(filter().keys(10_000).create_or_open().unwrap());
    drop(db.map("grows").create_or_open().unwrap());
    drop(db.map("kept").entries(1000).create_or_open().unwrap());
    drop(db.table("t").entries(1000).policy(Policy::Lru).create_or_open().unwrap());
    let policy = |name: &str, policy| text(db.map(name).policy(policy).create_or_open());
    for (refused, both) in [
        (text(filter().rate(0.5).create_or_open()), "rate = 0.01, and was required with 0.5"),
        (
            text(filter().keys(1e6).create_or_open()),
            "keys = 10,000, and was required with 1,000,000",
        ),
        (
            text(filter().refuse_when_full().create_or_open()),
            "= grow, and was required with reject",
        ),
        (policy("grows", Policy::Fifo), "policy = grow, and was required with fifo"),
        (policy("kept", Policy::Grow), "policy = reject, and was required with grow"),
        (text(db.map("kept").entries(1e6).create_or_open()), "\"kept\" exists with bytes = "),
        (
            text(db.table("t").policy(Policy::Reject).create_or_open()),
            "= lru, and was required with reject",
        ),
        (text(db.table("t").entries(1e6).create_or_open()), "and was required with 1,000,000"),
    ] {
        assert!(refused.contains(both) && refused.contains("exists with"), "{refused}");
    }
}

#[test]
fn requirements_that_an_existing_structure_meets_need_not_be_those_it_was_created_with() {
    let (_folder, path) = file();
    let db = open(&path).unwrap();
    // A few keys have a lower rate than is required.
    (0..2).for_each(|_| drop(db.filter("few").keys(8).rate(0.5).create_or_open().unwrap()));
    for keys in [10_000, 10_000, 100] {
        drop(db.filter("f").keys(keys).rate(0.01).create_or_open().unwrap());
        drop(db.table("t").entries(keys).create_or_open().unwrap());
        drop(db.table("g").entries(keys).policy(Policy::Grow).create_or_open().unwrap());
        drop(db.map("m").entries(keys).create_or_open().unwrap());
        drop(db.counting("c").keys(keys).create_or_open().unwrap());
    }
    drop(db.filter("f").create_or_open().unwrap());
    drop(db.table("t").create_or_open().unwrap());
    drop(db.table("g").entries(1e6).policy(Policy::Grow).create_or_open().unwrap());
    drop(db.map("m").create_or_open().unwrap());
}
