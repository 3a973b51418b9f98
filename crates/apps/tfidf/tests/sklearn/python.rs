//! A separate Python with scikit-learn, created once in the folder of build products.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The package to install.
const PACKAGE: &str = "scikit-learn>=1.5,<2";

/// Returns the program of the environment. It is created at the first call, which needs the network.
pub fn python() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sklearn-venv");
    let program = folder.join("bin/python");
    let is_complete = || {
        let found = Command::new(&program).args(["-c", "import sklearn"]).output();
        found.is_ok_and(|output| output.status.success())
    };
    if is_complete() {
        return program;
    }
    let hint = "install python3 with its venv module (Debian: python3 python3-venv), and let pip reach the network";
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder), hint);
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", PACKAGE];
    run(Command::new(&program).args(install), hint);
    assert!(
        is_complete(),
        "scikit-learn was installed in {folder:?} and cannot be imported; {hint}"
    );
    program
}

/// Runs a command to its end; if it fails, fails with its output and the hint.
pub fn run(command: &mut Command, hint: &str) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; {hint}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let printed = text(&output.stdout) + &text(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{printed}\n{hint}", output.status);
    output
}
