//! Separate Pythons with datasketch and with rensa, created once in the folder of build products.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The content of an environment, as wheels: nothing is compiled.
pub struct Packages {
    /// Its folder.
    pub name: &'static str,
    /// The package, and its versions.
    pub wanted: &'static str,
    /// The module of the package.
    pub module: &'static str,
}

/// Returns the program of the environment. It is created at the first call, which needs the network.
pub fn python(packages: &Packages) -> PathBuf {
    let Packages { name, wanted, module } = packages;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let program = folder.join("bin/python");
    let is_complete = || {
        let found = Command::new(&program).args(["-c", &format!("import {module}")]).output();
        found.is_ok_and(|output| output.status.success())
    };
    if is_complete() {
        return program;
    }
    let hint = "install python3 with its venv module (Debian: python3 python3-venv), and let pip reach the network";
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder), hint);
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    let mut command = Command::new(&program);
    run(command.args(install).args(["--only-binary", ":all:", wanted]), hint);
    assert!(is_complete(), "{wanted} was installed in {folder:?} and cannot be imported; {hint}");
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
