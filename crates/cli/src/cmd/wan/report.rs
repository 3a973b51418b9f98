//! The figures of a stream, for people and programs.

use anyhow::Result;
use nandex_wan::{DecodeStats, EncodeStats};
use serde::Serialize;

use crate::console::{Console, WithPeak};
use crate::size::{counted, show_count};

/// The destination of the figures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Figures {
    /// To stdout.
    Stdout,
    /// To stderr, since stdout has the stream or the channel.
    Stderr,
}

/// Shows the figures of an encoder.
///
/// # Errors
/// A failed write to stdout.
pub fn encoded(
    (stats, ram_bytes): (&EncodeStats, u64),
    figures: Figures,
    console: &Console,
) -> Result<()> {
    let share = percent(stats.known_bytes, stats.stream_bytes);
    let mut text = format!(
        "{} bytes became {}: 1/{:.1}; {share:.1} % of them were known",
        show_count(stats.stream_bytes),
        show_count(stats.frame_bytes),
        times(stats.stream_bytes, stats.frame_bytes),
    );
    if stats.again_segments > 0 {
        let again = counted(stats.again_segments, "segment");
        text.push_str(&format!("; {again} went again, whose content the other side lacked"));
    }
    show(&Shown { stats, ram_bytes }, text, figures, console)
}

/// Shows the figures of a decoder.
///
/// # Errors
/// A failed write to stdout.
pub fn decoded(
    (stats, ram_bytes): (&DecodeStats, u64),
    figures: Figures,
    console: &Console,
) -> Result<()> {
    let mut text = format!(
        "{} bytes from {}: 1/{:.1}",
        show_count(stats.stream_bytes),
        show_count(stats.frame_bytes),
        times(stats.stream_bytes, stats.frame_bytes),
    );
    if stats.again_segments > 0 {
        let again = counted(stats.again_segments, "segment");
        text.push_str(&format!("; {again} asked for again"));
    }
    show(&Shown { stats, ram_bytes }, text, figures, console)
}

/// The figures of a stream, and the RAM of the cache at its end.
#[derive(Serialize)]
struct Shown<'a, T> {
    #[serde(flatten)]
    stats: &'a T,
    ram_bytes: u64,
}

fn show<T: Serialize>(stats: &T, text: String, figures: Figures, console: &Console) -> Result<()> {
    match figures {
        Figures::Stdout => console.print_peak(stats, |_| format!("{text}\n")),
        Figures::Stderr if console.json => {
            console.note(&serde_json::to_string(&WithPeak::of(stats))?);
            Ok(())
        }
        Figures::Stderr => {
            console.note(&text);
            Ok(())
        }
    }
}

fn times(stream: u64, frames: u64) -> f64 {
    stream as f64 / frames.max(1) as f64
}

fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}
