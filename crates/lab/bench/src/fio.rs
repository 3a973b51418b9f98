//! The device's limit by fio, the standard tool, if it is installed.
//!
//! A figure from nandex's engine cannot show what that engine loses: fio reads the same file with the same
//! number of threads and reads in flight, and the larger figure is the limit.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use nandex_device::PAGE_BYTES;
use serde_json::Value;

use crate::cgroup;
use crate::reads::ReadLoad;

/// The shortest measurement by fio, which takes a third of a second to start; shorter ones use nandex's
/// engine alone.
const TIME_MIN: Duration = Duration::from_millis(100);

/// A part of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Region<'p> {
    /// The file.
    pub(crate) path: &'p Path,
    /// The beginning of the part.
    pub(crate) start_bytes: u64,
    /// The length of the part.
    pub(crate) bytes: u64,
}

/// Random reads of a page, by fio.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct FioReads {
    /// The reads a second.
    pub(crate) reads_per_s: f64,
    /// The CPU time of each, all threads together, in microseconds.
    pub(crate) cpu_us_per_read: f64,
}

/// Returns whether fio is installed.
fn is_installed() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let version = Command::new("fio").arg("--version").stdin(Stdio::null()).output();
        version.is_ok_and(|output| output.status.success())
    })
}

/// Measures random reads of a part of a file; `None` if there is no fio, it fails, or the time is too short
/// for it.
pub(crate) fn reads(region: Region<'_>, load: ReadLoad) -> Option<FioReads> {
    if load.time < TIME_MIN || !is_installed() {
        return None;
    }
    let output =
        outside_of_limits().args(options(region, load)).stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| parse(&output.stdout)).flatten()
}

/// Returns the options of fio. `--readonly` makes it refuse any write, whatever the other options are.
fn options(region: Region<'_>, load: ReadLoad) -> Vec<String> {
    let fixed = [
        "--name=limit --readonly --rw=randread --direct=1 --ioengine=io_uring --thread",
        "--group_reporting --time_based --randrepeat=0 --norandommap --output-format=json",
    ];
    let fixed = fixed.iter().flat_map(|words| words.split(' ')).map(str::to_owned);
    let ReadLoad { threads, depth, time } = load;
    let own = [
        format!("--bs={PAGE_BYTES}"),
        format!("--iodepth={depth}"),
        format!("--numjobs={threads}"),
        format!("--runtime={}ms", time.as_millis()),
        format!("--offset={}", region.start_bytes),
        format!("--size={}", region.bytes),
        format!("--filename={}", region.path.display().to_string().replace(':', "\\:")),
    ];
    fixed.chain(own).collect()
}

/// Returns the command `fio`. In a benchmark with a memory limit the process first leaves the limit: it needs
/// some 20 MiB of its own, which are not the engine's.
fn outside_of_limits() -> Command {
    let Some(procs) = cgroup::outside() else { return Command::new("fio") };
    let mut command = Command::new("sh");
    command.args(["-c", "echo $$ > \"$0\" && exec fio \"$@\""]).arg(procs);
    command
}

/// Parses fio's output as JSON; words may come before it.
fn parse(said: &[u8]) -> Option<FioReads> {
    let start = said.iter().position(|byte| *byte == b'{')?;
    let said: Value = serde_json::from_slice(&said[start..]).ok()?;
    let job = said.get("jobs")?.get(0)?;
    let number = |of: &Value, name: &str| of.get(name)?.as_f64();
    let read = job.get("read")?;
    let reads = number(read, "total_ios").filter(|reads| *reads > 0.0)?;
    let busy = (number(job, "usr_cpu")? + number(job, "sys_cpu")?) / 100.0;
    let cpu_us = busy * number(job, "job_runtime")? * 1e3;
    Some(FioReads { reads_per_s: number(read, "iops")?, cpu_us_per_read: cpu_us / reads })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_its_json_are_read_and_nothing_else_is() {
        let said = br#"note: both iodepth >= 1
            {"jobs": [{"job_runtime": 2000, "usr_cpu": 2.0, "sys_cpu": 18.0,
             "read": {"iops": 50000.5, "total_ios": 100000}}]}"#;
        let expected = FioReads { reads_per_s: 50_000.5, cpu_us_per_read: 4.0 };
        assert_eq!(parse(said), Some(expected));
        let nothing = br#"{"jobs": [{"job_runtime": 1, "usr_cpu": 0, "sys_cpu": 0,
             "read": {"iops": 0, "total_ios": 0}}]}"#;
        assert_eq!(parse(nothing), None);
        assert_eq!(parse(b"fio: no such file"), None);
        assert_eq!(reads(region("/"), load(Duration::from_millis(1))), None);
    }

    fn region(path: &str) -> Region<'_> {
        Region { path: Path::new(path), start_bytes: 8192, bytes: 40_960 }
    }

    fn load(time: Duration) -> ReadLoad {
        ReadLoad { threads: 2, depth: 32, time }
    }

    #[test]
    fn it_is_told_to_read_a_part_of_the_file_past_the_page_cache_and_never_to_write() {
        let options = options(region("/a:b"), load(Duration::from_secs(1)));
        for option in [
            "--readonly",
            "--rw=randread",
            "--direct=1",
            "--bs=4096",
            "--iodepth=32",
            "--numjobs=2",
            "--runtime=1000ms",
            "--offset=8192",
            "--size=40960",
            "--filename=/a\\:b",
        ] {
            assert!(options.iter().any(|it| it == option), "{option}: {options:?}");
        }
    }
}
