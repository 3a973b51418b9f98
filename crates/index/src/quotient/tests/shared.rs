//! Filters of keys: answers compared with an exact multiset, growth, refusals, threads.

use std::sync::Arc;

use super::super::*;
use crate::api::{Counter, Filter};
use crate::{Error, Result};

fn key(n: u64) -> [u8; 8] {
    n.to_le_bytes()
}

#[test]
fn a_full_filter_doubles_or_refuses_as_it_was_told() -> Result<()> {
    let filter = SharedFilter::new(Config::tiny())?;
    (0..2000).try_for_each(|n| filter.insert(&key(n)))?;
    assert!((0..2000).all(|n| filter.contains(&key(n)).unwrap()));
    let stats = filter.stats();
    assert!(stats.rate > 0.018 && stats.rate < 0.0201, "past its keys it says so: {}", stats.rate);
    let filter: SharedFilter =
        SharedFilter::new(Config { growth: Growth::Refuse, ..Config::tiny() })?;
    (0..4).try_for_each(|n| filter.insert(&key(n)))?;
    let error = filter.insert(&key(4)).unwrap_err();
    assert!(matches!(error, Error::FilterFull { entries: 4, .. }), "{error}");
    assert!((0..4).all(|n| filter.contains(&key(n)).unwrap()));
    Ok(())
}

#[test]
fn growth_ends_where_it_would_not_help() -> Result<()> {
    let widest = Config { capacity: 1, ..Config::new(10, 0.5) };
    let filter = SharedFilter::new(widest)?;
    let fill = || (0..100).try_for_each(|n| filter.insert(&key(n)));
    assert!(matches!(fill().unwrap_err(), Error::FilterFull { .. }), "all slots are quotients");
    let hot = Config { counts: Counts::Small(2), capacity: 1000, ..Config::new(100_000, 0.01) };
    let filter = SharedFilter::new(hot)?;
    let fill = || (0..1000).try_for_each(|n| filter.add(&key(n), 1000));
    assert!(fill().unwrap_err().to_string().contains("more bits for counts"));
    assert!(filter.stats().ram_bytes < 10_000, "and it did not grow for it");
    Ok(())
}

#[test]
fn what_is_absent_cannot_be_deleted() -> Result<()> {
    for counts in [Counts::One, Counts::Signed, Counts::Small(4)] {
        let filter = SharedFilter::new(Config { counts, ..Config::tiny() })?;
        assert!(matches!(filter.delete(b"a"), Err(Error::NotThere { .. })), "{counts:?}");
        filter.add(b"a", 3)?;
        assert!(matches!(filter.add(b"a", -4), Err(Error::NotThere { count: 3, .. })));
        assert!(matches!(filter.add(b"a", i64::MAX), Err(Error::CountRange { .. })));
        filter.add(b"a", 0)?;
        filter.add_many(&[(b"a", -2), (b"", 5)])?;
        assert_eq!((filter.count(b"a")?, filter.count(b"")?), (1, 5));
        filter.delete_many(&[b"a", b""])?;
        assert_eq!(filter.contains_many(&[b"a", b""])?, [false, true]);
        filter.sync()?;
        filter.flush()?;
    }
    Ok(())
}

#[test]
fn threads_that_insert_and_look_up_at_once_lose_nothing() {
    let config = Config { capacity: 16, ..Config::new(10_000, 0.01) };
    let filter = Arc::new(SharedFilter::new(config).unwrap());
    std::thread::scope(|scope| {
        for part in 0..4u64 {
            let filter = &filter;
            scope.spawn(move || {
                for n in (0..2000).map(|n| n * 4 + part) {
                    filter.insert(&key(n)).unwrap();
                    assert!(filter.contains(&key(n)).unwrap());
                    let earlier = n / 8 * 4 + part;
                    assert!(filter.contains(&key(earlier)).unwrap(), "{earlier} was there at {n}");
                }
            });
        }
    });
    assert!((0..8000).all(|n| filter.contains(&key(n)).unwrap()));
}

#[test]
fn a_filter_is_saved_and_comes_back_under_the_same_keys() -> Result<()> {
    let filter = SharedFilter::new(Config::tiny())?;
    (0..100).try_for_each(|n| filter.insert(&key(n)))?;
    let bytes = filter.filter().encode();
    let saved = QuotientFilter::decode(&bytes)?;
    let again = SharedFilter::with_filter(Config::tiny(), saved.clone())?;
    assert!((0..100).all(|n| again.contains(&key(n)).unwrap()));
    for other in [
        Config { keys: 1001, ..Config::tiny() },
        Config { rate: 0.02, ..Config::tiny() },
        Config { counts: Counts::Signed, ..Config::tiny() },
        Config { capacity: 0, ..Config::tiny() },
        Config { rate: 0.0, ..Config::tiny() },
    ] {
        assert!(SharedFilter::with_filter(other, saved.clone()).is_err(), "{other:?}");
    }
    Ok(())
}
