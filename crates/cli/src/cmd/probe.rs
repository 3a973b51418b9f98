//! `nandex probe`: finds the chunk size, the channels and the mapping of a device by timing. `nandex-lab` has it for
//! simulated devices.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use nandex::device::{Access, Create, Device, FileDevice, FileOptions};
use nandex::raw::device::probe::{Axis, Finding, Findings, Mapping, Probe, ProbeOptions, Writes};
use nandex::raw::device::{PAGE_BYTES, PageId};
use serde::Serialize;

use crate::chart;
use crate::console::{Console, aligned};
use crate::devices::EngineArgs;
use crate::refuse;
use crate::size::{self, show_bytes, show_count};
use crate::unfinished::write_output;

/// The number of bytes that are probed before a volume is created.
const NEXT_TO_BYTES: u64 = 256 << 20;

/// The place to probe, and the permission to overwrite it.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// New file, which is removed afterwards; or existing file or block device, which is only read
    file: Option<PathBuf>,
    /// Overwrite the content of an existing file or block device
    #[arg(long)]
    destructive: bool,
    /// Keep the new file
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    probing: ProbingArgs,
}

/// The part of a device to probe, and the picture of the latencies.
#[derive(Debug, clap::Args)]
pub struct ProbingArgs {
    /// Bytes to probe, from the start
    #[arg(long, value_name = "SIZE", value_parser = size::parse_some_bytes, default_value = "256MiB")]
    size: u64,
    /// Draw the latencies into this file, as SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Seed of the choice of pages
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
}

/// The findings, for programs.
#[derive(Debug, Serialize)]
struct ProbeOutput<'a> {
    place: String,
    bytes: u64,
    engine: &'a str,
    chunk_bytes: Answer<'a, u32>,
    channels: Answer<'a, u32>,
    groups: &'a [u32],
    mapping: Answer<'a, &'static str>,
    phase_bytes: u64,
    single_ns: u64,
    pair_ns: u64,
    pages_read: u64,
    pages_written: u64,
    advice: String,
    evidence: Vec<ShownCurve<'a>>,
}

/// An answer, or the reason why there is none.
#[derive(Debug, Serialize)]
struct Answer<'a, T> {
    value: Option<T>,
    confidence: f64,
    reason: &'a str,
}

/// The timings behind an answer.
#[derive(Debug, Serialize)]
struct ShownCurve<'a> {
    name: &'a str,
    about: &'a str,
    axis: &'static str,
    points: &'a [(u64, u64)],
}

impl<'a> Answer<'a, u32> {
    fn of(finding: &'a Finding<u32>) -> Self {
        let Finding { value, confidence, reason } = finding;
        Self { value: *value, confidence: *confidence, reason }
    }
}

/// A file that was created for the probe; dropping this removes it.
struct ProbedFile<'a>(&'a Path);

impl Drop for ProbedFile<'_> {
    fn drop(&mut self) {
        // It may have been removed already.
        let _ = fs::remove_file(self.0);
    }
}

/// Probes and prints the findings.
///
/// # Errors
/// A place that cannot be opened, created or read; a size that is too small or larger than the device.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let Some(file) = &args.file else {
        refuse!(
            "name a new file or a block device to probe; `nandex-lab probe --preset NAME` probes a simulated device"
        )
    };
    let (findings, bytes) = file_or_device(args, file)?;
    args.probing.show(console, file.display().to_string(), &findings, bytes)
}

/// Probes the device of a file; returns the findings and the number of bytes.
fn file_or_device(args: &Args, path: &Path) -> Result<(Findings, u64)> {
    let is_new =
        !path.try_exists().with_context(|| format!("cannot look at {}", path.display()))?;
    let writes = if is_new || args.destructive { Writes::Allowed } else { Writes::Refused };
    let options = FileOptions {
        access: if writes == Writes::Allowed { Access::ReadWrite } else { Access::ReadOnly },
        create: if is_new { Create::New } else { Create::Open },
        engine: args.engine.choice(),
        ..FileOptions::default()
    };
    let device = FileDevice::open(path, &options)?;
    let _probed_file = (is_new && !args.keep).then(|| ProbedFile(path));
    if is_new {
        device.grow(args.probing.pages())?;
    }
    args.probing.probe(&device, writes)
}

/// Probes the device that a new volume at this path will be on: a file next to it that is removed again, or the block
/// device itself, which is only read.
///
/// # Errors
/// A place that cannot be opened, created or read; no space.
pub fn next_to(path: &Path, engine: EngineArgs) -> Result<Findings> {
    let is_there =
        path.try_exists().with_context(|| format!("cannot look at {}", path.display()))?;
    let mut place = path.as_os_str().to_owned();
    if !is_there {
        place.push(".probe");
    }
    let probing = ProbingArgs { size: NEXT_TO_BYTES, svg: None, seed: 1 };
    let args = Args { file: None, destructive: false, keep: false, engine, probing };
    Ok(file_or_device(&args, Path::new(&place))?.0)
}

