//! The output of the command: data on stdout, messages and progress on stderr.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use anyhow::Result;
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

/// The progress reports of a long command
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum ProgressMode {
    /// A bar on a terminal, nothing otherwise
    #[default]
    Auto,
    /// A line on stderr every few seconds
    Plain,
    /// Nothing
    None,
}

/// The switches of every verb.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Console {
    /// Print the result as JSON: one object, or one per line if there are several
    #[arg(long, global = true)]
    pub json: bool,
    /// Progress reports on stderr
    #[arg(long, global = true, value_name = "HOW", default_value = "auto")]
    pub progress: ProgressMode,
}

impl Console {
    /// Prints a result: as one JSON object, or as the text that `text` makes of it.
    ///
    /// # Errors
    /// A failed write to stdout.
    pub fn print<T: Serialize>(&self, result: &T, text: impl FnOnce(&T) -> String) -> Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            serde_json::to_writer(&mut out, result)?;
            writeln!(out)?;
        } else {
            write!(out, "{}", text(result))?;
        }
        Ok(out.flush()?)
    }

    /// Prints the result of a verb that works within stated RAM: JSON also has `resident_peak_bytes`, the most memory
    /// of the process that was resident so far, where the kernel says it.
    ///
    /// # Errors
    /// As [`print`](Self::print).
    pub fn print_peak<T: Serialize>(
        &self,
        result: &T,
        text: impl FnOnce(&T) -> String,
    ) -> Result<()> {
        self.print(&WithPeak::of(result), |it| text(it.result))
    }

    /// Prints a message on stderr that is not an error.
    pub fn note(&self, text: &str) {
        eprintln!("{}", nandex_dedup::printable(text));
    }

    /// Creates a meter for work of a known size, counted in bytes.
    pub fn meter(&self, what: &'static str, bytes_total: Option<u64>) -> Meter {
        let is_bar = self.progress == ProgressMode::Auto && io::stderr().is_terminal();
        let bar = bytes_total.map_or_else(ProgressBar::no_length, ProgressBar::new);
        bar.set_draw_target(match is_bar {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        });
        bar.set_style(style(bytes_total.is_some()));
        bar.set_message(what);
        if is_bar {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        Meter {
            bar,
            plain: self.progress == ProgressMode::Plain,
            what,
            last_printed: LastPrinted::default(),
        }
    }
}

/// A result, and the most memory of the process that was resident until then.
#[derive(Debug, Serialize)]
pub struct WithPeak<'a, T> {
    #[serde(flatten)]
    result: &'a T,
    #[serde(skip_serializing_if = "Option::is_none")]
    resident_peak_bytes: Option<u64>,
}

impl<'a, T> WithPeak<'a, T> {
    /// Adds the peak to a result.
    pub fn of(result: &'a T) -> Self {
        Self { result, resident_peak_bytes: nandex::device::resident_peak_bytes() }
    }
}

impl Console {
    /// Creates a counter of a known number of steps, such as experiments.
    pub fn steps(&self, total: usize) -> Steps {
        let is_bar = self.progress == ProgressMode::Auto && io::stderr().is_terminal();
        let bar = ProgressBar::new(total as u64);
        bar.set_draw_target(match is_bar {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        });
        let style = ProgressStyle::with_template("{pos}/{len} {wide_bar} {elapsed} {msg}");
        bar.set_style(style.expect("the template is a fixed text that parses"));
        if is_bar {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        Steps { bar, plain: self.progress == ProgressMode::Plain }
    }
}

/// Shows the number of finished steps and the steps in progress.
#[derive(Debug)]
pub struct Steps {
    bar: ProgressBar,
    plain: bool,
}

impl Steps {
    /// Notes the steps in progress and the number of finished ones.
    pub fn at(&self, done: usize, going_on: &str) {
        self.bar.set_position(done as u64);
        self.bar.set_message(going_on.to_owned());
    }

    /// Prints that a step is done, if progress is plain.
    pub fn done(&self, done: usize, what: &str) {
        if self.plain {
            eprintln!("{done} of {}: {what}", self.bar.length().unwrap_or(0));
        }
    }

    /// Removes the bar.
    pub fn finish(self) {
        self.bar.finish_and_clear();
    }
}

fn style(has_total: bool) -> ProgressStyle {
    let template = match has_total {
        true => "{msg} {wide_bar} {bytes}/{total_bytes} {binary_bytes_per_sec} {eta}",
        false => "{msg} {spinner} {bytes} {binary_bytes_per_sec}",
    };
    ProgressStyle::with_template(template).expect("the template is a fixed text that parses")
}

/// Shows the progress of a long command.
#[derive(Debug)]
pub struct Meter {
    bar: ProgressBar,
    plain: bool,
    what: &'static str,
    last_printed: LastPrinted,
}

/// The interval of the lines of plain progress.
const PLAIN_EVERY: Duration = Duration::from_secs(2);

/// The time when plain progress last printed.
#[derive(Debug, Default)]
struct LastPrinted(AtomicU64);

impl LastPrinted {
    fn get(&self) -> Duration {
        Duration::from_millis(self.0.load(Relaxed))
    }

    fn set(&self, now: Duration) {
        self.0.store(u64::try_from(now.as_millis()).unwrap_or(u64::MAX), Relaxed);
    }
}

impl Meter {
    /// Notes the number of bytes done so far.
    pub fn at(&self, bytes: u64) {
        self.bar.set_position(bytes);
        let elapsed = self.bar.elapsed();
        if self.plain && elapsed.saturating_sub(self.last_printed.get()) >= PLAIN_EVERY {
            self.last_printed.set(elapsed);
            let total =
                self.bar.length().map(|total| format!(" of {}", crate::size::show_bytes(total)));
            let (done, total) = (crate::size::show_bytes(bytes), total.unwrap_or_default());
            eprintln!("{}: {done}{total} in {} s", self.what, elapsed.as_secs());
        }
    }

    /// Notes the share of all bytes done so far, from 0 to 1.
    pub fn at_share(&self, share: f64) {
        self.at((share * self.bar.length().unwrap_or(0) as f64) as u64);
    }

    /// Removes the bar.
    pub fn finish(self) {
        self.bar.finish_and_clear();
    }
}

/// Formats lines of `name: value`, with aligned values.
pub fn aligned(rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    rows.iter().map(|(name, value)| format!("{name:width$}  {value}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_below_one_another() {
        let rows = [("a", "1".to_owned()), ("long", "2".to_owned())];
        assert_eq!(aligned(&rows), "a     1\nlong  2\n");
    }
}
