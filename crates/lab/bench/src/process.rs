//! This process: its CPU time, resident memory, and bytes to and from disks, from the kernel; and how it
//! ends.
//!
//! The kernel counts for every engine alike, including the engine's own threads, which an engine's own
//! statistics omit. If a file of `/proc` is missing the figure is absent, never zero.

use std::io::Write;
use std::process::ExitCode;
use std::{fmt, fs};

use anyhow::Result;
use nandex::raw::words;
use rustix::time::{ClockId, clock_gettime};

/// Returns the CPU time of all threads of this process so far, in nanoseconds, user and system together.
#[must_use]
pub fn cpu_ns() -> u64 {
    clock_ns(ClockId::ProcessCPUTime)
}

/// Returns the CPU time of this thread so far, in nanoseconds.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    clock_ns(ClockId::ThreadCPUTime)
}

fn clock_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// The exit code of a program that was started with settings that cannot work; clap's is the same.
const BAD_SETTINGS: u8 = 2;

/// A setting that cannot work.
#[derive(Debug)]
pub struct BadSetting(anyhow::Error);

impl fmt::Display for BadSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

impl std::error::Error for BadSetting {}

impl BadSetting {
    /// Marks an error as that of a setting.
    #[must_use]
    pub fn of(error: anyhow::Error) -> anyhow::Error {
        Self(error).into()
    }
}

/// Ends the program of this name: prints its output, or its error.
pub fn finish(name: &str, text: Result<String>) -> ExitCode {
    let printed = text.and_then(|text| Ok(std::io::stdout().write_all(text.as_bytes())?));
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {}", words(error.as_ref()));
            if error.is::<BadSetting>() { BAD_SETTINGS.into() } else { ExitCode::FAILURE }
        }
    }
}

/// Returns the bytes resident in memory now.
#[must_use]
pub fn rss_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    Some(field(&status, "VmRSS:")? * 1024)
}

/// Bytes that this process has moved to and from block devices so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DiskBytes {
    /// Read, page faults and read-ahead included.
    pub read: u64,
    /// Bytes written, or dirtied in the page cache and not undone.
    pub written: u64,
}

impl DiskBytes {
    /// Returns the count so far, if the kernel has one.
    #[must_use]
    pub fn now() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/self/io").ok()?)
    }

    fn parse(io: &str) -> Option<Self> {
        let cancelled = field(io, "cancelled_write_bytes:")?;
        let written = field(io, "write_bytes:")?.saturating_sub(cancelled);
        Some(Self { read: field(io, "read_bytes:")?, written })
    }

    /// Returns the bytes moved since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            read: self.read.saturating_sub(earlier.read),
            written: self.written.saturating_sub(earlier.written),
        }
    }
}

/// Returns the first number on the line that begins with `name`.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_proc_are_read() {
        let io = "rchar: 9\nread_bytes: 4096\nwrite_bytes: 900\ncancelled_write_bytes: 100\n";
        assert_eq!(DiskBytes::parse(io), Some(DiskBytes { read: 4096, written: 800 }));
        assert_eq!(field("VmHWM:\t 12 kB\nVmRSS:\t 34 kB\n", "VmRSS:"), Some(34));
        assert_eq!(DiskBytes::parse("nothing"), None);
    }

    #[test]
    fn work_costs_cpu_time() {
        let start = cpu_ns();
        let mut sum = 0u64;
        (0..2_000_000u64).for_each(|number| sum = std::hint::black_box(sum ^ number));
        assert!(cpu_ns() > start);
    }
}
