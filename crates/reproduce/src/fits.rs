//! The printed numbers that constants were chosen for, each with its place and the constant.
//!
//! A row that merely gives such a number back says so: it is [fitted](crate::Row::fitted). A row for which none of
//! these was chosen is predicted, even if it is of the same drive. docs/reproduce.md lists them with their constants.

/// Reads of preset `flash-chip-paper`.
pub const CHIP_READ: &str = "0.24 ms for each page read (NSDI 2010, Table 2)";
/// Reads of preset `intel-x18m-paper`.
pub const INTEL_READ: &str = "0.15 ms for a random read (NSDI 2010, 7.2.2)";
/// Erases of preset `intel-x18m-paper`.
pub const INTEL_FLUSH: &str = "2.72 ms for a flush that erases (NSDI 2010, 7.2.1)";
/// The processor's time of an operation, [`CPU_NS`](crate::bufferhash::CPU_NS).
pub const INTEL_INSERT: &str = "0.006 ms for an insert, on average (NSDI 2010, 7.2.1)";
/// Reads of preset `transcend-ts32-paper`.
pub const TRANSCEND_READ: &str = "0.6 ms for nine lookups of ten (NSDI 2010, 7.2.1)";
/// Programs of preset `transcend-ts32-paper`.
pub const TRANSCEND_FLUSH: &str = "30 ms for a flush that erases (NSDI 2010, 7.2.1)";
/// The time of an operation of the WAN optimizer's Berkeley DB.
pub const BERKELEY_WAN: &str = "close to 2 x with Berkeley DB at 10 Mb/s (NSDI 2010, 8.1)";
/// Reads of preset `crucial-m4-paper`, when all buses are busy.
pub const CRUCIAL_READS: &str = "69 000 reads/s with 32 threads (ANCS 2014, 7.2)";
/// Reads of preset `crucial-m4-paper`, when one channel is.
pub const CRUCIAL_WORST: &str = "a 5.2th of the best reads/s (ANCS 2014, 4.2)";
/// Programs of preset `crucial-m4-paper`.
pub const CRUCIAL_WRITES: &str = "175 MB/s of writes (the drive's data sheet)";
/// Requests of preset `crucial-m4`.
pub const CRUCIAL_SHEET_READS: &str = "40 000 reads/s (the drive's data sheet)";
/// The processor's time of an insert in
/// [`WorkerModel::buffer_hash`](crate::slicehash::workers::WorkerModel::buffer_hash).
pub const BUFFERHASH_INSERTS: &str =
    "92 % of 8 cores at 1 100 000 inserts/s (ANCS 2014, Table 4 and Figure 5b): 6.7 us";
/// The processor's time of a merge in [`Costs::fitted`](crate::cascade::rounds::Costs::fitted).
pub const DECK_INSERTS: &str = "670 000 inserts/s (the deck's summary of results)";
/// The lengths of levels of [`Multilevel`](nandex::Multilevel).
pub const MULTILEVEL_READS: &str = "3 to 7 accesses for an index above 10 MB (HPDC 2023, 3)";
/// The offset of the law of tokens, of which [counting](crate::counting) draws.
pub const COUNTING_STAGES: &str = "209 stages at 1 % of RAM (BigData 2013, Table 2)";
/// The power of the law of tokens.
pub const COUNTING_TOKENS: &str = "tokens and different tokens (BigData 2013, 3.3)";

#[cfg(test)]
mod tests {
    /// The strings of this file, in its order.
    fn all() -> Vec<&'static str> {
        let source = include_str!("fits.rs");
        let items = source.split("\npub const ").skip(1);
        items.map(|item| item.split('"').nth(1).expect("each constant is a string")).collect()
    }

    /// One row each, in a table of constants.
    #[test]
    fn the_page_lists_each_number_that_constants_were_chosen_for() {
        let page = include_str!("../../../docs/reproduce.md");
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| ")).collect();
        let all = all();
        assert!(all.len() > 10 && all.contains(&super::MULTILEVEL_READS), "{all:?}");
        for fitted_to in all {
            let is_it = |line: &&&str| line.ends_with(&format!("| {fitted_to} |"));
            assert_eq!(rows.iter().filter(is_it).count(), 1, "{fitted_to}");
        }
    }
}
