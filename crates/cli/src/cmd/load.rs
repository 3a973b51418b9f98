//! `nandex load`: loads records from a file or from stdin into a table.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context, Result};
use nandex::device::Access;
use nandex::{OpenOptions, TableOrMap};
use serde::Serialize;

use crate::console::{Console, Meter};
use crate::devices::{FileBytes, VolumeArgs};
use crate::exit::{FAILURE, Quiet};
use crate::interrupt::Interrupt;
use crate::place::{FieldArgs, OpenedTable, TableArgs, open_within};
use crate::records::{self, Record, RecordFormat};
use crate::size::{self, show_count};

/// The number of records of one call.
const BATCH_RECORDS: usize = 1024;
/// The size of a call's records, in bytes, from which on it gets no further record.
const BATCH_BYTES: usize = 4 << 20;

/// The input and the table.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    volume: VolumeArgs,
    /// File to read; `-` is stdin
    #[arg(default_value = "-")]
    input: PathBuf,
    /// Format of records in the input
    #[arg(long)]
    format: RecordFormat,
    /// Most RAM of a growing table during this load; default: the RAM it was created with
    #[arg(long, value_name = "SIZE", value_parser = size::parse_some_bytes)]
    ram: Option<u64>,
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    fields: FieldArgs,
}

/// The result.
#[derive(Debug, Serialize)]
struct Loaded {
    table: String,
    records: u64,
    elapsed_s: f64,
    records_per_s: f64,
    /// The number of entries that the table's policy dropped meanwhile.
    evicted: u64,
    /// The number of records of any size that its log overwrote meanwhile.
    overwritten: u64,
    interrupted: bool,
    /// RAM of the table at the end.
    ram_bytes: u64,
    #[serde(flatten)]
    files: Option<FileBytes>,
}

/// Inserts all records into the table and makes them durable.
///
/// # Errors
/// A bad record, named by its line; records before it are in the table and durable.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    let options = OpenOptions { ram_bytes_max: args.ram, ..OpenOptions::default() };
    let opened = open_within(&args.volume, &args.table, Access::ReadWrite, &options)?;
    let columns = args.fields.columns(&opened.structure)?;
    let (input, done, total) = open_input(&args.input)?;
    let meter = console.meter("loading", total);
    let start = Instant::now();
    let mut loader =
        Loader { opened: &opened, batch: Vec::with_capacity(BATCH_RECORDS), bytes: 0, records: 0 };
    let records = records::read(input, args.format, columns);
    let result = loader.load(records, &interrupt, &meter, &done);
    meter.finish();
    let records = loader.records;
    opened.structure.sync()?;
    result.with_context(|| format!("stopped after {records} records, which are in the table"))?;
    let elapsed_s = start.elapsed().as_secs_f64();
    // A checkpoint frees segments ahead. It is taken here so that closing overwrites none, which would not be counted.
    opened.volume().checkpoint()?;
    let loaded = Loaded {
        table: opened.name.clone(),
        records,
        elapsed_s,
        records_per_s: records as f64 / elapsed_s.max(f64::MIN_POSITIVE),
        evicted: opened.structure.stats().evicted,
        overwritten: overwritten(&opened.structure),
        interrupted: interrupt.is_set(),
        ram_bytes: opened.structure.stats().ram_bytes,
        files: None,
    };
    opened.close()?;
    let loaded = Loaded { files: Some(args.volume.file_bytes()?), ..loaded };
    console.print_peak(&loaded, text)?;
    if loaded.interrupted { Err(Quiet(FAILURE).into()) } else { Ok(()) }
}

/// Returns the number of records that a map has overwritten since it was opened.
fn overwritten(table: &TableOrMap) -> u64 {
    match table {
        TableOrMap::Table(_) => 0,
        TableOrMap::Map(map) => map.stats().values.overwritten_records,
    }
}

fn text(loaded: &Loaded) -> String {
    let Loaded { table, records, elapsed_s, records_per_s, evicted, .. } = loaded;
    let Loaded { overwritten, interrupted, files, .. } = loaded;
    let mut note = if *interrupted { ", interrupted" } else { "" }.to_owned();
    if *evicted > 0 {
        note.push_str(&format!(", {} entries evicted", show_count(*evicted)));
    }
    if *overwritten > 0 {
        note.push_str(&format!(", {} records overwritten", show_count(*overwritten)));
    }
    let records = show_count(*records);
    let files = files.map_or(String::new(), |files| format!("; the file is {}", files.shown()));
    format!(
        "{records} records into {table} in {elapsed_s:.1} s ({records_per_s:.0} a second){note}{files}\n"
    )
}

/// Fills batches and inserts them into the table.
struct Loader<'a> {
    opened: &'a OpenedTable,
    batch: Vec<Record>,
    bytes: usize,
    records: u64,
}

impl Loader<'_> {
    fn load(
        &mut self,
        records: impl Iterator<Item = Result<Record>>,
        interrupt: &Interrupt,
        meter: &Meter,
        done: &AtomicU64,
    ) -> Result<()> {
        for record in records {
            match record {
                Ok(record) => self.take(record),
                Err(error) => return self.flush().and(Err(error)),
            }
            if self.batch.len() == BATCH_RECORDS || self.bytes >= BATCH_BYTES {
                self.flush()?;
                meter.at(done.load(Ordering::Relaxed));
                if interrupt.is_set() {
                    return Ok(());
                }
            }
        }
        self.flush()
    }

    fn take(&mut self, record: Record) {
        self.bytes += record.key.len() + record.value.len();
        self.batch.push(record);
    }

    fn flush(&mut self) -> Result<()> {
        let pairs: Vec<(&[u8], &[u8])> =
            self.batch.iter().map(|it| (it.key.as_slice(), it.value.as_slice())).collect();
        self.opened.structure.put_many(&pairs)?;
        self.records += u64::try_from(self.batch.len()).expect("usize fits u64");
        self.batch.clear();
        self.bytes = 0;
        Ok(())
    }
}

/// An input with a counter of bytes read, and its size if it has one.
type Input = (Box<dyn BufRead>, Arc<AtomicU64>, Option<u64>);

fn open_input(path: &Path) -> Result<Input> {
    let done = Arc::new(AtomicU64::new(0));
    let counted = |source: Box<dyn Read>| {
        let counted = Counted { source, done: Arc::clone(&done) };
        Box::new(BufReader::with_capacity(1 << 18, counted))
    };
    if path == Path::new("-") {
        return Ok((counted(Box::new(io::stdin())), done, None));
    }
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let bytes = file.metadata().ok().filter(|it| it.is_file()).map(|it| it.len());
    Ok((counted(Box::new(file)), done, bytes))
}

struct Counted {
    source: Box<dyn Read>,
    done: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buf)?;
        self.done.fetch_add(u64::try_from(read).expect("usize fits u64"), Ordering::Relaxed);
        Ok(read)
    }
}
