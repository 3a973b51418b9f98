//! The resources of the machine: RAM, so that a reservation that can never fit fails early, and cores; and the RAM that
//! this process takes of them.

use std::fs;
use std::sync::OnceLock;
use std::thread::available_parallelism;

/// The RAM of this machine, in bytes.
#[must_use]
pub fn ram_bytes() -> u64 {
    let found = rustix::system::sysinfo();
    found.totalram.saturating_mul(found.mem_unit.into())
}

/// The number of cores that this process may use, as of the first call: finding it reads files of the system.
#[must_use]
pub fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| available_parallelism().map_or(1, usize::from))
}

/// Returns the most memory of this process that was resident at a time, in bytes, its program and its libraries among
/// it. `None` where the kernel does not say.
#[must_use]
pub fn resident_peak_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(kib.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg(target_os = "linux")]
    fn the_peak_of_a_process_grows_with_what_it_touches() {
        let before = super::resident_peak_bytes().unwrap();
        let touched = vec![1_u8; 64 << 20];
        let after = super::resident_peak_bytes().unwrap();
        assert!(after >= touched.len() as u64, "{before}, then {after}");
    }

    #[test]
    fn a_machine_has_ram_and_not_without_end() {
        let bytes = super::ram_bytes();
        assert!((1 << 26..1 << 50).contains(&bytes), "{bytes}");
    }
}
