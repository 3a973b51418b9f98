//! Files follow what is written and buffered, not the RAM that there might be.
//!
//! The log once took eight times what all buffers of a structure can hold, as soon as the structure was created: a file
//! with two keys took tens of MiB, and one with several structures more than 100.

use super::*;

const MIB: u64 = 1 << 20;

/// Creates a structure in a new file with `make`, which returns the call that adds two records. Returns the lengths of
/// the file before and after that.
fn sizes<A: FnOnce() -> Result<()>>(
    path: &Path,
    make: impl FnOnce(&Database) -> Result<A>,
) -> (u64, u64) {
    let bytes = || fs::metadata(path).unwrap().len();
    let db = open(path).unwrap();
    let add = make(&db).unwrap();
    let fresh = bytes();
    add().unwrap();
    drop(db);
    (fresh, bytes())
}

/// Two records.
const PAIRS: [(&[u8], &[u8]); 2] = [(&[1; 8], &[2; 8]), (&[3; 8], &[4; 8])];
const KEYS: [&[u8]; 2] = [PAIRS[0].0, PAIRS[1].0];

#[test]
fn a_file_with_two_records_takes_a_mebibyte() {
    let (_folder, path) = file();
    let check = |what: &str, (fresh, with_two): (u64, u64)| {
        // A map has a value log too.
        let most = MIB + if what == "map" { MIB / 32 } else { 0 };
        assert!(fresh <= most && with_two <= most, "{what}: {fresh} bytes, then {with_two}");
        fs::remove_file(&path).unwrap();
    };
    let table = |policy| {
        let path = &path;
        move || {
            sizes(path, |db| {
                let table = db.table("t").entries(1000).policy(policy).create_or_open()?;
                Ok(move || table.insert_many(&PAIRS))
            })
        }
    };
    check("table", table(Policy::Reject)());
    check("growing table", table(Policy::Grow)());
    check("LRU table", table(Policy::Lru)());
    let map = sizes(&path, |db| {
        let map = db.map("m").create_or_open()?;
        Ok(move || map.put_many(&PAIRS))
    });
    check("map", map);
    let filter = sizes(&path, |db| {
        let filter = db.filter("f").keys(20_000_000).create_or_open()?;
        Ok(move || filter.insert_many(&KEYS))
    });
    check("filter", filter);
    let counting = sizes(&path, |db| {
        let counts = db.counting("c").create_or_open()?;
        Ok(move || KEYS.iter().try_for_each(|key| counts.add(key, 1).map(drop)))
    });
    check("counting table", counting);
}

#[test]
fn a_log_grows_as_it_fills_up_to_what_its_buffers_work_best_with() {
    let (_folder, path) = file();
    let db = open(&path).unwrap();
    let table = db.table("t").entries(1_000_000).create_or_open().unwrap();
    let log_bytes = || db.volume().log().capacity_bytes();
    let fresh = log_bytes();
    assert!(fresh <= MIB, "{fresh}");
    let mut last = fresh;
    for round in 0..40u64 {
        let keys: Vec<_> = (0..20_000).map(|it| (round * 20_000 + it).to_le_bytes()).collect();
        let pairs: Vec<_> = keys.iter().map(|key| (&key[..], &key[..])).collect();
        table.insert_many(&pairs).unwrap();
        let used = db.volume().log().next_lsn().0;
        assert!(log_bytes() >= last && log_bytes() <= (8 * used).max(fresh), "{used}");
        last = log_bytes();
    }
    assert!(last > 2 * fresh && last <= table.config().log_bytes_best().max(4 * fresh), "{last}");
    table.close().unwrap();
    // A later opening lets it grow on.
    let table = db.table("t").entries(1_000_000).create_or_open().unwrap();
    let pairs = [(&7u64.to_le_bytes()[..], &[1; 8][..])];
    table.insert_many(&pairs).unwrap();
    assert_eq!(log_bytes(), last);
}
