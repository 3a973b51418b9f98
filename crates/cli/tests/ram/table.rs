//! The table of peaks, for people and programs.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};

use crate::cases::Case;
use crate::input::remove_all;
use crate::measure::{CONSTANT_BYTES, Peak, Scale, idle_bytes, measure};

/// Measures the cases and prints a row for each run when it has ended.
pub fn print<'a>(cases: impl Iterator<Item = &'a Case>, json: Option<OsString>) -> io::Result<()> {
    let mut json = json.map(File::create).transpose()?;
    println!("{:<24} {:>7} {:>9} {:>7} {:>6}  kept", "verb", "stated", "resident", "told", "s");
    let mut exceeded = 0;
    for case in cases {
        for ram_mib in case.sizes_mib {
            let peak = measure(case, ram_mib, Scale::Table);
            println!("{}", row(&peak));
            exceeded += usize::from(!peak.is_kept());
            if let Some(json) = &mut json {
                writeln!(json, "{}", serde_json::to_string(&peak)?)?;
            }
        }
    }
    let (constant, idle) = (CONSTANT_BYTES >> 20, mib(idle_bytes()));
    println!(
        "MiB; kept: at most {constant} more than stated; without a volume a process takes {idle}"
    );
    println!("{exceeded} runs took more, or failed");
    remove_all(Scale::Table)
}

fn row(peak: &Peak) -> String {
    let (verb, stated, seconds) = (peak.verb, peak.stated_bytes >> 20, peak.elapsed_s);
    let told = peak.told_bytes.map_or_else(|| "-".to_owned(), mib);
    let (resident, kept) = match &peak.refusal {
        Some(refusal) if peak.is_kept() => ("-".to_owned(), format!("refused: {refusal}")),
        Some(failure) => ("-".to_owned(), format!("failed: {failure}")),
        None => (mib(peak.resident_bytes), if peak.is_kept() { "yes" } else { "no" }.to_owned()),
    };
    format!("{verb:<24} {stated:>7} {resident:>9} {told:>7} {seconds:>6.1}  {kept}")
}

fn mib(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / f64::from(1 << 20))
}
