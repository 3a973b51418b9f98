//! A table on flash in a dozen lines: create, insert, look up, close, open again.
//!
//! `cargo run --release -p nandex --example quickstart [FILE]`

use nandex::Table;

fn main() -> nandex::Result<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "quickstart.nandex".into());

    let db = nandex::open(&path)?;
    let table = db.table("numbers").entries(2_000_000).ram("16MiB").create_or_open()?;
    for key in 0..1_000_000u64 {
        table.insert_u64(key, key * key)?;
    }
    assert_eq!(table.get_u64(999)?, Some(998_001));
    assert_eq!(table.get_u64(1_000_000)?, None);
    let stats = table.stats();
    println!("{:.2} bytes of RAM per entry", stats.ram_bytes_per_entry());
    println!("{} entries, {} on their way to flash", stats.entries, stats.inserts);
    table.close()?;
    drop(db);

    let db = nandex::open(&path)?;
    let table = db.table("numbers").ram("16MiB").create_or_open()?;
    let keys: Vec<_> = (0..1000u64).map(|key| (key * 997).to_le_bytes()).collect();
    let keys: Vec<_> = keys.iter().map(|key| &key[..]).collect();
    let found = table.get_many(&keys)?.iter().flatten().count();
    println!("{found} of 1000 found, {:.3} reads per hit", table.stats().reads_per_hit());
    Ok(())
}
