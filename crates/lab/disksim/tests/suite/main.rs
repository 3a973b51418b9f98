//! The validation suite of DiskSim's SSD extension (Agrawal et al., USENIX 2008), and small devices of its
//! kind under all kinds of requests.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod golden;
mod small;
mod streams;
mod support;
