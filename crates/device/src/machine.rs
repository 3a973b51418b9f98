//! The resources of the machine: RAM, so that a reservation that can never fit fails early, and cores.

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

#[cfg(test)]
mod tests {
    #[test]
    fn a_machine_has_ram_and_not_without_end() {
        let bytes = super::ram_bytes();
        assert!((1 << 26..1 << 50).contains(&bytes), "{bytes}");
    }
}
