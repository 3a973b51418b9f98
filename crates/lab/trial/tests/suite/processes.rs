//! Processes that a test starts and kills, and the files that they leave.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use nandex::device::{Create, Device, FileDevice, FileOptions};

/// Opens the file. The kernel ends a killed process's I/O in its own time, and until then the file may
/// still be locked.
pub fn device(path: &Path) -> Arc<dyn Device> {
    let options = FileOptions { create: Create::OpenOrCreate, ..FileOptions::default() };
    for _ in 0..2000 {
        match FileDevice::open(path, &options) {
            Err(nandex::raw::device::Error::Locked { .. }) => {
                std::thread::sleep(Duration::from_millis(1));
            }
            device => return Arc::new(device.unwrap()),
        }
    }
    panic!("two seconds after the process was killed, {} is locked", path.display());
}

/// Runs a test of this binary again, in a process of its own, as `role`.
pub fn again(test: &str, variable: &str, role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(variable, role);
    command
}
