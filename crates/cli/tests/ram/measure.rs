//! A run of the command, and the most memory that was resident meanwhile.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;

use crate::cases::Case;

/// The RAM that a process may take in addition to the stated RAM and to what one takes that does nothing.
pub const CONSTANT_BYTES: u64 = 12 << 20;

/// The command.
const PROGRAM: &str = env!("CARGO_BIN_EXE_nandex");

/// The interval of the looks at a process. The kernel keeps its peak, so only growth since the last look is missed.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// The amount of data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// Seconds for each case.
    Test,
    /// Many times 8 MiB, and more than 128 MiB for most cases.
    Table,
}

impl Scale {
    /// The number of keys, lines or records.
    pub fn keys(self) -> u64 {
        if self == Self::Test { 400_000 } else { 10_000_000 }
    }

    /// The number of pairs of 4 KiB.
    fn pairs(self) -> u64 {
        if self == Self::Test { 10_000 } else { 100_000 }
    }

    /// The number of bytes of a stream, of documents and of a tree.
    pub fn bytes(self) -> u64 {
        if self == Self::Test { 24 << 20 } else { 160 << 20 }
    }
}

/// The result of a run.
#[derive(Debug, Serialize)]
pub struct Peak {
    pub verb: &'static str,
    pub stated_bytes: u64,
    /// The peak of the resident memory, from outside.
    pub resident_bytes: u64,
    /// `ram_bytes` of the output, if it has one.
    pub told_bytes: Option<u64>,
    /// `resident_peak_bytes` of the output, if it has one.
    pub resident_told_bytes: Option<u64>,
    /// The last line of the error, if the verb refused.
    pub refusal: Option<String>,
    pub elapsed_s: f64,
}

impl Peak {
    /// Whether the process took what was stated and the constant at most, or refused and said the least that works.
    pub fn is_kept(&self) -> bool {
        match &self.refusal {
            Some(refusal) => says_least(refusal),
            None => self.resident_bytes <= self.stated_bytes + CONSTANT_BYTES,
        }
    }
}

/// Prepares a case in a new folder and runs it.
pub fn measure(case: &Case, ram_mib: u64, scale: Scale) -> Peak {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let folder = folder.path();
    case.inputs.iter().for_each(|input| input.link_into(folder, scale));
    let stated_bytes = ram_mib << 20;
    let mut refusal = None;
    for line in case.before {
        let ended = run(&words(line, stated_bytes, scale), folder);
        if !ended.status.success() {
            refusal = Some(last_line(&ended.errors));
            break;
        }
    }
    if refusal.is_some() {
        return Peak { refusal, ..Peak::of_nothing(case.name, stated_bytes) };
    }
    let ended = run(&words(case.command, stated_bytes, scale), folder);
    Peak {
        resident_bytes: ended.resident_bytes,
        told_bytes: field(&ended.output, "ram_bytes"),
        resident_told_bytes: field(&ended.output, "resident_peak_bytes"),
        refusal: (!ended.status.success()).then(|| last_line(&ended.errors)),
        elapsed_s: ended.elapsed_s,
        ..Peak::of_nothing(case.name, stated_bytes)
    }
}

impl Peak {
    fn of_nothing(verb: &'static str, stated_bytes: u64) -> Self {
        Self {
            verb,
            stated_bytes,
            resident_bytes: 0,
            told_bytes: None,
            resident_told_bytes: None,
            refusal: None,
            elapsed_s: 0.0,
        }
    }
}

/// Returns what a process takes that opens no volume.
pub fn idle_bytes() -> u64 {
    static BYTES: OnceLock<u64> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        run(&["parameters".to_owned()], folder.path()).resident_bytes
    })
}

fn words(line: &str, stated_bytes: u64, scale: Scale) -> Vec<String> {
    let receiver = format!(
        "exec '{PROGRAM}' wan receive -o copy --cache there.nandex --size 256MiB --ram {stated_bytes}"
    );
    let word = |word: &str| match word {
        "{ram}" => stated_bytes.to_string(),
        "{quarter}" => (stated_bytes / 4).to_string(),
        "{n}" => scale.keys().to_string(),
        "{pairs}" => scale.pairs().to_string(),
        "receiver" => receiver.clone(),
        word => word.to_owned(),
    };
    line.split_whitespace().map(word).collect()
}

/// A run that has ended.
struct Ended {
    status: ExitStatus,
    resident_bytes: u64,
    output: String,
    errors: String,
    elapsed_s: f64,
}

fn run(words: &[String], folder: &Path) -> Ended {
    let (out, err) = (folder.join("stdout"), folder.join("stderr"));
    let start = Instant::now();
    let mut command = Command::new(PROGRAM);
    command.args(words).current_dir(folder).stdin(Stdio::null());
    command.stdout(File::create(&out).expect("the folder is writable"));
    command.stderr(File::create(&err).expect("the folder is writable"));
    let mut child = command.spawn().expect("the command can be started");
    let (status, resident_bytes) = watch(&mut child);
    let elapsed_s = start.elapsed().as_secs_f64();
    let text = |path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
    Ended { status, resident_bytes, output: text(&out), errors: text(&err), elapsed_s }
}

/// Waits for the process, and returns the peak of its resident memory.
fn watch(child: &mut Child) -> (ExitStatus, u64) {
    let status = format!("/proc/{}/status", child.id());
    let mut peak_bytes = 0;
    loop {
        if let Some(ended) = child.try_wait().expect("a child can be waited for") {
            return (ended, peak_bytes);
        }
        let status = fs::read_to_string(&status).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        peak_bytes = peak_bytes.max(kib.unwrap_or(0) << 10);
        sleep(LOOK_EVERY);
    }
}

/// Returns the number of this name in JSON, wherever it is; the largest if there are several.
fn field(output: &str, name: &str) -> Option<u64> {
    fn find(value: &Value, name: &str) -> Option<u64> {
        match value {
            Value::Object(fields) => {
                let of = |(key, value): (&String, &Value)| {
                    if key == name { value.as_u64() } else { find(value, name) }
                };
                fields.iter().filter_map(of).max()
            }
            Value::Array(values) => values.iter().filter_map(|it| find(it, name)).max(),
            _ => None,
        }
    }
    find(&serde_json::from_str(output.trim()).ok()?, name)
}

/// Whether an error asks for more RAM and says how much.
pub fn says_least(refusal: &str) -> bool {
    let refusal = refusal.to_lowercase();
    refusal.contains("ram") && (refusal.contains("at least") || refusal.contains("or more"))
}

fn last_line(text: &str) -> String {
    text.trim_end().lines().next_back().unwrap_or_default().to_owned()
}
