//! datasketch and rensa on the same file, in a Python environment of their own in the folder of the
//! benchmark.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

/// The packages that are installed, as wheels: nothing is compiled. rensa 0.4 is the newest version with our
/// signatures.
const PACKAGES: [&str; 2] = ["datasketch>=2,<3", "rensa>=0.4,<0.5"];

/// Their names in the script.
pub const NAMES: [&str; 2] = ["datasketch", "rensa"];

const SCRIPT: &str = include_str!("peers.py");

/// The remedy if Python lacks something.
const HINT: &str = "install python3 with its venv module (Debian: python3 python3-venv), and let pip reach the network; or leave \
                    --peers out";

/// The result of one of them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PeerRun {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Bands of its signatures.
    pub bands: u32,
    /// Documents decided on.
    pub documents: u64,
    /// Near-duplicates of earlier ones among these.
    pub near: u64,
    /// The documents per second of wall time.
    pub documents_per_s: f64,
    /// The documents per second of the process's CPU time.
    pub documents_per_cpu_s: f64,
    /// The growth of its process's memory.
    pub ram_bytes_per_document: f64,
}

/// A Python environment with both.
pub struct Python {
    program: PathBuf,
}

/// The task of each.
#[derive(Clone, Copy)]
pub struct Task<'t> {
    /// The file of JSON lines.
    pub file: &'t Path,
    /// The maximum number of lines to read.
    pub documents_max: u64,
    /// Permutations of a signature.
    pub permutations: u32,
    /// Bands of a signature.
    pub bands: u32,
    /// The estimate from which documents are near.
    pub threshold: f64,
}

impl Python {
    /// Returns the environment in this folder; the first call makes it, which needs the network.
    ///
    /// # Errors
    /// Fails without Python, without network, and without wheels for this machine.
    pub fn in_folder(folder: &Path) -> Result<Self> {
        let python = Self { program: folder.join("bin/python") };
        if python.is_complete() {
            return Ok(python);
        }
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder))?;
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        let mut command = Command::new(&python.program);
        run(command.args(install).args(["--only-binary", ":all:"]).args(PACKAGES))?;
        let found = python.is_complete();
        ensure!(
            found,
            "{PACKAGES:?} were installed in {} and cannot be imported; {HINT}",
            folder.display()
        );
        Ok(python)
    }

    fn is_complete(&self) -> bool {
        let found = Command::new(&self.program).args(["-c", "import datasketch, rensa"]).output();
        found.is_ok_and(|output| output.status.success())
    }

    /// Runs the task with one of them.
    ///
    /// # Errors
    /// Returns the message of its script.
    pub fn run(&self, name: &str, task: Task<'_>) -> Result<PeerRun> {
        let numbers = [task.documents_max, task.permutations.into(), task.bands.into()];
        let mut command = Command::new(&self.program);
        command.args(["-c", SCRIPT, name]).arg(task.file).args(numbers.map(|it| it.to_string()));
        let printed = run(command.arg(task.threshold.to_string()))?;
        serde_json::from_str(&printed).with_context(|| format!("{name} printed {printed:?}"))
    }
}

/// Runs a command to its end, and returns its output.
fn run(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot start {program}; {HINT}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (printed, said) = (text(&output.stdout), text(&output.stderr));
    ensure!(output.status.success(), "{program}: {}\n{printed}{said}\n{HINT}", output.status);
    Ok(printed)
}
