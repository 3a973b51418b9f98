//! Readers of block traces: the requests of a real machine to its disk, for a model.
//!
//! | format | a line | times |
//! |---|---|---|
//! | DiskSim ASCII | `5265.313 0 6357144 8 0`: ms, device, sector, sectors, flags (hex, bit 0 reads) | decimal |
//! | blkparse, default output | `8,0 3 1 0.000000000 697 Q W 223490 + 8 [kjournald]` | seconds |
//! | MSR Cambridge CSV | `128166372003061629,usr,0,Read,7014609920,24576,41286`: bytes | 100 ns ticks |
//!
//! Lines are streamed: memory does not grow with the trace. Reading ends with an error at the first line that
//! does not parse, and also if a whole trace had no requested record, since a simulation without requests
//! looks like a fast device. Sectors are 512 bytes, times become nanoseconds since the first record, and a
//! request covers every page of 4 KiB that it touches. A trace of a larger device than the model's is
//! [folded](crate::workload::Arrival::folded) onto it; [`try_open_loop`](crate::workload::try_open_loop)
//! feeds it to a model.
//!
//! ```
//! use nandex_sim::trace::{Options, TraceReader};
//!
//! let text = "5265.313 0 16 8 0\n5265.703 0 32 8 1\n";
//! let mut trace = TraceReader::detecting(text.as_bytes(), Options::default())?;
//! let first = trace.next().expect("two records")?;
//! assert_eq!((first.at_ns, first.offset_bytes, first.bytes), (0, 8192, 4096));
//! let second = trace.next().expect("two records")?.arrival(1)?;
//! assert_eq!((second.at_ns, second.request.page, second.request.pages), (390_000, 4, 1));
//! # Ok::<(), nandex_sim::trace::TraceError>(())
//! ```

mod blkparse;
mod disksim;
mod error;
mod fields;
mod format;
mod lines;
mod msr;
mod reader;
mod record;

pub use error::TraceError;
pub use format::TraceFormat;
pub use reader::{BlkparseEvent, Options, TraceReader};
pub use record::Record;