impl ProbingArgs {
    /// Returns the number of pages to probe of a device that has as many.
    #[must_use]
    pub const fn pages(&self) -> u64 {
        self.size / PAGE_BYTES as u64
    }

    /// Probes a device; returns the findings and the number of bytes.
    ///
    /// # Errors
    /// Too few pages; a failed read or write.
    pub fn probe(&self, device: &dyn Device, writes: Writes) -> Result<(Findings, u64)> {
        let pages = self.pages().min(device.page_count());
        let options = ProbeOptions { writes, seed: self.seed, ..ProbeOptions::default() };
        let findings = Probe::new(options).run(device, PageId(0)..PageId(pages))?;
        Ok((findings, pages * PAGE_BYTES as u64))
    }

    /// Prints the findings of a place, and draws the picture.
    ///
    /// # Errors
    /// A picture that cannot be written.
    pub fn show(
        &self,
        console: &Console,
        place: String,
        findings: &Findings,
        bytes: u64,
    ) -> Result<()> {
        if let Some(picture) = &self.svg {
            let svg = chart::svg(&format!("nandex probe {place}"), &findings.evidence);
            write_output(picture, svg, console)?;
        }
        let mapping = findings.mapping.value.map(word);
        let Finding { confidence, reason, .. } = &findings.mapping;
        let output = ProbeOutput {
            place,
            bytes,
            engine: &findings.engine,
            chunk_bytes: Answer::of(&findings.chunk_bytes),
            channels: Answer::of(&findings.channels),
            groups: &findings.groups,
            mapping: Answer { value: mapping, confidence: *confidence, reason },
            phase_bytes: findings.phase_bytes,
            single_ns: findings.single_ns,
            pair_ns: findings.pair_ns,
            pages_read: findings.reads,
            pages_written: findings.writes,
            advice: findings.advice(),
            evidence: evidence(findings),
        };
        console.print(&output, |output| text(output, findings))
    }
}

fn word(mapping: Mapping) -> &'static str {
    match mapping {
        Mapping::Lba => "lba",
        Mapping::WriteOrder => "write-order",
    }
}

fn evidence(findings: &Findings) -> Vec<ShownCurve<'_>> {
    let curves = findings.evidence.iter().map(|curve| ShownCurve {
        name: curve.name,
        about: curve.about,
        axis: match curve.axis {
            Axis::Pages => "pages",
            Axis::Chunks => "chunks",
        },
        points: &curve.points,
    });
    curves.collect()
}

fn text(output: &ProbeOutput<'_>, findings: &Findings) -> String {
    let mut channels = answer(&findings.channels, u32::to_string);
    if let (Some(_), [_, ..]) = (findings.channels.value, &findings.groups[..]) {
        let groups: Vec<String> = findings.groups.iter().map(u32::to_string).collect();
        channels.push_str(&format!("; shorter periods: {}", groups.join(", ")));
    }
    let times = format!(
        "one read {:.1} us, two at once {:.1} us",
        output.single_ns as f64 / 1000.0,
        output.pair_ns as f64 / 1000.0
    );
    let pages = format!(
        "{} read, {} written ({})",
        show_count(output.pages_read),
        show_count(output.pages_written),
        output.engine
    );
    let mut text = aligned(&[
        ("probed", format!("{}, {}", output.place, show_bytes(output.bytes))),
        ("chunk", chunk(findings)),
        ("channels", channels),
        ("mapping", answer(&findings.mapping, Mapping::to_string)),
        ("latency", times),
        ("pages", pages),
    ]);
    text.push_str(&format!("\n{}\n", output.advice));
    for curve in &findings.evidence {
        text.push_str(&format!("\n{}", chart::bars(curve)));
    }
    text
}

/// Formats the chunk size; if channels are invisible for the same reason, only their line gives it.
fn chunk(findings: &Findings) -> String {
    let chunk = &findings.chunk_bytes;
    if chunk.value.is_none() && chunk.reason == findings.channels.reason {
        return "cannot be seen".into();
    }
    answer(chunk, |bytes| show_bytes(u64::from(*bytes)))
}

fn answer<T>(finding: &Finding<T>, format_value: impl Fn(&T) -> String) -> String {
    match &finding.value {
        Some(value) => format!("{} (confidence {:.4})", format_value(value), finding.confidence),
        None => format!("cannot be seen: {}", finding.reason),
    }
}
