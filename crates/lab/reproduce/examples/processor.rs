//! Measures the CPU times that are the constants of Table 4. On a quiet machine:
//!
//! ```console
//! $ cargo run --release -p nandex-reproduce --example processor
//! ```

use nandex_reproduce::slicehash::processor::measure;
use nandex_reproduce::{Result, Scale};

fn main() -> Result<()> {
    for (name, times) in measure(Scale::default())? {
        println!("{name}: {} ns a lookup, {} ns an insert", times.lookup_ns, times.insert_ns);
    }
    Ok(())
}
